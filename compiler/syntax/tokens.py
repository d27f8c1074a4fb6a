"""Tokens and trivia: what the lexer makes of a text, and the words and signs it knows.

A token's `kind` is the text it always has (`"struct"`, `"("`), or a name in capitals where the text
varies (`NAME`, `TYPE`, `INT`). `tables` uses the same kinds. Trivia is what the grammar does not
see: space, comments, and text that is no part of the language. Tokens and trivia together, in the
order of their starts, are the source again.
"""

from __future__ import annotations

from typing import NamedTuple

from qoqi.compiler.source import Span

NL = "NL"
NAME = "NAME"
TYPE = "TYPE"
STRUCT_OPEN = "STRUCT_OPEN"
STRING = "STRING"
STRING_START = "STRING_START"
STRING_MIDDLE = "STRING_MIDDLE"
STRING_END = "STRING_END"
LAMBDA = "LAMBDA"
COLOUR = "COLOUR"
END = "$END"

SPACE = "space"
COMMENT = "comment"
DOC = "doc"
MODULE_DOC = "module doc"
SKIPPED = "skipped"


class Token(NamedTuple):
    """A piece of source with a meaning; recovery makes some that have no text."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


class Trivia(NamedTuple):
    """A piece without one; `kind` is `space`, `comment`, `doc`, `module doc` or `skipped`."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


# Reserved everywhere but after a `.`. The kind of each is its text.
RESERVED = frozenset(
    [
        "pub",
        "import",
        "const",
        "struct",
        "enum",
        "fn",
        "let",
        "var",
        "if",
        "else",
        "while",
        "for",
        "in",
        "not",
        "match",
        "case",
        "wait",
        "return",
        "break",
        "continue",
        "defer",
        "true",
        "false",
        "extern",
    ]
)
# Words that start a declaration or a statement where the next token fits.
DECLARATION_WORDS = frozenset(
    [
        "flow",
        "step",
        "steps",
        "channel",
        "view",
        "run",
        "migrate",
        "test",
        "stage",
        "become",
        "given",
        "native",
    ]
)
# Words that start a declaration outside of flows.
ITEM_WORDS = frozenset(
    [
        "pub",
        "import",
        "const",
        "struct",
        "enum",
        "fn",
        "native",
        "extern",
        "step",
        "steps",
        "flow",
        "test",
        "given",
    ]
)
# Words that start a clause in the header of a step, a channel or a flow.
CLAUSE_WORDS = frozenset(
    [
        "within",
        "tries",
        "forever",
        "backoff",
        "to",
        "on",
        "limit",
        "per",
        "beat",
        "undo",
        "capacity",
        "answers",
        "inside",
        "keep",
    ]
)
# Words of a `given`.
GIVEN_WORDS = frozenset(["after", "then", "fails", "never", "runs"])
# Words right after `case`.
CASE_WORDS = frozenset(["after", "at", "when"])

# Tokens after which a newline ends the statement. A `>` ends one where it closes type arguments.
CAN_END = frozenset(
    {NAME, TYPE, "INT", "DECIMAL", "DURATION", "DATE", "TIME", STRING, STRING_END}
    | {")", "]", "}", "?", "_", "true", "false", "return", "break", "continue"}
    | {"never", "runs", "inside", "forever"}
)

# Signs whose kind is not their text.
SIGN_KINDS = {
    "==": "COMPARE",
    "!=": "COMPARE",
    "<=": "COMPARE",
    ">=": "COMPARE",
    "..": "RANGE",
    "..=": "RANGE",
    "*": "TIMES",
    "/": "TIMES",
    "%": "TIMES",
    "+=": "ASSIGN_OP",
    "-=": "ASSIGN_OP",
    "*=": "ASSIGN_OP",
    "/=": "ASSIGN_OP",
    "%=": "ASSIGN_OP",
}

OPENERS = frozenset({"(", "[", "{", STRUCT_OPEN, STRING_START})
CLOSERS = frozenset({")", "]", "}", STRING_END})
