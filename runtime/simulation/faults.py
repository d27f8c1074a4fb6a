"""What can go wrong with a daemon and its store, and a store at whose calls it does.

Most of it must not be seen at all: a flow goes on as if nothing had happened, at the same moment.
So a run may have many of these, one after the other. Only where a daemon dies with its bodies may
something differ: attempts under way are given up then (`GIVEN_UP` is just that, and nobody dies).

Nothing happens at a call that only reads. Between two writes a daemon changes nothing that
outlives it, so it is all one where it dies there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from qoqi.runtime.store.protocol import Store, StoreBusy
from qoqi.vm.dataclass import dataclass

if TYPE_CHECKING:
    from qoqi.runtime.simulation.invariants import Watch
    from qoqi.runtime.simulation.world import Simulation

WRITES = frozenset({"lease", "save", "put_result", "put_results", "give_up", "late"})
LEAVE = "leave"


class Crash(BaseException):
    """The daemon dies here. Not an Exception, so that nothing on the way takes it for a mistake."""


class Frozen(Exception):
    """The daemon stands still before a call: nothing was done, and it will ask again."""


class Fault(StrEnum):
    DIES = "dies"
    """Its memory and its bodies are gone; another one starts."""
    OUTLIVED = "outlived"
    """It dies, but what its steps asked is answered all the same, as by supervisors."""
    OVERLAP = "overlap"
    """Another daemon, whose clock is ahead, takes what this one holds; both go on."""
    FROZEN = "frozen"
    """It stands still past its lease, another one takes over, and it wakes with all it had."""
    BUSY = "busy"
    """The store does nothing and says that it is busy."""
    LOST = "answer lost"
    """The store commits, and says that it is busy."""
    CLOCK = "clock"
    """The clock jumps: for good, or (where nothing may differ) past the lease for one save."""
    GIVEN_UP = "given up"
    """The attempts under way are given up, and nobody dies."""


@dataclass(frozen=True, slots=True)
class At:
    """A fault before a call or after it."""

    fault: Fault
    after: bool = False

    def fits(self, name: str, *, jumps: bool) -> bool:
        """Whether it can happen at a call of that name. `jumps`: the clock jumps for good.

        Where nothing may differ no save loses its answer: its steps would not leave, and their
        attempts, which are rows, would be given up as after a death.
        """
        match self.fault:
            case Fault.BUSY:
                return name != LEAVE and not self.after
            case Fault.LOST:
                return name != LEAVE and self.after and (jumps or name != "save")
            case Fault.FROZEN:
                return name != LEAVE or self.after
            case Fault.CLOCK:
                return jumps or (name == "save" and not self.after)
            case _:
                return True


UNSEEN = (
    At(Fault.OUTLIVED),
    At(Fault.OUTLIVED, after=True),
    At(Fault.OVERLAP),
    At(Fault.OVERLAP, after=True),
    At(Fault.FROZEN),
    At(Fault.FROZEN, after=True),
    At(Fault.BUSY),
    At(Fault.LOST, after=True),
    At(Fault.CLOCK),
)
"""What changes nothing at all."""
DEATHS = (At(Fault.DIES), At(Fault.DIES, after=True))
EVERY = (*DEATHS, *UNSEEN, At(Fault.CLOCK, after=True))


class CrashingStore:
    """A store that counts its writes; at the n-th something happens, else it passes them through.

    With `every`, also at each so many writes after that: one run has it many times. With `cycle`,
    at each write what stands there in turn (None: nothing), beginning at the n-th of the cycle.
    """

    def __init__(
        self,
        store: Store,
        crash_at: int = 0,
        after: bool = False,
        every: int = 0,
        *,
        fault: Fault = Fault.DIES,
        cycle: Sequence[At | None] = (),
    ) -> None:
        self._store = store
        self._crash_at = crash_at
        self._at = At(fault, after)
        self._every = every
        self._cycle = cycle
        self.world: Simulation | None = None
        self.watch: Watch | None = None
        self.calls = 0
        self.names: list[str] = []
        self.happened: Counter[Fault] = Counter()

    def point(self) -> None:
        """One more place at which something may happen: a step leaves."""
        now = self._next(LEAVE)
        if now is not None:
            self._happens(now)

    def _next(self, name: str) -> At | None:
        self.calls += 1
        self.names.append(name)
        if self._cycle:
            at = self._cycle[(self._crash_at + self.calls) % len(self._cycle)]
        else:
            beyond = self.calls - self._crash_at
            if not self._crash_at or beyond < 0:
                return None
            here = beyond == 0 or bool(self._every and beyond % self._every == 0)
            at = self._at if here else None
        if at is None or not at.fits(name, jumps=self.world is not None and bool(self.world.jump)):
            return None
        return at

    def _happens(self, at: At) -> None:
        """Raises what the daemon sees of it, if it sees anything."""
        self.happened[at.fault] += 1
        world = self.world
        match at.fault:
            case Fault.DIES:
                raise Crash
            case Fault.BUSY:
                raise StoreBusy("nothing was done")
            case Fault.LOST:
                raise StoreBusy("the answer was lost")
            case _:
                assert world is not None
        match at.fault:
            case Fault.OUTLIVED:
                world.outlived = True
                raise Crash
            case Fault.OVERLAP:
                world.overlap()
            case Fault.FROZEN:
                world.freeze()
                if not at.after:
                    raise Frozen
            case Fault.GIVEN_UP:
                world.give_up_under_way()
            case _:
                world.now += -world.jump if at.after else world.jump

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in WRITES:
            return method

        def call(*args: Any) -> object:
            at = self._next(name)
            if at is not None and at.fault is Fault.CLOCK and self.world and not self.world.jump:
                self.happened[at.fault] += 1
                args = (*args[:-1], args[-1] + self.world.settings.lease)
                at = None
            if at is not None and not at.after:
                self._happens(at)
            result = self._watched(name, method, args)
            if at is not None and at.after:
                self._happens(at)
            return result

        return call

    def _watched(self, name: str, method: Any, args: tuple[Any, ...]) -> object:
        if self.watch is None:
            return method(*args)
        before = self.watch.before(name, args)
        result = method(*args)
        self.watch.after(name, args, before, result)
        return result
