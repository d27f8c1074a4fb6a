"""What each call of the API does: checks what came in, asks the store, tells the daemon.

A call is given a `Call` (checked against its record, its token's rights known) and gives a status
and a record, or raises `ApiError`. Values are decoded against the types of the version they go to
before anything is stored, so what is refused has changed nothing.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from typing import TypeVar

from qoqi.runtime.api import live, tokens, views, wire
from qoqi.runtime.api.tokens import Holder, Role
from qoqi.runtime.api.wire import ApiError
from qoqi.runtime.daemon import Daemon
from qoqi.runtime.model import ENDED, InstanceRow, Phase, Status, VersionRow
from qoqi.runtime.programs import (
    NoVersion,
    arguments,
    arguments_text,
    open_version,
    read_value,
)
from qoqi.runtime.store.protocol import Asked, Filter, Hold, SendOutcome, Sent
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.vm.bytecode.chunk import ChannelDef
from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import FlowError
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import Cancel, CancelTold, Told
from qoqi.vm.jsonform import parse_json, value_text
from qoqi.vm.operations import fits_name
from qoqi.vm.program import Program
from qoqi.vm.sizes import too_large
from qoqi.vm.text import parse_duration

B = TypeVar("B")
W = TypeVar("W", Status, Phase)

KEY_LIMIT = 256
CHAIN_LIMIT = 32
HEALTH_TIME = 2.0  # seconds

NAME_RULE = "1 to 256 of letters, digits and -_.:@/~+"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: path parameters, query, the body as its record, the sender's key, who asks.

    `seen` is the last event a stream is taken up after (Last-Event-ID).
    """

    params: dict[str, str]
    query: dict[str, str]
    body: object
    key: str | None
    holder: Holder
    seen: str | None = None


Answer = tuple[int, object]


class Api:
    """The calls on one daemon. Tokens are read once, and again after each change of them."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._tokens: tuple[tuple[str, str, str], ...] | None = None
        self.streams = 0

    async def holder(self, token: str) -> Holder | None:
        if self._tokens is None:
            self._tokens = await self.daemon.store.tokens()
        return tokens.holder(token, self._tokens)

    # -- instances -----------------------------------------------------------------------------

    async def start(self, call: Call) -> Answer:
        body = body_of(call, wire.StartBody)
        daemon = self.daemon
        hash, program = await self._flow(call.params["flow"])
        name = body.name
        if name is None:
            name = f"{program.chunk.flow.rpartition('.')[2].lower()}-{secrets.token_hex(6)}"
        if not fits_name(name):
            raise ApiError("bad_request", f"an instance cannot be named {name!r}: {NAME_RULE}")
        try:
            values = arguments(program, body.args)
            request = daemon.first_row(name, program, hash, values, None)
        except FlowError as misfit:
            raise ApiError("misfit", misfit.message) from None
        except SnapshotError as misfit:
            raise ApiError("misfit", str(misfit)) from None
        self._check_size(request.args, "the arguments")
        outcome = await daemon.create(request)
        row = outcome.row
        if outcome.created:
            return 201, wire.StartAnswer("started", views.instance(row))
        if row.flow != request.flow or not _same_arguments(program, row.args, request.args):
            other = f"flow {row.flow}" if row.flow != request.flow else "other arguments"
            raise ApiError("name_taken", f"{name} exists already, started with {other}")
        return 200, wire.StartAnswer("already", views.instance(row))

    async def send(self, call: Call) -> Answer:
        body = body_of(call, wire.SendBody)
        daemon, id, key = self.daemon, call.params["id"], call.key
        if key is not None and not (1 <= len(key) <= KEY_LIMIT and key.isprintable()):
            raise ApiError(
                "bad_request", f"an Idempotency-Key has 1 to {KEY_LIMIT} printable characters"
            )
        wait = _wait(call.query)
        found: list[InstanceRow] = []
        now = daemon.clock.now()

        def send(store: SqlStore, hold: Hold | None) -> Sent:
            """The value is read by the version the instance has when the message is kept."""
            row = store.locked(id)
            if row is None and body.birth is None:
                raise _no_instance(id)
            if row is None or body.birth not in (None, row.birth):
                raise ApiError("ended", f"{id} with birth {body.birth} has ended")
            found[:] = (row,)
            program = daemon.programs.code(row.version)
            channel = _channel(program, row, call.params["channel"])
            if wait and channel.answers is None:
                raise ApiError("bad_request", f"wait: messages of {channel.name} are not answered")
            text = self._message(program, channel, body.value)
            return store.send(id, channel.name, key, text, body.birth, now, hold, row)

        try:
            sent = await daemon.send(id, send)
        except NoVersion:  # not loaded yet, or not there
            await self.program(found[0].version)
            sent = await daemon.send(id, send)
        (row,) = found
        program = daemon.programs.code(row.version)
        channel = _channel(program, row, call.params["channel"])
        match sent.outcome:
            case SendOutcome.DELIVERED | SendOutcome.ALREADY:
                return await self._sent(row, sent, wait)
            case SendOutcome.FULL:
                held = f"{id}: {channel.name} is full, {channel.capacity} wait in it"
                raise ApiError("full", f"{held}; send again once {id} has taken some")
            case SendOutcome.ENDED:
                raise ApiError("ended", f"{id} has ended")
            case SendOutcome.NO_CHANNEL:
                raise ApiError("no_channel", _no_channel(program, row, channel.name))
            case _:
                raise _no_instance(id)

    def _message(self, program: Program, channel: ChannelDef, value: object) -> str:
        try:
            text = value_text(read_value(program, value, channel.type, ""))
        except FlowError as misfit:
            raise ApiError("misfit", misfit.message) from None
        self._check_size(text, "the message")
        return text

    async def _sent(self, row: InstanceRow, sent: Sent, wait: int) -> Answer:
        """Where the message found the instance, or where it is once the message's answer came."""
        daemon = self.daemon
        found = None if sent.answer is None else ("ok", sent.answer)
        if found is None and wait:
            assert sent.seq is not None
            limit = daemon.clock.now() + wait
            found = await live.answer_of(daemon, row.id, sent.seq, limit)
        if found is not None and found[0] == "ended":
            raise ApiError("ended", f"{row.id} has ended and did not answer")
        word = "already" if sent.outcome == SendOutcome.ALREADY else "delivered"
        answer = None if found is None else views.data(found[1])
        if wait:
            row = await self.daemon.store.instance(row.id) or row
        view = wire.SendAnswer(word, views.instance(row), found is not None, answer)
        return (202 if word == "delivered" and found is None else 200), view

    async def view(self, call: Call) -> Answer:
        """Of the state as it was written last; the instance is not woken."""
        row, name = await self.row(call.params["id"]), call.params["view"]
        program = await self.program(row.version)
        now = self.daemon.clock.now()
        try:
            value = await asyncio.to_thread(views.look, program, row.state, name, now)
        except KeyError:
            has = ", ".join(view.name for view in program.chunk.views) or "none"
            raise ApiError("no_view", f"{row.flow} has no view {name} (it has: {has})") from None
        except (FlowError, SnapshotError) as mistake:
            raise ApiError("view_failed", f"{name} of {row.id}: {mistake}") from None
        return 200, wire.ViewAnswer(name, value)

    async def events(self, call: Call) -> Answer:
        """From now on, or from behind an event that was seen."""
        if self.streams >= live.STREAMS:
            raise ApiError("too_many", f"{live.STREAMS} streams of events are open already")
        seen = {"after": call.seen} if call.seen is not None else call.query
        newest = await self.daemon.store.last_change()
        after = _number(seen, "after", newest, 1 << 62)
        id = call.query.get("instance")
        if id is not None:
            await self.row(id)
        return 200, live.Events(self.daemon, after, id)

    async def cancel(self, call: Call) -> Answer:
        body = body_of(call, wire.CancelBody)
        daemon, id = self.daemon, call.params["id"]
        _check_text(body.reason, "the reason")
        now = daemon.clock.now()
        cancel = Cancel(daemon.draw_uuid(), body.reason, body.now, now)
        asked = await daemon.store.cancel(id, body.birth, cancel, now, call.holder.name)
        return await self._acted(id, asked, "cancel", CancelTold())

    async def end(self, call: Call) -> Answer:
        body = body_of(call, wire.EndBody)
        daemon, id = self.daemon, call.params["id"]
        _check_text(body.reason, "the reason")
        now, keep = daemon.clock.now(), daemon.settings.keep
        asked = await daemon.store.end(id, body.reason, now, keep, call.holder.name)
        return await self._acted(id, asked, "end", Told())

    async def pause(self, call: Call) -> Answer:
        daemon, id = self.daemon, call.params["id"]
        asked = await daemon.store.pause(id, daemon.clock.now(), call.holder.name)
        return await self._acted(id, asked, "pause", CancelTold())

    async def _acted(self, id: str, asked: Asked, what: str, news: CancelTold | Told) -> Answer:
        """The answer of an act: told to whoever holds the instance, or refused with its reason."""
        if asked.outcome != "ok":
            raise refusal(id, asked, what)
        self.daemon.tell(id, asked.owner, news)
        for other, owner in asked.woken:  # who waited for its end, and its children
            self.daemon.tell(other, owner, Told(id))
            self.daemon.tell(other, owner, CancelTold())
        self.daemon.wake()
        row = await self.row(id)
        return 200, wire.ActAnswer("ok", views.instance(row))

    async def instances(self, call: Call) -> Answer:
        query = call.query
        limit = _number(query, "limit", 100, wire.PAGE_LIMIT, 1)
        rows = await self.daemon.store.instances(
            Filter(
                status=_word(query, "status", Status),
                phase=_word(query, "phase", Phase),
                flow=await self._whole_name(query.get("flow")),
                version=query.get("version"),
                stage=query.get("stage"),
                since=_number(query, "since", 0, 1 << 53) if "since" in query else None,
                text=query.get("text"),
                after=query.get("after"),
                limit=limit,
            )
        )
        following = rows[-1].id if len(rows) == limit else None
        shown = [views.instance(row, await self._holds(row)) for row in rows]
        return 200, wire.InstancePage(tuple(shown), following)

    async def _holds(self, row: InstanceRow) -> tuple[str, ...]:
        """The living ancestors that a stopped instance keeps from ending."""
        chain: list[str] = []
        parent = row.parent if row.status is Status.STOPPED else None
        while parent is not None and parent not in chain and len(chain) < CHAIN_LIMIT:
            above: InstanceRow | None = await self.daemon.store.instance(parent)
            if above is None or above.status in ENDED:
                break
            chain.append(parent)
            parent = above.parent
        return tuple(chain)

    async def life(self, call: Call) -> Answer:
        id = call.params["id"]
        found = await self.daemon.store.life(id)
        if found is None:
            raise _no_instance(id)
        channels = await self.daemon.store.channels(id)
        return 200, await views.life(found, channels, self.daemon.programs)

    async def ledger(self, call: Call) -> Answer:
        row = await self.row(call.params["id"])
        after = _number(call.query, "after", 0, 1 << 62)
        limit = _number(call.query, "limit", 100, wire.PAGE_LIMIT, 1)
        rows = await self.daemon.store.ledger(row.id, after, limit)
        following = rows[-1].seq if len(rows) == limit else None
        return 200, wire.LedgerPage(views.ledger(rows), following)

    # -- flows and versions --------------------------------------------------------------------

    async def flow(self, call: Call) -> Answer:
        hash, program = await self._flow(call.params["flow"])
        versions = await self.daemon.store.versions(program.chunk.flow)
        return 200, views.flow(program, hash, versions, await self.daemon.store.standing())

    async def put_version(self, call: Call) -> Answer:
        body = body_of(call, wire.VersionBody)
        row = VersionRow(
            hash=call.params["hash"],
            flow=body.flow,
            previous=body.previous,
            bytecode=decode_bytes(body.bytecode, "bytecode"),
            debug=decode_bytes(body.debug, "debug"),
            deployed_at=self.daemon.clock.now(),
        )
        try:
            open_version(row)
        except NoVersion as lie:
            raise ApiError("bad_bytecode", f"{body.flow}: {lie}") from None
        outcome = await self.daemon.deploy(row)
        if outcome == "behind":
            newest = await self.daemon.store.newest(body.flow) or ""
            after = "none" if body.previous is None else body.previous[:12]
            raise ApiError(
                "behind",
                f"{body.flow}: version {newest[:12]} is deployed, and this one was built after "
                f"{after}; take over the flow.lock it was deployed with and build again",
            )
        answer = wire.VersionAnswer(outcome, row.hash, row.flow)
        return (201 if outcome == "new" else 200), answer

    # -- the daemon ----------------------------------------------------------------------------

    async def health(self, call: Call) -> Answer:
        """Soon, whatever the database does: who is asked by a watchdog is not dead for waiting."""
        status, counts = "draining" if self.daemon.draining else "ok", dict[str, int]()
        try:
            async with asyncio.timeout(HEALTH_TIME):
                counts = await self.daemon.store.counts()
        except TimeoutError:
            status = "busy"
        return 200, wire.Health(status, self.daemon.me, counts)

    async def metrics(self, call: Call) -> Answer:
        """Counts in Prometheus' text format."""
        daemon = self.daemon
        counts = await daemon.store.counts()
        by_status = [(f'{{status="{status}"}}', counts.get(status, 0)) for status in Status]
        under_way = sum(map(len, daemon.out.values()))
        found: list[tuple[str, str, str, list[tuple[str, int]]]] = [
            ("qoqi_instances", "gauge", "Instances by status.", by_status),
            ("qoqi_instances_held", "gauge", "Instances in memory.", [("", len(daemon.hosts))]),
            ("qoqi_steps_under_way", "gauge", "Bodies of steps that run here.", [("", under_way)]),
            ("qoqi_event_streams", "gauge", "Streams of events.", [("", self.streams)]),
            ("qoqi_draining", "gauge", "1 while it stops.", [("", int(daemon.draining))]),
            (
                "qoqi_ledger_rows_total",
                "counter",
                "Rows ever written to the ledger.",
                [("", await daemon.store.last_change())],
            ),
            (
                "qoqi_store_calls_total",
                "counter",
                "Calls of the store by this daemon.",
                [("", daemon.store.calls)],
            ),
            (
                "qoqi_store_commits_total",
                "counter",
                "Groups of calls that were committed together.",
                [("", daemon.store.groups)],
            ),
        ]
        lines = []
        for name, kind, what, values in found:
            lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{label} {value}" for label, value in values]
        return 200, "\n".join(lines) + "\n"

    async def daemons(self, call: Call) -> Answer:
        now = self.daemon.clock.now()
        rows = await self.daemon.store.daemons()
        return 200, wire.DaemonList(
            tuple(
                wire.DaemonItem(row.incarnation, row.alive_until, row.alive_until > now)
                for row in rows
            )
        )

    async def new_token(self, call: Call) -> Answer:
        body = body_of(call, wire.TokenBody)
        if body.role not in set(Role):
            raise ApiError("bad_request", f"no role {body.role}; there are: {', '.join(Role)}")
        if not fits_name(body.name):
            raise ApiError("bad_request", f"a token cannot be named {body.name!r}: {NAME_RULE}")
        if any(name == body.name for _, _, name in await self.daemon.store.tokens()):
            raise ApiError("token_taken", f"a token named {body.name} exists")
        token = await self.make_token(body.name, Role(body.role))
        return 201, wire.TokenAnswer(body.name, body.role, token)

    async def make_token(self, name: str, role: Role) -> str:
        token = tokens.draw()
        now = self.daemon.clock.now()
        await self.daemon.store.put_token(tokens.digest(token), role, name, now)
        self._tokens = None
        return token

    async def tokens(self, call: Call) -> Answer:
        kept = await self.daemon.store.tokens()
        return 200, wire.TokenList(tuple(wire.TokenItem(name, role) for _, role, name in kept))

    async def drop_token(self, call: Call) -> Answer:
        name = call.params["name"]
        kept = {kept: role for _, role, kept in await self.daemon.store.tokens()}
        if not await self.daemon.store.drop_token(name):
            raise ApiError("no_token", f"no token is named {name}")
        self._tokens = None
        return 200, wire.TokenItem(name, kept.get(name, ""))

    # -- shared --------------------------------------------------------------------------------

    async def row(self, id: str) -> InstanceRow:
        row: InstanceRow | None = await self.daemon.store.instance(id)
        if row is None:
            raise _no_instance(id)
        return row

    async def program(self, hash: str) -> Program:
        try:
            return await self.daemon.programs.get(hash)
        except NoVersion as lost:
            raise ApiError("no_version", str(lost)) from None

    async def _whole_name(self, flow: str | None) -> str | None:
        """A flow that is looked for may be named by its end too, as where one is started."""
        if flow is None:
            return None
        flows = {row.flow for row in await self.daemon.store.versions(None)}
        found = [one for one in flows if one.endswith(f".{flow}")]
        return found[0] if flow not in flows and len(found) == 1 else flow

    async def _flow(self, name: str) -> tuple[str, Program]:
        """A deployed flow by its name, or by the end of it where only one has that."""
        hash = await self.daemon.programs.to_start(name)
        if hash is None:
            flows = sorted({row.flow for row in await self.daemon.store.versions(None)})
            found = [flow for flow in flows if flow.endswith(f".{name}")]
            if len(found) > 1:
                raise ApiError("no_flow", f"{name} is one of: {', '.join(found)}; say which")
            if not found:
                deployed = ", ".join(flows) or "none; run `qoqi deploy`"
                raise ApiError("no_flow", f"no flow {name} is deployed (deployed: {deployed})")
            hash = await self.daemon.programs.to_start(found[0])
            if hash is None:
                raise ApiError("no_flow", f"no version of {found[0]} is deployed")
        return hash, await self.program(hash)

    def _check_size(self, text: str, what: str) -> None:
        refused = too_large(what, text, self.daemon.settings.value_limit)
        if refused is not None:
            raise ApiError("too_large", refused)


def body_of(call: Call, record: type[B]) -> B:
    """The body of a call, which its route says is such a record."""
    assert isinstance(call.body, record)
    return call.body


def decode_bytes(text: str, what: str) -> bytes:
    """Bytes that came as base64."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # a character that is not ASCII, or none of base64
        raise ApiError("bad_request", f"{what}: expected base64") from None


def _same_arguments(program: Program, kept: str, given: str) -> bool:
    """Kept in the shape of the version they started, and read as the newest one reads them."""
    raw = parse_json(kept)
    if raw == parse_json(given):
        return True
    try:
        return isinstance(raw, dict) and arguments_text(program, arguments(program, raw)) == given
    except FlowError:
        return False


def _check_text(text: str, what: str) -> None:
    if not 1 <= len(text) <= wire.TEXT_LIMIT:
        raise ApiError("bad_request", f"{what} has 1 to {wire.TEXT_LIMIT:,} characters")


def _number(query: dict[str, str], name: str, default: int, most: int, least: int = 0) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20 and least <= int(text) <= most):
        raise ApiError(
            "bad_request",
            f"{name}: expected a whole number from {least} to {most}, found {text!r}",
        )
    return int(text)


def _wait(query: dict[str, str]) -> int:
    """How long a send waits for its answer, in ms; 0 without `wait`."""
    text = query.get("wait")
    if text is None:
        return 0
    length = parse_duration(text)
    if length is None or not 0 < length.ms <= live.WAIT_MOST:
        most = live.WAIT_MOST // 1_000
        raise ApiError("bad_request", f"wait: {text!r} is no length of time up to {most}s (30s)")
    return length.ms


def _word(query: dict[str, str], name: str, words: type[W]) -> W | None:
    text = query.get(name)
    if text is None:
        return None
    if text not in set(words):
        raise ApiError("bad_request", f"{name}: {text!r} is none of {', '.join(words)}")
    return words(text)


def _no_instance(id: str) -> ApiError:
    return ApiError("no_instance", f"no instance is named {id}")


def _no_channel(program: Program, row: InstanceRow, name: str) -> str:
    takes = ", ".join(channel.name for channel in program.chunk.channels if not channel.inside)
    return f"{row.id}: {row.flow} has no channel {name} (it takes: {takes or 'no messages'})"


def _channel(program: Program, row: InstanceRow, name: str) -> ChannelDef:
    """A channel that takes messages, by its name or number."""
    channels = program.chunk.channels
    for number, channel in enumerate(channels):
        if name in (channel.name, str(number)) and not channel.inside:
            return channel
    raise ApiError("no_channel", _no_channel(program, row, name))


_REFUSALS = {
    "ended": ("ended", "{id} has ended"),
    "no_instance": ("no_instance", "no instance is named {id}"),
    "refused": ("refused", "{id} refuses to be cancelled: {text}"),
    "pending": ("cancel_pending", "{id}: {text}"),
    "not_now": ("not_possible", "{id}: {text}"),
    "not_stopped": ("not_stopped", "{id} is not stopped; only a stopped instance can be {what}"),
}
_DONE = {
    "cancel": "cancelled",
    "resume": "resumed",
    "end": "ended",
    "pause": "paused",
    "answer": "answered",
}


def refusal(id: str, asked: Asked, what: str) -> ApiError:
    """What a store refused, as an error of the API."""
    # A resume is refused for a cancellation that was asked for, an answer for an attempt under way.
    other = {"resume": "pending", "answer": "not_now"}
    outcome = other.get(what, "refused") if asked.outcome == "refused" else asked.outcome
    code, words = _REFUSALS.get(outcome, ("not_possible", "{id}: {outcome} {text}"))
    text = words.format(id=id, text=asked.text, what=_DONE[what], outcome=asked.outcome)
    return ApiError(code, text.strip())
