"""Draws diagnostics, tables and lives in a terminal; the only module that knows Rich.

A diagnostic becomes lines of a fixed shape: header, place, an excerpt with a gutter, the marks
under the lines they belong to (`^` for the problem, `-` for a label), then notes and fixes. Nothing
is wrapped and nothing depends on the width of the terminal, so the same problem reads the same in a
terminal, a log and a test. Columns are counted in cells: a wide character takes two. Rich is loaded
when something is drawn; a check that finds nothing does without.

Text that comes from a source file or from outside is shown through `visible`: a control character,
or one that reorders what follows, is drawn as a picture, and no terminal obeys it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from qoqi.compiler.diagnostics import Diagnostic, Severity
from qoqi.compiler.source import LineIndex, Span
from qoqi.vm.dataclass import dataclass

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

TAB = "    "
# Marks that turn the direction of text: U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069.
_DIRECTION = frozenset(map(chr, (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))))

_COLOURS = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFORMATION: "bold blue",
    Severity.HINT: "bold cyan",
}
_GUTTER = "blue"
_LABEL = "cyan"


def console(stream: TextIO | None = None) -> Console:
    """A console that neither wraps nor guesses: colours only on a terminal, none with NO_COLOR."""
    from rich.console import Console

    return Console(
        file=stream or sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True
    )


def visible(text: str) -> str:
    """The text with control and direction characters as `\\x1b`, `\\u202e`: one line of text."""
    return "".join(
        char
        if char.isprintable() and char not in _DIRECTION
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def _source_line(text: str) -> str:
    """A line of source with tabs as spaces and every control character as one visible cell."""
    shown = []
    for char in text:
        if char == "\t":
            shown.append(TAB)
        elif ord(char) < 0x20:
            shown.append(chr(0x2400 + ord(char)))
        elif (0x7F <= ord(char) < 0xA0) or char in _DIRECTION:
            shown.append("\N{REPLACEMENT CHARACTER}")
        else:
            shown.append(char)
    return "".join(shown)


@dataclass(frozen=True, slots=True)
class _Mark:
    """An underline on one line: cells to skip, cells to mark, what is said behind it."""

    line: int
    skip: int
    width: int
    text: str
    primary: bool


def _marks(index: LineIndex, span: Span, text: str, primary: bool) -> list[_Mark]:
    """One mark, or two for a span of several lines: to the end of its first, and on its last."""
    from rich.cells import cell_len

    (line, column), (last, end) = index.position(span.start), index.position(span.end)
    if last > line and end == 1:  # the span ends with a line's own line break
        last -= 1
        end = len(index.line_text(last)) + 1
    first_text = index.line_text(line)
    stop = end if last == line else len(first_text) + 1
    skip = cell_len(_source_line(first_text[: column - 1]))
    width = max(1, cell_len(_source_line(first_text[column - 1 : stop - 1])))
    if last == line:
        return [_Mark(line, skip, width, text, primary)]
    last_text = index.line_text(last)
    indent = len(last_text) - len(last_text.lstrip())
    start = min(indent, end - 1)
    return [
        _Mark(line, skip, width, "", primary),
        _Mark(
            last,
            cell_len(_source_line(last_text[:start])),
            max(1, cell_len(_source_line(last_text[start : end - 1]))),
            text,
            primary,
        ),
    ]


def _excerpt(out: Text, index: LineIndex, marks: Sequence[_Mark], gutter: int, colour: str) -> None:
    lines = sorted({mark.line for mark in marks})
    bar = " " * gutter + " |"
    out.append(f"{bar}\n", _GUTTER)
    for line, following in pairwise([*lines, 0]):
        out.append(f"{line:>{gutter}} | ", _GUTTER)
        out.append(_source_line(index.line_text(line)).rstrip() + "\n")
        here = (mark for mark in marks if mark.line == line)
        for mark in sorted(here, key=lambda mark: (not mark.primary, mark.skip)):
            style = colour if mark.primary else _LABEL
            out.append(f"{bar} ", _GUTTER)
            out.append(" " * mark.skip)
            out.append(("^" if mark.primary else "-") * mark.width, style)
            out.append((f" {visible(mark.text)}" if mark.text else "") + "\n", style)
        if following > line + 1:
            out.append(f"{'.' * max(gutter, 3)}\n", _GUTTER)


def diagnostic_text(diagnostic: Diagnostic, indexes: Mapping[str, LineIndex]) -> Text:
    """The whole of one diagnostic, ending in a line break."""
    from rich.text import Text

    colour = _COLOURS[diagnostic.severity]
    out = Text()
    out.append(f"{diagnostic.severity.name.lower()}[{diagnostic.code}]", colour)
    out.append(f": {visible(diagnostic.message)}\n", "bold")
    places: dict[str, list[_Mark]] = {}
    for file, span, text, primary in (
        (diagnostic.file, diagnostic.span, "", True),
        *((label.file, label.span, label.text, False) for label in diagnostic.labels),
    ):
        if file in indexes:
            places.setdefault(file, []).extend(_marks(indexes[file], span, text, primary))
    gutter = max((len(str(mark.line)) for marks in places.values() for mark in marks), default=1)
    if diagnostic.file not in indexes:
        out.append(" " * gutter + "--> ", _GUTTER)
        out.append(f"{visible(diagnostic.file)}\n")
    for file, marks in places.items():
        first = diagnostic.file == file
        if first:
            line, column = indexes[file].position(diagnostic.span.start)
            place = f"{visible(file)}:{line}:{column}"
        else:
            place = f"{visible(file)}:{marks[0].line}"
        out.append(" " * gutter + ("--> " if first else "::: "), _GUTTER)
        out.append(f"{place}\n")
        _excerpt(out, indexes[file], marks, gutter, colour)
    hints = [("help", note) for note in diagnostic.notes]
    hints += [("fix", fix.title) for fix in diagnostic.fixes]
    for word, hint in hints:
        first_line, *more = hint.splitlines() or [""]
        out.append(" " * gutter + " = ", _GUTTER)
        out.append(f"{word}: ", "bold")
        out.append(f"{visible(first_line)}\n")
        for extra in more:
            out.append(" " * (gutter + len(word) + 5) + f"{visible(extra)}\n")
    return out


def diagnostics(found: Iterable[Diagnostic], indexes: Mapping[str, LineIndex], to: Console) -> None:
    """Each diagnostic, with an empty line behind it."""
    for diagnostic in found:
        to.print(diagnostic_text(diagnostic, indexes))


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def verdict(found: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 warning`."""
    errors = sum(1 for diagnostic in found if diagnostic.severity is Severity.ERROR)
    warnings = sum(1 for diagnostic in found if diagnostic.severity is Severity.WARNING)
    parts = [count(errors, "error")] if errors else []
    parts += [count(warnings, "warning")] if warnings else []
    return ", ".join(parts) or "no problems"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], to: Console) -> None:
    """Columns as wide as their widest cell, two spaces apart; the last one is not padded."""
    from rich.cells import cell_len
    from rich.text import Text

    cells = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(headers, *cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        padded = [
            cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)
        ]
        return "  ".join(padded).rstrip()

    to.print(Text(line(headers), "bold"))
    for row in cells:
        to.print(Text(line(row)))


def lines(shown: Iterable[tuple[str, str]], to: Console) -> None:
    """Lines with a role: `title`, `bad`, `note` or plain; their text is made visible here."""
    from rich.text import Text

    styles = {"title": "bold", "bad": "red", "note": "dim"}
    for role, text in shown:
        to.print(Text(visible(text), styles.get(role, "")))
