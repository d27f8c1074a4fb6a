"""Time, from one object: milliseconds since the epoch, and sleeping until one of them.

Nothing else in the runtime asks the system for the time. Tests and `qoqi test` pass a virtual
clock, whose time stands still until it is told to go on.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> int: ...

    async def sleep_until(self, at: int) -> None:
        """Returns when it is `at` or later; at once if it is already.

        A clock that is set back may let go earlier: who must not be early looks at `now`.
        """
        ...


class SystemClock:
    def now(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep_until(self, at: int) -> None:
        """Looks again after a minute at most: the system's time may be set.

        Where it was set back, as much time passes as was left at first, and no more: who sleeps for
        a second to look again does not sleep for the hour that the clock lost.
        """
        end = time.monotonic() + (at - self.now()) / 1000
        while (left := at - self.now()) > 0 and (rest := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left / 1000, rest, 60.0))


class VirtualClock:
    """Stands at `now` until `advance`, `set` or `to_next`."""

    def __init__(self, now: int = 0) -> None:
        self._now = now
        self._drawn = 0
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []

    def now(self) -> int:
        return self._now

    async def sleep_until(self, at: int) -> None:
        if at <= self._now:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._drawn += 1
        heapq.heappush(self._sleepers, (at, self._drawn, future))
        await future

    def next_deadline(self) -> int | None:
        """The earliest moment that somebody sleeps until."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    def set(self, now: int) -> None:
        """Also backwards. Wakes whoever has slept long enough, the earliest first."""
        self._now = now
        while (at := self.next_deadline()) is not None and at <= now:
            heapq.heappop(self._sleepers)[2].set_result(None)

    def advance(self, ms: int) -> None:
        self.set(self._now + ms)

    def to_next(self) -> bool:
        """Jumps to the next deadline; false if nobody sleeps."""
        at = self.next_deadline()
        if at is None:
            return False
        self.set(max(at, self._now))
        return True
