"""Who waits for news of an instance: requests that wait for an answer, streams of events.

A hint and no more: what happened is read from the store. Nothing is kept for who does not wait, so
an instance that nobody watches costs one look into an empty table per write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from qoqi.runtime.clock import Clock


class Watch:
    """Set when there is news since the last `clear`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def clear(self) -> None:
        self._event.clear()

    def tell(self) -> None:
        self._event.set()

    async def news(self, clock: Clock, at: int) -> None:
        """Returns when there is news, at the latest at `at`."""
        loop = asyncio.get_running_loop()
        told = loop.create_task(self._event.wait())
        over = loop.create_task(clock.sleep_until(at))
        try:
            await asyncio.wait({told, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
            over.cancel()


class Changes:
    """Watches by instance; those of None are told of every instance."""

    def __init__(self) -> None:
        self._watches: dict[str | None, set[Watch]] = {}

    @contextmanager
    def watch(self, id: str | None) -> Generator[Watch]:
        watch = Watch()
        self._watches.setdefault(id, set()).add(watch)
        try:
            yield watch
        finally:
            watches = self._watches[id]
            watches.discard(watch)
            if not watches:
                del self._watches[id]

    def tell(self, id: str) -> None:
        if not self._watches:
            return
        for watch in (*self._watches.get(id, ()), *self._watches.get(None, ())):
            watch.tell()
