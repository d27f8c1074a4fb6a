"""The HTTP API: an ASGI application over one table of routes.

Every request carries a bearer token, on the loopback address too; only `/health` is open. A path is
matched on its undecoded segments, since the name of an instance may hold a `/`. A request is
checked in this order: token, path, method, right, size, JSON, record; the call is made after that.

Whatever a call raises is an answer: `ApiError` with its code, a busy database 503, anything else a
500 with a log entry, and the daemon goes on.

It speaks ASGI itself: what a framework would make of each request (its objects, a search through
all routes) takes longer than a small call does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, unquote

from qoqi.runtime.api import versions, wire, wire_versions
from qoqi.runtime.api.calls import Answer, Api, Call
from qoqi.runtime.api.live import Events, Receive, Scope, Send
from qoqi.runtime.api.openapi import document
from qoqi.runtime.api.tokens import Holder, Right, Role
from qoqi.runtime.api.wire import ApiError, WireError
from qoqi.runtime.store.protocol import StoreBroken, StoreBusy
from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import json_text, parse_json

_log = logging.getLogger("qoqi.api")

BODY_TIME = 30.0  # seconds

_NOBODY = Holder("", Role.READ)
_JSON = b"application/json"
_TEXT = b"text/plain; version=0.0.4; charset=utf-8"


class ClientGone(Exception):
    """Who asked is not there any more: nobody is answered."""


@dataclass(frozen=True, slots=True)
class Route:
    """One call: how it is asked, what it takes and gives, and what makes it."""

    method: str
    path: str
    right: Right | None
    summary: str
    handler: Callable[[Api, Call], Awaitable[Answer]]
    answers: dict[int, type]
    errors: tuple[str, ...] = ()
    body: type | None = None
    query: tuple[str, ...] = ()
    keyed: bool = False
    resumes: bool = False
    limit: int = wire.BODY_LIMIT

    @property
    def segments(self) -> tuple[str, ...]:
        return tuple(self.path.strip("/").split("/"))


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/health",
        None,
        "Whether the daemon answers, and how many instances it has.",
        Api.health,
        {200: wire.Health},
    ),
    Route(
        "POST",
        "/flows/{flow}/instances",
        Right.SEND,
        "Starts an instance.",
        Api.start,
        {201: wire.StartAnswer, 200: wire.StartAnswer},
        ("no_flow", "name_taken", "misfit", "too_large"),
        wire.StartBody,
    ),
    Route(
        "GET",
        "/flows/{flow}",
        Right.LOOK,
        "A flow, its versions, and who stands where.",
        Api.flow,
        {200: wire.FlowView},
        ("no_flow",),
    ),
    Route(
        "GET",
        "/instances",
        Right.LOOK,
        "Instances, a page at a time, by name.",
        Api.instances,
        {200: wire.InstancePage},
        (),
        None,
        ("status", "phase", "flow", "version", "stage", "since", "text", "after", "limit"),
    ),
    Route(
        "GET",
        "/instances/{id}",
        Right.LOOK,
        "Everything about one instance.",
        Api.life,
        {200: wire.LifeView},
        ("no_instance",),
    ),
    Route(
        "GET",
        "/instances/{id}/ledger",
        Right.LOOK,
        "What happened to an instance.",
        Api.ledger,
        {200: wire.LedgerPage},
        ("no_instance",),
        None,
        ("after", "limit"),
    ),
    Route(
        "POST",
        "/instances/{id}/channels/{channel}",
        Right.SEND,
        "Sends a message; one per Idempotency-Key, if there is one.",
        Api.send,
        {202: wire.SendAnswer, 200: wire.SendAnswer},
        ("no_instance", "no_channel", "full", "ended", "misfit", "too_large"),
        wire.SendBody,
        ("wait",),
        keyed=True,
    ),
    Route(
        "GET",
        "/instances/{id}/views/{view}",
        Right.LOOK,
        "What a view of an instance gives now.",
        Api.view,
        {200: wire.ViewAnswer},
        ("no_instance", "no_view", "view_failed"),
    ),
    Route(
        "GET",
        "/events",
        Right.LOOK,
        "What happens, as it happens; taken up again behind Last-Event-ID.",
        Api.events,
        {200: wire.EventStream},
        ("no_instance", "too_many"),
        None,
        ("instance", "after"),
        resumes=True,
    ),
    Route(
        "POST",
        "/instances/{id}/cancel",
        Right.OPERATE,
        "Asks an instance to end.",
        Api.cancel,
        {200: wire.ActAnswer},
        ("no_instance", "ended", "refused"),
        wire.CancelBody,
    ),
    Route(
        "POST",
        "/instances/{id}/resume",
        Right.OPERATE,
        "Lets a stopped instance go on, or ends a pause; without `go`, says what it would do.",
        versions.resume,
        {200: wire_versions.ResumeAnswer},
        (
            "no_instance",
            "not_stopped",
            "ended",
            "stage_gone",
            "cannot_move",
            "cancel_pending",
            "needs_answer",
            "not_possible",
        ),
        wire.ResumeBody,
    ),
    Route(
        "POST",
        "/instances/{id}/answer",
        Right.OPERATE,
        "Answers the question an instance stopped with; it goes on.",
        versions.answer,
        {200: wire_versions.AttemptAnswer},
        ("no_instance", "not_stopped", "not_possible", "misfit"),
        wire_versions.AnswerBody,
    ),
    Route(
        "POST",
        "/attempts/{key}",
        Right.OPERATE,
        "A person's answer under a key, of a question or of a step that has none.",
        versions.answer_attempt,
        {200: wire_versions.AttemptAnswer},
        ("no_instance", "not_stopped", "not_possible", "misfit"),
        wire_versions.AnswerBody,
    ),
    Route(
        "POST",
        "/instances/{id}/end",
        Right.OPERATE,
        "Ends a stopped instance as it is; no undo runs.",
        Api.end,
        {200: wire.ActAnswer},
        ("no_instance", "not_stopped", "ended"),
        wire.EndBody,
    ),
    Route(
        "POST",
        "/instances/{id}/pause",
        Right.OPERATE,
        "Holds an instance where it is.",
        Api.pause,
        {200: wire.ActAnswer},
        ("no_instance", "ended"),
        wire.PauseBody,
    ),
    Route(
        "GET",
        "/versions",
        Right.LOOK,
        "Deployed versions, the oldest first, and who stands in them.",
        versions.versions,
        {200: wire_versions.VersionList},
        (),
        None,
        ("flow",),
    ),
    Route(
        "PUT",
        "/versions/{hash}",
        Right.ADMIN,
        "Deploys a version of a flow.",
        Api.put_version,
        {201: wire.VersionAnswer, 200: wire.VersionAnswer},
        ("bad_bytecode", "behind", "too_large"),
        wire.VersionBody,
        limit=wire.VERSION_LIMIT,
    ),
    Route(
        "PUT",
        "/pins/{flow}/{hash}",
        Right.ADMIN,
        "Keeps the instances of a version in it.",
        versions.pin,
        {200: wire_versions.PinAnswer},
        ("no_version",),
    ),
    Route(
        "DELETE",
        "/pins/{flow}/{hash}",
        Right.ADMIN,
        "Lets the instances of a version move on.",
        versions.unpin,
        {200: wire_versions.PinAnswer},
        ("no_version",),
    ),
    Route(
        "POST",
        "/rehearsals",
        Right.ADMIN,
        "Tries versions in memory on the last stage of living instances; nothing is written.",
        versions.rehearse,
        {200: wire_versions.RehearsalList},
        ("bad_bytecode", "no_version", "too_large"),
        wire_versions.RehearsalBody,
        limit=wire.VERSION_LIMIT,
    ),
    Route(
        "GET",
        "/metrics",
        Right.LOOK,
        "Counts, in the text format of Prometheus.",
        Api.metrics,
        {200: str},
    ),
    Route(
        "GET",
        "/daemons",
        Right.LOOK,
        "Heartbeats of the daemons on this store.",
        Api.daemons,
        {200: wire.DaemonList},
    ),
    Route(
        "POST",
        "/sweep",
        Right.ADMIN,
        "Deletes ended instances whose time is over, and versions nobody needs.",
        versions.sweep,
        {200: wire_versions.SweepAnswer},
    ),
    Route(
        "GET", "/tokens", Right.ADMIN, "Tokens by name and role.", Api.tokens, {200: wire.TokenList}
    ),
    Route(
        "POST",
        "/tokens",
        Right.ADMIN,
        "Draws a token; its text is shown this once.",
        Api.new_token,
        {201: wire.TokenAnswer},
        ("token_taken",),
        wire.TokenBody,
    ),
    Route(
        "DELETE",
        "/tokens/{name}",
        Right.ADMIN,
        "Revokes a token.",
        Api.drop_token,
        {200: wire.TokenItem},
        ("no_token",),
    ),
)


_ROUTES_OF_LENGTH: dict[int, list[tuple[tuple[str, ...], Route]]] = {}
for _route in ROUTES:
    _ROUTES_OF_LENGTH.setdefault(len(_route.segments), []).append((_route.segments, _route))


class Server:
    """The ASGI application on one daemon."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = [(b"x-content-type-options", b"nosniff")]
        kind = _JSON
        try:
            status, record = await self._answer(scope, receive, headers)
            if isinstance(record, Events):
                await self._stream(record, scope, receive, send)
                return
            if isinstance(record, str):
                kind, content = _TEXT, record
            else:
                content = json_text(wire.write(record))
        except ClientGone:
            return
        except ApiError as refused:
            status = refused.status
            body = wire.ErrorBody(refused.code, refused.message, refused.detail)
            content = json_text(wire.write(body))
            if refused.code == "bad_token":
                headers.append((b"www-authenticate", b"Bearer"))
            if refused.code == "database_busy":
                headers.append((b"retry-after", b"1"))
        data = content.encode("utf-8")
        headers += [(b"content-length", b"%d" % len(data)), (b"content-type", kind)]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _stream(self, events: Events, scope: Scope, receive: Receive, send: Send) -> None:
        self.api.streams += 1
        try:
            await events(scope, receive, send)
        finally:
            self.api.streams -= 1

    async def _answer(
        self, scope: Scope, receive: Receive, headers: list[tuple[bytes, bytes]]
    ) -> Answer:
        try:
            segments, method = _segments(scope), scope["method"]
            holder = await self._holder(scope, segments)
            if segments == ["openapi.json"] and method in ("GET", "HEAD"):
                return 200, document(ROUTES)
            route, params = _match(method, segments, headers)
            if route.right is not None and not holder.may(route.right):
                raise ApiError(
                    "not_allowed",
                    f"the token {holder.name} has the role {holder.role}, which may not do this",
                )
            call = Call(
                params,
                _query(scope, route),
                await _read(receive, route),
                _text_of(scope, b"idempotency-key") if route.keyed else None,
                holder,
                _text_of(scope, b"last-event-id") if route.resumes else None,
            )
            return await route.handler(self.api, call)
        except (ApiError, ClientGone):
            raise
        except StoreBusy as busy:
            raise ApiError("database_busy", f"{busy}; nothing was written, try again") from None
        except StoreBroken as damage:
            _log.error("%s %s: %s", scope["method"], scope["path"], damage)
            raise ApiError("database_damaged", str(damage)) from None
        except Exception as mistake:
            _log.exception("%s %s failed", scope["method"], scope["path"])
            raise ApiError("internal", "a mistake in the daemon; its log has it") from mistake

    async def _holder(self, scope: Scope, segments: list[str]) -> Holder:
        if segments == ["health"]:
            return _NOBODY
        scheme, _, token = (_text_of(scope, b"authorization") or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise ApiError("bad_token", "the request has no token (Authorization: Bearer …)")
        holder = await self.api.holder(token)
        if holder is None:
            raise ApiError("bad_token", "the daemon does not know this token")
        return holder


def _segments(scope: Scope) -> list[str]:
    raw = scope.get("raw_path") or str(scope["path"]).encode()
    path = bytes(raw).partition(b"?")[0].decode("ascii", "replace").strip("/")
    try:
        parts = path.split("/")
        return [unquote(part, errors="strict") for part in parts] if "%" in path else parts
    except UnicodeDecodeError:
        raise ApiError("bad_request", "the path is not UTF-8") from None


def _match(
    method: str, segments: list[str], headers: list[tuple[bytes, bytes]]
) -> tuple[Route, dict[str, str]]:
    others: list[str] = []
    for wanted, route in _ROUTES_OF_LENGTH.get(len(segments), ()):
        params: dict[str, str] = {}
        for want, have in zip(wanted, segments, strict=True):
            if want.startswith("{"):
                params[want[1:-1]] = have
            elif want != have:
                break
        else:
            if route.method == method:
                return route, params
            others.append(route.method)
    if others:
        headers.append((b"allow", ", ".join(others).encode()))
        raise ApiError("not_a_call", f"{method} is not possible here; {', '.join(others)} is")
    raise ApiError("not_found", f"there is no call /{'/'.join(segments)}")


def _query(scope: Scope, route: Route) -> dict[str, str]:
    raw: bytes = scope.get("query_string", b"")
    query: dict[str, str] = {}
    if not raw:
        return query
    for name, value in parse_qsl(raw.decode("ascii", "replace"), keep_blank_values=True):
        if name not in route.query:
            takes = ", ".join(route.query) or "none"
            raise ApiError("bad_request", f"no query parameter {name} here (there are: {takes})")
        query[name] = value
    return query


def _text_of(scope: Scope, wanted: bytes) -> str | None:
    """A header. It is bytes: UTF-8, as our own client sends it, else latin-1."""
    for name, value in scope["headers"]:
        if name == wanted:
            try:
                return bytes(value).decode("utf-8")
            except UnicodeDecodeError:
                return bytes(value).decode("latin-1")
    return None


async def _read(receive: Receive, route: Route) -> object:
    """The body as the route's record; nothing larger than the route takes is kept in memory."""
    data = bytearray()
    more = True
    try:
        async with asyncio.timeout(BODY_TIME):
            while more:
                part = await receive()
                if part["type"] == "http.disconnect":
                    raise ClientGone
                more = part.get("more_body", False)
                data += part.get("body", b"")
                if len(data) > route.limit:
                    raise ApiError("too_large", f"a body here has at most {route.limit:,} bytes")
    except TimeoutError:
        raise ApiError("too_slow", f"the body did not come within {BODY_TIME:g} s") from None
    if route.body is None:
        return None
    try:
        return wire.read(route.body, parse_json(bytes(data)))
    except FlowError as wrong:
        raise ApiError("bad_json", wrong.message) from None
    except WireError as wrong:
        raise ApiError("bad_request", str(wrong)) from None
