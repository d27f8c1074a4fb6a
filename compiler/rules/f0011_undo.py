"""F0011: what can be done later is a call of a step or a send, and what can be detached a start.

`flow.undo`, `flow.finally` and a step's `undo` clause take the call itself, which is not made now.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, error
from qoqi.compiler.rules.context import Context, bare, builtin_name
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts, StepTarget
from qoqi.compiler.types.model import Con, FlowRef


def check_undo(ctx: Context) -> Iterator[Diagnostic]:
    for step in ctx.steps():
        facts = ctx.checked.facts[step.module]
        for clause in (*step.decl.clauses, *step.group):
            if isinstance(clause, ast.UndoClause) and not _later(facts, clause.call):
                yield _not_a_step(ctx, step.module, clause.call, "`undo`", "undo")
    for name, _, facts in ctx.modules():
        for node in ctx.trees[name]:
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called, value = builtin_name(facts, node), node.args[0].value
            if called in ("flow.undo", "flow.finally") and not _later(facts, value):
                yield _not_a_step(ctx, name, value, f"`{called}`", called)
            elif called == "flow.detach" and builtin_name(facts, bare(value)) != "instance.start":
                yield _not_a_start(ctx, name, facts, value)


def _later(facts: Facts, value: ast.Expr) -> bool:
    """Whether a call can be kept and made later: of a step, or a send to an instance."""
    call = bare(value)
    if not isinstance(call, ast.Call):
        return False
    plan = facts.calls.get(call)
    if plan is None:
        return True  # what it calls is unknown, and was reported
    return isinstance(plan.target, StepTarget) or builtin_name(facts, call) == "instance.send"


def _not_a_step(ctx: Context, module: str, value: ast.Expr, what: str, name: str) -> Diagnostic:
    shown = ctx.text(module, value.span)
    message = f"{what} takes a call of a step, to be made later"
    if isinstance(value, ast.Name):
        message = f"{what} takes a call of a step, to be made later, and `{shown}` is a value"
    example = "undo release(it)" if name == "undo" else f"{name}(release(r))"
    notes = [f"Name the step and what it is given, as in `{example}`."]
    return error("F0011", ctx.path(module), value.span, message, notes=notes)


def _not_a_start(ctx: Context, module: str, facts: Facts, value: ast.Expr) -> Diagnostic:
    flow = "Flow"
    match facts.types.get(value):
        case Con("Instance", (FlowRef(name),)):
            flow = name.rsplit(".", 1)[-1]
        case _:
            pass
    message = "`flow.detach` takes a start, for an instance that never has a parent"
    notes = [f"Write the start inside: `flow.detach({flow}.start(…))`."]
    return error("F0011", ctx.path(module), value.span, message, notes=notes)
