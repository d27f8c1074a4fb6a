"""A daemon, its API, and who asks it: flows as text, requests in the process, streams as they grow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from qoqi.runtime.api.calls import Api
from qoqi.runtime.api.server import Server
from qoqi.runtime.api.tokens import Role
from qoqi.runtime.daemon import Daemon
from qoqi.runtime.model import VersionRow
from qoqi.vm.bytecode.codec import encode_debug
from tests.daemon.workbench import Bench
from tests.reliability.lab import built


@dataclass(slots=True)
class Site:
    """`http` is an admin's client."""

    bench: Bench
    daemon: Daemon
    api: Api
    server: Server
    token: str
    http: httpx.AsyncClient

    async def deploy(self, text: str) -> None:
        for flow in built(text).flows:
            previous = await self.bench.store.newest(flow.name)
            debug = encode_debug(flow.debug)
            row = VersionRow(flow.hash, flow.name, previous, flow.data, debug, 0)
            assert await self.daemon.deploy(row) == "new"

    async def start(self, flow: str, name: str, **args: object) -> None:
        body = {"name": name, "args": args}
        answer = await self.http.post(f"/flows/{flow}/instances", json=body)
        assert answer.status_code == 201, answer.text
        await self.bench.settle()

    async def post(self, path: str, body: object, **query: str) -> httpx.Response:
        return await self.http.post(path, json=body, params=query)

    async def send(
        self, name: str, channel: str, value: object, key: str | None = None, **query: str
    ) -> httpx.Response:
        headers = {"Idempotency-Key": key} if key is not None else {}
        path = f"/instances/{name}/channels/{channel}"
        return await self.http.post(path, json={"value": value}, params=query, headers=headers)

    def stream(self, query: str = "", seen: str | None = None) -> Stream:
        headers = [(b"authorization", f"Bearer {self.token}".encode())]
        if seen is not None:
            headers.append((b"last-event-id", seen.encode()))
        scope = {
            "type": "http",
            "method": "GET",
            "path": "/events",
            "raw_path": b"/events",
            "query_string": query.encode(),
            "headers": headers,
        }
        return Stream(self.server, scope)


@dataclass(slots=True)
class Stream:
    """A request whose answer does not end by itself."""

    server: Server
    scope: dict[str, Any]
    status: int = 0
    text: str = ""
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Stream:
        self._task = asyncio.create_task(self.server(self.scope, self._receive, self._send))
        return self

    async def __aexit__(self, *error: object) -> None:
        self._gone.set()
        assert self._task is not None
        await self._task

    async def _receive(self) -> MutableMapping[str, Any]:
        if self.status:
            await self._gone.wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.text += message["body"].decode()

    def events(self) -> list[tuple[int, str]]:
        """(number, kind) of what came."""
        found = []
        for block in self.text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] not in ":")
            if lines:
                assert set(lines) == {"id", "event", "data"}
                found.append((int(lines["id"]), lines["event"]))
        return found

    @property
    def over(self) -> bool:
        return self._task is not None and self._task.done()


@asynccontextmanager
async def open_site(bench: Bench) -> AsyncIterator[Site]:
    daemon = await bench.daemon()
    api = Api(daemon)
    token = await api.make_token("admin", Role.ADMIN)
    server = Server(api)
    transport = httpx.ASGITransport(server)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://daemon", headers=headers
    ) as http:
        yield Site(bench, daemon, api, server, token, http)
