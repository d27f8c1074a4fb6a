"""`limit n` and `limit n per d`: attempts of a step over the whole store, counted as rows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.vm.program import load
from tests.turn.test_turn import FLOW, fan_out


def world_with(limits: tuple[tuple[int, int], ...], after: int) -> Simulation:
    chunk = fan_out()
    charge, record = chunk.steps
    chunk = replace(chunk, steps=(replace(charge, limits=limits), record))

    def answer(leaving: Leaving) -> Reply:
        (given,) = leaving.args
        return Reply(f'"{given}!"', after=after if leaving.step == "charge" else 0)

    return Simulation(memory_store(), {"v1": load(chunk)}, {FLOW: "v1"}, answer)


def test_at_most_two_are_under_way_over_all_instances() -> None:
    world = world_with(((2, 0),), after=10_000)
    begun = world.now
    world.start(FLOW, "one", ())
    world.start(FLOW, "two", ())
    world.rest()
    charges = [step for step in world.left if step.step == "charge"]
    assert len(charges) == 6
    for step in charges:
        beside = [one for one in charges if one.at <= step.at < one.at + 10_000]
        assert len(beside) <= 2
    assert {world.row(id).status for id in ("one", "two")} == {"done"}
    assert charges[-1].at >= begun + 20_000


def test_at_most_one_begins_per_minute() -> None:
    world = world_with(((1, 60_000),), after=0)
    begun = world.now
    world.start(FLOW, "one", ())
    world.rest()
    times = [step.at - begun for step in world.left if step.step == "charge"]
    assert times[0] == 0
    assert all(later - earlier >= 60_000 for earlier, later in itertools.pairwise(times))
    assert world.row("one").status == "done"


@pytest.mark.parametrize("at", [0, 5_000])
def test_a_step_that_waits_for_a_slot_is_cancelled_like_any_other(at: int) -> None:
    world = world_with(((1, 0),), after=10_000)
    world.start(FLOW, "one", ())
    world.advance_to(world.now + at)
    world.cancel("one", "over")
    world.rest()
    assert world.row("one").status == "failed"
    assert [step.step for step in world.left] == ["charge"]


def test_a_slot_given_free_in_an_instance_is_taken_at_once() -> None:
    world = world_with(((1, 0),), after=10_000)
    begun = world.now
    world.start(FLOW, "one", ())
    world.rest()
    times = [step.at - begun for step in world.left if step.step == "charge"]
    assert times == [0, 10_000, 20_000]


def test_an_answer_that_is_not_written_yet_holds_no_slot() -> None:
    world = world_with(((1, 0),), after=0)
    begun = world.now
    world.start(FLOW, "one", ())
    world.rest()
    assert {step.at - begun for step in world.left if step.step == "charge"} == {0}
