"""What is printed: the tokens of a module as words, with what stands between them.

A word is a token, or a `\"\"\"` text with all that is interpolated in it, which is kept as it is
written. Three things of a source are not words: newlines, a comma before a closing bracket, and
the form of a separator: a newline between fields becomes the word `,`. Everything else is printed
once and in its order, so that a layout cannot change a program.

Each word knows what the source has in front of it (its *gap*): a comment that ends the line before,
comments on lines of their own, an empty line, a newline. The gap of a comma is moved behind it.

Brackets pair up (`partner`), and each opening one has a form, by what may stand in it:

    LIST    items between commas: arguments, parameters, tuples, lists, maps
    WHOLE   one expression, type or pattern: `(a + b)`, `xs[i]`; also `[:]`
    FIELDS  fields or variants between commas or newlines
    NAMES   the names of an import
    BLOCK   statements, members or items
    ARMS    the cases of a `match`
    TEXT    an interpolation, which never leaves its line
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from qoqi.compiler.syntax import print_spacing as spacing
from qoqi.compiler.syntax.tokens import (
    COLOUR,
    NL,
    STRING,
    STRING_END,
    STRING_START,
    STRUCT_OPEN,
    Token,
)
from qoqi.vm.dataclass import dataclass

LIST = "list"
WHOLE = "whole"
FIELDS = "fields"
NAMES = "names"
BLOCK = "block"
ARMS = "arms"
TEXT = "text"

MODULE = -1

_SPACE = " \t\r\f\v"
_CLOSERS = frozenset({")", "]", "}"})
_ITEM_STARTS = frozenset(
    {"import", "const", "struct", "enum", "fn", "native", "step", "steps", "flow", "test"}
    | {"given", "channel", "var", "view", "run", "migrate", "pub", "extern"}
)
_ITEM_GOES_ON = frozenset(["pub", "extern", "native", COLOUR])


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment on a line of its own; `blank` says that an empty line stands before it."""

    text: str
    column: int
    blank: bool


@dataclass(slots=True)
class Words:
    """The words of a module by their places, and one more place for its end."""

    kinds: list[str] = field(default_factory=list[str])
    uses: list[str] = field(default_factory=list[str])
    # The text of each word with the space that stands before it on a line.
    pieces: list[str] = field(default_factory=list[str])
    columns: list[int] = field(default_factory=list[int])
    newline: list[bool] = field(default_factory=list[bool])
    inside_text: list[bool] = field(default_factory=list[bool])
    blank: set[int] = field(default_factory=set[int])
    # Comments: by the word they follow on its line, and by the word they stand before.
    after: dict[int, str] = field(default_factory=dict[int, str])
    before: dict[int, list[Comment]] = field(default_factory=dict[int, list[Comment]])
    # Brackets, by the opening one. Statements, items and `case` start at the places of `starts`.
    partner: dict[int, int] = field(default_factory=dict[int, int])
    form: dict[int, str] = field(default_factory=dict[int, str])
    commas: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    starts: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    # The colon of each `case`.
    colons: dict[int, int] = field(default_factory=dict[int, int])

    def __len__(self) -> int:
        return len(self.kinds)


def read(text: str, tokens: Sequence[Token]) -> Words:
    """The words of a text without syntax errors; ValueError if its brackets do not pair up."""
    reader = _Reader(text, tokens)
    reader.run()
    return reader.words


class _Reader:
    """One pass over the tokens. `open` holds the places of opening brackets, `MODULE` first."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.words = Words(starts={MODULE: []})
        self.open = [MODULE]
        self.texts = 0
        # For each `<` of types that is open, how many brackets are.
        self.angles: list[int] = []
        self.members = {MODULE}
        # The end of the last token, and what was written before it and belongs to the next gap.
        self.end = 1 if text.startswith("\ufeff") else 0
        self.pending = ""
        self.starts_next = True
        self.before = [NL]
        self.case = -1
        self.cases: list[int] = []

    def run(self) -> None:
        angles = spacing.type_angles(self.tokens)
        uses = dict.fromkeys(angles, spacing.OPENS_TYPES)
        uses |= dict.fromkeys(angles.values(), spacing.CLOSES_TYPES)
        tokens = self.tokens
        header = ""
        at = 0
        while at < len(tokens):
            kind, text, start, end = tokens[at]
            top = self.open[-1]
            if kind == NL:
                if self.words.form.get(top) in (FIELDS, NAMES):
                    self.comma(top)
                else:
                    self.starts_next = True
                    self.before.append(NL)
            elif kind == ",":
                self.take_gap(start, end)
                follows = tokens[at + 1][0]
                if follows not in _CLOSERS and uses.get(at + 1) != spacing.CLOSES_TYPES:
                    self.comma(top)
            elif kind == STRING_START and text.startswith('"""'):
                at = self.end_of_text(at)
                end = tokens[at][3]
                self.add(STRING, STRING, self.text[start:end].replace("\r\n", "\n"), start, end)
            elif kind == STRING_END:
                self.texts -= 1
                self.close(kind, kind, text, start, end)
            elif kind in _CLOSERS:
                imports = kind == "}" and self.words.form.get(top) == NAMES
                self.close(kind, spacing.IMPORT_CLOSE if imports else kind, text, start, end)
            else:
                use = uses.get(at) or spacing.use(kind, self.before)
                if use == spacing.OPENS_TYPES:
                    self.angles.append(len(self.open))
                elif use == spacing.CLOSES_TYPES:
                    self.angles.pop()
                follows = tokens[at + 1][0] if at + 1 < len(tokens) else ""
                form = _form(kind, use, header, follows)
                if kind == STRING:
                    text = text.replace("\r\n", "\n")
                self.add(kind, use, text, start, end, number_follows=follows == "INT")
                if form:
                    self.opened(form, header == "members")
                    header = "" if kind == "{" else header
                elif kind in ("struct", "enum"):
                    header = "fields"
                elif kind in ("flow", "steps"):
                    header = "members"
                elif kind == ":" and self.case >= 0 and self.words.form.get(top) == ARMS:
                    self.words.colons[self.case] = len(self.words) - 1
                    self.case = -1
                    self.starts_next = True
            at += 1
        if self.open != [MODULE]:
            raise ValueError("a bracket is not closed")
        self.gap(len(self.text), last=True)

    def end_of_text(self, at: int) -> int:
        """The place of the token that ends the text which starts at a place."""
        depth = 0
        while True:
            kind = self.tokens[at][0]
            depth += (kind == STRING_START) - (kind == STRING_END)
            if depth == 0:
                return at
            at += 1

    # -- words

    def add(
        self, kind: str, use: str, text: str, start: int, end: int, *, number_follows: bool = False
    ) -> None:
        words = self.words
        place = len(words.kinds)
        top = self.open[-1]
        if words.kinds[-1:] == ["var"] and words.form.get(top) == LIST:
            self.gap_behind(start)
        else:
            self.gap(start)
        self.end = end
        if top in words.starts and self.begins(kind, top):
            words.starts[top].append(place)
            if kind == "case":
                self.case = place
        self.starts_next = False
        number_follows = number_follows and words.kinds[-2:-1] != ["."]
        if place and spacing.spaced(words.uses[-1], use, number_follows=number_follows):
            text = f" {text}"
        words.kinds.append(kind)
        words.uses.append(use)
        words.pieces.append(text)
        words.inside_text.append(self.texts > 0)
        self.before.append(use)

    def begins(self, kind: str, top: int) -> bool:
        if self.starts_next or kind == "case":
            return True
        last = self.words.kinds[-1]
        return top in self.members and kind in _ITEM_STARTS and last not in _ITEM_GOES_ON

    def comma(self, top: int) -> None:
        """Adds a comma without a gap: what stands before it in the source follows it here."""
        words = self.words
        if self.angles[-1:] != [len(self.open)]:
            words.commas.setdefault(top, []).append(len(words.kinds))
        words.kinds.append(",")
        words.uses.append(",")
        words.pieces.append(",")
        words.columns.append(0)
        words.newline.append(False)
        words.inside_text.append(self.texts > 0)
        self.before.append(",")

    def opened(self, form: str, members: bool) -> None:
        place = len(self.words.kinds) - 1
        self.words.form[place] = form
        self.open.append(place)
        self.cases.append(self.case)
        self.case = -1
        if form == TEXT:
            self.texts += 1
        elif form in (BLOCK, ARMS):
            self.words.starts[place] = []
            self.starts_next = True
            if members:
                self.members.add(place)

    def close(self, kind: str, use: str, text: str, start: int, end: int) -> None:
        words = self.words
        top = self.open[-1]
        if top == MODULE:
            raise ValueError(f"nothing is open at {start}")
        self.starts_next = False
        words.partner[top] = len(words.kinds)
        self.open.pop()
        # The closing bracket is part of what is around it, where nothing starts with it.
        self.add(kind, use, text, start, end)
        self.case = self.cases.pop()
        if top + 1 == words.partner[top]:
            words.pieces[-1] = text
        if words.form[top] == WHOLE and top in words.commas:
            words.form[top] = LIST

    # -- gaps

    def take_gap(self, start: int, end: int) -> None:
        """Keeps what stands before a comma for the word that follows it."""
        self.pending += self.text[self.end : start]
        self.end = end

    def gap_behind(self, start: int) -> None:
        """Moves what stands between `var` and `self` behind both.

        The lexer takes a line that starts with a `var` alone for a statement, even in parentheses.
        """
        moved = self.pending + self.text[self.end : start]
        self.pending = ""
        self.end = start
        self.gap(start)
        self.pending = moved

    def gap(self, start: int, *, last: bool = False) -> None:
        """Notes what stands before the next word."""
        gap = self.pending + self.text[self.end : start]
        self.pending = ""
        words = self.words
        place = len(words.kinds)
        first, *lines = gap.split("\n")
        words.newline.append(bool(lines))
        words.columns.append(_column(lines[-1]) if lines else 0)
        if not gap or (not lines and "/" not in gap):
            return
        if place == 0:
            lines.insert(0, first)
        elif "/" in first:
            words.after[place - 1] = first.strip(_SPACE)
        if not last:
            del lines[-1:]
        comments: list[Comment] = []
        blank = False
        for line in lines:
            text = line.strip(_SPACE)
            if text:
                comments.append(Comment(text, _column(line), blank))
            blank = not text
        if comments:
            words.before[place] = comments
        if blank:
            words.blank.add(place)


def _column(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())


def _form(kind: str, use: str, header: str, follows: str) -> str:
    """The form of an opening bracket; empty for any other token. A comma makes a WHOLE a LIST."""
    if kind == "(":
        return LIST if use == spacing.CALLS else WHOLE
    if kind == "[":
        return WHOLE if use == spacing.CALLS or follows == ":" else LIST
    if kind == STRUCT_OPEN:
        return FIELDS
    if kind == STRING_START:
        return TEXT
    if kind != "{":
        return ""
    if use == spacing.IMPORT_OPEN:
        return NAMES
    if header == "fields":
        return FIELDS
    return ARMS if follows == "case" else BLOCK
