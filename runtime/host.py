"""StoreHost: what a turn asks, answered by a store, a clock and the bodies of this daemon.

One host serves one instance from its lease to the moment it leaves memory. What the lease read is
kept: attempts and messages come from memory, and go to the store again only where somebody else may
have written (an open attempt that no body here runs; messages after being told). News comes in
through `push`, from bodies, from the API and from other instances' saves, and goes out in order
through `event`; nothing here polls. `out` has the attempts whose bodies run in this daemon, those
of an earlier taking too, until their end was read.

Losing the lease. The first refused save or renewal makes the host `lost`: every further call of the
turn raises `LeaseLost` and the instance is dropped from memory. Its bodies go on and write their
answers by themselves (`Daemon.body_ended`): answers are not under the lease.

Draining. The turn is given `Drain` at once, and lets nothing new leave from then on; what its
bodies answer still comes. Past the limit it is given `Drain` again, and writes the instance as it
stands.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from qoqi.runtime import bodies
from qoqi.runtime.store.protocol import StartRequest, StoreBusy, Taken
from qoqi.vm.bytecode.chunk import NO_FUNCTION
from qoqi.vm.failure import Failure, FlowError
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import (
    FAILED,
    Attempt,
    Drain,
    EndedInstance,
    Event,
    LeaseLost,
    LeavingStep,
    Message,
    NewInstance,
    PutResult,
    Save,
    Saved,
    Started,
    StepEnded,
    TimeOver,
    Told,
)
from qoqi.vm.instance import failure_json

if TYPE_CHECKING:
    from qoqi.runtime.daemon import Daemon
    from qoqi.runtime.store.thread import StoreThread

R = TypeVar("R")

_log = logging.getLogger("qoqi.host")

BUSY_FIRST, BUSY_MOST = 100, 5_000


def draw_birth() -> str:
    """Eight characters of base 32: never given again, as good as never drawn twice."""
    return base64.b32encode(secrets.token_bytes(5)).decode("ascii").lower()


class StoreHost:
    """The Host of an instance that `daemon` holds."""

    __slots__ = (
        "_alarm",
        "_alarm_at",
        "_daemon",
        "_drains",
        "_events",
        "_kept",
        "_messages",
        "_stale",
        "_starting",
        "_waiter",
        "birth",
        "drain_until",
        "flow",
        "id",
        "lease_until",
        "lost",
        "out",
        "proven",
        "released",
        "version",
    )

    def __init__(self, daemon: Daemon, taken: Taken, lease_until: int) -> None:
        self._daemon = daemon
        self.id = taken.row.id
        self.birth = taken.row.birth
        self.flow = taken.row.flow
        self.version = taken.row.version
        self.lease_until = lease_until
        self.lost = False
        self.released = False
        self.proven = asyncio.Event()  # written, renewed or gone since it was taken
        self.drain_until = 0
        self._drains = 0
        self.out: set[tuple[str, int]] = daemon.out.setdefault(self.id, set())
        self._kept = taken.attempts
        self._messages = taken.messages
        self._stale = False
        self._starting: dict[str, StartRequest] = {}  # ready for the next save
        self._events: deque[Event] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.Task[None] | None = None
        self._alarm_at = 0

    # -- for the daemon ------------------------------------------------------------------------

    def holds(self) -> bool:
        """Whether the lease stands, as far as this process knows: asked before a request leaves."""
        return not (self.lost or self.released) and self._daemon.clock.now() < self.lease_until

    def push(self, event: Event) -> None:
        """News for the turn. Of several `Told` in a row one is enough, but who ended is said."""
        if isinstance(event, Told):
            self._stale = True
            if event.other is None and self._events and self._events[-1] == event:
                return
        self._events.append(event)
        self._wake()

    def lose(self) -> None:
        self.lost = True
        self._wake()

    def drain(self, until: int) -> None:
        """Gives the turn `Drain` now, and again at `until`."""
        self.drain_until = until
        self._drains = 2
        self._wake()

    def close(self) -> list[StepEnded]:
        """The host is done: gives the ends of bodies that no turn will take any more."""
        self.proven.set()
        self._daemon.slots.gone(self)
        if self._alarm is not None:
            self._alarm.cancel()
        unread = [event for event in self._events if isinstance(event, StepEnded)]
        self._events.clear()
        return unread

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- Host: clock and chance ----------------------------------------------------------------

    def now(self) -> int:
        return self._daemon.clock.now()

    def draw_uuid(self) -> str:
        return self._daemon.draw_uuid()

    def draw_int(self, low: int, high: int) -> int:
        return self._daemon.world.chance.randrange(low, high)

    # -- Host: attempts ------------------------------------------------------------------------

    async def kept(self) -> tuple[Attempt, ...]:
        """What the lease read, with a fresh look at attempts somebody else may have answered."""
        if not any(row.result is None and not self._ours(row) for row in self._kept):
            return self._kept
        rows = []
        for row in self._kept:
            if row.result is None and not self._ours(row):
                fresh = await self.attempt(row.key)
                rows.append(fresh if fresh and fresh.attempt == row.attempt else row)
            else:
                rows.append(row)
        self._kept = tuple(rows)
        return self._kept

    def _ours(self, row: Attempt) -> bool:
        return (row.key, row.attempt) in self.out

    async def attempt(self, key: str) -> Attempt | None:
        return await self._ask(lambda store, _: store.attempt(key))

    async def put_result(self, put: PutResult) -> Attempt:
        row, _ = await self._ask(lambda store, now: store.put_result(put, now))
        self._daemon.slots.ended(put.key, put.attempt)
        return self._present(row)

    async def put_results(self, puts: Sequence[PutResult]) -> Sequence[Attempt]:
        rows = await self._ask(lambda store, now: store.put_results(puts, now))
        for put in puts:
            self._daemon.slots.ended(put.key, put.attempt)
        return [self._present(row) for row in rows]

    async def give_up(self, key: str, attempt: int, word: str, delay: int) -> tuple[bool, Attempt]:
        gave_up, row = await self._ask(
            lambda store, now: store.give_up(key, attempt, word, delay, now)
        )
        if gave_up:
            self._daemon.slots.ended(key, attempt)
        return gave_up, self._present(row)

    async def put_alone(self, put: PutResult) -> None:
        self._daemon.write_alone(self.id, put)

    def _present(self, row: Attempt | None) -> Attempt:
        """An attempt of a held instance has its row; without it somebody else had the instance."""
        if row is None:
            self.lost = True
            raise LeaseLost
        return row

    async def late(self, key: str, attempt: int, result: str) -> None:
        await self._ask(lambda store, now: store.late(key, attempt, result, now))

    # -- Host: writing -------------------------------------------------------------------------

    async def still(self, save: Save) -> Saved:
        if self.lost:
            raise LeaseLost
        daemon = self._daemon
        starts = [self._starting.pop(new.id) for new in save.starts]
        starts = [replace(one, hold=daemon.hold(one.id)) for one in starts]
        try:
            saved, woken = await self._ask(
                lambda store, now: store.save(self.id, daemon.me, save, starts, now)
            )
            for row in woken.born:
                daemon.begin(Taken(row, (), (), None))
        except LeaseLost:
            self.lost = True
            raise
        finally:
            daemon.let(one.id for one in starts if one.hold is not None)
        self.proven.set()
        self.version = save.version
        self.released = save.release
        daemon.changes.tell(self.id)
        for put in save.puts:
            daemon.slots.ended(put.key, put.attempt)
        if save.taken:
            taken = {seq for seq, _ in save.taken}
            self._messages = tuple(m for m in self._messages if m.seq not in taken)
        if woken.owners or woken.cancels:
            daemon.tell_all(woken, self.id)
        return saved

    async def start(self, new: NewInstance) -> Started:
        found = await self._ask(lambda store, now: store.named(new.id, now))
        if found is not None:
            return Started(found.birth, False, found.flow)
        try:
            row = await self._daemon.start_request(new.id, new.flow, new.args, parent=new.parent)
        except (FlowError, SnapshotError) as misfit:
            code = misfit.code if isinstance(misfit, FlowError) else "R0004"
            raise FlowError(code, f"{new.flow}: {misfit}") from None
        self._starting[new.id] = row
        return Started(row.birth, True, row.flow)

    # -- Host: bodies --------------------------------------------------------------------------

    async def leave(self, step: LeavingStep) -> None:
        daemon = self._daemon
        program = await daemon.programs.get(step.version)
        definition = program.chunk.steps[step.step]
        daemon.slots.got(definition.name, self)
        if definition.body == NO_FUNCTION:
            return  # an extern step: its attempt is a supervisor's to take
        self.out.add((step.key, step.attempt))
        daemon.slots.begins(definition, step.key, step.attempt)
        body = bodies.make(
            program,
            step.step,
            step.args,
            step.key,
            step.attempt,
            step.until,
            self.holds,
            lambda: daemon.working(step.key, step.attempt),
        )
        try:
            at = bodies.run_slice(body, daemon.world)
        except Exception as error:  # a bug of ours must not cost the instance its daemon
            at = broken_body(step.key, step.attempt, error)
        if isinstance(at, StepEnded):
            self.push(at)
        else:
            daemon.go_on(body, at, self.id)

    def under_way(self, key: str, attempt: int) -> bool:
        return (key, attempt) in self.out

    def ready(self) -> bool:
        return bool(self._events)

    async def event(self, until: int | None) -> Event:
        clock = self._daemon.clock
        while True:
            if self.lost:
                raise LeaseLost
            if self._drains > 1 or (self._drains and clock.now() >= self.drain_until):
                self._drains -= 1
                return Drain()
            if self._events:
                event = self._events.popleft()
                if isinstance(event, StepEnded):
                    self.out.discard((event.key, event.attempt))
                return event
            if until is not None and clock.now() >= until:
                await asyncio.sleep(0)  # a turn that computes asks this way to let others go on
                if self._events or self.lost:
                    continue
                return TimeOver()
            if not self.proven.is_set():
                self.proven.set()
                self._daemon.prove(self)
            self._waiter = asyncio.get_running_loop().create_future()
            limits = [
                at for at in (until, self.drain_until if self._drains else None) if at is not None
            ]
            if limits:
                self._set_alarm(min(limits))
            await self._waiter

    def _set_alarm(self, at: int) -> None:
        """One alarm per host: it may ring early for a later need, and is set again then."""
        if self._alarm is not None and not self._alarm.done():
            if self._alarm_at <= at:
                return
            self._alarm.cancel()
        self._alarm_at = at
        self._alarm = asyncio.get_running_loop().create_task(self._ring(at))

    async def _ring(self, at: int) -> None:
        await self._daemon.clock.sleep_until(at)
        self._alarm = None
        self._wake()

    # -- Host: others --------------------------------------------------------------------------

    async def messages(self) -> tuple[Message, ...]:
        if self._stale:
            self._stale = False
            self._messages = await self._ask(lambda store, _: store.messages(self.id))
        return self._messages

    async def ended(self, instance: str, birth: str) -> EndedInstance | None:
        return await self._ask(lambda store, _: store.ended(instance, birth))

    async def children(self) -> tuple[tuple[str, str], ...]:
        return await self._ask(lambda store, _: store.children(self.id))

    async def in_use(self, step: str, per: int) -> int:
        if per:
            return await self._ask(lambda store, now: store.begun(step, now - per))
        self._daemon.slots.asked(step, self)
        return await self._ask(lambda store, now: store.under_way(step, now))

    async def find(self, flow: str, name: str) -> str | None:
        row = await self._ask(lambda store, _: store.instance(name))
        return row.birth if row is not None and row.flow == flow else None

    async def answer(self, seq: int) -> tuple[str, str] | None:
        return await self._ask(lambda store, _: store.answer(seq))

    async def newest(self, flow: str) -> str | None:
        return await self._daemon.programs.newest_for(flow, self.version)

    async def lineage(self, old: str, new: str) -> tuple[str, ...]:
        return await self._daemon.programs.lineage(old, new)

    async def _ask(self, call: Callable[[StoreThread, int], Awaitable[R]]) -> R:
        """A call of the store at the present time; a busy one is asked again: nothing was written.

        This ends by itself: once the lease is over, another look finds it refused or lost.
        """
        daemon, clock = self._daemon, self._daemon.clock
        delay = BUSY_FIRST
        while True:
            try:
                return await call(daemon.store, clock.now())
            except StoreBusy as busy:
                if self.lost or clock.now() >= self.lease_until:
                    self.lost = True
                    raise LeaseLost("the database is busy") from busy
                _log.warning("%s: the database is busy (%s); trying again", self.id, busy)
                await clock.sleep_until(clock.now() + delay)
                delay = min(delay * 2, BUSY_MOST)


def broken_body(key: str, attempt: int, error: Exception) -> StepEnded:
    """How a body ends that the machine could not run: a mistake, for a person to see."""
    _log.error("%s: its body could not be run", key, exc_info=error)
    failure = Failure("R0001", f"the machine could not run it: {type(error).__name__}")
    return StepEnded(key, attempt, FAILED, failure=failure_json(failure))
