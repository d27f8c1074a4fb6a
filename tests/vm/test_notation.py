"""Values as they are written in a source: one line each, and what is written is read the same."""

from __future__ import annotations

from decimal import Decimal

import pytest

from qoqi.vm.notation import notation
from qoqi.vm.types import Types
from qoqi.vm.values import (
    Date,
    Duration,
    InstanceValue,
    RangeValue,
    SetValue,
    TaskValue,
    Time,
)

TYPES = Types(())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (-3, "-3"),
        (Decimal("2.50"), "2.50"),
        (0.5, "0.5"),
        ('a "b"\n\\', r'"a \"b\"\n\\"'),
        ("\x1b", '"\\u{1b}"'),
        (b"hi", 'Bytes("aGk=")'),
        (Duration(5_400_000), "1h30m"),
        (Time(0), "@1970-01-01T00:00:00Z"),
        (Date(0), "@1970-01-01"),
        ([], "[]"),
        ([1, [2]], "[1, [2]]"),
        ((), "()"),
        ((1, "a"), '(1, "a")'),
        ({}, "[:]"),
        ({"a": 1, "b": 2}, '["a": 1, "b": 2]'),
        (SetValue({2: None, 1: None}), "[2, 1]"),
        (RangeValue(1, 3, True), "1..=3"),
        (InstanceValue("shop.Order", "o1", "k7f2"), 'Order("o1")'),
        (TaskValue("0/f#1"), "<Task>"),
        (TYPES.some(1), "Some(1)"),
        (TYPES.none(), "None"),
        (TYPES.err(TYPES.struct("Cancelled", "late")), 'Err(Cancelled { reason: "late" })'),
    ],
)
def test_notation(value: object, text: str) -> None:
    assert notation(value) == text


def test_what_is_nested_too_deep_is_cut() -> None:
    value: object = 1
    for _ in range(300):
        value = [value]

    assert "…" in notation(value)
