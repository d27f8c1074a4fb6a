"""Steps, by the seed's table of taking up and its section 4: what is given, tried again, given up."""

from __future__ import annotations

from functools import partial

import pytest

from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.vm.host import RETRY, TIMEOUT
from tests.reliability.lab import (
    HOUR,
    MINUTE,
    SECOND,
    ending,
    kinds,
    left,
    life,
    meddled,
    world,
)

ONE = """
step pay() -> String { return "" }
flow Main() -> String { run { return pay() } }
"""
MAIN = "m.Main"


def silent(leaving: Leaving) -> Reply:
    return Reply("", never=True)


def test_what_has_an_answer_is_given_it_and_only_the_rest_leaves() -> None:
    text = """
    step first() -> String { return "" }
    step second(x: String) -> String { return x }
    flow Main() -> String { run { return second(first()) } }
    """

    def answer(leaving: Leaving) -> Reply:
        return Reply('"a"') if leaving.step == "first" else Reply('"b"', after=5 * SECOND)

    simulation = world(text, answer)
    simulation.start(MAIN, "i", ())
    simulation.advance_to(simulation.now + SECOND)
    simulation.kill(simulation.daemons[0])
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"b"')
    assert left(simulation) == [("first", 1), ("second", 1), ("second", 2)]
    assert {step.args for step in simulation.left[1:]} == {("a",)}


def test_between_two_tries_it_waits_out_of_memory() -> None:
    def answer(leaving: Leaving) -> Reply:
        return Reply(RETRY, delay=HOUR) if leaving.attempt == 1 else Reply('"paid"')

    simulation = world(ONE, answer)
    begun = simulation.now
    simulation.start(MAIN, "i", ())

    row = simulation.row("i")
    assert (row.status, row.lease_owner) == ("waiting", None)
    assert [(wait.kind, wait.at) for wait in life(simulation, "i").waits] == [
        ("retry", begun + HOUR)
    ]
    assert simulation.daemons[0].held == {}

    simulation.advance_to(begun + HOUR - 1)
    assert left(simulation) == [("pay", 1)]
    simulation.advance_to(begun + HOUR)
    assert left(simulation) == [("pay", 1), ("pay", 2)]
    assert ending(simulation, "i") == ("done", '"paid"')


@pytest.mark.parametrize(("clause", "tries"), [("", 100), ("tries 3", 3), ("tries 1", 1)])
def test_when_its_attempts_are_spent_it_stops(clause: str, tries: int) -> None:
    text = ONE.replace("{ return", f"{clause} {{ return", 1)
    simulation = world(text, lambda leaving: Reply(RETRY))
    simulation.start(MAIN, "i", ())
    simulation.rest()

    row = simulation.row("i")
    said = "1 attempt" if tries == 1 else f"{tries} attempts"
    assert (row.status, row.phase, row.error_code) == ("stopped", "run", "R0012")
    assert f"pay gave no answer in {said}" in (row.stopped_by or "")
    assert left(simulation) == [("pay", n) for n in range(1, tries + 1)]


def test_else_is_the_answer_when_its_attempts_are_spent() -> None:
    text = ONE.replace("{ return", 'tries 2 else "nobody" { return', 1)
    simulation = world(text, silent)
    simulation.start(MAIN, "i", ())
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"nobody"')
    assert left(simulation) == [("pay", 1), ("pay", 2)]
    assert [row.result for row in life(simulation, "i").attempts] == [TIMEOUT, TIMEOUT]


@pytest.mark.parametrize(("clause", "limit"), [("", MINUTE), ("within 5s", 5 * SECOND)])
def test_the_limit_is_the_declarations_and_a_minute_without(clause: str, limit: int) -> None:
    simulation = world(ONE.replace("{ return", f"{clause} {{ return", 1), silent)
    begun = simulation.now
    simulation.start(MAIN, "i", ())

    (attempt,) = life(simulation, "i").attempts
    assert (attempt.started, attempt.until) == (begun, begun + limit)
    simulation.advance_to(begun + limit - 1)
    assert kinds(simulation, "i") == ["started", "left"]
    simulation.advance_to(begun + limit)
    assert kinds(simulation, "i")[-1] == "given up"


SETTLED = """
step pay() -> Settled<String> within 10s { return Known("") }
flow Main() -> String {
    run {
        return match pay() {
            case Known(it): it
            case Unknown: "unknown"
        }
    }
}
"""


@pytest.mark.parametrize("crash", [False, True])
def test_a_settled_step_past_its_limit_is_unknown_and_never_leaves_again(crash: bool) -> None:
    simulation = world(SETTLED, silent)
    begun = simulation.now
    simulation.start(MAIN, "i", ())
    if crash:
        simulation.kill(simulation.daemons[0])
    simulation.advance_to(begun + 10 * SECOND - 1)
    assert simulation.row("i").status == "running"  # an answer can still come
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"unknown"')
    assert left(simulation) == [("pay", 1)]


def test_a_settled_step_that_asks_to_be_tried_again_is() -> None:
    def answer(leaving: Leaving) -> Reply:
        return Reply(RETRY) if leaving.attempt == 1 else Reply('{"Known":"paid"}')

    simulation = world(SETTLED, answer)
    simulation.start(MAIN, "i", ())
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"paid"')
    assert left(simulation) == [("pay", 1), ("pay", 2)]


def _always(reply: Reply, leaving: Leaving) -> Reply:
    return reply


def test_texts_that_are_the_words_of_attempts_are_values() -> None:
    """The words are bare in the store, a text has its quotes: nobody takes one for the other."""
    for word in ("timeout", "retry", "lost", "failed", "spent", "null"):
        reply = Reply(f'"{word}"')
        simulation = world(ONE, partial(_always, reply))
        simulation.start(MAIN, "i", ())
        simulation.rest()
        assert ending(simulation, "i") == ("done", f'"{word}"')
        assert left(simulation) == [("pay", 1)]


def test_an_answer_that_lands_before_the_giving_up_is_given() -> None:
    """giveUp comes after the answer, and finds it (another body of the same attempt was quicker)."""
    simulation, meddler = meddled(ONE, silent)
    simulation.start(MAIN, "i", ())
    key = simulation.left[0].key

    def answered(name: str, args: tuple[object, ...]) -> None:
        if name == "give_up":
            from qoqi.vm.host import PutResult

            simulation.outside.put_result(PutResult(key, 1, '"in time"'), simulation.now)

    meddler.before = answered
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"in time"')
    assert left(simulation) == [("pay", 1)]


def two_daemons(text: str, slow: int) -> Simulation:
    """The first daemon has the step under way and stands still; the second has taken over."""

    def answer(leaving: Leaving) -> Reply:
        return Reply('"first"', after=slow) if leaving.attempt == 1 else Reply('"second"')

    simulation = world(text, answer)
    simulation.start(MAIN, "i", ())
    simulation.daemons[0].paused = True
    simulation.add_daemon()
    simulation.advance_to(simulation.now + 31 * SECOND)
    assert simulation.row("i").lease_owner == simulation.daemons[1].me
    return simulation


def test_the_daemon_that_took_over_waits_for_the_limit_and_may_still_be_answered() -> None:
    simulation = two_daemons(ONE, slow=40 * SECOND)
    simulation.daemons[0].paused = False
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"first"')
    assert left(simulation) == [("pay", 1)]


def test_what_another_daemon_gave_up_is_that_daemons() -> None:
    """The first one wakes past the limit: its giving up and its answer find that it is too late."""
    simulation = two_daemons(ONE, slow=MINUTE)
    simulation.advance_to(simulation.now + 29_500)  # half a second past the limit
    assert kinds(simulation, "i").count("given up") == 1
    simulation.daemons[0].paused = False
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"second"')
    assert left(simulation) == [("pay", 1), ("pay", 2)]
    assert [(row.result, row.late) for row in life(simulation, "i").attempts] == [
        (TIMEOUT, '"first"'),
        ('"second"', None),
    ]
    assert simulation.daemons[0].held == {}


def test_an_answer_is_not_lost_with_the_save_that_would_have_carried_it() -> None:
    """One commit for an answer and the next save, and the slow way where the lease is gone."""
    simulation = two_daemons(ONE, slow=HOUR)
    slow, quick = simulation.daemons
    held = slow.held["i"]
    from qoqi.vm.host import StepEnded

    key = simulation.left[0].key
    held.host.push(StepEnded(key, 1, '"lost?"'))
    slow.paused, quick.paused = False, True
    simulation.settle()
    quick.paused = False
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"lost?"')
    assert left(simulation) == [("pay", 1)]


def test_a_step_is_under_its_own_name_and_count() -> None:
    text = """
    step pay(n: Int) -> Int { return n }
    flow Main() -> Int {
        run {
            let a = pay(1)
            let t = task.start(fn() => pay(a))
            let b = match t.join() {
                case Ok(x): x
                case Err(_): 0
            }
            return pay(b)
        }
    }
    """
    simulation = world(text, lambda leaving: Reply(str(leaving.args[0])))
    birth = simulation.start(MAIN, "i", ()).row.birth
    simulation.rest()

    assert [step.key.removeprefix(f"i/{birth}/") for step in simulation.left] == [
        "0:0:pay#1",
        "0:0/pay#1:pay#1",
        "0:0:pay#2",
    ]


def test_the_daemons_own_settings_count_where_the_declaration_says_nothing() -> None:
    settings = Settings(wave=0, tries=2, retry=5 * SECOND)
    simulation = world(ONE, lambda leaving: Reply(RETRY), settings=settings)
    begun = simulation.now
    simulation.start(MAIN, "i", ())
    simulation.rest()

    assert [step.at - begun for step in simulation.left] == [0, 5 * SECOND]
    assert simulation.row("i").error_code == "R0012"
