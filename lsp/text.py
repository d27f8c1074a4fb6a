"""A document's text, its lines as the protocol counts them, and positions in them.

The protocol ends a line at `\\n`, `\\r\\n` or `\\r`, and nowhere else: not at U+2028, not at a form
feed. A column counts units of the encoding that client and server agreed on. Inside, all is offsets
in code points; this module is the border between the two.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import Enum
from functools import cached_property

from qoqi.compiler.source import Span

Position = tuple[int, int]
"""Line and column, both from 0, the column in units of the encoding."""

Range = tuple[Position, Position]


class Encoding(Enum):
    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Text:
    """A text that does not change. Positions that are not in it become the nearest that are."""

    def __init__(self, value: str) -> None:
        self.value = value

    @cached_property
    def starts(self) -> list[int]:
        """Where lines start. Found with `find`, since it is done anew after every key."""
        text = self.value
        starts = [0]
        if "\r" not in text:
            at = text.find("\n")
            while at != -1:
                starts.append(at + 1)
                at = text.find("\n", at + 1)
            return starts
        for at, char in enumerate(text):
            if char == "\n" or (char == "\r" and text[at + 1 : at + 2] != "\n"):
                starts.append(at + 1)
        return starts

    def line_end(self, line: int) -> int:
        """Where the text of a line ends, before what ends the line."""
        if line + 1 >= len(self.starts):
            return len(self.value)
        end = self.starts[line + 1] - 1
        if self.value[end] == "\n" and end > self.starts[line] and self.value[end - 1] == "\r":
            end -= 1
        return end

    def line_of(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def offset(self, position: Position, encoding: Encoding) -> int:
        line, column = position
        if line < 0:
            return 0
        if line >= len(self.starts):
            return len(self.value)
        start, end = self.starts[line], self.line_end(line)
        if encoding is Encoding.UTF32:
            return min(start + max(column, 0), end)
        text = self.value[start:end]
        if text.isascii():
            return start + max(0, min(column, len(text)))
        at = 0
        for index, char in enumerate(text):
            if at >= column:
                return start + index
            at += _width(char, encoding)
        return end

    def position(self, offset: int, encoding: Encoding) -> Position:
        offset = max(0, min(offset, len(self.value)))
        line = self.line_of(offset)
        text = self.value[self.starts[line] : min(offset, max(self.line_end(line), 0))]
        if encoding is Encoding.UTF32 or text.isascii():
            return line, len(text)
        return line, sum(_width(char, encoding) for char in text)

    def range(self, span: Span, encoding: Encoding) -> Range:
        return self.position(span.start, encoding), self.position(span.end, encoding)

    def changed(self, range_: Range | None, text: str, encoding: Encoding) -> Text:
        """The text after a change the client tells of; without a range, another text."""
        if range_ is None:
            return Text(text)
        start = self.offset(range_[0], encoding)
        end = max(start, self.offset(range_[1], encoding))
        return Text(self.value[:start] + text + self.value[end:])


def _width(char: str, encoding: Encoding) -> int:
    code = ord(char)
    if encoding is Encoding.UTF16:
        return 2 if code > 0xFFFF else 1
    if encoding is Encoding.UTF8:
        return 1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4
    return 1
