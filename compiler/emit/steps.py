"""Steps: their clauses as data, their bodies and the expressions over their parameters.

A step's own clause wins over that of the group around it. `else`, `on` and the arguments of `undo`
are functions over the step's parameters, those of a group once per step.

Steps are named in keys and undos, so a name is one step of the chunk: a step of another module
than the flow's is named with its module where two would share a name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from qoqi.compiler.emit import constants, functions
from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.names.symbols import StepSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import StepTarget
from qoqi.compiler.types.model import UNIT, Con
from qoqi.vm.bytecode.chunk import (
    FOREVER,
    NO_FUNCTION,
    FieldDef,
    Function,
    FunctionDebug,
    StepDef,
)
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

ClauseT = TypeVar("ClauseT", bound=ast.Node)

DEFAULT_WITHIN = 60_000


def describe(outer: FunctionEmitter, symbol: StepSymbol) -> StepDef:
    """The step with its clauses; its functions are emitted when their turn comes."""
    tables, module = outer.tables, symbol.module
    signature = tables.checked.signatures[symbol]
    params = tuple(
        FieldDef(name, name, outer.term(type_), tables.default(declared.default, module))
        for (name, type_, _), declared in zip(signature.params, symbol.decl.params, strict=True)
    )
    within = _clause(symbol, ast.WithinClause)
    tries = _clause(symbol, ast.TriesClause)
    backoff = _clause(symbol, ast.BackoffClause)
    undo = _clause(symbol, ast.UndoClause)
    queue = _clause(symbol, ast.OnClause)
    beat = _clause(symbol, ast.BeatClause)

    def number(node: ast.Expr | None, missing: int = 0) -> int:
        return missing if node is None else constants.clause(tables, module, node)

    count = 0
    if tries is not None:
        count = number(tries.count, missing=FOREVER)
    return StepDef(
        name=symbol.name,
        params=params,
        result=outer.term(signature.result),
        settled=isinstance(signature.result, Con) and signature.result.name == "Settled",
        body=_body(outer, symbol),
        within=number(within.limit if within else None, DEFAULT_WITHIN),
        tries=count,
        tries_for=number(tries.duration if tries else None),
        otherwise=_over_params(outer, symbol, "else", tries.otherwise if tries else None),
        backoff=number(backoff.first if backoff else None),
        backoff_most=number(backoff.most if backoff else None),
        undo=_undo_step(outer, symbol, undo),
        undo_args=_undo_args(outer, symbol, undo),
        queue=_over_params(outer, symbol, "on", queue.queue if queue else None),
        beat=number(beat.interval if beat else None),
        limits=tuple(
            (
                number(limit.count),
                number(limit.per),
            )
            for limit in _limits(symbol)
        ),
    )


def named_apart(tables: Tables) -> list[StepDef]:
    """The steps with names of their own; see the head of this module."""
    symbols = list(tables.step_order)
    shared = {
        symbol.name for symbol in symbols if sum(other.name == symbol.name for other in symbols) > 1
    }
    return [
        replace(step, name=symbol.qualified)
        if symbol.name in shared and _is_foreign(tables, symbol)
        else step
        for symbol, step in zip(symbols, tables.steps, strict=True)
    ]


def _is_foreign(tables: Tables, symbol: StepSymbol) -> bool:
    """Whether a step is neither the flow's own nor, without one of that name, its module's."""
    if symbol.flow is tables.flow:
        return False
    own = {other.name for other in tables.step_order if other.flow is tables.flow}
    return tables.flow is None or symbol.module != tables.flow.module or symbol.name in own


def _clause(symbol: StepSymbol, kind: type[ClauseT]) -> ClauseT | None:
    own: Iterable[ast.Node] = (*symbol.decl.clauses, *symbol.group)
    return next((clause for clause in own if isinstance(clause, kind)), None)


def _limits(symbol: StepSymbol) -> list[ast.LimitClause]:
    """At most one without `per` and one with it, in this order."""
    found: dict[bool, ast.LimitClause] = {}
    for clause in (*symbol.decl.clauses, *symbol.group):
        if isinstance(clause, ast.LimitClause):
            found.setdefault(clause.per is not None, clause)
    return [found[timed] for timed in sorted(found)]


def _body(outer: FunctionEmitter, symbol: StepSymbol) -> int:
    body = symbol.decl.body
    if body is None:
        return NO_FUNCTION

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(symbol.module, symbol.name)
        inner.at(symbol.decl)
        functions.parameters(inner, symbol.decl.params)
        inner.body(body, unit=tables.checked.signatures[symbol].result == UNIT)
        return inner.finished(len(symbol.decl.params))

    return outer.tables.function((symbol, "body"), job)


def _over_params(
    outer: FunctionEmitter, symbol: StepSymbol, clause: str, node: ast.Expr | None
) -> int:
    """A function over the step's parameters that gives an expression."""
    if node is None:
        return NO_FUNCTION

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(symbol.module, f"{symbol.name} {clause}")
        _parameters(inner, symbol)
        inner.result(node)
        return inner.finished(len(symbol.decl.params))

    return outer.tables.function((symbol, clause), job)


def _parameters(fn: FunctionEmitter, symbol: StepSymbol) -> None:
    """The parameters as a clause sees them."""
    for parameter in symbol.decl.params:
        name = parameter.name.name
        fn.by_name[name] = fn.parameter(name, None)


def _undo_target(outer: FunctionEmitter, symbol: StepSymbol, clause: ast.UndoClause) -> ast.Call:
    node = clause.call
    while isinstance(node, ast.ParenExpr):
        node = node.inner
    assert isinstance(node, ast.Call)
    return node


def _undo_step(outer: FunctionEmitter, symbol: StepSymbol, clause: ast.UndoClause | None) -> int:
    if clause is None:
        return -1
    call = _undo_target(outer, symbol, clause)
    target = outer.tables.checked.facts[symbol.module].calls[call].target
    assert isinstance(target, StepTarget)
    return outer.tables.undo_step(target.symbol)


def _undo_args(outer: FunctionEmitter, symbol: StepSymbol, clause: ast.UndoClause | None) -> int:
    """A function over what the step gave and its parameters: the undo's arguments as a tuple."""
    if clause is None:
        return NO_FUNCTION
    call = _undo_target(outer, symbol, clause)

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(symbol.module, f"{symbol.name} undo")
        inner.by_name["it"] = inner.parameter("it", None)
        _parameters(inner, symbol)
        inner.at(call)
        count = inner.arguments(inner.facts.calls[call])
        inner.code.emit(Op.TUPLE, count, pops=count)
        inner.return_top()
        return inner.finished(1 + len(symbol.decl.params))

    return outer.tables.function((symbol, "undo"), job)
