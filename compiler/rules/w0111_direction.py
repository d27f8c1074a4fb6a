"""W0111: a character that changes the direction in which a line is shown.

An editor then draws words in another order than the compiler reads them, so that a comment may look
like code, or code like a comment. In a text the character can be written so that it is seen. What
stands outside of texts and comments is no part of the language (E0102).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, warning
from qoqi.compiler.rules.context import Context
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax.lexer import lex
from qoqi.compiler.syntax.tokens import COMMENT, DOC, MODULE_DOC

_DIRECTION = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_COMMENTS = (COMMENT, DOC, MODULE_DOC)


def check_direction(ctx: Context) -> Iterator[Diagnostic]:
    for name, _, _ in ctx.modules():
        file = ctx.sources[name]
        if not file.text.isascii() and _DIRECTION.search(file.text):
            yield from _marked(file)


def _marked(file: SourceFile) -> Iterator[Diagnostic]:
    read = lex(file)
    for token in read.tokens:
        escapes = not token.text.startswith("#")
        for match in _DIRECTION.finditer(token.text):
            written = f"\\u{{{ord(match.group()):X}}}"
            fix = (f"Write `{written}`", written) if escapes else ("Remove it", "")
            yield _warning(file, token.start + match.start(), match.group(), "text", *fix)
    for trivia in read.trivia:
        if trivia.kind in _COMMENTS:
            for match in _DIRECTION.finditer(trivia.text):
                start = trivia.start + match.start()
                yield _warning(file, start, match.group(), "comment", "Remove it", "")


def _warning(
    file: SourceFile, at: int, character: str, what: str, title: str, text: str
) -> Diagnostic:
    span = Span(at, at + 1)
    message = f"U+{ord(character):04X} in this {what} changes the order in which words are shown"
    note = "What is read may not be what is seen."
    fix = Fix(title, (Edit(file.path, span, text),))
    return warning("W0111", file.path, span, message, notes=[note], fixes=[fix])
