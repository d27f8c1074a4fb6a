"""The API from outside: one method per call, records in and out, for the command line and tests.

A refusal of the daemon is raised as `ApiError` with its code; what never reached a daemon, or came
back from something that is none, is `NoDaemon` with what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from qoqi.runtime.api import wire, wire_versions
from qoqi.runtime.api.wire import ERRORS, ApiError, WireError
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import json_text, parse_json

if TYPE_CHECKING:
    import httpx

R = TypeVar("R")

# In seconds. Longer than the daemon's own limits on the database and on the wait for an answer, so
# that what it says of them arrives before we give up.
TIMEOUT, CONNECT_TIMEOUT = 75.0, 10.0


class NoDaemon(Exception):
    """No daemon was reached, or what answered is none."""


class Client:
    """A connection to one daemon with one token; `transport` is replaced in tests."""

    def __init__(
        self, url: str, token: str | None, transport: httpx.BaseTransport | None = None
    ) -> None:
        import httpx  # not above: a daemon imports this module too, and asks nobody

        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(
            base_url=self.url,
            headers=headers,
            timeout=httpx.Timeout(TIMEOUT, connect=CONNECT_TIMEOUT),
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
        self,
        name: str,
        channel: str,
        value: object,
        *,
        key: str | None,
        birth: str | None = None,
        wait: str | None = None,
    ) -> wire.SendAnswer:
        headers = {"Idempotency-Key": key.encode()} if key is not None else {}
        body = wire.SendBody(value, birth)
        path = ["instances", name, "channels", channel]
        query = {"wait": wait} if wait is not None else {}
        return self._call("POST", path, wire.SendAnswer, body, headers=headers, query=query)

    def view(self, name: str, view: str) -> wire.ViewAnswer:
        return self._call("GET", ["instances", name, "views", view], wire.ViewAnswer)

    def cancel(
        self, name: str, reason: str, *, now: bool, birth: str | None = None
    ) -> wire.ActAnswer:
        body = wire.CancelBody(reason, now, birth)
        return self._call("POST", ["instances", name, "cancel"], wire.ActAnswer, body)

    def resume(self, name: str, *, go: bool) -> wire_versions.ResumeAnswer:
        body = wire.ResumeBody(go)
        return self._call("POST", ["instances", name, "resume"], wire_versions.ResumeAnswer, body)

    def answer(self, name: str, value: object) -> wire_versions.AttemptAnswer:
        body = wire_versions.AnswerBody(value)
        return self._call("POST", ["instances", name, "answer"], wire_versions.AttemptAnswer, body)

    def answer_attempt(self, key: str, value: object) -> wire_versions.AttemptAnswer:
        body = wire_versions.AnswerBody(value)
        return self._call("POST", ["attempts", key], wire_versions.AttemptAnswer, body)

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

    def versions(self, flow: str | None = None) -> wire_versions.VersionList:
        query = {"flow": flow} if flow else {}
        return self._call("GET", ["versions"], wire_versions.VersionList, query=query)

    def pin(self, flow: str, hash: str, *, on: bool) -> wire_versions.PinAnswer:
        method = "PUT" if on else "DELETE"
        return self._call(method, ["pins", flow, hash], wire_versions.PinAnswer)

    def rehearse(self, body: wire_versions.RehearsalBody) -> wire_versions.RehearsalList:
        return self._call("POST", ["rehearsals"], wire_versions.RehearsalList, body)

    def put_version(self, hash: str, body: wire.VersionBody) -> wire.VersionAnswer:
        return self._call("PUT", ["versions", hash], wire.VersionAnswer, body)

    def daemons(self) -> wire.DaemonList:
        return self._call("GET", ["daemons"], wire.DaemonList)

    def sweep(self) -> wire_versions.SweepAnswer:
        return self._call("POST", ["sweep"], wire_versions.SweepAnswer)

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
        import httpx

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
