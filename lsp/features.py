"""The requests: one function each, which asks the module that knows and turns its answer over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from qoqi.compiler.diagnostics import Edit
from qoqi.compiler.incremental import Superseded, Watch
from qoqi.compiler.source import Span
from qoqi.lsp import (
    actions,
    changes,
    completion,
    drawing,
    formatting,
    navigation,
    signatures,
    symbols,
)
from qoqi.lsp.changes import Action
from qoqi.lsp.convert import is_source, path_of, symbol, uri_of
from qoqi.lsp.hover import hover
from qoqi.lsp.items import Item
from qoqi.lsp.server import At, FlowServer, Report

FLOW = "flow"


class Refused(JsonRpcException):
    """An answer that a rename is not done, and why."""

    CODE = lsp.LSPErrorCodes.RequestFailed.value
    MESSAGE = "refused"


class Modified(JsonRpcException):
    """An answer that the text changed before there was one."""

    CODE = lsp.LSPErrorCodes.ContentModified.value
    MESSAGE = "the text changed"


def register(server: FlowServer) -> None:
    _reading(server)
    _completing(server)
    _navigating(server)
    _calling(server)
    drawing.register(server)
    _editing(server)
    _diagnosing(server)


def _reading(server: FlowServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def on_hover(_: LanguageServer, params: lsp.HoverParams) -> lsp.Hover | None:
        at = await server.at(params.text_document.uri, params.position)
        if at is None:
            return None
        found = hover(at.result.snapshot, at.result.locked, at.module, at.offset)
        if found is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.markdown)
        return lsp.Hover(content, server.border.range(at.text, found.span))

    @server.feature(
        lsp.TEXT_DOCUMENT_SIGNATURE_HELP,
        lsp.SignatureHelpOptions(trigger_characters=["(", ","], retrigger_characters=[")"]),
    )
    async def on_signature(
        _: LanguageServer, params: lsp.SignatureHelpParams
    ) -> lsp.SignatureHelp | None:
        document, result, module, offset = server.before(params.text_document.uri, params.position)
        snapshot = result.snapshot if result is not None else None
        text = document.text.value
        with server.session.urgent():
            found = signatures.signature_help(snapshot, document.path, module, text, offset)
        if found is None:
            return None
        doc = lsp.MarkupContent(lsp.MarkupKind.Markdown, found.documentation)
        parameters = [lsp.ParameterInformation(each) for each in found.parameters]
        one = lsp.SignatureInformation(
            found.label, doc if found.documentation else None, parameters, found.active
        )
        return lsp.SignatureHelp([one], 0, found.active)


def _completing(server: FlowServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lsp.CompletionOptions(trigger_characters=["."], resolve_provider=True),
    )
    async def on_completion(
        _: LanguageServer, params: lsp.CompletionParams
    ) -> lsp.CompletionList | None:
        document, result, module, offset = server.before(params.text_document.uri, params.position)
        if not is_source(document.path):
            return None
        snapshot = result.snapshot if result is not None else None
        text = document.text.value
        with server.session.urgent():
            found = completion.complete(snapshot, document.path, module, text, offset)
        range_ = server.border.range(document.text, found.span)
        snippets = server.supports(
            "text_document", "completion", "completion_item", "snippet_support"
        )
        items = [
            _completion_item(server, item, range_, snippets, document.path, index)
            for index, item in enumerate(found.items)
        ]
        # Names of other modules come from two letters on; what there is then, the editor sifts by
        # itself. To ask again at each letter would keep an outdated list open while it waits, and
        # VS Code takes an item of it for a line end: `String {⏎` became `String`.
        sifted = found.span.end - found.span.start >= 2 and len(items) < completion.ENOUGH
        return lsp.CompletionList(is_incomplete=bool(items) and not sifted, items=items)

    @server.feature(lsp.COMPLETION_ITEM_RESOLVE)
    async def on_resolve(_: LanguageServer, item: lsp.CompletionItem) -> lsp.CompletionItem:
        data = item.data if isinstance(item.data, dict) else {}
        path, key = data.get("path"), data.get("key")
        result = server.session.last(path) if isinstance(path, str) else None
        if result is None or not isinstance(key, list):
            return item
        shown, doc = completion.document(result.snapshot, tuple(str(part) for part in key))
        text = "\n\n".join(
            part for part in (f"```flow\n{shown}\n```" if shown else "", doc) if part
        )
        if text:
            item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
        return item


def _completion_item(
    server: FlowServer,
    item: Item,
    range_: lsp.Range,
    snippets: bool,
    path: str,
    index: int,
) -> lsp.CompletionItem:
    insert = item.insert or item.label
    if item.snippet and not snippets:
        insert = item.label.rstrip(":") + (": " if item.label.endswith(":") else "")
    snippet = item.snippet and snippets
    edits = server.border.edits(item.edits).get(uri_of(path)) if item.edits else None
    return lsp.CompletionItem(
        label=item.label,
        kind=lsp.CompletionItemKind[item.kind],
        detail=item.detail or None,
        sort_text=f"{item.rank}{index:04}",
        filter_text=item.label,
        insert_text_format=lsp.InsertTextFormat.Snippet
        if snippet
        else lsp.InsertTextFormat.PlainText,
        text_edit=lsp.TextEdit(range_, insert),
        additional_text_edits=edits,
        data={"path": path, "key": list(item.key)} if item.key is not None else None,
    )


def _navigating(server: FlowServer) -> None:
    def location(place: navigation.Place | None) -> lsp.Location | None:
        return server.border.location(place.path, place.span) if place is not None else None

    @server.feature(lsp.TEXT_DOCUMENT_DEFINITION)
    async def on_definition(_: LanguageServer, params: lsp.DefinitionParams) -> lsp.Location | None:
        at = await server.at(params.text_document.uri, params.position)
        return location(
            navigation.definition(at.result.snapshot, at.module, at.offset) if at else None
        )

    @server.feature(lsp.TEXT_DOCUMENT_TYPE_DEFINITION)
    async def on_type(_: LanguageServer, params: lsp.TypeDefinitionParams) -> lsp.Location | None:
        at = await server.at(params.text_document.uri, params.position)
        if at is None:
            return None
        return location(navigation.type_definition(at.result.snapshot, at.module, at.offset))

    @server.feature(lsp.TEXT_DOCUMENT_REFERENCES)
    async def on_references(_: LanguageServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
        at = await server.at(params.text_document.uri, params.position)
        if at is None:
            return []
        found = navigation.references(
            at.result.snapshot,
            at.module,
            at.offset,
            declaration=params.context.include_declaration,
        )
        return [server.border.location(path, span) for path, span in found]

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    async def on_highlight(
        _: LanguageServer, params: lsp.DocumentHighlightParams
    ) -> list[lsp.DocumentHighlight]:
        at = await server.at(params.text_document.uri, params.position)
        if at is None:
            return []
        kinds = {True: lsp.DocumentHighlightKind.Write, False: lsp.DocumentHighlightKind.Read}
        return [
            lsp.DocumentHighlight(server.border.range(at.text, span), kinds[write])
            for span, write in navigation.highlights(at.result.snapshot, at.module, at.offset)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_RENAME)
    async def on_prepare(
        _: LanguageServer, params: lsp.PrepareRenameParams
    ) -> lsp.PrepareRenamePlaceholder | None:
        at = await server.at(params.text_document.uri, params.position)
        if at is None:
            return None
        try:
            span, name = navigation.prepare_rename(at.result.snapshot, at.module, at.offset)
        except navigation.Refused as refused:
            raise Refused(str(refused)) from refused
        return lsp.PrepareRenamePlaceholder(server.border.range(at.text, span), name)

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def on_rename(_: LanguageServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
        at = await server.at(params.text_document.uri, params.position)
        if at is None:
            return None
        try:
            edits = await server.session.aside(
                at.document.path,
                partial(
                    navigation.rename, at.result.snapshot, at.module, at.offset, params.new_name
                ),
            )
        except navigation.Refused as refused:
            raise Refused(str(refused)) from refused
        except Superseded as changed:
            raise Modified("the text changed while the rename was tried") from changed
        return _workspace_edit(server, edits)

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def on_symbols(
        _: LanguageServer, params: lsp.DocumentSymbolParams
    ) -> list[lsp.DocumentSymbol]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        found = symbols.outline(server.parsed(document).module, document.text.value)
        return [symbol(server.border, document.text, each) for each in found]

    @server.feature(lsp.WORKSPACE_SYMBOL)
    async def on_search(
        _: LanguageServer, params: lsp.WorkspaceSymbolParams
    ) -> list[lsp.SymbolInformation]:
        found = [
            each
            for work in server.session.works()
            for each in symbols.search((await server.session.settled(work)).snapshot, params.query)
        ]
        unique = {(each.path, each.span): each for each in found}
        return [
            lsp.SymbolInformation(
                server.border.location(each.path, each.span),
                each.name,
                lsp.SymbolKind[each.kind],
                container_name=each.container,
            )
            for each in unique.values()
        ]


def _workspace_edit(server: FlowServer, edits: Sequence[Edit]) -> lsp.WorkspaceEdit:
    """Edits with the versions of the texts they are for, where the client can take them."""
    changes = server.border.edits(edits)
    if not server.supports("workspace", "workspace_edit", "document_changes"):
        return lsp.WorkspaceEdit(changes=changes)
    documents: list[lsp.TextDocumentEdit | lsp.CreateFile | lsp.RenameFile | lsp.DeleteFile] = []
    for uri, each in changes.items():
        document = server.document(uri)
        version = document.version if document is not None else None
        identifier = lsp.OptionalVersionedTextDocumentIdentifier(uri, version)
        documents.append(lsp.TextDocumentEdit(identifier, list(each)))
    return lsp.WorkspaceEdit(document_changes=documents)


def _calling(server: FlowServer) -> None:
    def item(each: navigation.CallItem) -> lsp.CallHierarchyItem:
        text = server.border.of(each.path)
        return lsp.CallHierarchyItem(
            name=each.name,
            kind=lsp.SymbolKind[each.kind],
            uri=uri_of(each.path),
            range=server.border.range(text, each.whole),
            selection_range=server.border.range(text, each.span),
            data=list(each.key),
        )

    @server.feature(lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY)
    async def on_prepare(
        _: LanguageServer, params: lsp.CallHierarchyPrepareParams
    ) -> list[lsp.CallHierarchyItem] | None:
        at = await server.at(params.text_document.uri, params.position)
        if at is None:
            return None
        found = navigation.call_item(at.result.snapshot, at.module, at.offset)
        return [item(found)] if found is not None else None

    @server.feature(lsp.CALL_HIERARCHY_OUTGOING_CALLS)
    async def on_outgoing(
        _: LanguageServer, params: lsp.CallHierarchyOutgoingCallsParams
    ) -> list[lsp.CallHierarchyOutgoingCall]:
        result = await server.session.snapshot(path_of(params.item.uri))
        key = _key(params.item)
        text = server.border.of(path_of(params.item.uri))
        return [
            lsp.CallHierarchyOutgoingCall(item(each), [server.border.range(text, s) for s in spans])
            for each, spans in navigation.outgoing(result.snapshot, key)
        ]

    @server.feature(lsp.CALL_HIERARCHY_INCOMING_CALLS)
    async def on_incoming(
        _: LanguageServer, params: lsp.CallHierarchyIncomingCallsParams
    ) -> list[lsp.CallHierarchyIncomingCall]:
        result = await server.session.snapshot(path_of(params.item.uri))
        return [
            lsp.CallHierarchyIncomingCall(
                item(each),
                [server.border.range(server.border.of(each.path), span) for span in spans],
            )
            for each, spans in navigation.incoming(result.snapshot, _key(params.item))
        ]


def _key(item: lsp.CallHierarchyItem) -> tuple[str, ...]:
    """The key that `prepare` put into an item."""
    return tuple(str(part) for part in item.data) if isinstance(item.data, list) else ("", "")


def _editing(server: FlowServer) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_FORMATTING)
    async def on_format(
        _: LanguageServer, params: lsp.DocumentFormattingParams
    ) -> list[lsp.TextEdit] | None:
        return _formatted(server, params.text_document.uri, None)

    @server.feature(lsp.TEXT_DOCUMENT_RANGE_FORMATTING)
    async def on_format_range(
        _: LanguageServer, params: lsp.DocumentRangeFormattingParams
    ) -> list[lsp.TextEdit] | None:
        return _formatted(server, params.text_document.uri, params.range)

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        lsp.CodeActionOptions(
            code_action_kinds=[lsp.CodeActionKind(kind) for kind in changes.KINDS],
            resolve_provider=True,
        ),
    )
    async def on_actions(_: LanguageServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        at = await server.at(params.text_document.uri, params.range.start)
        if at is None:
            return []
        selected = server.border.span(at.text, params.range)
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
        found = await _actions(server, at, selected, only, later=_resolves(server))
        return [
            lsp.CodeAction(
                each.title,
                lsp.CodeActionKind(each.kind),
                diagnostics=[server.border.diagnostic(each.diagnostic, at.text)]
                if each.diagnostic is not None
                else None,
                is_preferred=each.preferred or None,
                edit=_workspace_edit(server, each.edits) if not each.later else None,
                data={"uri": params.text_document.uri} if each.later else None,
            )
            for each in found
        ]

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    async def on_action(_: LanguageServer, action: lsp.CodeAction) -> lsp.CodeAction:
        data = action.data if isinstance(action.data, dict) else {}
        uri = data.get("uri")
        at = await server.at(uri, lsp.Position(0, 0)) if isinstance(uri, str) else None
        if at is not None and action.kind == changes.FIX_ALL:
            found = await _actions(server, at, Span(0, 0), [changes.FIX_ALL])
            edits = [edit for each in found for edit in each.edits]
            action.edit = _workspace_edit(server, edits)
        return action


def _resolves(server: FlowServer) -> bool:
    """Whether the client asks for the edits of an action once it is chosen."""
    known = server.client_capabilities.text_document
    support = known.code_action.resolve_support if known and known.code_action else None
    return support is not None and "edit" in support.properties


async def _actions(
    server: FlowServer, at: At, selected: Span, only: Sequence[str], *, later: bool = False
) -> list[Action]:
    found = server.session.diagnostics(at.document.path)

    def make(watch: Watch) -> list[Action]:
        return actions.actions(
            at.result.snapshot, found, at.module, selected, only, watch, later=later
        )

    try:
        return await server.session.aside(at.document.path, make)
    except Superseded as changed:
        raise Modified("the text changed while the actions were tried") from changed


def _formatted(server: FlowServer, uri: str, range_: lsp.Range | None) -> list[lsp.TextEdit] | None:
    document = server.document(uri)
    if document is None:
        return None
    parsed = server.parsed(document)
    within: Span | None = None
    if range_ is not None:
        within = server.border.span(document.text, range_)
    return server.border.edits(formatting.edits(parsed, within)).get(uri_of(document.path), [])


def _diagnosing(server: FlowServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(
            identifier=FLOW, inter_file_dependencies=True, workspace_diagnostics=True
        ),
    )
    async def on_pull(_: LanguageServer, params: lsp.DocumentDiagnosticParams) -> Report:
        path = path_of(params.text_document.uri)
        if path in server.session.documents and is_source(path):
            if server.supports("workspace", "diagnostics", "refresh_support"):
                await server.session.looked(path)
            else:
                await server.session.snapshot(path)
        return server.report(path, params.previous_result_id)

    @server.feature(lsp.WORKSPACE_DIAGNOSTIC)
    async def on_pull_all(
        _: LanguageServer, params: lsp.WorkspaceDiagnosticParams
    ) -> lsp.WorkspaceDiagnosticReport:
        known = {path_of(each.uri): each.value for each in params.previous_result_ids}
        paths: set[str] = set(known)
        for work in server.session.works():
            result = await server.session.settled(work)
            paths |= {source.path for source in result.snapshot.package.sources}
            paths |= {diagnostic.file for diagnostic in result.diagnostics}
        items: list[
            lsp.WorkspaceFullDocumentDiagnosticReport
            | lsp.WorkspaceUnchangedDocumentDiagnosticReport
        ] = []
        for path in sorted(paths):
            document = server.session.documents.get(path)
            version = document.version if document is not None else None
            report = server.report(path, known.get(path))
            if isinstance(report, lsp.RelatedUnchangedDocumentDiagnosticReport):
                items.append(
                    lsp.WorkspaceUnchangedDocumentDiagnosticReport(
                        uri_of(path), report.result_id, version
                    )
                )
            else:
                items.append(
                    lsp.WorkspaceFullDocumentDiagnosticReport(
                        uri_of(path), report.items, version, result_id=report.result_id
                    )
                )
        return lsp.WorkspaceDiagnosticReport(items)
