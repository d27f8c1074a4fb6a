"""`qoqi run FILE [FLOW] [ARGUMENTS]`: one flow, run to its end in memory, for trying things.

The real daemon runs it on a store in memory, by the clock of the machine, and steps with a body do
what they do. Nothing is kept: what is not done at the end of the command is lost. Nobody can send,
so what an instance waits for is said on stderr; Ctrl-C ends the wait. A call of an extern step is
an error, for nobody here answers it.

What the flow prints is on stdout, its result after it, as it is written in flow (`--json`: as JSON).
Exit codes: 0 it returned; 1 it stopped, was cancelled or was left waiting.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from qoqi.compiler import api
from qoqi.runtime import bodies, people
from qoqi.runtime.cli import package, render
from qoqi.runtime.cli.connect import json_argument
from qoqi.runtime.cli.ending import FOUND, USAGE, fail
from qoqi.runtime.clock import SystemClock
from qoqi.runtime.daemon import Daemon
from qoqi.runtime.model import ENDED, InstanceRow, Settings, Status, VersionRow
from qoqi.runtime.programs import arguments, parameters, read_value
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Filter, Life
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm.bytecode.chunk import NO_FUNCTION
from qoqi.vm.bytecode.codec import encode, encode_debug
from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import FlowError
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.jsonform import parse_json
from qoqi.vm.notation import notation
from qoqi.vm.program import Program, load

LOOK = 0.05
"""How often the instance is looked at, in seconds."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be run, with its arguments read."""

    flow: api.FlowToTest
    program: Program
    args: tuple[object, ...]


def run(file: Path, words: list[str], args: str | None, name: str, as_json: bool) -> None:
    result = api.check(package.root(file))
    if not result.ok:
        render.diagnostics(result.diagnostics, api.indexes(result), render.console(sys.stderr))
        print(render.verdict(result.diagnostics), file=sys.stderr)
        raise SystemExit(FOUND)
    flows = api.build_tests(result).flows
    chosen = _chosen(flows, words, args)
    if not people.fits_name(name):
        fail(USAGE, f"--name: {name!r} may not be an instance's name")
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("qoqi.step").setLevel(logging.INFO)
    trial = _Trial(chosen, name)
    try:
        row = asyncio.run(trial.play(flows))
    except KeyboardInterrupt:
        fail(FOUND, f"{name} was left; it {trial.waited or 'was on its way'}")
    _tell(chosen.program, row, trial, as_json)


# -- what is to be run -------------------------------------------------------------------------


def _chosen(flows: tuple[api.FlowToTest, ...], words: list[str], args: str | None) -> Chosen:
    flow, rest = _flow(flows, words)
    program = load(flow.chunk, flow.debug)
    given: dict[str, object] = {}
    if args is not None:
        if rest:
            fail(USAGE, "arguments are given as --args JSON or as words, not both")
        raw = json_argument(args, "--args")
        if not isinstance(raw, dict):
            fail(USAGE, "--args: one JSON object, by parameter")
        given = raw
    try:
        values = arguments(program, given or _from_words(program, rest))
    except FlowError as misfit:
        fail(USAGE, misfit.message)
    return Chosen(flow, program, values)


def _flow(flows: tuple[api.FlowToTest, ...], words: list[str]) -> tuple[api.FlowToTest, list[str]]:
    """The flow the first word names; where there is but one it need not be named."""
    if len(flows) == 0:
        fail(USAGE, "there is no flow to run")
    if words:
        named = [flow for flow in flows if words[0] in (flow.name, flow.name.rpartition(".")[2])]
        if len(named) > 1:
            fail(USAGE, f"{words[0]} is one of {', '.join(flow.name for flow in named)}")
        if named:
            return named[0], words[1:]
    if len(flows) > 1:
        names = ", ".join(flow.name.rpartition(".")[2] for flow in flows)
        what = f"{words[0]} is no flow here" if words else "name the flow to run"
        fail(USAGE, f"{what}: {names}")
    return flows[0], words


def _from_words(program: Program, words: list[str]) -> Mapping[str, object]:
    """Arguments as words: `name=value`, or values in the order of the parameters."""
    slots = parameters(program)
    by_name = {slot.name: slot for slot in slots}
    given: dict[str, object] = {}
    for position, word in enumerate(words):
        name, equals, text = word.partition("=")
        if not equals or name not in by_name:
            if position >= len(slots):
                takes = ", ".join(by_name) or "nothing"
                fail(USAGE, f"{word}: {program.chunk.flow} takes {takes}")
            name, text = slots[position].name, word
        if name in given:
            fail(USAGE, f"{name} is given twice")
        given[name] = _value(program, by_name[name].type, name, text)
    return given


def _value(program: Program, type_: object, name: str, text: str) -> object:
    """A word as JSON of the type: JSON where it is one that fits, else the text itself."""
    try:
        raw = parse_json(text)
        read_value(program, raw, type_, name)
    except FlowError:
        return text
    return raw


# -- the run -----------------------------------------------------------------------------------


class _Trial:
    """A daemon on a store in memory, with one instance that is watched until it ends."""

    def __init__(self, chosen: Chosen, name: str) -> None:
        self.chosen = chosen
        self.name = name
        self.waited = ""
        self._told = 0

    async def play(self, flows: tuple[api.FlowToTest, ...]) -> InstanceRow:
        store = StoreThread(memory_store())
        clock = SystemClock()
        settings = Settings()
        async with bodies.http_client() as http:
            world = bodies.World(
                clock.now, http, slice=settings.slice, value_limit=settings.value_limit
            )
            daemon = Daemon(store, clock, world, name="run", settings=settings)
            try:
                for flow in flows:
                    code, debug = encode(flow.chunk), encode_debug(flow.debug)
                    row = VersionRow(flow.hash, flow.name, None, code, debug, clock.now())
                    await daemon.deploy(row)
                await daemon.start()
                await self._start(daemon)
                return await self._watch(daemon)
            finally:
                await daemon.kill()
                await store.close()

    async def _start(self, daemon: Daemon) -> None:
        chosen = self.chosen
        program = await daemon.programs.get(chosen.flow.hash)
        try:
            request = daemon.first_row(self.name, program, chosen.flow.hash, chosen.args, None)
        except (FlowError, SnapshotError) as misfit:
            fail(USAGE, str(misfit))
        await daemon.store.create(request, daemon.clock.now())
        daemon.wake()

    async def _watch(self, daemon: Daemon) -> InstanceRow:
        while True:
            life = await daemon.store.life(self.name)
            assert life is not None
            self._print(life)
            row = life.row
            if row.status in ENDED or row.status is Status.STOPPED:
                return row
            await self._refuse_extern(daemon)
            if row.status is Status.WAITING and not _is_due(life, daemon.clock.now()):
                self._say_waits(life)
            await asyncio.sleep(LOOK)

    def _print(self, life: Life) -> None:
        """What the flow printed since the last look."""
        for line in life.ledger:
            if line.seq > self._told:
                self._told = line.seq
                if line.kind == "print":
                    detail = parse_json(line.detail)
                    assert isinstance(detail, dict)
                    print(render.visible(str(detail["text"])), flush=True)

    async def _refuse_extern(self, daemon: Daemon) -> None:
        """Ends the command where any instance has called a step that only others could answer."""
        for row in await daemon.store.instances(Filter(limit=1_000)):
            life = await daemon.store.life(row.id)
            if life is None:
                continue
            bodies_of = {
                step.name: step.body for step in daemon.programs.code(row.version).chunk.steps
            }
            for attempt in life.attempts:
                if attempt.result is None and bodies_of.get(attempt.step) == NO_FUNCTION:
                    fail(
                        FOUND,
                        f"{row.id} called {attempt.step}, an extern step: nobody here answers it "
                        "(in a test, a `given` does)",
                    )

    def _say_waits(self, life: Life) -> None:
        channels = [one.name for one in self.chosen.program.chunk.channels]
        words = "; ".join(people.wait_words(wait, channels) for wait in life.waits)
        waited = f"waits for: {words or 'nothing'}"
        if waited != self.waited:
            self.waited = waited
            print(f"{self.name} {waited}", file=sys.stderr, flush=True)


def _is_due(life: Life, now: int) -> bool:
    """Whether it is about to be taken up: a wait of it is over."""
    return any(wait.at is not None and wait.at <= now for wait in life.waits)


def _tell(program: Program, row: InstanceRow, trial: _Trial, as_json: bool) -> None:
    if row.status is Status.DONE:
        raw = parse_json(row.result or "null")
        shown = row.result or "null"
        if not as_json:
            shown = notation(read_value(program, raw, program.chunk.result, ""))
        print(shown)
        return
    if row.error_code == people.QUESTION:
        fail(FOUND, f"{row.id} asks a person: {people.stopped_message(row)}")
    if row.status is Status.STOPPED:
        fail(FOUND, f"{row.id} stopped: {_why(row)}")
    failed = parse_json(row.result or "null")
    reason = failed.get("reason", "") if isinstance(failed, dict) else ""
    fail(FOUND, f"{row.id} was cancelled: {reason}")


def _why(row: InstanceRow) -> str:
    """The message of a stop, with its code and the calls that led there."""
    raw = parse_json(row.stopped_by or "null")
    if not isinstance(raw, dict):
        return row.stopped_by or ""
    trace = raw.get("trace")
    lines = trace if isinstance(trace, list) else []
    calls = [f"\nin {name} at {file}:{line}" for name, file, line in lines]
    return f"{raw.get('message', '')} ({raw.get('code', '')}){''.join(calls)}"
