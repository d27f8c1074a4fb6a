"""Turns, waits and messages, by the seed's sections 2, 3 and 7."""

from __future__ import annotations

from typing import Any

import pytest

from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.world import Leaving, Reply
from qoqi.vm.host import FAILED, Cancel
from qoqi.vm.jsonform import parse_json
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

MAIN = "m.Main"

WAITING = """
flow Main() -> String {
    channel news: String
    run {
        wait match {
            case let it = news.receive(): return it
            case after 1h: return "late"
        }
    }
}
"""


@pytest.mark.parametrize(("minute", "result"), [(59, '"heard"'), (60, '"heard"'), (61, '"late"')])
def test_the_case_that_happened_first_wins_however_late_it_is_looked_at(
    minute: int, result: str
) -> None:
    """Nobody runs while both happen; at the same instant the message is the earlier case."""
    simulation = world(WAITING)
    begun = simulation.now
    simulation.start(MAIN, "i", ())
    (daemon,) = simulation.daemons
    daemon.paused = True
    simulation.advance_to(begun + minute * MINUTE)
    simulation.send("i", "news", "heard")
    simulation.advance_to(begun + 2 * HOUR)
    daemon.paused = False
    simulation.rest()

    assert ending(simulation, "i") == ("done", result)


def test_of_two_messages_on_two_channels_the_one_that_came_first_wins() -> None:
    text = """
    flow Main() -> String {
        channel a: String
        channel b: String
        run {
            flow.sleep(1h)
            wait match {
                case let it = a.receive(): return it
                case let it = b.receive(): return it
            }
        }
    }
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())
    simulation.send("i", "b", "b")
    simulation.send("i", "a", "a")
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"b"')


def test_one_message_is_given_to_one_task() -> None:
    text = """
    flow Main() -> List<String> {
        channel news: String
        run { return task.map([1, 2], hear) }
        fn hear(n: Int) -> String {
            wait match {
                case let it = news.receive(): return "\\(n): \\(it)"
                case after 1h: return "\\(n): nothing"
            }
        }
    }
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())
    simulation.send("i", "news", "once")
    simulation.rest()

    assert ending(simulation, "i") == ("done", '["1: once","2: nothing"]')


def test_a_channel_keeps_the_order_in_which_things_were_put_in_it() -> None:
    """From inside first, then what came from outside; taken in at the next write."""
    text = """
    flow Main() -> List<String> {
        channel news: String
        run {
            var all: List<String> = []
            news.send("inside 1")
            flow.sleep(1m)
            news.send("inside 2")
            while all.len() < 4 { all.append(news.receive()) }
            return all
        }
    }
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())
    simulation.send("i", "news", "outside 1")
    simulation.send("i", "news", "outside 2")
    simulation.rest()

    assert parse_json(simulation.row("i").result or "") == [
        "inside 1",
        "outside 1",
        "outside 2",
        "inside 2",
    ]


def test_every_send_without_a_key_is_a_message() -> None:
    text = WAITING.replace("return it", 'return "\\(it), \\(news.receive())"')
    simulation = world(text)
    simulation.start(MAIN, "i", ())
    assert [simulation.send("i", "news", "same") for _ in range(2)] == ["Delivered"] * 2
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"same, same"')


def test_a_message_that_lands_as_the_instance_ends_stays_untaken_and_is_listed() -> None:
    simulation, meddler = meddled(
        "flow Main() {\n channel news: String\n run { flow.sleep(1h) }\n }"
    )
    simulation.start(MAIN, "i", ())

    def land(name: str, args: tuple[Any, ...]) -> None:
        if name == "save" and args[2].status == "done":
            sent = simulation.outside.send("i", "news", None, '"late"', None, simulation.now)
            assert sent.outcome == "Delivered"

    meddler.before = land
    simulation.rest()

    assert ending(simulation, "i")[0] == "done"
    assert [(one.value, one.taken) for one in life(simulation, "i").messages] == [('"late"', None)]
    assert simulation.send("i", "news", "later") == "Ended"


@pytest.mark.parametrize(("seconds", "near"), [(30, True), (31, False)])
def test_near_is_up_to_thirty_seconds(seconds: int, near: bool) -> None:
    simulation = world(f"flow Main() {{ run {{ flow.sleep({seconds}s) }} }}")
    begun = simulation.now
    simulation.start(MAIN, "i", ())

    row = simulation.row("i")
    assert (row.status, row.lease_owner is not None) == (
        "running" if near else "waiting",
        near,
    )
    assert [wait.at for wait in life(simulation, "i").waits] == [begun + seconds * SECOND]
    assert (row.id in simulation.daemons[0].held) is near
    simulation.advance_to(begun + seconds * SECOND)
    assert ending(simulation, "i")[0] == "done"


def test_a_near_sleeper_finds_what_landed_during_its_save() -> None:
    text = WAITING.replace("1h", "20s")
    simulation, meddler = meddled(text)

    def land(name: str, args: tuple[Any, ...]) -> None:
        if name == "save" and meddler.count("save") == 0:
            simulation.outside.send("i", "news", None, '"heard"', None, simulation.now)

    meddler.before = land
    begun = simulation.now
    simulation.start(MAIN, "i", ())

    assert simulation.now == begun
    assert ending(simulation, "i") == ("done", '"heard"')


@pytest.mark.parametrize("wait", ["20s", "1h"])
def test_a_cancellation_that_a_save_gives_back_is_acted_on(wait: str) -> None:
    simulation, meddler = meddled(WAITING.replace("1h", wait))

    def land(name: str, args: tuple[Any, ...]) -> None:
        if name == "save" and meddler.count("save") == 0:
            cancel = Cancel("c", "changed my mind", False, simulation.now)
            simulation.outside.cancel("i", None, cancel, simulation.now, "ana")

    meddler.before = land
    begun = simulation.now
    simulation.start(MAIN, "i", ())

    assert simulation.now == begun
    assert simulation.row("i").status == "failed"
    assert "changed my mind" in (simulation.row("i").result or "")


def test_a_cancellation_told_while_only_steps_are_out_costs_one_write_at_once() -> None:
    text = """
    step slow() { }
    flow Main() -> String {
        run {
            slow()
            wait match {
                case let why = flow.cancelled(): return why
                case after 1h: return "not told"
            }
        }
    }
    """
    simulation, meddler = meddled(text, lambda leaving: Reply("null", after=30 * SECOND))
    simulation.start(MAIN, "i", ())
    saves = meddler.count("save")
    simulation.cancel("i", "enough")

    assert meddler.count("save") == saves + 1
    simulation.rest()
    assert ending(simulation, "i") == ("done", '"enough"')


# -- what is written, and when ------------------------------------------------------------------

FAN = """
step charge(n: Int) -> Int { return n }
step record(n: Int) { }
flow Main(count: Int) -> List<Int> {
    run { return task.map((0..count).toList(), both) }
    fn both(n: Int) -> Int {
        let charged = charge(n)
        record(charged)
        return charged
    }
}
"""


def test_answers_while_nothing_new_can_leave_write_no_state() -> None:
    text = """
    step charge(n: Int) -> Int { return n }
    flow Main() -> List<Int> { run { return task.map([1, 2, 3], fn(n) => charge(n)) } }
    """

    def answer(leaving: Leaving) -> Reply:
        number = leaving.args[0]
        assert isinstance(number, int)
        return Reply(str(number), after=number * SECOND)

    simulation, meddler = meddled(text, answer)
    simulation.start(MAIN, "i", ())
    assert meddler.count("save") == 1
    simulation.advance_to(simulation.now + 2 * SECOND)
    assert meddler.count("save") == 1
    assert meddler.count("put_results") == 2
    simulation.rest()
    assert ending(simulation, "i") == ("done", "[1,2,3]")
    assert meddler.count("save") == 2


def test_a_wave_gathers_what_can_leave_within_ten_milliseconds() -> None:
    """Fifty answers in five milliseconds: all that follows leaves after one write, together."""

    def answer(leaving: Leaving) -> Reply:
        number = leaving.args[0]
        assert isinstance(number, int)
        if leaving.step == "record":
            return Reply("null", after=SECOND)
        return Reply(str(number), after=100 if number == 0 else 100 + number % 5)

    simulation, meddler = meddled(FAN, answer, settings=Settings(wave=10))
    begun = simulation.now
    simulation.start(MAIN, "i", (51,))
    assert meddler.count("save") == 1  # nothing was under way: not put off
    assert {step.at for step in simulation.left} == {begun}
    simulation.advance_to(begun + 500)

    records = [step.at - begun for step in simulation.left if step.step == "record"]
    assert len(records) == 51
    assert len(set(records)) == 1
    assert set(records) <= set(range(104, 111))
    assert meddler.count("save") == 2, "the answers have no write of the state"
    assert meddler.count("put_results") <= 5, "answers of one instant are written together"


def test_a_step_leaves_at_the_latest_ten_milliseconds_after_it_was_noted() -> None:
    def answer(leaving: Leaving) -> Reply:
        number = leaving.args[0]
        assert isinstance(number, int)
        if leaving.step == "record":
            return Reply("null")
        return Reply(str(number), after=[100, 103, 10_000][number])

    simulation, _ = meddled(FAN, answer, settings=Settings(wave=10))
    begun = simulation.now
    simulation.start(MAIN, "i", (3,))
    simulation.rest()

    records = [step.at - begun for step in simulation.left if step.step == "record"]
    assert records == [110, 110, 10_000]


def test_a_wait_that_is_over_already_is_not_waited_for() -> None:
    text = """
    flow Main() -> List<String> {
        channel news: String
        run {
            flow.sleep(1h)
            return [news.receive(), news.receive(), news.receive()]
        }
    }
    """
    simulation, meddler = meddled(text)
    simulation.start(MAIN, "i", ())
    for one in ("a", "b", "c"):
        simulation.send("i", "news", one)
    saves = meddler.count("save")
    simulation.rest()

    assert ending(simulation, "i") == ("done", '["a","b","c"]')
    assert meddler.count("save") == saves + 1


def test_a_stage_passed_between_two_writes_is_kept_by_the_next() -> None:
    text = """
    step pay() { }
    flow Main() {
        channel news: String
        run {
            pay()
            stage paid()
            news.receive()
        }
    }
    """
    simulation, meddler = meddled(text, lambda leaving: Reply("null", after=SECOND))
    simulation.start(MAIN, "i", ())
    row = simulation.row("i")
    assert (row.stage, row.pass_number) == (None, 0)
    simulation.advance_to(simulation.now + SECOND)

    row = simulation.row("i")
    assert (row.stage, row.pass_number, row.status) == ("paid", 1, "waiting")
    assert meddler.count("save") == 2
    assert "paid" in (row.at_stage or "")
    assert life(simulation, "i").attempts == ()  # those of the pass before went with that write


def test_a_stage_in_the_write_that_stops_is_kept_too() -> None:
    text = """
    flow Main(n: Int) -> Int {
        run {
            stage counting()
            return 10 / n
        }
    }
    """
    simulation = world(text)
    simulation.start(MAIN, "i", (0,))

    row = simulation.row("i")
    assert (row.status, row.stage, row.pass_number) == ("stopped", "counting", 1)
    assert '"trace":[["run","m.flow",5]]' in (row.stopped_by or "")


# -- tasks ----------------------------------------------------------------------------------------

JOINING = """
step slow(n: Int) -> Int { return n }
flow Main(divisor: Int) -> String {
    run {
        let t = task.start(work)
        return match t.join() {
            case Ok(n): "it gave \\(n)"
            case Err(failure): failure.message
        }
    }
    fn work() -> Int { return slow(10) / divisor }
}
"""


@pytest.mark.parametrize(("divisor", "result"), [(5, '"it gave 2"'), (0, '"division by zero"')])
def test_a_task_gives_who_joins_it_its_value_or_its_failure(divisor: int, result: str) -> None:
    simulation = world(JOINING, lambda leaving: Reply("10", after=SECOND))
    simulation.start(MAIN, "i", (divisor,))
    simulation.rest()

    assert ending(simulation, "i") == ("done", result)
    assert ("task_failed" in kinds(simulation, "i")) is (divisor == 0)


def test_a_failed_body_stops_the_instance_also_in_a_task() -> None:
    failure = '{"code":"R0001","message":"no such account","trace":[]}'
    simulation = world(JOINING, lambda leaving: Reply(FAILED, failure=failure))
    simulation.start(MAIN, "i", (1,))
    simulation.rest()

    row = simulation.row("i")
    assert (row.status, row.error_code) == ("stopped", "R0001")
    assert "no such account" in (row.stopped_by or "")
    assert [(one.result, one.failure) for one in life(simulation, "i").attempts] == [
        (FAILED, failure)
    ]


def test_run_returning_waits_for_the_steps_of_tasks_nobody_joined() -> None:
    text = """
    step slow() undo revoke() { }
    step revoke() { }
    flow Main() -> Int {
        run {
            task.start(slow)
            flow.sleep(1s)
            return 7
        }
    }
    """
    simulation = world(text, lambda leaving: Reply("null", after=10 * SECOND))
    begun = simulation.now
    simulation.start(MAIN, "i", ())
    simulation.advance_to(begun + 9 * SECOND)
    assert simulation.row("i").status == "running"
    simulation.rest()

    assert ending(simulation, "i") == ("done", "7")
    assert simulation.row("i").since == begun + 10 * SECOND
    assert [one.result for one in life(simulation, "i").attempts if one.step] == ["null"]
    assert left(simulation) == [("slow", 1)]


@pytest.mark.parametrize(
    "waits",
    [
        "inner.receive()",
        "wait match { case when false: return }",
        "task.start(never).join()",
    ],
)
def test_what_nothing_can_wake_is_a_deadlock(waits: str) -> None:
    text = f"""
    flow Main() {{
        channel inner: Int inside
        run {{
            {waits}
            inner.send(1)
        }}
        fn never() {{ inner.receive() }}
    }}
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())

    assert simulation.row("i").error_code == "R0009"


@pytest.mark.parametrize(
    "waits",
    [
        "outer.receive()",
        "flow.sleep(40d)",
        "wait match { case let _ = flow.cancelled(): return }",
        'Other.start("other").wait()',
        'task.first([Other.start("other")])',
    ],
)
def test_what_something_can_wake_waits(waits: str) -> None:
    text = f"""
    flow Main() {{
        channel outer: Int
        run {{ {waits} }}
    }}
    flow Other() {{
        channel outer: Int
        run {{ outer.receive() }}
    }}
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())

    assert simulation.row("i").status == "waiting"


def test_a_step_gives_the_body_its_arguments_and_nothing_else() -> None:
    """The instance's own machine stands still while its steps are out."""
    text = """
    struct Claim { who: String, cents: Int }
    step pay(claim: Claim, note: String = "none") -> Int { return claim.cents }
    flow Main() -> Int {
        var secret = 5
        run { return pay(Claim { who: "kim", cents: 7 }) + secret }
    }
    """
    simulation = world(text, lambda leaving: Reply("7", after=MINUTE - 1))
    simulation.start(MAIN, "i", ())
    (step,) = simulation.left
    assert len(step.args) == 2
    (attempt,) = life(simulation, "i").attempts
    assert parse_json(attempt.asked) == [{"who": "kim", "cents": 7}, "none"]
    before = simulation.row("i").state
    simulation.advance_to(simulation.now + 30 * SECOND)
    assert simulation.row("i").state == before
    simulation.rest()
    assert ending(simulation, "i") == ("done", "12")


def test_a_namesake_never_meets_the_keys_of_the_one_before() -> None:
    text = """
    step pay() -> String { return "" }
    flow Main() -> String keep 1h { run { return pay() } }
    """
    answers = iter(('"first"', '"second"'))
    simulation = world(text, lambda leaving: Reply(next(answers)))
    first = simulation.start(MAIN, "i", ()).row.birth
    assert ending(simulation, "i") == ("done", '"first"')
    simulation.advance_to(simulation.now + HOUR + 1)
    second = simulation.start(MAIN, "i", ())
    assert second.created
    assert first != second.row.birth
    assert ending(simulation, "i") == ("done", '"second"')
    assert [step.key for step in simulation.left] == [
        f"i/{first}/0:0:pay#1",
        f"i/{second.row.birth}/0:0:pay#1",
    ]
