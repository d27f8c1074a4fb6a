"""What takes time to answer: a message that waits for its answer, and the ledger as it grows.

Both look at the store, wait for news from `Changes`, and look again; once a second in any case. An
event is a row of the ledger, its id the row's number: who comes back with `Last-Event-ID` is given
what it missed, and an event that is sent is on disk. A stream is bounded on every side: so many
streams at once, so many rows a look, a few looks a second, and a reader that takes nothing for half
a minute is let go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from qoqi.runtime.api import views, wire
from qoqi.runtime.daemon import Daemon
from qoqi.vm.dataclass import dataclass
from qoqi.vm.jsonform import json_text

STREAMS = 64
ROWS = 500
PAUSE = 200  # ms between two looks of a stream that has news
BEAT = 15_000  # ms of silence before a comment says that the stream lives
PATIENCE = 30.0  # seconds for a reader to take what it was sent
WAIT_MOST = 60_000

# What ASGI gives and takes.
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_log = logging.getLogger("qoqi.api")


async def answer_of(daemon: Daemon, id: str, seq: int, limit: int) -> tuple[str, str] | None:
    """How a message was answered, (ok, JSON) or (ended, ""); None if it was not until `limit`."""
    clock = daemon.clock
    with daemon.changes.watch(id) as watch:
        while True:
            watch.clear()
            found = await daemon.store.answer(seq)
            now = clock.now()
            if found is not None or now >= limit or daemon.draining:
                return found
            await watch.news(clock, min(limit, now + daemon.settings.look))


@dataclass(slots=True)
class Events:
    """A stream of events as an ASGI response: of one instance, or of all."""

    daemon: Daemon
    after: int
    instance: str | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        gone = asyncio.ensure_future(_gone(receive))
        writing = asyncio.ensure_future(self._write(send))
        try:
            await asyncio.wait({gone, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for job in (gone, writing):
                job.cancel()
            await asyncio.gather(gone, writing, return_exceptions=True)

    async def _write(self, send: Send) -> None:
        async for text in self.texts():
            part = {"type": "http.response.body", "body": text.encode(), "more_body": True}
            try:
                await asyncio.wait_for(send(part), PATIENCE)
            except (TimeoutError, OSError):
                _log.info("a stream of events was let go: its reader took nothing")
                return
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def texts(self) -> AsyncIterator[str]:
        """The events as text, until the daemon drains."""
        daemon, clock = self.daemon, self.daemon.clock
        silent_since = clock.now()
        yield ": events of the flow daemon\n\n"
        with daemon.changes.watch(self.instance) as watch:
            while not daemon.draining:
                watch.clear()
                rows = await daemon.store.ledger(self.instance, self.after, ROWS)
                if rows:
                    self.after = rows[-1].seq
                    silent_since = clock.now()
                    yield "".join(map(_event, views.ledger(rows)))
                    await clock.sleep_until(silent_since + PAUSE)
                    continue
                now = clock.now()
                if now - silent_since >= BEAT:
                    silent_since = now
                    yield ":\n\n"
                await watch.news(clock, now + daemon.settings.look)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(item: wire.LedgerItem) -> str:
    """JSON has no line break, and a kind is a word of ours: nothing in them ends an event early."""
    return f"id: {item.seq}\nevent: {item.kind}\ndata: {json_text(wire.write(item))}\n\n"
