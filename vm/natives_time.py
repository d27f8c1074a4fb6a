"""Natives of Duration, Time, Date and Weekday, and the module `time`: zones, formats, cron.

A zone is a name of the IANA data base, `Europe/Paris`; without one it is UTC. Where a zone skips a
moment of the day (clocks go forward) `Date.at` gives the moment as far behind the gap; where a
moment comes twice it gives the first.

A format is text with letters that stand for parts: `yyyy MM dd HH mm ss SSS`, `MMM` and `MMMM` (the
month's name), `EEE` and `EEEE` (the day's), `d M H` without zeros, `XXX` (the offset); text in '…'
is itself.

A cron expression has five parts: minute, hour, day of the month, month, day of the week (0 and 7
are Sunday). A part is `*`, a number or name, `a-b`, `a,b`, and any of them with `/step`. If both
days are narrowed, either will do. `@hourly @daily @weekly @monthly @yearly` are short for the
usual ones.
"""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Callable
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.text import date_text, duration_text, parse_date, parse_duration, parse_time, time_text
from qoqi.vm.values import DAY, Date, Duration, Time, Variant, date, duration, time

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_EPOCH_ORDINAL: Final = datetime.date(1970, 1, 1).toordinal()
_WEEKDAYS: Final = (
    *("Monday", "Tuesday", "Wednesday", "Thursday"),
    *("Friday", "Saturday", "Sunday"),
)
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_FORMAT: Final = re.compile(
    r"yyyy|MMMM|MMM|MM|M|dd|d|EEEE|EEE|HH|H|mm|ss|SSS|XXX|'(?:[^']|'')*'|[^A-Za-z']|(.)", re.DOTALL
)


# --- zones ------------------------------------------------------------------------------------


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise FlowError("R0004", f"no time zone has the name {name[:60]}") from None


def _local(moment: Time, zone: str) -> datetime.datetime:
    try:
        return (_EPOCH + datetime.timedelta(milliseconds=moment.ms)).astimezone(_zone(zone))
    except OverflowError:
        raise FlowError("R0005", "a Time outside the years 1 to 9999") from None


def _moment(local: datetime.datetime) -> Time:
    try:
        since = local.astimezone(datetime.UTC) - _EPOCH
    except OverflowError:
        raise FlowError("R0005", "a Time outside the years 1 to 9999") from None
    return time(since // datetime.timedelta(milliseconds=1))


def _day(of: Date) -> datetime.date:
    return datetime.date.fromordinal(of.days + _EPOCH_ORDINAL)


def _date(day: datetime.date) -> Date:
    return date(day.toordinal() - _EPOCH_ORDINAL)


# --- Date -------------------------------------------------------------------------------------


def date_of(moment: Time, zone: str = "UTC") -> Date:
    """The day it is at that moment, in the zone."""
    return _date(_local(moment, zone).date())


def date_make(context: Context, year: int, month: int, day: int) -> Variant:
    try:
        return context.types.some(_date(datetime.date(year, month, day)))
    except (ValueError, OverflowError):
        return context.types.none()


def add_days(of: Date, count: int) -> Date:
    return date(of.days + count)


def add_months(of: Date, count: int) -> Date:
    """The same day of another month; its last one where that has fewer days."""
    day = _day(of)
    year, month = divmod(day.year * 12 + day.month - 1 + count, 12)
    if not 1 <= year <= 9999:
        raise FlowError("R0005", "a Date outside the years 1 to 9999")
    last = calendar.monthrange(year, month + 1)[1]
    return _date(datetime.date(year, month + 1, min(day.day, last)))


def date_at(of: Date, past_midnight: Duration, zone: str = "UTC") -> Time:
    """The moment at which the clocks of the zone show that time on that day."""
    if not 0 <= past_midnight.ms < DAY:
        raise FlowError("R0005", f"{duration_text(past_midnight)} is no time of a day")
    start = datetime.datetime.combine(_day(of), datetime.time())
    shown = start + datetime.timedelta(milliseconds=past_midnight.ms)
    return _moment(shown.replace(tzinfo=_zone(zone)))


def weekday(context: Context, of: Date) -> Variant:
    return context.types.enum("Weekday").variant(_WEEKDAYS[_day(of).weekday()])


# --- Time -------------------------------------------------------------------------------------


def time_parse(text: str) -> Time:
    found = parse_time(text)
    if found is None:
        raise FlowError("R0004", f"no time: {text[:60]}")
    return found


def time_try_parse(context: Context, text: str) -> Variant:
    found = parse_time(text)
    return context.types.err(f"no time: {text[:60]}") if found is None else context.types.ok(found)


def time_format(moment: Time, pattern: str, zone: str = "UTC") -> str:
    return _formatted(_local(moment, zone), pattern)


def date_format(of: Date, pattern: str) -> str:
    return _formatted(datetime.datetime.combine(_day(of), datetime.time()), pattern)


def _formatted(at: datetime.datetime, pattern: str) -> str:
    def part(found: re.Match[str]) -> str:
        letters = found[0]
        if found[1]:
            raise FlowError("R0004", f"a format has no letter {found[1]}")
        if letters.startswith("'"):
            return letters[1:-1].replace("''", "'") or "'"
        return _LETTERS[letters](at) if letters in _LETTERS else letters

    return _FORMAT.sub(part, pattern)


def _offset(at: datetime.datetime) -> str:
    shift = at.utcoffset() or datetime.timedelta()
    minutes = int(shift.total_seconds()) // 60
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


_LETTERS: Final[dict[str, Callable[[datetime.datetime], str]]] = {
    "yyyy": lambda at: f"{at.year:04}",
    "MMMM": lambda at: _MONTHS[at.month - 1],
    "MMM": lambda at: _MONTHS[at.month - 1][:3],
    "MM": lambda at: f"{at.month:02}",
    "M": lambda at: str(at.month),
    "dd": lambda at: f"{at.day:02}",
    "d": lambda at: str(at.day),
    "EEEE": lambda at: _WEEKDAYS[at.weekday()],
    "EEE": lambda at: _WEEKDAYS[at.weekday()][:3],
    "HH": lambda at: f"{at.hour:02}",
    "H": lambda at: str(at.hour),
    "mm": lambda at: f"{at.minute:02}",
    "ss": lambda at: f"{at.second:02}",
    "SSS": lambda at: f"{at.microsecond // 1000:03}",
    "XXX": _offset,
}


# --- cron -------------------------------------------------------------------------------------

_SHORT: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_CRON_PART: Final = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/(\d{1,4}))?", re.ASCII)
_MONTH_NUMBERS: Final = {name[:3].lower(): at + 1 for at, name in enumerate(_MONTHS)}
_DAY_NUMBERS: Final = {name[:3].lower(): (at + 1) % 7 for at, name in enumerate(_WEEKDAYS)}
_CRON_DAYS: Final = 366 * 8 + 1  # a 29th of February is at most eight years off


class _CronError(Exception):
    pass


def cron_next(context: Context, expression: str, after: Time, zone: str = "UTC") -> Variant:
    """The first moment after `after` that the expression names; Err says what is wrong with it."""
    try:
        return context.types.ok(_next(expression, after, zone))
    except _CronError as error:
        return context.types.err(str(error))


def _next(expression: str, after: Time, zone: str) -> Time:
    parts = _SHORT.get(expression.strip(), expression).split()
    if len(parts) != 5:
        raise _CronError(f"a cron expression has five parts, this one {len(parts)}")
    minutes = _cron_part(parts[0], 0, 59, {})
    hours = _cron_part(parts[1], 0, 23, {})
    days = _cron_part(parts[2], 1, 31, {})
    months = _cron_part(parts[3], 1, 12, _MONTH_NUMBERS)
    weekdays = {number % 7 for number in _cron_part(parts[4], 0, 7, _DAY_NUMBERS)}
    either = not parts[2].startswith("*") and not parts[4].startswith("*")
    day = _local(after, zone).date()
    for _ in range(_CRON_DAYS):
        in_month = day.day in days
        in_week = (day.weekday() + 1) % 7 in weekdays
        if day.month in months and (in_month or in_week if either else in_month and in_week):
            found = _first_of(day, hours, minutes, after, zone)
            if found is not None:
                return found
        if day == datetime.date.max:
            break
        day += datetime.timedelta(days=1)
    raise _CronError(f"no day fits {expression.strip()[:60]}")


def _first_of(
    day: datetime.date, hours: set[int], minutes: set[int], after: Time, zone: str
) -> Time | None:
    found: Time | None = None
    of = _date(day)
    for hour in sorted(hours):
        if date_at(of, Duration(hour * 3_600_000 + 59 * 60_000), zone) <= after:
            continue  # the whole hour is over
        for minute in sorted(minutes):
            moment = date_at(of, Duration((hour * 60 + minute) * 60_000), zone)
            if moment > after and (found is None or moment < found):
                found = moment
        if found is not None:
            return found
    return None


def _cron_part(text: str, low: int, high: int, words: dict[str, int]) -> set[int]:
    numbers: set[int] = set()
    for piece in text.lower().split(","):
        found = _CRON_PART.fullmatch(piece)
        if found is None:
            raise _CronError(f"no part of a cron expression: {piece[:20]}")
        step = int(found[4] or 1)
        first, last = low, high
        if not found[1]:
            first = _cron_number(found[2], words)
            last = _cron_number(found[3], words) if found[3] else high if found[4] else first
        if step < 1 or not low <= first <= last <= high:
            raise _CronError(f"{piece[:20]} is not in {low} to {high}")
        numbers.update(range(first, last + 1, step))
    return numbers


def _cron_number(text: str, words: dict[str, int]) -> int:
    if text in words:
        return words[text]
    if not text.isdecimal() or len(text) > 4:
        raise _CronError(f"no part of a cron expression: {text[:20]}")
    return int(text)


# --- Duration ---------------------------------------------------------------------------------


def _whole(size: int) -> Callable[[Duration], int]:
    return lambda of: abs(of.ms) // size * (1 if of.ms >= 0 else -1)


def _of(size: int) -> Callable[[int], Duration]:
    return lambda count: duration(count * size)


PURE: Final[dict[str, Callable[..., Any]]] = {
    "Duration.millis": _whole(1),
    "Duration.seconds": _whole(1_000),
    "Duration.minutes": _whole(60_000),
    "Duration.hours": _whole(3_600_000),
    "Duration.days": _whole(DAY),
    "Duration.abs": lambda of: Duration(abs(of.ms)),
    "Duration.ofMillis": _of(1),
    "Duration.ofSeconds": _of(1_000),
    "Duration.ofMinutes": _of(60_000),
    "Duration.ofHours": _of(3_600_000),
    "Duration.ofDays": _of(DAY),
    "Date.of": date_of,
    "Date.addDays": add_days,
    "Date.addMonths": add_months,
    "Date.at": date_at,
    "Date.year": lambda of: _day(of).year,
    "Date.month": lambda of: _day(of).month,
    "Date.day": lambda of: _day(of).day,
    "Date.format": date_format,
    "Date.text": date_text,
    "Time.millis": lambda of: of.ms,
    "Time.ofMillis": time,
    "Time.format": time_format,
    "Time.text": time_text,
    "Time.date": date_of,
    "time.parse": time_parse,
    "time.format": time_format,
}

TYPED: Final[dict[str, Callable[..., Any]]] = {
    "Duration.parse": lambda context, text: context.types.option_of(parse_duration(text)),
    "Date.parse": lambda context, text: context.types.option_of(parse_date(text)),
    "Date.make": date_make,
    "Date.weekday": weekday,
    "Time.parse": lambda context, text: context.types.option_of(parse_time(text)),
    "time.tryParse": time_try_parse,
    "time.cron.next": cron_next,
    "cron.next": cron_next,
}
