"""W0102: a request that some path does not answer: who asked waits for nothing.

A walk of each body carries the requests that are bound and not answered. `.answer(…)` answers one;
any other use but `.value` gives it away, and then it is somebody else's to answer. A path that ends
in a failure is not judged.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, warning
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.rules.context import (
    Context,
    argument,
    bound_names,
    builtin_name,
    local,
    names,
    nodes,
)
from qoqi.compiler.rules.dataflow import Analysis, walk
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts
from qoqi.compiler.types.model import Con, Type

Open = frozenset[tuple[LocalSymbol, ast.Node]]


class Requests(Analysis[Open]):
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.forgotten: dict[ast.Node, LocalSymbol] = {}
        self.kept: set[ast.Node] = set()
        """Uses of a request that do not give it away: of `.value` and `.answer`."""

    def join(self, left: Open, right: Open) -> Open:
        return left | right

    def bind(self, pattern: ast.Pattern, value: ast.Expr | None, state: Open) -> Open:
        for node, symbol in bound_names(self.facts, pattern):
            if not is_request(self.facts.types.get(node)):
                continue
            if (symbol, node) in state:
                self.forgotten[node] = symbol
            state |= {(symbol, node)}
        return state

    def visit(self, node: ast.Node, state: Open) -> Open:
        match node:
            case ast.Call() if builtin_name(self.facts, node) == "request.answer":
                return self.without(state, argument(self.facts, node, 0))
            case ast.Name():
                return state if node in self.kept else self.without(state, node)
            case ast.LambdaExpr():
                for inner in names(self.facts, node):
                    state = self.without(state, inner)
                return state
            case _:
                return state

    def without(self, state: Open, node: ast.Node | None) -> Open:
        symbol = local(self.facts, node)
        if symbol is None:
            return state
        return frozenset(each for each in state if each[0] is not symbol)


def is_request(type_: Type | None) -> bool:
    return isinstance(type_, Con) and type_.name == "Request"


def check_requests(ctx: Context) -> Iterator[Diagnostic]:
    asked = {
        name
        for name, _, facts in ctx.modules()
        if any(is_request(type_) for type_ in facts.types.values())
    }
    for body, block, facts in ctx.bodies():
        if body.module not in asked:
            continue
        file = ctx.path(body.module)
        analysis = Requests(facts)
        analysis.kept = set(_looks(facts, block))
        exits = walk(analysis, facts, block, frozenset())
        found = dict(analysis.forgotten)
        for state in [*exits.leaves.values(), *([exits.end] if exits.end is not None else [])]:
            found.update({node: symbol for symbol, node in state})
        for node, symbol in found.items():
            message = f"a path does not answer the request `{symbol.name}`, and who asked waits"
            notes = [f"Call `{symbol.name}.answer(…)` on every path."]
            yield warning("W0102", file, node.span, message, notes=notes)
        yield from _unbound(ctx, body.module, facts, block)


def _looks(facts: Facts, block: ast.Block) -> Iterator[ast.Node]:
    for node in nodes(block):
        if isinstance(node, ast.Call) and builtin_name(facts, node) == "request.answer":
            receiver = argument(facts, node, 0)
            if receiver is not None:
                yield receiver
        elif isinstance(node, ast.FieldExpr) and is_request(facts.types.get(node.base)):
            yield node.base


def _unbound(ctx: Context, module: str, facts: Facts, block: ast.Block) -> Iterator[Diagnostic]:
    """Requests that are received and have no name at all."""
    for node in nodes(block):
        place: ast.Node | None = None
        match node:
            case ast.LetStmt(pattern=ast.WildPattern() as pattern, value=value):
                place = pattern if is_request(facts.types.get(value)) else None
            case ast.ReceiveCase(pattern=ast.WildPattern() as pattern, value=value):
                place = pattern if is_request(facts.types.get(value)) else None
            case ast.ReceiveCase(pattern=None, value=value) | ast.ExprStmt(value=value):
                thrown = builtin_name(facts, value) == "channel.receive"
                place = value if thrown and is_request(facts.types.get(value)) else None
            case _:
                continue
        if place is not None:
            message = "a request is taken and never answered, and who asked waits"
            notes = ["Bind it to a name, and answer it."]
            yield warning("W0102", ctx.path(module), place.span, message, notes=notes)
