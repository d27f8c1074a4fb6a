"""Text of the scalars that JSON lacks, both ways, and what `\\(x)` shows.

    Duration  1h30m, 250ms, 0s, -2d       units w d h m s ms are read; w is never written
    Time      2026-01-01T00:00:00Z        with .ms where they are not zero; any offset is read
    Date      2026-11-30
    Decimal   with its scale: 12.50
    Bytes     base64

A parser gives Python's None for text that is not of its kind; callers say what is wrong.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
from decimal import Decimal, InvalidOperation, Overflow
from typing import Final

from qoqi.vm.values import (
    DAY,
    DECIMALS,
    DURATION_LIMIT,
    FIRST_TIME,
    INT_DIGITS,
    LAST_TIME,
    Date,
    Duration,
    Time,
)

_UNITS: Final = (("d", DAY), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1))
_UNIT_MS: Final = {"w": 7 * DAY, **dict(_UNITS)}
_DURATION: Final = re.compile(r"-?(?:[0-9]{1,16}(?:ms|[wdhms]))+", re.ASCII)
_PART: Final = re.compile(r"([0-9]+)(ms|[wdhms])", re.ASCII)
_DATE: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
    r"(?:([Zz])|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,6})?", re.ASCII)
_INT: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()


def duration_text(value: Duration) -> str:
    rest = abs(value.ms)
    if rest == 0:
        return "0s"
    parts = ["-"] if value.ms < 0 else []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


def parse_duration(text: str) -> Duration | None:
    if not _DURATION.fullmatch(text):
        return None
    total = sum(int(count) * _UNIT_MS[unit] for count, unit in _PART.findall(text))
    if total > DURATION_LIMIT:
        return None
    return Duration(-total if text.startswith("-") else total)


def date_text(value: Date) -> str:
    return datetime.date.fromordinal(value.days + _EPOCH_ORDINAL).isoformat()


def parse_date(text: str) -> Date | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    try:
        day = datetime.date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:  # no such day
        return None
    return Date(day.toordinal() - _EPOCH_ORDINAL)


def time_text(value: Time) -> str:
    days, ms = divmod(value.ms, DAY)
    hours, ms = divmod(ms, 3_600_000)
    minutes, ms = divmod(ms, 60_000)
    seconds, ms = divmod(ms, 1_000)
    fraction = f".{ms:03}" if ms else ""
    return f"{date_text(Date(days))}T{hours:02}:{minutes:02}:{seconds:02}{fraction}Z"


def parse_time(text: str) -> Time | None:
    """RFC 3339, seconds optional; what is finer than a millisecond is cut off."""
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    day = parse_date(found[1])
    hours, minutes, seconds = int(found[2]), int(found[3]), int(found[4] or 0)
    ahead_hours, ahead_minutes = int(found[8] or 0), int(found[9] or 0)
    if day is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    if ahead_hours > 23 or ahead_minutes > 59:
        return None
    offset = (ahead_hours * 60 + ahead_minutes) * (-1 if found[7] == "-" else 1)
    ms = int((found[5] or "0").ljust(3, "0")[:3])
    total = day.days * DAY + ((hours * 60 + minutes - offset) * 60 + seconds) * 1000 + ms
    return Time(total) if FIRST_TIME <= total <= LAST_TIME else None


def decimal_text(value: Decimal) -> str:
    """Digits as people write them; an exponent only where they would be a long row of zeros.

    Arithmetic can give a zero below zero, which people do not write.
    """
    if value.is_zero():
        value = value.copy_abs()
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)  # infinities and NaN never enter a value
    if -40 <= exponent <= 0:
        return format(value, "f")
    return str(value)


def parse_decimal(text: str) -> Decimal | None:
    """Exactly: None where it does not fit 34 digits and the range of decimal128."""
    if not _DECIMAL.fullmatch(text):
        return None
    return exact_decimal(Decimal(text))


def exact_decimal(number: Decimal) -> Decimal | None:
    try:
        rounded = DECIMALS.create_decimal(number)
    except (InvalidOperation, Overflow):
        return None
    # Digits after the 34th that are zeros lose nothing; a value squeezed to zero does.
    return rounded if rounded == number else None


def parse_int(text: str) -> int | None:
    if not _INT.fullmatch(text) or len(text.lstrip("+-").lstrip("0")) > INT_DIGITS:
        return None
    sign = -1 if text.startswith("-") else 1
    return sign * int(text.lstrip("+-").lstrip("0") or "0")


def bytes_text(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def parse_bytes(text: str) -> bytes | None:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
