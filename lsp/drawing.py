"""The requests for what an editor draws: colours, hints, folds, links, lenses."""

from __future__ import annotations

import asyncio

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from qoqi.lsp import (
    folding,
    hints,
    lenses,
    links,
    tokens,
)
from qoqi.lsp.convert import uri_of
from qoqi.lsp.server import FlowServer
from qoqi.lsp.text import Text

INSTANCES = "flow.instances"


def register(server: FlowServer) -> None:
    legend = lsp.SemanticTokensLegend(list(tokens.TYPES), list(tokens.MODIFIERS))

    async def coloured(uri: str, range_: lsp.Range | None) -> lsp.SemanticTokens:
        at = await server.at(uri, lsp.Position(0, 0))
        if at is None:
            return lsp.SemanticTokens([])
        within = server.border.span(at.text, range_) if range_ is not None else None
        found = tokens.tokens(at.result.snapshot, at.module, at.text, server.encoding, within)
        return lsp.SemanticTokens(found)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, legend)
    async def on_tokens(_: LanguageServer, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
        return await coloured(params.text_document.uri, None)

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE, legend)
    async def on_tokens_range(
        _: LanguageServer, params: lsp.SemanticTokensRangeParams
    ) -> lsp.SemanticTokens:
        return await coloured(params.text_document.uri, params.range)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def on_hints(_: LanguageServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        at = await server.at(params.text_document.uri, lsp.Position(0, 0))
        if at is None:
            return []
        within = server.border.span(at.text, params.range)
        return [
            _inlay(server, at.text, each)
            for each in hints.hints(at.result.snapshot, at.module, within)
        ]

    def _inlay(server: FlowServer, text: Text, each: hints.Hint) -> lsp.InlayHint:
        position = server.border.position(text, each.at)
        return lsp.InlayHint(
            position,
            each.text,
            kind=lsp.InlayHintKind.Type if each.is_type else lsp.InlayHintKind.Parameter,
            text_edits=[lsp.TextEdit(lsp.Range(position, position), each.written)]
            if each.written is not None
            else None,
            tooltip=each.tooltip,
            padding_left=not each.is_type and not each.before,
            padding_right=each.before,
        )

    @server.feature(lsp.TEXT_DOCUMENT_FOLDING_RANGE)
    async def on_folds(_: LanguageServer, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        return [
            lsp.FoldingRange(
                each.first,
                each.last,
                kind=lsp.FoldingRangeKind(each.kind) if each.kind else None,
            )
            for each in folding.folds(server.parsed(document), document.text)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_SELECTION_RANGE)
    async def on_selection(
        _: LanguageServer, params: lsp.SelectionRangeParams
    ) -> list[lsp.SelectionRange]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        parsed = server.parsed(document)
        found: list[lsp.SelectionRange] = []
        for position in params.positions:
            offset = server.border.offset(document.text, position)
            around: lsp.SelectionRange | None = None
            for span in reversed(folding.selections(parsed, offset)):
                around = lsp.SelectionRange(server.border.range(document.text, span), around)
            found.append(around or lsp.SelectionRange(lsp.Range(position, position)))
        return found

    @server.feature(lsp.TEXT_DOCUMENT_DOCUMENT_LINK)
    async def on_links(_: LanguageServer, params: lsp.DocumentLinkParams) -> list[lsp.DocumentLink]:
        at = await server.at(params.text_document.uri, lsp.Position(0, 0))
        if at is None:
            return []
        parsed = at.result.snapshot.parsed[at.module]
        return [
            lsp.DocumentLink(
                server.border.range(at.text, each.span),
                each.url if each.path is None else uri_of(each.path),
                each.tooltip or None,
            )
            for each in links.links(at.result.snapshot, parsed)
        ]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensOptions(resolve_provider=True))
    async def on_lenses(_: LanguageServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        document = server.document(params.text_document.uri)
        if document is None:
            return []
        parsed = server.parsed(document)
        lives = server.lives
        known = lives is not None and await asyncio.to_thread(lenses.answers, parsed, lives)
        found = lenses.lenses(parsed, document.path, daemon=known)
        return [
            lsp.CodeLens(
                server.border.range(document.text, each.span),
                lsp.Command(each.title, each.command, arguments=list(each.arguments))
                if each.title
                else None,
                {"flow": each.flow} if each.flow else None,
            )
            for each in found
        ]

    @server.feature(lsp.CODE_LENS_RESOLVE)
    async def on_lens(_: LanguageServer, lens: lsp.CodeLens) -> lsp.CodeLens:
        data = lens.data if isinstance(lens.data, dict) else {}
        flow = data.get("flow")
        if isinstance(flow, str) and server.lives is not None:
            lives = server.lives
            title = await asyncio.to_thread(lenses.count_text, flow, lives)
            lens.command = lsp.Command(title, INSTANCES, arguments=[flow])
        return lens
