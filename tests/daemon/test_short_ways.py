"""The short ways of a daemon: what it makes due it holds; early sleepers; slots; many that wait."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from qoqi.runtime.api.connections import GATHERED, Gathering
from qoqi.runtime.daemon import AHEAD, Daemon
from qoqi.runtime.model import Status
from qoqi.runtime.programs import arguments
from qoqi.runtime.store import lifecycle
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Hold, Sent
from qoqi.runtime.store.sqlstore import SqlStore
from tests.daemon.test_daemon_life import requesting, sleeper
from tests.daemon.workbench import Bench, approval
from tests.runtime.store_lab import LEASE, ME, OTHER, Lab, after, ending_of, receive

SECOND = 1_000
MINUTE = 60 * SECOND


async def create(daemon: Daemon, flow: str, name: str, **args: object) -> bool:
    hash = await daemon.programs.newest(flow)
    assert hash is not None
    program = daemon.programs.code(hash)
    request = daemon.first_row(name, program, hash, arguments(program, args), None)
    return (await daemon.create(request)).created


def send(bench: Bench, name: str, value: str) -> Any:
    def inside(store: SqlStore, hold: Hold | None) -> Sent:
        return store.send(name, "decisions", None, value, None, bench.clock.now(), hold)

    return inside


async def kinds(bench: Bench, name: str) -> list[str]:
    return [row.kind for row in await bench.store.ledger(name, 0, 100)]


# -- holding -----------------------------------------------------------------------------------


async def test_what_is_started_here_is_held_from_its_first_write(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    assert await create(daemon, "Approval", "e-1", claim=21)
    row = await bench.row("e-1")
    assert (row.status, row.lease_owner) == (Status.RUNNING, daemon.me)
    assert (await bench.store.life("e-1")).waits == ()  # type: ignore[union-attr]
    await bench.settle()
    row = await bench.row("e-1")
    assert (row.status, row.stage, row.takings) == (Status.WAITING, "asking", 0)


async def test_a_daemon_that_dies_over_a_start_leaves_it_to_the_next(bench: Bench) -> None:
    """It counts as a taking: three of them stop an instance that ends its daemon."""
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    begun: list[object] = []
    daemon.begin = begun.append  # type: ignore[method-assign, assignment]
    assert await create(daemon, "Approval", "e-1", claim=21)
    await daemon.kill()
    assert len(begun) == 1
    other = await bench.daemon()
    await bench.advance(bench.settings.lease - SECOND)
    assert (await bench.row("e-1")).lease_owner == daemon.me
    assert (await bench.row("e-1")).takings == 1
    await bench.advance(2 * SECOND)
    row = await bench.row("e-1")
    assert (row.status, row.stage, row.takings) == (Status.WAITING, "asking", 0)
    assert "taken over" in await kinds(bench, "e-1")
    await other.stop()


async def test_a_name_that_exists_is_not_held(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    assert await create(daemon, "Approval", "e-1", claim=21)
    await bench.settle()
    assert not await create(daemon, "Approval", "e-1", claim=21)
    row = await bench.row("e-1")
    assert (row.status, row.lease_owner) == (Status.WAITING, None)
    assert daemon._early == {}


async def test_a_draining_daemon_holds_nothing_new(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    daemon.draining = True
    assert await create(daemon, "Approval", "e-1", claim=21)
    row = await bench.row("e-1")
    assert (row.status, row.lease_owner) == (Status.WAITING, None)


async def test_a_message_takes_who_waits_for_it_in_its_own_transaction(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await create(daemon, "Approval", "e-1", claim=21)
    await bench.settle()

    async def leased(*given: object) -> None:
        raise AssertionError("a second transaction")

    monkeypatch.setattr(bench.store, "lease", leased)
    sent = await daemon.send("e-1", send(bench, "e-1", "7"))
    assert (sent.outcome, sent.owner) == ("Delivered", daemon.me)
    assert (await bench.row("e-1")).lease_owner == daemon.me
    await bench.settle()
    assert (await bench.row("e-1")).result == "49"


async def test_a_message_that_nobody_waits_for_takes_nobody(bench: Bench) -> None:
    """The step is under way elsewhere in the flow: the channel has it until it is asked for."""
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await create(daemon, "Approval", "e-1", claim=21)
    await bench.settle()
    await bench.store.pause("e-1", bench.clock.now(), "ann")
    sent = await daemon.send("e-1", send(bench, "e-1", "7"))
    assert (sent.outcome, sent.owner, sent.taken) == ("Delivered", None, None)
    await bench.settle()
    assert (await bench.row("e-1")).lease_owner is None
    await bench.store.resume("e-1", bench.clock.now(), "ann")
    daemon.wake()
    await bench.settle()
    assert (await bench.row("e-1")).result == "49"


async def test_two_messages_at_once_take_an_instance_once(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await create(daemon, "Approval", "e-1", claim=21)
    await bench.settle()
    both = await asyncio.gather(
        daemon.send("e-1", send(bench, "e-1", "7")), daemon.send("e-1", send(bench, "e-1", "8"))
    )
    assert [one.outcome for one in both] == ["Delivered", "Delivered"]
    assert [one.taken is not None for one in both] == [True, False]
    await bench.settle()
    assert (await bench.row("e-1")).result == "49"
    assert "taken over" not in await kinds(bench, "e-1")


async def test_a_call_that_fails_leaves_nothing_behind_that_is_being_taken(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(approval(), daemon)
    await create(daemon, "Approval", "e-1", claim=21)
    await bench.settle()

    def fails(store: SqlStore, hold: Hold | None) -> Sent:
        send(bench, "e-1", "7")(store, hold)
        raise KeyError("it wrote before it failed")

    with pytest.raises(KeyError):
        await daemon.send("e-1", fails)
    assert daemon._early == {}
    assert (await bench.row("e-1")).lease_owner is None
    assert (await daemon.send("e-1", send(bench, "e-1", "9"))).taken is not None


def test_a_suspect_is_woken_by_a_message_and_not_taken() -> None:
    """It may have ended its daemon: it is taken alone, by the look."""
    lab = Lab(memory_store())
    lab.waiting("a", receive())
    lab.now += 1
    lab.take("a")
    lab.now += LEASE
    taken = lab.take("a", OTHER)
    assert taken.row.takings == 1
    lab.store.database.run(
        'UPDATE "instances" SET "status" = :waiting, "lease_owner" = NULL WHERE "id" = :id',
        {"waiting": "waiting", "id": "a"},
    )
    hold = Hold(ME, lab.now + LEASE)
    sent = lab.store.send("a", "decisions", None, "1", None, lab.now, hold)
    assert (sent.outcome, sent.owner, sent.taken) == ("Delivered", None, None)
    assert lab.store.due(lab.now, 9) == [("a", 2)]


def test_early_means_nobody_whose_lease_is_about_to_end() -> None:
    lab = Lab(memory_store())
    lab.waiting("asleep", after(lab.now + 50))
    lab.running("held")
    assert lab.store.due(lab.now, 9, LEASE) == [("asleep", 0)]
    lab.now += LEASE
    assert lab.due() == ["asleep", "held"]


def test_a_channel_is_full_by_what_is_in_it_and_not_by_the_numbers_of_its_messages() -> None:
    """Numbers of other channels lie between: only then messages are counted."""
    lab = Lab(memory_store())
    for id in ("a", "b"):
        lab.start(id)
    assert lab.send("a").outcome == "Delivered"
    assert lab.send("b").outcome == "Delivered"
    assert lab.send("a").outcome == "Delivered", "room for two, though the numbers are three apart"
    assert lab.send("a").outcome == "Full"
    assert lab.send("b").outcome == "Delivered"
    assert lab.send("b").outcome == "Full"


# -- early -------------------------------------------------------------------------------------


async def test_those_that_wake_together_were_taken_before(bench: Bench) -> None:
    daemon = await bench.daemon()
    await bench.deploy(sleeper(10 * MINUTE), daemon)
    for number in range(120):
        await create(daemon, "Sleeper", f"s-{number}", n=number)
    await bench.settle()
    assert daemon.hosts == {}
    await bench.advance(10 * MINUTE - AHEAD - 1)
    assert daemon.hosts == {}
    await bench.advance(1)
    assert len(daemon.hosts) == 120
    counts = await bench.store.counts()
    assert counts == {"running": 120}
    await bench.advance(AHEAD - 1)
    assert await bench.store.counts() == {"running": 120}
    await bench.advance(1)
    assert await bench.store.counts() == {"done": 120}
    row = await bench.row("s-7")
    assert row.since == bench.clock.now()


# -- slots -------------------------------------------------------------------------------------


async def test_a_slot_that_is_free_goes_to_who_waited_longest_at_once(bench: Bench) -> None:
    gates: list[asyncio.Event] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        gate = asyncio.Event()
        gates.append(gate)
        await gate.wait()
        return httpx.Response(200, text="ok")

    bench.answer = answer
    daemon = await bench.daemon()
    chunk = requesting(1, limits=((1, 0),))
    await bench.deploy(chunk, daemon)
    for number in range(4):
        await create(daemon, chunk.flow, f"r-{number}", n=number)
        await bench.settle()
    began = bench.clock.now()
    order = []
    for number in range(4):
        assert len(gates) == number + 1, "one at a time"
        gates[number].set()
        await bench.settle()
        order += [
            row.id
            for row in [await bench.row(f"r-{one}") for one in range(4)]
            if row.status == Status.DONE and row.id not in order
        ]
    assert order == ["r-0", "r-1", "r-2", "r-3"]
    assert bench.clock.now() == began, "nobody had to look again after a second"
    assert daemon.slots._asked == {}
    assert daemon.slots._under_way == {}


# -- many that wait ----------------------------------------------------------------------------


def test_an_end_that_many_wait_for_wakes_so_many_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lifecycle, "AT_ONCE", 3)
    woken: list[int] = []
    wake = lifecycle.wake

    def counted(db: Any, waiters: Any, now: int) -> None:
        woken.append(len(waiters))
        wake(db, waiters, now)

    monkeypatch.setattr(lifecycle, "wake", counted)
    lab = Lab(memory_store())
    lab.running("ends")
    names = [lab.waiting(f"w-{number:02}", ending_of("ends")) for number in range(10)]
    lab.running("held")
    lab.save("held", waits=(ending_of("ends"),))
    _, told = lab.saved("ends", "done", result="1")
    assert [id for id, _ in told.owners] == ["held", "w-00", "w-01", "w-02"]
    assert woken == [3]
    found: list[str] = []
    for _ in range(6):
        lab.now += 1
        due = [id for id in lab.due() if lab.store.lease(id, ME, lab.now, lab.now + LEASE)]
        assert len(due) <= 3
        found += due
    assert found == names
    assert woken == [3, 3, 3, 1]
    assert lab.due() == []


# -- connections -------------------------------------------------------------------------------


class _Socket(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed = True


async def test_what_is_written_in_one_turn_of_the_loop_leaves_at_once() -> None:
    socket = _Socket()
    gathering = Gathering(socket)
    gathering.write(b"head ")
    gathering.write(b"body")
    assert socket.sent == []
    await asyncio.sleep(0)
    assert socket.sent == [b"head body"]
    gathering.write(b"more")
    gathering.close()
    assert socket.sent == [b"head body", b"more"]
    assert socket.closed
    gathering.write(b"x" * (GATHERED + 1))
    assert len(socket.sent) == 3, "a large part is not held back"
