"""What literals mean."""

from __future__ import annotations

from decimal import Decimal

import pytest

from qoqi.compiler.syntax import ast, literals
from qoqi.compiler.syntax.parser import parse_expression

HOUR = 3_600_000


def parts(text: str) -> tuple[object, ...]:
    literal, problems = parse_expression(text)
    assert problems == ()
    assert isinstance(literal, ast.StringLit)
    return tuple(
        part if isinstance(part, str) else part.name if isinstance(part, ast.Name) else part
        for part in literal.parts
    )


def test_numbers() -> None:
    assert literals.int_value("1_000_000") == 1_000_000
    assert literals.int_value("007") == 7
    assert str(literals.decimal_value("12.50")) == "12.50"
    assert literals.decimal_value("0.000_1") == Decimal("0.0001")
    assert literals.int_value("9" * 4096) == 10**4096 - 1


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("15m", 15 * 60_000),
        ("1h30m", HOUR + HOUR // 2),
        ("2d", 48 * HOUR),
        ("1w2d3h4m5s6ms", (9 * 24 + 3) * HOUR + 4 * 60_000 + 5_006),
        ("0s", 0),
    ],
)
def test_durations(text: str, millis: int) -> None:
    assert literals.duration_millis(text) == millis


def test_days_and_times() -> None:
    assert literals.date_days("@1970-01-01") == 0
    assert literals.date_days("@1969-12-31") == -1
    assert literals.date_days("@2026-11-30") == 20_787
    assert literals.time_millis("@1970-01-01T01:00:00.5Z") == HOUR + 500
    assert literals.time_millis("@1970-01-01T01:00+01:00") == 0
    assert literals.time_millis("@1970-01-01T00:00-01:30") == 3 * HOUR // 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1__0", "E0104"),
        ("1_", "E0104"),
        ("0x10", "E0104"),
        ("1e5", "E0104"),
        ("12abc", "E0104"),
        ("9" * 4097, "E0104"),
        ("1." + "3" * 35, "E0104"),
        ("30m1h", "E0105"),
        ("1h1h", "E0105"),
        ("1.5h", "E0105"),
        ("9" * 30 + "w", "E0105"),
        ("@2026-02-30", "E0106"),
        ("@2026-1-1", "E0106"),
        ("@2026-11-30T08:00", "E0106"),
        ("@2026-11-30T25:00Z", "E0106"),
        ("@2026-11-30T08:00+99:00", "E0106"),
        ('"\\q"', "E0103"),
        ('"\\u{110000}"', "E0103"),
        ('"\\u{D800}"', "E0103"),
        ('"\\u{}"', "E0103"),
    ],
)
def test_literals_that_mean_nothing_are_reported_and_parsed(text: str, code: str) -> None:
    value, problems = parse_expression(text)
    assert [problem.code for problem in problems] == [code]
    assert not isinstance(value, ast.ErrorExpr)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('""', ()),
        (r'"a\n\t\r\\\"b"', ('a\n\t\r\\"b',)),
        (r'"\u{1F600}\u{e9}"', ("\U0001f600é",)),
        (r'#"a\n "b" \(c)"#', ('a\\n "b" \\(c)',)),
        (r'"\(a)"', ("a",)),
        (r'"1\(a)2\(b)"', ("1", "a", "2", "b")),
        (r'"\\(a)"', ("\\(a)",)),
        ('"""a"""', ("a",)),
        ('"""\n"""', ()),
        ('"""\n    a\n      b\n\n    c\n    """', ("a\n  b\n\nc",)),
        ('"""\n    a\n"""', ("a",)),
        ('"""\r\n  a\r\n  b\r\n  """', ("a\nb",)),
        ('"""\n  a "b"\n  """', ('a "b"',)),
        ('"""\n    \\(a)\n      \\(b) c\n    """', ("a", "\n  ", "b", " c")),
        ('"""\n\ta\n  b\n"""', ("\ta\n  b",)),
    ],
)
def test_texts(text: str, expected: tuple[object, ...]) -> None:
    assert parts(text) == expected


def test_an_unknown_escape_is_marked_in_its_place() -> None:
    text = '"""\n    one\n    two \\(a) \\q\n    """'
    _, problems = parse_expression(text)
    (problem,) = problems
    head = len("const it = ")
    assert text[problem.span.start - head : problem.span.end - head] == "\\q"
