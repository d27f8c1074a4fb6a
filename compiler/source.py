"""Source text and places in it.

Offsets count Unicode code points from the start of a file; a span is half open. Lines and columns
exist only at the edges (a rendered diagnostic, JSON, the language server) and are 1-based there.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from qoqi.vm.dataclass import dataclass


class Span(NamedTuple):
    """A half-open range of code points in one file."""

    start: int
    end: int

    def join(self, other: Span) -> Span:
        """The smallest span that covers both."""
        return Span(min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One module's text. `path` is how the user names the file; `module` is its dotted name."""

    path: str
    module: str
    text: str


class LineIndex:
    """Finds line and column of an offset.

    A line ends at `\\n`; `\\r` before it belongs to the line.
    """

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        starts = [0]
        at = text.find("\n")
        while at != -1:
            starts.append(at + 1)
            at = text.find("\n", at + 1)
        self._starts = starts

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset; past the end counts as the end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its line ending."""
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    @property
    def lines(self) -> int:
        return len(self._starts)
