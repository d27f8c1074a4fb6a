"""Daemons of a simulation: what one holds, the bodies it runs, and the host of each instance.

A daemon does what `runtime.daemon` does, one thing after the other: bodies end, answers without an
instance are written, instances that have news go on, what is due is taken. Its hosts answer the
turn at once, from the store of the simulation.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from qoqi.runtime.programs import turn_limits
from qoqi.runtime.simulation.faults import Frozen
from qoqi.runtime.store.protocol import Hold, StartRequest, Store, StoreBusy, Taken
from qoqi.vm import turn
from qoqi.vm.dataclass import dataclass
from qoqi.vm.host import (
    LOST,
    RETRY,
    WORDS,
    Attempt,
    EndedInstance,
    Event,
    LeaseLost,
    LeavingStep,
    Message,
    NewInstance,
    PutLost,
    PutResult,
    Save,
    Saved,
    Started,
    StepEnded,
    TimeOver,
    Told,
)
from qoqi.vm.program import Program

if TYPE_CHECKING:
    from qoqi.runtime.simulation.world import Simulation

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Leaving:
    """A step as it leaves: what `answer` is asked, and what stays in `Simulation.left`."""

    instance: str
    step: str
    key: str
    attempt: int
    args: tuple[object, ...]
    at: int
    program: Program = field(repr=False)
    number: int = 0
    settled: bool = False
    until: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """How a body ends: JSON of a value or a bare word, `after` ms; never: no answer at all."""

    result: str
    after: int = 0
    delay: int | None = None
    failure: str | None = None
    undo: str | None = None
    never: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """An attempt that a save was to write; `version` is that of the instance then."""

    instance: str
    key: str
    attempt: int
    version: str
    step: str


@dataclass(slots=True)
class _Pause:
    """What a coroutine yields when it waits for its next event."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@dataclass(slots=True)
class Held:
    """An instance in a daemon's memory. `fresh`: its turn has not begun."""

    host: SimHost
    coroutine: Coroutine[Any, Any, None]
    fresh: bool = True

    def can_go_on(self) -> bool:
        return self.fresh or self.host.has_news()


@dataclass(slots=True)
class Body:
    at: int
    order: int
    instance: str
    ended: StepEnded


class SimDaemon:
    """One incarnation: what it holds, and the bodies it runs. A paused one does nothing.

    `stuck_until` is when one that stands still wakes. `orphans` are answers of bodies whose
    instance left this daemon's memory: they are not under the lease.
    """

    def __init__(self, world: Simulation, me: str) -> None:
        self.world = world
        self.me = me
        self.paused = False
        self.stuck_until: int | None = None
        self.held: dict[str, Held] = {}
        self.bodies: list[Body] = []
        self.orphans: deque[tuple[str, StepEnded]] = deque()

    @property
    def still(self) -> bool:
        return self.paused or self.stuck_until is not None

    def step(self) -> bool:
        """Does what can be done now; False if there was nothing."""
        return self._bodies_end() or self._write_orphans() or self._go_on() or self._take()

    def _bodies_end(self) -> bool:
        now = self.world.now
        due = sorted(
            (body for body in self.bodies if body.at <= now), key=lambda one: (one.at, one.order)
        )
        for body in due:
            self.bodies.remove(body)
            held = self.held.get(body.instance)
            if held is None:
                self.orphans.append((body.instance, body.ended))
            else:
                held.host.push(body.ended)
        return bool(due)

    def _write_orphans(self) -> bool:
        """As they came; a busy store is asked again."""
        if not self.orphans:
            return False
        instance, ended = self.orphans[0]
        try:
            write_orphan(self.world, self.world.store, ended)
        except (StoreBusy, Frozen):
            return True
        self.orphans.popleft()
        self.world.tell(instance, Told())
        return True

    def _go_on(self) -> bool:
        ready = [id for id, held in self.held.items() if held.can_go_on()]
        for id in ready:
            held = self.held.get(id)
            if held is not None and not self.still:
                self._resume(id, held)
        return bool(ready)

    def _resume(self, id: str, held: Held) -> None:
        held.fresh = False
        try:
            held.coroutine.send(None)
        except StopIteration:
            self._drop(id, held)
        except LeaseLost:
            self._drop(id, held)
            self.world.let_go(id, self)

    def _drop(self, id: str, held: Held) -> None:
        """What it was told of bodies and has not read is written without a turn."""
        if self.held.get(id) is held:
            del self.held[id]
        self.orphans += [(id, one) for one in held.host.events if isinstance(one, StepEnded)]

    def _take(self) -> bool:
        took = False
        world = self.world
        for id, _ in world.store.due(world.now, world.settings.look_limit):
            if id in self.held:
                continue  # it does not know yet that it lost it
            until = world.now + world.settings.lease
            try:
                taken = world.store.lease(id, self.me, world.now, until)
            except Frozen:
                return True
            except StoreBusy:
                took = True
                world.let_go(id, self)
                continue
            if taken is None:
                continue
            took = True
            held = self.take_in(taken)
            if self.still:
                return True
            self._resume(id, held)
        return took

    def hold(self, request: StartRequest) -> StartRequest:
        """What it makes due it takes with the same write, as a daemon does that has room: here one
        in two, so that others are found by a look."""
        if self.still or request.id in self.held or sum(request.id.encode()) % 2:
            return request
        return replace(request, hold=Hold(self.me, self.world.now + self.world.settings.lease))

    def take_in(self, taken: Taken) -> Held:
        """It holds the instance now; its turn begins when this daemon goes on."""
        world = self.world
        host = SimHost(self, taken)
        coroutine = turn.run(
            taken.for_turn(world.settings.keep),
            host,
            world.program,
            turn_limits(world.settings),
        )
        held = self.held[taken.row.id] = Held(host, coroutine)
        return held

    def renew(self) -> None:
        if not self.held:
            return
        world = self.world
        until = world.now + world.settings.lease
        renewed = set(world.store.renew(list(self.held), self.me, world.now, until))
        for id, held in self.held.items():
            held.host.lost = held.host.lost or id not in renewed
            held.host.lease_until = until

    def unwritten(self) -> list[tuple[str, StepEnded]]:
        """The ends of bodies here that no write has told of yet, in the order they came."""
        found = list(self.orphans)
        for id, held in self.held.items():
            found += [(id, ended) for ended in held.host.unwritten()]
        return found

    def die(self) -> None:
        for held in self.held.values():
            held.coroutine.close()
        self.held.clear()
        self.bodies.clear()
        self.orphans.clear()

    def next_time(self) -> int | None:
        if self.stuck_until is not None:
            return self.stuck_until
        times = [body.at for body in self.bodies]
        times += [held.host.until for held in self.held.values() if held.host.until is not None]
        if self.held:
            times.append(self.world.now + self.world.settings.renew)
        return min(times, default=None)


def write_orphan(world: Simulation, store: Store, ended: StepEnded) -> None:
    """Without a turn: the first to land stands, a late one is kept aside (runtime, daemon)."""
    now = world.now
    if ended.result in (RETRY, LOST):
        delay = world.settings.retry if ended.delay is None else ended.delay
        store.give_up(ended.key, ended.attempt, ended.result, delay, now)
        return
    put = PutResult(ended.key, ended.attempt, ended.result, ended.failure, ended.undo)
    row, _ = store.put_result(put, now)
    if put.result not in WORDS and (row is None or row.result != put.result):
        store.late(put.key, put.attempt, put.result, now)


class SimHost:
    """Host of one instance, on the simulation's store.

    Every call but `event` answers at once, unless the daemon stands still or the store is busy.
    """

    def __init__(self, daemon: SimDaemon, taken: Taken) -> None:
        self.daemon = daemon
        self.world = daemon.world
        self.id = taken.row.id
        self.flow = taken.row.flow
        self.version = taken.row.version
        self.rows = taken.attempts
        self.starting: dict[str, StartRequest] = {}
        self.events: deque[Event] = deque()
        self.until: int | None = None
        self.read: list[StepEnded] = []  # what the turn was told of bodies since its last save
        self.lease_until = self.world.now + self.world.settings.lease  # by this daemon's clock
        self.lost = False  # its lease was not renewed: a next call of the turn says so
        self.asking = False  # it waits only for the store, or for its daemon to go on
        self.running: set[tuple[str, int]] = {
            (body.ended.key, body.ended.attempt)
            for body in daemon.bodies
            if body.instance == self.id
        }

    def push(self, event: Event) -> None:
        self.events.append(event)

    def unwritten(self) -> list[StepEnded]:
        ends = [one for one in (*self.read, *self.events) if isinstance(one, StepEnded)]
        rows = [self.world.outside.attempt(one.key) for one in ends]
        return [
            ended
            for ended, row in zip(ends, rows, strict=True)
            if row is not None and row.attempt == ended.attempt and row.result is None
        ]

    def has_news(self) -> bool:
        over = self.until is not None and self.until <= self.world.now
        return bool(self.events) or self.asking or self.lost or over

    def now(self) -> int:
        return self.world.now

    def draw_uuid(self) -> str:
        return str(uuid.UUID(int=self.world.chance.getrandbits(128), version=4))

    def draw_int(self, low: int, high: int) -> int:
        return self.world.chance.randrange(low, high)

    async def attempt(self, key: str) -> Attempt | None:
        return self.world.store.attempt(key)

    async def kept(self) -> tuple[Attempt, ...]:
        return self.rows

    async def still(self, save: Save) -> Saved:
        world = self.world
        starts = [self.daemon.hold(self.starting[new.id]) for new in save.starts]
        for row in save.attempts:
            world.asked_for[row.key] = Asked(self.id, row.key, row.attempt, save.version, row.step)
        saved, woken = await self._write(
            lambda: world.store.save(self.id, self.daemon.me, save, starts, world.now)
        )
        for born in woken.born:
            self.daemon.take_in(Taken(born, (), (), None))
        self.version = save.version
        self.read.clear()
        world.tell_all(woken, self.id)
        return saved

    async def start(self, new: NewInstance) -> Started:
        found = self.world.store.named(new.id, self.world.now)
        if found is not None:
            return Started(found.birth, False, found.flow)
        row = self.starting[new.id] = self.world.start_row(new)
        return Started(row.birth, True, row.flow)

    async def put_result(self, put: PutResult) -> Attempt:
        world = self.world
        row, _ = await self._write(lambda: world.store.put_result(put, world.now))
        return _present(row)

    async def put_results(self, puts: Sequence[PutResult]) -> Sequence[Attempt]:
        world = self.world
        rows = await self._write(lambda: world.store.put_results(puts, world.now))
        return [_present(row) for row in rows]

    async def give_up(self, key: str, attempt: int, word: str, delay: int) -> tuple[bool, Attempt]:
        world = self.world
        gave_up, row = await self._write(
            lambda: world.store.give_up(key, attempt, word, delay, world.now)
        )
        return gave_up, _present(row)

    async def late(self, key: str, attempt: int, result: str) -> None:
        world = self.world
        await self._write(lambda: world.store.late(key, attempt, result, world.now))

    async def put_alone(self, put: PutResult) -> None:
        ended = StepEnded(put.key, put.attempt, put.result, None, put.failure, put.undo)
        self.daemon.orphans.append((self.id, ended))

    async def _write(self, call: Callable[[], R]) -> R:
        """A busy store is asked again, after all others had their turn (runtime, host).

        If it had committed, it may refuse the same rows again. Then the turn has failed, and the
        instance is given back as the store has it (runtime, daemon).
        """
        asked = False
        while True:
            if self.lost:
                raise LeaseLost
            try:
                result = call()
            except StoreBusy:
                asked = True
                await self._stand(once=True)
            except Frozen:
                await self._stand()
            except (LeaseLost, PutLost, AssertionError):
                raise
            except Exception as refused:
                if not asked:
                    raise
                raise LeaseLost("what it asked twice stands already") from refused
            else:
                self.world.tell_others(self)
                await self._stand()
                return result

    async def _stand(self, once: bool = False) -> None:
        """While the daemon stands still, so does the turn."""
        while once or self.daemon.still:
            once = False
            self.asking = True
            await _Pause()
            self.asking = False

    async def leave(self, step: LeavingStep) -> None:
        world = self.world
        if (step.key, step.attempt) in world.void:
            self.push(StepEnded(step.key, step.attempt, LOST))
            return
        if (step.key, step.attempt) in world.left_elsewhere:
            return
        if world.now >= min(self.lease_until, step.until):
            return  # it asks nothing any more, and ends without a word (runtime, bodies)
        program = world.program(step.version)
        definition = program.chunk.steps[step.step]
        leaving = Leaving(
            self.id,
            definition.name,
            step.key,
            step.attempt,
            step.args,
            world.now,
            program,
            step.step,
            definition.settled,
            step.until,
        )
        world.leaves(leaving)
        body = world.body(leaving)
        if body is not None:
            self.running.add((step.key, step.attempt))
            self.daemon.bodies.append(body)
        await self._stand()

    def under_way(self, key: str, attempt: int) -> bool:
        return (key, attempt) in self.running

    def ready(self) -> bool:
        return bool(self.events)

    async def event(self, until: int | None) -> Event:
        while True:
            if self.lost:
                raise LeaseLost
            if self.events:
                event = self.events.popleft()
                if isinstance(event, StepEnded):
                    self.running.discard((event.key, event.attempt))
                    self.read.append(event)
                return event
            if until is not None and until <= self.world.now:
                return TimeOver()
            self.until = until
            await _Pause()
            self.until = None

    async def messages(self) -> tuple[Message, ...]:
        return self.world.store.messages(self.id)

    async def ended(self, instance: str, birth: str) -> EndedInstance | None:
        return self.world.store.ended(instance, birth)

    async def children(self) -> tuple[tuple[str, str], ...]:
        return self.world.store.children(self.id)

    async def in_use(self, step: str, per: int) -> int:
        store, now = self.world.store, self.world.now
        return store.begun(step, now - per) if per else store.under_way(step, now)

    async def find(self, flow: str, name: str) -> str | None:
        row = self.world.store.instance(name)
        return row.birth if row is not None and row.flow == flow else None

    async def answer(self, seq: int) -> tuple[str, str] | None:
        return self.world.store.answer(seq)

    async def newest(self, flow: str) -> str | None:
        if (flow, self.version) in self.world.store.pins():
            return None
        return self.world.newest.get(flow)

    async def lineage(self, old: str, new: str) -> tuple[str, ...]:
        return self.world.lineage(old, new)


def _present(row: Attempt | None) -> Attempt:
    if row is None:
        raise LeaseLost("the attempt's row is gone")
    return row
