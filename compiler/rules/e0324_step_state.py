"""E0324: a flow's own step that uses the flow's parameters or fields, in its body or a clause.

A step runs apart from its instance, on a machine of its own and perhaps days later: all it sees is
what it is given. A function of the flow that a step calls may not use them either.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Label, error
from qoqi.compiler.names.symbols import FlowSlotSymbol, FnSymbol
from qoqi.compiler.rules.context import Context, nodes
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts, FnTarget


def check_step_state(ctx: Context) -> Iterator[Diagnostic]:
    for name, module, facts in ctx.modules():
        for item in module.items:
            if isinstance(item, ast.FlowDecl):
                for step in _steps(item):
                    yield from _check(ctx, name, facts, item, step)


def _steps(flow: ast.FlowDecl) -> Iterator[ast.StepDecl]:
    for member in flow.members:
        if isinstance(member, ast.StepDecl):
            yield member
        elif isinstance(member, ast.StepsGroup):
            yield from member.steps


def _check(
    ctx: Context, name: str, facts: Facts, flow: ast.FlowDecl, step: ast.StepDecl
) -> Iterator[Diagnostic]:
    told: set[str] = set()
    for node in nodes(step):
        found = _used(facts, node)
        if found is None or found[0].name in told:
            continue
        slot, through = found
        told.add(slot.name)
        kind = "parameter" if slot.parameter else "field"
        by = "" if through is None else f" by `{through.name}`"
        yield error(
            "E0324",
            ctx.path(name),
            node.span,
            f"the step `{step.name.name}` cannot see `{slot.name}`{by}: "
            f"it is a {kind} of the flow `{flow.name.name}`",
            labels=[Label(ctx.path(name), slot.decl.name.span, f"`{slot.name}` is declared here")],
            notes=[f"Give it to the step: add a parameter for `{slot.name}`, and pass it."],
        )


def _used(facts: Facts, node: ast.Node) -> tuple[FlowSlotSymbol, FnSymbol | None] | None:
    """What of the flow's state a node uses, itself or by the flow's function that it calls."""
    symbol = facts.uses.get(node)
    if isinstance(symbol, FlowSlotSymbol):
        return symbol, None
    if isinstance(node, ast.Call) and node in facts.calls:
        target = facts.calls[node].target
        if isinstance(target, FnTarget) and target.symbol.flow is not None:
            slot = _of_function(facts, target.symbol, set())
            return None if slot is None else (slot, target.symbol)
    return None


def _of_function(facts: Facts, function: FnSymbol, seen: set[FnSymbol]) -> FlowSlotSymbol | None:
    seen.add(function)
    for node in nodes(function.decl):
        symbol = facts.uses.get(node)
        if isinstance(symbol, FlowSlotSymbol):
            return symbol
        if isinstance(node, ast.Call) and node in facts.calls:
            target = facts.calls[node].target
            if isinstance(target, FnTarget) and target.symbol.flow and target.symbol not in seen:
                slot = _of_function(facts, target.symbol, seen)
                if slot is not None:
                    return slot
    return None
