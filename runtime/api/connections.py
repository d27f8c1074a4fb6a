"""Connections of the API: who is slow, or sends a head without end, is let go.

uvicorn waits for the head of a request for as long as it takes, and keeps all of it. Here a head
has `HEAD_TIME` to come whole and at most `HEAD_LIMIT` bytes; a connection that is opened and says
nothing is under the same clock. The body's time and size are the server's business (`server._read`).

What is written in one turn of the loop leaves together: uvicorn writes an answer's head and body one
after the other, and each would be a packet of its own, a call of the system, and a waking of who
reads it, which is a fifth of all that a small request costs.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_TIME = 10.0
HEAD_LIMIT = 64 << 10
GATHERED = 64 << 10  # more than this is not held back


class Gathering(asyncio.Transport):
    """A connection's transport; what it is told to write it keeps until the turn's end."""

    def __init__(self, inner: asyncio.Transport) -> None:
        super().__init__()
        self._inner = inner
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._parts:
            asyncio.get_running_loop().call_soon(self._send)
        self._parts.append(bytes(data))
        self._size += len(data)
        if self._size > GATHERED:
            self._send()

    def _send(self) -> None:
        parts, self._parts, self._size = self._parts, [], 0
        if parts:
            self._inner.write(b"".join(parts))

    def close(self) -> None:
        self._send()
        self._inner.close()

    def abort(self) -> None:
        self._inner.abort()

    def is_closing(self) -> bool:
        return self._inner.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._inner.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner.set_protocol(protocol)

    def pause_reading(self) -> None:
        self._inner.pause_reading()

    def resume_reading(self) -> None:
        self._inner.resume_reading()


class Connection(HttpToolsProtocol):
    """uvicorn's connection, with a clock and a measure on what comes before a body."""

    _clock: asyncio.TimerHandle | None = None
    _head = 0
    _headed = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Gathering(transport))
        self._wind()

    def data_received(self, data: bytes) -> None:
        cycle: Any = self.cycle  # None until the first request, whatever its annotation says
        if self._headed and (cycle is None or cycle.response_complete):
            self._headed = False
            self._wind()
        super().data_received(data)
        if not self._headed:
            self._head += len(data)
            if self._head > HEAD_LIMIT:
                self.transport.close()

    def on_headers_complete(self) -> None:
        self._headed, self._head = True, 0
        self._stop()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wind(self) -> None:
        self._stop()
        self._clock = asyncio.get_running_loop().call_later(HEAD_TIME, self.transport.close)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
