"""`qoqi doc`: modules and symbols of the library and of the package, by any part of their path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from qoqi import stdlib
from qoqi.runtime.cli.main import app

SOURCE = """\
//! Bills and what they cost.

/// One position.
pub struct Line {
    /// What is sold.
    sku: String
    cents: Int = 0
}

/// How it ended.
pub enum Outcome { Paid(receipt: String), Unpaid }

/// The sum of the lines.
/// Nothing is rounded.
fn total(self: List<Line>) -> Int { return self.map(fn(line) => line.cents).sum() }

steps within 5s {
    /// Charges.
    step charge(cents: Int) -> Outcome { return Unpaid }
}

/// Sends a bill and waits.
flow Bill(lines: List<Line>) -> Outcome keep 2d {
    /// What the bank says.
    channel news: Outcome capacity 4

    run { return news.receive() }

    view sum -> Int { return lines.total() }
}

test "this is nobody's business" { assert("x" == 1) }
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "billing").mkdir()
    (tmp_path / "billing" / "bill.flow").write_text(SOURCE, "utf-8")
    (tmp_path / "flow.toml").write_text('name = "shop"\n', "utf-8")
    monkeypatch.chdir(tmp_path)


def doc(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["doc", *words])
    return result.exit_code, result.output


def test_all_modules() -> None:
    code, said = doc()

    assert code == 0
    lines = said.splitlines()
    assert lines[1] == "billing.bill  Bills and what they cost."
    assert [line.split()[0] for line in lines[2:]] == [one.module for one in stdlib.sources()]


def test_a_module() -> None:
    code, said = doc("billing.bill")

    assert code == 0
    assert said.startswith("# billing.bill\n\nBills and what they cost.\n\nstruct Line {\n")
    assert (
        "fn total(self: List<Line>) -> Int\n    in billing.bill\n"
        "    The sum of the lines.\n    Nothing is rounded.\n"
    ) in said
    assert "step charge(cents: Int) -> Outcome\n    in billing.bill\n    Charges.\n" in said
    assert "flow Bill(lines: List<Line>) -> Outcome keep 2d\n" in said
    assert "nobody" not in said


@pytest.mark.parametrize("name", ["std.time.format", "time.format"])
def test_a_function_of_the_library(name: str) -> None:
    code, said = doc(name)

    assert code == 0
    assert said.startswith(
        'fn format(time: Time, pattern: String, zone: String = "UTC") -> String\n    in std.time\n'
    )


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("List.map", "fn map<T, R>(self: List<T>, f: fn(T) -> R) -> List<R>\n"),
        ("Int.parse", "fn Int.parse(text: String) -> Int?\n"),
        ("Option.okOr", "fn okOr<T, E>(self: T?, error: E) -> Result<T, E>\n"),
        ("Line", "struct Line {\n    /// What is sold.\n    sku: String\n    cents: Int = 0\n}\n"),
        ("Line.sku", "sku: String\n    in billing.bill\n    What is sold.\n"),
        ("Outcome.Paid", "Paid(receipt: String)\n"),
        ("Bill.news", "channel news: Outcome capacity 4\n    in billing.bill\n    What the bank"),
        ("bill.Bill.sum", "view sum -> Int\n"),
        ("flow.now", "flow.now() -> Time\n    The moment at which"),
        ("json", "# std.json\n"),
    ],
)
def test_a_symbol(name: str, begins: str) -> None:
    code, said = doc(name)

    assert code == 0
    assert said.startswith(begins)


def test_all_that_a_name_can_be() -> None:
    said = doc("map")[1]

    assert said.count("    in std.prelude\n") == 3
    assert {"fn map<T, R>(self: T?", "fn map<T, E, R>(self: Result<T, E>"} <= {
        line.split(",  ")[0].split(", f:")[0] for line in said.splitlines()
    }


def test_words_of_the_language() -> None:
    said = doc("clock")[1]

    assert [line.split("(")[0] for line in said.splitlines() if line.startswith("clock")] == [
        "clock.now",
        "clock.advance",
        "clock.set",
    ]


def test_a_near_miss() -> None:
    code, said = doc("formt")

    assert code == 2
    assert "nothing here is named formt; near it: format" in said


def test_for_programs() -> None:
    [found] = json.loads(doc("billing.bill.total", "--json")[1])

    assert found == {
        "module": "billing.bill",
        "name": "List.total",
        "declaration": "fn total(self: List<Line>) -> Int",
        "doc": "The sum of the lines.\nNothing is rounded.",
    }
    page = json.loads(doc("std.env", "--json")[1])
    assert [one["name"] for one in page["declarations"]] == ["get", "require"]


def test_each_module_of_the_library_has_words_for_all_it_declares() -> None:
    for source in stdlib.sources():
        page = json.loads(doc(source.module, "--json")[1])
        assert page["doc"], source.module
        bare = [one["name"] for one in page["declarations"] if not one["doc"]]
        assert [name for name in bare if name[:1].islower() or "." not in name] == []
