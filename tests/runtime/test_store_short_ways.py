"""The short ways of the hot path do what the long ones do: `Save.again`, groups without savepoints.

Each is compared with the long way, or shown where it may not be taken.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from qoqi.runtime.store import sql
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import StoreBusy
from qoqi.runtime.store.sqlite import SqliteDatabase
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm.host import GivenMark, LeaseLost, LedgerLine, PutLost, PutResult
from tests.runtime.store_lab import LEASE, Lab, key, receive, request


def between_steps(lab: Lab, again: bool) -> Lab:
    """The save between the first and the second step of `a`."""
    lab.running("a")
    first = lab.step("a", "charge")
    lab.save(
        "a",
        state='{"at":"ship"}',
        puts=(PutResult(first, 1, '"paid"'),),
        given=(GivenMark(first, 1, 1, lab.now),),
        attempts=(lab.new_attempt("a", "ship"),),
        ledger=(LedgerLine("left", {"steps": [[key("a", "ship"), 1]]}),),
        again=again,
    )
    return lab


def test_a_short_save_leaves_the_same_rows() -> None:
    short, long = (between_steps(Lab(memory_store()), again) for again in (True, False))

    assert short.tables() == long.tables()
    assert short.row("a").state == '{"at":"ship"}'
    assert short.last(key("a", "charge")).result == '"paid"'


def test_a_short_save_is_four_statements() -> None:
    lab = Lab(memory_store())
    lab.running("a")
    first = lab.step("a", "charge")
    database = lab.store.database
    assert isinstance(database, SqliteDatabase)
    before = database.statements
    lab.save(
        "a",
        puts=(PutResult(first, 1, "1"),),
        given=(GivenMark(first, 1, 1, lab.now),),
        attempts=(lab.new_attempt("a", "ship"),),
        ledger=(LedgerLine("left"),),
        again=True,
    )
    looks = 1  # `Lab.save` reads the row
    assert database.statements - before - looks == 4


def test_a_short_save_is_refused_once_its_lease_is_over() -> None:
    lab = between_steps(Lab(memory_store()), True)
    lab.now += LEASE
    before = lab.tables()
    with pytest.raises(LeaseLost):
        lab.save("a", state="{}", again=True)
    lab.now -= LEASE
    with pytest.raises(LeaseLost):
        lab.save("a", state="{}", me="shop-2/91ab", again=True)

    assert lab.tables() == before


@pytest.mark.parametrize("what", ["cancel", "pause"])
def test_what_was_asked_meanwhile_is_given_back_and_keeps_steps_from_leaving(what: str) -> None:
    lab = between_steps(Lab(memory_store()), True)
    if what == "cancel":
        lab.cancel("a", "no more")
    else:
        lab.store.pause("a", lab.now, "ana")
    saved = lab.save("a", attempts=(lab.new_attempt("a", "pack"),), again=True)

    assert not saved.may_leave
    assert saved.paused == (what == "pause")
    assert (saved.cancel is not None and saved.cancel.reason == "no more") == (what == "cancel")
    assert lab.store.attempt(key("a", "pack")) is None


def test_a_short_save_with_a_late_answer_writes_nothing() -> None:
    lab = between_steps(Lab(memory_store()), True)
    before = lab.tables()
    with pytest.raises(PutLost):
        lab.save("a", state="{}", puts=(PutResult(key("a", "charge"), 1, "2"),), again=True)

    assert lab.tables() == before


def test_an_end_that_nobody_waits_for_asks_once_and_one_that_is_waited_for_tells() -> None:
    lab = Lab(memory_store())
    lab.running("awaited")
    lab.waiting("waits", receive())
    lab.store.database.run(
        'UPDATE "waits" SET "kind" = \'flow\', "other" = \'awaited\' WHERE "instance" = :id',
        {"id": "waits"},
    )
    _, woken = lab.saved("awaited", "done", result="1")
    assert woken.owners == (("waits", None),)
    lab.running("alone")
    _, nobody = lab.saved("alone", "done", result="1")
    assert nobody.owners == ()
    assert lab.store.database.all(sql.WAITS, {"id": "alone"}) == []


# -- groups ------------------------------------------------------------------------------------


def half_done(store: SqlStore, name: str) -> Callable[[], None]:
    """A call that fails after it has written."""

    def call() -> None:
        with store.database.transaction():
            store.create(request(name), 1)
            raise KeyError(name)

    return call


def watched(database: SqliteDatabase) -> list[str]:
    """What begins and ends transactions, as it is sent."""
    sent: list[str] = []
    plain = database._control

    def control(statement: str) -> None:
        sent.append(statement)
        plain(statement)

    database._control = control  # type: ignore[method-assign]
    return sent


async def test_several_calls_that_fail_half_way_leave_nothing_and_the_others_stand() -> None:
    store = memory_store()
    thread = StoreThread(store)
    answers = await asyncio.gather(
        thread.create(request("a"), 1),
        thread.call(half_done(store, "x")),
        thread.create(request("b"), 1),
        thread.call(half_done(store, "y")),
        thread.create(request("x"), 1),
        return_exceptions=True,
    )
    assert [type(answer).__name__ for answer in answers] == [
        "StartOutcome",
        "KeyError",
        "StartOutcome",
        "KeyError",
        "StartOutcome",
    ]
    assert await thread.counts() == {"waiting": 3}
    assert (thread.groups, thread.calls) == (2, 6)
    again = await thread.create(request("a"), 1)
    assert not again.created
    await thread.close()


async def test_the_group_after_one_that_was_carried_out_again_makes_no_savepoints() -> None:
    store = memory_store()
    thread = StoreThread(store)
    with pytest.raises(KeyError):
        await thread.call(half_done(store, "x"))
    database = store.database
    assert isinstance(database, SqliteDatabase)
    controls = watched(database)
    await thread.create(request("a"), 1)
    assert controls == ["BEGIN IMMEDIATE", "COMMIT"]
    await thread.close()


async def test_reads_at_the_head_need_no_transaction_and_see_what_was_written() -> None:
    store = memory_store()
    thread = StoreThread(store)
    await thread.create(request("a"), 1)
    database = store.database
    assert isinstance(database, SqliteDatabase)
    controls = watched(database)
    row, due = await asyncio.gather(thread.instance("a"), thread.due(1, 10))
    assert row is not None and due == [("a", 0)]
    assert controls == []
    seen, _, after = await asyncio.gather(
        thread.instance("b"), thread.create(request("b"), 1), thread.instance("b")
    )
    assert seen is None and after is not None
    await thread.close()


async def test_a_commit_is_given_to_the_thread_until_commits_are_known_to_be_quick() -> None:
    store = memory_store()
    thread = StoreThread(store)
    where: list[str] = []
    plain = store.database.commit

    def commit() -> None:
        where.append(threading.current_thread().name)
        plain()

    store.database.commit = commit  # type: ignore[method-assign]
    await thread.call(store.database.run, sql.PIN, {"flow": "a", "version": "1"})
    assert where == ["store"]
    thread._commit_takes = 0.0001
    await thread.call(store.database.run, sql.PIN, {"flow": "b", "version": "1"})
    assert where == ["store", "MainThread"]
    where.clear()
    pins = [{"flow": f"c{n}", "version": "1"} for n in range(3)]
    await asyncio.gather(*(thread.call(store.database.run, sql.PIN, pin) for pin in pins))
    assert where == ["store"], "a larger group leaves the loop to others while it is committed"
    thread._commit_takes = 0.1
    await thread.call(store.database.run, sql.PIN, {"flow": "d", "version": "1"})
    assert where == ["store", "store"]
    assert len(await thread.pins()) == 6
    await thread.close()


async def test_a_quick_commit_that_fails_fails_its_caller() -> None:
    store = memory_store()
    thread = StoreThread(store)
    await thread.create(request("first"), 1)
    thread._commit_takes = 0.0

    def broken() -> None:
        store.create(request("second"), 1)
        store.database.all("ROLLBACK", {})

    with pytest.raises(StoreBusy):
        await thread.call(broken)
    assert await thread.counts() == {"waiting": 1}
    await thread.close()
