"""Where a space stands between two tokens of one line.

The rule is the same on every line: a space, but not inside parentheses and brackets, not around
`.`, `?`, `..` and the angles of type arguments, not after a unary sign, not before `,` and `:`, and
not between what is called or indexed and its bracket. Tokens alone decide, with one look ahead: a
`<` after a type's name opens type arguments if a `>` closes them before anything that no type can
hold, and no operand follows it, since comparisons do not chain.
"""

from __future__ import annotations

from collections.abc import Sequence

from qoqi.compiler.syntax.tokens import (
    LAMBDA,
    NAME,
    NL,
    STRING,
    STRING_END,
    STRING_MIDDLE,
    STRING_START,
    TYPE,
    Token,
)

RANGE = "RANGE"
# What is not a token's kind but a use of one.
UNARY = "unary"
OPENS_TYPES = "<types"
CLOSES_TYPES = "types>"
CALLS = "call"
IMPORT_OPEN = "import{"
IMPORT_CLOSE = "import}"

LITERALS = frozenset({"INT", "DECIMAL", "DURATION", "DATE", "TIME", "true", "false"})
OPERAND_ENDS = LITERALS | {NAME, TYPE, STRING, STRING_END, ")", "]", "}", "?", "_"}
_CALLED = frozenset({NAME, TYPE, LAMBDA, CLOSES_TYPES, ")", "]", "}", "?", STRING, STRING_END})
_OPERAND_STARTS = LITERALS | {
    NAME,
    TYPE,
    STRING,
    STRING_START,
    LAMBDA,
    "(",
    "[",
    "-",
    "!",
    "if",
    "match",
    "wait",
}
_IN_TYPES = frozenset({NAME, TYPE, LAMBDA, NL, ".", ",", "?", "??", "(", ")", "->", ":", "<", ">"})

_TIGHT_BEFORE = frozenset(
    {")", "]", ",", ":", ".", "?", STRING_MIDDLE, STRING_END}
    | {OPENS_TYPES, CLOSES_TYPES, CALLS, IMPORT_OPEN, IMPORT_CLOSE}
)
_TIGHT_AFTER = frozenset(
    {"(", "[", ".", "!", STRING_START, STRING_MIDDLE, UNARY, OPENS_TYPES, CALLS, IMPORT_OPEN}
)


def type_angles(tokens: Sequence[Token]) -> dict[int, int]:
    """The places of each `<` that opens type arguments or parameters, with that of its `>`."""
    found: dict[int, int] = {}
    for at, token in enumerate(tokens):
        if token[0] != "<" or at < 2:
            continue
        before = tokens[at - 1][0]
        names_function = before == NAME and (
            tokens[at - 2][0] == "fn" or (at > 3 and tokens[at - 4][0] == "fn")
        )
        if before == TYPE or names_function:
            end = _closing(tokens, at)
            follows = tokens[end + 1][0] if end + 1 < len(tokens) else NL
            if end and (names_function or follows not in _OPERAND_STARTS):
                found[at] = end
    return found


def _closing(tokens: Sequence[Token], at: int) -> int:
    """The place of the `>` that would close the `<` at a place, if all between may be types."""
    angles = parens = 0
    for place in range(at, len(tokens)):
        kind = tokens[place][0]
        if kind not in _IN_TYPES:
            return 0
        if kind == "<":
            angles += 1
        elif kind == ">":
            angles -= 1
            if angles == 0:
                return place if parens == 0 else 0
        elif kind == "(":
            parens += 1
        elif kind == ")":
            parens -= 1
            if parens < 0:
                return 0
    return 0


def use(kind: str, before: Sequence[str]) -> str:
    """The use of a bracket or sign, from the uses before it on the line (`NL` where it starts)."""
    last = before[-1]
    if kind in ("(", "["):
        # `then after d [1]`: there the delay ends with its name.
        delay = len(before) > 2 and before[-2] == "after" and before[-3] == "then"
        return CALLS if last in _CALLED and not (delay and last == NAME) else kind
    if kind == "-":
        return kind if last in OPERAND_ENDS else UNARY
    if kind == "{" and last == ".":
        return IMPORT_OPEN
    return kind


def spaced(before: str, use: str, *, number_follows: bool) -> bool:
    """Whether a space stands between two uses. `number_follows` is about what follows `use`."""
    if before in _TIGHT_AFTER:
        return False
    if before == RANGE:
        return use == "}"
    if use == RANGE:
        return before not in OPERAND_ENDS
    if use == "?":
        return before == "?"
    if use == "." and before == "INT":
        # `5 .0` is no decimal number.
        return number_follows
    return use not in _TIGHT_BEFORE
