"""Where lines break: what a source decides, and what a line that is too long does.

A source decides by its newlines, in few places. A bracket is open, its items on lines of their own,
if a newline follows it. A line goes on with a logical operator, an alternative, a comparison, a
product, a method, a clause, or the `=>` or `then` of a `given`, and behind a `+` or `-`, if it does
so in the source. Comments break lines where they stand. No other newline of a source stays.

A line that is too long breaks at the first of these that it has: clauses, the `=>` of a `given`,
`then`, `|`, `??`, `||`, `&&`, a chain of methods. It does so only if what is open anyway does not
make it short enough, and a part that is still too long breaks again; then brackets open. A line
without a bracket that could open breaks at comparisons, sums or products. A source can have each of
these breaks, so what was broken stays as it is when it is formatted again.

No break may end a statement: the signs that a line breaks before are those that no statement starts
with, and after `+` and `-` none can end.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from qoqi.compiler.syntax.print_spacing import CALLS
from qoqi.compiler.syntax.print_words import ARMS, BLOCK, FIELDS, LIST, NAMES, TEXT, WHOLE, Words
from qoqi.compiler.syntax.tokens import STRING, STRING_START

INDENT = 4

_CLAUSES = frozenset(
    {"within", "tries", "backoff", "undo", "on", "beat", "limit"}
    | {"capacity", "answers", "inside", "keep"}
)
_LOGICAL = ("|", "??", "||", "&&")
_BEFORE = frozenset([*_LOGICAL, "COMPARE", "TIMES"])
_AFTER = frozenset(["+", "-"])
_OPENED_BY_NEWLINE = frozenset([LIST, FIELDS, NAMES, BLOCK])


class Breaks:
    """The places of a module's words where lines break.

    `kept` says of each word whether the line breaks before it as in the source, `commented` whether
    a comment stands before it. `opened` are the brackets whose items stand on lines of their own,
    whatever their length.
    """

    def __init__(self, words: Words, width: int) -> None:
        self.words = words
        self.width = width
        count = len(words)
        self.sizes = [0, *accumulate(map(_size, words.pieces))]
        self.commented = [False] * (count + 2)
        for place in words.before:
            self.commented[place] = True
        for place in words.after:
            self.commented[place + 1] = True
        self.answers = _answers(words)
        self.kept = [False] * (count + 2)
        for place in self.kept_newlines():
            self.kept[place] = not self.commented[place]
        self.opened = {place for place in words.partner if self.opens(place)}
        # How many words, and gaps in front of words, no single line can hold, up to each place.
        self.hard_words = [0, *accumulate(map(self.is_hard, range(count)))]
        gaps = (kept or comment for kept, comment in zip(self.kept, self.commented, strict=True))
        self.hard_gaps = [0, *accumulate(gaps)]

    # -- what the source decides

    def kept_newlines(self) -> Iterable[int]:
        """The words that a source breaks a line before, and the layout does too."""
        words = self.words
        uses = words.uses
        closing = set(words.partner.values())
        for place in range(1, len(words)):
            if not words.newline[place] or words.inside_text[place] or place in closing:
                continue
            here, before = uses[place], uses[place - 1]
            if place - 1 in words.form:
                continue
            if here in _BEFORE or here == "then" or self.is_clause(place) or self.is_method(place):
                yield place
            elif before in _BEFORE or self.is_method(place - 1):
                yield place - 1
            elif here in _AFTER:
                yield place + 1
            elif before in _AFTER:
                yield place

    def is_clause(self, place: int) -> bool:
        """Whether a clause starts here, or the answer of a `given`."""
        kinds = self.words.kinds
        if kinds[place] in _CLAUSES:
            return kinds[place - 1] != "steps"
        return place in self.answers

    def is_method(self, place: int) -> bool:
        """Whether a `.` stands here between a value and the name of what is called on it."""
        words = self.words
        return (
            words.kinds[place] == "."
            and words.uses[place + 2 : place + 3] == [CALLS]
            and words.kinds[place + 2] == "("
            and words.kinds[place - 2 : place - 1] not in (["fn"], ["given"])
        )

    def opens(self, place: int) -> bool:
        words = self.words
        end = words.partner[place]
        form = words.form[place]
        if form == TEXT or words.inside_text[place]:
            return False
        if self.commented[place + 1] or self.commented[end]:
            return True
        if end == place + 1:
            return False
        if form == ARMS or (form in _OPENED_BY_NEWLINE and words.newline[place + 1]):
            return True
        if form == BLOCK:
            return len(words.starts[place]) > 1
        return any(self.commented[comma + 1] for comma in words.commas.get(place, ()))

    def is_hard(self, place: int) -> bool:
        return place in self.opened or "\n" in self.words.pieces[place]

    # -- measures

    def size(self, start: int, end: int) -> int:
        """How long a range of words is on one line."""
        return self.sizes[end] - self.sizes[start]

    def is_one_line(self, start: int, end: int) -> bool:
        """Whether one line can hold a range of words, however long it is."""
        return (
            self.hard_words[end] == self.hard_words[start]
            and self.hard_gaps[max(end, start + 1)] == self.hard_gaps[start + 1]
        )

    def first_line(self, start: int, end: int) -> int:
        """How long the first line of a range is, as far as it must go."""
        for place in range(start, end):
            if place > start and (self.kept[place] or self.commented[place]):
                return self.size(start, place)
            if self.is_hard(place):
                return self.size(start, place + 1)
        return self.size(start, end)

    def last_line(self, start: int, end: int) -> int:
        """How long the last line of a range of several lines is."""
        closing = {self.words.partner[at] for at in self.opened if start <= at < end}
        for place in range(end - 1, start, -1):
            if self.kept[place] or self.commented[place] or place in closing:
                return self.size(place, end)
        return self.size(end - 1, end)

    def can_open(self, place: int) -> bool:
        """Whether a bracket stands here that can be opened; around one text that helps nothing."""
        words = self.words
        form = words.form.get(place)
        if form is None or form in (TEXT, WHOLE) or words.inside_text[place]:
            return False
        inside = place + 1
        if words.kinds[inside] in (STRING, STRING_START):
            inside = words.partner.get(inside, inside) + 1
        return words.partner[place] > inside

    def outer(self, start: int, end: int) -> list[int]:
        """The words of a range that stand in no bracket of it; of brackets the opening ones."""
        partner = self.words.partner
        found: list[int] = []
        place = start
        while place < end:
            found.append(place)
            place = partner.get(place, place) + 1
        return found

    # -- what a line that is too long does

    def points(
        self, start: int, end: int, column: int, indent: int, deeper: int, tail: int
    ) -> set[int]:
        """The words of a range, in no bracket of it, that a line breaks before.

        It starts at `column` of a line that is indented by `indent`, goes on on lines indented by
        `deeper`, and `tail` more characters must follow it on its last line.
        """
        kept = [place for place in self.outer(start, end) if self.kept[place] and place > start]
        found = set(kept)
        for first, last in zip([start, *kept], [*kept, end], strict=True):
            more = tail if last == end else 0
            if first == start:
                found |= self.split(first, last, column, indent, deeper, more)
            else:
                found |= self.split(first, last, deeper, deeper, deeper, more)
        return found

    def split(
        self, start: int, end: int, column: int, indent: int, deeper: int, tail: int
    ) -> set[int]:
        if not self.is_strained(start, end, column, indent, tail):
            return set()
        places = self.best_points(start, end, column, deeper)
        if not places:
            return set()
        found = set(places)
        for first, last in zip([start, *places], [*places, end], strict=True):
            more = tail if last == end else 0
            if first == start:
                found |= self.split(first, last, column, indent, deeper, more)
            else:
                found |= self.split(first, last, deeper, deeper, deeper, more)
        return found

    def best_points(self, start: int, end: int, column: int, deeper: int) -> list[int]:
        outer = self.outer(start, end)
        kinds, uses = self.words.kinds, self.words.uses
        after_first = outer[1:]
        clauses = [place for place in after_first if self.is_clause(place)]
        if clauses:
            return clauses[:1]
        for sign in ("then", *_LOGICAL):
            signs = [place for place in after_first if kinds[place] == sign]
            if signs:
                return signs
        methods = [
            place
            for place in after_first
            if self.is_method(place) and kinds[place - 1] in (")", "]", "}", "?")
        ]
        if len(methods) > 1 and self.parts_fit([start, *methods, end], column, deeper):
            return methods
        if any(map(self.can_open, outer)):
            return []
        for before in ("COMPARE", None, "TIMES"):
            if before is None:
                signs = [place + 1 for place in after_first if uses[place] in _AFTER]
                signs = [place for place in signs if place < end]
            else:
                signs = [place for place in after_first if kinds[place] == before]
            if signs:
                return signs
        return []

    def parts_fit(self, places: list[int], column: int, deeper: int) -> bool:
        columns = [column, *[deeper] * (len(places) - 2)]
        return all(
            self.is_one_line(first, last) and at + self.size(first, last) <= self.width
            for first, last, at in zip(places[:-1], places[1:], columns, strict=True)
        )

    def is_strained(self, start: int, end: int, column: int, indent: int, tail: int) -> bool:
        """Whether a line is too long although all that is open anyway, and each block, is open."""
        words = self.words
        for place in self.outer(start, end):
            form = words.form.get(place)
            if form is None:
                if "\n" in words.pieces[place]:
                    column = len(words.pieces[place]) - words.pieces[place].rindex("\n") - 1
                    continue
                column += self.size(place, place + 1)
            else:
                stop = words.partner[place] + 1
                if form in (BLOCK, ARMS) and stop > place + 2:
                    if self.is_one_line(place, end):
                        rest = column + self.size(place, end) + tail
                        if rest <= self.width:
                            return False
                    column += self.size(place, place + 1)
                    if column > self.width:
                        return True
                    column = indent + 1
                elif self.is_one_line(place, stop):
                    column += self.size(place, stop)
                else:
                    first = place + 1 if form == FIELDS else stop
                    if column + self.first_line(place, first) > self.width:
                        return True
                    column = indent + self.last_line(place, stop)
            if column > self.width:
                return True
        return column + tail > self.width


def _size(piece: str) -> int:
    """How long a word is on the line where it starts."""
    end = piece.find("\n")
    return len(piece) if end < 0 else end


def _answers(words: Words) -> set[int]:
    """The first `=>` of each `given`."""
    found: set[int] = set()
    for place, kind in enumerate(words.kinds):
        if kind == "given":
            at = place
            while at < len(words) and words.kinds[at] not in ("=>", "}"):
                at = words.partner.get(at, at) + 1
            if at < len(words) and words.kinds[at] == "=>":
                found.add(at)
    return found
