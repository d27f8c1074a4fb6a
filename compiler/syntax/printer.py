"""The formatter: one canonical layout for a module, and its comments where they were.

A module is printed from its words (`print_words`): every token once and in its order, with spaces
by `print_spacing` and lines that break where `print_breaks` says. What a layout may not do is thus
out of its reach, and `format` reads its own result again to be sure of it: same words, same
statements, or it raises.

The layout. Lines are indented by four and at most 120 long where they can be. One empty line stays
where one or more stood, but none at the start or end of a block. An open bracket keeps its rows as
they are written, or has one item a line where it is opened here; a comma follows each item, but
none ends a row of fields. Arguments that end in an open bracket share its lines: `f(x, [` … `])`. A
block on one line stays there if it is a single statement and fits; if one block of an `if` cannot,
none does. What a `case` does stands on its line or on the lines below, as written.

`format` is idempotent: all that it decides where the source does not, it decides again in the same
way when it reads the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from qoqi.compiler.diagnostics import Severity
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.lexer import lex
from qoqi.compiler.syntax.parser import Parsed
from qoqi.compiler.syntax.print_breaks import INDENT, Breaks
from qoqi.compiler.syntax.print_spacing import CLOSES_TYPES, OPERAND_ENDS, RANGE
from qoqi.compiler.syntax.print_words import (
    ARMS,
    BLOCK,
    FIELDS,
    LIST,
    MODULE,
    NAMES,
    TEXT,
    WHOLE,
    Comment,
    Words,
    read,
)
from qoqi.compiler.syntax.tokens import LAMBDA

WIDTH = 120

# Words whose block is indented as the line that they stand on, not as the statement.
_OWNERS = frozenset(["if", "match", "wait", LAMBDA])
# What goes on behind these is indented twice, so that it is not taken for their block.
_HEADERS = frozenset(["if", "while", "for", "match", "case"])
_FIELD_ENDS = OPERAND_ENDS | {CLOSES_TYPES}


class LayoutError(Exception):
    """The formatter would have changed a program. Nothing a user writes may lead here."""


def format(parsed: Parsed, width: int = WIDTH) -> str:
    """The canonical text of a module; ValueError if its syntax is wrong."""
    if any(problem.severity is Severity.ERROR for problem in parsed.diagnostics):
        raise ValueError(f"{parsed.file.path} has syntax errors")
    words = read(parsed.file.text, parsed.tokens)
    text = _Printer(words, width).module()
    if not _is_text_of(words, SourceFile(parsed.file.path, parsed.file.module, text)):
        raise LayoutError(f"the layout of {parsed.file.path} would change the program")
    return text


def _is_text_of(one: Words, file: SourceFile) -> bool:
    """Whether a text has these words, in the same statements, and as many comments."""
    lexed = lex(file)
    try:
        other = read(file.text, lexed.tokens)
    except ValueError:
        return False
    return (
        not lexed.diagnostics
        and one.kinds == other.kinds
        and one.pieces == other.pieces
        and one.starts == other.starts
        and sum(map(len, one.before.values())) + len(one.after)
        == sum(map(len, other.before.values())) + len(other.after)
    )


class _Printer:
    """Writes words. `column` is where the line ends, `indent` its indentation."""

    def __init__(self, words: Words, width: int) -> None:
        self.words = words
        self.breaks = Breaks(words, width)
        self.width = width
        self.out: list[str] = []
        self.column = 0
        self.indent = 0
        self.fresh = True
        # The comment that ends this line, once all that goes before it is written.
        self.comment = ""

    def module(self) -> str:
        end = len(self.words)
        self.statements(self.words.starts[MODULE], end, 0)
        self.comments(self.words.before.get(end, ()), 0, first=not self.out)
        self.newline(0)
        text = "".join(self.out).strip("\n")
        return f"{text}\n" if text else ""

    # -- lines

    def newline(self, indent: int, *, blank: bool = False) -> None:
        if self.comment:
            self.out.append(f" {self.comment}" if self.column else self.comment)
            self.comment = ""
        self.out.append(("\n\n" if blank else "\n") + " " * indent)
        self.column = self.indent = indent
        self.fresh = True

    def comments(self, comments: Sequence[Comment], indent: int, *, first: bool) -> None:
        for comment in comments:
            self.newline(indent, blank=comment.blank and not first)
            self.out.append(comment.text)
            first = False

    def start(self, place: int, indent: int, *, first: bool) -> None:
        """Starts the line of a word, below its comments. `first`: no empty line above."""
        comments = self.words.before.get(place, ())
        self.comments(comments, indent, first=first)
        self.newline(indent, blank=place in self.words.blank and (not first or bool(comments)))

    def end(self, place: int, indent: int, *, empty: bool = False) -> None:
        """Ends an open bracket: on a line of its own, below the comments inside."""
        comments = self.words.before.get(place, ())
        self.comments(comments, indent + INDENT, first=empty)
        self.newline(indent)
        self.put(place, place + 1)

    def put(self, start: int, end: int) -> None:
        """Writes a range of words on this line."""
        text = "".join(self.words.pieces[start:end])
        if self.fresh:
            text = text.removeprefix(" ")
            self.fresh = False
        self.out.append(text)
        lines = text.rpartition("\n")
        self.column = len(lines[2]) + (0 if lines[1] else self.column)
        self.comment = self.words.after.get(end - 1, "")

    def line(self, start: int, end: int, indent: int, tail: int = 0) -> None:
        """Writes a range of words from where this line is, on more lines if it must.

        `indent` is that of the line on which the range starts, `tail` how much follows the range.
        """
        breaks = self.breaks
        words = self.words
        if (
            breaks.is_one_line(start, end)
            and self.column + breaks.size(start, end) - self.skipped(start) + tail <= self.width
        ):
            self.put(start, end)
            return
        deeper = indent + (2 * INDENT if words.kinds[start] in _HEADERS else INDENT)
        column = self.column - self.skipped(start)
        points = breaks.points(start, end, column, indent, deeper, tail)
        block_indent = indent
        blocks_open = False
        place = start
        while place < end:
            if place > start and (place in points or breaks.commented[place]):
                self.start(place, deeper, first=True)
            form = words.form.get(place)
            if form is None:
                if words.kinds[place] in _OWNERS:
                    block_indent = self.indent
                self.put(place, place + 1)
                place += 1
                continue
            stop = words.partner[place] + 1
            if form in (BLOCK, ARMS) and stop > place + 2:
                blocks_open = blocks_open or not (
                    self.indent == block_indent
                    and breaks.is_one_line(place, end)
                    and self.column + breaks.size(place, end) + tail <= self.width
                )
                if blocks_open:
                    self.block(place, block_indent)
                else:
                    self.put(place, stop)
            else:
                self.bracket(place, self.after(stop, end, points, tail))
            place = stop

    def skipped(self, place: int) -> int:
        """The space in front of a word that is not written at the start of a line."""
        return int(self.fresh and self.words.pieces[place].startswith(" "))

    def after(self, place: int, end: int, points: set[int], tail: int) -> int:
        """How much must follow on the line, up to where it can break next."""
        breaks = self.breaks
        start = place
        while place < end:
            if place in points or breaks.commented[place]:
                return breaks.size(start, place)
            if breaks.can_open(place):
                return breaks.size(start, place + 1)
            place = self.words.partner.get(place, place) + 1
        return breaks.size(start, end) + tail

    # -- brackets

    def bracket(self, place: int, tail: int) -> None:
        """Writes a bracket that is no block, on this line or open."""
        breaks = self.breaks
        words = self.words
        end = words.partner[place]
        size = breaks.size(place, end + 1) - self.skipped(place)
        fits = breaks.is_one_line(place, end + 1) and self.column + size + tail <= self.width
        if place in breaks.opened:
            if end == place + 1:
                self.block(place, self.indent)
            else:
                self.items(place, end)
        elif fits or end == place + 1 or words.form[place] == TEXT:
            self.put(place, end + 1)
        elif self.shares_lines(place, end):
            self.put(place, place + 1)
            self.line(place + 1, end, self.indent, breaks.size(end, end + 1) + tail)
            self.put(end, end + 1)
        elif breaks.can_open(place):
            self.items(place, end)
        else:
            self.put(place, end + 1)

    def shares_lines(self, place: int, end: int) -> bool:
        """Whether the lines of a bracket are those of an open one inside: `f(x, [` … `])`."""
        breaks = self.breaks
        words = self.words
        form = words.form[place]
        if form != LIST:
            return form == WHOLE
        column = self.column - self.skipped(place)
        if not breaks.is_one_line(place, end + 1):
            return column + breaks.first_line(place, end + 1) <= self.width
        outer = breaks.outer(place + 1, end)
        last = outer[-1]
        if words.partner.get(last) != end - 1 or not breaks.can_open(last):
            return False
        if place in words.commas and words.kinds[last] == "(":
            return False
        if any(words.kinds[at] in ("??", "||", "&&") for at in outer):
            return False
        return column + breaks.size(place, last + 1) <= self.width

    def items(self, place: int, end: int) -> None:
        """Writes an open bracket, each item or row of items on a line."""
        words = self.words
        indent = self.indent
        inner = indent + INDENT
        form = words.form[place]
        self.put(place, place + 1)
        for start, comma, stays in self.rows(place, [*words.commas.get(place, ()), end]):
            first = start == place + 1
            if form == FIELDS and not first and (stays or not self.can_stand_last(start)):
                self.write(",")
            if not first:
                self.comment = words.after.get(start - 1, self.comment)
            if not stays:
                self.start(start, inner, first=first)
            self.line(start, comma, inner, tail=1)
            if form in (LIST, NAMES):
                self.write(",")
        self.end(end, indent)

    def rows(self, place: int, ends: Sequence[int]) -> Iterator[tuple[int, int, bool]]:
        """The items of an open bracket, each with whether it stands on the line of the one before.

        They do so as in the source; a row that is too long falls apart into its items.
        """
        words = self.words
        breaks = self.breaks
        room = self.width - self.indent - INDENT - 1
        starts = [place + 1, *(end + 1 for end in ends[:-1])]
        heads = [
            not words.newline[place + 1] or words.newline[start] or breaks.commented[start]
            for start in starts
        ]
        heads[0] = True
        at = 0
        while at < len(starts):
            stop = at + 1
            while stop < len(starts) and not heads[stop]:
                stop += 1
            start, end = starts[at], ends[stop - 1]
            stays = breaks.is_one_line(start, end) and breaks.size(start, end) <= room
            for item in range(at, stop):
                yield starts[item], ends[item], stays and item > at
            at = stop

    def can_stand_last(self, start: int) -> bool:
        """Whether a newline alone parts a field from the one before it."""
        uses = self.words.uses
        return uses[start - 2] in _FIELD_ENDS and uses[start] != RANGE

    def write(self, text: str) -> None:
        self.out.append(text)
        self.column += len(text)

    # -- blocks

    def block(self, place: int, indent: int) -> None:
        """Writes an open block, or a bracket with nothing in it but comments."""
        words = self.words
        end = words.partner[place]
        self.put(place, place + 1)
        if words.form[place] == ARMS:
            self.arms(place, end, indent)
            return
        if words.form[place] == BLOCK:
            self.statements(words.starts[place], end, indent + INDENT)
        self.end(end, indent, empty=end == place + 1)

    def statements(self, starts: Sequence[int], end: int, indent: int) -> None:
        for start, stop in pairwise([*starts, end]):
            self.start(start, indent, first=start == starts[0])
            self.line(start, stop, indent)

    def arms(self, place: int, end: int, indent: int) -> None:
        """Writes the cases of a `match`.

        A comment between two cases belongs to the one above as far as it is indented deeper.
        """
        words = self.words
        kinds = words.kinds
        starts = words.starts[place]
        cases = [start for start in starts if kinds[start] == "case"]
        inner = indent + INDENT
        for case, stop in pairwise([*cases, end]):
            first = case == cases[0]
            above: list[Comment] = []
            own = list(words.before.get(case, ()))
            while own and not first and own[0].column > words.columns[case]:
                above.append(own.pop(0))
            self.comments(above, inner + INDENT, first=False)
            self.comments(own, inner, first=first)
            blank = case in words.blank and not (first and not own)
            self.newline(inner, blank=blank)
            body = [start for start in starts if case < start < stop]
            self.arm(case, body, stop, inner)
        comments = list(words.before.get(end, ()))
        column = words.columns[cases[-1]]
        deeper = 0
        while deeper < len(comments) and comments[deeper].column > column:
            deeper += 1
        self.comments(comments[:deeper], inner + INDENT, first=False)
        self.comments(comments[deeper:], inner, first=False)
        self.newline(indent)
        self.put(end, end + 1)

    def arm(self, case: int, body: Sequence[int], stop: int, indent: int) -> None:
        words = self.words
        breaks = self.breaks
        colon = words.colons[case]
        self.line(case, colon + 1, indent)
        if len(body) == 1 and not words.newline[body[0]] and not breaks.commented[body[0]]:
            size = breaks.first_line(body[0], stop)
            if self.column + size <= self.width:
                self.line(body[0], stop, indent)
                return
        self.statements(body, stop, indent + INDENT)
