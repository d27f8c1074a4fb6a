"""A bench to test daemons on: what a daemon stands on, flows to run, and ways to look at them.

Time stands still until `advance`; `settle` lets everything that can happen at this instant happen.
Flows are assembled by hand, so that these tests need no compiler.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import httpx

from qoqi.runtime.bodies import World
from qoqi.runtime.clock import VirtualClock
from qoqi.runtime.daemon import Daemon
from qoqi.runtime.model import InstanceRow, Settings, VersionRow
from qoqi.runtime.programs import arguments, open_version
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm.bytecode.chunk import (
    ChannelDef,
    Chunk,
    FieldDef,
    FlowSlot,
    StageDef,
    StepDef,
    TypeDef,
    VariantDef,
    ViewDef,
)
from qoqi.vm.bytecode.codec import encode, version_hash
from qoqi.vm.host import Told
from tests.vm.assembler import assemble, option

P = ParamSpec("P")
T = TypeVar("T")

RESPONSE = TypeDef(
    "std.http.Response",
    0,
    (
        FieldDef("status", "status", "Int"),
        FieldDef("headers", "headers", ("Map", "String", "String")),
        FieldDef("text", "text", "String"),
    ),
    None,
)


def step(name: str, body: int, *params: str, result: Any = "Int", **clauses: Any) -> StepDef:
    return StepDef(
        name,
        tuple(FieldDef(one, one, "Int") for one in params),
        result,
        **{"settled": False, "body": body, **clauses},
    )


APPROVAL = """
function ask 1 1                # the step's body: twice what it is given
    LOAD 0
    INT 2
    MUL
    RETURN
function run 0 1
    LOAD_FLOW 0
    STEP 0
    STORE 0
    STAGE 0
    INT 0
    WAIT_CASE 0                 # receive, case 0
    WAIT 1
    POP
    LOAD 0
    ADD
    RETURN
function twice 0 0              # a view
    LOAD_FLOW 0
    INT 2
    MUL
    RETURN
"""


def approval(**changes: Any) -> Chunk:
    """Asks once, passes stage `asking`, waits for an Int, returns both added."""
    return replace(
        assemble(
            APPROVAL,
            flow="Approval",
            result="Int",
            flow_slots=(FlowSlot("claim", "Int", True),),
            channels=(ChannelDef("decisions", "Int", 8, False),),
            stages=(StageDef("asking", 4, (("asked", 0, "Int"),)),),
            steps=(step("ask", 0, "claim"),),
            views=(ViewDef("twice", "Int", 2),),
        ),
        **changes,
    )


CALLER = """
function call 1 2
{body}
function run 0 1
    LOAD_FLOW 0
    STEP 0
    {more}
    RETURN
"""


def caller(body: str, result: Any = "Int", slots: int = 2, **tables: Any) -> Chunk:
    """One step `call(n)` with this body; run gives its answer."""
    clauses = tables.pop("clauses", {})
    return assemble(
        CALLER.format(body=body, more=tables.pop("more", "")).replace(
            "function call 1 2", f"function call 1 {slots}"
        ),
        flow="Caller",
        result=tables.pop("flow_result", result),
        flow_slots=(FlowSlot("n", "Int", True),),
        steps=(step("call", 0, "n", result=result, **clauses),),
        types=tables.pop("types", (option(), RESPONSE)),
        **tables,
    )


def settled() -> TypeDef:
    value = FieldDef("value", "value", ("param", 0))
    return TypeDef(
        "Settled",
        1,
        None,
        (VariantDef("Known", "Known", (value,)), VariantDef("Unknown", "Unknown", ())),
    )


def version(chunk: Chunk, previous: str | None = None) -> VersionRow:
    data = encode(chunk)
    return VersionRow(version_hash(data), chunk.flow, previous, data, b"", 0)


class Watched(StoreThread):
    """A store that says how many calls of it are under way."""

    pending = 0

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.pending += 1
        try:
            return await super().call(function, *args, **kwargs)
        finally:
            self.pending -= 1

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self.pending += 1
        try:
            return await super().read(function, *args, **kwargs)
        finally:
            self.pending -= 1


class Bench:
    """One store and clock; any number of daemons on them, one after the other or at once."""

    def __init__(self, answer: Callable[[httpx.Request], Any] | None = None) -> None:
        self.clock = VirtualClock(1_000_000)
        self.store = Watched(memory_store())
        self.settings = Settings()
        self.environment: dict[str, str] = {}
        self.answer = answer or (lambda request: httpx.Response(200, text="ok"))
        self.http = httpx.AsyncClient(
            transport=httpx.MockTransport(self._handle), timeout=None, follow_redirects=False
        )
        self.requests: list[httpx.Request] = []
        self.daemons: list[Daemon] = []

    async def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answer(request)
        if asyncio.iscoroutine(answer):
            answer = await answer
        assert isinstance(answer, httpx.Response)
        return answer

    def world(self) -> World:
        return World(
            self.clock.now,
            self.http,
            self.environment,
            random.Random(1),
            self.settings.slice,
            self.settings.value_limit,
        )

    async def daemon(self, name: str = "shop") -> Daemon:
        daemon = Daemon(self.store, self.clock, self.world(), name=name, settings=self.settings)
        self.daemons.append(daemon)
        await daemon.start()
        return daemon

    async def deploy(self, chunk: Chunk, daemon: Daemon | None = None) -> str:
        row = version(chunk, await self.store.newest(chunk.flow))
        open_version(row)
        if daemon is None:
            await self.store.put_version(row)
        else:
            assert await daemon.deploy(row) == "new"
        return row.hash

    async def start(self, daemon: Daemon, flow: str, name: str, **args: object) -> None:
        hash = await daemon.programs.newest(flow)
        assert hash is not None
        program = daemon.programs.code(hash)
        request = daemon.first_row(name, program, hash, arguments(program, args), None)
        assert (await self.store.create(request, self.clock.now())).created
        daemon.wake()

    async def send(self, daemon: Daemon, name: str, channel: str, value: str) -> str:
        sent = await self.store.send(name, channel, None, value, None, self.clock.now())
        daemon.tell(name, sent.owner, Told())
        return sent.outcome

    async def row(self, name: str) -> InstanceRow:
        row = await self.store.instance(name)
        assert row is not None, f"{name} is gone"
        return row

    async def settle(self) -> None:
        """Until nothing moves: no call of the store is under way, for some turns of the loop."""
        quiet = 0
        while quiet < 30:
            await asyncio.sleep(0)
            quiet = quiet + 1 if self.store.pending == 0 else 0

    async def advance(self, ms: int) -> None:
        """Time goes on, deadline by deadline, everything settled at each."""
        end = self.clock.now() + ms
        while True:
            await self.settle()
            at = self.clock.next_deadline()
            if at is None or at > end:
                break
            self.clock.set(at)
        self.clock.set(end)
        await self.settle()

    async def close(self) -> None:
        for daemon in self.daemons:
            await daemon.kill()
        await self.http.aclose()
        await self.store.close()
