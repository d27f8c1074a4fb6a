"""From `initialize` to `shutdown`: what the client can do, its documents, folders and files.

`initializationOptions` may have `diagnostics` (`push` or `pull`; what the client can do decides
otherwise) and `delay` (for how long a check waits at most for the next change, in milliseconds).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from qoqi.compiler.project.load import MANIFEST, SUFFIX
from qoqi.compiler.project.lockfile import LOCK
from qoqi.lsp.convert import path_of, uri_of
from qoqi.lsp.server import FlowServer
from qoqi.lsp.session import Work, unseen
from qoqi.lsp.text import Encoding

logger = logging.getLogger("qoqi.lsp")

WATCHED = (f"**/*{SUFFIX}", f"**/{MANIFEST}", f"**/{LOCK}")
FLOW_FILES = lsp.FileOperationRegistrationOptions(
    [lsp.FileOperationFilter(lsp.FileOperationPattern(f"**/*{SUFFIX}"), "file")]
)


def register(server: FlowServer) -> None:
    """Registers the notifications that a session lives of."""

    @server.feature(lsp.INITIALIZE)
    def initialize(_: LanguageServer, params: lsp.InitializeParams) -> None:
        options = params.initialization_options
        options = options if isinstance(options, Mapping) else {}
        server.pulled = server.supports("text_document", "diagnostic")
        if options.get("diagnostics") in ("push", "pull"):
            server.pulled = options["diagnostics"] == "pull"
        delay = options.get("delay")
        if isinstance(delay, int | float):
            server.session.delay = delay / 1000
        folders = [folder.uri for folder in params.workspace_folders or ()]
        root = params.root_uri or (uri_of(params.root_path) if params.root_path else None)
        if not folders and root is not None:
            folders = [root]
        server.session.folders = [path_of(uri).rstrip("/") or "/" for uri in folders]

    @server.feature(lsp.INITIALIZED)
    async def initialized(_: LanguageServer, params: lsp.InitializedParams) -> None:
        chosen = server.server_capabilities.position_encoding
        server.encoding = Encoding(str(getattr(chosen, "value", chosen) or "utf-16"))
        if server.supports("workspace", "did_change_watched_files", "dynamic_registration"):
            watchers = [lsp.FileSystemWatcher(pattern) for pattern in WATCHED]
            options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
            registration = lsp.Registration(
                "watched", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options
            )
            await server.client_register_capability_async(lsp.RegistrationParams([registration]))
        if server.session.folders:
            await with_progress(server, "Reading the flows")

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    async def did_open(_: LanguageServer, params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        server.session.open(path_of(document.uri), document.version, document.text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def did_change(_: LanguageServer, params: lsp.DidChangeTextDocumentParams) -> None:
        path = path_of(params.text_document.uri)
        document = server.session.documents.get(path)
        if document is None:
            logger.error("a change of %s, which is not open", path)
            return
        text = document.text
        for change in params.content_changes:
            range_ = getattr(change, "range", None)
            places = None
            if range_ is not None:
                start, end = range_.start, range_.end
                places = ((start.line, start.character), (end.line, end.character))
            text = text.changed(places, change.text, server.encoding)
        server.session.change(path, params.text_document.version, text)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    async def did_close(_: LanguageServer, params: lsp.DidCloseTextDocumentParams) -> None:
        server.session.close(path_of(params.text_document.uri))

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    async def did_save(_: LanguageServer, params: lsp.DidSaveTextDocumentParams) -> None:
        server.session.files_changed([path_of(params.text_document.uri)])

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def watched(_: LanguageServer, params: lsp.DidChangeWatchedFilesParams) -> None:
        server.session.files_changed([path_of(change.uri) for change in params.changes])

    @server.feature(lsp.WORKSPACE_DID_CREATE_FILES, FLOW_FILES)
    async def created(_: LanguageServer, params: lsp.CreateFilesParams) -> None:
        server.session.files_changed([path_of(file.uri) for file in params.files])

    @server.feature(lsp.WORKSPACE_DID_RENAME_FILES, FLOW_FILES)
    async def renamed(_: LanguageServer, params: lsp.RenameFilesParams) -> None:
        paths = [path_of(uri) for file in params.files for uri in (file.old_uri, file.new_uri)]
        server.session.files_changed(paths)

    @server.feature(lsp.WORKSPACE_DID_DELETE_FILES, FLOW_FILES)
    async def deleted(_: LanguageServer, params: lsp.DeleteFilesParams) -> None:
        server.session.files_changed([path_of(file.uri) for file in params.files])

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    async def folders(_: LanguageServer, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        gone = {path_of(folder.uri).rstrip("/") for folder in params.event.removed}
        kept = [folder for folder in server.session.folders if folder not in gone]
        kept += [path_of(folder.uri) for folder in params.event.added]
        server.session.set_folders(kept)
        server.session.load_folders()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def configured(_: LanguageServer, params: lsp.DidChangeConfigurationParams) -> None:
        logger.info("the configuration changed; none of it is the server's")

    @server.feature(lsp.SHUTDOWN)
    async def shutdown(_: LanguageServer, params: None) -> None:
        await server.session.stop()


async def with_progress(server: FlowServer, title: str) -> None:
    """Checks the packages of the open folders, and says so while it lasts."""
    session = server.session
    session.load_folders()
    works = [work for work in session.works() if work.task is not None]
    if not works or not server.supports("window", "work_done_progress"):
        for work in works:
            await session.settled(work)
        return
    token = "flow-folders"
    await server.work_done_progress.create_async(token)
    server.work_done_progress.begin(token, lsp.WorkDoneProgressBegin(title, percentage=0))
    done = 0

    def report(work: Work, part: float) -> None:
        percent = min(99, int(100 * (done + part) / len(works)))
        server.work_done_progress.report(
            token, lsp.WorkDoneProgressReport(message=work.root, percentage=percent)
        )

    session.progress = report
    try:
        for work in works:
            report(work, 0)
            await session.settled(work)
            done += 1
    finally:
        session.progress = unseen
        server.work_done_progress.end(token, lsp.WorkDoneProgressEnd())
