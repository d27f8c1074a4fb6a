"""What becomes a function of the chunk: declarations, closures, defaults, constants, values.

Each gives the number of its function and leaves a job that emits it later (`Tables.function`).
A function used as a value is a closure of a function of that name, so a task started with it is
named after it; a closure's own function is named after the one flow function or step it calls,
else after the function it stands in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from qoqi.compiler.emit import calls, constants, generics, patterns, terms
from qoqi.compiler.emit.patterns import Spot
from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.names.symbols import ConstSymbol, FnSymbol, LocalSymbol, ViewSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import (
    CallPlan,
    Colour,
    FnTarget,
    StepTarget,
    Target,
    VariantTarget,
)
from qoqi.compiler.types.model import UNIT, Fn, Type
from qoqi.vm.bytecode.chunk import Function, FunctionDebug
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter


def of_symbol(fn: FunctionEmitter, symbol: FnSymbol, type_args: tuple[Type, ...]) -> int:
    """The function of a declaration; one per set of type arguments if it needs them."""
    tables = fn.tables
    types: Mapping[Type, Type] = {}
    key: tuple[Type, ...] = ()
    if type_args and generics.needs_types(tables, symbol):
        key = tuple(terms.substituted(argument, fn.types) for argument in type_args)
        types = dict(zip(tables.checked.signatures[symbol].type_params, key, strict=True))

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        body = symbol.decl.body
        assert body is not None, f"{symbol.qualified} has no body"
        inner = fn.new(symbol.module, symbol.name, types)
        inner.mutates_self = symbol.mutates_self
        inner.at(symbol.decl)
        parameters(inner, symbol.decl.params)
        result = tables.checked.signatures[symbol].result
        inner.body(body, unit=result == UNIT)
        return inner.finished(len(symbol.decl.params))

    return tables.function((symbol, key), job)


def parameters(fn: FunctionEmitter, declared: tuple[ast.ParamDecl, ...]) -> None:
    for parameter in declared:
        fn.parameter(parameter.name.name, fn.facts.bindings.get(parameter))


def of_view(fn: FunctionEmitter, symbol: ViewSymbol) -> int:
    tables = fn.tables

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = fn.new(symbol.flow.module, symbol.name)
        inner.at(symbol.decl)
        inner.body(symbol.decl.body, unit=tables.checked.declared[symbol] == UNIT)
        return inner.finished(0)

    return tables.function(symbol, job)


def of_lambda(fn: FunctionEmitter, node: ast.LambdaExpr) -> int:
    """Captured values are the first parameters, then those written."""
    tables, outer = fn.tables, fn
    captured = fn.facts.captures[node]
    types = tuple(fn.types.items())

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(outer.module, task_name(outer, node), outer.types)
        inner.at(node)
        _captured(inner, captured)
        slots = [inner.code.slot(_written(parameter)) for parameter in node.params]
        for parameter, slot in zip(node.params, slots, strict=True):
            pattern = parameter.pattern
            if isinstance(pattern, ast.BindPattern) and pattern not in inner.facts.matches:
                symbol = inner.facts.bindings.get(pattern) or inner.facts.bindings[parameter]
                inner.locals[symbol] = slot
            else:
                patterns.fit(inner, pattern, Spot(slot), None)
        if isinstance(node.body, ast.Block):
            type_ = inner.type_of(node)
            inner.body(node.body, unit=isinstance(type_, Fn) and type_.result == UNIT)
        else:
            inner.result(node.body)
        return inner.finished(len(captured) + len(node.params))

    return tables.function((node, types), job)


def of_condition(fn: FunctionEmitter, node: ast.Expr) -> None:
    """Leaves a closure that tells whether a condition holds: of `case when` and `flow.until`."""
    outer = fn
    captured = generics.free_locals(fn.facts, node)

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(outer.module, outer.name, outer.types)
        _captured(inner, captured)
        inner.result(node)
        return inner.finished(len(captured))

    for symbol in captured:
        fn.code.emit(Op.LOAD, fn.slot(symbol))
    number = fn.tables.function(("condition", node, tuple(fn.types.items())), job)
    fn.code.emit(Op.CLOSURE, fn.tables.closure(number, len(captured)), pops=len(captured))


def _captured(fn: FunctionEmitter, symbols: tuple[LocalSymbol, ...]) -> None:
    for symbol in symbols:
        fn.parameter(symbol.name, symbol)


def _written(parameter: ast.LambdaParam) -> str:
    return parameter.pattern.name.name if isinstance(parameter.pattern, ast.BindPattern) else ""


def push_value(fn: FunctionEmitter, node: ast.Name | ast.FieldExpr) -> None:
    """A function, step or variant used as a value."""
    target = fn.facts.values[node]
    code, tables = fn.code, fn.tables
    if isinstance(target, VariantTarget) and target.symbol.decl.params is None:
        code.emit(Op.VARIANT, terms.variant_index(tables, target.symbol), pops=0)
        return
    if isinstance(target, FnTarget) and target.symbol.native is None:
        number = of_symbol(fn, target.symbol, target.type_args)
    else:
        number = _wrapper(fn, target)
    code.emit(Op.CLOSURE, tables.closure(number, 0), pops=0)


def _wrapper(fn: FunctionEmitter, target: Target) -> int:
    """A function that only calls a step, a variant or a native."""
    assert isinstance(target, FnTarget | StepTarget | VariantTarget)
    symbol = target.symbol
    outer = fn

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(outer.module, symbol.name)
        signature = tables.checked.signatures[symbol]
        for name, _, _ in signature.params:
            inner.code.emit(Op.LOAD, inner.parameter(name, None))
        calls.reached(inner, target, len(signature.params), signature.result)
        inner.return_top()
        return inner.finished(len(signature.params))

    return fn.tables.function(("value", symbol), job)


def push_default(fn: FunctionEmitter, value: ast.Expr, module: str) -> None:
    """A default where its argument was left out."""
    if constants.is_literal(value) and module in fn.tables.checked.facts:
        _literal(fn, value, module)
    else:
        fn.code.emit(Op.LOAD_CONST, fn.tables.default(value, module))


def push_constant(fn: FunctionEmitter, symbol: ConstSymbol) -> None:
    """A constant: itself if it is a literal, else what its function gives, once per program."""
    value = symbol.decl.value
    if constants.is_literal(value):
        _literal(fn, value, symbol.module)
        return

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = fn.new(symbol.module, symbol.name)
        inner.result(value)
        return inner.finished(0)

    fn.code.emit(Op.LOAD_CONST, fn.tables.function(symbol, job))


def _literal(fn: FunctionEmitter, value: ast.Expr, module: str) -> None:
    """A literal of another module: its type is among that module's facts."""
    here, fn.module = fn.module, module
    line = fn.code.line
    fn.value(value)
    fn.module, fn.code.line = here, line


def task_name(fn: FunctionEmitter, node: ast.LambdaExpr) -> str:
    """What a task that runs this closure is called."""
    names = {
        name: None
        for inner in generics.nodes(node.body)
        if isinstance(inner, ast.Call)
        and (plan := fn.facts.calls.get(inner)) is not None
        and (name := _flow_callee(fn, plan)) is not None
    }
    return next(iter(names)) if len(names) == 1 else fn.name


def _flow_callee(fn: FunctionEmitter, plan: CallPlan) -> str | None:
    match plan.target:
        case StepTarget(symbol=symbol):
            return symbol.name
        case FnTarget(symbol=symbol) if symbol.native is None:
            colours = fn.tables.checked.facts[symbol.module].colours
            return symbol.name if colours.get(symbol.decl) is Colour.FLOW else None
        case _:
            return None
