"""The tools of tests, as operations: handles, the clock, what left, views.

Each answers with JSON that is read into the type the call wants, or with a handle. Every call
returns when nothing more can happen at that instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qoqi.runtime import people
from qoqi.runtime.model import ENDED, InstanceRow, Status
from qoqi.runtime.programs import positional
from qoqi.runtime.simulation.world import Leaving, Simulation
from qoqi.runtime.testing.givens import Givens, TestFailed
from qoqi.vm.dataclass import dataclass
from qoqi.vm.effects import Operation
from qoqi.vm.failure import FlowError
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import CancelTold, Told
from qoqi.vm.interpreter import call
from qoqi.vm.jsonform import from_json, json_text, parse_json, to_json
from qoqi.vm.migrate import NotMoved
from qoqi.vm.program import Program
from qoqi.vm.snapshot import thaw
from qoqi.vm.values import Duration, InstanceValue, TermValue, Time

Tool = Callable[["Tools", tuple[object, ...]], object]


@dataclass(frozen=True, slots=True)
class VersionBefore:
    """A deployed version of a flow. `stages` are the names of what is kept at each: its variables,
    the parameters and the fields."""

    hash: str
    stages: Mapping[str, frozenset[str]]
    channels: tuple[str, ...]


class Tools:
    """What a test sees of its world, and does to it. `before` are the versions `at` starts in."""

    def __init__(
        self,
        world: Simulation,
        program: Program,
        givens: Givens,
        before: Mapping[str, VersionBefore],
    ) -> None:
        self.world = world
        self.program = program
        self.givens = givens
        self.before = before
        self.started = False

    def answer(self, asked: Operation) -> object:
        """The value of an operation of the test's own program."""
        name, args = asked.name, asked.args
        if name == "test.given":
            self.givens.say(args)
            return ()
        handler = _HANDLES.get(name)
        if handler is not None:
            return handler(self, args)
        tool = _TOOLS.get(name)
        if tool is None:
            raise TestFailed(f"{name} cannot be used in a test")
        *given, term = args
        assert isinstance(term, TermValue)
        raw = tool(self, tuple(given))
        return from_json(raw, term, self.program.types, self.program.default)

    def left(self) -> list[Leaving]:
        return self.world.departures()

    def row(self, handle: object) -> InstanceRow:
        assert isinstance(handle, InstanceValue)
        try:
            return self.world.row(handle.name)
        except KeyError:
            raise TestFailed(f"{handle.name} does not exist any more") from None

    def waits(self, row: InstanceRow) -> list[str]:
        """What an instance waits for, in words."""
        life = self.world.outside.life(row.id)
        assert life is not None
        channels = [one.name for one in self.world.program(row.version).chunk.channels]
        words = [people.wait_words(wait, channels) for wait in life.waits]
        words += [
            f"{attempt.step} to answer"
            for attempt in life.attempts
            if attempt.result is None and attempt.step
        ]
        return words


def _start(tools: Tools, args: tuple[object, ...]) -> object:
    flow, name, values = args
    assert isinstance(flow, str) and isinstance(name, str) and isinstance(values, tuple)
    program = tools.world.program(tools.world.newest[flow])
    read = positional(program, [to_json(value) for value in values])
    if not people.fits_name(name):
        raise TestFailed(f"{name!r} is no name for an instance")
    outcome = tools.world.start(flow, name, read)
    if outcome.row.flow != flow:
        raise TestFailed(f"the name {name} is taken by an instance of {outcome.row.flow}")
    tools.started = True
    return InstanceValue(flow, name, outcome.row.birth)


def _find(tools: Tools, args: tuple[object, ...]) -> object:
    flow, name = args
    assert isinstance(flow, str) and isinstance(name, str)
    row = tools.world.outside.instance(name)
    if row is None or row.flow != flow:
        there = ", ".join(one.id for one in tools.world.rows() if one.flow == flow) or "none"
        raise TestFailed(f"no instance of {flow} is named {name}; there are: {there}")
    return InstanceValue(flow, name, row.birth)


def _at(tools: Tools, args: tuple[object, ...]) -> object:
    """Starts an instance at a stage of the version before this one: it goes over by migration."""
    flow, name, stage, json = args
    assert isinstance(flow, str) and isinstance(name, str) and isinstance(stage, str)
    before = tools.before.get(flow)
    if before is None:
        raise TestFailed(
            f"`at` starts at a stage of the deployed version, and flow.lock has none of {flow}"
        )
    kept = before.stages.get(stage)
    if kept is None:
        known = ", ".join(before.stages) or "none"
        raise TestFailed(f"version {before.hash[:12]} has no stage {stage}; it has: {known}")
    values = to_json(json)
    if not isinstance(values, dict):
        raise TestFailed(f"what is kept at a stage is an object, not {json_text(values)}")
    strange = [one for one in values if one not in kept]
    if strange:
        known = ", ".join(sorted(kept))
        raise TestFailed(f"stage {stage} keeps no {strange[0]}; it keeps: {known}")
    if not people.fits_name(name):
        raise TestFailed(f"{name!r} is no name for an instance")
    try:
        outcome = tools.world.start_at(flow, name, before.hash, stage, values, before.channels)
    except (NotMoved, SnapshotError) as stays:
        raise TestFailed(str(stays)) from None
    if not outcome.created:
        raise TestFailed(f"the name {name} is taken")
    tools.started = True
    return InstanceValue(flow, name, outcome.row.birth)


_HANDLES: dict[str, Tool] = {"test.start": _start, "test.find": _find, "test.at": _at}


# -- one instance ------------------------------------------------------------------------------


def _result(tools: Tools, args: tuple[object, ...]) -> object:
    row = tools.row(args[0])
    if row.status not in ENDED:
        if row.status is Status.STOPPED:
            raise TestFailed(f"{row.id} is stopped: {people.stopped_message(row)}")
        waits = "; ".join(tools.waits(row)) or "nothing"
        raise TestFailed(f"{row.id} has not ended; it waits for: {waits}")
    raw = parse_json(row.result or "null")
    if row.status is Status.FAILED:
        assert isinstance(raw, dict)
        return {"Err": {"reason": raw.get("reason", "")}}
    return {"Ok": raw}


def _undos(tools: Tools, args: tuple[object, ...]) -> object:
    row = tools.row(args[0])
    machine = thaw(row.state, tools.world.program(row.version))
    return [entry.target for entry in reversed(machine.undos)]


def _cancel(tools: Tools, args: tuple[object, ...]) -> object:
    handle, why = args
    assert isinstance(handle, InstanceValue) and isinstance(why, str)
    outcome = tools.world.cancel(handle.name, why)
    if outcome == "ok":
        return {"Ok": None}
    if outcome == "ended":
        return {"Err": "Ended"}
    return {"Err": {"Refused": {"why": outcome.removeprefix("refused: ")}}}


def _pause(tools: Tools, args: tuple[object, ...]) -> object:
    row = tools.row(args[0])
    tools.world.outside.pause(row.id, tools.world.now, "test")
    tools.world.tell(row.id, CancelTold())
    tools.world.settle()
    return None


def _resume(tools: Tools, args: tuple[object, ...]) -> object:
    row = tools.row(args[0])
    world = tools.world
    refused = people.resume(world.outside, world.program, row, world.now, "test")
    if refused is not None:
        raise TestFailed(f"{row.id} cannot be resumed: {refused}")
    world.settle()
    return None


def _end(tools: Tools, args: tuple[object, ...]) -> object:
    row = tools.row(args[0])
    world = tools.world
    asked = world.outside.end(row.id, "the test", world.now, world.settings.keep, "test")
    if asked.outcome != "ok":
        raise TestFailed(f"{row.id} cannot be ended: {asked.outcome} {asked.text}")
    for other, _ in asked.woken:
        world.tell(other, Told(row.id))
        world.tell(other, CancelTold())
    world.settle()
    return None


def _answer(tools: Tools, args: tuple[object, ...]) -> object:
    handle, value = args
    row = tools.row(handle)
    world = tools.world
    refused = people.answer(world.outside, world.program, row, to_json(value), world.now, "test")
    if refused is not None:
        raise TestFailed(f"{row.id} takes no such answer: {refused}")
    world.settle()
    return None


def _send(tools: Tools, args: tuple[object, ...]) -> object:
    handle, channel, value, *key = args
    assert isinstance(handle, InstanceValue) and isinstance(channel, str)
    outcome = tools.world.send(handle.name, channel, value, _key(key))
    return {"Ok": outcome} if outcome in ("Delivered", "Already") else {"Err": outcome}


def _must_send(tools: Tools, args: tuple[object, ...]) -> object:
    raw = _send(tools, args)
    assert isinstance(raw, dict)
    if "Err" in raw:
        row = tools.row(args[0])
        raise TestFailed(f"the send to {row.id}.{args[1]} was refused: {raw['Err']}")
    return raw


def _key(given: list[object]) -> str | None:
    key = given[0] if given else None
    payload = getattr(key, "payload", None)
    if payload is not None:
        key = payload[0] if payload else None
    assert key is None or isinstance(key, str)
    return key


def _ask(tools: Tools, args: tuple[object, ...]) -> object:
    handle, channel, value, *key = args
    assert isinstance(handle, InstanceValue) and isinstance(channel, str)
    world = tools.world
    sent = world.outside.send(
        handle.name, channel, _key(key), json_text(to_json(value)), None, world.now
    )
    world.tell(handle.name, Told())
    world.settle()
    if sent.outcome not in ("Delivered", "Already"):
        return {"Err": sent.outcome}
    answer = world.outside.answer(sent.seq) if sent.seq is not None else None
    if answer is None:
        waits = "; ".join(tools.waits(tools.row(handle))) or "nothing"
        raise TestFailed(f"{handle.name} has not answered; it waits for: {waits}")
    return {"Ok": parse_json(answer[1])} if answer[0] == "ok" else {"Err": "Ended"}


def _view(tools: Tools, args: tuple[object, ...]) -> object:
    handle, name = args
    row = tools.row(handle)
    program = tools.world.program(row.version)
    machine = thaw(row.state, program)
    view = next(one for one in program.chunk.views if one.name == name)

    def answer(asked: Operation) -> object:
        if asked.name == "time.now":
            return Time(tools.world.now)
        raise FlowError("R0001", f"a view cannot use {asked.name}")

    return to_json(call(program, view.function, (), machine.flow_slots, answer))


# -- all of them -------------------------------------------------------------------------------


def _steps(tools: Tools, args: tuple[object, ...]) -> object:
    names = [step.step.rpartition(".")[2] for step in tools.left()]
    if args:
        handle = args[0]
        assert isinstance(handle, InstanceValue)
        return [
            step.step.rpartition(".")[2] for step in tools.left() if step.instance == handle.name
        ]
    return names


def _attempts(tools: Tools, args: tuple[object, ...]) -> object:
    return [
        {
            "step": step.step.rpartition(".")[2],
            "args": [to_json(value) for value in step.args],
            "attempt": step.attempt,
            "at": to_json(Time(step.at)),
            "instance": step.instance,
        }
        for step in tools.left()
    ]


def _calls(tools: Tools, args: tuple[object, ...]) -> object:
    found = []
    for step in tools.left():
        if tools.givens.qualified(step) == args[0]:
            raw = [to_json(value) for value in step.args]
            found.append(raw[0] if len(raw) == 1 else raw)
    return found


def _times(tools: Tools, args: tuple[object, ...]) -> object:
    return [
        to_json(Time(step.at)) for step in tools.left() if tools.givens.qualified(step) == args[0]
    ]


def _advance(tools: Tools, args: tuple[object, ...]) -> object:
    by = args[0]
    assert isinstance(by, Duration)
    if by.ms < 0:
        raise TestFailed("the clock goes forward only")
    tools.world.advance_to(tools.world.now + by.ms)
    return None


def _set(tools: Tools, args: tuple[object, ...]) -> object:
    to = args[0]
    assert isinstance(to, Time)
    if not tools.started:
        tools.world.now = to.ms
        return None
    if to.ms < tools.world.now:
        raise TestFailed("the clock goes forward only, once an instance was started")
    tools.world.advance_to(to.ms)
    return None


_TOOLS: dict[str, Tool] = {
    "test.result": _result,
    "test.status": lambda tools, args: tools.row(args[0]).status.value,
    "test.stage": lambda tools, args: tools.row(args[0]).stage,
    "test.stoppedBy": lambda tools, args: people.stopped_message(tools.row(args[0])),
    "test.waits": lambda tools, args: tools.waits(tools.row(args[0])),
    "test.undos": _undos,
    "test.steps": _steps,
    "test.cancel": _cancel,
    "test.pause": _pause,
    "test.resume": _resume,
    "test.end": _end,
    "test.answer": _answer,
    "test.send": _send,
    "test.send!": _must_send,
    "test.ask": _ask,
    "test.ask!": _ask,
    "test.view": _view,
    "test.allSteps": _steps,
    "test.attempts": _attempts,
    "test.calls": _calls,
    "test.times": _times,
    "test.clock.now": lambda tools, args: to_json(Time(tools.world.now)),
    "test.clock.advance": _advance,
    "test.clock.set": _set,
}
