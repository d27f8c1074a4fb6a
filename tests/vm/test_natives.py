"""Natives by subject: values thought out by hand, limits, and what they leave alone."""

from __future__ import annotations

import re
import time as clock
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qoqi.vm.bytecode.codec import ChunkError
from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import parse_json, value_text
from qoqi.vm.natives import bind, mutator, names
from qoqi.vm.pattern import compiled, first_match, full_match
from qoqi.vm.text import parse_date, parse_time
from qoqi.vm.types import Types
from qoqi.vm.values import Date, Duration, RangeValue, SetValue, TermValue, Time, Variant

NATIVE_FN = re.compile(
    r"(?:pub )?native fn (?P<name>[\w.]+)(?:<[^(]*>)?\((?:(?:var )?self: (?P<self>\w+))?"
)

TYPES = Types(())
CONTEXT = Context(TYPES, lambda number: number)
NONE = TYPES.none()


def run(name: str, *args: Any) -> Any:
    return bind(name, len(args), CONTEXT)(*args)


def change(name: str, value: Any, *args: Any) -> Any:
    return mutator(name, len(args), CONTEXT)(value, *args)


def failing(name: str, *args: Any) -> str:
    with pytest.raises(FlowError) as caught:
        run(name, *args)
    return caught.value.code


def some(value: Any) -> Variant:
    return TYPES.some(value)


def at(text: str) -> Time:
    found = parse_time(text)
    assert found is not None
    return found


def day(text: str) -> Date:
    found = parse_date(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("List.len", ([1, 2],), 2),
        ("List.concat", ([1], [2]), [1, 2]),
        ("List.take", ([1, 2, 3], 2), [1, 2]),
        ("List.take", ([1, 2, 3], -1), []),
        ("List.drop", ([1, 2, 3], 5), []),
        ("List.takeLast", ([1, 2, 3], 2), [2, 3]),
        ("List.takeLast", ([1, 2, 3], 0), []),
        ("List.first", ([],), NONE),
        ("List.last", ([1, 2],), some(2)),
        ("List.reversed", ([1, 2],), [2, 1]),
        ("List.indexOf", (["a", "b"], "b"), some(1)),
        ("List.indexOf", (["a"], "b"), NONE),
        ("List.join", (["a", 1, Duration(1000)], ", "), "a, 1, 1s"),
        ("List.toSet", ([2, 1, 2],), SetValue({2: None, 1: None})),
        ("List.unique", ([[1], [2], [1]],), [[1], [2]]),
        ("List.sorted", ([Decimal(2), Decimal("1.5")],), [Decimal("1.5"), Decimal(2)]),
        ("List.sortedByKeys", (["a", "b", "c"], [2, 1, 1]), ["b", "c", "a"]),
        ("List.sortedByKeys", (["a", "b", "c"], [1, 2, 2], True), ["b", "c", "a"]),
        ("List.groupedByKeys", ([1, 2, 3], ["odd", "even", "odd"]), {"odd": [1, 3], "even": [2]}),
        ("List.sum", ([1, 2],), 3),
        ("List.sum", ([], Decimal(0)), Decimal(0)),
        ("List.zip", ([1, 2], ["a"]), [(1, "a")]),
        ("List.enumerate", (["a"],), [(0, "a")]),
        ("List.chunks", ([1, 2, 3], 2), [[1, 2], [3]]),
        ("List.max", ([1, 3, 2],), some(3)),
        ("Map.get", ({"a": 1}, "a"), some(1)),
        ("Map.get", ({"a": 1}, "b"), NONE),
        ("Map.entries", ({"a": 1},), [("a", 1)]),
        ("Map.merge", ({"a": 1}, {"a": 2, "b": 3}), {"a": 2, "b": 3}),
        ("Set.union", (SetValue({1: None}), SetValue({2: None})), SetValue({1: None, 2: None})),
        ("Set.minus", (SetValue({1: None, 2: None}), SetValue({2: None})), SetValue({1: None})),
        ("Set.intersect", (SetValue({1: None}), SetValue({2: None})), SetValue({})),
        ("Range.toList", (RangeValue(1, 3, True),), [1, 2, 3]),
        ("min", (2, 1), 1),
        ("max", (Time(1), Time(2)), Time(2)),
        ("String.split", ("a,b", ","), ["a", "b"]),
        ("String.split", ("ab", ""), ["a", "b"]),
        ("String.lines", ("a\r\nb\n",), ["a", "b"]),
        ("String.trim", (" a ",), "a"),
        ("String.indexOf", ("héllo", "l"), some(2)),
        ("String.padLeft", ("7", 3, "0"), "007"),
        ("String.padRight", ("ab", 5, "xy"), "abxyx"),
        ("String.padLeft", ("abc", 2), "abc"),
        ("String.repeat", ("ab", 2), "abab"),
        ("String.replace", ("aXbX", "X", "-"), "a-b-"),
        ("Int.parse", ("-12",), some(-12)),
        ("Int.parse", ("1_0",), NONE),
        ("Int.parse", ("٣",), NONE),
        ("Int.parse", ("1" * 5000,), NONE),
        ("Decimal.parse", ("12.50",), some(Decimal("12.50"))),
        ("Decimal.parse", ("Infinity",), NONE),
        ("Decimal.parse", ("1" * 35,), NONE),
        ("Float.parse", ("1e400",), NONE),
        ("Int.pow", (2, 10), 1024),
        ("Int.clamp", (5, 1, 3), 3),
        ("Float.toDecimal", (0.1,), Decimal("0.1")),
        ("math.sqrt", (2.25,), 1.5),
        ("crypto.sha256", ("abc",),
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("crypto.hmac", ("key", "The quick brown fox jumps over the lazy dog"),
         "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8"),
        ("text.base64Encode", ("hi",), "aGk="),
        ("text.base64Decode", ("aGk=",), some("hi")),
        ("text.base64Decode", ("?",), NONE),
        ("text.urlEncode", ("a b/é",), "a%20b%2F%C3%A9"),
        ("text.urlDecode", ("a%20b%2F%C3%A9",), "a b/é"),
    ],
)  # fmt: skip
def test_natives(name: str, args: tuple[Any, ...], result: Any) -> None:
    found = run(name, *args)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("List.chunks", ([1], 0), "R0001"),
        ("Int.pow", (10, 5000), "R0005"),
        ("Int.pow", (2, -1), "R0005"),
        ("Decimal.pow", (Decimal(0), -1), "R0003"),
        ("Decimal.toInt", (Decimal("1e5000"),), "R0005"),
        ("math.sqrt", (-1.0,), "R0005"),
        ("math.exp", (1e9,), "R0005"),
        ("math.pow", (0.0, -1.0), "R0005"),
        ("String.repeat", ("ab", 10**9), "R0008"),
        ("String.padLeft", ("", 10**9), "R0008"),
        ("String.replace", ("a" * 10_000, "a", "b" * 10_000), "R0008"),
        ("Range.toList", (RangeValue(0, 10**12, False),), "R0008"),
        ("time.parse", ("noon",), "R0004"),
        ("Date.of", (Time(0), "Mars/Base"), "R0004"),
        ("Date.of", (Time(0), "../../etc/passwd"), "R0004"),
        ("Date.addDays", (Date(0), 10**9), "R0005"),
        ("Date.at", (Date(0), Duration(86_400_000)), "R0005"),
        ("time.format", (Time(0), "qq"), "R0004"),
        ("json.parse", ("{",), "R0004"),
        ("fail", ("no",), "R0001"),
    ],
)
def test_natives_that_fail(name: str, args: tuple[Any, ...], code: str) -> None:
    assert failing(name, *args) == code


def test_natives_that_change_a_value() -> None:
    assert change("List.append", [1], 2) == ((), [1, 2])
    assert change("List.insert", [1, 2], 1, 9) == ((), [1, 9, 2])
    assert change("List.remove", [1, 2], 0) == (1, [2])
    assert change("Map.remove", {"a": 1}, "a") == (some(1), {})
    assert change("Map.remove", {"a": 1}, "b") == (NONE, {"a": 1})
    assert change("Set.add", SetValue({}), 1) == (True, SetValue({1: None}))
    assert change("Set.remove", SetValue({1: None}), 2) == (False, SetValue({1: None}))
    with pytest.raises(FlowError):
        change("List.remove", [1], 1)
    with pytest.raises(FlowError):
        change("List.insert", [1], 3, 0)


def test_what_is_no_native_is_refused() -> None:
    with pytest.raises(ChunkError, match="no native nope"):
        bind("nope", 0, CONTEXT)
    with pytest.raises(ChunkError, match="does not take 2 arguments"):
        bind("List.len", 2, CONTEXT)


def test_each_native_can_be_bound() -> None:
    """A name is of one table, and its function has a number of arguments that can be told."""
    for name in names():
        bound = 0
        for count in range(4):
            for binding in (bind, mutator):
                try:
                    binding(name, count, CONTEXT)
                except ChunkError:
                    continue
                bound += 1
        assert bound >= 1, name


# --- decimals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        ("2.345", 2, "2.34"),
        ("2.355", 2, "2.36"),
        ("2", 2, "2.00"),
        ("-0.5", 0, "0"),
        ("1250", -2, "1200"),
        ("1350", -2, "1400"),
    ],
)
def test_decimals_round_half_even_and_keep_the_places(value: str, places: int, text: str) -> None:
    rounded = run("Decimal.round", Decimal(value), places)
    assert run("data.display", rounded) == text


def test_floor_ceil_and_format() -> None:
    assert str(run("Decimal.floor", Decimal("-1.5"))) == "-2"
    assert str(run("Decimal.ceil", Decimal("1.2"))) == "2"
    assert run("Decimal.format", Decimal("1234.5"), 2) == "1234.50"


# --- time -------------------------------------------------------------------------------------

PARIS = "Europe/Paris"


def test_days_and_months() -> None:
    assert run("Date.of", at("2026-03-28T23:30:00Z"), PARIS) == day("2026-03-29")
    assert run("Date.addMonths", day("2026-01-31"), 1) == day("2026-02-28")
    assert run("Date.addMonths", day("2024-03-31"), -1) == day("2024-02-29")
    assert run("Date.weekday", day("2026-11-30")).name == "Monday"
    assert run("Date.parse", "2026-02-30") == NONE
    assert run("Duration.hours", Duration(-5_400_000)) == -1


@pytest.mark.parametrize(
    ("of", "past_midnight", "moment"),
    [
        ("2026-11-30", 34_200_000, "2026-11-30T08:30:00Z"),
        # 02:30 does not exist on that day: the clocks show 03:30, half an hour behind the gap.
        ("2026-03-29", 9_000_000, "2026-03-29T01:30:00Z"),
        # 02:30 comes twice on that day: the first, in summer time.
        ("2026-10-25", 9_000_000, "2026-10-25T00:30:00Z"),
    ],
)
def test_a_time_of_a_day_in_a_zone(of: str, past_midnight: int, moment: str) -> None:
    assert run("Date.at", day(of), Duration(past_midnight), PARIS) == at(moment)


def test_formats() -> None:
    moment = at("2026-11-30T08:05:03.042Z")
    pattern = "EEEE, d MMMM yyyy 'at' HH:mm:ss.SSS XXX"
    shown = run("time.format", moment, pattern, PARIS)
    assert shown == "Monday, 30 November 2026 at 09:05:03.042 +01:00"


@pytest.mark.parametrize(
    ("expression", "after", "zone", "moment"),
    [
        ("*/15 * * * *", "2026-01-01T00:00:00Z", "UTC", "2026-01-01T00:15:00Z"),
        ("0 9 * * mon-fri", "2026-11-27T09:00:00Z", "UTC", "2026-11-30T09:00:00Z"),
        ("30 2 * * *", "2026-03-28T12:00:00Z", PARIS, "2026-03-29T01:30:00Z"),
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", "UTC", "2028-02-29T00:00:00Z"),
        ("0 0 13 * 5", "2026-01-01T00:00:00Z", "UTC", "2026-01-02T00:00:00Z"),
        ("59 23 31 12 *", "2026-12-31T23:59:00Z", "UTC", "2027-12-31T23:59:00Z"),
        ("@daily", "2026-01-01T00:00:00Z", PARIS, "2026-01-01T23:00:00Z"),
        ("0 0 * * 7", "2026-11-30T00:00:00Z", "UTC", "2026-12-06T00:00:00Z"),
    ],
)
def test_cron(expression: str, after: str, zone: str, moment: str) -> None:
    assert run("time.cron.next", expression, at(after), zone) == TYPES.ok(at(moment))


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "60 * * * *", "* * 0 * *", "a * * * *", "*/0 * * * *", "5-1 * * * *",
     "0 0 31 2 *", "1,,2 * * * *"],
)  # fmt: skip
def test_what_is_no_cron_expression_is_an_err(expression: str) -> None:
    result = run("time.cron.next", expression, at("2026-01-01T00:00:00Z"), "UTC")
    assert result.name == "Err"


# --- json -------------------------------------------------------------------------------------


def test_paths_into_json() -> None:
    json = run("json.parse", '{"rows":[{"ts":1},{"ts":2}],"a b":{"c":null}}')
    assert value_text(run("Json.at", json, "rows[1].ts")) == "2"
    assert value_text(run("Json.at", json, '["a b"].c')) == "null"
    assert run("Json.at", json, "rows[2].ts") == NONE
    assert run("Json.at", json, "rows.ts") == NONE
    assert run("Json.get", json, "nope") == NONE
    assert run("Json.at", json, "") == some(json)
    assert failing("Json.at", json, "rows[x") == "R0004"


def test_decoding_into_a_type() -> None:
    ints = TermValue(0, ("List", "Int"))
    json = run("json.parse", "[1,2]")
    assert run("data.decode", json, ints) == [1, 2]
    assert run("data.tryDecode", json, ints) == TYPES.ok([1, 2])
    wrong = run("json.parse", '[1,"x"]')
    assert failing("data.decode", wrong, ints) == "R0004"
    assert run("data.tryDecode", wrong, ints) == TYPES.err('[1]: expected Int, found "x"')
    assert run("data.toJson", [1, 2]) == json
    assert run("data.toJson", json) is json
    assert run("json.tryParse", "nope").name == "Err"


# --- patterns ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("EXP-[0-9]{4,8}", "EXP-1234", True),
        ("EXP-[0-9]{4,8}", "EXP-123", False),
        ("EXP-[0-9]{4,8}", "EXP-123456789", False),
        (r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", "GB82WEST12345698765432", True),
        ("a|bc", "bc", True),
        ("(a|b)*c", "ababc", True),
        ("a.c", "a\nc", False),
        ("[^a-c]+", "xyz", True),
        ("[]-]", "]", True),
        (r"[\w-]+@[\w.]+", "a-b@c.d", True),
        ("(?i)hello", "HeLLo", True),
        ("^a$", "a", True),
        (r"\bfoo\b", "foo", True),
        ("a{0}b", "b", True),
        ("(a*)*", "aaa", True),
        ("", "", True),
        ("x?y+?", "xyy", True),
    ],
)
def test_patterns(pattern: str, text: str, matches: bool) -> None:
    assert full_match(pattern, text) is matches
    assert run("text.matches", text, pattern) is matches


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "[a", "*a", "a{2", "a{3,1}", r"\1", "(?=a)", "(?<n>a)", "[b-a]", "(a{1000}){1000}",
     "(" * 100, "\\"],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(FlowError) as caught:
        compiled(pattern)
    assert caught.value.code == "R0004"


def test_groups_and_replacing() -> None:
    assert run("text.groups", "on 2026-11-30", r"(\d+)-(\d+)(x)?") == some(
        ["2026-11", "2026", "11", ""]
    )
    assert run("text.groups", "none", r"\d") == NONE
    assert run("text.replaceAll", "a1b22", r"(\d+)", "<$1$$>") == "a<1$>b<22$>"
    assert run("text.replaceAll", "abc", "", "-") == "-a-b-c-"
    assert first_match("a+?", "aaa") == (0, 1)
    assert first_match("a+", "baaa") == (1, 4)
    assert re.search("((?:(?:a)*?)*)", "a").span() == (0, 0)  # type: ignore[union-attr]
    assert (first_match("((?:(?:a)*?)*)", "a") or ())[:2] == (0, 0)


def _repeated(inner: tuple[str, bool], times: str) -> tuple[str, bool]:
    pattern, exact = inner
    around_nothing = times[0] in "*+" and re.fullmatch(pattern, "") is not None
    return f"(?:{pattern}){times}", exact and not around_nothing


PATTERNS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]"]).map(lambda pattern: (pattern, True)),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda it: (it[0][0] + it[1][0], it[0][1] and it[1][1])),
        st.tuples(inner, inner).map(
            lambda it: (f"(?:{it[0][0]}|{it[1][0]})", it[0][1] and it[1][1])
        ),
        inner.map(lambda it: (f"({it[0]})", it[1])),
        st.builds(_repeated, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "*?", "+?"])),
    ),
    max_leaves=6,
)
"""A pattern, and whether none of its loops can go around without taking a character."""


@given(PATTERNS, st.text("abc", max_size=8))
@settings(max_examples=300, deadline=None)
def test_patterns_match_what_python_matches(drawn: tuple[str, bool], text: str) -> None:
    """Where a match begins and whether all fits is the same for every pattern. How far one goes is
    too, but for loops around nothing: there it depends on how a round began, which a machine of
    linear time does not remember."""
    pattern, exact = drawn
    found = re.search(pattern, text)
    ours = first_match(pattern, text)
    assert full_match(pattern, text) == (re.fullmatch(pattern, text) is not None)
    assert (ours and ours[0]) == (found and found.start())
    if exact:
        assert (ours and ours[:2]) == (found and found.span())


def test_a_pattern_that_would_hang_others_does_not() -> None:
    begin = clock.perf_counter()
    assert not full_match("(a*)*b", "a" * 3000)
    assert not full_match("(a|aa)+$", "a" * 3000 + "b")
    assert clock.perf_counter() - begin < 2
    with pytest.raises(FlowError) as caught:
        full_match("(a*)*b", "a" * 10**6)
    assert caught.value.code == "R0005"


def test_numbers_in_json_text_are_the_same() -> None:
    assert parse_json("[1,2.50]") == [1, Decimal("2.50")]


def test_the_library_declares_only_natives_that_exist() -> None:
    """The names of `native fn` in `stdlib`; effects (`native world fn`) are operations."""
    folder = Path(__file__).parents[2] / "stdlib"
    declared: set[str] = set()
    for source in sorted(folder.glob("*.flow")):
        for line in source.read_text("utf-8").splitlines():
            found = NATIVE_FN.match(line)
            if found is None:
                continue
            name, own = found["name"], found["self"]
            if "." in name or own is None:
                prefix = "" if "." in name or source.stem == "prelude" else f"{source.stem}."
                declared.add(prefix + name)
            else:
                declared.add(f"{own}.{name}")
    assert len(declared) > 100
    assert declared - names() == set()
