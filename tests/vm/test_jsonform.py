"""JSON both ways: round trips by type, the forms of the language reference, paths of misfits."""

from __future__ import annotations

import inspect
import json
import sys
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qoqi.vm.bytecode.chunk import FieldDef, Term, TypeDef
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import (
    display,
    from_json,
    json_size,
    json_text,
    json_value,
    parse_json,
    to_json,
    value_text,
)
from qoqi.vm.types import Types
from qoqi.vm.values import (
    Date,
    Duration,
    InstanceValue,
    SetValue,
    Struct,
    Time,
    Variant,
)
from tests.vm.sample import BOX, DECISION, JSON, LEVEL, LINE, OPTION
from tests.vm.strategies import INFO, TYPED_VALUES, TYPES


def no_default(number: int) -> object:
    raise AssertionError(number)


def read(text: str, term: Term, types: Types = TYPES) -> object:
    return from_json(parse_json(text), term, types, no_default)


def misfit(text: str, term: Term) -> str:
    with pytest.raises(FlowError) as caught:
        read(text, term)
    assert caught.value.code == "R0004"
    return caught.value.message


@given(TYPED_VALUES)
@settings(max_examples=400, deadline=None)
def test_what_is_written_is_read_again(typed: tuple[Term, object]) -> None:
    term, value = typed
    text = value_text(value)
    again = read(text, term)
    assert again == value
    assert value_text(again) == text
    assert text.encode("utf-8").decode("utf-8") == text
    json.loads(text)


UNIT_LEVEL = INFO[LEVEL].variant("Low")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (42, "42"),
        (10**30, "1" + "0" * 30),
        (Decimal("12.50"), '"12.50"'),
        (0.5, "0.5"),
        ("é\n", '"é\\n"'),
        ("\ud800", '"\\ud800"'),
        (b"hi", '"aGk="'),
        (Duration(5_400_000), '"1h30m"'),
        (Duration(-250), '"-250ms"'),
        (Duration(0), '"0s"'),
        (Duration(8 * 86_400_000 + 1), '"8d1ms"'),
        (Time(1_767_225_600_000), '"2026-01-01T00:00:00Z"'),
        (Time(1_767_225_600_050), '"2026-01-01T00:00:00.050Z"'),
        (Time(-1), '"1969-12-31T23:59:59.999Z"'),
        (Date(20787), '"2026-11-30"'),
        ([1, [2]], "[1,[2]]"),
        ((1, "a"), '[1,"a"]'),
        ((), "null"),
        ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
        ({UNIT_LEVEL: 1}, '{"low":1}'),
        ({2: "x"}, '[[2,"x"]]'),
        (SetValue({3: None, 1: None}), "[3,1]"),
        (TYPES.some(5), "5"),
        (TYPES.none(), "null"),
        (TYPES.ok(5), '{"Ok":5}'),
        (TYPES.err("no"), '{"Err":"no"}'),
        (TYPES.known(5), '{"Known":5}'),
        (TYPES.unknown(), '"Unknown"'),
        (Variant(INFO[DECISION], 0, ("ana",)), '{"approved":{"by":"ana"}}'),
        (INFO[DECISION].variant("Withdrawn"), '"Withdrawn"'),
        (Struct(INFO[LINE], ["s", 3, TYPES.none()]), '{"stock-number":"s","cents":3,"note":null}'),
        (InstanceValue("main.Ship", "ship-1", "b2"), '{"instance":"ship-1","birth":"b2"}'),
    ],
)
def test_the_json_form_of_each_kind(value: object, text: str) -> None:
    assert value_text(value) == text
    assert json_size(value) == len(text.encode())


@pytest.mark.parametrize("text", ["1", "1.50", "1E+40", '{"a":[1,2.50,null,true,"x"]}', "[]", "{}"])
def test_json_keeps_its_numbers_exactly(text: str) -> None:
    assert value_text(json_value(parse_json(text), TYPES)) == text


@pytest.mark.parametrize(
    ("text", "term", "value"),
    [
        ("12.50", "Decimal", Decimal("12.50")),
        ('"12.50"', "Decimal", Decimal("12.50")),
        ("0.10000000000000000555111512", "Decimal", Decimal("0.10000000000000000555111512")),
        ("42.0", "Int", 42),
        ("1e3", "Int", 1000),
        ("1", "Float", 1.0),
        ('"2w"', "Duration", Duration(14 * 86_400_000)),
        ('"2026-11-30T08:00+01:00"', "Time", Time(1_796_022_000_000)),
        ('"2026-11-30t07:00:00.0009z"', "Time", Time(1_796_022_000_000)),
        ("{}", ("Map", "Int", "Int"), {}),
    ],
)  # fmt: skip
def test_reading_is_generous_where_nothing_is_lost(text: str, term: Term, value: object) -> None:
    found = read(text, term)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "term", "message"),
    [
        ('"x"', "Int", 'expected Int, found "x"'),
        ("true", "Int", "expected Int, found true"),
        ("1.5", "Int", "expected Int, found 1.5"),
        ("1e9999999", "Int", "expected Int, found 1E+9999999"),
        ("1e400", "Float", "expected Float, found 1E+400"),
        ('"1.5x"', "Decimal", 'expected Decimal, found "1.5x"'),
        ('"NaN"', "Decimal", 'expected Decimal, found "NaN"'),
        ('"2026-02-30"', "Date", 'expected Date, found "2026-02-30"'),
        ('"2026-11-30T24:00Z"', "Time", 'expected Time, found "2026-11-30T24:00Z"'),
        ('"5 days"', "Duration", 'expected Duration, found "5 days"'),
        ('"a b"', "Bytes", 'expected Bytes, found "a b"'),
        ('[{"stock-number":"s","cents":"x"}]', ("List", ("struct", LINE)),
         '[0].cents: expected Int, found "x"'),
        ('{"a":[1,"x"]}', ("Map", "String", ("List", "Int")), 'a[1]: expected Int, found "x"'),
        ('{"a b":1}', ("Map", "String", "String"), '["a b"]: expected String, found 1'),
        ('{"stock-number":"s"}', ("struct", LINE), "cents: missing, expected Int"),
        ("[]", ("struct", LINE), "expected Line, found a list"),
        ('{"approved":{"by":1}}', ("enum", DECISION), "approved.by: expected String, found 1"),
        ('"approved"', ("enum", DECISION),
         'expected Decision (approved, Rejected, Withdrawn), found "approved"'),
        ('{"Ok":1}', ("enum", 1, "String", "Int"), "Ok: expected String, found 1"),
        ('[[1,2],[1,3]]', ("Map", "Int", "Int"), "[1][0]: the key stands twice"),
        ("[1]", ("Tuple", "Int", "Int"), "expected (Int, Int), found a list"),
        ('"x"', ("enum", OPTION, "Int"), 'expected Int, found "x"'),
        ('{"held":1,"more":["x"]}', ("struct", BOX, "Int"), 'more[0]: expected Int, found "x"'),
        ("1", ("Task", "Int"), "a Task cannot be read from JSON"),
    ],
)  # fmt: skip
def test_a_misfit_says_where_and_what(text: str, term: Term, message: str) -> None:
    assert misfit(text, term) == message


def test_missing_fields_take_their_defaults() -> None:
    fields = (
        FieldDef("n", "n", "Int", 7),
        FieldDef("note", "note", ("enum", 0, "String")),
    )
    types = Types(
        (TypeDef("Option", 1, None, TYPES.option.variants), TypeDef("S", 0, fields, None))
    )
    asked: list[int] = []

    def default(number: int) -> object:
        asked.append(number)
        return 42

    value = from_json({"more": 1}, ("struct", 1), types, default)
    assert value == Struct(types.chunk_types[1], [42, types.none()])
    assert asked == [7]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1,]", "nope", "NaN", "Infinity", "-Infinity", "1" * 5000, '"\x01"', "[1]2",
     "[" * 100_000, '{"a":' * 50_000, "1e" + "9" * 30],
)  # fmt: skip
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(FlowError) as caught:
        json_value(parse_json(text), TYPES)
    assert caught.value.code == "R0004"


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(FlowError, match="UTF-8"):
        parse_json(b'"\xff"')


def nested(depth: int) -> list[object]:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_bounded_both_ways() -> None:
    assert "nested deeper than 200 levels" in misfit("[" * 300 + "]" * 300, ("enum", JSON))
    text = "[" * 150 + "]" * 150
    assert value_text(read(text, ("enum", JSON))) == text
    with pytest.raises(FlowError) as caught:
        to_json(nested(100_000))
    assert caught.value.code == "R0008"


def test_a_host_that_is_deep_in_calls_makes_no_other_error() -> None:
    raw = nested(190)
    term: Term = "Int"
    for _ in range(60):
        term = ("List", term)

    def at_depth(levels: int) -> None:
        if levels:
            at_depth(levels - 1)
            return
        with pytest.raises(FlowError):
            to_json(raw)
        with pytest.raises(FlowError):
            from_json(raw, term, TYPES, no_default)

    at_depth(sys.getrecursionlimit() - len(inspect.stack()) - 150)


def test_a_value_that_shares_its_parts_is_bounded() -> None:
    value: list[object] = [1] * 1000
    for _ in range(60):
        value = [value, value]
    with pytest.raises(FlowError) as caught:
        to_json(value)
    assert caught.value.code == "R0008"


def test_display() -> None:
    assert display("as it is") == "as it is"
    assert display(TYPES.none()) == "None"
    assert display(INFO[DECISION].variant("Withdrawn")) == "Withdrawn"
    assert display(INFO[LEVEL].variant("Low")) == "Low"
    assert display(Decimal("20.00")) == "20.00"
    assert display(Date(0)) == "1970-01-01"
    assert display([TYPES.some("a")]) == '["a"]'
    assert display(json_value({"a": None}, TYPES)) == '{"a":null}'


@given(st.text(max_size=40))
def test_any_text_is_refused_or_read_the_same(text: str) -> None:
    try:
        value = json_value(parse_json(text), TYPES)
    except FlowError as error:
        assert error.code == "R0004"  # noqa: PT017
    else:
        assert read(value_text(value), ("enum", JSON)) == value


def test_writing_is_the_same_with_and_without_exact_numbers() -> None:
    raw = {"a": [True, None, "é", {"b": 1}], "c": 0.5}
    assert json_text({**raw, "d": Decimal("1.50")}) == json_text(raw)[:-1] + ',"d":1.50}'
