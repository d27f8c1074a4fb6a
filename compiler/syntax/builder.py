"""The builder: what the functions that make nodes share, and how they report.

`DECLARATIONS` and `EXPRESSIONS`, in the modules beside this one, map the name of a rule or
alternative of `flow.lark` to a function `(builder, span, *values) -> value`; their `…_NODES` map it
to the class of a node that is made of the span and the values as they are. A value is a token, a
node, a list of values, or None for what was left out. The span goes from the start of the rule's
first token to the end of its last.

What the grammar accepts although it is no program (a clause written twice, `T??`, a step without a
body) is reported as its node is built, where all parts are at hand; the node is built all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, TypeVar

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, error
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast, literals
from qoqi.compiler.syntax.tokens import Token
from qoqi.vm.dataclass import dataclass

T = TypeVar("T")

MAX_DIAGNOSTICS = 100


@dataclass(slots=True)
class Builder:
    """What the functions of one parse share. `docs` maps the start of a token to its `///` text."""

    path: str
    docs: dict[int, str]
    module_doc: str
    # Each with the span of what it is about: what was repaired there may be its only cause.
    diagnostics: list[tuple[Span, Diagnostic]] = field(
        default_factory=list[tuple[Span, Diagnostic]]
    )

    def report(
        self,
        code: str,
        span: Span,
        message: str,
        *notes: str,
        fix: Fix | None = None,
        labels: Iterable[Label] = (),
        whole: Span | None = None,
    ) -> None:
        if len(self.diagnostics) >= MAX_DIAGNOSTICS:
            return
        problem = error(
            code,
            self.path,
            span,
            message,
            labels=labels,
            notes=notes,
            fixes=(fix,) if fix else (),
        )
        self.diagnostics.append((whole or span, problem))

    def edit(self, title: str, start: int, end: int, text: str) -> Fix:
        return Fix(title, (Edit(self.path, Span(start, end), text),))

    def doc(self, span: Span) -> str:
        return self.docs.get(span.start, "")

    def literal(self, read: Callable[[str], T], token: Token, otherwise: T) -> T:
        """The value of a literal; what is written wrongly is reported and gives `otherwise`."""
        try:
            return read(token.text)
        except literals.LiteralError as problem:
            notes = (problem.note,) if problem.note else ()
            self.report(problem.code, token.span, problem.message, *notes)
            return otherwise

    def text(self, tokens: list[Token]) -> list[str]:
        """The texts between the expressions of one STRING, or of its START, MIDDLE and END."""
        pieces = literals.texts([token.text for token in tokens])
        if tokens[0].text.startswith("#"):
            return pieces
        result: list[str] = []
        for token, piece in zip(tokens, pieces, strict=True):
            try:
                result.append(literals.unescape(piece))
            except literals.LiteralError as problem:
                # The piece may have lost its indentation: the escape is looked for in the token.
                escape = piece[problem.start : problem.end]
                start = token.start + max(token.text.find(escape), 0)
                span = Span(start, start + len(escape))
                self.report(problem.code, span, problem.message, problem.note)
                result.append(piece)
        return result


def ident(token: Token) -> ast.Ident:
    return ast.Ident(Span(token.start, token.end), token.text)


def idents(tokens: list[Token] | None) -> tuple[ast.Ident, ...]:
    return tuple(map(ident, tokens or ()))


def listed(values: list[Any] | None) -> tuple[Any, ...]:
    """A list of the grammar that may be absent."""
    return () if values is None else tuple(values)


def plain_text(b: Builder, literal: ast.StringLit, what: str) -> str:
    text = "".join(part for part in literal.parts if isinstance(part, str))
    if any(not isinstance(part, str) for part in literal.parts):
        b.report("E0124", literal.span, f"{what} cannot hold `\\(…)`", "write it as plain text")
    return text
