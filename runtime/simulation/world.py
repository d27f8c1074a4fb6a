"""A whole system in one thread: daemons, a store and a clock that moves only when told.

`qoqi test` and the crash harness run the real turn algorithm and the real store here. Nothing
depends on an event loop or on threads: each instance in memory is a coroutine that is resumed when
it has news, so that the same program moves in the same order every time.

A step's body is a function of the caller, `answer`: it is asked when the step leaves and says what
will come back, and when. A daemon can die (`kill`, or a `Crash` out of the store): what it had in
memory is gone, what its bodies asked of the world has happened, and the leases it held run out.

What else can happen to a daemon is in `faults`. With `at_once` all of it costs no time: the daemon
that takes over has a clock that is a lease ahead, and who stands still wakes when nobody else can
do anything any more. Else a lease has to run out, and who stands still does so for `standstill`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from qoqi.runtime.model import InstanceRow, Settings, Status
from qoqi.runtime.programs import first_request, positional
from qoqi.runtime.simulation.daemon import (
    Asked,
    Body,
    Leaving,
    Reply,
    SimDaemon,
    SimHost,
    write_orphan,
)
from qoqi.runtime.simulation.faults import Crash
from qoqi.runtime.store.protocol import (
    Filter,
    StartOutcome,
    StartRequest,
    Store,
    Woken,
)
from qoqi.vm.failure import FlowError
from qoqi.vm.frames import Machine
from qoqi.vm.host import (
    LOST,
    TIMEOUT,
    Attempt,
    Cancel,
    CancelTold,
    Event,
    NewInstance,
    NotDeployed,
    StepEnded,
    Told,
)
from qoqi.vm.jsonform import from_json, json_text, parse_json, to_json
from qoqi.vm.migrate import move
from qoqi.vm.program import Program
from qoqi.vm.snapshot import freeze, start_state, state_at_stage, thaw

MOST_ROUNDS = 100_000
STANDSTILL = 180_000  # longer than a lease, and than a step's limit

__all__ = ["STANDSTILL", "Leaving", "Reply", "Restless", "SimHost", "Simulation"]


class Restless(Exception):
    """The system did not come to rest: something goes on for ever at one instant."""


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
        self.asked_for: dict[str, Asked] = {}  # by key
        self.void: set[tuple[str, int]] = set()  # attempts (key, number) that a crash gave up
        self.on_leave: Callable[[], None] = lambda: None
        self.at_once = at_once  # a daemon that died is known to be dead (runtime, recovery)
        self.standstill = STANDSTILL  # how long a daemon stands still, unless all is at once
        self.jump = 0  # how far the clock jumps; 0 where it must not be seen that it did
        self.outlived = False  # the next death is one that the bodies outlive
        self.elsewhere: list[Body] = []  # bodies that outlive their daemon
        self.left_elsewhere: set[tuple[str, int]] = set()
        self.acting: SimDaemon | None = None
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
        outlived, self.outlived = self.outlived, False
        if outlived:
            self.elsewhere += daemon.bodies
            self.elsewhere += [
                Body(self.now, number, id, ended)
                for number, (id, ended) in enumerate(daemon.unwritten())
            ]
        daemon.die()
        self.daemons.remove(daemon)
        heir = self.add_daemon()
        if outlived:
            self._leave_elsewhere()
        if self.at_once and outlived:
            self._take_over(daemon, heir)
        elif self.at_once:
            self._make_void()
            self.outside.abandon(self.now, queued=True)

    def _make_void(self) -> None:
        """Notes the attempts under way: whoever knows that the daemon died gives them up."""
        self.void.update((asked.key, asked.attempt) for asked, _ in self._open_attempts())
        self.asked_for.clear()

    def _open_attempts(self) -> list[tuple[Asked, Attempt]]:
        """The attempts that the store has as under way; the others are forgotten here."""
        found = []
        for asked in list(self.asked_for.values()):
            row = self.outside.attempt(asked.key)
            if row is None or row.attempt != asked.attempt or row.result is not None:
                del self.asked_for[asked.key]
            else:
                found.append((asked, row))
        return found

    def _step(self, asked: Asked) -> tuple[Program, int]:
        """Where a step is: an undo may be of a version before that of its instance."""
        flow = self.program(asked.version).chunk.flow
        others = [one for one in self.programs.values() if one.chunk.flow == flow]
        for program in (self.program(asked.version), *reversed(others)):
            for at, step in enumerate(program.chunk.steps):
                if step.name == asked.step:
                    return program, at
        raise KeyError(asked.step)

    def give_up_under_way(self) -> None:
        """What a death does to attempts, without one: those under way are given up, now."""
        under_way = self._open_attempts()
        self._make_void()
        for asked, row in under_way:
            key, number, until = asked.key, asked.attempt, row.until or self.now
            self.outside.give_up(key, number, TIMEOUT, self.now - until, until)
            for daemon in self.daemons:
                daemon.bodies = [body for body in daemon.bodies if body.ended.key != key]
                for held in daemon.held.values():
                    if (key, number) in held.host.running:
                        held.host.push(StepEnded(key, number, LOST))

    def _leave_elsewhere(self) -> None:
        """What was written and has not left, leaves all the same: somebody else takes it.

        So it costs no time that the daemon which wrote it is gone, or does not know that it did.
        """
        left = {(step.key, step.attempt) for step in self.left}
        for asked, row in self._open_attempts():
            if (asked.key, asked.attempt) in left:
                continue
            program, at = self._step(asked)
            step = program.chunk.steps[at]
            raws = parse_json(row.asked)
            assert isinstance(raws, list)
            args = tuple(
                from_json(raw, param.type, program.types, program.default)
                for raw, param in zip(raws, step.params, strict=True)
            )
            leaving = Leaving(
                asked.instance,
                step.name,
                asked.key,
                asked.attempt,
                args,
                self.now,
                program,
                at,
                step.settled,
                row.until or 0,
            )
            self.left.append(leaving)
            self.left_elsewhere.add((asked.key, asked.attempt))
            body = self.body(leaving)
            if body is not None:
                self.elsewhere.append(body)

    def _bodies_elsewhere_end(self) -> bool:
        due = [body for body in self.elsewhere if body.at <= self.now]
        for body in sorted(due, key=lambda one: (one.at, one.order)):
            self.elsewhere.remove(body)
            write_orphan(self, self.outside, body.ended)
            self.tell(body.instance, Told())
        return bool(due)

    def overlap(self) -> None:
        """Another daemon takes what the one that acts holds, which does not know and goes on."""
        assert self.acting is not None
        self._take_over(self.acting, self._other(self.acting))

    def freeze(self) -> None:
        """The daemon that acts stands still where it is; another one is there to take over."""
        acting = self.acting
        assert acting is not None
        acting.stuck_until = self.now if self.at_once else self.now + self.standstill
        other = self._other(acting)
        if self.at_once:
            self._take_over(acting, other)

    def _other(self, daemon: SimDaemon) -> SimDaemon:
        """Awake, and without an old copy of what that one holds."""
        for one in self.daemons:
            if one is not daemon and not one.still and one.held.keys().isdisjoint(daemon.held):
                return one
        return self.add_daemon()

    def _take_over(self, daemon: SimDaemon, heir: SimDaemon) -> None:
        """What a daemon holds goes to another one: to that one's clock its leases are over."""
        for row in self.outside.instances(Filter(status=Status.RUNNING, limit=10_000)):
            if row.lease_owner == daemon.me:
                self._lease_ahead(row.id, heir)

    def _lease_ahead(self, id: str, heir: SimDaemon) -> None:
        ahead = self.now + self.settings.lease
        taken = self.outside.lease(id, heir.me, ahead, ahead)
        if taken is not None:
            heir.take_in(taken)

    def let_go(self, id: str, daemon: SimDaemon) -> None:
        """A daemon has a lease of an instance that is not in its memory any more.

        Where nothing may cost time it is taken again now, else when the lease is over.
        """
        row = self.outside.instance(id)
        if self.at_once and row is not None and row.lease_owner == daemon.me:
            self._leave_elsewhere()
            self._lease_ahead(id, daemon)

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

    def body(self, leaving: Leaving) -> Body | None:
        """The body of a step that left, with how it will end; None if it never does."""
        reply = self.answer(leaving)
        if reply.never:
            return None
        ended = StepEnded(
            leaving.key, leaving.attempt, reply.result, reply.delay, reply.failure, reply.undo
        )
        self.order += 1
        return Body(self.now + reply.after, self.order, leaving.instance, ended)

    # -- time ---------------------------------------------------------------------------------

    def settle(self) -> None:
        """Lets everything happen that can happen at this instant."""
        for _ in range(MOST_ROUNDS):
            moved = self._bodies_elsewhere_end()
            for daemon in list(self.daemons):
                if daemon.still:
                    continue
                self.acting = daemon
                try:
                    moved = daemon.step() or moved
                except Crash:
                    self.kill(daemon)
                    moved = True
            if not moved and not self._somebody_wakes():
                return
        raise Restless(f"after {MOST_ROUNDS} rounds something still goes on")

    def _somebody_wakes(self) -> bool:
        over = [one for one in self.daemons if (one.stuck_until or self.now + 1) <= self.now]
        for daemon in over:
            daemon.stuck_until = None
        return bool(over)

    def next_time(self) -> int | None:
        """The next instant at which something may happen by itself."""
        times = [self.store.next_wake(self.now), *(body.at for body in self.elsewhere)]
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
            if daemon.still:
                continue
            self.acting = daemon
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
        """The row of an instance that another one starts."""
        if new.flow not in self.newest:
            raise NotDeployed(new.flow)
        program = self.programs[self.newest[new.flow]]
        raw = parse_json(new.args)
        assert isinstance(raw, list)
        try:
            return self.first_row(new.id, new.flow, positional(program, raw), new.parent)
        except FlowError as misfit:
            raise FlowError(misfit.code, f"{new.flow}: {misfit.message}") from None

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

    def tell_others(self, host: SimHost) -> None:
        """Of a write that is not under the lease, whoever else has the instance in memory."""
        for daemon in self.daemons:
            held = daemon.held.get(host.id)
            if held is not None and held.host is not host:
                held.host.push(Told())

    def tell_all(self, woken: Woken, teller: str) -> None:
        for id, _ in woken.owners:
            if id != teller:
                self.tell(id, Told(teller))
        for id, _ in woken.cancels:
            self.tell(id, CancelTold())
