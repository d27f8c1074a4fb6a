"""Rows as people and programs see them: the records of `wire`, made of rows and states.

Nothing here writes or decides. A state that cannot be read (another format, a damaged text, a
version that is gone) is shown without its variables and with the reason as `note`: a listing never
fails because of one instance.
"""

from __future__ import annotations

from collections.abc import Iterable

from qoqi.runtime.api import wire
from qoqi.runtime.model import InstanceRow, LedgerRow, Standing, VersionRow
from qoqi.runtime.programs import NoVersion, Programs
from qoqi.runtime.store.protocol import Life
from qoqi.vm.bytecode.chunk import NO_FUNCTION, FlowSlot
from qoqi.vm.effects import Operation
from qoqi.vm.failure import FlowError
from qoqi.vm.frames import Machine
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import WORDS, Attempt
from qoqi.vm.interpreter import call
from qoqi.vm.jsonform import parse_json, to_json, type_text
from qoqi.vm.keys import RUN
from qoqi.vm.program import Program
from qoqi.vm.snapshot import thaw
from qoqi.vm.values import UNSET, Closure, RequestValue, TaskValue, Time


def data(text: str | None) -> object:
    """JSON text as data; a text that is none is shown as it is."""
    if text is None:
        return None
    try:
        return parse_json(text)
    except FlowError:
        return text


def stopped_by(text: str | None) -> tuple[str | None, tuple[wire.CallItem, ...]]:
    """Why an instance stopped, and the calls that were under way."""
    raw = data(text)
    if not isinstance(raw, dict):
        return text, ()
    message = raw.get("message", text)
    calls = raw.get("trace")
    return str(message), tuple(
        wire.CallItem(str(call[0]), str(call[1]), call[2])
        for call in (calls if isinstance(calls, list) else [])
    )


def _reason(cancel: str | None) -> str | None:
    raw = data(cancel)
    return str(raw["reason"]) if isinstance(raw, dict) and "reason" in raw else cancel


def instance(row: InstanceRow, holds: tuple[str, ...] = ()) -> wire.InstanceView:
    return wire.InstanceView(
        name=row.id,
        birth=row.birth,
        flow=row.flow,
        version=row.version,
        parent=row.parent,
        status=str(row.status),
        phase=str(row.phase),
        paused=bool(row.paused),
        stage=row.stage,
        since=row.since,
        created=row.created,
        stopped_by=stopped_by(row.stopped_by)[0],
        error_code=row.error_code,
        cancel=_reason(row.cancel),
        held_by=row.lease_owner,
        holds=holds,
    )


def ledger(rows: Iterable[LedgerRow]) -> tuple[wire.LedgerItem, ...]:
    return tuple(_ledger_item(row) for row in rows)


def _ledger_item(row: LedgerRow) -> wire.LedgerItem:
    detail = data(row.detail)
    shown = detail if isinstance(detail, dict) else {"detail": detail}
    return wire.LedgerItem(row.seq, row.instance, row.at, row.kind, shown, row.actor)


def version(row: VersionRow) -> wire.VersionView:
    size = len(row.bytecode)
    return wire.VersionView(row.hash, row.flow, row.previous, row.deployed_at, size)


async def life(
    found: Life, channels: Iterable[tuple[int, str, int, int, bool, bool]], programs: Programs
) -> wire.LifeView:
    row = found.row
    names = {number: name for number, name, *_ in channels}
    note = row.note
    variables: tuple[wire.VariableView, ...] = ()
    undos: tuple[wire.UndoItem, ...] = ()
    inside: set[int] = set()
    try:
        program = await programs.get(row.version)
        machine = thaw(row.state, program)
    except (NoVersion, SnapshotError, FlowError) as damage:
        note = f"its state cannot be shown: {damage}"
    else:
        variables = tuple(_variables(program, machine, row.stage))
        undos = tuple(
            wire.UndoItem(undo.number, undo.target, data(undo.args), undo.final)
            for undo in machine.undos
        )
        inside = set(_inside(machine))
    return wire.LifeView(
        instance=instance(row),
        args=data(row.args),
        result=data(row.result),
        calls=stopped_by(row.stopped_by)[1],
        variables=variables,
        waits=tuple(
            wire.WaitItem(
                wait.task,
                wait.case,
                wait.kind,
                None if wait.channel is None else names.get(wait.channel, str(wait.channel)),
                wait.other,
                wait.left,
                wait.at,
            )
            for wait in found.waits
        ),
        attempts=tuple(_attempt(one) for one in found.attempts),
        undos=undos,
        messages=tuple(
            wire.MessageItem(
                one.seq,
                names.get(one.channel, str(one.channel)),
                one.key,
                data(one.value),
                one.at,
            )
            for one in found.messages
            if one.taken is None or one.seq in inside
        ),
        children=tuple(instance(child) for child in found.children),
        ledger=ledger(found.ledger),
        note=note,
    )


def look(program: Program, state: str, name: str, now: int) -> object:
    """What a view gives; KeyError if there is none, FlowError for its mistake."""
    view = {one.name: one for one in program.chunk.views}[name]
    machine = thaw(state, program)

    def answer(asked: Operation) -> object:
        if asked.name != "time.now":
            raise FlowError("R0001", f"a view cannot use {asked.name}")
        return Time(now)

    return to_json(call(program, view.function, (), machine.flow_slots, answer))


def _attempt(one: Attempt) -> wire.AttemptItem:
    word = one.result in WORDS
    outcome = "open" if one.result is None else one.result if word else "answer"
    failure = data(one.failure)
    said = f"{failure['code']}: {failure['message']}" if isinstance(failure, dict) else one.failure
    return wire.AttemptItem(
        key=one.key,
        attempt=one.attempt,
        step=one.step,
        asked=data(one.asked),
        outcome=outcome,
        answer=data(one.otherwise) if word else data(one.result),
        late=data(one.late),
        failure=said,
        settled=bool(one.settled),
        owner=one.owner,
        started=one.started,
        ended=one.ended,
        until=one.until,
        given=one.given_at,
    )


def _inside(machine: Machine) -> Iterable[int]:
    """The messages that were taken into a channel and that nobody has received."""
    for channel in machine.channels:
        for item in channel.items:
            if isinstance(item, tuple) and len(item) == 3 and isinstance(item[2], int):
                yield item[2]


def _variables(
    program: Program, machine: Machine, stage: str | None
) -> Iterable[wire.VariableView]:
    """run's variables by name (those of its stage, and locals where the debug table names them)."""
    chunk = program.chunk
    run = machine.tasks.get(RUN)
    if run is not None and run.frames:
        frame = run.frames[0]
        names: dict[int, str] = {}
        if program.debug is not None:
            names = dict(enumerate(program.debug.functions[frame.function].slots))
        for passed in chunk.stages:
            if passed.name == stage:
                names.update({slot: name for name, slot, _ in passed.variables})
        for slot, name in sorted(names.items()):
            if name and slot < len(frame.slots) and _shown(frame.slots[slot]):
                yield wire.VariableView(name, "variable", to_json(frame.slots[slot]))
    for definition, value in zip(chunk.flow_slots, machine.flow_slots, strict=False):
        if _shown(value):
            kind = "parameter" if definition.parameter else "field"
            yield wire.VariableView(definition.name, kind, to_json(value))


def _shown(value: object) -> bool:
    """Whether a value is data: tasks, closures and requests live in an instance's state only."""
    if isinstance(value, tuple | list):
        return all(map(_shown, value))
    return value is not UNSET and not isinstance(value, Closure | TaskValue | RequestValue)


def flow(
    program: Program,
    hash: str,
    versions: Iterable[VersionRow],
    standing: Iterable[Standing],
) -> wire.FlowView:
    chunk, types = program.chunk, program.types

    def typed(slots: Iterable[FlowSlot]) -> tuple[wire.FieldView, ...]:
        return tuple(wire.FieldView(slot.name, type_text(slot.type, types)) for slot in slots)

    return wire.FlowView(
        flow=chunk.flow,
        newest=hash,
        params=typed(slot for slot in chunk.flow_slots if slot.parameter),
        fields=typed(slot for slot in chunk.flow_slots if not slot.parameter),
        result=type_text(chunk.result, types),
        listens=chunk.listens,
        channels=tuple(
            wire.ChannelView(
                channel.name,
                type_text(channel.type, types),
                channel.capacity,
                channel.inside,
                None if channel.answers is None else type_text(channel.answers, types),
            )
            for channel in chunk.channels
        ),
        stages=tuple(
            wire.StageView(
                stage.name,
                tuple(
                    wire.FieldView(name, type_text(term, types))
                    for name, _, term in stage.variables
                ),
            )
            for stage in chunk.stages
        ),
        steps=tuple(
            wire.StepView(
                step.name,
                tuple(wire.FieldView(one.name, type_text(one.type, types)) for one in step.params),
                type_text(step.result, types),
                step.body == NO_FUNCTION,
                step.within,
                step.tries,
                chunk.steps[step.undo].name if step.undo >= 0 else None,
            )
            for step in chunk.steps
        ),
        views=tuple(wire.FieldView(one.name, type_text(one.result, types)) for one in chunk.views),
        versions=tuple(version(row) for row in versions),
        standing=tuple(
            wire.StandingItem(version, stage, count)
            for (version, stage), count in _by_stage(standing, chunk.flow).items()
        ),
    )


def _by_stage(standing: Iterable[Standing], flow: str) -> dict[tuple[str, str | None], int]:
    counts: dict[tuple[str, str | None], int] = {}
    for one in standing:
        if one.flow == flow:
            mark = (one.version, one.stage)
            counts[mark] = counts.get(mark, 0) + one.instances
    return counts
