"""Recovery: how the parse goes on after an error.

At a token without an action `habits` are looked for, then the first of these that lets the parse
take the next two tokens:

1. **Replace** the token by what is often meant: `==` for `=`, a name for a reserved word.
2. **Insert** what is missing: one token, or a few that close what is open.
3. **Drop** the token.
4. **Pop**: cut the stacks back to where an `ERROR_…` token can stand, and let it stand for all up
   to a safe place: the end of the line, of the block, a `case`, or a word that starts a
   declaration. Where a declaration is lost, its body is too.

Whether tokens can be taken is tried on a copy of the state stack, without values. A repair edits
the list of tokens and the stacks; the parser's loop then goes on. The first three need two tokens
of agreement, or a false repair would hide the true place. Errors within three tokens of the last
one, or of text that the lexer skipped, are repaired without a word.

Layout is a hint, never a rule: that a word stands first on its line, or in the first column,
decides only what is skipped or added once something is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, error
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import habits, messages
from qoqi.compiler.syntax.lexer import Lexed
from qoqi.compiler.syntax.tables import Tables
from qoqi.compiler.syntax.tokens import (
    CAN_END,
    CLOSERS,
    END,
    ITEM_WORDS,
    NAME,
    NL,
    OPENERS,
    RESERVED,
    STRING_END,
    TYPE,
    Token,
)
from qoqi.vm.dataclass import dataclass

MAX_REPORTED = 100
MAX_REPAIRS = 1000

# What is often meant by a token that cannot stand where it does.
_MEANT = {
    "=": (":", "COMPARE"),
    "=>": (":",),
    "->": (":", "=>"),
    ":": ("->",),
    "|": ("||",),
    "COMPARE": ("&&",),
    "<": ("&&",),
    ">": ("&&",),
}
_OPERANDS: tuple[tuple[str, ...], ...] = ((NAME,), (TYPE,))
_INSERTED: tuple[tuple[str, ...], ...] = (
    (NL,),
    (",",),
    (")",),
    ("]",),
    ("}",),
    (":",),
    ("{",),
    ("(",),
    ("=",),
    (NAME,),
    (TYPE,),
    ("=>",),
    (")", NL),
    ("]", NL),
    (NAME, NL),
    (NAME, ")"),
    (")", ")"),
    ("]", ")"),
    (")", "]"),
    ("}", ")"),
    (")", "{"),
    (")", ":"),
    (NAME, "{"),
    (")", ")", ")"),
    (STRING_END,),
    (")", STRING_END),
)
# What ends a header or the head of a case, where the line ends before it.
_BEFORE_NEWLINE: tuple[tuple[str, ...], ...] = (
    ("{",),
    (":",),
    (")", "{"),
    (")", ":"),
    (NAME, "{"),
    (TYPE, ")", "{"),
    (")", ")", "{"),
)
_TEXTS = {NL: "\n", "COMPARE": "==", "STRUCT_OPEN": "{", STRING_END: '"'}
_MEMBERS = frozenset(["channel", "view", "run", "migrate", "fn", "step", "extern", "steps"])
_STATEMENTS = frozenset(
    [
        "let",
        "var",
        "while",
        "for",
        "return",
        "break",
        "continue",
        "defer",
        "stage",
        "become",
        "if",
        "match",
        "wait",
    ]
)
_LEVELS = ("ERROR_STMT", "ERROR_FIELD", "ERROR_MEMBER", "ERROR_ITEM")


@dataclass(slots=True)
class Recovery:
    """Repairs one parse and keeps what is to be said about it."""

    file: SourceFile
    lexed: Lexed
    tables: Tables
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    # Errors that start before this offset are silent.
    quiet_until: int = -1
    repairs: int = 0
    # Where repairs were made, silent ones too.
    places: list[int] = field(default_factory=list[int])

    def repair(
        self,
        states: list[int],
        values: list[Any],
        starts: list[int],
        tokens: list[Token],
        at: int,
    ) -> None:
        """Makes the token at `at` one that the stacks can take."""
        self.repairs += 1
        self.places.append(tokens[at].start)
        if self.repairs > MAX_REPAIRS or len(self.diagnostics) >= MAX_REPORTED:
            self.give_up(states, values, starts, tokens, at)
            return
        before = len(self.diagnostics)
        first = tokens[at]
        after = tokens[min(at + 3, len(tokens) - 1)].start
        stray = first.kind in CLOSERS and _opener(values, first.kind) is None
        if not (
            habits.repair(self, states, values, starts, tokens, at)
            or (stray and self.drop(states, values, tokens, at))
            or self.replace(states, values, tokens, at)
            or self.take_back(states, values, starts, tokens, at)
            or self.insert(states, values, tokens, at)
            or self.drop(states, values, tokens, at)
        ):
            self.pop(states, values, starts, tokens, at)
        if self.is_quiet(tokens, at, first):
            del self.diagnostics[before:]
        self.quiet_until = max(self.quiet_until, after)

    def is_quiet(self, tokens: list[Token], at: int, token: Token) -> bool:
        if not self.lexed.complete or token.start < self.quiet_until:
            return True
        skipped = self.lexed.skipped
        if not skipped:
            return False
        if token.start in skipped:
            return True
        return any(tokens[i].start in skipped for i in range(max(0, at - 3), at))

    def accepts(self, states: list[int], kinds: Iterable[str]) -> bool:
        """Whether the tokens of these kinds could be taken one after the other."""
        rows = self.tables.rows
        rules = self.tables.rules
        stack = list(states)
        for kind in kinds:
            while True:
                action = rows[stack[-1]].get(kind)
                if action is None:
                    return False
                if action >= 0:
                    stack.append(action)
                    break
                rule = rules[~action]
                if rule.size:
                    del stack[-rule.size :]
                stack.append(rows[stack[-1]][rule.symbol])
        return True

    def follow(self, tokens: list[Token], at: int, count: int = 2) -> list[str]:
        """The kinds of the next tokens; the end of the file is the last."""
        return [token.kind for token in tokens[at : at + count]]

    # -- 1. replace

    def replace(self, states: list[int], values: list[Any], tokens: list[Token], at: int) -> bool:
        token = tokens[at]
        follow = self.follow(tokens, at + 1)
        for kind in _MEANT.get(token.kind, ()):
            if kind == ":" and token.kind != "=" and _opener(values, ")") is not None:
                continue
            if self.accepts(states, [kind, *follow]):
                text = _TEXTS.get(kind, kind)
                chain = kind == "&&"
                fix = self.fix(f"write `{text}`", token.start, token.end, text)
                self.report(
                    "E0118" if chain else "E0116" if kind == "COMPARE" else "E0110",
                    token.span,
                    messages.replaced(token, kind),
                    fix=None if chain else fix,
                )
                tokens[at] = Token(kind, text, token.start, token.end)
                return True
        meant = NAME
        if token.kind == NAME:
            meant = TYPE
        elif token.kind != TYPE and not (token.kind in RESERVED and self.is_same_line(tokens, at)):
            return False
        if not self.accepts(states, [meant, *follow]):
            return False
        if token.kind in RESERVED:
            self.report(
                "E0113",
                token.span,
                f"`{token.text}` is a reserved word and cannot be a name",
                notes=("choose another name",),
            )
        else:
            self.report_case(token, meant)
        tokens[at] = Token(meant, token.text, token.start, token.end)
        return True

    def report_case(self, token: Token, meant: str) -> None:
        text = token.text.lstrip("_")
        text = text[:1].swapcase() + text[1:]
        starts = "an upper-case" if meant == TYPE else "a lower-case"
        what = "a type, variant or flow" if meant == TYPE else "this name"
        self.report(
            "E0114",
            token.span,
            f"`{token.text}`: {what} starts with {starts} letter",
            fix=self.fix(f"write `{text}`", token.start, token.end, text) if text else None,
        )

    def take_back(
        self,
        states: list[int],
        values: list[Any],
        starts: list[int],
        tokens: list[Token],
        at: int,
    ) -> bool:
        """Looks again at the last token, where no rule has used it yet.

        `x: int` was taken for the module of a type; the `=>` of `fn(x) => {` for an expression's.
        """
        if not values or not isinstance(values[-1], Token):
            return False
        last = values[-1]
        follow = self.follow(tokens, at)
        before = states[:-1]
        if last.kind == NAME and last.text and self.accepts(before, [TYPE, *follow]):
            self.report_case(last, TYPE)
            tokens.insert(at, Token(TYPE, last.text, last.start, last.end))
        elif last.kind == "=>" and follow[0] == "{" and self.accepts(before, follow):
            self.report(
                "E0112",
                last.span,
                "a closure with a block has no `=>`",
                fix=self.fix("remove `=>`", last.start, last.end, ""),
            )
        else:
            return False
        del states[-1], values[-1], starts[-1]
        return True

    # -- 2. insert

    def insert(self, states: list[int], values: list[Any], tokens: list[Token], at: int) -> bool:
        token = tokens[at]
        follow = self.follow(tokens, at)
        if token.kind == NL:
            beyond = self.follow(tokens, at + 1)
            deeper = self.is_deeper(tokens, at)
            for kinds in _BEFORE_NEWLINE:
                if kinds[-1] == "{" and not deeper:
                    # Nothing stands in the block.
                    if self.accepts(states, [*kinds, "}", *follow]):
                        self.put(states, values, tokens, at, (*kinds, "}"), token)
                        return True
                elif self.accepts(states, [*kinds, *beyond]):
                    del tokens[at]
                    self.put(states, values, tokens, at, kinds, token)
                    return True
        operand = at > 0 and tokens[at - 1].kind not in CAN_END
        for kinds in (_OPERANDS if operand else ()) + _INSERTED:
            if self.accepts(states, [*kinds, *follow]):
                self.put(states, values, tokens, at, kinds, token)
                return True
        if token.kind == END or token.kind in ITEM_WORDS or token.kind in _MEMBERS:
            kinds = ()
            for _ in range(sum(1 for value in values if _is(value, "{"))):
                kinds += ("}",)
                if self.accepts(states, [*kinds, *follow]):
                    self.put(states, values, tokens, at, kinds, token)
                    return True
        return False

    def put(
        self,
        states: list[int],
        values: list[Any],
        tokens: list[Token],
        at: int,
        kinds: tuple[str, ...],
        found: Token,
    ) -> None:
        """Inserts tokens and says what was missing."""
        last = tokens[at - 1] if at else None
        place = 0 if last is None else last.start if last.kind == NL else last.end
        tokens[at:at] = [Token(kind, "", place, place) for kind in kinds]
        kind = kinds[0]
        if kind in (NAME, TYPE):
            self.report(
                "E0110",
                found.span,
                self.expected(states, found),
                notes=messages.notes(found, last),
            )
            return
        opener = _opener(values, kind)
        text = "".join(_TEXTS.get(each, each) for each in kinds if each != NAME)
        if kind == "}" and last is not None:
            text = "\n" + "\n".join(kinds)
        shown = " ".join(f"`{each}`" for each in kinds[:1] if each != NL)
        before = None if last is None else tokens[at - 2] if last.kind == NL and at > 1 else last
        where = f" after {messages.quoted(before)}" if before is not None else ""
        if kind == NL:
            message = f"{messages.found(found)} starts something new: put it on a line of its own"
            title = "start a new line"
            notes: tuple[str, ...] = ()
            span = found.span
        else:
            message = f"missing {shown}{where}"
            title = f"add `{text.strip()}`"
            notes = (f"add {shown}{where}",)
            span = Span(place, place)
        labels: tuple[Label, ...] = ()
        if opener is not None:
            label = f"`{opener.text[-1:]}` is opened here"
            labels = (Label(self.file.path, opener.span, label),)
        if text in (",", "=", "{", "=>"):
            text = f" {text}" if text != "," else text
        self.report(
            "E0111",
            span,
            message,
            notes=notes,
            fix=self.fix(title, place, place, text),
            labels=labels,
        )

    # -- 3. drop

    def drop(self, states: list[int], values: list[Any], tokens: list[Token], at: int) -> bool:
        token = tokens[at]
        fixed = token.kind in ITEM_WORDS or token.kind in _STATEMENTS or token.kind == "case"
        if token.kind == END or (fixed and self.is_first(token)):
            return False
        if token.kind in CLOSERS and _opener(values, token.kind) is not None:
            return False
        if not self.accepts(states, self.follow(tokens, at + 1)):
            return False
        del tokens[at]
        self.report(
            "E0112",
            token.span,
            messages.dropped(token, tokens, at),
            notes=messages.notes(token, tokens[at - 1] if at else None),
            fix=self.fix(messages.drop_title(token), token.start, token.end, ""),
        )
        return True

    # -- 4. pop

    def pop(
        self,
        states: list[int],
        values: list[Any],
        starts: list[int],
        tokens: list[Token],
        at: int,
    ) -> None:
        token = tokens[at]
        self.report(
            "E0110",
            token.span,
            self.expected(states, token),
            notes=messages.type_arguments(tokens, at)
            or messages.notes(token, tokens[at - 1] if at else None),
        )
        stop = at
        while True:
            stop = self.safe_place(tokens, stop, at)
            found = self.level(states, tokens[stop])
            if found is not None and found[1] in ("ERROR_MEMBER", "ERROR_ITEM"):
                # What follows may be the body of what is lost: the next of its kind is looked for.
                stop = self.next_declaration(tokens, stop, at, found[1] == "ERROR_ITEM")
                found = self.level(states, tokens[stop])
            if found is not None:
                break
            stop += 1
        self.cut(states, values, starts, tokens, at, stop, *found)

    def cut(
        self,
        states: list[int],
        values: list[Any],
        starts: list[int],
        tokens: list[Token],
        at: int,
        stop: int,
        depth: int,
        kind: str,
    ) -> None:
        """Cuts the stacks to a depth and puts one error token for all up to `stop`."""
        start = starts[depth - 1] if depth - 1 < len(starts) else tokens[at].start
        end = tokens[stop - 1].end if stop > at else tokens[at - 1].end if at else start
        del states[depth:]
        del values[depth - 1 :]
        del starts[depth - 1 :]
        text = self.file.text[start : max(start, end)]
        tokens[at:stop] = [Token(kind, text, start, max(start, end))]

    def level(self, states: list[int], stop: Token) -> tuple[int, str] | None:
        """How deep the stacks can stay, and the error token that stands there before `stop`."""
        levels: tuple[str, ...] = _LEVELS
        if stop.kind in ITEM_WORDS and self.is_first_column(stop):
            levels = ("ERROR_ITEM",)
        elif stop.kind in _MEMBERS and self.is_first(stop):
            levels = ("ERROR_MEMBER", "ERROR_ITEM")
        rows = self.tables.rows
        for depth in range(len(states), 0, -1):
            row = rows[states[depth - 1]]
            for kind in levels:
                if kind in row and self.accepts(states[:depth], [kind, stop.kind]):
                    return depth, kind
        return None

    def safe_place(self, tokens: list[Token], start: int, error_at: int) -> int:
        """The first token from `start` before which a parse may go on."""
        depth = 0
        at = start
        while True:
            token = tokens[at]
            kind = token.kind
            if kind == END:
                return at
            if at > error_at or start > error_at:
                if kind in ITEM_WORDS and self.is_first_column(token):
                    return at
                if depth == 0 and (
                    kind == "case"
                    or ((kind in _STATEMENTS or kind in _MEMBERS) and self.is_first(token))
                ):
                    return at
            elif kind in ITEM_WORDS and self.is_first_column(token):
                return at
            if kind in OPENERS:
                depth += 1
            elif kind in CLOSERS:
                if depth:
                    depth -= 1
                elif kind == "}":
                    return at
            elif kind == NL and depth == 0:
                return at
            at += 1

    def next_declaration(self, tokens: list[Token], start: int, error_at: int, item: bool) -> int:
        """The next token that starts an item, or a member of a flow or ends it, by the layout."""
        words = ITEM_WORDS if item else _MEMBERS
        depth = 0
        at = start
        while tokens[at].kind != END:
            token = tokens[at]
            if token.kind in ITEM_WORDS and self.is_first_column(token):
                return at
            if depth <= 0 and at > error_at and token.kind in words and self.is_first(token):
                return at
            if token.kind in ("{", "STRUCT_OPEN"):
                depth += 1
            elif token.kind == "}":
                if depth <= 0 and not item and self.is_first_column(token):
                    return at
                depth = max(0, depth - 1)
            at += 1
        return at

    def give_up(
        self,
        states: list[int],
        values: list[Any],
        starts: list[int],
        tokens: list[Token],
        at: int,
    ) -> None:
        """Skips the rest of a file that has too many errors."""
        if not any(found.code == "E0126" for found in self.diagnostics):
            self.diagnostics.append(
                error(
                    "E0126",
                    self.file.path,
                    tokens[at].span,
                    "too many syntax errors: the rest of the file is not read",
                )
            )
        stop = len(tokens) - 1
        depth = self.level(states, tokens[stop])
        if depth is None:
            raise AssertionError("an error token can always stand before the end")
        self.cut(states, values, starts, tokens, at, stop, *depth)

    # -- words

    def expected(self, states: list[int], found: Token) -> str:
        row = self.tables.rows[states[-1]]
        kinds = {
            kind for kind in row if kind[0] != "<" or kind == "<" if self.accepts(states, [kind])
        }
        return messages.expected(kinds, found)

    def report(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        notes: tuple[str, ...] = (),
        fix: Fix | None = None,
        labels: tuple[Label, ...] = (),
    ) -> None:
        self.diagnostics.append(
            error(
                code,
                self.file.path,
                span,
                message,
                labels=labels,
                notes=notes,
                fixes=(fix,) if fix else (),
            )
        )

    def fix(self, title: str, start: int, end: int, text: str) -> Fix:
        return Fix(title, (Edit(self.file.path, Span(start, end), text),))

    # -- layout

    def is_first(self, token: Token) -> bool:
        """Whether a token is the first of its line."""
        line = self.file.text.rfind("\n", 0, token.start) + 1
        return not self.file.text[line : token.start].strip()

    def is_first_column(self, token: Token) -> bool:
        return token.start == 0 or self.file.text[token.start - 1] == "\n"

    def is_deeper(self, tokens: list[Token], at: int) -> bool:
        """Whether the line after a newline is indented more than the line that it ends."""
        text = self.file.text
        if at + 1 >= len(tokens) or tokens[at + 1].kind == END:
            return False
        line = text.rfind("\n", 0, tokens[at].start) + 1
        indent = 0
        for end in range(line, len(text)):
            if text[end] not in " \t":
                indent = end - line
                break
        start = tokens[at + 1].start
        return start - (text.rfind("\n", 0, start) + 1) > indent

    def is_same_line(self, tokens: list[Token], at: int) -> bool:
        return at > 0 and not self.is_first(tokens[at])


_OPENER_OF = {
    ")": ("(",),
    "]": ("[",),
    "}": ("{", "STRUCT_OPEN"),
    STRING_END: ("STRING_START",),
}


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, Token) and value.kind == kind


def _opener(values: list[Any], closer: str) -> Token | None:
    """The bracket on the stack that a closing one would close."""
    kinds = _OPENER_OF.get(closer)
    if kinds is None:
        return None
    for value in reversed(values):
        if isinstance(value, Token):
            if value.kind in kinds:
                return value
            if value.kind in OPENERS and closer != "}":
                return None
    return None
