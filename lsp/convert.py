"""Between the compiler's values and the protocol's: positions, diagnostics, edits, addresses.

The only module beside `server` that knows both. Paths are those of the package's sources; modules
of the standard library, `std/http.flow` there, are files of the installation here. What has no file
(an unsaved document) keeps its address as its path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from lsprotocol import types as lsp

from qoqi.compiler.diagnostics import Diagnostic, Edit, Severity
from qoqi.compiler.source import Span
from qoqi.lsp.links import page_link
from qoqi.lsp.symbols import Outline
from qoqi.lsp.text import Encoding, Text
from qoqi.vm.dataclass import dataclass

SOURCE = "flow"
LIBRARY = Path(str(files("qoqi.stdlib")))
_UNUSED = frozenset({"W0106", "W0107"})
_EMPTY = Text("")


def path_of(uri: str) -> str:
    """`file:///a/b.flow` as `/a/b.flow`; another address stays."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = unquote(parts.path)
    if len(path) > 2 and path[0] == "/" and path[2] == ":":
        path = path[1:]
    return path


def uri_of(path: str) -> str:
    if path.startswith("std/"):
        return (LIBRARY / path.removeprefix("std/")).as_uri()
    if not path.startswith("/") and "://" not in path and ":" in path:
        return path
    return f"file://{quote(path)}" if path.startswith("/") else path


@dataclass(frozen=True, slots=True)
class Border:
    """Turns places into the client's: `text` gives the text of any file."""

    encoding: Encoding
    text: Callable[[str], Text | None]

    def of(self, path: str) -> Text:
        if path.startswith("std/"):
            return Text((LIBRARY / path.removeprefix("std/")).read_text("utf-8"))
        return self.text(path) or _EMPTY

    def position(self, text: Text, offset: int) -> lsp.Position:
        line, column = text.position(offset, self.encoding)
        return lsp.Position(line, column)

    def range(self, text: Text, span: Span) -> lsp.Range:
        return lsp.Range(self.position(text, span.start), self.position(text, span.end))

    def offset(self, text: Text, position: lsp.Position) -> int:
        return text.offset((position.line, position.character), self.encoding)

    def span(self, text: Text, range_: lsp.Range) -> Span:
        start, end = self.offset(text, range_.start), self.offset(text, range_.end)
        return Span(min(start, end), max(start, end))

    def location(self, path: str, span: Span) -> lsp.Location:
        return lsp.Location(uri_of(path), self.range(self.of(path), span))

    def edits(self, edits: Iterable[Edit]) -> dict[str, list[lsp.TextEdit]]:
        """Edits by address. Insertions at one place stay in their order."""
        found: dict[str, list[lsp.TextEdit]] = {}
        for edit in edits:
            range_ = self.range(self.of(edit.file), edit.span)
            found.setdefault(uri_of(edit.file), []).append(lsp.TextEdit(range_, edit.text))
        return found

    def diagnostic(self, one: Diagnostic, text: Text) -> lsp.Diagnostic:
        page = page_link(one.code)
        message = "\n".join([one.message, *one.notes])
        related = [
            lsp.DiagnosticRelatedInformation(self.location(label.file, label.span), label.text)
            for label in one.labels
        ]
        return lsp.Diagnostic(
            range=self.range(text, _visible(one.span, text)),
            message=message,
            severity=_SEVERITIES[one.severity],
            code=one.code,
            code_description=lsp.CodeDescription(page) if page else None,
            source=SOURCE,
            tags=[lsp.DiagnosticTag.Unnecessary] if one.code in _UNUSED else None,
            related_information=related or None,
            data={"fixes": [fix.title for fix in one.fixes]} if one.fixes else None,
        )


_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.INFORMATION: lsp.DiagnosticSeverity.Information,
    Severity.HINT: lsp.DiagnosticSeverity.Hint,
}


def _visible(span: Span, text: Text) -> Span:
    """An empty span is shown at the character before it, if there is one on the line."""
    if span.end > span.start or span.start == 0:
        return span
    before = text.value[span.start - 1 : span.start]
    return Span(span.start - 1, span.end) if before.strip() else span


def symbol(border: Border, text: Text, each: Outline) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        name=each.name,
        kind=lsp.SymbolKind[each.kind],
        range=border.range(text, each.whole),
        selection_range=border.range(text, each.name_span),
        detail=each.detail or None,
        children=[symbol(border, text, child) for child in each.children],
    )


def is_source(path: str) -> bool:
    """Whether a document is one to be checked: the library's own sources are not."""
    return not Path(path).is_relative_to(LIBRARY)
