"""everyCrash: a scenario is run once whole, then once for each call and each thing that can go wrong.

The calls counted are those a daemon makes of its store, and each departure of a step. What can go
wrong there is in `faults`, what must hold after every one of those runs in `invariants` (`Broken`
says what did not); that the outcome is the same as without a crash is one of those things. A step
may leave again only as a new attempt, after its limit: that is the price of a crash.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import cast

from qoqi.runtime.simulation.faults import (
    DEATHS,
    WRITES,
    At,
    Crash,
    CrashingStore,
    Fault,
)
from qoqi.runtime.simulation.invariants import Broken, Watch, first_departures
from qoqi.runtime.simulation.world import STANDSTILL, Simulation
from qoqi.runtime.store.protocol import Filter, Store
from qoqi.vm.dataclass import dataclass
from qoqi.vm.keys import is_undo

__all__ = [
    "WRITES",
    "Broken",
    "Crash",
    "CrashingStore",
    "Make",
    "Outcome",
    "Play",
    "Report",
    "Same",
    "every_crash",
    "outcome_of",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a scenario ended: each instance's status and result, and which undos ran, in order."""

    ends: dict[str, tuple[str, str | None]]
    undone: dict[str, tuple[str, ...]]


@dataclass(slots=True)
class Report:
    """How many points were tried, and how the scenario ends, with and without a crash.

    `happened` counts what was made to happen, over all runs.
    """

    points: int
    outcome: Outcome
    happened: Counter[Fault] = field(default_factory=Counter)


Make = Callable[[Store], Simulation]
Play = Callable[[Simulation], None]


Same = Callable[[Outcome, Outcome], bool]


def equal(whole: Outcome, now: Outcome) -> bool:
    return whole == now


def every_crash(
    make: Make,
    fresh: Callable[[], Store],
    play: Play,
    same: Same = equal,
    *,
    faults: Sequence[At] = DEATHS,
    jump: int = STANDSTILL,
    most: int = 0,
) -> Report:
    """Runs the scenario with each fault at every point and checks all that must hold.

    `same(whole, now)` compares the outcomes; a scenario that cancels in the middle of a step may
    have to allow for an instance that a crash leaves to a person. A fault may cost minutes (a lease
    and the limit of a step; the clock jumps by `jump` ms), and the scenario has to bear that.
    With `most`, only so many of the points are tried, spread over all of them.
    """
    run = _Run(make, play, jump)
    whole, calls = run.once(fresh(), CrashingStore, "no crash")
    report = Report(0, whole)
    points = [
        (at, number, name)
        for at in faults
        for number, name in enumerate(calls.names, 1)
        if at.fits(name, jumps=True)
    ]
    if most and most < len(points):
        points = [points[number * len(points) // most] for number in range(most)]
    for at, number, name in points:
        point = f"{at.fault} at call {number}, {name}, {'after' if at.after else 'before'}"
        store = fresh()
        now, crashing = run.once(store, _crashing(at, number), point)
        store.close()
        if not crashing.happened[at.fault]:
            raise Broken(f"{point}: nothing happened there")
        if not same(whole, now):
            raise Broken(f"{point}: the outcome differs\n  whole: {whole}\n  now:   {now}")
        report.points += 1
        report.happened += crashing.happened
    return report


def _crashing(at: At, number: int) -> Callable[[Store], CrashingStore]:
    return lambda store: CrashingStore(store, number, at.after, fault=at.fault)


@dataclass(frozen=True, slots=True)
class _Run:
    make: Make
    play: Play
    jump: int

    def once(
        self, store: Store, crashes: Callable[[Store], CrashingStore], point: str
    ) -> tuple[Outcome, CrashingStore]:
        crashing = crashes(store)
        simulation = self.make(cast(Store, crashing))
        simulation.outside = store
        simulation.jump = self.jump
        watch = Watch(store, point)
        crashing.world, crashing.watch = simulation, watch

        def leaves() -> None:
            watch.leaves(simulation, simulation.left[-1])
            crashing.point()

        simulation.on_leave = leaves
        self.play(simulation)
        simulation.rest()
        watch.rested(simulation)
        return outcome_of(store, simulation), crashing


def outcome_of(store: Store, simulation: Simulation) -> Outcome:
    rows = store.instances(Filter(limit=10_000))
    undone: dict[str, list[str]] = {}
    for key, step in first_departures(simulation.left).items():
        if is_undo(key):
            undone.setdefault(step.instance, []).append(key.rpartition(":")[2])
    return Outcome(
        {row.id: (row.status.value, row.result) for row in rows},
        {id: tuple(keys) for id, keys in sorted(undone.items())},
    )
