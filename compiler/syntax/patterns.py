"""What the lexer looks for: its regular expressions and the tables of words and signs.

`MASTER` finds the next piece of text; each other expression looks at what follows a place, without
taking it. A repetition that could run over a whole file is possessive, so that none of them takes
more than a step per character.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from qoqi.compiler.syntax.tokens import (
    CASE_WORDS,
    CLAUSE_WORDS,
    DECLARATION_WORDS,
    GIVEN_WORDS,
    LAMBDA,
    NL,
    RESERVED,
)

TEXT = r'(?:[^"\\\n]|\\[^(\n])*+'
BLOCK_TEXT = r'(?:[^"\\]|\\[^(]|"(?!""))*+'
MASTER = re.compile(
    rf"""
    (?P<space>[ \t\r\n\f\v]+)
  | (?P<name>[a-z_][A-Za-z0-9_]*)
  | (?P<type>[A-Z][A-Za-z0-9_]*)
  | (?P<comment>//[^\n]*)
  | (?P<foreign_sign>[=!]==|::|&(?!&)|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)
  | (?P<sign>->|=>|\.\.=?|\?\?|&&|\|\||[=!<>+*/%-]=|[()\[\]{{}}.,:?=<>+\-*/%!|])
  | (?P<block>\"\"\"{BLOCK_TEXT}(?:(?P<block_end>\"\"\")|(?P<block_open>\\\()|))
  | (?P<string>"{TEXT}(?:(?P<string_end>")|(?P<string_open>\\\()|))
  | (?P<raw>\#"[^\n]*?(?P<raw_end>"\#)|\#"[^\n]*)
  | (?P<number>(?:(?<=[^.]\.)[0-9]+|[0-9][0-9A-Za-z_]*(?:\.[0-9][0-9A-Za-z_]*)?))
  | (?P<moment>@[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}
        (?:T[0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]+)?)?(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})?)?
        (?![0-9A-Za-z_])|@[0-9A-Za-z_:+-]*)
  | (?P<semicolon>;)
  | (?P<quoted>'[^'\n]*')
  | (?P<unknown>(?:[^\x00-\x7f]\w*|[\x00-\x08\x0e-\x1f\x7f`$^~\\])+|[\s\S])
    """,
    re.VERBOSE,
).finditer
REST_OF_TEXT = re.compile(rf'{TEXT}(?:(?P<end>")|(?P<open>\\\()|)').match
REST_OF_BLOCK = re.compile(rf'{BLOCK_TEXT}(?:(?P<end>""")|(?P<open>\\\()|)').match
CONFLICT = re.compile(r"(?m)^(?:<{7}|={7}|>{7}|\|{7})(?: [^\n]*)?\r?$").match

# What a line may start with so that the line before goes on, after more space and comments.
GAP = r"(?:[ \t\r\n\f\v]|//[^\n]*)*+"
GOES_ON = re.compile(rf"{GAP}(?:\.(?!\.)|\?|&&|\|\||\||[*/%]|==|!=|<=|>=|->|=>|else\b)").match
ENDS_ANYWAY = re.compile(rf"{GAP}(?:\}}|case\b|\Z)").match
CLOSES_ANGLE = re.compile(rf"{GAP}>").match
CLAUSE_NEXT = re.compile(rf"{GAP}(?:{'|'.join(sorted(CLAUSE_WORDS))})\b(?![.(])").match
THEN_NEXT = re.compile(rf"{GAP}then\b").match
# A line in parentheses that starts so cannot belong to them: they were left open.
NEVER_INSIDE = re.compile(
    rf"{GAP}(?:(?:let|return|while|for|break|continue|defer|case|pub|import|const|struct|enum"
    r"|extern)\b|var\b(?![ ]+self\b)|fn[ ]+[a-z_]|test[ ]+\"|run[ ]+\{"
    r"|(?:flow|view|channel|step|stage|become|given|migrate)[ ]+(?!(?:in|not|as|if|else)\b)"
    r"[A-Za-z_])"
).match
OPERAND_NEXT = re.compile(rf"{GAP}(?!(?:in|not|else|as|if)\b)[A-Za-z_0-9\"#@]").match

# What must follow a declaration word.
WORD = r"[ \t]+(?!in\b|not\b)[A-Za-z_]"
FITS: dict[str, Callable[[str, int], re.Match[str] | None]] = {
    word: re.compile(pattern).match
    for word, pattern in {
        "flow": WORD,
        "step": WORD,
        "steps": rf"[ \t]*\{{|[ \t]+(?:{'|'.join(sorted(CLAUSE_WORDS))})\b",
        "channel": WORD,
        "view": WORD,
        "run": r"[ \t]*\{",
        "migrate": WORD,
        "test": r'[ \t]*["#]',
        "stage": WORD,
        "become": WORD,
        "given": WORD,
        "native": r"[ \t]+(?:(?:world|flow)[ \t]+)?fn\b",
    }.items()
}
AS_FITS = re.compile(r'[ \t]*["#]|[ \t]+[a-z_]').match
CASE_FITS = re.compile(r"[ \t]+(?!if\b|in\b|not\b)[A-Za-z0-9_(@\[\"!-]|\(").match
FAILS_FITS = re.compile(r'[ \t]*["#(]|[ \t]+[A-Za-z_]').match
CALLED = re.compile(r"[ \t]*[.(\[]").match
# What follows a word that starts a statement, and no name of a member on a line of its own.
STATEMENT_FOLLOWS = re.compile(
    rf"[ \t]+(?!(?:{'|'.join(sorted(CLAUSE_WORDS | CASE_WORDS | GIVEN_WORDS))}|as|else|for|in|is|not)\b)"
    r"[A-Za-z0-9_\"]"
).match
WORD_FOLLOWS = re.compile(r"[ \t]+[A-Za-z_]").match
FN_FOLLOWS = re.compile(r"[ \t]+fn\b").match
OPERAND_FOLLOWS = re.compile(r'[ \t]+[A-Za-z0-9_("!@\[]').match
REST_IS_BLANK = re.compile(r"[ \t\r]*(?://[^\n]*)?(?:\n|\Z)").match
CLOSERS_AT_END = re.compile(r"[)\],\s]*(?:\{\s*)?\Z").search
SPACE_IN_FRONT = re.compile(r"[ \t]*").match

STATEMENT_WORDS = frozenset(
    {"let", "var", "if", "while", "for", "match", "wait", "return", "defer"}
)
STARTS_AFTER = frozenset({None, NL, "{", "}", ":", "pub", "extern"})
NAMED = frozenset(
    ["channel", "step", "view", "stage", "migrate", "become", "var", "let", "fn", "given"]
)
IGNORED = frozenset("DSFIPCG")
HEADER_OF = {
    "if": "I",
    "while": "I",
    "for": "I",
    "match": "I",
    "struct": "S",
    "enum": "S",
    "view": "S",
    "flow": "D",
    "step": "D",
    "steps": "D",
    "channel": "D",
    "given": "G",
    "fn": "F",
    LAMBDA: "F",
    "case": "C",
}
# Signs and words that put one node below another without a bracket.
WEIGHS = frozenset(
    [
        ".",
        "?",
        "??",
        "||",
        "&&",
        "==",
        "!=",
        "<=",
        ">=",
        "<",
        ">",
        "+",
        "-",
        "*",
        "/",
        "%",
        "!",
        "..",
        "..=",
        "->",
        "=>",
        "else",
        "if",
        "match",
        "in",
    ]
) | {LAMBDA}
FOREIGN_WORDS = {"function": "fn", "func": "fn", "def": "fn", "fun": "fn", "switch": "match"}
FOREIGN_OPERATORS = {"and": "&&", "or": "||"}
FOREIGN_SIGNS = {"===": "==", "!==": "!=", "::": ".", "&": "&&"}
# Words that are not always plain names.
SPECIAL = (
    RESERVED
    | DECLARATION_WORDS
    | CLAUSE_WORDS
    | GIVEN_WORDS
    | CASE_WORDS
    | {"as", "_", "world", "await", "async"}
    | set(FOREIGN_WORDS)
    | set(FOREIGN_OPERATORS)
)
BRACKET_OF = {")": "(", "]": "[", "}": "{"}
MARKS = frozenset("<=>|")
UNKNOWN_NOTES = {
    "#": "a comment starts with `//`",
    "'": "text stands in double quotes",
    "`": "text stands in double quotes",
    "\\": "a line needs no sign to go on: let it end with an operator or a `,`",
    "$": "in text a value is written `\\(name)`",
    "&": "both are true: `&&`",
}
