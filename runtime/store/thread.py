"""StoreThread: the face of a store for asyncio, with group commit.

Calls wait in a queue. A group of them is carried out in one transaction, and one commit makes it
all durable. While it is committed the next group gathers: a busy store writes to the disk once per
group, and an idle one answers at once.

A call that fails hardly ever has written something by then, so a group is carried out without
savepoints. Where one had, the whole group is rolled back, and its calls are carried out again with
a savepoint each: no answer was given yet, and a call depends on nothing but the database.

The statements of a group run on the event loop, and its commit in a thread. A statement takes a
few microseconds and lets go of Python's lock; in a thread beside a busy loop each of them would
wait for that lock for milliseconds. What takes long is in the thread: a commit, which waits for the
disk; a call that reads or writes without bound (`aside`); waiting for another program's lock. The
two never use the connection at the same time: the loop hands it over and is given it back.

Where the disk is quick, the way to the thread and back takes longer than the commit itself. So the
commit of a group of one or two calls stays on the loop for as long as commits have been quick.

- A result is given after the commit of its group, never before. A group that wrote nothing needs no
  disk, and is answered at once. Reads that stand before the first write need no transaction.
- An exception is its caller's alone; what the call had written is undone, the others stand.
- If the commit fails, or the database ends the transaction from below (a full disk), nothing of
  the group stands, and every call of it raises the error.
- A call whose caller has gone before its turn is not carried out.

The methods are those of `Store`, awaited.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

from qoqi.runtime.model import DaemonRow, InstanceRow, LedgerRow, Standing, VersionRow
from qoqi.runtime.store.protocol import (
    Asked,
    Due,
    Filter,
    Hold,
    Life,
    Sent,
    StartOutcome,
    StartRequest,
    StoreBroken,
    StoreBusy,
    Taken,
    Woken,
)
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.runtime.store.upkeep import SWEEP_LIMIT
from qoqi.vm.dataclass import dataclass
from qoqi.vm.host import Attempt, Cancel, EndedInstance, Message, PutResult, Save, Saved

P = ParamSpec("P")
T = TypeVar("T")

# A group is bounded so that the loop goes on after some milliseconds.
GROUP_LIMIT = 128

# A small group whose commit takes less than this, in seconds, is not worth the way to the thread.
QUICK, SMALL = 0.0005, 2


@dataclass(slots=True)
class _Call:
    function: Callable[[], Any]
    future: asyncio.Future[Any]
    aside: bool
    reads: bool


@dataclass(slots=True)
class _Answer:
    future: asyncio.Future[Any]
    value: Any
    error: Exception | None


class StoreThread:
    """Belongs to the event loop of its first call, which starts the thread.

    `groups` and `calls` count transactions and what they carried.
    """

    def __init__(self, store: SqlStore, limit: int = GROUP_LIMIT) -> None:
        self._store = store
        self._database = store.database
        self._limit = limit
        self._waiting: deque[_Call] = deque()
        self._going = False
        self._careful = False
        self._commit_takes = 1.0
        self._closed = False
        self._at_rest: asyncio.Future[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: queue.SimpleQueue[Callable[[], Callable[[], None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="store", daemon=True)
        self.groups = 0
        self.calls = 0

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Carries out a function on the store, in a group; what it wrote is on disk."""
        return await self._submit(partial(function, *args, **kwargs), False)

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for one that only reads, and so little that the loop may wait for it.

        Where nothing is under way it is carried out here and now.
        """
        if self._going or self._closed:
            return await self._submit(partial(function, *args, **kwargs), False, True)
        self.calls += 1
        return function(*args, **kwargs)

    async def aside(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for one that may take long: alone, and in the thread."""
        return await self._submit(partial(function, *args, **kwargs), True)

    async def together(self, function: Callable[[SqlStore], T]) -> T:
        """Carries out a function that makes several calls of the store, in one transaction."""
        return await self.call(self._all_of, function)

    def _all_of(self, function: Callable[[SqlStore], T]) -> T:
        with self._database.transaction():
            return function(self._store)

    async def close(self) -> None:
        """Carries out what waits, ends the thread and closes the store."""
        if self._closed:
            return
        self._closed = True
        if self._loop is not None:
            if self._going:
                self._at_rest = self._loop.create_future()
                await self._at_rest
            self._jobs.put(None)
            self._thread.join()
        self._store.close()

    # -- on the loop --------------------------------------------------------------------------

    def _submit(
        self, function: Callable[[], T], aside: bool, reads: bool = False
    ) -> asyncio.Future[T]:
        if self._closed:
            raise StoreBusy("the store is closed")
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread.start()
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(_Call(function, future, aside, reads))
        if not self._going:
            self._going = True
            self._loop.call_soon(self._next)
        return future

    def _next(self) -> None:
        """The loop has the connection: begins with what waits."""
        while self._waiting and self._waiting[0].future.done():
            self._waiting.popleft()
        if not self._waiting:
            self._going = False
            if self._at_rest is not None:
                self._at_rest.set_result(None)
        elif self._waiting[0].aside:
            self._jobs.put(partial(self._alone, self._waiting.popleft()))
        elif self._waiting[0].reads:
            self._read_group()
        else:
            self._begin_group()

    def _read_group(self) -> None:
        """The reads at the head of the queue need no transaction."""
        waiting = self._waiting
        answers: list[_Answer] = []
        while waiting and len(answers) < self._limit and waiting[0].reads:
            call = waiting.popleft()
            if not call.future.done():
                answers.append(_carried_out(call))
        self._given(answers)

    def _begin_group(self) -> None:
        try:
            begun = self._database.begin_at_once()
        except Exception as error:
            self._refuse(_nothing_stands(error))
            return
        if begun:
            self._group()
        else:
            self._jobs.put(self._begin)

    def _group(self) -> None:
        """A transaction is open: carries out the calls at the head of the queue, and commits."""
        waiting, database = self._waiting, self._database
        answers: list[_Answer] = []
        calls: list[_Call] = []
        before = database.changes
        database.savepoints(self._careful)
        self._careful = False
        while waiting and len(answers) < self._limit and not waiting[0].aside:
            call = waiting.popleft()
            if call.future.done():
                continue
            calls.append(call)
            answers.append(_carried_out(call))
            if not database.open:
                break
            if database.spoiled:
                self._again(calls)
                return
        database.savepoints(True)
        quick = len(answers) <= SMALL and self._commit_takes < QUICK
        if database.open and database.changes == before:
            self._commit(answers, False)()
        elif database.open and quick:
            self._commit(answers)()
        else:
            self._jobs.put(partial(self._commit, answers))

    def _again(self, calls: list[_Call]) -> None:
        """One of them has failed and had written: undone all, and carried out one by one."""
        self._database.rollback()
        self._database.savepoints(True)
        self._waiting.extendleft(reversed(calls))
        self._careful = True
        assert self._loop is not None
        self._loop.call_soon(self._next)

    def _given(self, answers: list[_Answer]) -> None:
        """After the commit. Whoever goes on may call again before the next group begins."""
        self.groups += 1
        self.calls += len(answers)
        for answer in answers:
            if answer.future.done():
                continue
            if answer.error is None:
                answer.future.set_result(answer.value)
            else:
                answer.future.set_exception(answer.error)
        assert self._loop is not None
        self._loop.call_soon(self._next)

    # -- in the thread, while it has the connection; each gives what the loop does next -------

    def _work(self) -> None:
        assert self._loop is not None
        while (job := self._jobs.get()) is not None:
            self._loop.call_soon_threadsafe(job())

    def _begin(self) -> Callable[[], None]:
        """Another program has the lock: waits for it, as long as the store may."""
        try:
            self._database.begin()
        except Exception as error:
            refused = _nothing_stands(error)
            return partial(self._refuse, refused)
        return self._group

    def _refuse(self, error: Exception) -> None:
        calls = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._limit))]
        self._given([_Answer(call.future, None, error) for call in calls])

    def _commit(self, answers: list[_Answer], wrote: bool = True) -> Callable[[], None]:
        lost_by = answers[-1].error if answers and not self._database.open else None
        begin = time.perf_counter()
        try:
            self._database.commit()
        except Exception as error:
            failure = _nothing_stands(lost_by or error)
            answers = [_Answer(answer.future, None, failure) for answer in answers]
        if wrote:
            self._commit_takes += (time.perf_counter() - begin - self._commit_takes) / 4
        return partial(self._given, answers)

    def _alone(self, call: _Call) -> Callable[[], None]:
        self._database.savepoints(True)
        try:
            self._database.begin()
        except Exception as error:
            return partial(self._given, [_Answer(call.future, None, _nothing_stands(error))])
        return self._commit([_carried_out(call)])

    # -- an instance's life -------------------------------------------------------------------

    async def create(self, request: StartRequest, now: int) -> StartOutcome:
        return await self.call(self._store.create, request, now)

    async def due(self, now: int, limit: int, ahead: int = 0) -> list[Due]:
        return await self.read(self._store.due, now, limit, ahead)

    async def next_wake(self, now: int) -> int | None:
        return await self.read(self._store.next_wake, now)

    async def lease(self, id: str, me: str, now: int, until: int) -> Taken | None:
        return await self.call(self._store.lease, id, me, now, until)

    async def renew(self, ids: Sequence[str], me: str, now: int, until: int) -> list[str]:
        return await self.call(self._store.renew, ids, me, now, until)

    async def save(
        self, id: str, me: str, save: Save, starts: Sequence[StartRequest], now: int
    ) -> tuple[Saved, Woken]:
        return await self.call(self._store.save, id, me, save, starts, now)

    # -- attempts -----------------------------------------------------------------------------

    async def attempt(self, key: str) -> Attempt | None:
        return await self.read(self._store.attempt, key)

    async def put_result(self, put: PutResult, now: int) -> tuple[Attempt | None, str | None]:
        return await self.call(self._store.put_result, put, now)

    async def put_results(self, puts: Sequence[PutResult], now: int) -> Sequence[Attempt | None]:
        return await self.call(self._store.put_results, puts, now)

    async def give_up(
        self, key: str, attempt: int, word: str, delay: int, now: int
    ) -> tuple[bool, Attempt | None]:
        return await self.call(self._store.give_up, key, attempt, word, delay, now)

    async def late(self, key: str, attempt: int, result: str, now: int) -> None:
        await self.call(self._store.late, key, attempt, result, now)

    async def working(self, key: str, attempt: int) -> bool:
        return await self.read(self._store.working, key, attempt)

    async def under_way(self, step: str, now: int) -> int:
        return await self.read(self._store.under_way, step, now)

    async def begun(self, step: str, since: int) -> int:
        return await self.read(self._store.begun, step, since)

    async def abandon(self, now: int) -> tuple[int, int]:
        return await self.aside(self._store.abandon, now)

    # -- from outside -------------------------------------------------------------------------

    async def send(
        self,
        id: str,
        channel: str,
        key: str | None,
        value: str,
        birth: str | None,
        now: int,
        hold: Hold | None = None,
        row: InstanceRow | None = None,
    ) -> Sent:
        return await self.call(self._store.send, id, channel, key, value, birth, now, hold, row)

    async def locked(self, id: str) -> InstanceRow | None:
        return await self.call(self._store.locked, id)

    async def cancel(
        self, id: str, birth: str | None, cancel: Cancel, now: int, actor: str
    ) -> Asked:
        return await self.call(self._store.cancel, id, birth, cancel, now, actor)

    async def resume(self, id: str, now: int, actor: str, version: str | None = None) -> Asked:
        return await self.call(self._store.resume, id, now, actor, version)

    async def end(self, id: str, why: str, now: int, keep: int, actor: str) -> Asked:
        return await self.call(self._store.end, id, why, now, keep, actor)

    async def pause(self, id: str, now: int, actor: str) -> Asked:
        return await self.call(self._store.pause, id, now, actor)

    async def answer(self, seq: int) -> tuple[str, str] | None:
        return await self.read(self._store.answer, seq)

    async def post_result(
        self, key: str, result: str, now: int, actor: str, asked: str = "null"
    ) -> Asked:
        return await self.call(self._store.post_result, key, result, now, actor, asked)

    # -- reading ------------------------------------------------------------------------------

    async def instance(self, id: str) -> InstanceRow | None:
        return await self.read(self._store.instance, id)

    async def named(self, id: str, now: int) -> InstanceRow | None:
        return await self.read(self._store.named, id, now)

    async def messages(self, id: str) -> tuple[Message, ...]:
        return await self.read(self._store.messages, id)

    async def channels(self, id: str) -> tuple[tuple[int, str, int, int, bool, bool], ...]:
        return await self.read(self._store.channels, id)

    async def ended(self, id: str, birth: str) -> EndedInstance | None:
        return await self.read(self._store.ended, id, birth)

    async def children(self, id: str) -> tuple[tuple[str, str], ...]:
        return await self.read(self._store.children, id)

    async def instances(self, filter: Filter) -> tuple[InstanceRow, ...]:
        return await self.aside(self._store.instances, filter)

    async def life(self, id: str) -> Life | None:
        return await self.aside(self._store.life, id)

    async def ledger(self, id: str | None, after: int, limit: int) -> tuple[LedgerRow, ...]:
        return await self.aside(self._store.ledger, id, after, limit)

    async def last_change(self) -> int:
        return await self.call(self._store.last_change)

    async def counts(self) -> dict[str, int]:
        return await self.aside(self._store.counts)

    # -- versions -----------------------------------------------------------------------------

    async def put_version(self, version: VersionRow) -> str:
        return await self.call(self._store.put_version, version)

    async def versions(self, flow: str | None) -> tuple[VersionRow, ...]:
        return await self.aside(self._store.versions, flow)

    async def version(self, hash: str) -> VersionRow | None:
        return await self.read(self._store.version, hash)

    async def newest(self, flow: str) -> str | None:
        return await self.read(self._store.newest, flow)

    async def pin(self, flow: str, version: str, on: bool) -> None:
        await self.call(self._store.pin, flow, version, on)

    async def pins(self) -> frozenset[tuple[str, str]]:
        return await self.read(self._store.pins)

    async def standing(self) -> tuple[Standing, ...]:
        return await self.aside(self._store.standing)

    async def sweep_versions(self) -> tuple[tuple[str, str], ...]:
        return await self.aside(self._store.sweep_versions)

    # -- daemons and upkeep -------------------------------------------------------------------

    async def alive(self, me: str, until: int) -> None:
        await self.call(self._store.alive, me, until)

    async def daemons(self) -> tuple[DaemonRow, ...]:
        return await self.read(self._store.daemons)

    async def sweep(self, now: int, keep: int) -> int:
        """In pieces, so that nobody waits long for the connection."""
        swept = piece = await self.aside(self._store.sweep, now, keep)
        while piece == SWEEP_LIMIT:
            piece = await self.aside(self._store.sweep, now, keep)
            swept += piece
        return swept

    async def put_token(self, hash: str, role: str, name: str, now: int) -> None:
        await self.call(self._store.put_token, hash, role, name, now)

    async def tokens(self) -> tuple[tuple[str, str, str], ...]:
        return await self.read(self._store.tokens)

    async def drop_token(self, name: str) -> bool:
        return await self.call(self._store.drop_token, name)


def _carried_out(call: _Call) -> _Answer:
    try:
        return _Answer(call.future, call.function(), None)
    except Exception as error:
        return _Answer(call.future, None, error)


def _nothing_stands(error: Exception) -> Exception:
    if isinstance(error, StoreBusy | StoreBroken):
        return error
    return StoreBusy(f"the database could not commit ({error})")
