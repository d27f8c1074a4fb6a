"""What each call of the API does: checks what came in, asks the store, tells the daemon.

A call is given a `Call` (checked against its record, its token's rights known) and gives a status
and a record, or raises `ApiError`. Values are decoded against the types of the version they go to
before anything is stored, so what is refused has changed nothing.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from dataclasses import dataclass
from typing import TypeVar

from qoqi.runtime import people
from qoqi.runtime.api import tokens, views, wire
from qoqi.runtime.api.tokens import Holder, Role
from qoqi.runtime.api.wire import ApiError
from qoqi.runtime.daemon import Daemon
from qoqi.runtime.model import InstanceRow, Phase, Status, VersionRow
from qoqi.runtime.programs import NoVersion, arguments, open_version, read_value
from qoqi.runtime.store.protocol import Asked, Filter, SendOutcome
from qoqi.vm.bytecode.chunk import ChannelDef
from qoqi.vm.failure import FlowError
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import Cancel, CancelTold, Told
from qoqi.vm.jsonform import parse_json, type_text, value_text
from qoqi.vm.operations import fits_name
from qoqi.vm.program import Program

B = TypeVar("B")
W = TypeVar("W", Status, Phase)

KEY_LIMIT = 256
TEXT_LIMIT = 4_096

NAME_RULE = "1 to 256 of letters, digits and -_.:@/~+"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: path parameters, query, the body as its record, the sender's key, who asks."""

    params: dict[str, str]
    query: dict[str, str]
    body: object
    key: str | None
    holder: Holder


Answer = tuple[int, object]


class Api:
    """The calls on one daemon. Tokens are read once, and again after each change of them."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self._tokens: tuple[tuple[str, str, str], ...] | None = None

    async def holder(self, token: str) -> Holder | None:
        if self._tokens is None:
            self._tokens = await self.daemon.store.tokens()
        return tokens.holder(token, self._tokens)

    # -- instances -----------------------------------------------------------------------------

    async def start(self, call: Call) -> Answer:
        body = _body(call, wire.StartBody)
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
        outcome = await daemon.store.create(request, daemon.clock.now())
        row = outcome.row
        if outcome.created:
            daemon.wake()
            return 201, wire.StartAnswer("started", views.instance(row))
        if row.flow != request.flow or parse_json(row.args) != parse_json(request.args):
            other = f"flow {row.flow}" if row.flow != request.flow else "other arguments"
            raise ApiError("name_taken", f"{name} exists already, started with {other}")
        return 200, wire.StartAnswer("already", views.instance(row))

    async def send(self, call: Call) -> Answer:
        body = _body(call, wire.SendBody)
        daemon, id, key = self.daemon, call.params["id"], call.key
        if key is not None and not (1 <= len(key) <= KEY_LIMIT and key.isprintable()):
            raise ApiError(
                "bad_request", f"an Idempotency-Key has 1 to {KEY_LIMIT} printable characters"
            )
        row = await self._row(id)
        program = await self._program(row.version)
        channel = _channel(program, row, call.params["channel"])
        try:
            value = read_value(program, body.value, channel.type, "")
        except FlowError as misfit:
            raise ApiError("misfit", misfit.message) from None
        text = value_text(value)
        self._check_size(text, "the message")
        now = daemon.clock.now()
        sent = await daemon.store.send(id, channel.name, key, text, body.birth, now)
        match sent.outcome:
            case SendOutcome.DELIVERED:
                daemon.tell(id, sent.owner, Told())
                return 202, wire.SendAnswer("delivered", await self._seen(id, row))
            case SendOutcome.ALREADY:
                return 200, wire.SendAnswer("already", await self._seen(id, row))
            case SendOutcome.FULL:
                raise ApiError("full", f"{id}: {channel.name} is full ({channel.capacity})")
            case SendOutcome.ENDED:
                raise ApiError("ended", f"{id} has ended")
            case SendOutcome.NO_CHANNEL:
                raise ApiError("no_channel", _no_channel(program, row, channel.name))
            case _:
                raise _no_instance(id)

    async def cancel(self, call: Call) -> Answer:
        body = _body(call, wire.CancelBody)
        daemon, id = self.daemon, call.params["id"]
        _check_text(body.reason, "the reason")
        now = daemon.clock.now()
        cancel = Cancel(daemon.draw_uuid(), body.reason, body.now, now)
        asked = await daemon.store.cancel(id, body.birth, cancel, now, call.holder.name)
        return await self._acted(id, asked, "cancel", CancelTold())

    async def resume(self, call: Call) -> Answer:
        body = _body(call, wire.ResumeBody)
        daemon, id = self.daemon, call.params["id"]
        if not body.go:
            raise ApiError("bad_request", 'a resume has to say {"go": true}')
        row = await self._row(id)
        version = None
        if row.status is Status.STOPPED and not row.paused:
            if await self._answer_plainly(row, call.holder.name):
                version = row.version
            else:
                await self._check_stage(row)
        asked = await daemon.store.resume(id, daemon.clock.now(), call.holder.name, version)
        return await self._acted(id, asked, "resume", Told())

    async def _answer_plainly(self, row: InstanceRow, actor: str) -> bool:
        """A resume answers `()` to a question that wants nothing else; its version stays then."""
        program = await self._program(row.version)
        question = people.asked_for(program, row)
        if question is None:
            return False
        key, wanted = question
        if wanted.term != people.UNIT:
            said = type_text(wanted.term, program.types)
            message = f"{row.id} asks a question that wants an answer of type {said}"
            raise ApiError("needs_answer", message)
        posted = await self.daemon.store.post_result(key, "null", self.daemon.clock.now(), actor)
        if posted.outcome != "ok":
            raise _refusal(row.id, posted, "resume")
        return True

    async def end(self, call: Call) -> Answer:
        body = _body(call, wire.EndBody)
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
            raise _refusal(id, asked, what)
        self.daemon.tell(id, asked.owner, news)
        for other, owner in asked.woken:
            self.daemon.tell(other, owner, CancelTold())
        self.daemon.wake()
        row = await self._row(id)
        return 200, wire.ActAnswer("ok", views.instance(row))

    async def _check_stage(self, row: InstanceRow) -> None:
        """Refuses, before anything is changed, a resume at a stage the newest version lacks."""
        if row.phase is not Phase.RUN or row.at_stage is None:
            return
        hash = await self.daemon.programs.newest_for(row.flow, row.version)
        frozen = views.data(row.at_stage)
        stage = frozen.get("stage") if isinstance(frozen, dict) else None
        if hash is None or hash == row.version or stage is None:
            return
        stages = {definition.name for definition in (await self._program(hash)).chunk.stages}
        if stage not in stages:
            has = ", ".join(sorted(stages)) or "none"
            raise ApiError(
                "stage_gone",
                f"F0103: {row.id} stopped at stage {stage}, which version {hash[:12]} no longer "
                f"has (it has: {has}); pin its version or cancel it",
            )

    async def instances(self, call: Call) -> Answer:
        query = call.query
        limit = _number(query, "limit", 100, wire.PAGE_LIMIT)
        rows = await self.daemon.store.instances(
            Filter(
                status=_word(query, "status", Status),
                phase=_word(query, "phase", Phase),
                flow=query.get("flow"),
                version=query.get("version"),
                stage=query.get("stage"),
                since=_number(query, "since", 0, 1 << 53) if "since" in query else None,
                text=query.get("text"),
                after=query.get("after"),
                limit=limit,
            )
        )
        following = rows[-1].id if len(rows) == limit else None
        return 200, wire.InstancePage(tuple(map(views.instance, rows)), following)

    async def life(self, call: Call) -> Answer:
        id = call.params["id"]
        found = await self.daemon.store.life(id)
        if found is None:
            raise _no_instance(id)
        channels = await self.daemon.store.channels(id)
        return 200, await views.life(found, channels, self.daemon.programs)

    async def ledger(self, call: Call) -> Answer:
        row = await self._row(call.params["id"])
        after = _number(call.query, "after", 0, 1 << 62)
        limit = _number(call.query, "limit", 100, wire.PAGE_LIMIT)
        rows = await self.daemon.store.ledger(row.id, after, limit)
        following = rows[-1].seq if len(rows) == limit else None
        return 200, wire.LedgerPage(views.ledger(rows), following)

    # -- flows and versions --------------------------------------------------------------------

    async def flow(self, call: Call) -> Answer:
        hash, program = await self._flow(call.params["flow"])
        versions = await self.daemon.store.versions(program.chunk.flow)
        return 200, views.flow(program, hash, versions, await self.daemon.store.standing())

    async def versions(self, call: Call) -> Answer:
        rows = await self.daemon.store.versions(call.query.get("flow"))
        return 200, wire.VersionList(tuple(map(views.version, rows)))

    async def put_version(self, call: Call) -> Answer:
        body = _body(call, wire.VersionBody)
        row = VersionRow(
            hash=call.params["hash"],
            flow=body.flow,
            previous=body.previous,
            bytecode=_bytes(body.bytecode, "bytecode"),
            debug=_bytes(body.debug, "debug"),
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
        counts = await self.daemon.store.counts()
        status = "draining" if self.daemon.draining else "ok"
        return 200, wire.Health(status, self.daemon.me, counts)

    async def metrics(self, call: Call) -> Answer:
        """Counts in Prometheus' text format."""
        daemon = self.daemon
        counts = await daemon.store.counts()
        gauges: list[tuple[str, str, list[tuple[str, int]]]] = [
            (
                "qoqi_instances",
                "Instances by status.",
                [(f'{{status="{status}"}}', counts.get(status, 0)) for status in Status],
            ),
            (
                "qoqi_instances_held",
                "Instances in memory here.",
                [("", len(daemon.hosts))],
            ),
            (
                "qoqi_steps_under_way",
                "Bodies of steps that run here.",
                [("", sum(map(len, daemon.out.values())))],
            ),
        ]
        lines = []
        for name, what, values in gauges:
            lines += [f"# HELP {name} {what}", f"# TYPE {name} gauge"]
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

    async def sweep(self, call: Call) -> Answer:
        daemon = self.daemon
        deleted = await daemon.store.sweep(daemon.clock.now(), daemon.settings.keep)
        return 200, wire.SweepAnswer(deleted)

    async def new_token(self, call: Call) -> Answer:
        body = _body(call, wire.TokenBody)
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

    async def _row(self, id: str) -> InstanceRow:
        row: InstanceRow | None = await self.daemon.store.instance(id)
        if row is None:
            raise _no_instance(id)
        return row

    async def _seen(self, id: str, row: InstanceRow) -> wire.InstanceView:
        """The instance as it is now; as it was where it went meanwhile."""
        now = await self.daemon.store.instance(id)
        return views.instance(row if now is None else now)

    async def _program(self, hash: str) -> Program:
        try:
            return await self.daemon.programs.get(hash)
        except NoVersion as lost:
            raise ApiError("no_version", str(lost)) from None

    async def _flow(self, name: str) -> tuple[str, Program]:
        """A deployed flow by its name, or by the end of it where only one has that."""
        hash = await self.daemon.programs.newest(name)
        if hash is None:
            flows = sorted({row.flow for row in await self.daemon.store.versions(None)})
            found = [flow for flow in flows if flow.endswith(f".{name}")]
            if len(found) > 1:
                raise ApiError("no_flow", f"{name} is one of: {', '.join(found)}; say which")
            if not found:
                deployed = ", ".join(flows) or "none; run `qoqi deploy`"
                raise ApiError("no_flow", f"no flow {name} is deployed (deployed: {deployed})")
            hash = await self.daemon.programs.newest(found[0])
            if hash is None:
                raise ApiError("no_flow", f"no version of {found[0]} is deployed")
        return hash, await self._program(hash)

    def _check_size(self, text: str, what: str) -> None:
        size, limit = len(text.encode()), self.daemon.settings.value_limit
        if size > limit:
            raise ApiError("too_large", f"{what} takes {size:,} bytes; at most {limit:,} are kept")


def _body(call: Call, record: type[B]) -> B:
    assert isinstance(call.body, record)
    return call.body


def _bytes(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise ApiError("bad_request", f"{what}: expected base64") from None


def _check_text(text: str, what: str) -> None:
    if not 1 <= len(text) <= TEXT_LIMIT:
        raise ApiError("bad_request", f"{what} has 1 to {TEXT_LIMIT:,} characters")


def _number(query: dict[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ApiError("bad_request", f"{name}: expected a whole number, found {text!r}")
    return min(int(text), most)


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
    "not_stopped": ("not_stopped", "{id} is not stopped; only a stopped instance can be {what}"),
}
_DONE = {"cancel": "cancelled", "resume": "resumed", "end": "ended", "pause": "paused"}


def _refusal(id: str, asked: Asked, what: str) -> ApiError:
    # A resume is refused for a cancellation that was asked for, or an attempt under way.
    outcome = "pending" if (asked.outcome, what) == ("refused", "resume") else asked.outcome
    code, words = _REFUSALS.get(outcome, ("not_possible", "{id}: {outcome} {text}"))
    text = words.format(id=id, text=asked.text, what=_DONE[what], outcome=asked.outcome)
    return ApiError(code, text.strip())
