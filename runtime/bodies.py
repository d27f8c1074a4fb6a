"""A step's body in a machine of its own: what it may ask of the world, and how it ends.

A body is given the step's arguments and nothing of its instance, which stands still meanwhile. It
runs in slices: pure work goes on inline, one slice at a time, so that a body that only computes
never costs a task of the event loop and one that computes for long never holds the daemon. What it
asks of the world is answered here, and nowhere else.

How a body ends (`StepEnded.result`):

    a value           JSON, at most `value_limit` bytes; more is `failed`, with the size
    retry             it said flow.retry, or no connection was made
    lost              a request left and the network gave no answer: it is tried again, but may have
                      acted; in a `Settled` step this is the value `Unknown`
    failed            a mistake: `fail`, an index, a value out of range; with code, text and calls

Before each request leaves, the lease of the instance and the limit of the attempt are looked at
(seed 004, section 2). Where either is over the body ends without a word: its attempt stays open
until its limit, as for a daemon that died. A request that has left is waited for beyond the limit,
for `GRACE`: its answer is late then, and kept aside for people.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from qoqi.vm.bytecode.chunk import NO_FUNCTION, StepDef
from qoqi.vm.dataclass import dataclass
from qoqi.vm.effects import Ended, Failed, Operation, OutOfBudget
from qoqi.vm.failure import Failure, FlowError
from qoqi.vm.frames import Machine, Task
from qoqi.vm.host import FAILED, LOST, RETRY, StepEnded
from qoqi.vm.instance import failure_json
from qoqi.vm.interpreter import MachineError, advance, resume, start_task, trace
from qoqi.vm.jsonform import json_text, to_json, value_text
from qoqi.vm.program import Program
from qoqi.vm.sizes import too_large
from qoqi.vm.steps import retry_delay
from qoqi.vm.values import RangeValue, Struct, Time, UndoValue, Variant

if TYPE_CHECKING:
    import httpx

GRACE: Final = 60_000
AT_ONCE: Final = 200
"""Operations that are answered at once in one slice: after as many the others have a turn."""
RESPONSE_LIMIT: Final = 16 << 20
FILE_LIMIT: Final = 16 << 20

_log = logging.getLogger("qoqi.step")


class LetGo(Exception):
    """The body may not act any more: its lease or its limit is over."""


class _NoAnswer(Exception):
    """The network gave no answer; `left` says that the request may have."""

    def __init__(self, left: bool, why: str) -> None:
        super().__init__(why)
        self.left = left


@dataclass(frozen=True, slots=True)
class World:
    """What bodies touch. One per daemon; tests give their own transport, environment and chance."""

    now: Callable[[], int]
    http: httpx.AsyncClient | LateClient
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    chance: random.Random = field(default_factory=random.SystemRandom)
    slice: int = 20_000
    value_limit: int = 1 << 20


class LateClient:
    """A client of httpx from the first request on.

    To load httpx, and the certificates that it trusts, takes as long as half of a daemon's start.
    """

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    def _made(self) -> httpx.AsyncClient:
        if self._client is None:
            import httpx

            limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
            self._client = httpx.AsyncClient(
                follow_redirects=False, limits=limits, timeout=None, headers={"User-Agent": "qoqi"}
            )
        return self._client

    def build_request(self, method: str, url: str, **given: Any) -> httpx.Request:
        return self._made().build_request(method, url, **given)

    async def send(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        return await self._made().send(request, stream=stream)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._client is not None:
            await self._client.aclose()


def http_client() -> LateClient:
    """The client all bodies share: no redirect is followed, no cookie kept between requests."""
    return LateClient()


@dataclass(slots=True)
class Body:
    """One attempt under way. `may_act` is asked just before a request leaves."""

    key: str
    attempt: int
    until: int
    program: Program
    step: StepDef
    may_act: Callable[[], bool]
    working: Callable[[], Awaitable[bool]]
    task: Task
    machine: Machine
    undos: list[tuple[str, object]] = field(default_factory=list)


def make(
    program: Program,
    number: int,
    args: tuple[object, ...],
    key: str,
    attempt: int,
    until: int,
    may_act: Callable[[], bool],
    working: Callable[[], Awaitable[bool]],
) -> Body:
    """A body ready to run; the step is one that has a body."""
    step = program.chunk.steps[number]
    if step.body == NO_FUNCTION:
        raise ValueError(f"{step.name} has no body here")
    task = Task(step.name, start_task(program, step.body, args), 0)
    machine = Machine(key, "", "")
    return Body(key, attempt, until, program, step, may_act, working, task, machine)


def run_slice(body: Body, world: World) -> StepEnded | Operation | None:
    """Runs until it ends, asks what takes time, or has used its slice (None)."""
    for _ in range(AT_ONCE):
        effect = advance(body.program, body.machine, body.task, world.slice)
        match effect:
            case Ended(value):
                return _ended(body, world, value)
            case Failed(failure):
                return _failed(body, failure)
            case OutOfBudget():
                return None
            case Operation(name="step.retry", args=args):
                return _end(body, RETRY, delay=retry_delay(args))
            case Operation():
                answer = _at_once(body, world, effect)
                if answer is None:
                    return effect
                if isinstance(answer, StepEnded):
                    return answer
                resume(body.task, answer)
            case _:
                raise MachineError(f"a step's body asked for a {type(effect).__name__}")
    return None


async def run(body: Body, world: World, first: Operation | None) -> StepEnded | None:
    """The rest of a body, from the operation or slice it stands at; None if it was let go."""
    at: StepEnded | Operation | None = first
    try:
        while not isinstance(at, StepEnded):
            if at is None:
                await asyncio.sleep(0)
                if world.now() > body.until + GRACE:
                    return None
            else:
                resume(body.task, await _in_time(body, world, at))
            at = run_slice(body, world)
    except LetGo:
        return None
    except _NoAnswer as lost:
        why = str(lost)
        if not lost.left:
            return _end(body, RETRY, network=True, why=why)
        if body.step.settled:
            return _end(body, '"Unknown"', why=why)
        return _end(body, LOST, network=True, why=why)
    except FlowError as error:
        calls = trace(body.program, body.task)
        return _failed(body, Failure(error.code, error.message, calls))
    return at


def _at_once(body: Body, world: World, asked: Operation) -> object | None:
    """The answer of an operation that takes no time; None for the others."""
    types = body.program.types
    match asked.name, asked.args:
        case "step.key", _:
            return body.key
        case "step.attempt", _:
            return body.attempt
        case "flow.undo", (UndoValue() as undo,):
            body.undos.append((undo.target, to_json(undo.args)))
            return ()
        case "undo.step", (int() as number, tuple() as args):
            return UndoValue(body.program.chunk.steps[number].name, args)
        case "undo.send", args:
            return UndoValue("send", args)
        case "env.get", (str() as name,):
            return types.option_of(world.environment.get(name))
        case "random.int", (RangeValue() as span,):
            return _drawn(body, world, span)
        case "random.uuid", _:
            return str(uuid.UUID(int=world.chance.getrandbits(128), version=4))
        case "log.write" | "flow.print", (text,):
            _log.info("%s (attempt %d): %s", body.key, body.attempt, text)
            return ()
        case "time.now", _:
            return Time(world.now())
        case (("step.working" | "http.request" | "file.read" | "file.write"), _):
            return None
        case _:
            raise MachineError(f"a step's body asked for {asked.name}")


async def _in_time(body: Body, world: World, asked: Operation) -> object:
    match asked.name, asked.args:
        case "step.working", _:
            return await body.working()
        case "http.request", (str() as method, str() as url, dict() as headers, content):
            return await _request(body, world, method, url, headers, _content(content))
        case "file.read", (str() as path,):
            return await asyncio.to_thread(_read_file, path)
        case "file.write", (str() as path, bytes() as data):
            _check(body, world)
            await asyncio.to_thread(_write_file, path, data)
            return ()
        case _:
            raise MachineError(f"{asked.name} was given what it does not take")


# -- how it ends -------------------------------------------------------------------------------


def _end(
    body: Body,
    result: str,
    *,
    delay: int | None = None,
    failure: str | None = None,
    network: bool = False,
    why: str | None = None,
) -> StepEnded:
    undo = json_text([list(item) for item in body.undos]) if body.undos else None
    return StepEnded(body.key, body.attempt, result, delay, failure, undo, network, why)


def _ended(body: Body, world: World, value: object) -> StepEnded:
    try:
        text = value_text(value)
    except FlowError as error:
        return _failed(body, Failure(error.code, error.message))
    refused = too_large(f"the answer of {body.step.name}", text, world.value_limit)
    if refused is not None:
        return _failed(body, Failure("R0008", refused))
    return _end(body, text)


def _failed(body: Body, failure: Failure) -> StepEnded:
    return _end(body, FAILED, failure=failure_json(failure))


def _drawn(body: Body, world: World, span: RangeValue) -> object:
    low, high = span.low, span.high
    if not isinstance(low, int) or not isinstance(high, int):
        raise MachineError("random.int was given a range of something else")
    stop = high + 1 if span.inclusive else high
    if stop <= low:
        return _failed(body, Failure("R0001", f"no number lies in {low}..{high}"))
    return world.chance.randrange(low, stop)


# -- effects -----------------------------------------------------------------------------------


def _check(body: Body, world: World) -> None:
    if world.now() >= body.until or not body.may_act():
        raise LetGo


async def _request(
    body: Body,
    world: World,
    method: str,
    url: str,
    headers: dict[object, object],
    content: bytes,
) -> Struct:
    import httpx

    sent = [(str(name), str(value)) for name, value in headers.items()]
    for name, value in sent:
        if not name or not set("\r\n\0").isdisjoint(name + value):
            raise FlowError("R0001", f"http: the header {name!r} cannot be sent")
    try:
        lines = [(name.encode(), value.encode()) for name, value in sent]
        request = world.http.build_request(method, url, headers=lines, content=content or None)
        if request.url.scheme not in ("http", "https") or not request.url.host:
            raise FlowError("R0001", f"http: {url} is no address of the web")
    except (httpx.InvalidURL, ValueError, TypeError) as wrong:
        raise FlowError("R0001", f"http: {url} is no address of the web: {wrong}") from wrong
    _check(body, world)
    left = (body.until - world.now()) / 1_000
    request.extensions["timeout"] = {
        "connect": left,
        "pool": left,
        "write": left + GRACE / 1_000,
        "read": left + GRACE / 1_000,
    }
    try:
        async with asyncio.timeout(left + GRACE / 1_000):
            response = await world.http.send(request, stream=True)
            try:
                data = await _read_response(response)
            finally:
                await response.aclose()
    except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as lost:
        raise _NoAnswer(False, f"no connection to {request.url.host}: {_said(lost)}") from lost
    except (httpx.LocalProtocolError, httpx.UnsupportedProtocol) as wrong:
        raise FlowError("R0001", f"http: the request cannot be sent: {wrong}") from wrong
    except (httpx.TransportError, TimeoutError) as lost:
        raise _NoAnswer(True, f"no answer from {request.url.host}: {_said(lost)}") from lost
    except httpx.DecodingError as strange:
        raise FlowError("R0004", f"http: the answer's encoding is damaged: {strange}") from strange
    return _response(body.program, response, data)


def _said(error: BaseException) -> str:
    """What went wrong on the network, by its first cause: the outer ones only say that it did."""
    first = error
    while (inner := first.__cause__ or first.__context__) is not None:
        first = inner.exceptions[0] if isinstance(inner, BaseExceptionGroup) else inner
    text = first.strerror if isinstance(first, OSError) else None
    return text or str(first) or str(error) or type(error).__name__


def _content(given: object) -> bytes:
    """The bytes of a `Bytes?`."""
    match given:
        case Variant(payload=(bytes() as data,)):
            return data
        case _:
            return b""


async def _read_response(response: httpx.Response) -> bytes:
    data = bytearray()
    async for part in response.aiter_bytes():
        data += part
        if len(data) > RESPONSE_LIMIT:
            raise FlowError("R0008", f"http: the answer is larger than {RESPONSE_LIMIT:,} bytes")
    return bytes(data)


def _response(program: Program, response: httpx.Response, data: bytes) -> Struct:
    info = program.types.named("http.Response")
    if info is None or info.fields is None:
        raise MachineError("the program has http.request and no http.Response")
    encoding = response.charset_encoding or "utf-8"
    try:
        text = data.decode(encoding, "replace")
    except LookupError:
        text = data.decode("utf-8", "replace")
    headers: dict[object, object] = {}
    for name, value in response.headers.items():
        headers[name.lower()] = value
    values: dict[str, object] = {
        "status": response.status_code,
        "headers": headers,
        "text": text,
        "body": data,
    }
    return Struct(info, [values[item.name] for item in info.fields])


def _read_file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as source:
            data = source.read(FILE_LIMIT + 1)
    except (OSError, ValueError) as error:
        raise FlowError("R0001", f"file.read of {path}: {_reason(error)}") from error
    if len(data) > FILE_LIMIT:
        raise FlowError("R0008", f"file.read of {path}: it is larger than {FILE_LIMIT:,} bytes")
    return data


def _write_file(path: str, data: bytes) -> None:
    """All of the file or nothing: a step that is tried again finds no half of one."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        try:
            draft.write_bytes(data)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
    except (OSError, ValueError) as error:
        raise FlowError("R0001", f"file.write of {path}: {_reason(error)}") from error


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
