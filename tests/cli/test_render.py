"""Diagnostics as a terminal shows them: their shape, and what never reaches a terminal."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, error, warning
from qoqi.compiler.source import LineIndex, Span
from qoqi.runtime.cli import render

RENEWAL = """\
flow Renewal(plan: Plan) {
    channel orders: Order

    run {
        wait match {
            case let o = orders.receive(): take(o)
            case let why = flow.cancelled(): stop(why)
        }
        wait match {
            case after 2d: return
        }
    }
}
"""


def at(text: str, word: str, nth: int = 1) -> Span:
    start = -1
    for _ in range(nth):
        start = text.index(word, start + 1)
    return Span(start, start + len(word))


def drawn(diagnostic: Diagnostic, **sources: str) -> str:
    indexes = {f"{name}.flow": LineIndex(text) for name, text in sources.items()}
    out = io.StringIO()
    render.diagnostics([diagnostic], indexes, render.console(out))
    return out.getvalue()


def test_an_error_with_a_label_a_note_and_a_fix(snapshot: SnapshotAssertion) -> None:
    found = error(
        "F0006",
        "renewal.flow",
        at(RENEWAL, "wait match", 2),
        "this wait has no case for a cancellation, and the flow listens",
        labels=[Label("renewal.flow", at(RENEWAL, "flow.cancelled()"), "it listens here")],
        notes=["every `wait match` that run reaches needs the case"],
        fixes=[
            Fix("add `case let why = flow.cancelled():`", (Edit("renewal.flow", Span(0, 0), ""),))
        ],
    )
    assert drawn(found, renewal=RENEWAL) == snapshot


def test_a_label_in_another_file(snapshot: SnapshotAssertion) -> None:
    money = "pub fn total(of: Order) -> Int {\n    return of.cents\n}\n"
    found = warning(
        "W0103",
        "renewal.flow",
        at(RENEWAL, "take(o)"),
        "its Result is thrown away",
        labels=[Label("money.flow", at(money, "total"), "declared here")],
    )
    assert drawn(found, renewal=RENEWAL, money=money) == snapshot


def test_a_span_of_several_lines(snapshot: SnapshotAssertion) -> None:
    start, end = at(RENEWAL, "wait match", 2).start, RENEWAL.index("    }\n}")
    found = error("F0006", "renewal.flow", Span(start, end), "all of this")
    assert drawn(found, renewal=RENEWAL) == snapshot


def test_two_marks_on_one_line(snapshot: SnapshotAssertion) -> None:
    text = "let total = cents + name\n"
    found = error(
        "E0301",
        "a.flow",
        at(text, "name"),
        "expected Int, found String",
        labels=[Label("a.flow", at(text, "cents"), "this is an Int")],
    )
    assert drawn(found, a=text) == snapshot


@pytest.mark.parametrize(
    ("text", "word", "skip", "width"),
    [
        ('let name = "x"', "name", 4, 4),
        ('let 名前 = "x" + total', "total", 17, 5),
        ("let x = 名前", "名前", 8, 4),
        ("\tlet x = y", "y", 12, 1),
        ("let é = y", "y", 8, 1),
    ],
)
def test_marks_stand_under_what_they_mark(text: str, word: str, skip: int, width: int) -> None:
    lines = drawn(error("E0301", "a.flow", at(text, word), "no"), a=text).splitlines()
    source, marks = lines[3], lines[4]
    assert cell_len(marks.partition("| ")[2].partition("^")[0]) == skip
    assert marks.count("^") == width
    assert cell_len(source.partition("| ")[2].partition(word)[0]) == skip


def test_an_empty_place_at_the_end_of_a_file_is_one_mark_wide() -> None:
    text = "run {"
    shown = drawn(error("E0101", "a.flow", Span(5, 5), "expected `}`"), a=text)
    assert shown.splitlines()[1:5] == [" --> a.flow:1:6", "  |", "1 | run {", "  |      ^"]


def test_control_characters_never_reach_the_terminal() -> None:
    text = 'let x = "\x1b[31m\x07‮abc" \x9b\r\n'
    found = error(
        "E0301", "a.flow", at(text, "abc"), "found \x1b]0;title\x07", notes=["say \x9b1m"]
    )
    shown = drawn(found, a=text)
    assert not set(shown) & {"\x1b", "\x07", "\x9b", "‮", "\r"}
    assert "found \\x1b]0;title\\x07" in shown
    assert "say \\x9b1m" in shown


def test_a_diagnostic_of_a_file_without_text_is_still_shown() -> None:
    shown = drawn(error("E0211", "flow.toml", Span(0, 0), "no package"))
    assert shown == "error[E0211]: no package\n --> flow.toml\n\n"


def test_no_colour_where_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain = Terminal(), Terminal()
    found = error("E0301", "a.flow", Span(0, 3), "no")
    render.diagnostics([found], {"a.flow": LineIndex("let x")}, render.console(coloured))
    monkeypatch.setenv("NO_COLOR", "1")
    render.diagnostics([found], {"a.flow": LineIndex("let x")}, render.console(plain))
    assert "\x1b[1;31merror[E0301]" in coloured.getvalue()
    assert "\x1b[1;31m" not in plain.getvalue()
    assert "31m" not in plain.getvalue()


def test_nothing_depends_on_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "let " + "x" * 300 + " = 1"
    found = error("E0301", "a.flow", Span(4, 304), "a long word " * 30)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = drawn(found, a=text)
    monkeypatch.setenv("COLUMNS", "400")
    assert drawn(found, a=text) == narrow
    assert len(narrow.splitlines()) == 6


def test_the_verdict_counts() -> None:
    bad = error("E0301", "a.flow", Span(0, 0), "no")
    odd = warning("W0103", "a.flow", Span(0, 0), "odd")
    assert render.verdict([bad, odd, bad]) == "2 errors, 1 warning"
    assert render.verdict([odd]) == "1 warning"
    assert render.verdict([]) == "no problems"


def test_a_table_lines_up_wide_characters() -> None:
    out = io.StringIO()
    render.table(["NAME", "AT"], [["名前", "x"], ["a\x1bb", "y"]], render.console(out))
    assert out.getvalue().splitlines() == ["NAME    AT", "名前    x", "a\\x1bb  y"]
