"""Habits: mistakes of form that people bring from other languages, each with a repair of its own.

They are looked for before the general repairs of `recovery`, since what is wrong stands before the
token at which the parse fails, or lasts beyond it:

- a second `let` in a condition (`if let P = a && let Q = b {`);
- a struct literal in a header, where `{` opens the block (`if p == Point { x: 1 } {`);
- the `{` of a step on a line of its own.

Each gives whether it made a repair. A repair edits the tokens and the stacks as those of `recovery`
do; tokens that were taken already can be put back, to be read again as what was meant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qoqi.compiler.diagnostics import Edit, Fix
from qoqi.compiler.source import Span
from qoqi.compiler.syntax.tokens import CLOSERS, NL, OPENERS, STRUCT_OPEN, TYPE, Token

if TYPE_CHECKING:
    from qoqi.compiler.syntax.recovery import Recovery

_HEADERS = ("if", "while", "for", "match")


def repair(
    recovery: Recovery,
    states: list[int],
    values: list[Any],
    starts: list[int],
    tokens: list[Token],
    at: int,
) -> bool:
    return (
        _second_let(recovery, states, tokens, at)
        or _struct_in_header(recovery, states, values, starts, tokens, at)
        or _brace_below(recovery, states, tokens, at)
    )


def _second_let(recovery: Recovery, states: list[int], tokens: list[Token], at: int) -> bool:
    if tokens[at].kind != "let" or at == 0 or tokens[at - 1].kind != "&&":
        return False
    stop = at
    while tokens[stop].kind not in ("=", NL, "{", "}"):
        stop += 1
    if tokens[stop].kind != "=" or not recovery.accepts(states, [tokens[stop + 1].kind]):
        return False
    recovery.report(
        "E0110",
        Span(tokens[at].start, tokens[stop - 1].end),
        "a condition has one `let`, and what follows its `&&` is a `Bool`",
        notes=("put an `if let` into the other, or match both: `if let (P, Q) = (a, b)`",),
    )
    del tokens[at : stop + 1]
    return True


def _struct_in_header(
    recovery: Recovery,
    states: list[int],
    values: list[Any],
    starts: list[int],
    tokens: list[Token],
    at: int,
) -> bool:
    opening = _suspect(tokens, at)
    if opening is None:
        return False
    word = next(
        (
            index
            for index in range(opening - 1, -1, -1)
            if tokens[index].kind in (*_HEADERS, "{", "}", NL)
        ),
        -1,
    )
    closing = _closing(tokens, opening)
    if word < 0 or tokens[word].kind not in _HEADERS or closing is None:
        return False
    if not any(token.kind == "{" for token in _line(tokens, closing + 1)):
        return False  # the block that the header has is this one
    if tokens[word].start not in starts:
        return False
    place = starts.index(tokens[word].start)
    name = opening - 1
    while tokens[name - 1].kind == "." and tokens[name - 2].kind in ("NAME", TYPE):
        name -= 2
    whole = Span(tokens[name].start, tokens[closing].end)
    edits = (
        Edit(recovery.file.path, Span(whole.start, whole.start), "("),
        Edit(recovery.file.path, Span(whole.end, whole.end), ")"),
    )
    recovery.report(
        "E0110",
        whole,
        f"in the header of `{tokens[word].text}` a `{{` opens the block",
        notes=("a struct stands there in parentheses",),
        fix=Fix("put it in parentheses", edits),
    )
    tokens[opening] = tokens[opening]._replace(kind=STRUCT_OPEN)
    del states[place + 1 :], values[place:], starts[place:]
    tokens[at:at] = tokens[word:at]
    return True


def _suspect(tokens: list[Token], at: int) -> int | None:
    """The `{` after a type's name that may have been meant as a literal's, before the error."""
    if at and tokens[at].kind == "{" and tokens[at - 1].kind == TYPE:
        return at
    depth = 0
    for index in range(at - 1, -1, -1):
        kind = tokens[index].kind
        if kind == NL:
            return None
        if kind in CLOSERS:
            depth += 1
        elif kind in OPENERS:
            if depth <= 1 and kind == "{" and tokens[index - 1].kind == TYPE:
                return index
            if not depth:
                return None
            depth -= 1
    return None


def _closing(tokens: list[Token], opening: int) -> int | None:
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].kind in OPENERS:
            depth += 1
        elif tokens[index].kind in CLOSERS:
            depth -= 1
            if not depth:
                return index
    return None


def _line(tokens: list[Token], at: int) -> list[Token]:
    stop = at
    while stop < len(tokens) and tokens[stop].kind != NL:
        stop += 1
    return tokens[at:stop]


def _brace_below(recovery: Recovery, states: list[int], tokens: list[Token], at: int) -> bool:
    """The step is built already, without a body: that it has none is not said (`places`)."""
    if at < 2 or tokens[at].kind != "{" or tokens[at - 1].kind != NL:
        return False
    level = recovery.level(states, tokens[at - 1])
    if level is None or level[1] not in ("ERROR_ITEM", "ERROR_MEMBER"):
        return False
    closing = _closing(tokens, at)
    if closing is None:
        return False
    after = closing + 1
    while tokens[after].kind == NL:
        after += 1
    if not recovery.accepts(states, [tokens[after].kind]):
        return False
    recovery.report(
        "E0112",
        tokens[at].span,
        "`{` stands on the line of what it belongs to",
        fix=recovery.fix("join the lines", tokens[at - 2].end, tokens[at].start, " "),
    )
    recovery.places.append(tokens[at - 2].end)
    del tokens[at:after]
    return True
