"""everyCrash for the three examples: whatever goes wrong, at every write and departure.

Daemons die, with their bodies and without; two hold the same instance; one stands still past its
lease; the store is busy, or commits and loses its answer; the clock jumps. No outcome changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.runtime.programs import arguments
from qoqi.runtime.simulation.crashes import CrashingStore, Make, Play, Report, every_crash
from qoqi.runtime.simulation.faults import EVERY, Fault
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.vm.program import Program, load
from qoqi.vm.values import Variant

ROOT = Path(__file__).parents[2]
HOUR = 3_600_000


@pytest.fixture(scope="module")
def programs() -> dict[str, Program]:
    """The flows of the root package by name; a flow's name stands for its version here."""
    built = api.build_tests(api.check(str(ROOT)))
    return {flow.name: load(flow.chunk, flow.debug) for flow in built.flows}


def make(programs: dict[str, Program], answer: Callable[[Leaving], Reply]) -> Make:
    return lambda store: Simulation(store, programs, {name: name for name in programs}, answer)


def start(world: Simulation, flow: str, name: str, args: Mapping[str, object]) -> None:
    world.start(flow, name, arguments(world.program(flow), args))


def played(programs: dict[str, Program], answer: Callable[[Leaving], Reply], play: Play) -> Report:
    """Under everything, each of which has to have happened."""
    report = every_crash(make(programs, answer), memory_store, play, faults=EVERY)
    assert set(report.happened) == set(Fault) - {Fault.GIVEN_UP}
    assert all(report.happened.values())
    return report


def no_step(leaving: Leaving) -> Reply:
    raise AssertionError(f"{leaving.step} left, and nothing asked for it")


def test_the_approval(programs: dict[str, Program]) -> None:
    claim = {"claim": {"employee": "kim", "cents": 4250}}
    term = programs["approval.Approval"].chunk.channels[0].type

    def play(world: Simulation) -> None:
        start(world, "approval.Approval", "expense:4411", claim)
        world.advance_to(world.now + 3 * HOUR)
        program = world.program("approval.Approval")
        assert isinstance(term, tuple)
        decision = program.types.at(term[1])  # type: ignore[arg-type]
        approved = Variant(decision, 0, ("ana",))
        assert world.send("expense:4411", "decisions", approved, "click-77") == "Delivered"
        assert world.send("expense:4411", "decisions", approved, "click-77") == "Already"

    report = played(programs, no_step, play)
    assert report.outcome.ends == {"expense:4411": ("done", '{"Approved":{"by":"ana"}}')}
    assert report.points >= 40


def test_nobody_decides_for_two_days(programs: dict[str, Program]) -> None:
    claim = {"claim": {"employee": "kim", "cents": 4250}}

    def play(world: Simulation) -> None:
        start(world, "approval.Approval", "expense:1", claim)

    report = played(programs, no_step, play)
    assert report.outcome.ends == {"expense:1": ("done", "null")}


def pay(leaving: Leaving) -> Reply:
    delays = {"a": 3_000, "b": 1_000, "c": 2_000}
    invoice = leaving.args[0]
    name = getattr(invoice, "fields", ["?"])[0]
    if leaving.step == "charge":
        return Reply(f'{{"id":"receipt of {name}"}}', after=delays[name])
    return Reply("null", after=100)


def test_the_three_payments(programs: dict[str, Program]) -> None:
    invoices = [{"id": name, "cents": 100} for name in ("a", "b", "c")]

    def play(world: Simulation) -> None:
        start(world, "payments.Retries", "retries-1", {"invoices": invoices})

    report = played(programs, pay, play)
    receipts = ",".join(f'{{"id":"receipt of {name}"}}' for name in "abc")
    assert report.outcome.ends == {"retries-1": ("done", f"[{receipts}]")}
    assert report.points >= 120


def fulfil(leaving: Leaving) -> Reply:
    match leaving.step:
        case "reserve":
            return Reply('{"Ok":{"id":"s1"}}', after=200)
        case "charge":
            return Reply('{"Ok":{"id":"r1"}}', after=300)
        case "ship":
            return Reply('{"Err":"NoCarrier"}', after=100)
        case _:
            return Reply("null", after=50)


def test_the_order_is_undone_in_reverse(programs: dict[str, Program]) -> None:
    order = {"order": {"id": "1", "item": "lamp", "cents": 4900}}

    def play(world: Simulation) -> None:
        start(world, "order.Purchase", "order:1", order)

    report = played(programs, fulfil, play)
    assert report.outcome.ends == {"order:1": ("done", '{"Err":"NoCarrier"}')}
    assert report.outcome.undone == {"order:1": ("undo#2", "undo#1")}


def test_two_daemons_whose_leases_overlap(programs: dict[str, Program]) -> None:
    """A daemon stands still past its lease, and wakes: its writes are refused, all ends well."""
    invoices = [{"id": name, "cents": 100} for name in ("a", "b", "c")]
    store: Store = memory_store()
    world = make(programs, pay)(store)
    start(world, "payments.Retries", "retries-1", {"invoices": invoices})
    world.advance_to(world.now + 1_500)
    sleeper = world.daemons[0]
    sleeper.paused = True
    world.add_daemon()
    world.advance_to(world.now + 40_000)
    assert world.row("retries-1").status == "done"
    sleeper.paused = False
    world.rest()
    row = world.row("retries-1")
    assert row.status == "done"
    receipts = ",".join(f'{{"id":"receipt of {name}"}}' for name in "abc")
    assert row.result == f"[{receipts}]"
    life = store.life("retries-1")
    assert life is not None
    assert all(attempt.result is not None for attempt in life.attempts)
    assert len({(step.key, step.attempt) for step in world.left}) == len(world.left)


def test_a_crashing_store_counts_only_what_daemons_write(programs: dict[str, Program]) -> None:
    store = memory_store()
    crashing = CrashingStore(store)
    world = make(programs, no_step)(crashing)
    world.outside = store
    start(world, "approval.Approval", "e", {"claim": {"employee": "kim", "cents": 1}})
    assert crashing.calls == 2  # the lease and the save that lets it sleep
