"""Literals as constants of the chunk, and clauses as numbers.

The chunk keeps an `Int`, `Decimal`, `Float` or `String` as Python has it; `Duration`, `Time` and
`Date` are pairs of their name and a number (milliseconds, days).

A clause of a step, a channel's capacity and a flow's `keep` are known when the flow is built:
literals, constants of literals, and arithmetic on them. `fold` computes them.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.names.symbols import ConstSymbol, LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.model import DECIMAL, FLOAT, Type
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

NOT_CONSTANT = "E0323"

LIMIT = "a step's limit"
TRIES = "the number of tries"
TRIES_FOR = "the length of time of tries"
DELAY = "a delay between tries"
BEAT = "the interval of `beat`"
RATE = "a limit"
PER = "the length of time of a limit"
CAPACITY = "a channel's capacity"
KEEP = "how long an ended instance is kept"

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


def clause(tables: Tables, module: str, node: ast.Expr, what: str) -> int:
    """The number a clause says, in milliseconds if it is a duration; E0323 if it says none."""
    number = fold(tables, module, node)
    if number is None:
        tables.report(
            NOT_CONSTANT,
            module,
            node.span,
            f"{what} must be known when the flow is built",
            "Write a literal, a `const`, or arithmetic on them: `2 * 30s`.",
        )
        return 1
    return number


def fold(tables: Tables, module: str, node: ast.Expr) -> int | None:
    """What an expression of literals and constants gives, None if it is something else."""
    match node:
        case ast.IntLit(value=number) | ast.DurationLit(millis=number):
            return number
        case ast.ParenExpr(inner=inner):
            return fold(tables, module, inner)
        case ast.UnaryExpr(op="-", operand=operand):
            folded = fold(tables, module, operand)
            return None if folded is None else -folded
        case ast.BinaryExpr(op=op, left=left, right=right):
            a, b = fold(tables, module, left), fold(tables, module, right)
            return None if a is None or b is None else _arithmetic(op, a, b)
        case _:
            symbol = tables.checked.facts[module].uses.get(node)
            if isinstance(symbol, ConstSymbol):
                return fold(tables, symbol.module, symbol.decl.value)
            return None


def _arithmetic(op: str, a: int, b: int) -> int | None:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/" if b != 0:
            quotient = abs(a) // abs(b)
            return quotient if (a < 0) == (b < 0) else -quotient
        case _:
            return None
