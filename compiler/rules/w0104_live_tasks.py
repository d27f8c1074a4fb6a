"""W0104: a stage that is passed only while tasks live, so that no version changes there.

A walk of `run` carries the tasks that live on every path. A task lives from its start until the
next wait or step, when it may have ended by itself; one whose function never ends lives on. Joining
or cancelling it ends it, and so, to be careful, does giving it to anybody.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Fix, Label, warning
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.rules.context import (
    LONG_CALLS,
    Context,
    argument,
    bare,
    bound_names,
    builtin_name,
    local,
    names,
    nodes,
    run_of,
)
from qoqi.compiler.rules.dataflow import Analysis, walk
from qoqi.compiler.rules.f0008_become import Paths
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts, FnTarget, StepTarget

Live = frozenset[ast.Call]


class Tasks(Analysis[Live]):
    def __init__(self, facts: Facts, endless: set[ast.Call]) -> None:
        self.facts = facts
        self.endless = endless
        self.names: dict[LocalSymbol, ast.Call] = {}
        self.at: dict[ast.StageStmt, Live] = {}
        self.rounds: dict[ast.WhileStmt | ast.ForStmt, Live] = {}

    def join(self, left: Live, right: Live) -> Live:
        return left & right

    def bind(self, pattern: ast.Pattern, value: ast.Expr | None, state: Live) -> Live:
        call = bare(value) if value is not None else None
        if isinstance(call, ast.Call) and builtin_name(self.facts, call) == "task.start":
            names = list(bound_names(self.facts, pattern))
            if isinstance(pattern, ast.BindPattern) and names:
                self.names[names[0][1]] = call
        return state

    def enter_arm(self, wait: ast.WaitExpr, arm: ast.WaitArm, state: Live) -> Live:
        return state & self.endless

    def loop_head(self, loop: ast.WhileStmt | ast.ForStmt, state: Live) -> Live:
        self.rounds[loop] = state
        return state

    def visit(self, node: ast.Node, state: Live) -> Live:
        match node:
            case ast.Call() if builtin_name(self.facts, node) == "task.start":
                return state | {node}
            case ast.Call() if self.takes_time(node):
                return state & self.endless
            case ast.Name():
                return self.without(state, node)
            case ast.LambdaExpr():
                for inner in names(self.facts, node):
                    state = self.without(state, inner)
            case ast.StageStmt():
                self.at[node] = state
            case _:
                pass
        return state

    def takes_time(self, node: ast.Call) -> bool:
        plan = self.facts.calls.get(node)
        if plan is not None and isinstance(plan.target, StepTarget | FnTarget):
            return True
        return builtin_name(self.facts, node) in LONG_CALLS

    def without(self, state: Live, node: ast.Node) -> Live:
        symbol = local(self.facts, node)
        call = self.names.get(symbol) if symbol is not None else None
        return state - {call} if call is not None else state


def live_tasks(ctx: Context, facts: Facts, run: ast.RunDecl) -> Tasks:
    """The tasks that always live at each stage and as each round of a loop begins, and the
    variables that hold them."""
    starts = [
        node
        for node in ctx.run_nodes(run)
        if isinstance(node, ast.Call) and builtin_name(facts, node) == "task.start"
    ]
    analysis = Tasks(facts, {call for call in starts if _never_ends(ctx, facts, call)})
    if starts:
        walk(analysis, facts, run.body, frozenset())
    return analysis


def check_live_tasks(ctx: Context) -> Iterator[Diagnostic]:
    for flow, facts in ctx.flows():
        run = run_of(flow.decl)
        if run is None:
            continue
        for stage, live in live_tasks(ctx, facts, run).at.items():
            if live:
                calls = sorted(live, key=lambda call: call.span)
                yield _alive(ctx, flow.module, run, stage, calls)


def _never_ends(ctx: Context, facts: Facts, call: ast.Call) -> bool:
    """Whether the function of a task has no way out."""
    function = argument(facts, call, 0)
    target = facts.values.get(function) if function is not None else None
    if isinstance(target, FnTarget) and target.symbol.decl.body is not None:
        body, home = target.symbol.decl.body, ctx.checked.facts[target.symbol.module]
    elif isinstance(function, ast.LambdaExpr) and isinstance(function.body, ast.Block):
        body, home = function.body, facts
    else:
        return False
    exits = walk(Paths(), home, body, True)
    return exits.end is None and not exits.leaves


def _alive(
    ctx: Context,
    module: str,
    run: ast.RunDecl,
    stage: ast.StageStmt,
    live: list[ast.Call],
) -> Diagnostic:
    file = ctx.path(module)
    labels = [Label(file, call.span, "this task lives at the stage") for call in live]
    message = (
        f"a task always lives where the stage `{stage.name.name}` is passed, "
        "so no instance changes its version here"
    )
    notes = ["Start the task after the stage, or join it before."]
    fixes = list(_swap(ctx, module, run, stage, live)) if len(live) == 1 else []
    return warning("W0104", file, stage.span, message, labels=labels, notes=notes, fixes=fixes)


def _swap(
    ctx: Context, module: str, run: ast.RunDecl, stage: ast.StageStmt, live: list[ast.Call]
) -> Iterator[Fix]:
    """Starts the task after the stage, where it is the statement before it."""
    for block in nodes(run):
        if not isinstance(block, ast.Block) or stage not in block.statements:
            continue
        place = block.statements.index(stage)
        before = block.statements[place - 1] if place else None
        match before:
            case ast.LetStmt(value=value) | ast.ExprStmt(value=value) if bare(value) is live[0]:
                between = ctx.text(module, Span(before.span.end, stage.span.start))
                start = ctx.text(module, before.span)
                text = f"{ctx.text(module, stage.span)}{between}{start}"
                span = Span(before.span.start, stage.span.end)
                yield ctx.replace("Start the task after the stage", module, span, text)
            case _:
                return
