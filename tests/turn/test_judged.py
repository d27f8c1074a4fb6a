"""Edges of the algorithm where a sentence of the design is easily lost: one test each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.world import Leaving, Reply
from qoqi.runtime.store.open import memory_store
from qoqi.vm.host import FAILED, RETRY
from tests.reliability.lab import HOUR, MINUTE, SECOND, kinds, left, life, world
from tests.versions import lineage

# -- a replay gives in the order of the first time, whatever was given ---------------------------

ORDER = """
step pay(cents: Int) -> Settled<String> within 5s { return Unknown }
step ask(n: Int) -> String within 5s tries 2 else "nobody" { flow.retry(after: 1s) }
step look(n: Int) -> String { return "" }
step note(said: List<String>) -> String { return "" }

flow Plan(user: String) -> String {
    var said: List<String> = []

    run {
        stage together
        let all = [task.start(paying), task.start(asking), task.start(looking)]
        for one in all { let _ = one.join() }
        note(said)
        return "\\(10 / (said.len() - 3))"
    }

    fn paying() { said.append(match pay(5) { case Known(r): r
        case Unknown: "unknown" }) }
    fn asking() { said.append(ask(1)) }
    fn looking() { said.append(look(1)) }
}
"""


def order(leaving: Leaving) -> Reply:
    match leaving.step:
        case "pay":
            return Reply("", never=True)
        case "ask":
            return Reply(RETRY, after=1 * SECOND, delay=1 * SECOND)
        case "look":
            return Reply('"seen"', after=1 * SECOND)
        case _:
            return Reply('"noted"')


def test_unknown_and_else_are_given_again_in_their_place(tmp_path: Path) -> None:
    mended = ORDER.replace("said.len() - 3", "said.len() - 1")
    first, second = lineage.build(tmp_path, ORDER, mended)
    made = lineage.world(first, order)
    made.start(lineage.FLOW, "p", ("ana",))
    made.rest()
    assert made.row("p").error_code == "R0003"
    said = [step.args[0] for step in made.left if step.step == "note"]
    assert said == [["seen", "nobody", "unknown"]]

    lineage.deploy(made, second)
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert (made.row("p").error_code, made.row("p").result) == (None, '"5"')
    assert len([step for step in made.left if step.step == "note"]) == 1


def test_an_else_that_was_given_stays_given_with_more_tries(tmp_path: Path) -> None:
    """The newer version would try five times; the flow was told otherwise already."""
    text = """
    step ask(n: Int) -> String within 5s tries 2 else "nobody" { flow.retry() }

    flow Plan(user: String) -> String {
        run {
            stage asking
            let said = ask(1)
            return "\\(said) \\(10 / 0)"
        }
    }
    """
    mended = text.replace('tries 2 else "nobody"', 'tries 5 else "somebody"').replace(
        "10 / 0", "10 / 1"
    )
    first, second = lineage.build(tmp_path, text, mended)
    made = lineage.world(first, lambda leaving: Reply(RETRY, delay=SECOND))
    made.start(lineage.FLOW, "p", ("ana",))
    made.rest()
    assert made.row("p").error_code == "R0003"

    lineage.deploy(made, second)
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").result == '"nobody 10"'
    assert len(made.left) == 2


UNANSWERED = """
step pay(cents: Int) -> Settled<String> within 5s { return Unknown }

flow Plan(user: String) -> String {
    run {
        stage paying
        let said = match pay(5) {
            case Known(r): r
            case Unknown: "unknown"
        }
        return "\\(said) \\(10 / 0)"
    }
}
"""

PLAIN = """
flow Plan(user: String) -> String {
    run {
        stage paying
        return pay(5)
    }
}
"""


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("pay(5)", "pay(6)"), "F0102"),
        ((" 10 / 0", " 10 / 0 "), "R0003"),
        ((UNANSWERED[UNANSWERED.index("flow") :], PLAIN), "F0102"),
    ],
)
def test_unknown_is_an_answer_as_any(tmp_path: Path, change: tuple[str, str], code: str) -> None:
    """Given to the same question only; and a step that is no longer Settled is not sent again."""
    mended = UNANSWERED.replace(*change)
    if PLAIN in mended:
        mended = mended.replace(
            "Settled<String> within 5s { return Unknown }", 'String { return "" }'
        )
    first, second = lineage.build(tmp_path, UNANSWERED, mended)
    made = lineage.world(first, lambda leaving: Reply("", never=True))
    made.start(lineage.FLOW, "p", ("ana",))
    made.rest()
    assert made.row("p").error_code == "R0003"
    if second.hash != first.hash:
        lineage.deploy(made, second)
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").error_code == code
    assert len(made.left) == 1


# -- why an instance stopped: the line and the calls ---------------------------------------------

CALLS = """
step pay(n: Int) -> Int tries 2 {
    return deep(n)
}
fn deep(n: Int) -> Int {
    let none: List<Int> = []
    return none[n]
}
flow Main() -> Int {
    run { return pay(3) }
}
"""


def lines_of(row: Any) -> list[tuple[str, int]]:
    return [(function, line) for function, _, line in json.loads(row.stopped_by)["trace"]]


def test_a_body_that_failed_stops_with_its_calls_and_the_line_that_asked() -> None:
    failure = json.dumps(
        {
            "code": "R0002",
            "message": "index 3 is outside a list of 0",
            "trace": [["deep", "m.flow", 7], ["pay", "m.flow", 3]],
        }
    )
    made = world(CALLS, lambda leaving: Reply(FAILED, failure=failure))
    made.start("m.Main", "i", ())
    row = made.row("i")
    assert row.error_code == "R0002"
    assert lines_of(row) == [("deep", 7), ("pay", 3), ("run", 10)]


def test_attempts_that_were_spent_stop_at_the_line_that_asked() -> None:
    made = world(CALLS, lambda leaving: Reply(RETRY, delay=SECOND))
    made.start("m.Main", "i", ())
    made.rest()
    row = made.row("i")
    assert row.error_code == "R0012"
    assert [line for _, line in lines_of(row)] == [10]


def test_the_ledger_calls_a_failure_a_failure() -> None:
    made = world(CALLS, lambda leaving: Reply(FAILED, failure="{}"))
    made.start("m.Main", "i", ())
    found = [json.loads(line.detail) for line in life(made, "i").ledger if line.kind == "answered"]
    assert [(detail["attempt"], detail["word"]) for detail in found] == [(1, "failed")]


# -- a cancellation ------------------------------------------------------------------------------

SETTLED = """
step pay() -> Settled<String> within 5m { return Unknown }
flow Main() -> Settled<String> { run { return pay() } }
"""


def test_a_settled_step_that_nobody_knows_of_may_have_acted() -> None:
    """Its request left and the network lost the answer: while it is cancelled, nobody looks at the
    `Unknown` the flow would have been given, so a person does."""
    made = world(SETTLED, lambda leaving: Reply('"Unknown"', after=MINUTE))
    made.start("m.Main", "i", ())
    made.cancel("i", "no")
    made.rest()
    row = made.row("i")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0013")


def test_a_cancellation_of_what_cannot_be_read_is_answered_once() -> None:
    store = memory_store()
    text = """
    flow Main() { channel never: Int
        run { let _ = never.receive() } }
    """
    made = world(text, store=store)
    made.start("m.Main", "i", ())
    store.database.run('UPDATE "instances" SET "state" = :state', {"state": "{"})
    made.cancel("i", "no")
    made.advance_to(made.now + HOUR)
    row = made.row("i")
    assert (row.status, row.error_code, row.cancel) == ("stopped", "R0016", None)
    assert kinds(made, "i").count("stopped") == 1


def booked(leaving: Leaving) -> Reply:
    return Reply("1") if leaving.step == "book" else Reply("null", after=MINUTE)


def test_an_instance_that_grew_too_large_can_be_cancelled() -> None:
    text = """
    step book() -> Int undo drop() { return 1 }
    step drop() { }
    flow Main() -> Int {
        channel more: Int
        var all: List<String> = []
        run {
            book()
            while true {
                let _ = more.receive()
                all.append("x".repeat(100_000))
            }
        }
    }
    """
    made = world(text, booked, settings=Settings(state_limit=250_000))
    made.start("m.Main", "i", ())
    for _ in range(3):
        made.send("i", "more", 1)
    assert made.row("i").error_code == "R0008"
    made.cancel("i", "no")
    made.rest()
    assert made.row("i").status == "failed"
    assert left(made) == [("book", 1), ("drop", 1)]


# -- a message in the finish phase ---------------------------------------------------------------


def test_a_message_that_lands_while_the_undos_run_stays_untaken() -> None:
    text = """
    step book() -> Int undo drop() { return 1 }
    step drop() within 5m { }
    flow Main() -> Int {
        channel words: String
        run {
            book()
            let _ = words.receive()
            return 1
        }
    }
    """
    made = world(text, booked)
    made.start("m.Main", "i", ())
    made.cancel("i", "no")
    assert made.send("i", "words", "late") == "Delivered"
    made.rest()
    assert made.row("i").status == "failed"
    assert left(made) == [("book", 1), ("drop", 1)]
    assert [(message.value, message.taken) for message in life(made, "i").messages] == [
        ('"late"', None)
    ]
