"""A whole system in one thread: daemons, a store and a clock that moves only when told.

`qoqi test` and the crash harness run the real turn algorithm and the real store here. Nothing
depends on an event loop or on threads: each instance in memory is a coroutine that is resumed when
it has news, so that the same program moves in the same order every time.

A step's body is a function of the caller, `answer`: it is asked when the step leaves and says what
will come back, and when. A daemon can die (`kill`, or a `Crash` out of the store): what it had in
memory is gone, what its bodies asked of the world has happened, and the leases it held run out.
"""

from __future__ import annotations

import random
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from qoqi.runtime.model import InstanceRow, Settings
from qoqi.runtime.programs import first_request, positional, turn_limits
from qoqi.runtime.store.protocol import (
    Filter,
    StartOutcome,
    StartRequest,
    Store,
    Taken,
    Woken,
)
from qoqi.vm import turn
from qoqi.vm.bytecode.chunk import FOREVER, StepDef
from qoqi.vm.failure import FlowError
from qoqi.vm.frames import Machine
from qoqi.vm.host import (
    LOST,
    RETRY,
    WORDS,
    Attempt,
    BadStart,
    Cancel,
    CancelTold,
    EndedInstance,
    Event,
    LeaseLost,
    LeavingStep,
    Message,
    NewInstance,
    NotDeployed,
    PutResult,
    Save,
    Saved,
    StepEnded,
    TimeOver,
    Told,
)
from qoqi.vm.jsonform import json_text, parse_json, to_json
from qoqi.vm.migrate import move
from qoqi.vm.program import Program
from qoqi.vm.snapshot import freeze, start_state, state_at_stage, thaw

MOST_ROUNDS = 100_000


class Crash(BaseException):
    """The daemon dies here. Not an Exception, so that nothing on the way takes it for a mistake."""


class Restless(Exception):
    """The system did not come to rest: something goes on for ever at one instant."""


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


@dataclass(slots=True)
class _Pause:
    """What a coroutine yields when it waits for its next event."""

    def __await__(self) -> Generator[None, None, None]:
        yield


@dataclass(slots=True)
class Held:
    """An instance in a daemon's memory."""

    host: SimHost
    coroutine: Coroutine[Any, Any, None]


@dataclass(slots=True)
class Body:
    at: int
    order: int
    instance: str
    ended: StepEnded


class SimDaemon:
    """One incarnation: what it holds, and the bodies it runs. A paused one does nothing."""

    def __init__(self, world: Simulation, me: str) -> None:
        self.world = world
        self.me = me
        self.paused = False
        self.held: dict[str, Held] = {}
        self.bodies: list[Body] = []

    def step(self) -> bool:
        """Does what can be done now; False if there was nothing."""
        return self._bodies_end() or self._go_on() or self._take()

    def _bodies_end(self) -> bool:
        now = self.world.now
        due = sorted(
            (body for body in self.bodies if body.at <= now), key=lambda one: (one.at, one.order)
        )
        for body in due:
            self.bodies.remove(body)
            held = self.held.get(body.instance)
            if held is None:
                self._orphan(body)
            else:
                held.host.push(body.ended)
        return bool(due)

    def _orphan(self, body: Body) -> None:
        """A body whose instance left this daemon's memory: answers are not under the lease."""
        ended, store, now = body.ended, self.world.store, self.world.now
        if ended.result in (RETRY, LOST):
            delay = self.world.settings.retry if ended.delay is None else ended.delay
            store.give_up(ended.key, ended.attempt, ended.result, delay, now)
        else:
            put = PutResult(ended.key, ended.attempt, ended.result, ended.failure, ended.undo)
            self.put_alone(put)
        self.world.tell(body.instance, Told())

    def put_alone(self, put: PutResult) -> None:
        store, now = self.world.store, self.world.now
        row, _ = store.put_result(put, now)
        if put.result not in WORDS and (row is None or row.result != put.result):
            store.late(put.key, put.attempt, put.result, now)

    def _go_on(self) -> bool:
        ready = [id for id, held in self.held.items() if held.host.has_news()]
        for id in ready:
            held = self.held.get(id)
            if held is not None:
                self._resume(id, held)
        return bool(ready)

    def _resume(self, id: str, held: Held) -> None:
        try:
            held.coroutine.send(None)
        except StopIteration:
            self.held.pop(id, None)
        except LeaseLost:
            self.held.pop(id, None)

    def _take(self) -> bool:
        took = False
        world = self.world
        for id, _ in world.store.due(world.now, world.settings.look_limit):
            until = world.now + world.settings.lease
            taken = world.store.lease(id, self.me, world.now, until)
            if taken is None:
                continue
            took = True
            host = SimHost(self, taken)
            coroutine = turn.run(
                taken.for_turn(world.settings.keep),
                host,
                world.program,
                turn_limits(world.settings),
            )
            held = self.held[id] = Held(host, coroutine)
            self._resume(id, held)
        return took

    def renew(self) -> None:
        if not self.held:
            return
        world = self.world
        until = world.now + world.settings.lease
        renewed = set(world.store.renew(list(self.held), self.me, world.now, until))
        for id in [id for id in self.held if id not in renewed]:
            self.held.pop(id).coroutine.close()

    def die(self) -> None:
        for held in self.held.values():
            held.coroutine.close()
        self.held.clear()
        self.bodies.clear()

    def next_time(self) -> int | None:
        times = [body.at for body in self.bodies]
        times += [held.host.until for held in self.held.values() if held.host.until is not None]
        if self.held:
            times.append(self.world.now + self.world.settings.renew)
        return min(times, default=None)


class SimHost:
    """Host of one instance, on the simulation's store; every call but `event` answers at once."""

    def __init__(self, daemon: SimDaemon, taken: Taken) -> None:
        self.daemon = daemon
        self.world = daemon.world
        self.id = taken.row.id
        self.flow = taken.row.flow
        self.version = taken.row.version
        self.rows = taken.attempts
        self.events: deque[Event] = deque()
        self.until: int | None = None
        self.running: set[tuple[str, int]] = {
            (body.ended.key, body.ended.attempt)
            for body in daemon.bodies
            if body.instance == self.id
        }

    def push(self, event: Event) -> None:
        self.events.append(event)

    def has_news(self) -> bool:
        return bool(self.events) or (self.until is not None and self.until <= self.world.now)

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
        starts = [world.start_row(new) for new in save.starts]
        for row in save.attempts:
            world.asked_for[row.key] = (row.attempt, save.version, row.step)
        saved, woken = world.store.save(self.id, self.daemon.me, save, starts, world.now)
        self.version = save.version
        world.tell_all(woken, self.id)
        return saved

    async def put_result(self, put: PutResult) -> Attempt:
        row, _ = self.world.store.put_result(put, self.world.now)
        return _present(row)

    async def put_results(self, puts: Sequence[PutResult]) -> Sequence[Attempt]:
        return [_present(row) for row in self.world.store.put_results(puts, self.world.now)]

    async def give_up(self, key: str, attempt: int, word: str, delay: int) -> tuple[bool, Attempt]:
        gave_up, row = self.world.store.give_up(key, attempt, word, delay, self.world.now)
        return gave_up, _present(row)

    async def late(self, key: str, attempt: int, result: str) -> None:
        self.world.store.late(key, attempt, result, self.world.now)

    async def put_alone(self, put: PutResult) -> None:
        self.daemon.put_alone(put)
        self.world.tell(self.id, Told())

    async def leave(self, step: LeavingStep) -> None:
        world = self.world
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
        reply = world.answer(leaving)
        if reply.never:
            return
        ended = StepEnded(
            step.key, step.attempt, reply.result, reply.delay, reply.failure, reply.undo
        )
        world.order += 1
        self.running.add((step.key, step.attempt))
        self.daemon.bodies.append(Body(world.now + reply.after, world.order, self.id, ended))

    def under_way(self, key: str, attempt: int) -> bool:
        return (key, attempt) in self.running

    def ready(self) -> bool:
        return bool(self.events)

    async def event(self, until: int | None) -> Event:
        while True:
            if self.events:
                event = self.events.popleft()
                if isinstance(event, StepEnded):
                    self.running.discard((event.key, event.attempt))
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


def _counts(step: StepDef) -> bool:
    """Whether it shows how many attempts of a step there were, or when each began."""
    limited = step.tries not in (0, FOREVER) or step.tries_for or step.backoff_most or step.limits
    return step.settled or bool(limited)


def _present(row: Attempt | None) -> Attempt:
    if row is None:
        raise LeaseLost("the attempt's row is gone")
    return row


class Simulation:
    """Daemons on one store, and the people outside. `left` lists what left, in order."""

    def __init__(
        self,
        store: Store,
        programs: dict[str, Program],
        newest: dict[str, str],
        answer: Callable[[Leaving], Reply],
        *,
        settings: Settings | None = None,
        now: int = 1_767_225_600_000,
        seed: int = 1,
        at_once: bool = False,
    ) -> None:
        self.store = store  # as the daemons reach it: the crash harness puts its own before it
        self.outside = store  # as people reach it
        self.programs = programs
        self.newest = newest
        self.previous: dict[str, str | None] = {}
        self.answer = answer
        self.settings = settings or Settings(wave=0)
        self.now = now
        self.chance = random.Random(seed)
        self.order = 0
        self.left: list[Leaving] = []
        self.asked_for: dict[str, tuple[int, str, str]] = {}  # attempt, version, step by key
        self.void: set[tuple[str, int]] = set()  # attempts (key, number) that a crash gave up
        self.crash_shows = False  # whether one was of a step whose end a crash may change
        self.on_leave: Callable[[], None] = lambda: None
        self.at_once = at_once  # a daemon that died is known to be dead (runtime, recovery)
        self.deaths = 0
        self.incarnations = 0
        self.daemons: list[SimDaemon] = []
        self.add_daemon()

    # -- daemons ------------------------------------------------------------------------------

    def add_daemon(self) -> SimDaemon:
        self.incarnations += 1
        daemon = SimDaemon(self, f"sim/{self.incarnations:04x}")
        self.daemons.append(daemon)
        return daemon

    def kill(self, daemon: SimDaemon) -> None:
        """As `kill -9`: memory and bodies are gone; another incarnation starts."""
        self.deaths += 1
        daemon.die()
        self.daemons.remove(daemon)
        self.add_daemon()
        if self.at_once:
            self._make_void()
            self.outside.abandon(self.now, queued=True)

    def _make_void(self) -> None:
        """Notes the attempts under way: whoever knows that the daemon died gives them up.

        A crash shows where attempts count: a Settled step's answer is Unknown then, one of so many
        tries is used up, a delay that doubles is longer.
        """
        for key, (number, version, name) in self.asked_for.items():
            row = self.outside.attempt(key)
            if row is None or row.attempt != number or row.result is not None:
                continue
            self.void.add((key, number))
            steps = self.program(version).chunk.steps
            step = next((step for step in steps if step.name == name), None)
            self.crash_shows = self.crash_shows or step is None or _counts(step)
        self.asked_for.clear()

    def program(self, hash: str) -> Program:
        return self.programs[hash]

    def deploy(self, flow: str, hash: str, program: Program) -> None:
        """A newer version of a flow, from now on: instances move to it at their next stage."""
        self.programs[hash] = program
        self.previous[hash] = self.newest.get(flow)
        self.newest[flow] = hash

    def lineage(self, old: str, new: str) -> tuple[str, ...]:
        """The versions after `old` up to `new`, oldest first; empty if there is no way."""
        path: list[str] = []
        hash: str | None = new
        while hash != old:
            if hash is None:
                return ()
            path.append(hash)
            hash = self.previous.get(hash)
        return tuple(reversed(path))

    def leaves(self, leaving: Leaving) -> None:
        self.left.append(leaving)
        self.on_leave()

    # -- time ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Lets everything happen that can happen at this instant."""
        for _ in range(MOST_ROUNDS):
            moved = False
            for daemon in list(self.daemons):
                if daemon.paused:
                    continue
                try:
                    moved = daemon.step() or moved
                except Crash:
                    self.kill(daemon)
                    moved = True
            if not moved:
                return
        raise Restless(f"after {MOST_ROUNDS} rounds something still goes on")

    def next_time(self) -> int | None:
        """The next instant at which something may happen by itself."""
        times = [self.store.next_wake(self.now)]
        times += [daemon.next_time() for daemon in self.daemons if not daemon.paused]
        later = [at for at in times if at is not None and at > self.now]
        return min(later, default=None)

    def advance_to(self, end: int) -> None:
        """Moves the clock, stopping at each instant at which something happens."""
        self.settle()
        while (at := self.next_time()) is not None and at <= end:
            self._move(at)
        self.now = max(self.now, end)
        self.settle()

    def _move(self, at: int) -> None:
        for daemon in list(self.daemons):
            if daemon.paused:
                continue
            try:
                daemon.renew()
            except Crash:
                self.kill(daemon)
        self.now = at
        self.settle()

    def rest(self, until: int | None = None) -> None:
        """Lets time pass until nothing more happens by itself (or until then)."""
        self.settle()
        for _ in range(MOST_ROUNDS):
            at = self.next_time()
            if at is None or (until is not None and at > until):
                return
            self._move(at)
        raise Restless("time passes and the system does not come to rest")

    # -- from outside -------------------------------------------------------------------------

    def start(self, flow: str, name: str, args: tuple[object, ...]) -> StartOutcome:
        outcome = self.outside.create(self.first_row(name, flow, args, None), self.now)
        self.settle()
        return outcome

    def start_at(
        self,
        flow: str,
        name: str,
        version: str,
        stage: str,
        values: dict[str, object],
        channels: tuple[str, ...],
    ) -> StartOutcome:
        """An instance at a stage of another version, moved to the newest; NotMoved if it stays."""
        hash = self.newest[flow]
        program = self.programs[hash]
        old = Machine(name, self._birth(), version, stage=stage, pass_number=1)
        state = move(state_at_stage(old, self.now, values, channels), [(hash, program)], None)
        slots = zip(program.chunk.flow_slots, thaw(state, program).flow_slots, strict=True)
        args = tuple(value for slot, value in slots if slot.parameter)
        request = first_request(program, hash, name, old.birth, args, state, None)
        outcome = self.outside.create(request, self.now)
        self.settle()
        return outcome

    def first_row(
        self, name: str, flow: str, args: tuple[object, ...], parent: str | None
    ) -> StartRequest:
        hash = self.newest[flow]
        program = self.programs[hash]
        birth = self._birth()
        state = freeze(start_state(program, name, birth, hash, args, self.now), program)
        return first_request(program, hash, name, birth, args, state, parent)

    def _birth(self) -> str:
        return f"{self.chance.getrandbits(32):08x}"

    def start_row(self, new: NewInstance) -> StartRequest:
        if new.flow not in self.newest:
            raise NotDeployed(new.flow)
        program = self.programs[self.newest[new.flow]]
        raw = parse_json(new.args)
        assert isinstance(raw, list)
        try:
            return self.first_row(new.id, new.flow, positional(program, raw), new.parent)
        except FlowError as misfit:
            raise BadStart(new.key, misfit.code, f"{new.flow}: {misfit.message}") from None

    def send(self, id: str, channel: str, value: object, key: str | None = None) -> str:
        sent = self.outside.send(id, channel, key, json_text(to_json(value)), None, self.now)
        self.tell(id, Told())
        self.settle()
        return sent.outcome

    def cancel(
        self,
        id: str,
        reason: str,
        *,
        now: bool = False,
    ) -> str:
        """ok, ended, or `refused: TEXT`."""
        self.order += 1
        cancel = Cancel(f"cancel-{self.order}", reason, now, self.now)
        asked = self.outside.cancel(id, None, cancel, self.now, "test")
        if asked.outcome == "ok":
            self.tell(id, CancelTold())
            self.settle()
        if asked.outcome == "refused":
            return f"refused: {asked.text}"
        return "ok" if asked.outcome == "ok" else "ended"

    def rows(self) -> tuple[InstanceRow, ...]:
        return self.outside.instances(Filter(limit=10_000))

    def departures(self) -> list[Leaving]:
        """What left, in order, as if no daemon had died.

        A step that left again because its daemon died stands once: where, when and as the attempt
        as which it left first.
        """
        shown: list[Leaving] = []
        places: dict[str, int] = {}
        for step in self.left:
            place = places.pop(step.key, None)
            if place is None:
                place = len(shown)
                before = sum((step.key, n) in self.void for n in range(1, step.attempt))
                shown.append(replace(step, attempt=step.attempt - before) if before else step)
            if (step.key, step.attempt) in self.void:
                places[step.key] = place
        return shown

    def row(self, id: str) -> InstanceRow:
        row = self.outside.instance(id)
        if row is None:
            raise KeyError(id)
        return row

    def tell(self, id: str, event: Event) -> None:
        for daemon in self.daemons:
            held = daemon.held.get(id)
            if held is not None:
                held.host.push(event)

    def tell_all(self, woken: Woken, teller: str) -> None:
        for id, _ in woken.owners:
            if id != teller:
                self.tell(id, Told(teller))
        for id, _ in woken.cancels:
            self.tell(id, CancelTold())
