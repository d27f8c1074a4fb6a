"""Natives of Int, Decimal and Float, and the module `math`."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.text import parse_decimal, parse_int
from qoqi.vm.values import (
    DECIMALS,
    INT_DIGITS,
    Variant,
    checked_float,
    checked_int,
    to_decimal,
    to_float,
)

_FLOAT: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,4})?", re.ASCII)

_ROUNDING: Final = {
    "HalfEven": decimal.ROUND_HALF_EVEN,
    "HalfUp": decimal.ROUND_HALF_UP,
    "HalfDown": decimal.ROUND_HALF_DOWN,
    "Up": decimal.ROUND_UP,
    "Down": decimal.ROUND_DOWN,
    "Ceiling": decimal.ROUND_CEILING,
    "Floor": decimal.ROUND_FLOOR,
}


def int_parse(context: Context, text: str) -> Variant:
    return context.types.option_of(parse_int(text))


def decimal_parse(context: Context, text: str) -> Variant:
    return context.types.option_of(parse_decimal(text))


def float_parse(context: Context, text: str) -> Variant:
    if not _FLOAT.fullmatch(text):
        return context.types.none()
    number = float(text)
    return context.types.some(number) if math.isfinite(number) else context.types.none()


def clamp(value: Any, low: Any, high: Any) -> Any:
    return max(low, min(value, high))


def int_pow(base: int, exponent: int) -> int:
    if exponent < 0:
        raise FlowError("R0005", "an Int to a power below zero")
    if abs(base) > 1 and base.bit_length() * exponent > 4 * INT_DIGITS + 64:
        raise FlowError("R0005", f"an Int of more than {INT_DIGITS:,} digits")
    return checked_int(base**exponent)


def decimal_round(value: Decimal, places: int = 0, rounding: Variant | None = None) -> Decimal:
    """To so many places; also where it has fewer, so that its text has that many."""
    if not -6000 <= places <= 6000:
        raise FlowError("R0005", f"a Decimal of {places} places")
    mode = _ROUNDING[rounding.name] if rounding is not None else decimal.ROUND_HALF_EVEN
    rounded = value.quantize(Decimal((0, (1,), -places)), rounding=mode)
    # A place before the point gives an exponent, which is no scale anybody asked for.
    return rounded if places >= 0 else decimal_round(rounded, 0)


def decimal_format(value: Decimal, places: int = 2) -> str:
    return format(decimal_round(value, places), "f")


def decimal_pow(base: Decimal, exponent: int) -> Decimal:
    if base == 0 and exponent < 0:
        raise FlowError("R0003", "division by zero")
    return DECIMALS.power(base, exponent)


def decimal_to_int(value: Decimal) -> int:
    if value.adjusted() >= INT_DIGITS:
        raise FlowError("R0005", f"an Int of more than {INT_DIGITS:,} digits")
    return int(value)


def _floor(value: Decimal) -> Decimal:
    return decimal_round(value.to_integral_value(decimal.ROUND_FLOOR))


def _ceil(value: Decimal) -> Decimal:
    return decimal_round(value.to_integral_value(decimal.ROUND_CEILING))


def float_to_decimal(value: float) -> Decimal:
    """The shortest decimal that is this Float."""
    return Decimal(repr(value))


def float_round(value: float, places: int = 0) -> float:
    return float(round(value, max(-400, min(places, 400))))


def _function(function: Callable[..., float]) -> Callable[..., float]:
    def of_floats(*numbers: float) -> float:
        try:
            return checked_float(function(*numbers))
        except (ValueError, OverflowError, ZeroDivisionError):
            raise FlowError("R0005", "a Float that is not a finite number") from None

    return of_floats


PURE: Final[dict[str, Callable[..., Any]]] = {
    "Int.toDecimal": to_decimal,
    "Int.toFloat": to_float,
    "Int.abs": abs,
    "Int.clamp": clamp,
    "Int.pow": int_pow,
    "Int.toString": lambda value: str(value),
    "Decimal.round": decimal_round,
    "Decimal.floor": _floor,
    "Decimal.ceil": _ceil,
    "Decimal.abs": abs,
    "Decimal.clamp": clamp,
    "Decimal.pow": decimal_pow,
    "Decimal.format": decimal_format,
    "Decimal.toInt": decimal_to_int,
    "Decimal.toFloat": to_float,
    "Float.abs": abs,
    "Float.clamp": clamp,
    "Float.round": float_round,
    "Float.floor": lambda value: float(math.floor(value)),
    "Float.ceil": lambda value: float(math.ceil(value)),
    "Float.toInt": lambda value: int(value),
    "Float.toDecimal": float_to_decimal,
    "math.sqrt": _function(math.sqrt),
    "math.pow": _function(math.pow),
    "math.exp": _function(math.exp),
    "math.log": _function(math.log),
    "math.log2": _function(math.log2),
    "math.log10": _function(math.log10),
    "math.sin": _function(math.sin),
    "math.cos": _function(math.cos),
    "math.tan": _function(math.tan),
    "math.asin": _function(math.asin),
    "math.acos": _function(math.acos),
    "math.atan": _function(math.atan),
    "math.atan2": _function(math.atan2),
    "math.hypot": _function(math.hypot),
    "math.gcd": lambda a, b: math.gcd(a, b),
}

TYPED: Final[dict[str, Callable[..., Any]]] = {
    "Int.parse": int_parse,
    "Decimal.parse": decimal_parse,
    "Float.parse": float_parse,
}
