"""Values in frozen frames: self-describing JSON, canonical, and read back without trust.

Text, true, false, numbers (an Int has no `.` or `e`) and null, which is unit, are themselves. All
else is an array whose first item is a tag:

    ["dec", text]  ["bytes", base64]  ["dur", ms]  ["time", ms]  ["date", days]
    ["list", …]  ["map", k, v, …]  ["set", …]  ["tuple", …]  ["range", low, high, inclusive]
    ["struct", type, …]  ["variant", type, index, …]      type: a chunk's index, a prelude's name
    ["fn", function, …captured]  ["instance", flow, name, birth]  ["task", name]
    ["channel", number]  ["request", channel, seq, value]  ["ask", key]  ["undo", target, …]
    ["type", number]  ["case", number, kind, …operands]  ["off"]  ["unset"]

Only a case that is off is Python's None in a frame. Nesting is bounded by `DEPTH_LIMIT` and parts
by `LIST_LIMIT` (R0008), as everywhere. Every number is held against the program on the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from qoqi.vm.bytecode.opcodes import WAIT_OPERANDS, WaitKind
from qoqi.vm.effects import Case
from qoqi.vm.failure import FlowError
from qoqi.vm.text import bytes_text, parse_bytes, parse_decimal
from qoqi.vm.types import TypeInfo
from qoqi.vm.values import (
    DEPTH_LIMIT,
    DURATION_LIMIT,
    FIRST_DATE,
    FIRST_TIME,
    LAST_DATE,
    LAST_TIME,
    LIST_LIMIT,
    UNSET,
    AskValue,
    ChannelValue,
    Closure,
    Date,
    Duration,
    InstanceValue,
    RangeValue,
    RequestValue,
    SetValue,
    Struct,
    TaskValue,
    TermValue,
    Time,
    UndoValue,
    Unset,
    Variant,
)

if TYPE_CHECKING:
    from qoqi.vm.program import Program


class SnapshotError(Exception):
    """A text that is no frozen state of this program, or a state that cannot be frozen."""


# --- freeze -----------------------------------------------------------------------------------


def freeze_value(value: object) -> object:
    """The value as JSON data that says what it is."""
    try:
        return _freeze(value, DEPTH_LIMIT, [LIST_LIMIT])
    except RecursionError:  # called so deep in the host that there is no room for as many levels
        raise FlowError("R0008", f"a value nested deeper than {DEPTH_LIMIT} levels") from None


def _freeze(value: object, depth: int, left: list[int]) -> object:
    kind = value.__class__
    if kind is str or kind is int or kind is bool or kind is float:
        return value
    if value == () and kind is tuple:
        return None
    parts = _PARTS.get(kind)
    if parts is None:
        raise SnapshotError(f"a {kind.__name__} cannot be frozen")
    if depth <= 0:
        raise FlowError("R0008", f"a value nested deeper than {DEPTH_LIMIT} levels")
    heading, held = parts(value)
    frozen = [*heading, *[_freeze(part, depth - 1, left) for part in held]]
    left[0] -= len(frozen)
    if left[0] < 0:
        raise FlowError("R0008", f"a value of more than {LIST_LIMIT:,} parts")
    return frozen


_NOTHING: Final = ()

_PARTS: Final[dict[type, Callable[[Any], tuple[tuple[object, ...], Iterable[object]]]]] = {
    Decimal: lambda it: (("dec", str(it)), _NOTHING),
    bytes: lambda it: (("bytes", bytes_text(it)), _NOTHING),
    Duration: lambda it: (("dur", it.ms), _NOTHING),
    Time: lambda it: (("time", it.ms), _NOTHING),
    Date: lambda it: (("date", it.days), _NOTHING),
    list: lambda it: (("list",), it),
    dict: lambda it: (("map",), [part for pair in it.items() for part in pair]),
    SetValue: lambda it: (("set",), it.items),
    tuple: lambda it: (("tuple",), it),
    RangeValue: lambda it: (("range",), (it.low, it.high, it.inclusive)),
    Struct: lambda it: (("struct", it.type.key), it.fields),
    Variant: lambda it: (("variant", it.type.key, it.index), it.payload),
    Closure: lambda it: (("fn", it.function), it.captured),
    InstanceValue: lambda it: (("instance", it.flow, it.name, it.birth), _NOTHING),
    TaskValue: lambda it: (("task", it.name), _NOTHING),
    ChannelValue: lambda it: (("channel", it.number), _NOTHING),
    RequestValue: lambda it: (("request", it.channel, it.seq), (it.value,)),
    AskValue: lambda it: (("ask", it.key), _NOTHING),
    UndoValue: lambda it: (("undo", it.target), it.args),
    TermValue: lambda it: (("type", it.number), _NOTHING),
    Case: lambda it: (("case", it.number, int(it.kind)), it.operands),
    type(None): lambda it: (("off",), _NOTHING),
    Unset: lambda it: (("unset",), _NOTHING),
}


# --- thaw -------------------------------------------------------------------------------------


class Part:
    """A part of parsed JSON and where it stands: each look at it checks what it is."""

    __slots__ = ("raw", "where")

    def __init__(self, raw: object, where: str) -> None:
        self.raw = raw
        self.where = where

    def wrong(self, problem: str) -> SnapshotError:
        return SnapshotError(f"{self.where}: {problem}")

    def text(self) -> str:
        if not isinstance(self.raw, str):
            raise self.wrong("expected text")
        return self.raw

    def optional_text(self) -> str | None:
        return None if self.raw is None else self.text()

    def boolean(self) -> bool:
        if not isinstance(self.raw, bool):
            raise self.wrong("expected true or false")
        return self.raw

    def integer(self, low: int = -(2**62), high: int = 2**62) -> int:
        if not isinstance(self.raw, int) or isinstance(self.raw, bool):
            raise self.wrong("expected an integer")
        if not low <= self.raw <= high:
            raise self.wrong(f"{self.raw} is out of range" if abs(self.raw) < 10**20 else "too big")
        return self.raw

    def count(self) -> int:
        return self.integer(0)

    def below(self, limit: int) -> int:
        return self.integer(0, limit - 1)

    def has(self, name: str) -> bool:
        return isinstance(self.raw, dict) and name in self.raw

    def member(self, name: str) -> Part:
        if not isinstance(self.raw, dict) or name not in self.raw:
            raise self.wrong(f"{name} is missing")
        return Part(self.raw[name], f"{self.where}.{name}")

    def members(self) -> list[tuple[str, Part]]:
        if not isinstance(self.raw, dict):
            raise self.wrong("expected an object")
        return [(name, Part(raw, f"{self.where}.{name}")) for name, raw in self.raw.items()]

    def items(self, size: int | None = None) -> list[Part]:
        if not isinstance(self.raw, list):
            raise self.wrong("expected an array")
        if size is not None and len(self.raw) != size:
            raise self.wrong(f"expected {size} items, found {len(self.raw)}")
        return [Part(raw, f"{self.where}[{at}]") for at, raw in enumerate(self.raw)]


def thaw_value(part: Part, program: Program) -> Any:
    """The value of a part; SnapshotError where the program has no place for it."""
    raw = part.raw
    if isinstance(raw, (str, int)):
        return raw
    if raw is None:
        return ()
    if isinstance(raw, (Decimal, float)):
        return float(raw)
    items = part.items()
    if not items:
        raise part.wrong("expected a value")
    tag, rest = items[0].text(), items[1:]
    thawer = _THAW.get(tag)
    if thawer is None:
        raise part.wrong(f"no value has the tag {tag[:20]!r}")
    sizes, make = thawer
    if not (len(rest) == sizes if sizes >= 0 else len(rest) >= ~sizes):
        raise part.wrong(f"a {tag} of {len(rest)} parts")
    return make(part, rest, program)


def _all(parts: list[Part], program: Program) -> list[Any]:
    return [thaw_value(part, program) for part in parts]


def _thaw_decimal(part: Part, rest: list[Part], program: Program) -> Decimal:
    number = parse_decimal(rest[0].text())
    if number is None:
        raise part.wrong("expected a decimal number")
    return number


def _thaw_bytes(part: Part, rest: list[Part], program: Program) -> bytes:
    value = parse_bytes(rest[0].text())
    if value is None:
        raise part.wrong("expected base64")
    return value


def _hashable(part: Part, values: list[Any]) -> list[Any]:
    try:
        for value in values:
            hash(value)
    except TypeError:
        raise part.wrong("a key that can be none") from None
    return values


def _thaw_map(part: Part, rest: list[Part], program: Program) -> dict[Any, Any]:
    if len(rest) % 2:
        raise part.wrong("a key without a value")
    keys = _hashable(part, _all(rest[::2], program))
    values = _all(rest[1::2], program)
    return dict(zip(keys, values, strict=True))


def _thaw_set(part: Part, rest: list[Part], program: Program) -> SetValue:
    return SetValue(dict.fromkeys(_hashable(part, _all(rest, program))))


def _thaw_range(part: Part, rest: list[Part], program: Program) -> RangeValue:
    low, high = _all(rest[:2], program)
    return RangeValue(low, high, rest[2].boolean())


def _thaw_type(part: Part, program: Program) -> TypeInfo:
    key = part.raw
    known = isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool))
    try:
        info = program.types.at(key) if known else None  # type: ignore[arg-type]
    except KeyError:
        info = None
    if info is None or info.key != key:
        raise part.wrong("no such type")
    return info


def _thaw_struct(part: Part, rest: list[Part], program: Program) -> Struct:
    info = _thaw_type(rest[0], program)
    if info.fields is None or len(info.fields) != len(rest) - 1:
        raise part.wrong(f"{info.name} has no {len(rest) - 1} fields")
    return Struct(info, _all(rest[1:], program))


def _thaw_variant(part: Part, rest: list[Part], program: Program) -> Variant:
    info = _thaw_type(rest[0], program)
    index = rest[1].below(len(info.variants))
    if len(info.variants[index].fields) != len(rest) - 2:
        raise part.wrong(f"{info.name}.{info.variants[index].name} has no {len(rest) - 2} fields")
    return info.units[index] or Variant(info, index, tuple(_all(rest[2:], program)))


def _thaw_closure(part: Part, rest: list[Part], program: Program) -> Closure:
    function = rest[0].below(len(program.chunk.functions))
    if len(rest) - 1 > program.chunk.functions[function].params:
        raise part.wrong("a closure that captures too much")
    return Closure(function, tuple(_all(rest[1:], program)))


def _thaw_case(part: Part, rest: list[Part], program: Program) -> Case:
    try:
        kind = WaitKind(rest[1].integer())
    except ValueError:
        raise part.wrong("no such kind of wait") from None
    if len(rest) - 2 != WAIT_OPERANDS[kind]:
        raise part.wrong(f"a case {kind.name} of {len(rest) - 2} operands")
    operands = _all(rest[2:], program)
    if kind in (WaitKind.RECEIVE, WaitKind.SEND):
        rest[2].below(len(program.chunk.channels))
    return Case(rest[0].count(), kind, tuple(operands))


def _thaw_term(part: Part, rest: list[Part], program: Program) -> TermValue:
    return program.terms[rest[0].below(len(program.terms))]


# Tag to how many parts stand behind it (~n: at least n) and what makes the value.
_THAW: Final[dict[str, tuple[int, Callable[[Part, list[Part], Program], Any]]]] = {
    "dec": (1, _thaw_decimal),
    "bytes": (1, _thaw_bytes),
    "dur": (1, lambda _, rest, __: Duration(rest[0].integer(-DURATION_LIMIT, DURATION_LIMIT))),
    "time": (1, lambda _, rest, __: Time(rest[0].integer(FIRST_TIME, LAST_TIME))),
    "date": (1, lambda _, rest, __: Date(rest[0].integer(FIRST_DATE, LAST_DATE))),
    "list": (~0, lambda _, rest, program: _all(rest, program)),
    "map": (~0, _thaw_map),
    "set": (~0, _thaw_set),
    "tuple": (~1, lambda _, rest, program: tuple(_all(rest, program))),
    "range": (3, _thaw_range),
    "struct": (~1, _thaw_struct),
    "variant": (~2, _thaw_variant),
    "fn": (~1, _thaw_closure),
    "instance": (3, lambda _, rest, __: InstanceValue(*[part.text() for part in rest])),
    "task": (1, lambda _, rest, __: TaskValue(rest[0].text())),
    "channel": (
        1,
        lambda _, rest, program: ChannelValue(rest[0].below(len(program.chunk.channels))),
    ),
    "request": (
        3,
        lambda _, rest, program: RequestValue(
            rest[0].below(len(program.chunk.channels)),
            rest[1].count(),
            thaw_value(rest[2], program),
        ),
    ),
    "ask": (1, lambda _, rest, __: AskValue(rest[0].text())),
    "undo": (
        ~1,
        lambda _, rest, program: UndoValue(rest[0].text(), tuple(_all(rest[1:], program))),
    ),
    "type": (1, _thaw_term),
    "case": (~2, _thaw_case),
    "off": (0, lambda _, rest, __: None),
    "unset": (0, lambda _, rest, __: UNSET),
}
