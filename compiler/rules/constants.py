"""The value of a constant expression, as far as rules about limits need it.

Literals of numbers and durations, constants, signs and arithmetic; None for anything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from qoqi.compiler.names.symbols import ConstSymbol
from qoqi.compiler.rules.context import Context, bare
from qoqi.compiler.syntax import ast

DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time in milliseconds."""

    millis: int


def evaluate(ctx: Context, module: str, expr: ast.Expr) -> int | Decimal | Length | None:
    return _evaluate(ctx, module, expr, DEEPEST)


def _evaluate(
    ctx: Context, module: str, expr: ast.Expr, deep: int
) -> int | Decimal | Length | None:
    if deep == 0:
        return None
    match bare(expr):
        case ast.IntLit(value=number):
            return number
        case ast.DecimalLit(value=decimal):
            return decimal
        case ast.DurationLit(millis=millis):
            return Length(millis)
        case ast.UnaryExpr(op="-", operand=operand):
            match _evaluate(ctx, module, operand, deep - 1):
                case Length(millis):
                    return Length(-millis)
                case int() | Decimal() as value:
                    return -value
                case None:
                    return None
        case ast.BinaryExpr(op=op, left=left, right=right):
            first = _evaluate(ctx, module, left, deep - 1)
            second = _evaluate(ctx, module, right, deep - 1)
            return _operate(op, first, second)
        case ast.Name() | ast.FieldExpr() as name:
            symbol = ctx.checked.facts[module].uses.get(name)
            if isinstance(symbol, ConstSymbol) and symbol.module in ctx.checked.facts:
                return _evaluate(ctx, symbol.module, symbol.decl.value, deep - 1)
            return None
        case _:
            return None


def _operate(
    op: str, left: int | Decimal | Length | None, right: int | Decimal | Length | None
) -> int | Decimal | Length | None:
    match op, left, right:
        case "+", Length(a), Length(b):
            return Length(a + b)
        case "-", Length(a), Length(b):
            return Length(a - b)
        case ("*", Length(a), int(b)) | ("*", int(b), Length(a)):
            return Length(a * b)
        case "+", int(a), int(b):
            return a + b
        case "-", int(a), int(b):
            return a - b
        case "*", int(a), int(b):
            return a * b
        case _:
            return None
