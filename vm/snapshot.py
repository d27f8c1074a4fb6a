"""Frozen instances: format `qoqi.flow/1`, a machine as JSON text and back.

    freeze(machine, program) -> text        thaw(text, program) -> machine
    freeze_stage(machine, program) -> text  the plain form, or SnapshotError
    start_state(program, …) -> machine      what an instance is before it first moves
    state_at_stage(machine, …) -> text      the plain form of one at a stage, by names and JSON

Two forms. Where run is alone and stands right behind a stage, the state is plain JSON a person can
read: the stage's variables, parameters and fields by name, in the JSON form of their types:

    {"format", "version", "pass", "stage", "life": {…}, "vars": {…}, "fields": {…},
     "channels": {name: {"items", "closed"}}, "undo": […], "counts": {…}}

Anywhere else it is the whole machine, tasks and frames, its values in the tagged form of `frozen`:

    {"format", "version", "pass", "stage", "life": {…}, "tasks": […], "fields": […],
     "channels": […], "undo": […]}

Both ways are exact: `freeze(thaw(text)) == text` for each text that freeze gave, byte for byte, and
nothing depends on the order of a hash. `thaw` trusts nothing: a text that is cut off, of another
format or version, or with a number that the program has no place for (function, pc, slot, depth of
the stack, type, case) is a `SnapshotError` that says what is wrong, and nothing is half thawed.

Instructions spent since the last wait (R0007) are not kept: a thawed task counts anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from qoqi.vm.bytecode.chunk import NO_FUNCTION, StageDef, Term
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.effects import Case, Operation
from qoqi.vm.failure import Failure, FlowError, TraceLine
from qoqi.vm.frames import (
    AtOperation,
    AtStep,
    AtWait,
    Channel,
    Frame,
    Machine,
    Task,
    UndoEntry,
)
from qoqi.vm.frozen import Part, SnapshotError, freeze_value, thaw_value
from qoqi.vm.interpreter import call, decode
from qoqi.vm.jsonform import json_text, parse_json, to_json
from qoqi.vm.program import Program
from qoqi.vm.values import UNSET, Time

FORMAT: Final = "qoqi.flow/1"
RUN: Final = "0"


def start_state(
    program: Program,
    id: str,
    birth: str,
    version: str,
    args: Sequence[object],
    now: int,
) -> Machine:
    """An instance before it first moves: run at its first instruction, fields initialised."""
    chunk = program.chunk
    parameters = sum(slot.parameter for slot in chunk.flow_slots)
    if len(args) != parameters:
        raise SnapshotError(f"{chunk.flow} takes {parameters} arguments, was given {len(args)}")
    slots = [*args, *[UNSET] * (len(chunk.flow_slots) - parameters)]
    machine = Machine(id, birth, version, flow_slots=slots)

    def answer(operation: Operation) -> object:
        if operation.name == "flow.now":
            return Time(now)
        raise SnapshotError(f"the initial value of a field asked for {operation.name}")

    fields = call(program, chunk.fields_init, (), slots, answer)
    if not isinstance(fields, tuple) or len(fields) != len(slots) - parameters:
        raise SnapshotError(f"{chunk.flow} gives its fields wrong initial values")
    slots[parameters:] = fields
    run = chunk.functions[chunk.run]
    machine.tasks[RUN] = Task(RUN, [Frame(chunk.run, 0, [UNSET] * run.slots)], now)
    machine.channels = [Channel() for _ in chunk.channels]
    return machine


# --- freeze -----------------------------------------------------------------------------------


_HEAD: Final = re.compile(r'\{"format":"[^"\\]+","version":"([^"\\]+)"')


def version_of(text: str) -> str:
    """The version a frozen state says it is of, whose bytecode thaws it.

    What `freeze` wrote begins with it, so the rest is not read twice; any other text is read whole.
    """
    head = _HEAD.match(text)
    if head is not None:
        return head[1]
    try:
        raw = parse_json(text)
    except FlowError as damage:
        raise SnapshotError(f"the frozen state cannot be read: {damage.message}") from None
    if not isinstance(raw, dict) or not isinstance(raw.get("version"), str):
        raise SnapshotError("the frozen state names no version")
    return str(raw["version"])


def freeze(machine: Machine, program: Program) -> str:
    """The machine as text; FlowError R0008 for a value nested too deep or of too many parts."""
    stage = _stage_of(machine, program)
    if stage is not None:
        return freeze_stage(machine, program)
    alone = len(machine.tasks) == 1
    tasks = [
        json_text(_task(task)) if alone else _task_text(task) for task in machine.tasks.values()
    ]
    rest = json_text(
        {
            "fields": [freeze_value(value) for value in machine.flow_slots],
            "channels": [
                {"items": [freeze_value(item) for item in channel.items], "closed": channel.closed}
                for channel in machine.channels
            ],
            "undo": [_undo(entry) for entry in machine.undos],
        }
    )
    return f'{json_text(_head(machine))[:-1]},"tasks":[{",".join(tasks)}],{rest[1:]}'


def _task_text(task: Task) -> str:
    """The text of one task of several, made again only if it has moved since.

    A task moves by being given what it stopped at, and stops then at something new. What stands in
    its frames is nobody else's: values are never changed in place where another could see it.
    """
    at = task.at
    tries = at.attempt if isinstance(at, AtStep) else 0
    still: object = at if at is not None else ("cancelled" if task.cancelled else "ended")
    known = task.text
    stopped = at is not None or task.ended
    if known is not None and stopped and known[0] is still and known[1] == tries:
        return known[2]
    text = json_text(_task(task))
    task.text = (still, tries, text) if stopped else None
    return text


def freeze_stage(machine: Machine, program: Program) -> str:
    """The machine in the plain form; SnapshotError unless run is alone, right behind a stage."""
    return frozen_stage(machine, program)()


def frozen_stage(machine: Machine, program: Program) -> Callable[[], str]:
    """`freeze_stage` of this moment, whose text is made when it is asked for.

    A turn may pass thousands of stages before a write, which keeps the last of them. What waits in
    the channels is not gone through until then: nothing changes a message, it only comes and goes.
    """
    stage = _stage_of(machine, program, messages=False)
    if stage is None:
        raise SnapshotError("run is not alone, right behind a stage")
    plain = _plain(machine, program, stage)
    channels = [
        (definition.name, [*channel.items], channel.closed)
        for definition, channel in zip(program.chunk.channels, machine.channels, strict=True)
    ]

    def text() -> str:
        if not all(_is_message(item) for _, items, _ in channels for item in items):
            raise SnapshotError("a channel holds what is no message")
        plain["channels"] = _plain_channels(channels)
        return json_text(plain)

    return text


def state_at_stage(
    machine: Machine, now: int, values: dict[str, object], channels: Sequence[str]
) -> str:
    """The plain form of an instance that stands at `machine.stage` of any version, by its names.

    `values` are the stage's variables, the parameters and the fields, as JSON. It is made for
    `migrate.move`, which looks all of them up by name.
    """
    head = _head(machine)
    life = head["life"]
    assert isinstance(life, dict)
    life["now"] = now
    empty: dict[str, object] = {"items": [], "closed": False}
    return json_text(
        {
            **head,
            "vars": values,
            "fields": {},
            "channels": {name: empty for name in channels},
            "undo": [],
            "counts": {},
        }
    )


def _stage_of(machine: Machine, program: Program, *, messages: bool = True) -> StageDef | None:
    """The stage behind which run stands alone, with nothing that plain JSON could not hold."""
    task = machine.tasks.get(RUN)
    if len(machine.tasks) != 1 or task is None or machine.returned or len(task.frames) != 1:
        return None
    if task.ended or task.cancelled or task.group or task.at is not None:
        return None
    frame = task.frames[0]
    for stage in program.chunk.stages:
        if stage.name == machine.stage and stage.entry == frame.pc and not frame.stack:
            break
    else:
        return None
    if frame.function != program.chunk.run:
        return None
    named = {slot for _, slot, _ in stage.variables}
    for number, value in enumerate(frame.slots):
        if (value is UNSET) == (number in named):
            return None
    if any(value is UNSET for value in machine.flow_slots):
        return None
    if messages and not all(
        _is_message(item) for channel in machine.channels for item in channel.items
    ):
        return None
    return stage


def _is_message(item: object) -> bool:
    """Whether it is what the turn keeps in a channel: a value, when it came, its number."""
    return (
        isinstance(item, tuple) and len(item) == 3 and type(item[1]) is int and type(item[2]) is int
    )


def _head(machine: Machine) -> dict[str, object]:
    return {
        "format": FORMAT,
        "version": machine.version,
        "pass": machine.pass_number,
        "stage": machine.stage,
        "life": {
            "id": machine.id,
            "birth": machine.birth,
            "given": machine.given,
            "started": machine.started,
            "undos": machine.undo_count,
            "cancels": [*machine.cancels],
            "refuses": machine.refuses,
            "returned": machine.returned,
            **_at_stop(machine),
        },
    }


def _at_stop(machine: Machine) -> dict[str, object]:
    """Only of an instance that a person resumed, until its replay has caught up."""
    if not machine.undos_at_stop:
        return {}
    return {"undosAtStop": [_undo(entry) for entry in machine.undos_at_stop]}


def _plain(machine: Machine, program: Program, stage: StageDef) -> dict[str, object]:
    task = machine.tasks[RUN]
    slots = task.frames[0].slots
    chunk = program.chunk
    head = _head(machine)
    life = head["life"]
    assert isinstance(life, dict)
    life["now"] = task.now
    return {
        **head,
        "vars": {name: to_json(slots[slot]) for name, slot, _ in stage.variables},
        "fields": {
            slot.name: to_json(value)
            for slot, value in zip(chunk.flow_slots, machine.flow_slots, strict=True)
        },
        "channels": {},  # see frozen_stage
        "undo": [_undo(entry) for entry in machine.undos],
        "counts": dict(task.counts),
    }


def _plain_channels(channels: list[tuple[str, list[object], bool]]) -> dict[str, object]:
    return {
        name: {"items": [_plain_message(item) for item in items], "closed": closed}
        for name, items, closed in channels
    }


def _plain_message(item: object) -> dict[str, object]:
    assert isinstance(item, tuple)
    value, at, seq = item
    return {"value": to_json(value), "at": at, "seq": seq}


def _task(task: Task) -> dict[str, object]:
    frozen: dict[str, object] = {
        "name": task.name,
        "now": task.now,
        "frames": [
            {
                "fn": frame.function,
                "pc": frame.pc,
                "slots": [freeze_value(value) for value in frame.slots],
                "stack": [freeze_value(value) for value in frame.stack],
            }
            for frame in task.frames
        ],
        "at": _at(task.at),
        "counts": dict(task.counts),
    }
    if task.group:
        frozen["group"] = task.group
    if task.ended:
        frozen["ended"] = True
    if task.cancelled:
        frozen["cancelled"] = True
    if task.value is not None:
        frozen["value"] = freeze_value(task.value)
    if task.failure is not None:
        frozen["failure"] = {
            "code": task.failure.code,
            "message": task.failure.message,
            "trace": [[line.function, line.file, line.line] for line in task.failure.trace],
        }
    return frozen


def _at(at: AtStep | AtWait | AtOperation | None) -> dict[str, object] | None:
    match at:
        case None:
            return None
        case AtStep():
            return {
                "kind": "step",
                "step": at.step,
                "key": at.key,
                "args": [freeze_value(arg) for arg in at.args],
                "attempt": at.attempt,
                "asked": at.asked,
            }
        case AtWait():
            return {
                "kind": "wait",
                "key": at.key,
                "cases": [freeze_value(case) for case in at.cases],
                "times": [[number, moment] for number, moment in at.times.items()],
                "since": at.since,
                "asked": at.asked,
            }
        case AtOperation():
            return {
                "kind": "operation",
                "name": at.name,
                "key": at.key,
                "args": [freeze_value(arg) for arg in at.args],
                "asked": at.asked,
            }


def _undo(entry: UndoEntry) -> dict[str, object]:
    return {
        "number": entry.number,
        "version": entry.version,
        "target": entry.target,
        "args": entry.args,
        "final": entry.final,
        "key": entry.key,
    }


# --- thaw -------------------------------------------------------------------------------------


def thaw(text: str, program: Program, version: str | None = None) -> Machine:
    """The machine of this text, to run on this program; SnapshotError if it does not fit.

    With `version`, a text of another version is refused.
    """
    try:
        state = Part(parse_json(text), "state")
        if not isinstance(state.raw, dict) or state.raw.get("format") != FORMAT:
            raise SnapshotError(f"this is no frozen state of format {FORMAT}")
        return _thaw(state, program, version)
    except FlowError as error:
        raise SnapshotError(f"the frozen state cannot be read: {error.message}") from None
    except RecursionError:
        raise SnapshotError("the frozen state is nested too deep") from None


def _thaw(state: Part, program: Program, version: str | None) -> Machine:
    life = state.member("life")
    machine = Machine(
        life.member("id").text(),
        life.member("birth").text(),
        state.member("version").text(),
        state.member("pass").count(),
        state.member("stage").optional_text(),
        undo_count=life.member("undos").count(),
        given=life.member("given").count(),
        cancels=[cancel.text() for cancel in life.member("cancels").items()],
        refuses=life.member("refuses").optional_text(),
        returned=life.member("returned").boolean(),
        started=life.member("started").count(),
    )
    if life.has("undosAtStop"):
        machine.undos_at_stop = [_thaw_undo(entry) for entry in life.member("undosAtStop").items()]
    if version is not None and machine.version != version:
        raise SnapshotError(f"the frozen state is of version {machine.version}, not {version}")
    machine.undos = [_thaw_undo(entry) for entry in state.member("undo").items()]
    if state.has("tasks"):
        _thaw_tasks(state, program, machine)
    else:
        _thaw_plain(state, program, machine)
    return machine


def _thaw_undo(part: Part) -> UndoEntry:
    return UndoEntry(
        part.member("number").count(),
        part.member("version").text(),
        part.member("target").text(),
        part.member("args").text(),
        part.member("final").boolean(),
        part.member("key").text(),
    )


def _thaw_tasks(state: Part, program: Program, machine: Machine) -> None:
    chunk = program.chunk
    fields = state.member("fields").items(len(chunk.flow_slots))
    machine.flow_slots = [thaw_value(field, program) for field in fields]
    for part in state.member("channels").items(len(chunk.channels)):
        items = [thaw_value(item, program) for item in part.member("items").items()]
        machine.channels.append(Channel(items, part.member("closed").boolean()))
    for part in state.member("tasks").items():
        task = _thaw_task(part, program)
        if task.name in machine.tasks:
            raise part.wrong(f"task {task.name} stands twice")
        machine.tasks[task.name] = task


def _thaw_task(part: Part, program: Program) -> Task:
    task = Task(
        part.member("name").text(),
        [],
        part.member("now").integer(),
        _thaw_at(part.member("at"), program),
        {name: count.count() for name, count in part.member("counts").members()},
    )
    if part.has("group"):
        task.group = part.member("group").text()
    task.ended = part.has("ended") and part.member("ended").boolean()
    task.cancelled = part.has("cancelled") and part.member("cancelled").boolean()
    if part.has("value"):
        task.value = thaw_value(part.member("value"), program)
    if part.has("failure"):
        task.failure = _thaw_failure(part.member("failure"))
    frames = part.member("frames").items()
    task.frames = [
        _thaw_frame(frame, program, task, last=at == len(frames) - 1)
        for at, frame in enumerate(frames)
    ]
    if not frames and not task.ended and not task.cancelled:
        raise part.wrong("a task that has not ended has no frames")
    return task


def _thaw_frame(part: Part, program: Program, task: Task, last: bool) -> Frame:
    function = part.member("fn").below(len(program.chunk.functions))
    pc = part.member("pc").below(len(program.code[function]))
    slots = part.member("slots").items(program.chunk.functions[function].slots)
    stack = part.member("stack").items()
    frame = Frame(
        function,
        pc,
        [thaw_value(slot, program) for slot in slots],
        [thaw_value(value, program) for value in stack],
    )
    expected = program.depths[function][pc]
    before = _before(program, frame)
    if not last:
        if before not in _CALLS:
            raise part.wrong(f"no call stands before pc {pc}")
        expected -= _CALLS[before]
    elif task.at is not None:
        if before not in _ASKS:
            raise part.wrong(f"nothing that waits stands before pc {pc}")
        expected -= _ASKS[before]
    elif before in _ASKS and len(stack) == expected - _ASKS[before]:
        return frame  # stopped by what it asked for: it is kept to be seen, and cannot go on
    if expected < 0 or len(stack) != expected:
        raise part.wrong(f"{len(stack)} values on the stack, not {expected}")
    return frame


# How many values an instruction that has begun will push when it is over.
_CALLS: Final[dict[Op | None, int]] = {Op.CALL: 1, Op.CALL_VALUE: 1, Op.CALL_MUTATING: 2}
_ASKS: Final[dict[Op | None, int]] = {Op.STEP: 1, Op.OPERATION: 1, Op.WAIT: 2}


def _before(program: Program, frame: Frame) -> Op | None:
    """The instruction before the frame's pc: the one that is under way."""
    if frame.pc == 0:
        return None
    return Op(program.chunk.functions[frame.function].code[frame.pc - 1][0])


def _thaw_failure(part: Part) -> Failure:
    lines = []
    for line in part.member("trace").items():
        function, file, number = line.items(3)
        lines.append(TraceLine(function.text(), file.text(), number.count()))
    return Failure(part.member("code").text(), part.member("message").text(), tuple(lines))


def _thaw_at(part: Part, program: Program) -> AtStep | AtWait | AtOperation | None:
    if part.raw is None:
        return None
    kind, key = part.member("kind").text(), part.member("key").text()
    asked = part.member("asked").text()
    if kind == "wait":
        cases = [thaw_value(case, program) for case in part.member("cases").items()]
        times: dict[int, int] = {}
        for pair in part.member("times").items():
            number, moment = pair.items(2)
            times[number.count()] = moment.integer()
        known = tuple(case for case in cases if isinstance(case, Case))
        if len(known) != len(cases):
            raise part.wrong("a wait for something that is no case")
        return AtWait(key, known, times, part.member("since").integer(), asked)
    args = tuple(thaw_value(arg, program) for arg in part.member("args").items())
    if kind == "step":
        step = part.member("step").below(len(program.chunk.steps))
        return AtStep(step, key, args, part.member("attempt").count(), asked)
    if kind == "operation":
        return AtOperation(part.member("name").text(), key, args, asked)
    raise part.wrong(f"a task is at a {kind[:20]!r}, which is nothing it can be at")


def _thaw_plain(state: Part, program: Program, machine: Machine) -> None:
    chunk = program.chunk
    for stage in chunk.stages:
        if stage.name == machine.stage:
            break
    else:
        raise state.wrong(f"{chunk.flow} has no stage {machine.stage}")
    slots: list[object] = [UNSET] * chunk.functions[chunk.run].slots
    values = _Named(state.member("vars"), program)
    for name, slot, term in stage.variables:
        slots[slot] = values.read(name, term)
    values.finish()
    now = state.member("life").member("now").integer()
    machine.flow_slots = _thaw_fields(state.member("fields"), program, now)
    for definition in chunk.channels:
        channel = state.member("channels").member(definition.name)
        items: list[object] = []
        for item in channel.member("items").items():
            value = _decode(item.member("value"), program, definition.type)
            items.append((value, item.member("at").integer(), item.member("seq").count()))
        machine.channels.append(Channel(items, channel.member("closed").boolean()))
    counts = {name: count.count() for name, count in state.member("counts").members()}
    frame = Frame(chunk.run, stage.entry, slots)
    machine.tasks[RUN] = Task(RUN, [frame], now, None, counts)


def _thaw_fields(part: Part, program: Program, now: int) -> list[object]:
    """Parameters and fields; one the state lacks has its initial value, over those above it."""
    slots: list[object] = [UNSET] * len(program.chunk.flow_slots)

    def answer(operation: Operation) -> object:
        if operation.name == "flow.now":
            return Time(now)
        raise part.wrong(f"the initial value of a field asked for {operation.name}")

    values = _Named(part, program)
    for number, slot in enumerate(program.chunk.flow_slots):
        if slot.default == NO_FUNCTION or values.has(slot.name):
            slots[number] = values.read(slot.name, slot.type)
        else:
            slots[number] = call(program, slot.default, (), slots, answer)
    values.finish()
    return slots


def _decode(part: Part, program: Program, term: Term) -> object:
    try:
        return decode(program, part.raw, term)
    except FlowError as error:
        raise part.wrong(error.message) from None


class _Named:
    """Values by name, each of which is read once."""

    __slots__ = ("left", "part", "program")

    def __init__(self, part: Part, program: Program) -> None:
        self.part = part
        self.program = program
        self.left = dict(part.members())

    def has(self, name: str) -> bool:
        return name in self.left

    def read(self, name: str, term: Term) -> object:
        """The value; None of an optional type where there is none."""
        found = self.left.pop(name, None)
        if found is not None:
            return _decode(found, self.program, term)
        if isinstance(term, tuple) and term[0] == "enum" and isinstance(term[1], int):
            types = self.program.types
            if types.at(term[1]) is types.option:
                return types.none()
        raise self.part.wrong(f"{name} is missing")

    def finish(self) -> None:
        for name in self.left:
            raise self.part.wrong(f"{name[:40]} is nothing that is kept here")
