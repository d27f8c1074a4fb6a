"""What an expression of literals and constants gives, as far as clauses and limits need it.

Whole numbers, decimals and lengths of time, constants of them, signs and arithmetic, with the
results the machine would give. None for anything else, and for what the machine would refuse.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from qoqi.compiler.names.symbols import ConstSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Checked
from qoqi.vm.dataclass import dataclass

_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class Length:
    """A length of time in milliseconds."""

    millis: int


Constant: TypeAlias = int | Decimal | Length


def evaluate(checked: Checked, module: str, expr: ast.Expr) -> Constant | None:
    return _evaluate(checked, module, expr, _DEEPEST)


def _evaluate(checked: Checked, module: str, expr: ast.Expr, deep: int) -> Constant | None:
    if deep == 0:
        return None
    match expr:
        case ast.IntLit(value=number) | ast.DecimalLit(value=number):
            return number
        case ast.DurationLit(millis=millis):
            return Length(millis)
        case ast.ParenExpr(inner=inner):
            return _evaluate(checked, module, inner, deep - 1)
        case ast.UnaryExpr(op="-", operand=operand):
            match _evaluate(checked, module, operand, deep - 1):
                case Length(millis):
                    return Length(-millis)
                case int() | Decimal() as value:
                    return -value
                case None:
                    return None
        case ast.BinaryExpr(op=op, left=left, right=right):
            first = _evaluate(checked, module, left, deep - 1)
            second = _evaluate(checked, module, right, deep - 1)
            return _operate(op, first, second)
        case ast.Name() | ast.FieldExpr():
            symbol = checked.facts[module].uses.get(expr)
            if isinstance(symbol, ConstSymbol) and symbol.module in checked.facts:
                return _evaluate(checked, symbol.module, symbol.decl.value, deep - 1)
            return None
        case _:
            return None


def _operate(op: str, left: Constant | None, right: Constant | None) -> Constant | None:
    match op, left, right:
        case "+", Length(a), Length(b):
            return Length(a + b)
        case "-", Length(a), Length(b):
            return Length(a - b)
        case ("*", Length(a), int(b)) | ("*", int(b), Length(a)):
            return Length(a * b)
        case "/", Length(a), int(b) if b != 0:
            return Length(_quotient(a, b))
        case "+", int(a), int(b):
            return a + b
        case "-", int(a), int(b):
            return a - b
        case "*", int(a), int(b):
            return a * b
        case "/", int(a), int(b) if b != 0:
            return _quotient(a, b)
        case "%", int(a), int(b) if b != 0:
            return a - b * _quotient(a, b)
        case _:
            return None


def _quotient(a: int, b: int) -> int:
    """Division toward zero."""
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
