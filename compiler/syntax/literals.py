r"""What literals mean: numbers, durations, dates, times and texts.

Each function takes a token's text and gives the value, or raises `LiteralError` with the code, what
is wrong and where in the token it is. The builder turns that into a diagnostic and goes on with a
value that does no harm.

Texts. An escape is `\n`, `\t`, `\r`, `\\`, `\"` or `\u{…}` with one to six hexadecimal digits. Text
between `\"\"\"` loses its first and last line where they are blank, and the indentation that all
other lines which are not blank have in common; blank lines become empty, and a line ends in `\n`
however the file has it. `#"…"#` means what stands between, as it stands.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from qoqi.vm.dataclass import dataclass

MAX_DIGITS = 4096
MAX_DECIMAL_DIGITS = 34
MAX_MILLIS = 2**63 - 1

_MILLIS = {
    "w": 7 * 24 * 3_600_000,
    "d": 24 * 3_600_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
_UNITS = tuple(_MILLIS)
_INT = re.compile(r"[0-9]+(?:_[0-9]+)*\Z").match
_DECIMAL = re.compile(r"[0-9]+(?:_[0-9]+)*\.[0-9]+(?:_[0-9]+)*\Z").match
_DURATION = re.compile(r"(?:[0-9]+(?:ms|[smhdw]))+\Z").match
_PARTS = re.compile(r"([0-9]+)(ms|[smhdw])").findall
_MOMENT = re.compile(
    r"@(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?(Z|[+-]\d\d:\d\d)?)?\Z",
    re.ASCII,
).match
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f_]*)\}|([\s\S]?))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"'}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class LiteralError(Exception):
    """`start` and `end` count from the start of the token; `end` -1 is the token's end."""

    code: str
    message: str
    note: str = ""
    start: int = 0
    end: int = -1


def number_kind(text: str) -> str:
    """INT, DECIMAL or DURATION, for what is written wrongly too."""
    if _INT(text):
        return "INT"
    if _DECIMAL(text):
        return "DECIMAL"
    if text[-1] in "smhdw":
        return "DURATION"
    return "DECIMAL" if "." in text else "INT"


def int_value(text: str) -> int:
    if not _INT(text):
        raise LiteralError("E0104", f"`{text}` is no number", _number_note(text))
    digits = text.replace("_", "")
    if len(digits) > MAX_DIGITS:
        raise LiteralError("E0104", f"this number has more than {MAX_DIGITS:,} digits")
    return int(digits)


def decimal_value(text: str) -> Decimal:
    if not _DECIMAL(text):
        raise LiteralError("E0104", f"`{text}` is no number", _number_note(text))
    digits = text.replace("_", "")
    if len(digits.replace(".", "").lstrip("0")) > MAX_DECIMAL_DIGITS:
        raise LiteralError(
            "E0104",
            f"this number has more digits than the {MAX_DECIMAL_DIGITS} that a Decimal keeps",
        )
    return Decimal(digits)


def _number_note(text: str) -> str:
    if text[:2].lower() in ("0x", "0b", "0o"):
        return "numbers are written in decimal digits"
    if re.fullmatch(r"[0-9.]+[eE][0-9]+", text):
        return "there are no exponents: write all digits, `1_000_000`"
    return "digits may be grouped by single `_`; a name cannot start with a digit"


def duration_millis(text: str) -> int:
    """`1h30m` in milliseconds."""
    if not _DURATION(text):
        raise LiteralError(
            "E0105",
            f"`{text}` is no duration",
            "whole numbers with units, largest first: `1w 2d 3h 4m 5s 6ms`, written together",
        )
    total = 0
    last = -1
    for count, unit in _PARTS(text):
        place = _UNITS.index(unit)
        if place <= last:
            raise LiteralError(
                "E0105",
                f"the units of `{text}` do not go from the largest to the smallest, each once",
            )
        last = place
        total = MAX_MILLIS + 1 if len(count) > 20 else total + int(count) * _MILLIS[unit]
        if total > MAX_MILLIS:
            raise LiteralError("E0105", "this duration is too long to be counted")
    return total


def date_days(text: str) -> int:
    """`@2026-11-30` in days since 1970-01-01."""
    match = _MOMENT(text)
    if match is None or match[4] is not None:
        raise _no_moment(text)
    try:
        return date(int(match[1]), int(match[2]), int(match[3])).toordinal() - 719_163
    except ValueError:
        raise LiteralError("E0106", f"there is no day `{text}`") from None


def time_millis(text: str) -> int:
    """`@2026-11-30T08:00Z` in milliseconds since the epoch."""
    match = _MOMENT(text)
    if match is None or match[4] is None:
        raise _no_moment(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if zone is None:
        raise LiteralError(
            "E0106", f"`{text}` has no zone", "end it with `Z` for UTC, or with `+01:00`"
        )
    millis = int((fraction or "0").ljust(3, "0"))
    try:
        moment = datetime(
            int(year),
            int(month),
            int(day),
            int(hour),
            int(minute),
            int(second or 0),
            millis * 1000,
            tzinfo=UTC,
        )
    except ValueError:
        raise LiteralError("E0106", f"there is no time `{text}`") from None
    if zone != "Z" and (int(zone[1:3]) > 23 or int(zone[4:]) > 59):
        raise LiteralError("E0106", f"there is no zone `{zone}`")
    offset = timedelta()
    if zone != "Z":
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
        offset = -offset if zone[0] == "-" else offset
    return (moment - _EPOCH - offset) // timedelta(milliseconds=1)


def _no_moment(text: str) -> LiteralError:
    return LiteralError(
        "E0106",
        f"`{text}` is no date or time",
        "a date is `@2026-11-30`, a time `@2026-11-30T08:00Z`",
    )


def texts(pieces: list[str]) -> list[str]:
    """The pieces of one text as tokens, STRING or START MIDDLE… END, without their quotes."""
    first = pieces[0]
    if first.startswith("#"):
        return [first[2:-2] if first.endswith('"#') and len(first) > 3 else first[2:]]
    block = first.startswith('"""')
    inner: list[str] = []
    for i, piece in enumerate(pieces):
        start = (3 if block else 1) if i == 0 else 1
        if i < len(pieces) - 1:
            inner.append(piece[start:-2])
            continue
        quote = '"""' if block else piece[:1] if i == 0 else '"'
        closed = len(piece) >= start + len(quote) and piece.endswith(quote)
        inner.append(piece[start : len(piece) - len(quote)] if closed else piece[start:])
    return _without_indent(inner) if block else inner


def _without_indent(pieces: list[str]) -> list[str]:
    """The pieces of one block text without the indentation that their lines share."""
    lines = [piece.replace("\r\n", "\n").split("\n") for piece in pieces]
    last = len(pieces) - 1
    # The first line of a later piece goes on after an interpolation: its space is text.
    starts = [(i, j) for i, piece in enumerate(lines) for j in range(len(piece)) if j > 0 or i == 0]

    def blank(i: int, j: int) -> bool:
        ends_here = j < len(lines[i]) - 1 or i == last
        return ends_here and not lines[i][j].strip(" \t")

    opening_is_blank = blank(0, 0) and len(lines[0]) > 1
    indents = [
        lines[i][j][: len(lines[i][j]) - len(lines[i][j].lstrip(" \t"))]
        for i, j in starts
        if not blank(i, j) and (i, j) != (0, 0)
    ]
    common = min(indents, key=len) if indents else ""
    while not all(indent.startswith(common) for indent in indents):
        common = common[:-1]
    for i, j in starts:
        if (i, j) != (0, 0):
            lines[i][j] = "" if blank(i, j) else lines[i][j][len(common) :]
    if opening_is_blank:
        del lines[0][0]
    if len(lines[last]) > 1 and not lines[last][-1]:
        del lines[last][-1]
    return ["\n".join(piece) for piece in lines]


def unescape(text: str) -> str:
    """A piece of text with its escapes resolved; an unknown one raises, with its place."""
    if "\\" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        digits, letter = match.groups()
        if digits is None:
            if letter in _ESCAPED:
                return _ESCAPED[letter]
            raise LiteralError(
                "E0103",
                f"there is no escape `{match[0]}`",
                r"escapes are `\n`, `\t`, `\r`, `\\`, `\"`, `\u{1F600}` and `\(…)`",
                match.start(),
                match.end(),
            )
        code = int(digits, 16) if 0 < len(digits) <= 6 and "_" not in digits else -1
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise LiteralError(
                "E0103",
                f"`{match[0]}` is no character",
                "one to six hexadecimal digits, up to 10FFFF and without the surrogates",
                match.start(),
                match.end(),
            )
        return chr(code)

    return _ESCAPE.sub(value, text)
