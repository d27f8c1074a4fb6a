"""The values of flow as Python values, their order and their arithmetic.

    Bool bool · Int int · Decimal decimal.Decimal · Float float · String str · Bytes bytes
    List list · Map dict · tuple and unit tuple · Set SetValue · Range RangeValue
    Duration Time Date · struct Struct · enum Variant · closure Closure
    Instance Task Channel Request and what `ask` and `undo` give: small records
    a type given to a native: TermValue · an empty slot: UNSET

Values never change, by contract. The only exception is in `places`: a list, map, set or struct that
provably nothing else refers to may be changed where it is. So nobody may keep a part of a value (a
struct's `fields`, a set's `items`) apart from the value itself.

`==` is structural; maps and sets ignore order. What is ordered has `<`, so keys of maps and members
of sets can be hashed. A comparison never mixes types: the checker saw to that.

Decimals follow `DECIMALS`: 34 digits, half-even, the range of decimal128, and raise where a result
would leave it. The interpreter runs natives and arithmetic under that context.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import FlowError

if TYPE_CHECKING:
    from qoqi.vm.bytecode.chunk import Term
    from qoqi.vm.types import TypeInfo

DECIMALS: Final = decimal.Context(
    prec=34,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=-6143,
    Emax=6144,
    capitals=1,
    clamp=0,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)

INT_DIGITS: Final = 4096
INT_LIMIT: Final = 10**INT_DIGITS
DURATION_LIMIT: Final = 10**15
DAY: Final = 86_400_000
FIRST_DATE: Final = -719_162  # 0001-01-01
LAST_DATE: Final = 2_932_896  # 9999-12-31
FIRST_TIME: Final = FIRST_DATE * DAY
LAST_TIME: Final = (LAST_DATE + 1) * DAY - 1
TEXT_LIMIT: Final = 16 * 1024 * 1024
LIST_LIMIT: Final = 4 * 1024 * 1024
DEPTH_LIMIT: Final = 200


class Unset:
    """What an empty slot holds."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset()


@dataclass(slots=True, order=True, unsafe_hash=True)
class Duration:
    ms: int

    def __add__(self, other: Duration) -> Duration:
        return duration(self.ms + other.ms)

    def __sub__(self, other: Duration) -> Duration:
        return duration(self.ms - other.ms)

    def __neg__(self) -> Duration:
        return Duration(-self.ms)

    def __mul__(self, other: int | Decimal) -> Duration:
        if isinstance(other, Decimal):
            return duration(int((Decimal(self.ms) * other).to_integral_value()))
        return duration(self.ms * other)

    __rmul__ = __mul__

    def __truediv__(self, other: int | Duration) -> Duration | Decimal:
        if isinstance(other, Duration):
            return Decimal(self.ms) / Decimal(other.ms)
        return Duration(divide_toward_zero(self.ms, other))


@dataclass(slots=True, order=True, unsafe_hash=True)
class Time:
    """Milliseconds since 1970-01-01T00:00Z."""

    ms: int

    def __add__(self, other: Duration) -> Time:
        return time(self.ms + other.ms)

    def __sub__(self, other: Duration | Time) -> Time | Duration:
        if isinstance(other, Time):
            return duration(self.ms - other.ms)
        return time(self.ms - other.ms)


@dataclass(slots=True, order=True, unsafe_hash=True)
class Date:
    """Days since 1970-01-01."""

    days: int

    def __sub__(self, other: Date) -> int:
        return self.days - other.days


@dataclass(slots=True, unsafe_hash=True)
class RangeValue:
    low: object
    high: object
    inclusive: bool

    def __contains__(self, value: object) -> bool:
        if value < self.low:  # type: ignore[operator]
            return False
        if self.inclusive:
            return not value > self.high  # type: ignore[operator]
        return value < self.high  # type: ignore[operator,no-any-return]


@dataclass(slots=True)
class SetValue:
    """A set: the keys of a dict, which keeps their order and compares without it."""

    items: dict[object, None]

    def __contains__(self, value: object) -> bool:
        return value in self.items

    def __hash__(self) -> int:
        return hash(frozenset(self.items))


@dataclass(slots=True)
class Struct:
    type: TypeInfo
    fields: list[object]

    def __hash__(self) -> int:
        return hash((id(self.type), tuple(self.fields)))


class Variant:
    """A value of an enum. Only unit enums are ordered, by declaration."""

    __slots__ = ("index", "payload", "type")

    def __init__(self, of: TypeInfo, index: int, payload: tuple[object, ...]) -> None:
        self.type = of
        self.index = index
        self.payload = payload

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Variant)
            and self.index == other.index
            and self.type is other.type
            and self.payload == other.payload
        )

    def __hash__(self) -> int:
        return hash((self.index, self.payload))

    def __lt__(self, other: Variant) -> bool:
        return self.index < other.index

    def __le__(self, other: Variant) -> bool:
        return self.index <= other.index

    def __gt__(self, other: Variant) -> bool:
        return self.index > other.index

    def __ge__(self, other: Variant) -> bool:
        return self.index >= other.index

    def __repr__(self) -> str:
        return f"{self.type.name}.{self.name}{self.payload!r}"

    @property
    def name(self) -> str:
        return self.type.variants[self.index].name


@dataclass(slots=True, unsafe_hash=True)
class Closure:
    function: int
    captured: tuple[object, ...]


@dataclass(slots=True, order=True, unsafe_hash=True)
class InstanceValue:
    flow: str
    name: str
    birth: str


@dataclass(slots=True, unsafe_hash=True)
class TaskValue:
    name: str


@dataclass(slots=True, unsafe_hash=True)
class ChannelValue:
    number: int


@dataclass(slots=True, unsafe_hash=True)
class RequestValue:
    """A message of a channel that answers: where it came in, under which number, what was sent."""

    channel: int
    seq: int
    value: object


@dataclass(slots=True, unsafe_hash=True)
class AskValue:
    """What `ask` gave: the key under which its answer will come."""

    key: str


@dataclass(slots=True, unsafe_hash=True)
class UndoValue:
    """A call put off: a step's name or `send`, and what it will be given."""

    target: str
    args: tuple[object, ...]


@dataclass(slots=True, unsafe_hash=True)
class TermValue:
    """A type handed to a native or an operation: its number among the chunk's terms, and itself."""

    number: int
    term: Term


def divide_toward_zero(a: int, b: int) -> int:
    """Integer division toward zero; R0003."""
    if b == 0:
        raise FlowError("R0003", "division by zero")
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder(a: int, b: int) -> int:
    """What `divide_toward_zero` leaves: it has the sign of `a`."""
    if b == 0:
        raise FlowError("R0003", "division by zero")
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def checked_int(value: int) -> int:
    if not -INT_LIMIT < value < INT_LIMIT:
        raise FlowError("R0005", f"an Int of more than {INT_DIGITS:,} digits")
    return value


def checked_float(value: float) -> float:
    if value - value != 0.0:  # infinities and NaN are the floats of which this is not zero
        raise FlowError("R0005", "a Float that is not a finite number")
    return value


def checked_text(text: str) -> str:
    if len(text) > TEXT_LIMIT:
        raise FlowError("R0008", f"a String of more than {TEXT_LIMIT:,} code points")
    return text


def checked_list(items: list[object]) -> list[object]:
    if len(items) > LIST_LIMIT:
        raise FlowError("R0008", f"a List of more than {LIST_LIMIT:,} items")
    return items


def duration(ms: int) -> Duration:
    if not -DURATION_LIMIT <= ms <= DURATION_LIMIT:
        raise FlowError("R0005", "a Duration of more than 31,000 years")
    return Duration(ms)


def time(ms: int) -> Time:
    if not FIRST_TIME <= ms <= LAST_TIME:
        raise FlowError("R0005", "a Time outside the years 1 to 9999")
    return Time(ms)


def date(days: int) -> Date:
    if not FIRST_DATE <= days <= LAST_DATE:
        raise FlowError("R0005", "a Date outside the years 1 to 9999")
    return Date(days)


def to_decimal(value: int) -> Decimal:
    """An Int as a Decimal, exactly; R0005 where it has more than 34 digits."""
    number = Decimal(value)
    rounded = DECIMALS.plus(number)
    if rounded != number:
        raise FlowError("R0005", "an Int of more than 34 digits is no Decimal")
    return rounded


def to_float(value: int | Decimal) -> float:
    try:
        return checked_float(float(value))
    except OverflowError:
        raise FlowError("R0005", "a Float that is not a finite number") from None
