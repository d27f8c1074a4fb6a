"""Literals as constants of the chunk, and clauses as numbers.

The chunk keeps an `Int`, `Decimal`, `Float` or `String` as Python has it; `Duration`, `Time` and
`Date` are pairs of their name and a number (milliseconds, days).

A clause of a step, a channel's capacity and a flow's `keep` are known when the flow is built.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.names.symbols import ConstSymbol, LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.constants import Length, evaluate
from qoqi.compiler.types.model import DECIMAL, FLOAT, Type
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

_SMALL = 2**31


def push(fn: FunctionEmitter, literal: ast.Literal, type_: Type) -> None:
    _push(fn, _value(literal, type_))


def push_negative(fn: FunctionEmitter, literal: ast.IntLit | ast.DecimalLit, type_: Type) -> None:
    value = _value(literal, type_)
    assert isinstance(value, (int, float, Decimal))
    _push(fn, value.copy_negate() if isinstance(value, Decimal) else -value)


def _push(fn: FunctionEmitter, value: object) -> None:
    code = fn.code
    if value is True:
        code.emit(Op.TRUE)
    elif value is False:
        code.emit(Op.FALSE)
    elif isinstance(value, int) and -_SMALL < value < _SMALL:
        code.emit(Op.INT, value)
    else:
        code.emit(Op.CONST, fn.tables.constant(value))


def _value(literal: ast.Literal, type_: Type) -> object:
    match literal:
        case ast.IntLit(value=number) | ast.DecimalLit(value=number):
            if type_ == FLOAT:
                return float(number)
            return Decimal(number) if type_ == DECIMAL else number
        case ast.BoolLit(value=truth):
            return truth
        case ast.DurationLit(millis=millis):
            return ("Duration", millis)
        case ast.TimeLit(millis=millis):
            return ("Time", millis)
        case ast.DateLit(days=days):
            return ("Date", days)
        case ast.StringLit(parts=parts):
            return "".join(part for part in parts if isinstance(part, str))


def is_literal(node: ast.Expr) -> bool:
    match node:
        case ast.StringLit(parts=parts):
            return all(isinstance(part, str) for part in parts)
        case ast.UnaryExpr(op="-", operand=ast.IntLit() | ast.DecimalLit()):
            return True
        case _:
            return isinstance(
                node,
                ast.IntLit
                | ast.DecimalLit
                | ast.DurationLit
                | ast.DateLit
                | ast.TimeLit
                | ast.BoolLit,
            )


def is_simple(fn: FunctionEmitter, node: ast.Expr) -> bool:
    """Whether it does not matter when the node is evaluated: literals and what never changes."""
    symbol = fn.facts.uses.get(node)
    if isinstance(symbol, LocalSymbol):
        return not symbol.mutable
    return is_literal(node) or isinstance(symbol, ConstSymbol)


def clause(tables: Tables, module: str, node: ast.Expr) -> int:
    """The number a clause says, in milliseconds if it is a duration. The rules have seen it."""
    match evaluate(tables.checked, module, node):
        case Length(millis):
            return millis
        case int(number):
            return number
        case other:
            raise AssertionError(f"a clause without a value: {other}")
