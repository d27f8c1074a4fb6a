"""E0323: a clause, a capacity or a `keep` that is not known when the flow is built.

Limits are part of a version, so they are literals, constants of literals, and arithmetic on them.
What has another type than it should is the checker's to report.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, error
from qoqi.compiler.rules.context import Context
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.constants import evaluate
from qoqi.compiler.types.model import DURATION, INT


def check_constants(ctx: Context) -> Iterator[Diagnostic]:
    for name, module, facts in ctx.modules():
        for item in module.items:
            for node in _declarations(item):
                for value, what in _constants(node):
                    if value is None or facts.types.get(value) not in (INT, DURATION):
                        continue
                    if evaluate(ctx.checked, name, value) is None:
                        message = f"{what} must be known when the flow is built"
                        note = "Write a literal, a `const`, or arithmetic on them: `30s * 2`."
                        yield error("E0323", ctx.path(name), value.span, message, notes=[note])


def _declarations(item: ast.Item) -> Iterator[ast.Node]:
    """An item, and all below it but the bodies."""
    yield item
    match item:
        case ast.FlowDecl(members=members):
            for member in members:
                yield member
                if isinstance(member, ast.StepDecl | ast.StepsGroup):
                    yield from _clauses(member)
        case ast.StepDecl() | ast.StepsGroup():
            yield from _clauses(item)
        case _:
            pass


def _clauses(decl: ast.StepDecl | ast.StepsGroup) -> Iterator[ast.Node]:
    yield from decl.clauses
    if isinstance(decl, ast.StepsGroup):
        for step in decl.steps:
            yield from step.clauses


def _constants(node: ast.Node) -> list[tuple[ast.Expr | None, str]]:
    """The expressions of a declaration or clause that must be known, and what each is."""
    match node:
        case ast.WithinClause(limit=limit):
            return [(limit, "a step's limit")]
        case ast.TriesClause(count=count, duration=duration):
            return [(count, "the number of tries"), (duration, "the length of time of tries")]
        case ast.BackoffClause(first=first, most=most):
            return [(first, "a delay between tries"), (most, "a delay between tries")]
        case ast.BeatClause(interval=interval):
            return [(interval, "the interval of `beat`")]
        case ast.LimitClause(count=count, per=per):
            return [(count, "a limit"), (per, "the length of time of a limit")]
        case ast.ChannelDecl(capacity=capacity):
            return [(capacity, "a channel's capacity")]
        case ast.FlowDecl(keep=keep):
            return [(keep, "how long an ended instance is kept")]
        case _:
            return []
