"""Two daemons on one store, and one of them stands still: at each call of the store in turn.

The first daemon freezes at its n-th write for longer than a lease and a limit; the second goes on with
what it had. Then the first wakes, late, with all it had in memory: its writes are refused, its answers
come too late or are the only ones, and the outcome is that of the run in which nobody stood still.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qoqi.runtime.simulation.crashes import WRITES, Broken, Outcome, Same, check, outcome_of
from qoqi.runtime.simulation.world import Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store

Play = Callable[[Simulation], None]


class Counting:
    """A store that says before or after which write something happens."""

    def __init__(self, store: Store, at: int, after: bool, happens: Callable[[], None]) -> None:
        self._store = store
        self._at = at
        self._after = after
        self._happens = happens
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in WRITES:
            return method

        def call(*args: Any, **named: Any) -> Any:
            self.calls += 1
            now = self.calls == self._at
            if now and not self._after:
                self._happens()
            result = method(*args, **named)
            if now and self._after:
                self._happens()
            return result

        return call


class TwoDaemons(Simulation):
    """Of which the first, once frozen, wakes after `standstill`, whatever happens meanwhile."""

    frozen_at: int | None = None
    standstill = 0

    def freeze(self) -> None:
        if self.standstill:
            self.daemons[0].paused = True
            self.frozen_at = self.now

    def _wakes(self) -> int | None:
        if self.frozen_at is None or not self.daemons[0].paused:
            return None
        return max(self.frozen_at + self.standstill, self.now + 1)

    def next_time(self) -> int | None:
        times = [at for at in (super().next_time(), self._wakes()) if at is not None]
        return min(times, default=None)

    def _move(self, at: int) -> None:
        wakes = self._wakes()
        if wakes is not None and wakes <= at:
            self.daemons[0].paused = False
        super()._move(at)


Make = Callable[[Store], TwoDaemons]


def overlapped_everywhere(make: Make, play: Play, same: Same, standstill: int) -> int:
    """The scenario, with the first daemon frozen at each write for so long; how many there were."""
    whole, calls = _one(make, play, 0, False, standstill)
    for at in range(1, calls + 1):
        for after in (False, True):
            now, _ = _one(make, play, at, after, standstill)
            if not same(whole, now):
                point = f"frozen {'after' if after else 'before'} write {at}"
                raise Broken(f"{point}: the outcome differs\n  whole: {whole}\n  now:   {now}")
    return 2 * calls


def _one(make: Make, play: Play, at: int, after: bool, standstill: int) -> tuple[Outcome, int]:
    store = memory_store()
    counting = Counting(store, at, after, lambda: simulation.freeze())
    simulation = make(counting)
    simulation.standstill = standstill
    simulation.outside = store
    play(simulation)
    simulation.rest()
    outcome = outcome_of(store, simulation)
    check(store, simulation, f"frozen {'after' if after else 'before'} write {at}")
    store.close()
    return outcome, counting.calls
