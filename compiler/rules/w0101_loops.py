"""W0101: a loop of `run` that waits and passes no stage, though one could stand in it.

Every answer of such a loop is kept until the next stage, and it never changes its version. A `for`
is left alone, as no stage may stand in one, and so is a loop in whose rounds a task always lives: a
stage there would change nothing (W0104).
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Fix, warning
from qoqi.compiler.rules.context import (
    INDENT,
    LONG_CALLS,
    Context,
    bound_names,
    builtin_name,
    local,
    names,
    own_nodes,
    run_of,
    stage_text,
)
from qoqi.compiler.rules.data_types import variable_types
from qoqi.compiler.rules.f0004_stage_place import stage_statements
from qoqi.compiler.rules.w0104_live_tasks import live_tasks
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts

NAMES = ("round", "waiting", "looping")


def check_loops(ctx: Context) -> Iterator[Diagnostic]:
    for flow, facts in ctx.flows():
        run = run_of(flow.decl)
        if run is None:
            continue
        for node in stage_statements(run.body):
            if not isinstance(node, ast.WhileStmt):
                continue
            inside = list(own_nodes(node))
            if any(isinstance(each, ast.StageStmt) for each in inside):
                continue
            if not any(_waits(facts, each) for each in inside):
                continue
            if live_tasks(ctx, facts, run).rounds.get(node):
                continue
            message = "this loop waits and passes no stage, so the answers of every round are kept"
            notes = ["Begin the loop with a stage that carries what the next round needs."]
            fixes = list(_stage(ctx, flow.decl, flow.module, facts, run, node))
            yield warning(
                "W0101", ctx.path(flow.module), node.head, message, notes=notes, fixes=fixes
            )


def _waits(facts: Facts, node: ast.Node) -> bool:
    if isinstance(node, ast.WaitExpr):
        return True
    return builtin_name(facts, node) in LONG_CALLS - {"task.map", "channel.send"}


def _stage(
    ctx: Context,
    flow: ast.FlowDecl,
    module: str,
    facts: Facts,
    run: ast.RunDecl,
    loop: ast.WhileStmt,
) -> Iterator[Fix]:
    """A stage with the locals from before the loop that are used in it or after it."""
    taken = {stage.name.name for stage in ctx.stages(flow)}
    name = next((each for each in NAMES if each not in taken), None)
    if name is None or not loop.body.statements:
        return
    outer = {symbol for node, symbol in bound_names(facts, run) if node.span.end <= loop.span.start}
    used = {
        symbol
        for node in names(facts, run)
        if node.span.end > loop.span.start and (symbol := local(facts, node)) is not None
    }
    carried = sorted(outer & used, key=lambda symbol: symbol.span)
    types = variable_types(facts, ctx.run_nodes(run))
    if not all(each in types and ctx.data.has(types[each]) for each in carried):
        return
    text = f"stage {name}{stage_text([each.name for each in carried])}"
    indent = ctx.indent(module, loop.span.start)
    start = f"\n{indent}{INDENT}"
    at = Span(loop.body.span.start + 1, loop.body.statements[0].span.start)
    if "\n" in ctx.text(module, at):
        yield ctx.insert(f"Begin with `{text}`", module, at.start, f"{start}{text}")
    else:
        yield ctx.replace(f"Begin with `{text}`", module, at, f"{start}{text}{start}")
