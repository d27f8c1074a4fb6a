"""The daemon at work: taking up, sleeping, telling, losing, draining, poison, busy stores."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from qoqi.runtime.daemon import AHEAD
from qoqi.runtime.model import Status
from qoqi.runtime.programs import Programs
from qoqi.runtime.store.protocol import Filter, StoreBusy
from qoqi.vm.bytecode.chunk import Chunk, FlowSlot
from qoqi.vm.host import Cancel, CancelTold, Save
from tests.daemon.test_bodies_ends import GET, HTTP
from tests.daemon.workbench import APPROVAL, Bench, Watched, approval, caller, step
from tests.vm.assembler import assemble

SECOND, MINUTE = 1_000, 60_000


def sleeper(ms: int, rounds: int = 1) -> Chunk:
    """Waits `rounds` times for so long, then returns its argument."""
    wait = "CONST 0\nWAIT_CASE 2\nWAIT 1\nPOP\nPOP\n"
    return assemble(
        f"function run 0 0\n{wait * rounds}LOAD_FLOW 0\nRETURN\n",
        flow="Sleeper",
        result="Int",
        constants=(("Duration", ms),),
        flow_slots=(FlowSlot("n", "Int", True),),
    )


def broken() -> Chunk:
    """Takes the field of a number: what no checked program does."""
    return assemble("function run 0 0\nINT 1\nGET_FIELD 0\nRETURN\n", flow="Broken", result="Int")


def requesting(steps: int = 1, **clauses: Any) -> Chunk:
    """Calls so many steps one after the other, each a request; returns the last status."""
    more = "POP\nLOAD_FLOW 0\nSTEP 0\n" * (steps - 1)
    return caller(HTTP + "GET_FIELD 0\nRETURN", more=more, clauses=clauses, **GET)


async def test_from_start_to_end_through_a_stage_and_a_message(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await bench.start(daemon, "Approval", "e-1", claim=21)
    await bench.settle()
    row = await bench.row("e-1")
    assert (row.status, row.stage, row.lease_owner) == (Status.WAITING, "asking", None)
    assert daemon.hosts == {}
    assert await bench.send(daemon, "e-1", "decisions", "7") == "Delivered"
    await bench.settle()
    row = await bench.row("e-1")
    assert (row.status, row.result) == (Status.DONE, "49")
    assert daemon.hosts == {}
    assert daemon.out == {}


async def test_a_message_that_waits_already_is_taken_at_once(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await bench.start(daemon, "Approval", "e-1", claim=1)
    await bench.send(daemon, "e-1", "decisions", "5")
    await bench.settle()
    assert (await bench.row("e-1")).result == "7"


async def test_a_near_sleeper_stays_in_memory_and_a_far_one_does_not(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(sleeper(20 * SECOND), daemon)
    await bench.start(daemon, "Sleeper", "near", n=1)
    await bench.settle()
    assert (await bench.row("near")).lease_owner == daemon.me
    await bench.deploy(sleeper(10 * MINUTE), daemon)
    await bench.start(daemon, "Sleeper", "far", n=2)
    await bench.settle()
    assert list(daemon.hosts) == ["near"]
    assert (await bench.row("far")).status == Status.WAITING
    await bench.advance(20 * SECOND)
    assert (await bench.row("near")).result == "1"
    await bench.advance(10 * MINUTE - 20 * SECOND - AHEAD - 1)
    assert (await bench.row("far")).status == Status.WAITING
    await bench.advance(AHEAD)  # it is in memory before its time, and waits there
    assert (await bench.row("far")).status == Status.RUNNING
    await bench.advance(1)
    assert (await bench.row("far")).result == "2"


async def test_a_cancellation_is_acted_on_at_once(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await bench.start(daemon, "Approval", "e-1", claim=1)
    await bench.settle()
    asked = await bench.store.cancel(
        "e-1", None, Cancel("c-1", "withdrawn", False, bench.clock.now()), bench.clock.now(), "ana"
    )
    daemon.tell("e-1", asked.owner, CancelTold())
    await bench.settle()
    row = await bench.row("e-1")
    assert row.status == Status.FAILED
    assert "withdrawn" in str(row.result)


async def test_a_step_longer_than_the_lease_keeps_it() -> None:
    bench = Bench()
    gate = asyncio.Event()

    async def slow(_: httpx.Request) -> httpx.Response:
        await gate.wait()
        return httpx.Response(200)

    bench.answer = slow
    first, second = await bench.daemon("a"), await bench.daemon("b")
    await bench.deploy(requesting(within=10 * MINUTE), first)
    await bench.start(first, "Caller", "c-1", n=1)
    await bench.settle()
    holder = (await bench.row("c-1")).lease_owner
    assert holder in (first.me, second.me)
    for _ in range(12):
        await bench.advance(10 * SECOND)
    assert (await bench.row("c-1")).lease_owner == holder
    gate.set()
    await bench.settle()
    assert (await bench.row("c-1")).result == "200"
    assert len(bench.requests) == 1
    await bench.close()


async def test_after_a_crash_the_next_daemon_waits_for_the_limit_and_tries_again() -> None:
    bench = Bench()

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    bench.answer = never
    first = await bench.daemon("a")
    await bench.deploy(requesting(within=MINUTE), first)
    await bench.start(first, "Caller", "c-1", n=1)
    await bench.settle()
    assert len(bench.requests) == 1
    await first.kill()
    bench.answer = lambda _: httpx.Response(200)
    second = await bench.daemon("b")
    await bench.advance(59 * SECOND)
    assert (await bench.row("c-1")).lease_owner == second.me
    assert len(bench.requests) == 1, "before its limit the first attempt may still be on its way"
    await bench.advance(3 * SECOND)
    assert (await bench.row("c-1")).result == "200"
    assert len(bench.requests) == 2
    await bench.close()


async def test_an_answer_of_a_daemon_that_lost_the_instance_counts() -> None:
    """A stood still past its lease; B holds the instance and waits; A's answer is what is given."""
    bench = Bench()
    gate = asyncio.Event()

    async def slow(_: httpx.Request) -> httpx.Response:
        await gate.wait()
        return httpx.Response(201)

    bench.answer = slow
    first = await bench.daemon("a")
    await bench.deploy(requesting(within=2 * MINUTE), first)
    await bench.start(first, "Caller", "c-1", n=1)
    await bench.settle()
    for loop in first._loops:
        loop.cancel()
    second = await bench.daemon("b")
    await bench.advance(40 * SECOND)
    assert (await bench.row("c-1")).lease_owner == second.me
    gate.set()
    await bench.settle()
    await bench.advance(2 * MINUTE)
    row = await bench.row("c-1")
    assert (row.status, row.result) == (Status.DONE, "201")
    assert len(bench.requests) == 1
    await bench.close()


async def test_a_late_answer_is_kept_beside_what_was_given() -> None:
    bench = Bench()
    gates = [asyncio.Event(), asyncio.Event()]

    async def slow(_: httpx.Request) -> httpx.Response:
        number = len(bench.requests)
        await gates[number - 1].wait()
        return httpx.Response(200 + number)

    bench.answer = slow
    daemon = await bench.daemon()
    await bench.deploy(requesting(within=5 * SECOND), daemon)
    await bench.start(daemon, "Caller", "c-1", n=1)
    await bench.advance(7 * SECOND)
    assert len(bench.requests) == 2
    gates[0].set()
    await bench.settle()
    life = await bench.store.life("c-1")
    assert life is not None
    first, second = sorted(life.attempts, key=lambda one: one.attempt)
    assert (first.result, first.late, second.result) == ("timeout", "201", None)
    gates[1].set()
    await bench.settle()
    assert (await bench.row("c-1")).result == "202"
    await bench.close()


async def test_a_turn_that_fails_is_stopped_at_the_third_time_and_others_go_on(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await bench.deploy(broken(), daemon)
    await bench.start(daemon, "Broken", "b-1")
    await bench.start(daemon, "Approval", "e-1", claim=1)
    await bench.advance(5 * SECOND)
    row = await bench.row("b-1")
    assert (row.status, row.error_code) == (Status.STOPPED, "R0011")
    assert json.loads(row.stopped_by or "")["message"] == "its turn failed 3 times"
    assert json.loads(row.state)["tasks"][0]["frames"][0]["pc"] == 0, "the state is untouched"
    assert sum(record.message == "b-1: its turn failed" for record in caplog.records) == 3
    await bench.send(daemon, "e-1", "decisions", "5")
    await bench.settle()
    assert (await bench.row("e-1")).result == "7"


async def test_an_instance_that_ended_six_daemons_is_not_run_by_the_seventh(bench: Bench) -> None:
    bench.answer = lambda _: httpx.Response(200)
    await bench.deploy(requesting())
    first = await bench.daemon("start")
    await first.kill()
    await bench.start(first, "Caller", "c-1", n=1)
    for number in range(6):
        taken = await bench.store.lease(
            "c-1", f"dead/{number}", bench.clock.now(), bench.clock.now() + 10
        )
        assert taken is not None
        bench.clock.advance(1_000)
    await bench.daemon("seventh")
    await bench.settle()
    row = await bench.row("c-1")
    assert (row.status, row.error_code) == (Status.STOPPED, "R0011")
    assert bench.requests == []


async def test_an_instance_that_waits_for_a_step_is_not_blamed_for_the_ends_of_its_daemons() -> (
    None
):
    bench = Bench()

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    bench.answer = never
    daemon = await bench.daemon("start")
    await bench.deploy(requesting(within=10 * MINUTE), daemon)
    await bench.start(daemon, "Caller", "c-1", n=1)
    await bench.settle()
    for number in range(5):
        await daemon.kill()
        await bench.advance(31 * SECOND)
        daemon = await bench.daemon(f"d-{number}")
        await bench.settle()
        row = await bench.row("c-1")
        assert (row.status, row.takings) == (Status.RUNNING, 0)
        assert row.lease_owner == daemon.me
    await bench.close()


async def test_suspects_are_taken_one_after_the_other(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = await bench.daemon("start")
    await bench.deploy(approval(), daemon)
    await daemon.kill()
    for id in ("a-1", "a-2", "b-1"):
        await bench.start(daemon, "Approval", id, claim=1)
    for id in ("a-1", "a-2"):
        now = bench.clock.now()
        assert await bench.store.lease(id, "dead/1", now, now + 10)
    bench.clock.advance(1_000)
    loaded, prepare = asyncio.Event(), Programs.prepare

    async def slow(programs: Programs, version: str, *states: str | None) -> None:
        if '"id":"a-1"' in (states[0] or ""):
            await loaded.wait()
        await prepare(programs, version, *states)

    monkeypatch.setattr(Programs, "prepare", slow)
    await bench.daemon("next")
    await bench.settle()
    assert (await bench.row("b-1")).stage == "asking", "no suspect, it waits for nobody"
    assert (await bench.row("a-1")).takings == 2
    assert (await bench.row("a-2")).lease_owner == "dead/1", "not taken while a-1 is in doubt"
    loaded.set()
    await bench.settle()
    for id in ("a-1", "a-2"):
        row = await bench.row(id)
        assert (row.stage, row.takings) == ("asking", 0)


async def test_draining_lets_steps_end_and_the_next_daemon_goes_on_at_once() -> None:
    bench = Bench()
    gate = asyncio.Event()

    async def slow(_: httpx.Request) -> httpx.Response:
        await gate.wait()
        return httpx.Response(200)

    bench.answer = slow
    first = await bench.daemon("a")
    await bench.deploy(requesting(steps=2), first)
    await bench.deploy(approval(), first)
    await bench.start(first, "Caller", "c-1", n=1)
    await bench.start(first, "Approval", "e-1", claim=1)
    await bench.settle()
    stopping = asyncio.ensure_future(first.stop())
    await bench.settle()
    assert not stopping.done(), "a step is under way"
    await bench.start(first, "Caller", "c-2", n=1)
    gate.set()
    await stopping
    row = await bench.row("c-1")
    assert (row.status, row.lease_owner) == (Status.WAITING, None)
    assert len(bench.requests) == 1, "its second step does not leave any more"
    assert (await bench.row("c-2")).takings == 0, "a draining daemon takes nothing"
    await bench.daemon("b")
    await bench.settle()
    assert (await bench.row("c-1")).result == "200"
    assert (await bench.row("c-2")).result == "200"
    assert len(bench.requests) == 4
    await bench.close()


async def test_draining_ends_at_its_limit_and_leaves_the_attempt_open() -> None:
    bench = Bench()

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    bench.answer = never
    daemon = await bench.daemon()
    await bench.deploy(requesting(within=10 * MINUTE), daemon)
    await bench.start(daemon, "Caller", "c-1", n=1)
    await bench.settle()
    stopping = asyncio.ensure_future(daemon.stop())
    await bench.advance(29 * SECOND)
    assert not stopping.done()
    await bench.advance(2 * SECOND)
    await stopping
    life = await bench.store.life("c-1")
    assert life is not None
    assert (life.row.status, life.row.lease_owner) == (Status.WAITING, None)
    assert life.attempts[0].result is None
    await bench.close()


class BusyStore(Watched):
    """Refuses the next `busy` saves, as a full disk does."""

    busy = 0

    async def save(self, id: str, me: str, save: Save, starts: Any, now: int) -> Any:
        if self.busy:
            self.busy -= 1
            raise StoreBusy("the disk is full")
        return await super().save(id, me, save, starts, now)


async def test_a_busy_store_is_asked_again_and_nothing_leaves_before(bench: Bench) -> None:
    store = BusyStore(bench.store._store)
    bench.store = store
    store.busy = 4
    daemon = await bench.daemon()
    await bench.deploy(requesting(), daemon)
    await bench.start(daemon, "Caller", "c-1", n=1)
    await bench.settle()
    assert bench.requests == []
    await bench.advance(5 * SECOND)
    assert (await bench.row("c-1")).result == "200"
    assert len(bench.requests) == 1


async def test_a_store_busy_for_longer_than_the_lease_costs_the_lease_only(bench: Bench) -> None:
    store = BusyStore(bench.store._store)
    bench.store = store
    store.busy = 1_000
    daemon = await bench.daemon()
    await bench.deploy(requesting(), daemon)
    await bench.start(daemon, "Caller", "c-1", n=1)
    await bench.advance(20 * SECOND)
    store.busy = 0
    await bench.advance(60 * SECOND)
    assert (await bench.row("c-1")).result == "200"
    assert len(bench.requests) == 1


async def test_hundreds_of_instances_at_once(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    for number in range(300):
        await bench.start(daemon, "Approval", f"e-{number}", claim=number)
    await bench.settle()
    waiting = await bench.store.instances(Filter(status=Status.WAITING, limit=1_000))
    assert {row.stage for row in waiting} == {"asking"}
    assert len(waiting) == 300
    for number in range(300):
        await bench.send(daemon, f"e-{number}", "decisions", "1")
    await bench.settle()
    done = await bench.store.instances(Filter(status=Status.DONE, limit=1_000))
    assert sorted(int(row.result or "") for row in done) == [2 * n + 1 for n in range(300)]
    assert daemon.hosts == {}


async def test_two_daemons_never_hold_the_same_instance(bench: Bench) -> None:
    first, second = await bench.daemon("a"), await bench.daemon("b")
    await bench.deploy(approval(), first)
    await second.programs.refresh()
    for number in range(40):
        await bench.start(first, "Approval", f"e-{number}", claim=number)
        second.wake()
    await bench.settle()
    life = await bench.store.ledger(None, 0, 10_000)
    stages = [row.instance for row in life if row.kind == "stage"]
    assert sorted(stages) == sorted({f"e-{number}" for number in range(40)})


async def test_a_heartbeat_is_written_and_renewed(bench: Bench) -> None:
    daemon = await bench.daemon("shop")
    assert daemon.me.startswith("shop/")
    (row,) = await bench.store.daemons()
    assert (row.incarnation, row.alive_until) == (daemon.me, bench.clock.now() + 30 * SECOND)
    await bench.advance(25 * SECOND)
    (row,) = await bench.store.daemons()
    assert row.alive_until == bench.clock.now() - 5 * SECOND + 30 * SECOND


async def test_a_version_that_cannot_be_loaded_stops_its_instances_only(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await bench.start(daemon, "Approval", "e-1", claim=1)
    await bench.settle()
    await daemon.kill()
    await bench.store.call(
        bench.store._store.database.run,
        "UPDATE versions SET bytecode = :half",
        {"half": b"\x00half"},
    )
    daemon = await bench.daemon("next")
    await bench.send(daemon, "e-1", "decisions", "1")
    await bench.settle()
    row = await bench.row("e-1")
    assert row.status == Status.STOPPED
    assert "not that of version" in (row.stopped_by or "")


def test_the_chain_of_the_bench_is_the_one_assembled() -> None:
    """Guards the tests above: the stage's entry is right behind its STAGE instruction."""
    chunk = approval()
    assert step("ask", 0).name == chunk.steps[0].name
    assert "STAGE 0" in APPROVAL
    assert chunk.stages[0].entry == 4
