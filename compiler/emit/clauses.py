"""E0323 for a whole package: every clause, capacity and `keep` is known when a flow is built.

The emitter asks the same of what it reaches; here all declarations are asked, so that `qoqi check`
and the editor say it too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qoqi.compiler.emit import constants
from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.syntax import ast


def check(tables: Tables, modules: Iterable[str]) -> None:
    """Reports what is no constant in these modules; the package has no other errors."""
    for module in modules:
        for item in tables.checked.modules[module].items:
            for node in _declarations(item):
                for value, what in _constants(node):
                    if value is not None:
                        constants.clause(tables, module, value, what)


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
            return [(limit, constants.LIMIT)]
        case ast.TriesClause(count=count, duration=duration):
            return [(count, constants.TRIES), (duration, constants.TRIES_FOR)]
        case ast.BackoffClause(first=first, most=most):
            return [(first, constants.DELAY), (most, constants.DELAY)]
        case ast.BeatClause(interval=interval):
            return [(interval, constants.BEAT)]
        case ast.LimitClause(count=count, per=per):
            return [(count, constants.RATE), (per, constants.PER)]
        case ast.ChannelDecl(capacity=capacity):
            return [(capacity, constants.CAPACITY)]
        case ast.FlowDecl(keep=keep):
            return [(keep, constants.KEEP)]
        case _:
            return []
