"""The asynchronous face: one commit for what waits, each call all or nothing, answers after it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_asyncio

from qoqi.runtime.store.dialect import Database
from qoqi.runtime.store.open import memory_store, open_store
from qoqi.runtime.store.protocol import Filter, StoreBusy
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.runtime.store.thread import StoreThread
from qoqi.runtime.store.upkeep import SWEEP_LIMIT
from tests.runtime.store_lab import Lab, request


async def at_once(*calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Makes all calls before the first of them is carried out; gives answers and errors."""
    return await asyncio.gather(*calls, return_exceptions=True)


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    return open_store(f"sqlite:{tmp_path / 'flows.db'}", "shop-1", busy_timeout=50)


@pytest_asyncio.fixture
async def thread(store: SqlStore) -> AsyncIterator[StoreThread]:
    thread = StoreThread(store)
    yield thread
    await thread.close()


class Committing:
    """A database that does something else before each commit of a group."""

    def __init__(self, inner: Database, before: Callable[[], None]) -> None:
        self._inner = inner
        self._before = before

    def commit(self) -> None:
        if self._inner.changes != self._written:
            try:
                self._before()
            except StoreBusy:
                self._inner.rollback()
                raise
        self._inner.commit()

    def begin_at_once(self) -> bool:
        self._written = self._inner.changes
        return self._inner.begin_at_once()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def committing(store: SqlStore, before: Callable[[], None]) -> SqlStore:
    return SqlStore(cast(Database, Committing(store.database, before)))


def errors(answers: list[Any]) -> list[type[BaseException]]:
    return [type(answer) for answer in answers if isinstance(answer, BaseException)]


async def test_calls_that_wait_share_one_commit(thread: StoreThread) -> None:
    outcomes = await at_once(*(thread.create(request(f"a{n}"), 1) for n in range(20)))
    assert all(outcome.created for outcome in outcomes)
    assert (thread.groups, thread.calls) == (1, 20)
    assert await thread.counts() == {"waiting": 20}


async def test_a_group_gathers_while_the_one_before_is_committed(thread: StoreThread) -> None:
    async def chain(name: str) -> None:
        for n in range(5):
            await thread.create(request(f"{name}-{n}"), 1)

    await at_once(*(chain(f"a{n}") for n in range(10)))
    assert (thread.groups, thread.calls) == (5, 50)


async def test_a_group_has_a_limit(store: SqlStore) -> None:
    thread = StoreThread(store, limit=8)
    await at_once(*(thread.create(request(f"a{n}"), 1) for n in range(20)))
    assert (thread.groups, thread.calls) == (3, 20)
    await thread.close()


async def test_an_error_is_its_callers_alone_and_its_writes_are_undone(
    thread: StoreThread, store: SqlStore
) -> None:
    def fails() -> None:
        with store.database.transaction():
            store.create(request("half"), 1)
            raise KeyError("a mistake")

    answers = await at_once(
        thread.create(request("first"), 1),
        thread.call(fails),
        thread.create(request("second"), 1),
    )
    assert errors(answers) == [KeyError]
    assert isinstance(answers[1], KeyError)
    assert thread.groups == 1
    assert await thread.instance("half") is None
    assert await thread.counts() == {"waiting": 2}


async def test_nothing_is_answered_before_it_is_committed(
    thread: StoreThread, tmp_path: Path
) -> None:
    await thread.counts()
    reader = sqlite3.connect(tmp_path / "flows.db")
    for number in range(20):
        await thread.create(request(f"a{number}"), 1)
        (seen,) = reader.execute("SELECT COUNT(*) FROM instances").fetchone()
        assert seen == number + 1
    reader.close()


async def test_the_loop_goes_on_while_a_commit_is_under_way(
    store: SqlStore,
) -> None:
    go_on = threading.Event()
    where: list[str] = []

    def slow() -> None:
        where.append(threading.current_thread().name)
        assert go_on.wait(10)

    thread = StoreThread(committing(store, slow))
    first = asyncio.ensure_future(thread.create(request("a"), 1))
    for _ in range(5):
        await asyncio.sleep(0.001)
    second = asyncio.ensure_future(thread.create(request("b"), 1))
    await asyncio.sleep(0.001)
    assert not first.done()
    go_on.set()
    assert (await first).created
    assert (await second).created
    assert where == ["store", "store"]
    await thread.close()


async def test_a_long_call_is_alone_and_not_on_the_loop(thread: StoreThread) -> None:
    names = await at_once(
        thread.call(lambda: threading.current_thread().name),
        thread.aside(lambda: threading.current_thread().name),
        thread.call(lambda: threading.current_thread().name),
    )
    assert names == ["MainThread", "store", "MainThread"]
    assert thread.groups == 3


async def _fill(thread: StoreThread, store: SqlStore) -> None:
    def fill() -> None:
        (pages,) = store.database.one("PRAGMA page_count", {}) or (0,)
        store.database.all(f"PRAGMA max_page_count = {pages + 1}", {})

    await thread.call(fill)


async def test_when_the_disk_is_full_nothing_of_the_group_stands(
    thread: StoreThread, store: SqlStore
) -> None:
    await thread.create(request("before"), 1)
    await _fill(thread, store)
    answers = await at_once(
        thread.create(request("small"), 1),
        *(thread.create(request(f"a{n}", state="x" * 9_000), 1) for n in range(5)),
    )
    assert set(errors(answers)) == {StoreBusy}
    assert "the disk is full" in str(answers[1])
    stands = {row.id for row in await thread.instances(Filter())}
    acknowledged = {answer.row.id for answer in answers if not isinstance(answer, BaseException)}
    assert stands == acknowledged | {"before"}


async def test_a_commit_that_fails_fails_every_call_of_its_group(
    store: SqlStore,
) -> None:
    commits = 0

    def second_fails() -> None:
        nonlocal commits
        commits += 1
        if commits == 2:
            raise StoreBusy("the disk gave an error")

    thread = StoreThread(committing(store, second_fails))
    await thread.create(request("before"), 1)
    answers = await at_once(*(thread.create(request(f"a{n}"), 1) for n in range(5)))
    assert errors(answers) == [StoreBusy] * 5
    assert await thread.counts() == {"waiting": 1}
    assert (await thread.create(request("after"), 1)).created
    await thread.close()


async def test_sweeping_goes_on_until_nothing_is_left(thread: StoreThread, store: SqlStore) -> None:
    lab = Lab(store)

    def end_many() -> None:
        with lab.store.database.transaction():
            for number in range(SWEEP_LIMIT + 3):
                lab.done(f"a{number}", keep=0)

    await thread.call(end_many)
    assert await thread.sweep(lab.now, 0) == SWEEP_LIMIT + 3
    assert await thread.counts() == {}


async def test_a_lock_of_another_program_is_waited_for_in_the_thread(
    thread: StoreThread, tmp_path: Path
) -> None:
    await thread.counts()
    other = sqlite3.connect(tmp_path / "flows.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    refused = asyncio.ensure_future(thread.create(request("a"), 1))
    rounds = 0
    while not refused.done():
        await asyncio.sleep(0.001)
        rounds += 1
    assert rounds > 5
    with pytest.raises(StoreBusy, match="locked"):
        await refused
    waits = asyncio.ensure_future(thread.create(request("a"), 1))
    await asyncio.sleep(0.005)
    other.execute("ROLLBACK")
    other.close()
    assert (await waits).created


async def test_a_caller_that_went_away_does_not_stop_the_others(thread: StoreThread) -> None:
    gone = asyncio.ensure_future(thread.create(request("gone"), 1))
    stays = asyncio.ensure_future(thread.create(request("stays"), 1))
    await asyncio.sleep(0)
    gone.cancel()
    assert (await stays).created
    assert await thread.counts() in ({"waiting": 1}, {"waiting": 2})


async def test_closing_carries_out_what_waits(store: SqlStore, tmp_path: Path) -> None:
    thread = StoreThread(store)
    starts = [asyncio.ensure_future(thread.create(request(f"a{n}"), 1)) for n in range(3)]
    await asyncio.sleep(0)
    await thread.close()
    await asyncio.gather(*starts)
    with pytest.raises(StoreBusy, match="closed"):
        await thread.counts()
    again = open_store(f"sqlite:{tmp_path / 'flows.db'}", "shop-2")
    assert again.counts() == {"waiting": 3}
    again.close()


async def test_a_thread_that_was_never_used_is_closed() -> None:
    thread = StoreThread(memory_store())
    await thread.close()
    await thread.close()
