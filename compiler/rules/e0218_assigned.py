"""E0218: a field without an initial value is assigned before anything could look at it.

On every path of `run` it is assigned before the first wait, the first stage, a use and the end.
Functions of the flow that `run` calls count: what they assign on all their paths is assigned, and a
wait in them is a wait. Steps are not waits: a field may take a step's answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Fix, Label, error
from qoqi.compiler.names.symbols import FlowSlotSymbol, FlowSymbol
from qoqi.compiler.rules.context import (
    LONG_CALLS,
    Context,
    builtin_name,
    run_of,
    slot,
)
from qoqi.compiler.rules.dataflow import Analysis, Exits, walk
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts, FnTarget
from qoqi.compiler.types.model import Con, Tup, Type

Slots = frozenset[FlowSlotSymbol]

EMPTY: dict[str, str] = {
    "List": "[]",
    "Map": "[:]",
    "Option": "None",
    "String": '""',
    "Int": "0",
    "Decimal": "0.00",
    "Float": "0.0",
    "Bool": "false",
    "Duration": "0s",
    "Time": "flow.now()",
    "Set": "[]",
}


class Assigned(Analysis[Slots]):
    """Carries the fields that are not assigned yet; `early` is where one is needed all the same."""

    def __init__(self, ctx: Context, flow: FlowSymbol, facts: Facts, open_: frozenset[ast.FnDecl]):
        self.ctx = ctx
        self.flow = flow
        self.facts = facts
        self.open = open_
        self.early: dict[FlowSlotSymbol, dict[ast.Node, str]] = {}

    def join(self, left: Slots, right: Slots) -> Slots:
        return left | right

    def needs(self, slots: Slots, node: ast.Node, why: str) -> None:
        for each in slots:
            self.early.setdefault(each, {}).setdefault(node, why)

    def visit(self, node: ast.Node, state: Slots) -> Slots:
        match node:
            case ast.AssignStmt(target=ast.Name() as target, op="="):
                assigned = slot(self.facts, target)
                return state - {assigned} if assigned is not None else state
            case ast.Name():
                used = slot(self.facts, node)
                if used is not None and used in state:
                    self.needs(frozenset({used}), node, "it is used here")
            case ast.WaitExpr():
                self.needs(state, node, "the flow waits here")
            case ast.StageStmt():
                self.needs(state, node, "this stage keeps it")
            case ast.Call():
                return self.call(node, state)
            case _:
                pass
        return state

    def call(self, node: ast.Call, state: Slots) -> Slots:
        if builtin_name(self.facts, node) in LONG_CALLS:
            self.needs(state, node, "the flow waits here")
            return state
        plan = self.facts.calls.get(node)
        if plan is None or not isinstance(plan.target, FnTarget):
            return state
        symbol = plan.target.symbol
        decl = symbol.decl
        if symbol.flow is not self.flow or decl.body is None or decl in self.open or not state:
            return state
        inner = Assigned(self.ctx, self.flow, self.facts, self.open | {decl})
        exits = walk(inner, self.facts, decl.body, state)
        for each in inner.early:
            self.needs(frozenset({each}), node, f"`{symbol.name}` needs it here")
        return _left(exits) if exits.leaves or exits.end is not None else frozenset()


def _left(exits: Exits[Slots]) -> Slots:
    """What is unassigned on some way out."""
    ends = [*exits.leaves.values(), *([exits.end] if exits.end is not None else [])]
    return frozenset().union(*ends)


def check_assigned(ctx: Context) -> Iterator[Diagnostic]:
    empty: dict[FlowSymbol, set[FlowSlotSymbol]] = {}
    for symbol in ctx.checked.declared:
        match symbol:
            case FlowSlotSymbol(flow=flow, decl=ast.FieldDecl(value=None)):
                empty.setdefault(flow, set()).add(symbol)
            case _:
                pass
    for flow, facts in ctx.flows():
        run = run_of(flow.decl)
        slots = frozenset(empty.get(flow, ()))
        if run is None or not slots:
            continue
        analysis = Assigned(ctx, flow, facts, frozenset())
        exits = walk(analysis, facts, run.body, slots)
        for node, left in exits.leaves.items():
            analysis.needs(left, node, "`run` may end here")
        for each in sorted(slots, key=lambda symbol: symbol.index):
            places = dict(analysis.early.get(each, {}))
            if not places and exits.end is not None and each in exits.end:
                places[run] = "`run` may end without it"
            if places:
                yield _unassigned(ctx, flow, each, places)


def _unassigned(
    ctx: Context, flow: FlowSymbol, field: FlowSlotSymbol, places: dict[ast.Node, str]
) -> Diagnostic:
    decl = field.decl
    assert isinstance(decl, ast.FieldDecl)
    file = ctx.path(flow.module)
    first = min(places, key=lambda node: node.span)
    span = first.head if isinstance(first, ast.WaitExpr) else first.span
    if isinstance(first, ast.RunDecl):
        span = type(span)(first.span.end - 1, first.span.end)
    message = f"the field `{field.name}` has no value yet where it is needed"
    notes = ["Give it an initial value, or assign it on every path of `run` before that."]
    value = _empty(ctx.checked.declared[field])
    fixes: list[Fix] = []
    if value is not None:
        fixes = [ctx.insert(f"Begin with `{value}`", flow.module, decl.span.end, f" = {value}")]
    return error(
        "E0218",
        file,
        decl.name.span,
        message,
        labels=[Label(file, span, places[first])],
        notes=notes,
        fixes=fixes,
    )


def _empty(type_: Type) -> str | None:
    match type_:
        case Con(name):
            return EMPTY.get(name)
        case Tup(()):
            return "()"
        case _:
            return None
