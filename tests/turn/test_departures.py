"""What the simulation tells of steps that left: as if no daemon had died."""

from __future__ import annotations

from qoqi.runtime.simulation.faults import Crash, CrashingStore
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.vm.program import load
from tests.turn.test_turn import FLOW, approval


def after_ten_seconds(leaving: Leaving) -> Reply:
    return Reply('"paid"', after=10_000)


def simulation() -> Simulation:
    program = load(approval(), None)
    return Simulation(memory_store(), {"v": program}, {FLOW: "v"}, after_ten_seconds, at_once=True)


def test_a_step_that_leaves_again_after_a_crash_stands_where_and_when_it_left_first() -> None:
    world = simulation()
    world.start(FLOW, "a", ())
    world.start(FLOW, "b", ())
    world.send("a", "decisions", "ana")
    first = world.now
    world.send("b", "decisions", "bob")
    world.advance_to(first + 3_000)
    world.kill(world.daemons[0])
    world.advance_to(first + 30_000)

    assert [(step.instance, step.attempt) for step in world.left] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
    ]
    told = [(step.instance, step.attempt, step.at) for step in world.departures()]
    assert told == [("a", 1, first), ("b", 1, first)]


def test_an_attempt_that_was_written_and_never_left_is_not_counted() -> None:
    left = []
    for crash_at in range(1, 6):
        world = simulation()
        world.store = CrashingStore(world.store, crash_at, after=True)
        world.start(FLOW, "a", ())
        world.send("a", "decisions", "ana")
        world.advance_to(world.now + 30_000)

        left.append([step.attempt for step in world.left])
        assert [step.attempt for step in world.departures()] == [1]
    assert [2] in left


def test_a_store_may_die_again_and_again() -> None:
    dying = CrashingStore(memory_store(), 2, every=3)
    died = []
    for number in range(1, 12):
        try:
            dying.point()
        except Crash:
            died.append(number)

    assert died == [2, 5, 8, 11]
