"""Places: what can be assigned, or be the receiver of a method declared with `var self`.

The indexes on the way to a place are evaluated first, from left to right, into temporaries; then
the right side; then the place is read, where it is, and written. Nothing can come between reading
and writing, so two tasks never lose each other's change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.emit import constants
from qoqi.compiler.names.symbols import FlowSlotSymbol, LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.vm.bytecode.chunk import Place
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter


def of(fn: FunctionEmitter, node: ast.Expr) -> tuple[Place, tuple[int, ...]]:
    """The place an expression names, and the temporaries with its indexes."""
    match node:
        case ast.ParenExpr(inner=inner):
            return of(fn, inner)
        case ast.FieldExpr(base=base) if node in fn.facts.fields:
            place, indexes = of(fn, base)
            return _step(place, "field", fn.facts.fields[node]), indexes
        case ast.TupleIndexExpr(base=base, index=index):
            place, indexes = of(fn, base)
            return _step(place, "item", index), indexes
        case ast.IndexExpr(base=base, index=at):
            place, indexes = of(fn, base)
            fn.value(at)
            slot = fn.code.temporary()
            fn.code.emit(Op.STORE, slot)
            return _step(place, "slot", slot), (*indexes, slot)
        case _:
            match fn.facts.uses.get(node):
                case LocalSymbol() as symbol:
                    return Place(False, fn.slot(symbol)), ()
                case FlowSlotSymbol(index=number):
                    return Place(True, number), ()
                case other:
                    raise AssertionError(f"not a place: {other}")


def load(fn: FunctionEmitter, place: Place) -> None:
    if place.steps:
        fn.code.emit(Op.GET_PLACE, fn.code.place(place))
    else:
        fn.code.emit(Op.LOAD_FLOW if place.flow else Op.LOAD, place.root)


def store(fn: FunctionEmitter, place: Place) -> None:
    if place.steps:
        fn.code.emit(Op.PUT_PLACE, fn.code.place(place))
    else:
        fn.code.emit(Op.STORE_FLOW if place.flow else Op.STORE, place.root)


def assign(fn: FunctionEmitter, node: ast.AssignStmt) -> None:
    code = fn.code
    place, indexes = of(fn, node.target)
    if node.op == "=":
        fn.value(node.value)
        fn.at(node)
    elif constants.is_simple(fn, node.value):
        load(fn, place)
        fn.value(node.value)
        fn.at(node)
        code.emit(_COMPOUND[node.op])
    else:
        fn.value(node.value)
        right = code.temporary()
        code.emit(Op.STORE, right)
        fn.at(node)
        load(fn, place)
        code.emit(Op.LOAD, right)
        code.emit(_COMPOUND[node.op])
        code.free(right)
    store(fn, place)
    code.free(*indexes)


_COMPOUND = {"+=": Op.ADD, "-=": Op.SUB, "*=": Op.MUL, "/=": Op.DIV, "%=": Op.MOD}


def _step(place: Place, kind: str, value: int) -> Place:
    return Place(place.flow, place.root, (*place.steps, (kind, value)))
