"""F0005: after a stage only what it names, what is bound later, parameters and fields may be used.

A walk of `run` carries the locals bound so far and, for those a stage left behind, the stage. A
local is free of its stage when it is bound again, as a `let` in a loop is. A task that always lives
at a stage is not lost there: while it lives no instance is entered at that stage (W0104).
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Fix, Label, error
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.rules.context import (
    Context,
    bound_names,
    local,
    names,
    run_of,
    stage_list,
    stage_text,
)
from qoqi.compiler.rules.data_types import variable_types
from qoqi.compiler.rules.dataflow import Analysis, walk
from qoqi.compiler.rules.f0004_stage_place import stage_statements
from qoqi.compiler.rules.w0104_live_tasks import live_tasks
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class State:
    bound: frozenset[LocalSymbol] = frozenset()
    lost: frozenset[tuple[LocalSymbol, ast.StageStmt]] = frozenset()


class Carried(Analysis[State]):
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.uses: dict[ast.Node, tuple[LocalSymbol, ast.StageStmt]] = {}

    def join(self, left: State, right: State) -> State:
        return State(left.bound | right.bound, left.lost | right.lost)

    def bind(self, pattern: ast.Pattern, value: ast.Expr | None, state: State) -> State:
        found = frozenset(symbol for _, symbol in bound_names(self.facts, pattern))
        lost = frozenset(each for each in state.lost if each[0] not in found)
        return State(state.bound | found, lost)

    def visit(self, node: ast.Node, state: State) -> State:
        if isinstance(node, ast.Name):
            self.use(node, state)
            return state
        match node:
            case ast.AssignStmt(target=ast.Name() as target):
                self.use(target, state)
            case ast.LambdaExpr():
                for inner in names(self.facts, node):
                    self.use(inner, state)
            case ast.StageStmt():
                for ident in node.variables:
                    self.use(ident, state)
                carried = {self.facts.uses.get(ident) for ident in node.variables}
                left = [symbol for symbol in state.bound if symbol not in carried]
                lost = {symbol: stage for symbol, stage in state.lost}
                lost.update({symbol: node for symbol in left if symbol not in lost})
                return State(state.bound, frozenset(lost.items()))
            case _:
                pass
        return state

    def use(self, node: ast.Node, state: State) -> None:
        if not state.lost:
            return
        symbol = local(self.facts, node)
        stages = [stage for lost, stage in state.lost if lost is symbol]
        if symbol is not None and stages:
            first = min(stages, key=lambda stage: stage.span)
            self.uses[node] = (symbol, first)


def check_carried(ctx: Context) -> Iterator[Diagnostic]:
    data = ctx.data
    for flow, facts in ctx.flows():
        run = run_of(flow.decl)
        if run is None:
            continue
        tree = ctx.run_nodes(run)
        if not any(isinstance(node, ast.StageStmt) for node in tree):
            continue
        analysis = Carried(facts)
        walk(analysis, facts, run.body, State())
        if not analysis.uses:
            continue
        types = variable_types(facts, tree)
        tasks = live_tasks(ctx, facts, run)
        standing = set(stage_statements(run.body))  # for others F0004 says what is wrong
        told: set[tuple[LocalSymbol, ast.StageStmt]] = set()
        for node, (symbol, stage) in sorted(
            analysis.uses.items(), key=lambda use: use[0].span.start
        ):
            if (symbol, stage) in told or stage not in standing:
                continue  # one variable that a stage does not carry is one mistake
            told.add((symbol, stage))
            if tasks.names.get(symbol) in tasks.at.get(stage, ()):
                continue
            name, where = symbol.name, stage.name.name
            type_ = types.get(symbol)
            fixes: list[Fix] = []
            notes = [f"Bind `{name}` after the stage."]
            if type_ is not None and data.has(type_):
                carried = [*(ident.name for ident in stage.variables), name]
                text = f"stage {where}{stage_text(carried)}"
                edit = stage_list(ctx, flow.module, stage, carried)
                fixes.append(Fix(f"Write `{text}`", (edit,)))
                notes = [f"Write `{text}`, or bind `{name}` after the stage."]
            file = ctx.path(flow.module)
            label = Label(file, stage.span, f"after this stage `{name}` is gone")
            message = f"`{name}` is used after the stage `{where}`, which does not carry it"
            yield error("F0005", file, node.span, message, labels=[label], notes=notes, fixes=fixes)
