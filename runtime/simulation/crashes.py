"""everyCrash: a scenario is run once whole, then once for each call, dying before it and after it.

The calls counted are those a daemon makes of its store, and each departure of a step. `check` looks
at what must hold after every one of those runs (`Broken` says what did not); that the outcome is
the same as without a crash is one of those things. A step may leave again only as a new attempt,
after its limit: that is the price of a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from qoqi.runtime.model import ENDED, Status
from qoqi.runtime.simulation.world import Crash, Leaving, Simulation
from qoqi.runtime.store.protocol import Filter, Store
from qoqi.vm.host import LOST, RETRY, SPENT, TIMEOUT

WRITES = frozenset({"lease", "save", "put_result", "put_results", "give_up", "late"})


class Broken(AssertionError):
    """Something that must hold did not, after a crash at `point`."""


class CrashingStore:
    """A store that dies before or after its n-th write; everything else passes through.

    With `every`, also at each so many writes after that: one run dies at many points.
    """

    def __init__(
        self, store: Store, crash_at: int = 0, after: bool = False, every: int = 0
    ) -> None:
        self._store = store
        self._crash_at = crash_at
        self._after = after
        self._every = every
        self.calls = 0

    def point(self) -> None:
        """One more place to die at."""
        if self._dies():
            raise Crash

    def _dies(self) -> bool:
        self.calls += 1
        beyond = self.calls - self._crash_at
        if not self._crash_at or beyond < 0:
            return False
        return beyond == 0 or bool(self._every and beyond % self._every == 0)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in WRITES:
            return method

        def call(*args: object, **named: object) -> object:
            dies = self._dies()
            if dies and not self._after:
                raise Crash
            result = method(*args, **named)
            if dies:
                raise Crash
            return result

        return call


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scenario ended: each instance's status and result, and which undos ran, in order."""

    ends: dict[str, tuple[str, str | None]]
    undone: dict[str, tuple[str, ...]]


@dataclass(slots=True)
class Report:
    """How many points were tried, and how the scenario ends, with and without a crash."""

    points: int
    outcome: Outcome


Make = Callable[[Store], Simulation]
Play = Callable[[Simulation], None]


Same = Callable[[Outcome, Outcome], bool]


def equal(whole: Outcome, now: Outcome) -> bool:
    return whole == now


def every_crash(make: Make, fresh: Callable[[], Store], play: Play, same: Same = equal) -> Report:
    """Runs the scenario with a crash at every point and checks all that must hold.

    `same(whole, now)` compares the outcomes; a scenario that cancels in the middle of a step may
    have to allow for an instance that a crash leaves to a person.
    """
    whole, calls = _one(make, fresh(), play, 0, False, None, same)
    points = 0
    for crash_at in range(1, calls + 1):
        for after in (False, True):
            store = fresh()
            _one(make, store, play, crash_at, after, whole, same)
            points += 1
            store.close()
    return Report(points, whole)


def _one(
    make: Make,
    store: Store,
    play: Play,
    crash_at: int,
    after: bool,
    whole: Outcome | None,
    same: Same,
) -> tuple[Outcome, int]:
    crashing = CrashingStore(store, crash_at, after)
    simulation = make(cast(Store, crashing))
    simulation.outside = store
    point = f"call {crash_at}, {'after' if after else 'before'}" if crash_at else "no crash"
    watch = _Watch(store, point)

    def leaves() -> None:
        watch.leaves(simulation.left[-1])
        crashing.point()

    simulation.on_leave = leaves
    play(simulation)
    simulation.rest()
    if crash_at and simulation.deaths != 1:
        raise Broken(f"{point}: nothing died there")
    outcome = outcome_of(store, simulation)
    check(store, simulation, point)
    if whole is not None and not same(whole, outcome):
        raise Broken(f"{point}: the outcome differs\n  whole: {whole}\n  now:   {outcome}")
    return outcome, crashing.calls


class _Watch:
    """Looks at each step as it leaves: its attempt is a row, and it never left before."""

    def __init__(self, store: Store, point: str) -> None:
        self._store = store
        self._point = point
        self._left: set[tuple[str, int]] = set()

    def leaves(self, step: Leaving) -> None:
        row = self._store.attempt(step.key)
        if row is None or row.attempt != step.attempt:
            raise Broken(f"{self._point}: {step.key} left before its attempt was written")
        if row.result is not None:
            raise Broken(f"{self._point}: {step.key} left although its attempt has ended")
        if (step.key, step.attempt) in self._left:
            raise Broken(f"{self._point}: {step.key} left twice under attempt {step.attempt}")
        self._left.add((step.key, step.attempt))


def outcome_of(store: Store, simulation: Simulation) -> Outcome:
    rows = store.instances(Filter(limit=10_000))
    undone: dict[str, list[str]] = {}
    for key, step in _first_departures(simulation.left).items():
        if ":undo#" in key:
            undone.setdefault(step.instance, []).append(key.rpartition(":")[2])
    return Outcome(
        {row.id: (row.status.value, row.result) for row in rows},
        {id: tuple(keys) for id, keys in sorted(undone.items())},
    )


def _first_departures(left: list[Leaving]) -> dict[str, Leaving]:
    """By key, as each left first: a crash may have kept attempt 1 from leaving."""
    first: dict[str, Leaving] = {}
    for step in left:
        first.setdefault(step.key, step)
    return first


def check(store: Store, simulation: Simulation, point: str) -> None:
    """What must hold whatever happened (the numbers are those of the invariants in the docs)."""
    rows = store.instances(Filter(limit=10_000))
    for row in rows:
        life = store.life(row.id)
        assert life is not None
        where = f"{point}, {row.id}"
        if row.status is Status.RUNNING:
            raise Broken(f"{where}: at rest, and still running")
        if row.status in ENDED and (row.lease_owner is not None or life.waits):
            raise Broken(f"{where}: ended, and still held or waiting")
        for message in life.messages:
            if row.status is Status.WAITING and message.taken is None:
                waited = {wait.channel for wait in life.waits if wait.kind == "receive"}
                if message.channel in waited:
                    raise Broken(f"{where}: message {message.seq} waits and nobody takes it")
        for wait in life.waits:
            if wait.left is not None and wait.left <= 0:
                raise Broken(f"{where}: an `all` is over and did not wake it")
        _check_attempts(where, life.attempts)
        _check_undos(where, [step for step in simulation.left if step.instance == row.id])
    _check_departures(point, simulation.left)


def _check_attempts(where: str, attempts: Any) -> None:
    last: dict[str, Any] = {}
    for row in sorted(attempts, key=lambda one: (one.key, one.attempt)):
        before = last.get(row.key)
        if before is not None and before.result not in (TIMEOUT, RETRY, LOST, SPENT):
            raise Broken(f"{where}: {row.key} was tried again after {before.result!r}")
        if before is not None and row.settled and before.result in (TIMEOUT, LOST):
            raise Broken(f"{where}: {row.key} is Settled and was tried again")
        last[row.key] = row


def _check_undos(where: str, left: list[Leaving]) -> None:
    numbers = [int(key.rpartition("#")[2]) for key in _first_departures(left) if ":undo#" in key]
    if numbers != sorted(numbers, reverse=True):
        raise Broken(f"{where}: undos ran in the order {numbers}")


def _check_departures(point: str, left: list[Leaving]) -> None:
    """A Settled step does not leave again before the limit of its attempt is past."""
    by_key: dict[str, Leaving] = {}
    for step in left:
        before = by_key.get(step.key)
        if before is not None and step.settled and step.at < before.until:
            raise Broken(f"{point}: {step.key} is Settled and left again before its limit")
        by_key[step.key] = step
