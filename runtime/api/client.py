"""The API from outside: one method per call, records in and out, for the command line and tests.

A refusal of the daemon is raised as `ApiError` with its code; what never reached a daemon, or came
back from something that is none, is `NoDaemon` with what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TypeVar
from urllib.parse import quote

import httpx

from qoqi.runtime.api import wire
from qoqi.runtime.api.wire import ERRORS, ApiError, WireError
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import json_text, parse_json

R = TypeVar("R")

# Longer than the daemon's own limit on the database, so that its 503 arrives before we give up.
TIMEOUT = httpx.Timeout(45.0, connect=10.0)


class NoDaemon(Exception):
    """No daemon was reached, or what answered is none."""


class Client:
    """A connection to one daemon with one token; `transport` is replaced in tests."""

    def __init__(
        self, url: str, token: str | None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=TIMEOUT,
            transport=transport,
            verify=self.url.startswith("https:"),  # certificates take 20 ms to load
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    # -- instances -----------------------------------------------------------------------------

    def start(self, flow: str, name: str | None, args: Mapping[str, object]) -> wire.StartAnswer:
        body = wire.StartBody(dict(args), name)
        return self._call("POST", ["flows", flow, "instances"], wire.StartAnswer, body)

    def send(
        self, name: str, channel: str, value: object, *, key: str | None, birth: str | None = None
    ) -> wire.SendAnswer:
        headers = {"Idempotency-Key": key.encode()} if key is not None else {}
        body = wire.SendBody(value, birth)
        path = ["instances", name, "channels", channel]
        return self._call("POST", path, wire.SendAnswer, body, headers=headers)

    def cancel(self, name: str, reason: str, *, now: bool) -> wire.ActAnswer:
        body = wire.CancelBody(reason, now)
        return self._call("POST", ["instances", name, "cancel"], wire.ActAnswer, body)

    def resume(self, name: str) -> wire.ActAnswer:
        body = wire.ResumeBody(go=True)
        return self._call("POST", ["instances", name, "resume"], wire.ActAnswer, body)

    def end(self, name: str, reason: str) -> wire.ActAnswer:
        body = wire.EndBody(reason)
        return self._call("POST", ["instances", name, "end"], wire.ActAnswer, body)

    def pause(self, name: str) -> wire.ActAnswer:
        body = wire.PauseBody()
        return self._call("POST", ["instances", name, "pause"], wire.ActAnswer, body)

    def instances(self, query: Mapping[str, str]) -> wire.InstancePage:
        return self._call("GET", ["instances"], wire.InstancePage, query=query)

    def life(self, name: str) -> wire.LifeView:
        return self._call("GET", ["instances", name], wire.LifeView)

    def ledger(self, name: str, after: int, limit: int) -> wire.LedgerPage:
        query = {"after": str(after), "limit": str(limit)}
        return self._call("GET", ["instances", name, "ledger"], wire.LedgerPage, query=query)

    # -- flows, versions and upkeep ------------------------------------------------------------

    def flow(self, name: str) -> wire.FlowView:
        return self._call("GET", ["flows", name], wire.FlowView)

    def versions(self, flow: str | None = None) -> wire.VersionList:
        query = {"flow": flow} if flow else {}
        return self._call("GET", ["versions"], wire.VersionList, query=query)

    def put_version(self, hash: str, body: wire.VersionBody) -> wire.VersionAnswer:
        return self._call("PUT", ["versions", hash], wire.VersionAnswer, body)

    def daemons(self) -> wire.DaemonList:
        return self._call("GET", ["daemons"], wire.DaemonList)

    def sweep(self) -> wire.SweepAnswer:
        return self._call("POST", ["sweep"], wire.SweepAnswer)

    def health(self) -> wire.Health:
        return self._call("GET", ["health"], wire.Health)

    def new_token(self, name: str, role: str) -> wire.TokenAnswer:
        return self._call("POST", ["tokens"], wire.TokenAnswer, wire.TokenBody(name, role))

    def tokens(self) -> wire.TokenList:
        return self._call("GET", ["tokens"], wire.TokenList)

    def drop_token(self, name: str) -> wire.TokenItem:
        return self._call("DELETE", ["tokens", name], wire.TokenItem)

    # -- how a call is made --------------------------------------------------------------------

    def _call(
        self,
        method: str,
        path: list[str],
        answer: type[R],
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, bytes] | None = None,
    ) -> R:
        target = "/" + "/".join(quote(part, safe="") for part in path)
        content = json_text(wire.write(body)).encode() if body is not None else None
        sent = dict(headers or {})
        if content is not None:
            sent["Content-Type"] = b"application/json"
        try:
            response = self._http.request(
                method,
                target,
                params=dict(query or {}),
                content=content,
                headers=[(name.encode(), value) for name, value in sent.items()],
            )
        except httpx.TimeoutException as slow:
            raise NoDaemon(f"the daemon at {self.url} did not answer in time") from slow
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as wrong:
            raise NoDaemon(f"{self.url} is no address of a daemon: {wrong}") from wrong
        except httpx.TransportError as lost:
            raise NoDaemon(
                f"no daemon at {self.url} ({lost}); start one with `qoqi serve`, or name it "
                "with --url"
            ) from lost
        try:
            raw = parse_json(response.content)
            if response.is_success:
                return wire.read(answer, raw)
            failed = wire.read(wire.ErrorBody, raw)
            if failed.code not in ERRORS:
                raise WireError(f"unknown code {failed.code}")
        except (FlowError, WireError) as strange:
            raise NoDaemon(
                f"what answers at {self.url} is no flow daemon of this version "
                f"(HTTP {response.status_code}, {strange})"
            ) from strange
        raise ApiError(failed.code, failed.message, failed.detail)
