"""What a crash must not change: what a flow was told by other instances.

Each program is run whole, then once for each write and each departure, dying before it and after
it (`every_crash`); the whole run is looked at by hand, the others must end as it did.
"""

from __future__ import annotations

import re

from qoqi.runtime.simulation.crashes import Outcome, every_crash
from qoqi.runtime.simulation.world import Simulation
from qoqi.runtime.store.open import memory_store
from tests.reliability.lab import ending, meddled, world


def untimed(outcome: Outcome) -> dict[str, tuple[str, str]]:
    """A cancellation's result says when it was asked for, and a crash costs time."""
    return {
        id: (status, re.sub(r'"at":\d+', '"at":0', result or ""))
        for id, (status, result) in outcome.ends.items()
    }


def same(whole: Outcome, now: Outcome) -> bool:
    return untimed(whole) == untimed(now)


def played(text: str) -> dict[str, tuple[str, str | None]]:
    def play(simulation: Simulation) -> None:
        simulation.start("m.Main", "i", ())

    report = every_crash(lambda store: world(text, store=store), memory_store, play, same)
    assert report.points > 4
    return report.outcome.ends


def test_a_cancellation_of_another_is_asked_once_and_its_answer_stands() -> None:
    text = """
    flow Child() {
        channel never: String
        run { let _ = never.receive() }
    }
    flow Main() -> List<Result<(), CancelError>> {
        run {
            let child = Child.start("child")
            let first = child.cancel("not needed")
            let _ = child.wait()
            return [first, child.cancel("again")]
        }
    }
    """
    ends = played(text)
    assert ends["i"] == ("done", '[{"Ok":null},{"Err":"Ended"}]')
    assert ends["child"][0] == "failed"


def test_an_instance_may_cancel_itself() -> None:
    text = """
    flow Main() {
        channel never: String
        run {
            let _ = flow.self().cancel("enough")
            let _ = never.receive()
        }
    }
    """
    assert played(text)["i"][0] == "failed"


FAMILY = """
flow Leaf(n: Int) -> Int { run { return n } }
flow Other() -> Int {
    channel never: Int
    run { return never.receive() }
}
flow Main() -> Int {
    run {
        var leaves: List<Instance<Leaf>> = []
        for n in 0..COUNT {
            leaves.append(Leaf.start("leaf-\\(n)", n))
        }
        let Ok(values) = task.all(leaves) else { return -1 }
        return values.fold(0, fn(sum, n) => sum + n)
    }
}
"""


def test_a_loop_of_starts_is_one_write() -> None:
    simulation, meddler = meddled(FAMILY.replace("COUNT", "500"))
    simulation.start("m.Main", "i", ())
    assert meddler.count("save") <= 501 + 2, "one for the parent, one for each leaf, and the end"
    simulation.rest()
    assert ending(simulation, "i") == ("done", str(sum(range(500))))


def test_a_loop_of_starts_is_the_same_whatever_crashes() -> None:
    assert played(FAMILY.replace("COUNT", "3"))["i"] == ("done", "3")


def test_a_start_of_a_taken_name_finds_the_one_that_has_it() -> None:
    text = """
    flow Leaf(n: Int) -> Int { run { return n } }
    flow Main() -> Bool {
        run {
            let first = Leaf.start("leaf", 1)
            let again = Leaf.start("leaf", 2)
            let found = Leaf.find("leaf")
            return first == again && found == Some(first) && first.wait() == Ok(1)
        }
    }
    """
    assert played(text)["i"] == ("done", "true")


def test_a_name_of_another_flow_fails_the_start() -> None:
    text = """
    flow Leaf() { run { } }
    flow Main() {
        run {
            let _ = Leaf.start("other")
        }
    }
    flow Other() -> Int {
        channel never: Int
        run { return never.receive() }
    }
    """
    simulation = world(text)
    simulation.start("m.Other", "other", ())
    simulation.start("m.Main", "i", ())
    simulation.rest()
    row = simulation.row("i")
    assert (row.status, row.error_code) == ("stopped", "R0010")
    assert "the name other is taken by an instance of m.Other" in (row.stopped_by or "")


def test_a_name_taken_between_the_look_and_the_write_is_found_by_the_next_look() -> None:
    simulation, meddler = meddled(FAMILY.replace("COUNT", "2"))
    taken: list[str] = []

    def takes(name: str, args: tuple[object, ...]) -> None:
        if name == "save" and args[0] == "i" and not taken:
            row = simulation.first_row("leaf-1", "m.Leaf", (10,), None)
            simulation.outside.create(row, simulation.now)
            taken.append(row.birth)

    meddler.before = takes
    simulation.start("m.Main", "i", ())
    simulation.rest()

    assert ending(simulation, "i") == ("done", "10"), "leaf-0 gives 0, the one that was first 10"
    assert simulation.row("leaf-1").birth == taken[0]
    assert simulation.row("leaf-1").parent is None


def test_what_was_started_before_an_err_is_created_and_cancelled() -> None:
    text = """
    flow Child() -> Int {
        channel never: Int
        run { return never.receive() }
    }
    flow Main() -> Result<(), String> {
        run {
            let _ = Child.start("child")
            let _ = flow.detach(Child.start("loose"))
            return Err("no")
        }
    }
    """
    ends = played(text)
    assert ends["i"] == ("done", '{"Err":"no"}')
    assert ends["child"][0] == "failed"
    assert ends["loose"][0] == "waiting"


def test_what_was_started_before_a_mistake_is_created() -> None:
    text = """
    flow Child() -> Int { run { return 1 } }
    flow Main() -> Int {
        run {
            let child = Child.start("child")
            flow.stop("what now?")
            let Ok(one) = child.wait() else { return 0 }
            return one
        }
    }
    """
    simulation = world(text)
    simulation.start("m.Main", "i", ())
    simulation.rest()
    assert simulation.row("i").status == "stopped"
    assert ending(simulation, "child") == ("done", "1")


def test_a_name_whose_instance_may_be_swept_is_free_for_the_next() -> None:
    """As it was asked for from outside: nobody has to wait for the sweeper."""
    text = """
    flow Short() -> Int keep 1s { run { return 1 } }
    flow Main() -> Bool {
        run {
            let first = flow.detach(Short.start("short"))
            let same = first == flow.detach(Short.start("short"))
            flow.sleep(1h)
            let next = flow.detach(Short.start("short"))
            return same && first != next
        }
    }
    """
    assert played(text)["i"] == ("done", "true")
