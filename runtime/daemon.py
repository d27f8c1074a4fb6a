"""The daemon: takes up what is due, runs each instance in a task of its own, renews, beats, sweeps.

Model. One asyncio process under a fresh incarnation (`shop-1/7c3e`). `wakeups` asks the store what
is due, leases it, and starts one task per instance, which runs `turn` against a `StoreHost` until
the instance leaves memory. It looks again when something was written that may have made an
instance due (`wake`), when the next wait is over, and once a second in any case.

Holding. What this daemon makes due by a call of its own (a start, a child, a message to an instance
that waits for it) it leases by the same transaction, and runs next: the answer to who asked is one
commit away and the end two, with no look and no lease between. `_early` has what is being taken.

Telling. What lands for an instance is told to its host if this process holds it; where nobody holds
it the daemon tries to take it at once. Both are hints: everything is read from the store, and an
untold instance is found at its next write or the next look.

Time. What sleeps in the store is taken `AHEAD` of its moment, and waits for it in memory as those
do that never left it: many that wake at once were leased and thawed by then.

What goes wrong. A turn that raises is logged and its instance given back as the store has it, to be
taken again; the third time in a row it is stopped (R0011). The store counts takings after which
nothing was heard of an instance: after six it is stopped without being run, for it ends its daemon.
So that the others that were in memory then are not blamed, one that is counted already is a
suspect: suspects are taken one after the other, each once all that is in memory was written or
came to rest, and coming to rest ends the suspicion (`lease.prove`). A busy store makes loops wait
and go on. So no instance takes another, or the daemon, with it.

Draining. Nothing new is taken, steps under way end within a limit, every instance writes itself as
waiting and gives its lease back: the next daemon goes on at once.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import replace

from qoqi.runtime import bodies
from qoqi.runtime.changes import Changes
from qoqi.runtime.clock import Clock
from qoqi.runtime.host import BUSY_FIRST, BUSY_MOST, StoreHost, broken_body, draw_birth
from qoqi.runtime.lease import prove, renewals
from qoqi.runtime.model import InstanceRow, Settings, VersionRow
from qoqi.runtime.programs import Programs, first_request, positional, turn_limits
from qoqi.runtime.slots import Slots
from qoqi.runtime.store.lifecycle import read_cancel
from qoqi.runtime.store.protocol import (
    Hold,
    SendOutcome,
    Sent,
    StartOutcome,
    StartRequest,
    StoreBroken,
    StoreBusy,
    Taken,
    Woken,
)
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm import turn
from qoqi.vm.effects import Operation
from qoqi.vm.failure import Failure
from qoqi.vm.host import (
    LOST,
    RETRY,
    WORDS,
    CancelTold,
    Event,
    LeaseLost,
    LedgerLine,
    NotDeployed,
    PutResult,
    Save,
    StepEnded,
    Told,
    WaitRow,
)
from qoqi.vm.instance import failure_json
from qoqi.vm.jsonform import parse_json
from qoqi.vm.program import Program
from qoqi.vm.snapshot import freeze, start_state, version_of

_log = logging.getLogger("qoqi.daemon")

FAILURES = 3
POISON = 6
"""A daemon that somebody kills every second hits one suspect or another each time: with three of
them, one in a hundred instances was stopped that had done nothing."""
AHEAD = 100  # ms
COLLECTIONS = (20_000, 20, 50)
SWEEP = 60_000
SWEEP_VERSIONS = 24 * 3_600_000  # it reads the states of instances, and a day more costs nothing


def collect_rarely() -> None:
    """For a process that is a daemon and nothing else: what is loaded by now stays, and is not
    looked through for garbage again, and what comes and goes with each step is looked through more
    rarely. With Python's own settings a tenth of the time goes there. There is no garbage to speak of
    yet, and to look for it would be a tenth of a start."""
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)


def incarnation(name: str) -> str:
    """The daemon's name and an id of this start: another process is another incarnation."""
    return f"{name}/{secrets.token_hex(2)}"


class Daemon:
    """One daemon on one store. Whoever made the store and the world closes them."""

    def __init__(
        self,
        store: StoreThread,
        clock: Clock,
        world: bodies.World,
        *,
        name: str = "daemon",
        settings: Settings | None = None,
    ) -> None:
        self.store = store
        self.clock = clock
        self.world = world
        self.settings = settings or Settings()
        self.me = incarnation(name)
        self.programs = Programs(store)
        self.changes = Changes()
        self.slots = Slots()
        self.hosts: dict[str, StoreHost] = {}
        self.out: dict[str, set[tuple[str, int]]] = {}
        self.draining = False
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._bodies: set[asyncio.Task[None]] = set()
        self._writes: set[asyncio.Task[None]] = set()
        self._taking: set[asyncio.Task[None]] = set()
        self._dead = False
        self._early: dict[str, list[Event]] = {}
        self._passed: set[str] = set()
        self._alone = asyncio.Lock()
        self._crashes: dict[str, int] = {}
        self._look = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []

    # -- life ----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Beats once, so that the daemon is known before it takes anything; then the loops run."""
        await self.programs.refresh()
        if self.settings.recover_at_once:
            leases, attempts = await self.store.abandon(self.clock.now())
            if leases:
                _log.warning("gave up %d leases, %d attempts of a daemon before", leases, attempts)
        await self.store.alive(self.me, self.clock.now() + self.settings.alive)
        loop = asyncio.get_running_loop()
        self._loops = [
            loop.create_task(self._guarded(job, job.__name__))
            for job in (self._heartbeats, self._renewals, self._wakeups, self._sweeps)
        ]

    async def stop(self) -> None:
        """Drains: every instance written and given back, or left to its lease past the limit."""
        self.draining = True
        until = self.clock.now() + self.settings.drain
        for host in list(self.hosts.values()):
            host.drain(until)
        while self._early:  # leases under way become tasks, which see `draining` at once
            await asyncio.sleep(0)
        waiting = list(self._tasks.values())
        if waiting:
            loop = asyncio.get_running_loop()
            limit = loop.create_task(self.clock.sleep_until(until + self.settings.look))
            written = loop.create_task(self._all_written(waiting))
            await asyncio.wait({limit, written}, return_when=asyncio.FIRST_COMPLETED)
            limit.cancel()
            written.cancel()
        await self._let_go()
        await self.kill()

    async def _let_go(self) -> None:
        """Past the limit: what did not write itself is given back as its last save has it.

        Its attempts stay open until their limits, as those of any other daemon's bodies.
        """
        late = [host for host in self.hosts.values() if not (host.released or host.lost)]
        turns = [self._tasks[host.id] for host in late if host.id in self._tasks]
        for turn_task in turns:
            turn_task.cancel()
        await asyncio.gather(*turns, return_exceptions=True)
        for host in late:
            await self._give_back(host, None)

    async def _all_written(self, tasks: list[asyncio.Task[None]]) -> None:
        await asyncio.wait(tasks)
        while self._writes:
            await asyncio.wait(set(self._writes))

    async def kill(self) -> None:
        """Drops everything as it is, as the end of the process would: nothing more is written."""
        self.draining = self._dead = True
        ending = [*self._loops, *self._tasks.values(), *self._bodies, *self._writes, *self._taking]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    async def _guarded(self, job: Callable[[], Awaitable[None]], name: str) -> None:
        """A loop of the daemon that never ends: what it raises is a bug, logged, and it goes on."""
        while True:
            try:
                await job()
            except (StoreBusy, StoreBroken) as trouble:
                _log.warning("%s goes on later: %s", name.strip("_"), trouble)
            except Exception:
                _log.exception("%s failed and goes on", name.strip("_"))
            await self.clock.sleep_until(self.clock.now() + self.settings.look)

    async def _heartbeats(self) -> None:
        while True:
            await self.clock.sleep_until(self.clock.now() + self.settings.heartbeat)
            await self.store.alive(self.me, self.clock.now() + self.settings.alive)
            await self.programs.refresh()

    async def _renewals(self) -> None:
        await renewals(self)

    async def _sweeps(self) -> None:
        swept = self.clock.now()
        while True:
            await self.clock.sleep_until(self.clock.now() + SWEEP)
            deleted = await self.store.sweep(self.clock.now(), self.settings.keep)
            if deleted:
                _log.info("swept %d ended instances", deleted)
            if self.clock.now() - swept >= SWEEP_VERSIONS:
                swept = self.clock.now()
                for flow, hash in await self.store.sweep_versions():
                    _log.info("swept version %s of %s, which nobody needs", hash[:12], flow)

    # -- taking up -----------------------------------------------------------------------------

    def wake(self) -> None:
        """Something was written that may have made an instance due."""
        self._look.set()

    async def _wakeups(self) -> None:
        settings = self.settings
        while not self.draining:
            self._look.clear()
            now = self.clock.now()
            due = await self.store.due(now, settings.look_limit, AHEAD)
            fresh = [one for one in due if one.id not in self.hosts and one.id not in self._early]
            self._passed.update(one.id for one in due if one.id in self.hosts)
            if fresh and not self.draining:
                for id, takings in fresh:
                    self._early[id] = []
                    if takings:
                        _keep(self._taking, self._take_suspect(id))
                await asyncio.gather(*(self._take(id) for id, takings in fresh if not takings))
                if len(due) >= settings.look_limit:
                    continue
            await self._until_next(now)

    async def _until_next(self, now: int) -> None:
        """Sleeps until told, until the first wait after the look at `now` is over, or a second."""
        if self._look.is_set():
            return
        at = now + self.settings.look
        wake = await self.store.next_wake(now)
        if wake is not None:
            # One that is near and was not taken is held: it is due when that lease is over.
            near = wake <= now + AHEAD
            at = min(at, max(wake if near else wake - AHEAD, now + 1))
        loop = asyncio.get_running_loop()
        told = loop.create_task(self._look.wait())
        over = loop.create_task(self.clock.sleep_until(at))
        try:
            await asyncio.wait({told, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
            over.cancel()

    async def _take(self, id: str) -> None:
        """Leases an instance that is in `_early`, and starts its task."""
        try:
            now = self.clock.now()
            taken = await self.store.lease(id, self.me, now, now + self.settings.lease)
        except BaseException:
            self._not_taken(id)
            raise
        if taken is None:
            self._not_taken(id)
        else:
            self.begin(taken)

    def begin(self, taken: Taken) -> None:
        """Starts the task of an instance that is leased to this daemon.

        What was told while it was being taken reaches its host.
        """
        id, until = taken.row.id, taken.row.lease_until
        assert until is not None
        host = self.hosts[id] = StoreHost(self, taken, until)
        for event in self._early.pop(id):
            host.push(event)
        if self.draining:
            host.drain(self.clock.now())
        self._tasks[id] = asyncio.get_running_loop().create_task(self._run(host, taken))

    def _not_taken(self, id: str) -> None:
        """What was told meanwhile nobody has heard: a look finds it."""
        if self._early.pop(id, None):
            self.wake()

    # -- holding -------------------------------------------------------------------------------

    def hold(self, id: str) -> Hold | None:
        """What a call takes the instance with that it makes due; None if this daemon may not.

        Its end is `begin` with what was taken, or `let` with the names that were not.
        """
        if self.draining or id in self.hosts or id in self._early:
            return None
        self._early[id] = []
        return Hold(self.me, self.clock.now() + self.settings.lease)

    def let(self, ids: Iterable[str]) -> None:
        for id in ids:
            if id not in self.hosts:
                self._not_taken(id)

    async def create(self, request: StartRequest) -> StartOutcome:
        """A start from outside: it runs here, next."""
        hold = self.hold(request.id)
        try:
            held = request if hold is None else replace(request, hold=hold)
            outcome = await self.store.create(held, self.clock.now())
            if outcome.created and hold is not None:
                self.begin(Taken(outcome.row, (), (), None))
        finally:
            if hold is not None:
                self.let((request.id,))
        if outcome.created and hold is None:
            self.wake()
        return outcome

    async def send(self, id: str, send: Callable[[SqlStore, Hold | None], Sent]) -> Sent:
        """A message from outside, by calls of the store in one transaction."""
        hold = self.hold(id)
        try:
            sent = await self.store.together(lambda store: send(store, hold))
            if sent.taken is not None:
                self.begin(sent.taken)
        finally:
            if hold is not None:
                self.let((id,))
        if sent.outcome == SendOutcome.DELIVERED:
            if hold is None:
                self.tell(id, sent.owner, Told())
            else:
                self.changes.tell(id)
                self.wake()  # one that was not taken is not due, or a suspect, or another's
        return sent

    async def _take_suspect(self, id: str) -> None:
        """It was in memory when a daemon died: alone in doubt, until it is proven or gone."""
        async with self._alone:
            for host in list(self.hosts.values()):
                await host.proven.wait()
            if self.draining:
                self._not_taken(id)
                return
            await self._take_told(id)
            suspect = self.hosts.get(id)
            if suspect is not None:
                await suspect.proven.wait()

    def prove(self, host: StoreHost) -> None:
        """An instance came to rest without a write: it does not end its daemon."""
        _keep(self._writes, prove(self, host))

    async def _take_told(self, id: str) -> None:
        """News for an instance that nobody holds: it is probably due, and its lease says whether.

        Whatever goes wrong here, the next look finds the instance.
        """
        try:
            await self._take(id)
        except StoreBusy as busy:
            _log.info("%s: not taken yet, the database is busy: %s", id, busy)
        except Exception:
            _log.exception("%s: could not be taken", id)

    async def _run(self, host: StoreHost, taken: Taken) -> None:
        """One instance, from its lease to the moment it leaves memory."""
        id = host.id
        try:
            if taken.row.takings >= POISON:
                said = f"it ended its daemon {POISON} times"
                await self._stop_poisoned(host, taken.row, said)
                return
            row = taken.row
            await self.programs.prepare(row.version, row.state, row.stopped_state)
            taken_up = taken.for_turn(self.settings.keep)
            await turn.run(taken_up, host, self.programs.code, turn_limits(self.settings))
            self._crashes.pop(id, None)
        except LeaseLost as why:
            _log.info("%s: dropped, its lease is lost %s", id, why)
            await self._give_back(host, None)
        except (StoreBusy, StoreBroken) as trouble:
            _log.warning("%s: dropped until its lease is over, %s", id, trouble)
        except Exception:
            _log.exception("%s: its turn failed", id)
            count = self._crashes[id] = self._crashes.get(id, 0) + 1
            await self._give_back(host, LedgerLine("turn_failed", {"times": count}))
        finally:
            self._leave(host)

    def _leave(self, host: StoreHost) -> None:
        id = host.id
        if self.hosts.get(id) is host:
            del self.hosts[id]
            self._tasks.pop(id, None)
        for ended in host.close():
            if not self._dead:
                _keep(self._writes, self._write_orphan(id, ended))
        if not self.out.get(id):
            self.out.pop(id, None)
        if id in self._passed:
            self._passed.discard(id)
            self.wake()

    # -- what goes wrong -----------------------------------------------------------------------

    async def _give_back(self, host: StoreHost, failed: LedgerLine | None) -> None:
        """What left memory without a write is given back as its last save has it, due soon.

        After an answer that lost against the store (no failure) it is due at once; after the third
        failure in a row it is stopped.
        """
        if host.released or host.lost:
            return
        try:
            row = await self.store.instance(host.id)
            if row is None:
                return
            if failed is not None and self._crashes[host.id] >= FAILURES:
                del self._crashes[host.id]
                await self._stop_poisoned(host, row, f"its turn failed {FAILURES} times")
                return
            at = self.clock.now() + (self.settings.retry if failed else 0)
            await host.still(_given_back(row, at, () if failed is None else (failed,)))
            self.wake()
        except (LeaseLost, StoreBusy, StoreBroken):
            _log.info("%s: not given back, its lease runs out", host.id)

    async def _stop_poisoned(self, host: StoreHost, row: InstanceRow, said: str) -> None:
        """As it was found, and a cancellation is over with that: it would only be run for it again.

        A resume it never came to act on counts for nothing.
        """
        why = Failure("R0011", said)
        resumed, asked = row.stopped_state, read_cancel(row.cancel)
        await host.still(
            Save(
                state=row.state if resumed is None else resumed,
                status="stopped",
                phase=row.phase,
                stage=row.stage,
                pass_number=row.pass_number,
                version=row.version if resumed is None else version_of(resumed),
                release=True,
                result=row.result,
                stopped_by=failure_json(why),
                error_code=why.code,
                refuses=row.refuses,
                seen_cancel=None if asked is None else asked.id,
                ledger=(LedgerLine("stopped", {"code": why.code, "message": why.message}),),
            )
        )
        _log.error("%s: stopped, %s", host.id, why.message)

    # -- telling -------------------------------------------------------------------------------

    def tell(self, id: str, owner: str | None, event: Event) -> None:
        """News for an instance: to its host; where nobody holds it, it is taken if it is due."""
        self.changes.tell(id)
        host = self.hosts.get(id)
        if host is not None:
            host.push(event)
            self._passed.add(id)
        elif id in self._early:
            self._early[id].append(event)
        elif owner is None and not self.draining:
            self._early[id] = []
            _keep(self._taking, self._take_told(id))
        elif owner is None or owner == self.me:
            self.wake()

    def tell_all(self, woken: Woken, teller: str) -> None:
        """The news of a save."""
        for id, owner in woken.owners:
            if id != teller:
                self.tell(id, owner, Told(teller))
        for id, owner in woken.cancels:
            self.tell(id, owner, CancelTold())

    # -- bodies --------------------------------------------------------------------------------

    def go_on(self, body: bodies.Body, at: Operation | None, id: str) -> None:
        """A body that takes time goes on in a task of its own."""
        _keep(self._bodies, self._drive(body, at, id))

    async def _drive(self, body: bodies.Body, at: Operation | None, id: str) -> None:
        ended: StepEnded | None
        try:
            ended = await bodies.run(body, self.world, at)
        except Exception as error:  # a bug of ours must not leave the step hanging
            ended = broken_body(body.key, body.attempt, error)
        if ended is None:
            self._settle_out(id, body.key, body.attempt)
            host = self.hosts.get(id)
            if host is not None:
                host.push(Told())
            return
        host = self.hosts.get(id)
        if host is None or host.lost:
            _keep(self._writes, self._write_orphan(id, ended))
        else:
            host.push(ended)

    def _settle_out(self, id: str, key: str, attempt: int) -> None:
        marks = self.out.get(id)
        if marks is not None:
            marks.discard((key, attempt))
            if not marks and id not in self.hosts:
                del self.out[id]

    async def _write_orphan(self, id: str, ended: StepEnded) -> None:
        """A body whose instance left memory: its answer is written, and the holder told."""
        delay = BUSY_FIRST
        while True:
            try:
                await self.write_end(ended)
                break
            except StoreBusy as busy:
                _log.warning("%s: its answer waits, the database is busy: %s", ended.key, busy)
                await self.clock.sleep_until(self.clock.now() + delay)
                delay = min(delay * 2, BUSY_MOST)
        self._settle_out(id, ended.key, ended.attempt)
        self.slots.ended(ended.key, ended.attempt)
        self.tell(id, self.me, Told())

    def write_alone(self, id: str, put: PutResult) -> None:
        """An answer whose instance was lost, written in the background, however busy the store."""
        ended = StepEnded(put.key, put.attempt, put.result, None, put.failure, put.undo)
        if not self._dead:
            _keep(self._writes, self._write_orphan(id, ended))

    async def write_end(self, ended: StepEnded) -> None:
        """Without a turn (seed, section 4): the first to land stands, a late one is kept aside."""
        now = self.clock.now()
        if ended.result in (RETRY, LOST):
            delay = self.settings.retry if ended.delay is None else ended.delay
            await self.store.give_up(ended.key, ended.attempt, ended.result, delay, now)
            return
        put = PutResult(ended.key, ended.attempt, ended.result, ended.failure, ended.undo)
        await self.write_put(put)

    async def write_put(self, put: PutResult) -> None:
        """An answer on its own; one that another was quicker than is kept as a late one."""
        now = self.clock.now()
        row, _ = await self.store.put_result(put, now)
        if put.result not in WORDS and (row is None or row.result != put.result):
            await self.store.late(put.key, put.attempt, put.result, now)

    async def working(self, key: str, attempt: int) -> bool:
        return await self.store.working(key, attempt)

    # -- for hosts and the API -----------------------------------------------------------------

    def draw_uuid(self) -> str:
        return str(uuid.UUID(int=self.world.chance.getrandbits(128), version=4))

    async def start_request(
        self, id: str, flow: str, args: str, *, parent: str | None
    ) -> StartRequest:
        """The row of an instance that another one starts, in the newest version of its flow."""
        hash = await self.programs.to_start(flow)
        if hash is None:
            raise NotDeployed(flow)
        program = self.programs.code(hash)
        raw = parse_json(args)
        values = positional(program, raw if isinstance(raw, list) else [])
        return self.first_row(id, program, hash, values, parent)

    def first_row(
        self,
        id: str,
        program: Program,
        hash: str,
        values: tuple[object, ...],
        parent: str | None,
    ) -> StartRequest:
        birth = draw_birth()
        machine = start_state(program, id, birth, hash, values, self.clock.now())
        return first_request(program, hash, id, birth, values, freeze(machine, program), parent)

    async def deploy(self, version: VersionRow) -> str:
        """Stores a version that was checked (`programs.open_version`): new, known or behind."""
        outcome = await self.store.put_version(version)
        if outcome == "new":
            await self.programs.refresh()
        return outcome


def _keep(tasks: set[asyncio.Task[None]], job: Coroutine[None, None, None]) -> None:
    """Starts a task that nobody waits for; the loop itself keeps no hold of it."""
    task = asyncio.get_running_loop().create_task(job)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


def _given_back(row: InstanceRow, at: int, ledger: tuple[LedgerLine, ...]) -> Save:
    """The row as its last save has it, waiting, due at `at`."""
    return Save(
        state=row.state,
        status="waiting",
        phase=row.phase,
        stage=row.stage,
        pass_number=row.pass_number,
        version=row.version,
        release=True,
        waits=(WaitRow("0", 0, "after", at=at),),
        result=row.result,
        refuses=row.refuses,
        ledger=ledger,
        as_found=True,
    )
