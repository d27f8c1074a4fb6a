"""What must hold, whatever happened: the numbers are those of the invariants in the docs.

A `Watch` stands beside the store that the daemons reach. It sees each write before and after it and
each step as it leaves, and remembers what was said once: answers, messages taken, waits. `settled`
looks at everything when nothing more can happen at an instant, `rested` when nothing more happens
by itself at all. That outcomes are the same (11) is for whoever has two of them.

What is broken is told by `Broken`, with the point at which something was made to happen.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from qoqi.runtime.model import ALLOWED, ENDED, InstanceRow, Phase, Status
from qoqi.runtime.store.protocol import Filter, Life, Store
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import LOST, RETRY, SPENT, TIMEOUT, WORDS, Attempt, Save, WaitRow
from qoqi.vm.jsonform import json_text
from qoqi.vm.keys import is_undo
from qoqi.vm.snapshot import thaw

if TYPE_CHECKING:
    from qoqi.runtime.simulation.world import Leaving, Simulation

AGAIN = frozenset({TIMEOUT, RETRY, LOST, SPENT})
MARKS = frozenset({SPENT, TIMEOUT})  # what a person's resume writes over an answer


class Broken(AssertionError):
    """Something that must hold did not."""


class Watch:
    """`store` is the one behind the daemons' own, where nothing is made to go wrong."""

    def __init__(self, store: Store, point: str) -> None:
        self._store = store
        self._point = point
        self._left: set[tuple[str, int]] = set()
        self._answers: dict[tuple[str, int], str] = {}
        self._taken: dict[str, list[int]] = {}
        self._waits: dict[str, tuple[WaitRow, ...]] = {}
        self._last: dict[str, Save] = {}
        self._told_again: set[str] = set()

    def _broken(self, what: str) -> Broken:
        return Broken(f"{self._point}: {what}")

    # -- as it happens -------------------------------------------------------------------------

    def leaves(self, world: Simulation, step: Leaving) -> None:
        """1 and 3: its attempt is a row that has no result, and it never left before."""
        row = self._store.attempt(step.key)
        if row is None or row.attempt != step.attempt:
            raise self._broken(f"{step.key} left before its attempt was written")
        if row.result is not None:
            raise self._broken(f"{step.key} left although its attempt has ended")
        if (step.key, step.attempt) in self._left:
            raise self._broken(f"{step.key} left twice under attempt {step.attempt}")
        self._left.add((step.key, step.attempt))
        if is_undo(step.key):
            self._undo_leaves(world, step)

    def _undo_leaves(self, world: Simulation, step: Leaving) -> None:
        """7: it is the last of those that are registered; an unwind passes over final ones."""
        row = self._store.instance(step.instance)
        assert row is not None
        undos = thaw(row.state, world.program(row.version)).undos
        numbers = [one.number for one in undos if row.phase is Phase.FINISH or not one.final]
        if int(step.key.rpartition("#")[2]) != max(numbers, default=0):
            raise self._broken(f"{step.key} left, and the undos that stand are {numbers}")

    def before(self, name: str, args: tuple[Any, ...]) -> InstanceRow | None:
        return self._store.instance(args[0]) if name in ("save", "lease") else None

    def after(
        self, name: str, args: tuple[Any, ...], before: InstanceRow | None, result: Any
    ) -> None:
        match name:
            case "save":
                id, me, save, _, now = args
                self._saved(id, me, save, now, before)
            case "lease":
                if result is not None:
                    self._changed("lease", before, result.row.id)
                    for row in result.attempts:
                        self._answered(row)
            case "put_result":
                self._answered(result[0])
            case "put_results":
                for row in result:
                    self._answered(row)
            case "give_up":
                self._answered(result[1])
            case _:
                pass

    def _saved(self, id: str, me: str, save: Save, now: int, before: InstanceRow | None) -> None:
        if before is None or before.lease_owner != me or (before.lease_until or 0) <= now:
            raise self._broken(f"a write of {id} stood although its lease was lost")
        after = self._changed("save", before, id)
        if after is not None and (after.status, after.phase) != (save.status, save.phase):
            raise self._broken(f"{id} was to be {save.status}, and is {after.status}")
        taken = self._taken.setdefault(id, [])
        if self._last.get(id) is not save:
            taken += [seq for seq, _ in save.taken]
        else:  # asked again, where its answer was lost: the ledger has its lines twice
            self._told_again.update(json_text(one.detail) for one in save.ledger)
        self._last[id] = save
        self._waits[id] = save.waits
        for put in save.puts:
            self._said(put.key, put.attempt, put.result)
        for kept in save.answers:
            self._said(kept.key, 1, kept.result)

    def _changed(self, by: str, before: InstanceRow | None, id: str) -> InstanceRow | None:
        """4: the change of status is a line of the table."""
        after = self._store.instance(id)
        if before is None or after is None:
            return after
        line = (before.status, before.phase, after.status, after.phase, by)
        if line not in ALLOWED:
            raise self._broken(f"{id} went from {line[:2]} to {line[2:4]} by {by}")
        return after

    def _answered(self, row: Attempt | None) -> None:
        if row is not None and row.result is not None:
            self._said(row.key, row.attempt, row.result)

    def _said(self, key: str, attempt: int, result: str) -> None:
        """2: what was answered once stays the answer."""
        known = self._answers.setdefault((key, attempt), result)
        if known == result:
            return
        if result in MARKS:  # a person has resumed
            self._answers[key, attempt] = result
            return
        raise self._broken(f"{key}: the answer was {known}, and is {result}")

    # -- when nothing more can happen ----------------------------------------------------------

    def settled(self, world: Simulation) -> None:
        held = {(id, daemon.me) for daemon in world.daemons for id in daemon.held}
        again: set[tuple[str, int]] = set()
        for row in self._store.instances(Filter(limit=10_000)):
            life = self._store.life(row.id)
            assert life is not None
            where = f"{self._point}, {row.id}"
            if row.status is Status.RUNNING and (row.id, row.lease_owner) not in held:
                raise Broken(f"{where}: running, and in nobody's memory")
            if row.status in ENDED and (row.lease_owner is not None or life.waits):
                raise Broken(f"{where}: ended, and still held or waiting")
            if row.status is Status.WAITING and not row.paused:
                self._check_woken(where, life, world.now)
            self._check_left(where, life)
            self._check_messages(where, life)
            check_attempts(where, life.attempts)
            left = [one for one in world.left if one.instance == row.id]
            _check_ledger(where, life, left, self._told_again)
            again |= _said_again(life)
            _check_state(where, row, world)
            for attempt in life.attempts:
                self._answered(attempt)
        _check_departures(self._point, world.left, again)

    def rested(self, world: Simulation) -> None:
        """10: whatever is not ended or stopped waits for something outside."""
        self.settled(world)
        for row in self._store.instances(Filter(status=Status.RUNNING)):
            raise self._broken(f"{row.id}: at rest, and still running")

    def _check_woken(self, where: str, life: Life, now: int) -> None:
        """10: it waits for something, and that has not happened yet."""
        if not life.waits:
            raise Broken(f"{where}: it waits for nothing")
        if life.row.cancel is not None and life.row.phase is Phase.RUN:
            raise Broken(f"{where}: a cancellation was asked for, and nobody reads it")
        births = {(one.task, one.case): one.other_birth for one in self._waits.get(life.row.id, ())}
        waited = set()
        for wait in life.waits:
            if wait.kind == "receive":
                waited.add(wait.channel)
            if wait.at is not None and wait.at <= now:
                raise Broken(f"{where}: its {wait.kind} was over at {wait.at}, and it sleeps")
            other = self._store.instance(wait.other) if wait.kind == "flow" and wait.other else None
            birth = births.get((wait.task, wait.case))
            if other is not None and other.status in ENDED and birth in (None, other.birth):
                raise Broken(f"{where}: it waits for {other.id}, which has ended")
            if wait.kind == "answer" and wait.other and self._store.answer(int(wait.other)):
                raise Broken(f"{where}: its request {wait.other} was answered, and it sleeps")
        for message in life.messages:
            if message.taken is None and message.channel in waited:
                raise Broken(f"{where}: message {message.seq} waits and nobody takes it")

    def _check_left(self, where: str, life: Life) -> None:
        """6: `left` of a wait over instances is how many of them have not ended."""
        members = {(one.task, one.case): one.members for one in self._waits.get(life.row.id, ())}
        for wait in life.waits:
            if wait.left is None:
                continue
            named = set(members.get((wait.task, wait.case), ()))
            living = sum(self._store.ended(*member) is None for member in named)
            if wait.left != living:
                raise Broken(f"{where}: `left` is {wait.left}, and {living} have not ended")
            if not living and life.row.status is Status.WAITING:
                raise Broken(f"{where}: an `all` is over and did not wake it")

    def _check_messages(self, where: str, life: Life) -> None:
        """5: taken exactly once, by a save, and in order. (A resume gives them back.)"""
        resumed = any(line.kind == "resumed" for line in life.ledger)
        by_save = self._taken.get(life.row.id, [])
        again = [seq for seq, count in Counter(by_save).items() if count > 1]
        if again and not resumed:
            raise Broken(f"{where}: message {again[0]} was taken twice")
        rows = {message.seq: message for message in life.messages}
        for message in life.messages:
            if message.taken is not None and message.seq not in by_save:
                raise Broken(f"{where}: message {message.seq} is gone, and nobody took it")
            if message.taken is None and message.seq in by_save and not resumed:
                raise Broken(f"{where}: message {message.seq} was taken, and is there again")
        places: dict[int, int] = {}
        for seq in by_save if not resumed else ():
            channel = rows[seq].channel if seq in rows else -1  # of a namesake that was swept
            if channel >= 0 and seq < places.get(channel, 0):
                raise Broken(f"{where}: message {seq} was taken after {places[channel]}")
            places[channel] = seq
        kept = Counter(row.message for row in life.attempts if row.message and row.result != SPENT)
        twice = [seq for seq, count in kept.items() if count > 1]
        if twice:
            raise Broken(f"{where}: message {twice[0]} was given twice")


def check_attempts(where: str, attempts: Sequence[Attempt]) -> None:
    """3 and 7: no try after an answer, none of a Settled step after its limit."""
    last: dict[str, Attempt] = {}
    for row in sorted(attempts, key=lambda one: (one.key, one.attempt)):
        before = last.get(row.key)
        if before is not None and before.result not in AGAIN:
            raise Broken(f"{where}: {row.key} was tried again after {before.result!r}")
        if before is not None and row.settled and before.result in (TIMEOUT, LOST):
            raise Broken(f"{where}: {row.key} is Settled and was tried again")
        last[row.key] = row


def first_departures(left: Sequence[Leaving]) -> dict[str, Leaving]:
    """By key, as each left first: a crash may have kept attempt 1 from leaving."""
    first: dict[str, Leaving] = {}
    for step in left:
        first.setdefault(step.key, step)
    return first


def _said_again(life: Life) -> set[tuple[str, int]]:
    """Attempts whose body said that the step is to be tried again."""
    details = (json.loads(line.detail) for line in life.ledger if line.kind == "given up")
    return {(one["key"], one["attempt"]) for one in details if one["word"] in (RETRY, LOST)}


def _check_departures(
    point: str, left: Sequence[Leaving], again: Collection[tuple[str, int]]
) -> None:
    """3: a Settled step does not leave again before its limit, unless its body asked for it."""
    by_key: dict[str, Leaving] = {}
    for step in left:
        before = by_key.get(step.key)
        early = before is not None and step.settled and step.at < before.until
        if early and before is not None and (before.key, before.attempt) not in again:
            raise Broken(f"{point}: {step.key} is Settled and left again before its limit")
        by_key[step.key] = step


def _check_ledger(
    where: str, life: Life, left: Sequence[Leaving], told_again: Collection[str]
) -> None:
    """9: what is in rows is in the ledger, and once."""
    answered: Counter[tuple[str, int]] = Counter()
    given_up: set[tuple[str, int]] = set()
    gone: set[tuple[str, int]] = set()
    undone: Counter[str] = Counter()
    kinds: list[str] = []
    for line in life.ledger:
        detail = json.loads(line.detail)
        kinds.append(line.kind)
        match line.kind:
            case "answered":
                answered[detail["key"], detail["attempt"]] += 1
            case "given up":
                given_up.add((detail["key"], detail["attempt"]))
            case "left":
                gone.update((key, attempt) for key, attempt in detail["steps"])
            case "undone" if line.detail not in told_again:
                undone[detail["key"]] += 1
            case _:
                pass
    for what in (answered, undone):
        for mark, count in what.items():
            if count > 1:
                raise Broken(f"{where}: the ledger says {count} times what became of {mark}")
    birth = life.row.birth
    for step in left:
        if f"/{birth}/" in step.key and (step.key, step.attempt) not in gone:
            raise Broken(f"{where}: {step.key} left, and the ledger does not say so")
    for row in life.attempts:
        mark = row.key, row.attempt
        if row.step and row.result is not None and row.result not in WORDS and not answered[mark]:
            raise Broken(f"{where}: {row.key} was answered, and the ledger does not say so")
        if row.result in (RETRY, LOST) and mark not in given_up:
            raise Broken(f"{where}: {row.key} was given up, and the ledger does not say so")
    wanted = {
        Status.DONE: {"done", "ended"},
        Status.FAILED: {"failed", "ended"},
        Status.STOPPED: {"stopped"},
    }.get(life.row.status)
    if wanted is not None and not wanted & set(kinds):
        raise Broken(f"{where}: it is {life.row.status}, and the ledger does not say so")


def _check_state(where: str, row: InstanceRow, world: Simulation) -> None:
    """9: the state is that of the row. One of another version waits to go over into it."""
    if row.status is Status.STOPPED or row.stopped_state is not None:
        return
    try:
        machine = thaw(row.state, world.program(row.version))
    except SnapshotError as damage:
        raise Broken(f"{where}: its state cannot be read: {damage}") from None
    if (machine.id, machine.birth) != (row.id, row.birth):
        raise Broken(f"{where}: its state is of {machine.id}, {machine.birth}")
    if (machine.pass_number, machine.stage) != (row.pass_number, row.stage):
        raise Broken(
            f"{where}: its row is in pass {row.pass_number}, its state in {machine.pass_number}"
        )
    if row.status is Status.DONE and not machine.returned:
        raise Broken(f"{where}: it is done, and its run has not returned")
