"""The wiring: one function for each request and notification of the protocol, and no logic.

A request is turned into offsets, asked of the module that knows, and its answer turned into the
protocol's values (`convert`). A fault in one is that request's error answer and a line in the log.
Handlers are coroutines, so a cancelled request ends at its next wait.

pygls keeps texts too, and splits lines where the protocol does not (U+2028, form feed); its part in
that is left out here (`Protocol`), and texts are the session's. It also remembers every
notification that a coroutine or generator handled, which `Protocol` makes it forget.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeAlias

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter
from pygls.protocol.language_server import lsp_method

from qoqi.compiler.diagnostics import Diagnostic
from qoqi.compiler.project.load import SUFFIX
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.lsp import lenses
from qoqi.lsp.convert import Border, is_source, path_of, uri_of
from qoqi.lsp.names import module_at
from qoqi.lsp.session import Document, Result, Session, Work
from qoqi.lsp.text import Encoding, Text
from qoqi.vm.dataclass import dataclass

logger = logging.getLogger("qoqi.lsp")

Report: TypeAlias = (
    lsp.RelatedFullDocumentDiagnosticReport | lsp.RelatedUnchangedDocumentDiagnosticReport
)


class Protocol(LanguageServerProtocol):
    """pygls's, without its copies of texts, and without what it keeps of finished work."""

    def _execute_handler(
        self,
        msg_id: Any,
        handler: Any,
        callback: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        def done(future: Any) -> None:
            self._request_futures.pop(msg_id, None)
            callback(future)

        super()._execute_handler(msg_id, handler, done, args, kwargs)

    def _send_handler_result(self, future: Future[Any], *, msg_id: Any) -> None:
        """An answer with an error that a handler chose (a rename refused) is no fault of ours."""
        refused = None if future.cancelled() else future.exception()
        if not isinstance(refused, JsonRpcException):
            super()._send_handler_result(future, msg_id=msg_id)
            return
        self._request_futures.pop(msg_id, None)
        logger.info("refused: %s", refused)
        self._send_response(msg_id, error=refused.to_response_error())

    @lsp_method(lsp.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: lsp.DidOpenTextDocumentParams) -> Any:
        yield from self._told(lsp.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: lsp.DidChangeTextDocumentParams) -> Any:
        yield from self._told(lsp.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: lsp.DidCloseTextDocumentParams) -> Any:
        yield from self._told(lsp.TEXT_DOCUMENT_DID_CLOSE, params)

    def _told(self, method: str, params: object) -> Generator[Any]:
        yield self.fm.features[method], (params,), None


class FlowServer(LanguageServer):
    """`lives` counts the instances of a flow, if somebody knows a daemon.

    `pulled` says that the client asks for diagnostics; one that does is told none unasked, since it
    would show them twice.
    """

    def __init__(self, version: str, lives: lenses.Lives | None = None) -> None:
        super().__init__(
            "qoqi",
            version,
            lsp.TextDocumentSyncKind.Incremental,
            None,
            protocol_cls=Protocol,
            converter_factory=default_converter,
        )
        self.lives = lives
        self.session = Session(self._publish)
        self.session.checked = self._checked
        self.encoding = Encoding.UTF16
        self.pulled = False

    def report_server_error(self, error: Exception, source: Any) -> None:
        logger.error("a fault in a request: %s", error)

    # -- what handlers need -------------------------------------------------------------------

    @property
    def border(self) -> Border:
        return Border(self.encoding, self.session.text)

    def document(self, uri: str) -> Document | None:
        return self.session.documents.get(path_of(uri))

    def supports(self, *names: str) -> bool:
        """Whether the client announced a capability, by its path."""
        value: Any = self.client_capabilities
        for name in names:
            value = getattr(value, name, None)
            if value is None:
                return False
        return bool(value)

    def parsed(self, document: Document) -> Parsed:
        """The syntax of a document as it stands; that of the last check if it is the same text."""
        result = self.session.last(document.path)
        if result is not None:
            for each in result.snapshot.parsed.values():
                if each.file.path == document.path and each.file.text == document.text.value:
                    return each
        return parse(SourceFile(document.path, module_name(document.path), document.text.value))

    async def at(self, uri: str, position: lsp.Position) -> At | None:
        """The package and the offset of a position, when the newest text is checked."""
        document = self.document(uri)
        if document is None or not is_source(document.path):
            return None
        result = await self.session.snapshot(document.path)
        module = module_at(result.snapshot, document.path)
        if module is None:
            return None
        text = self.session.documents[document.path].text
        return At(document, result, module, text, self.border.offset(text, position))

    def before(self, uri: str, position: lsp.Position) -> tuple[Document, Result | None, str, int]:
        """As `at`, with what is known already: for text that changes with every key."""
        document = self.document(uri)
        if document is None:
            raise JsonRpcInvalidParams(f"{uri} is not open")
        result = self.session.last(document.path)
        module = module_at(result.snapshot, document.path) if result is not None else None
        offset = self.border.offset(document.text, position)
        return document, result, module or module_name(document.path), offset

    # -- diagnostics --------------------------------------------------------------------------

    def _publish(self, path: str, version: int | None, found: tuple[Diagnostic, ...]) -> None:
        if self.pulled:
            return
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri_of(path), self._converted(path, found), version)
        )

    def _converted(self, path: str, found: tuple[Diagnostic, ...]) -> list[lsp.Diagnostic]:
        if not is_source(path):
            return []
        border = self.border
        text = border.of(path)
        return [border.diagnostic(each, text) for each in found]

    def _checked(self, work: Work, before: Result | None) -> None:
        """After a check, what the editor shows of texts that it did not change may be wrong."""
        if not elsewhere(work.result, before):
            return
        loop = asyncio.get_running_loop()
        if self.pulled and self.supports("workspace", "diagnostics", "refresh_support"):
            self._ask(loop, self.workspace_diagnostic_refresh_async)
        if self.supports("workspace", "semantic_tokens", "refresh_support"):
            self._ask(loop, self.workspace_semantic_tokens_refresh_async)
        if self.supports("workspace", "inlay_hint", "refresh_support"):
            self._ask(loop, self.workspace_inlay_hint_refresh_async)

    def _ask(self, loop: asyncio.AbstractEventLoop, ask: Callable[[None], Any]) -> None:
        async def asked() -> None:
            try:
                await ask(None)
            except Exception as refused:
                logger.info("the client refused: %s", refused)

        loop.create_task(asked())

    def report(self, path: str, known: str | None) -> Report:
        """The diagnostics of a file for a client that asks, or that they are what it knows."""
        found = self.session.diagnostics(path)
        id_ = f"{hash((found, self.border.of(path).value)) & 0xFFFF_FFFF_FFFF:x}"
        if id_ == known:
            return lsp.RelatedUnchangedDocumentDiagnosticReport(id_)
        items = self._converted(path, found)
        return lsp.RelatedFullDocumentDiagnosticReport(items, result_id=id_)


@dataclass(frozen=True, slots=True)
class At:
    """A place in a checked document."""

    document: Document
    result: Result
    module: str
    text: Text
    offset: int


def elsewhere(after: Result | None, before: Result | None) -> bool:
    """Whether a check changed what is known of other files than those whose text changed."""
    if after is None or before is None:
        return True
    texts = {each.path: each.text for each in before.snapshot.package.sources}
    same = {
        each.path for each in after.snapshot.package.sources if texts.get(each.path) == each.text
    }
    if any(after.snapshot.sources[name].path in same for name in after.snapshot.again):
        return True
    known = [
        [each for each in result.diagnostics if each.file in same] for result in (before, after)
    ]
    return known[0] != known[1]


def module_name(path: str) -> str:
    """What a file is called that no package has."""
    return path.rsplit("/", 1)[-1].removesuffix(SUFFIX)


def create(version: str = "0", lives: lenses.Lives | None = None) -> FlowServer:
    """A server with all its features, not yet started."""
    from qoqi.lsp import features, lifecycle

    server = FlowServer(version, lives)
    lifecycle.register(server)
    features.register(server)
    return server
