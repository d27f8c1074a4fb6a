"""Endings and cancellations, by the seed's sections 6 and 8: children, undos, people."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.vm.host import RETRY, TIMEOUT, Cancel, PutResult
from qoqi.vm.jsonform import parse_json
from tests.reliability.lab import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Answer,
    ending,
    kinds,
    left,
    life,
    meddled,
    world,
)

MAIN = "m.Main"

TRIP = """
step book(what: String) -> String undo drop(it) { return what }
step drop(what: String) -> Result<(), String> { return Ok(()) }
flow Main() -> Result<String, String> {
    channel news: String
    run {
        book("flight")
        book("hotel")
        wait match {
            case let why = news.receive(): return Err(why)
            case after 1d: return Ok("gone")
        }
    }
}
"""


def booking(dropped: Callable[[Leaving], Reply]) -> Answer:
    def answer(leaving: Leaving) -> Reply:
        if leaving.step == "book":
            return Reply(f'"{leaving.args[0]}-1"')
        return dropped(leaving)

    return answer


def fine(leaving: Leaving) -> Reply:
    return Reply('{"Ok":null}', after=SECOND)


def undone(simulation: Simulation) -> list[tuple[object, int]]:
    return [(step.args[0], step.attempt) for step in simulation.left if step.step == "drop"]


def test_an_err_is_done_once_its_undos_have_run_the_last_first() -> None:
    simulation = world(TRIP, booking(fine))
    birth = simulation.start(MAIN, "i", ()).row.birth
    simulation.send("i", "news", "rain")

    row = simulation.row("i")
    assert (row.status, row.phase, row.result) == ("running", "finish", '{"Err":"rain"}')
    simulation.kill(simulation.daemons[0])
    simulation.rest()
    assert ending(simulation, "i") == ("done", '{"Err":"rain"}')
    assert [what for what, _ in undone(simulation)] == ["hotel-1", "hotel-1", "flight-1"]
    keys = [step.key for step in simulation.left if step.step == "drop"]
    assert keys == [f"i/{birth}/0:0:undo#{n}" for n in (2, 2, 1)]


def test_a_value_undoes_nothing() -> None:
    simulation = world(TRIP, booking(fine))
    simulation.start(MAIN, "i", ())
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Ok":"gone"}')
    assert undone(simulation) == []


def stuck() -> Simulation:
    """The hotel will not be dropped the first time."""

    def dropped(leaving: Leaving) -> Reply:
        refuses = leaving.args == ("hotel-1",) and leaving.attempt == 1
        return Reply('{"Err":"too late"}' if refuses else '{"Ok":null}')

    simulation = world(TRIP, booking(dropped))
    simulation.start(MAIN, "i", ())
    simulation.send("i", "news", "rain")
    simulation.rest()
    return simulation


def test_an_undo_that_gives_err_stops_it_with_the_rest_still_to_undo() -> None:
    simulation = stuck()
    row = simulation.row("i")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0015")
    assert "drop could not undo: " in (row.stopped_by or "")
    assert "too late" in (row.stopped_by or "")
    undos = parse_json(row.state)
    assert isinstance(undos, dict)
    assert len(undos["undo"]) == 2
    assert undone(simulation) == [("hotel-1", 1)]


def test_an_undo_whose_answer_does_not_fit_its_step_stops_it_too() -> None:
    simulation = world(TRIP, booking(lambda leaving: Reply("7")))
    simulation.start(MAIN, "i", ())
    simulation.send("i", "news", "rain")
    simulation.rest()

    row = simulation.row("i")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0015")
    assert "drop could not undo: " in (row.stopped_by or "")
    assert undone(simulation) == [("hotel-1", 1)]


def test_a_cancellation_that_finds_an_answer_it_cannot_read_leaves_the_rest_to_a_person() -> None:
    """What would undo it is not known, so the instance does not end as if all were undone."""
    simulation = world(TRIP, slow_booking(HOUR))
    simulation.start(MAIN, "i", ())
    simulation.cancel("i", "no")
    (key,) = (step.key for step in simulation.left)
    simulation.outside.put_result(PutResult(key, 1, "7"), simulation.now)
    simulation.rest()

    row = simulation.row("i")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0013")
    assert "what `book` did does not fit this version" in (row.stopped_by or "")
    assert row.cancel is None


def test_a_resume_runs_that_undo_again_and_no_other_step() -> None:
    simulation = stuck()
    assert simulation.outside.resume("i", simulation.now, "ana").outcome == "ok"
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Err":"rain"}')
    assert undone(simulation) == [("hotel-1", 1), ("hotel-1", 2), ("flight-1", 1)]
    assert [step for step, _ in left(simulation)].count("book") == 2


def test_a_person_ends_it_and_no_more_undos_run() -> None:
    simulation = stuck()
    assert (
        simulation.outside.end("i", "settled by phone", simulation.now, DAY, "ana").outcome == "ok"
    )
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Err":"rain"}')
    assert undone(simulation) == [("hotel-1", 1)]
    assert simulation.row("i").note == "ended by ana: settled by phone"


def test_a_cancellation_in_finish_is_ok_and_changes_nothing() -> None:
    simulation = world(TRIP, booking(fine))
    simulation.start(MAIN, "i", ())
    simulation.send("i", "news", "rain")
    assert simulation.cancel("i", "no") == "ok"
    assert simulation.row("i").cancel is None
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Err":"rain"}')


# -- cancellations --------------------------------------------------------------------------------


def test_a_deaf_flow_is_cancelled_where_it_is() -> None:
    simulation = world(TRIP, booking(fine))
    begun = simulation.now
    simulation.start(MAIN, "i", ())
    simulation.cancel("i", "changed my mind")
    simulation.rest()

    status, result = ending(simulation, "i")
    assert status == "failed"
    assert parse_json(result or "") == {"reason": "changed my mind", "at": begun}
    assert [what for what, _ in undone(simulation)] == ["hotel-1", "flight-1"]


def slow_booking(after: int, never: bool = False) -> Answer:
    def answer(leaving: Leaving) -> Reply:
        if leaving.step == "book":
            return Reply(f'"{leaving.args[0]}-1"', after=after, never=never)
        return fine(leaving)

    return answer


@pytest.mark.parametrize("crash", [False, True])
def test_the_step_under_way_is_not_cut_short_its_answer_and_undo_count(crash: bool) -> None:
    """After a crash its answer is waited for until its limit too, whoever asks then."""
    simulation = world(TRIP, slow_booking(40 * SECOND))
    begun = simulation.now
    simulation.start(MAIN, "i", ())
    simulation.cancel("i", "no")
    simulation.add_daemon()
    if crash:
        simulation.daemons[0].paused = True
        simulation.advance_to(begun + 35 * SECOND)
        assert simulation.row("i").lease_owner == simulation.daemons[1].me
        simulation.daemons[0].paused = False
    simulation.rest()

    assert ending(simulation, "i")[0] == "failed"
    assert left(simulation) == [("book", 1), ("drop", 1)]
    assert undone(simulation) == [("flight-1", 1)]


@pytest.mark.parametrize("crash", [False, True])
def test_a_step_without_an_answer_may_have_acted_so_a_person_looks(crash: bool) -> None:
    simulation = world(TRIP, slow_booking(0, never=True))
    begun = simulation.now
    simulation.start(MAIN, "i", ())
    simulation.cancel("i", "no")
    if crash:
        simulation.kill(simulation.daemons[0])
    simulation.rest()

    row = simulation.row("i")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0013")
    assert "book may have acted" in (row.stopped_by or "")
    assert parse_json(row.result or "") == {"reason": "no", "at": begun}
    assert left(simulation) == [("book", 1)]
    # A person has looked, and there is nothing to undo.
    assert simulation.outside.resume("i", simulation.now, "ana").outcome == "ok"
    simulation.rest()
    assert ending(simulation, "i")[0] == "failed"


def test_a_step_between_two_tries_may_have_acted_if_its_limit_passed() -> None:
    simulation = world(TRIP, slow_booking(0, never=True))
    simulation.start(MAIN, "i", ())
    simulation.advance_to(simulation.now + MINUTE + 500)
    assert [row.result for row in life(simulation, "i").attempts] == [TIMEOUT]
    simulation.cancel("i", "no")
    simulation.rest()

    assert simulation.row("i").error_code == "R0013"


def test_a_step_that_said_itself_to_try_again_has_not_acted() -> None:
    simulation = world(TRIP, lambda leaving: Reply(RETRY, delay=HOUR))
    simulation.start(MAIN, "i", ())
    simulation.cancel("i", "no")
    simulation.rest()

    assert ending(simulation, "i")[0] == "failed"
    assert left(simulation) == [("book", 1)]


LISTENING = """
step book(what: String) -> String undo drop(it) { return what }
step drop(what: String) -> Result<(), String> { return Ok(()) }
flow Main(refuse: Bool) -> Result<String, String> {
    channel news: Int
    run {
        book("flight")
        wait match {
            case let n = news.receive(): return Ok("\\(10 / n)")
            case let why = flow.cancelled():
                if refuse { return Err(why) }
                book(why)
                return Ok("heard \\(why)")
        }
    }
}
"""


def test_a_listening_flow_goes_on_and_ends_as_it_likes() -> None:
    simulation = world(LISTENING, booking(fine))
    simulation.start(MAIN, "i", (False,))
    simulation.cancel("i", "why not")
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Ok":"heard why not"}')
    assert [step.args[0] for step in simulation.left] == ["flight", "why not"]


def test_an_err_of_a_flow_that_heard_runs_its_undos() -> None:
    simulation = world(LISTENING, booking(fine))
    simulation.start(MAIN, "i", (True,))
    simulation.cancel("i", "no")
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Err":"no"}')
    assert undone(simulation) == [("flight-1", 1)]


def test_a_reason_that_comes_before_the_wait_is_delivered_at_it() -> None:
    simulation = world(LISTENING, slow_booking(10 * SECOND))
    simulation.start(MAIN, "i", (False,))
    simulation.cancel("i", "early")
    simulation.kill(simulation.daemons[0])
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Ok":"heard early"}')


def test_now_makes_a_listening_flow_deaf() -> None:
    simulation = world(LISTENING, booking(fine))
    simulation.start(MAIN, "i", (False,))
    simulation.cancel("i", "at once", now=True)
    simulation.rest()

    assert ending(simulation, "i")[0] == "failed"
    assert [step.args[0] for step in simulation.left] == ["flight", "flight-1"]


def test_a_stopped_one_is_cancelled_as_if_it_did_not_listen() -> None:
    simulation = world(LISTENING, booking(fine))
    simulation.start(MAIN, "i", (False,))
    simulation.send("i", "news", 0)
    assert simulation.row("i").status == "stopped"
    assert simulation.cancel("i", "beyond repair") == "ok"
    simulation.rest()

    assert ending(simulation, "i")[0] == "failed"
    assert undone(simulation) == [("flight-1", 1)]


def test_two_cancellations_of_one_text_are_two() -> None:
    text = """
    flow Main() -> List<String> {
        run { return [hear(), hear()] }
        fn hear() -> String {
            wait match {
                case let why = flow.cancelled(): return why
                case after 1d: return "nothing"
            }
        }
    }
    """
    simulation, meddler = meddled(text)
    simulation.start(MAIN, "i", ())

    def again(name: str, args: tuple[object, ...]) -> None:
        if name == "save" and len(asked) == 1:
            asked.append("again")
            cancel = Cancel("second", "enough", False, simulation.now)
            simulation.outside.cancel("i", None, cancel, simulation.now, "ana")

    asked = ["once"]
    meddler.before = again
    simulation.cancel("i", "enough")
    simulation.rest()

    assert ending(simulation, "i") == ("done", '["enough","enough"]')


def test_a_flow_that_refuses_says_so_and_now_overrules_it() -> None:
    text = """
    flow Main() {
        channel news: Int
        run {
            flow.refuse("the parcel has left")
            news.receive()
            flow.accept()
            news.receive()
        }
    }
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())
    assert simulation.cancel("i", "no") == "refused: the parcel has left"
    assert simulation.row("i").cancel is None
    simulation.send("i", "news", 1)
    assert simulation.cancel("i", "no") == "ok"
    assert simulation.row("i").status == "failed"

    simulation.start(MAIN, "j", ())
    assert simulation.cancel("j", "no", now=True) == "ok"
    assert simulation.row("j").status == "failed"


# -- children -------------------------------------------------------------------------------------

FAMILY = """
step book(what: String) -> String undo drop(it) { return what }
step drop(what: String) -> Result<(), String> { return Ok(()) }
flow Child(name: String) -> Result<String, String> {
    channel news: Int
    run {
        book(name)
        if news.receive() > 0 { return Ok(name) }
        return Err("no \\(name)")
    }
}
flow Main(fails: Bool) -> Result<List<String>, String> {
    run {
        book("parent")
        let children = ["a", "b"].map(fn(name) => Child.start("child-\\(name)", name))
        if fails { return Err("no parent") }
        match task.all(children) {
            case Ok(results): return Ok(results.map(told))
            case Err(Cancelled { reason }): return Err(reason)
        }
    }
    fn told(result: Result<String, String>) -> String {
        return match result {
            case Ok(name): name
            case Err(why): "Err: \\(why)"
        }
    }
}
"""


def test_a_parent_that_fails_cancels_its_children_waits_for_them_then_undoes() -> None:
    simulation = world(FAMILY, booking(fine))
    simulation.start(MAIN, "i", (True,))
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Err":"no parent"}')
    for child in ("child-a", "child-b"):
        status, result = ending(simulation, child)
        assert status == "failed"
        assert "its parent ended" in (result or "")
        assert simulation.row(child).since < simulation.row("i").since
    assert undone(simulation)[-1] == ("parent-1", 1)
    assert {what for what, _ in undone(simulation)} <= {"a-1", "b-1", "parent-1"}


def test_what_a_child_returned_is_its_value_an_err_too() -> None:
    simulation = world(FAMILY, booking(fine))
    simulation.start(MAIN, "i", (False,))
    simulation.send("child-a", "news", 1)
    simulation.send("child-b", "news", 0)
    simulation.rest()

    assert ending(simulation, "child-b") == ("done", '{"Err":"no b"}')
    assert ending(simulation, "i") == ("done", '{"Ok":["a","Err: no b"]}')
    assert undone(simulation) == [("b-1", 1)]  # before whoever waited was told


def test_a_cancelled_child_gives_its_reason_and_nothing_else() -> None:
    simulation = world(FAMILY, booking(fine))
    simulation.start(MAIN, "i", (False,))
    simulation.cancel("child-a", "sold out")
    simulation.rest()

    assert ending(simulation, "i") == ("done", '{"Err":"sold out"}')
    assert ending(simulation, "child-b")[0] == "failed"


def test_a_stopped_child_gives_nothing_and_is_cancelled_with_its_undos() -> None:
    text = FAMILY.replace("news.receive() > 0", "10 / news.receive() > 0")
    simulation = world(text, booking(fine))
    simulation.start(MAIN, "i", (False,))
    simulation.send("child-a", "news", 0)
    simulation.rest()
    assert simulation.row("child-a").status == "stopped"
    assert simulation.row("i").status == "waiting"
    simulation.cancel("i", "no")
    simulation.rest()

    assert ending(simulation, "i")[0] == "failed"
    assert ending(simulation, "child-a")[0] == "failed"
    assert {what for what, _ in undone(simulation)} == {"a-1", "b-1", "parent-1"}


def test_a_child_stopped_in_finish_holds_its_parent_until_a_person_ends_it() -> None:
    def dropped(leaving: Leaving) -> Reply:
        return Reply('{"Err":"no"}' if leaving.args == ("a-1",) else '{"Ok":null}')

    simulation = world(FAMILY, booking(dropped))
    simulation.start(MAIN, "i", (False,))
    simulation.cancel("i", "no")
    simulation.rest()
    child = simulation.row("child-a")
    assert (child.status, child.phase) == ("stopped", "finish")
    parent = simulation.row("i")
    assert (parent.status, parent.phase) == ("waiting", "finish")
    assert ("parent-1", 1) not in undone(simulation)

    assert (
        simulation.outside.end("child-a", "done by hand", simulation.now, DAY, "ana").outcome
        == "ok"
    )
    simulation.rest()
    assert ending(simulation, "child-a")[0] == "failed"
    assert ending(simulation, "i")[0] == "failed"
    assert undone(simulation)[-1] == ("parent-1", 1)


def test_a_parent_that_returns_a_value_leaves_its_children_running() -> None:
    text = """
    flow Child() { run { flow.sleep(1h) } }
    flow Main() { run { Child.start("child") } }
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())
    assert ending(simulation, "i")[0] == "done"
    assert simulation.row("child").status == "waiting"
    assert simulation.row("child").parent == "i"
    simulation.rest()
    assert ending(simulation, "child")[0] == "done"


def test_a_start_whose_arguments_do_not_fit_the_newest_version_fails_the_task() -> None:
    text = """
    flow Child(n: Int) -> Int { run { return n } }
    flow Main() { run { Child.start("child", 1) } }
    """
    newer = text.replace("n: Int", "n: Int, more: String").replace(", 1)", ', 1, "")')
    from tests.reliability.lab import programs

    simulation = world(text)
    by_hash, newest = programs(newer)
    simulation.programs.update(by_hash)
    simulation.newest["m.Child"] = newest["m.Child"]
    simulation.start(MAIN, "i", ())

    row = simulation.row("i")
    assert (row.status, row.error_code) == ("stopped", "R0004")
    assert "m.Child: more: is missing" in (row.stopped_by or "")


# -- a person -------------------------------------------------------------------------------------


def test_a_question_to_a_person_is_answered_under_its_key() -> None:
    from qoqi.runtime import people

    text = """
    flow Main() -> String {
        run {
            let n: Int = flow.stop("how many?")
            return "\\(n)"
        }
    }
    """
    simulation = world(text)
    simulation.start(MAIN, "i", ())
    row = simulation.row("i")
    assert (row.status, row.error_code) == ("stopped", "F0104")
    assert people.stopped_message(row) == "how many?"
    store = simulation.outside
    refused = people.answer(store, simulation.program, row, "seven", simulation.now, "ana")
    assert refused is not None
    assert people.answer(store, simulation.program, row, 7, simulation.now, "ana") is None
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"7"')
    assert f"i/{row.birth}/0:0:flow.stop#1" in {one.key for one in life(simulation, "i").attempts}


def test_give_up_ends_as_a_cancellation_that_nobody_hears() -> None:
    text = LISTENING.replace("book(why)", 'flow.giveUp("gave up: \\(why)")')
    simulation = world(text, booking(fine))
    simulation.start(MAIN, "i", (False,))
    simulation.cancel("i", "no")
    simulation.rest()

    status, result = ending(simulation, "i")
    assert status == "failed"
    assert "gave up: no" in (result or "")
    assert undone(simulation) == [("flight-1", 1)]


def test_finally_runs_at_every_end() -> None:
    text = """
    step lock(what: String) { }
    step unlock(what: String) { }
    flow Main(n: Int) -> Int {
        channel news: Int
        run {
            lock("door")
            flow.finally(unlock("door"))
            if n == 0 { news.receive() }
            return n
        }
    }
    """
    simulation = world(text)
    simulation.start(MAIN, "value", (1,))
    simulation.start(MAIN, "cancelled", (0,))
    simulation.cancel("cancelled", "no")
    simulation.rest()

    assert ending(simulation, "value") == ("done", "1")
    assert ending(simulation, "cancelled")[0] == "failed"
    assert left(simulation) == [("lock", 1), ("unlock", 1)] * 2
    assert "finishing" not in kinds(simulation, "value")


def test_an_err_while_a_step_of_a_task_may_have_acted_leaves_the_undos_to_a_person() -> None:
    text = """
    step book(what: String) -> String within 10s tries 1 undo drop(it) { return what }
    step drop(what: String) { }
    flow Main() -> Result<(), String> {
        run {
            book("flight")
            task.start(fn() { book("hotel") })
            flow.sleep(1s)
            return Err("no")
        }
    }
    """

    def answer(leaving: Leaving) -> Reply:
        gives = '"it"' if leaving.step == "book" else "null"
        return Reply(gives, after=HOUR if leaving.args == ("hotel",) else 0)

    simulation = world(text, answer)
    simulation.start(MAIN, "i", ())
    simulation.rest()

    row = simulation.row("i")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0013")
    assert row.result == '{"Err":"no"}'
    assert "book may have acted" in (row.stopped_by or "")
    assert [step for step, _ in left(simulation)] == ["book", "book"], "nothing is undone yet"

    assert simulation.outside.resume("i", simulation.now, "ana").outcome == "ok"
    simulation.rest()
    assert ending(simulation, "i") == ("done", '{"Err":"no"}')
    assert [step for step, _ in left(simulation)] == ["book", "book", "drop"]
