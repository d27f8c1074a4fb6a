"""A value as it is written in a source: `Approved("ana")`, `[1, 2]`, `@2026-11-30`, `2d`.

For people who compare values: tests show both sides of a comparison so. Whatever a program can hold
is shown, also what is no data; nothing here fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final

from qoqi.vm.text import bytes_text, date_text, decimal_text, duration_text, time_text
from qoqi.vm.values import (
    DEPTH_LIMIT,
    Closure,
    Date,
    Duration,
    InstanceValue,
    RangeValue,
    SetValue,
    Struct,
    Time,
    Variant,
)

_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def notation(value: object) -> str:
    """The value in flow's own notation, on one line."""
    return _show(value, DEPTH_LIMIT)


def _show(value: object, depth: int) -> str:
    scalar = _SCALARS.get(value.__class__)
    if scalar is not None:
        return scalar(value)
    if depth <= 0:
        return "…"
    match value:
        case list():
            return f"[{_list(value, depth)}]"
        case tuple():
            return f"({_list(value, depth)})"
        case SetValue(items=items):
            return f"[{_list(items, depth)}]"
        case dict():
            return _map(value, depth)
        case Struct(type=info, fields=fields):
            assert info.fields is not None
            named = zip(info.fields, fields, strict=True)
            shown = ", ".join(f"{field.name}: {_show(one, depth - 1)}" for field, one in named)
            return f"{_short(info.name)} {{ {shown} }}" if shown else f"{_short(info.name)} {{}}"
        case Variant():
            return _variant(value, depth)
        case RangeValue(low=low, high=high, inclusive=inclusive):
            return f"{_show(low, depth - 1)}..{'=' if inclusive else ''}{_show(high, depth - 1)}"
        case InstanceValue(flow=flow, name=name):
            return f"{_short(flow)}({text(name)})"
        case Closure():
            return "fn(…)"
        case _:
            return f"<{value.__class__.__name__.removesuffix('Value')}>"


def text(value: str) -> str:
    """A string literal; what cannot be seen is escaped."""
    shown = [
        _ESCAPES.get(char) or (char if char.isprintable() else f"\\u{{{ord(char):x}}}")
        for char in value
    ]
    return f'"{"".join(shown)}"'


def _list(items: Iterable[object], depth: int) -> str:
    return ", ".join(_show(item, depth - 1) for item in items)


def _map(value: dict[object, object], depth: int) -> str:
    if not value:
        return "[:]"
    entries = (f"{_show(key, depth - 1)}: {_show(item, depth - 1)}" for key, item in value.items())
    return f"[{', '.join(entries)}]"


def _variant(value: Variant, depth: int) -> str:
    if value.type.name == "Json":
        return _show(value.payload[0], depth) if value.payload else "Json.Null"
    if not value.payload:
        return value.name
    return f"{value.name}({_list(value.payload, depth)})"


def _short(name: str) -> str:
    """A type's own name, without its module's."""
    return name.rpartition(".")[2]


def _of(show: Callable[..., str]) -> Callable[[object], str]:
    return show


_SCALARS: Final[dict[type, Callable[[object], str]]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: str,
    str: _of(text),
    Decimal: _of(decimal_text),
    Duration: _of(duration_text),
    Time: _of(lambda value: f"@{time_text(value)}"),
    Date: _of(lambda value: f"@{date_text(value)}"),
    bytes: _of(lambda value: f"Bytes({text(bytes_text(value))})"),
}
