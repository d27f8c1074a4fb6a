"""Calls: arguments in the order they are written, then the instruction of what is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qoqi.compiler.emit import builtins, constants, functions, places, terms
from qoqi.compiler.names.symbols import native_name
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import (
    ArgSource,
    BuiltinTarget,
    CallPlan,
    Default,
    FnTarget,
    Given,
    StepTarget,
    Target,
    ValueTarget,
    VariantTarget,
    ViewTarget,
)
from qoqi.compiler.types.model import Con, Type
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter


def call(fn: FunctionEmitter, node: ast.Call) -> None:
    """Leaves the result of a call on the stack."""
    plan = fn.facts.calls[node]
    match plan.target:
        case BuiltinTarget() as target:
            builtins.call(fn, node, target, plan)
        case FnTarget(symbol=symbol) if symbol.mutates_self:
            _mutating(fn, node, plan)
        case ValueTarget(callee=callee):
            fn.value(callee)
            count = arguments(fn, plan.args)
            _at_call(fn, node)
            fn.code.emit(Op.CALL_VALUE, count, pops=count + 1)
        case target:
            count = arguments(fn, plan.args)
            _at_call(fn, node)
            reached(fn, target, count, fn.type_of(node))


def reached(fn: FunctionEmitter, target: Target, count: int, result: Type) -> None:
    """The instruction that calls `target` with the `count` values on the stack."""
    code, tables = fn.code, fn.tables
    match target:
        case FnTarget(symbol=symbol) if symbol.native == "pure":
            terms.reach(tables, result)
            code.emit(Op.NATIVE, tables.native(native_name(symbol), count), pops=count)
        case FnTarget(symbol=symbol) if symbol.native is not None:
            terms.reach(tables, result)
            code.emit(Op.OPERATION, tables.operation(native_name(symbol), count), pops=count)
        case FnTarget(symbol=symbol, type_args=type_args):
            code.emit(Op.CALL, functions.of_symbol(fn, symbol, type_args), pops=count)
        case StepTarget(symbol=symbol):
            code.emit(Op.STEP, tables.step(symbol), pops=count)
        case VariantTarget(symbol=symbol):
            code.emit(Op.VARIANT, terms.variant_index(tables, symbol), pops=count)
        case ViewTarget(symbol=symbol):
            code.emit(Op.CALL, functions.of_view(fn, symbol), pops=0)
        case ValueTarget() | BuiltinTarget():
            raise AssertionError("neither can be a value")


def arguments(fn: FunctionEmitter, sources: Sequence[ArgSource | None]) -> int:
    """Leaves the arguments on the stack in the order of the parameters; gives how many.

    They are evaluated in the order they are written. Where that is another one, those whose moment
    matters are kept in temporaries first.
    """
    present = [source for source in sources if source is not None]
    given = [source for source in present if isinstance(source, Given)]
    moving = [source for source in given if not constants.is_simple(fn, source.value)]
    written = sorted(moving, key=lambda source: source.value.span)
    kept: dict[ast.Expr, int] = {}
    if written != moving:
        for moved in written:
            fn.value(moved.value)
            slot = fn.code.temporary()
            fn.code.emit(Op.STORE, slot)
            kept[moved.value] = slot
    for source in present:
        if source.value in kept:
            fn.code.emit(Op.LOAD, kept[source.value])
        else:
            argument(fn, source)
    fn.code.release(*kept.values())
    return len(present)


def argument(fn: FunctionEmitter, source: ArgSource) -> None:
    match source:
        case Given(value=value):
            fn.value(value)
        case Default(value=value, module=module):
            functions.push_default(fn, value, module)


def _mutating(fn: FunctionEmitter, node: ast.Call, plan: CallPlan) -> None:
    """A method declared with `var self`: its receiver is a place that gets a new value."""
    assert isinstance(plan.target, FnTarget)
    symbol = plan.target.symbol
    receiver, *rest = plan.args
    assert isinstance(receiver, Given)
    code = fn.code
    place, indexes = places.of(fn, receiver.value)
    if symbol.native is not None:
        count = arguments(fn, rest)
        _at_call(fn, node)
        terms.reach(fn.tables, fn.type_of(node))
        mutation = code.mutation(native_name(symbol), count, code.place(place))
        code.emit(Op.MUTATE, mutation, pops=count)
    else:
        # The arguments come first, so that nothing changes the place between its reading and the
        # call; a local gives its value away, so that the method may change it where it is.
        kept: list[int] = []
        if not all(_stays(fn, source) for source in rest):
            for _ in range(arguments(fn, rest)):
                kept.insert(0, code.temporary())
                code.emit(Op.STORE, kept[0])
        _at_call(fn, node)
        places.load(fn, place)
        if not place.flow and not place.steps:
            code.emit(Op.CLEAR, place.root)
        for slot in kept:
            code.emit(Op.LOAD, slot)
        count = len(kept) if kept else arguments(fn, rest)
        code.release(*kept)
        number = functions.of_symbol(fn, symbol, plan.target.type_args)
        code.emit(Op.CALL_MUTATING, number, pops=count + 1)
        places.store(fn, place)
    code.free(*indexes)


def _stays(fn: FunctionEmitter, source: ArgSource | None) -> bool:
    return source is None or isinstance(source, Default) or constants.is_simple(fn, source.value)


def head_of(type_: Type) -> str:
    return type_.name if isinstance(type_, Con) else ""


def _at_call(fn: FunctionEmitter, node: ast.Call) -> None:
    fn.at(node.fn.name if isinstance(node.fn, ast.FieldExpr) else node)
