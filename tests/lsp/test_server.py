"""The server as clients meet it: a process, over standard input and output, and over TCP."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import pytest_lsp
from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient as PlainClient
from pytest_lsp import ClientServerConfig, LanguageClient

from qoqi.compiler.incremental import recheck
from qoqi.lsp.features import Refused
from qoqi.lsp.server import create, elsewhere
from qoqi.lsp.session import Result
from qoqi.lsp.versions import Locked
from tests.lsp.lab import package

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = [sys.executable, "-m", "qoqi.runtime.cli.main", "lsp"]
ENV = {**os.environ, "PYTHONPATH": str(ROOT / ".links")}

SHOP = """\
/// Money somebody wants back.
struct Claim { id: String, cents: Int }

step pay(claim: Claim) -> Result<String, String> within 1m { return Ok(claim.id) }

flow Refund(claim: Claim) -> String {
    channel news: String

    run {
        let paid = pay(claim)
        return "\\(paid) \\(news.receive())"
    }
}

test "it pays" {
    given pay(_) => Ok("r")
    let it = Refund.start("a", Claim { id: "a", cents: 2 })
}
"""


def capabilities(encoding: str, *, pull: bool = False) -> lsp.ClientCapabilities:
    return lsp.ClientCapabilities(
        general=lsp.GeneralClientCapabilities(
            position_encodings=[lsp.PositionEncodingKind(encoding)]
        ),
        text_document=lsp.TextDocumentClientCapabilities(
            publish_diagnostics=lsp.PublishDiagnosticsClientCapabilities(
                version_support=True, related_information=True, code_description_support=True
            ),
            diagnostic=lsp.DiagnosticClientCapabilities() if pull else None,
            code_action=lsp.CodeActionClientCapabilities(
                code_action_literal_support=lsp.ClientCodeActionLiteralOptions(
                    lsp.ClientCodeActionKindOptions([lsp.CodeActionKind.QuickFix])
                ),
                resolve_support=lsp.ClientCodeActionResolveOptions(["edit"]),
            ),
        ),
        window=lsp.WindowClientCapabilities(work_done_progress=True),
    )


@pytest_lsp.fixture(  # type: ignore[untyped-decorator]
    config=ClientServerConfig(server_command=COMMAND, server_env=ENV)
)
async def client(
    request: pytest.FixtureRequest, lsp_client: LanguageClient, tmp_path: Path
) -> AsyncIterator[None]:
    (tmp_path / "flow.toml").write_text('name = "shop"\n')
    (tmp_path / "other.flow").write_text("fn helper() -> Int { return 1 }\n")
    await lsp_client.initialize_session(
        lsp.InitializeParams(
            capabilities=capabilities(getattr(request, "param", "utf-16")),
            root_uri=tmp_path.as_uri(),
        )
    )
    yield
    await lsp_client.shutdown_session()


class Editor:
    """A document in a client: opened, edited, and what was said of it."""

    def __init__(self, client: LanguageClient, path: Path, text: str) -> None:
        self.client = client
        self.uri = path.as_uri()
        self.text = text
        self.version = 1
        self.told: asyncio.Queue[Any] = asyncio.Queue()
        self._listen()

    def _listen(self) -> None:
        method = lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS
        self.client.protocol.wait_for_notification(method, self._hear)

    def _hear(self, params: Any) -> None:
        self._listen()
        self.told.put_nowait(params)

    @property
    def document(self) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri)

    def open(self) -> None:
        item = lsp.TextDocumentItem(self.uri, "flow", self.version, self.text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def replace(self, text: str) -> None:
        self.version += 1
        self.text = text
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(self.version, self.uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        """The next that are published for this document."""
        while True:
            told = await asyncio.wait_for(self.told.get(), 20)
            if told.uri == self.uri and told.version == self.version:
                return list(told.diagnostics)

    def at(self, mark: str) -> lsp.Position:
        """The start of a mark. The line may have an emoji only behind it."""
        before = self.text[: self.text.index(mark)]
        return lsp.Position(before.count("\n"), len(before) - before.rfind("\n") - 1)


async def test_a_day_in_an_editor(client: LanguageClient, tmp_path: Path) -> None:
    editor = Editor(client, tmp_path / "shop.flow", SHOP)
    editor.open()
    assert await editor.diagnostics() == []

    editor.replace(SHOP.replace("pay(claim)\n", "pay(clam)\n"))
    (wrong,) = await editor.diagnostics()
    assert wrong.code == "E0201"
    assert wrong.range.start == editor.at("clam")
    assert wrong.code_description is not None
    assert wrong.code_description.href.endswith("/E0201.md")

    fixes: Any = await client.text_document_code_action_async(
        lsp.CodeActionParams(
            editor.document,
            wrong.range,
            lsp.CodeActionContext([wrong], [lsp.CodeActionKind.QuickFix]),
        )
    )
    assert [fix.title for fix in fixes] == ["Change to `claim`"]
    edits = fixes[0].edit.changes[editor.uri]
    assert [(edit.range, edit.new_text) for edit in edits] == [(wrong.range, "claim")]

    hover: Any = await client.text_document_hover_async(
        lsp.HoverParams(editor.document, editor.at("pay(clam"))
    )
    assert "step pay(claim: Claim)" in hover.contents.value

    found: Any = await client.text_document_definition_async(
        lsp.DefinitionParams(editor.document, editor.at("pay(clam"))
    )
    assert found.range.start.line == 3

    editor.replace(SHOP.replace("pay(claim)\n", "claim.\n"))
    offered: Any = await client.text_document_completion_async(
        lsp.CompletionParams(
            editor.document,
            lsp.Position(editor.at("claim.\n").line, editor.at("claim.\n").character + 6),
        )
    )
    assert [item.label for item in offered.items][:2] == ["cents", "id"]

    editor.replace(SHOP)
    edit: Any = await client.text_document_rename_async(
        lsp.RenameParams(editor.document, editor.at("pay(claim)\n"), "settle")
    )
    assert len(edit.changes[editor.uri]) == 3

    editor.replace(SHOP.replace("let paid = pay", "let paid   =   pay"))
    layout: Any = await client.text_document_formatting_async(
        lsp.DocumentFormattingParams(editor.document, lsp.FormattingOptions(4, True))
    )
    assert [edit.new_text for edit in layout] == ["        let paid = pay(claim)\n"]


async def test_a_refused_rename_is_an_error_answer(client: LanguageClient, tmp_path: Path) -> None:
    editor = Editor(client, tmp_path / "shop.flow", SHOP)
    editor.open()
    await editor.diagnostics()

    with pytest.raises(Exception, match="a word of the language"):
        await client.text_document_rename_async(
            lsp.RenameParams(editor.document, editor.at("paid ="), "case")
        )


@pytest.mark.parametrize("client", ["utf-8", "utf-16", "utf-32"], indirect=True)
async def test_columns_behind_an_emoji(client: LanguageClient, tmp_path: Path) -> None:
    editor = Editor(client, tmp_path / "shop.flow", 'fn f() -> String { return "😀\\(x)" }\n')
    editor.open()

    (wrong,) = await editor.diagnostics()

    width = wrong.range.start.character - len('fn f() -> String { return "') - len("\\(")
    assert width == {"utf-8": 4, "utf-16": 2, "utf-32": 1}[_encoding(client)]


def _encoding(client: LanguageClient) -> str:
    general = client.capabilities.general if client.capabilities is not None else None
    assert general is not None and general.position_encodings is not None
    return str(getattr(general.position_encodings[0], "value", general.position_encodings[0]))


async def test_nonsense_is_answered_with_errors_and_the_server_lives(
    client: LanguageClient, tmp_path: Path
) -> None:
    editor = Editor(client, tmp_path / "shop.flow", SHOP)
    editor.open()
    await editor.diagnostics()
    nowhere = lsp.TextDocumentIdentifier("file:///nowhere/at/all.flow")
    start = lsp.Position(0, 0)
    protocol: Any = client.protocol

    asks: list[Callable[[], Any]] = [
        lambda: client.text_document_completion_async(lsp.CompletionParams(nowhere, start)),
        lambda: protocol.send_request_async("flow/unknown", {}),
        lambda: client.workspace_execute_command_async(lsp.ExecuteCommandParams("no.such")),
    ]
    for ask in asks:
        with pytest.raises(Exception, match=r".+"):
            await ask()
    assert await client.text_document_hover_async(lsp.HoverParams(nowhere, start)) is None

    far = lsp.Position(10**6, 10**6)
    await client.text_document_hover_async(lsp.HoverParams(editor.document, far))
    chance = random.Random(1)
    for _ in range(20):
        at = chance.randrange(len(SHOP))
        editor.replace(SHOP[:at])
        lines = editor.text.split("\n")
        here = lsp.Position(len(lines) - 1, len(lines[-1]))
        await client.text_document_completion_async(lsp.CompletionParams(editor.document, here))
    editor.replace(SHOP)
    assert await editor.diagnostics() == []


async def test_nothing_is_kept_of_notifications_that_are_done(tmp_path: Path) -> None:
    server = create()
    protocol: Any = server.protocol
    uri = (tmp_path / "a.flow").as_uri()
    saved = lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri))
    opened = lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "flow", 1, SHOP))
    closed = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri))
    server.session.delay = 1000

    for _ in range(20):
        protocol._handle_notification(lsp.TEXT_DOCUMENT_DID_OPEN, opened)
        protocol._handle_notification(lsp.TEXT_DOCUMENT_DID_SAVE, saved)
        protocol._handle_notification(lsp.TEXT_DOCUMENT_DID_CLOSE, closed)
    for _ in range(5):
        await asyncio.sleep(0)

    assert protocol._request_futures == {}
    await server.session.stop()


def test_a_refusal_is_an_answer_and_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    protocol: Any = create().protocol
    sent: list[tuple[int, str]] = []
    protocol._send_response = lambda id_, error: sent.append((error.code, error.message))
    refused: Future[object] = Future()
    refused.set_exception(Refused("There is no name here."))

    protocol._send_handler_result(refused, msg_id=1)

    assert sent == [(lsp.LSPErrorCodes.RequestFailed, "There is no name here.")]
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_only_what_changed_elsewhere_is_asked_for_again() -> None:
    texts = {
        "a": "import b\n\nfn f() -> Int { return b.g() }\n",
        "b": "fn g() -> Int { return 1 }\n",
    }
    first = Result(recheck(package(texts)), Locked(), 1)

    def after(module: str, old: str, new: str) -> Result:
        changed = {**texts, module: texts[module].replace(old, new)}
        return Result(recheck(package(changed), first.snapshot), Locked(), 2)

    assert elsewhere(first, None)
    assert not elsewhere(after("b", "return 1", "return x"), first)
    assert elsewhere(after("b", "g() -> Int", "g() -> String"), first)
    assert not elsewhere(after("a", "b.g()", "b.h()"), first)


async def test_all_fixes_are_found_once_they_are_chosen(
    client: LanguageClient, tmp_path: Path
) -> None:
    text = "fn f() -> Int {\n    let a = 1\n    let b = 2\n    return 3\n}\n"
    editor = Editor(client, tmp_path / "a.flow", text)
    editor.open()
    context = lsp.CodeActionContext([])
    place = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))
    offered: Any = await client.text_document_code_action_async(
        lsp.CodeActionParams(editor.document, place, context)
    )
    [fix] = [each for each in offered if each.kind == "source.fixAll"]
    assert fix.edit is None

    chosen = await client.code_action_resolve_async(fix)

    assert chosen.edit is not None
    [edits] = (chosen.edit.changes or {}).values()
    assert [edit.new_text for edit in edits] == ["_", "_"]


# -- pulled, and over TCP ------------------------------------------------------------------------


async def test_diagnostics_that_are_asked_for_over_tcp(tmp_path: Path) -> None:
    (tmp_path / "flow.toml").write_text('name = "shop"\n')
    (tmp_path / "other.flow").write_text("fn helper() -> Int { return y }\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = await asyncio.create_subprocess_exec(*COMMAND, "--tcp", str(port), env=ENV)
    client = PlainClient("test", "1")
    pushed: list[str] = []
    client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda told: pushed.append(told.uri))
    client.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE)(lambda params: None)
    client.feature(lsp.PROGRESS)(lambda params: None)
    try:
        for _ in range(200):
            try:
                await client.start_tcp("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.05)
        await client.initialize_async(
            lsp.InitializeParams(
                capabilities=capabilities("utf-16", pull=True), root_uri=tmp_path.as_uri()
            )
        )
        client.initialized(lsp.InitializedParams())
        uri = (tmp_path / "shop.flow").as_uri()
        item = lsp.TextDocumentItem(uri, "flow", 1, "fn f() -> Int { return x }\n")
        client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        document = lsp.TextDocumentIdentifier(uri)

        report: Any = await client.text_document_diagnostic_async(
            lsp.DocumentDiagnosticParams(document)
        )
        again: Any = await client.text_document_diagnostic_async(
            lsp.DocumentDiagnosticParams(document, previous_result_id=report.result_id)
        )
        every: Any = await client.workspace_diagnostic_async(lsp.WorkspaceDiagnosticParams([]))

        assert [each.code for each in report.items] == ["E0201"]
        assert (again.kind, again.result_id) == ("unchanged", report.result_id)
        found = {Path(each.uri).name: [d.code for d in each.items] for each in every.items}
        assert found == {"shop.flow": ["E0201"], "other.flow": ["E0201"]}
        assert pushed == []
        await client.shutdown_async(None)
        client.exit(None)
        await asyncio.wait_for(server.wait(), 10)
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()


@pytest.mark.parametrize("known", [True, False])
async def test_no_lens_counts_instances_where_nobody_knows_them(
    tmp_path: Path, known: bool
) -> None:
    asked: list[str] = []

    def lives(flow: str) -> dict[str, int] | None:
        asked.append(flow)
        return {} if known else None

    server = create("1", lives)
    protocol: Any = server.protocol
    path = tmp_path / "shop.flow"
    text = 'flow A() {\n    run {}\n}\nflow B() {\n    run {}\n}\ntest "it" {}\n'
    server.session.delay = 1000
    item = lsp.TextDocumentItem(path.as_uri(), "flow", 1, text)
    protocol._handle_notification(lsp.TEXT_DOCUMENT_DID_OPEN, lsp.DidOpenTextDocumentParams(item))
    await asyncio.sleep(0)

    found = await protocol.fm.features[lsp.TEXT_DOCUMENT_CODE_LENS](
        lsp.CodeLensParams(lsp.TextDocumentIdentifier(path.as_uri()))
    )

    names = [each.data["flow"].rsplit(".", 1)[-1] for each in found if each.data]
    assert names == (["A", "B"] if known else [])
    assert [each.command.title for each in found if each.command] == ["Run the test"]
    assert [flow.rsplit(".", 1)[-1] for flow in asked] == ["A"]
