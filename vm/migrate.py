"""Moving an instance to a newer version of its flow: its state at a stage, version by version.

    move(state, versions, before) -> text     the state at the last of `versions`, or NotMoved

`state` is the plain form at a stage, or that of an instance which has passed no stage. At each
version the values are looked up by name, whatever they were: a variable may become a field.

- Where the stage's shape changed and the version has a migration that leaves the stage, it is run.
  It gives the stage of this version and the values of some of its names.
- What it did not give, or everything where nothing was run, is carried over: old JSON read into
  the new type, with what the types say of fields that are missing. A name that the new version
  does not have is dropped; a new field takes its initial value.
- The values are then written in the JSON of this version, which is what the next one finds.

Channels go over by name with what is in them, undos as they are: each names the version whose code
has its step. Pass, counters and what an instance knows of its life stay. Where run has passed no
stage, its arguments are carried over, and the fields have their initial values again.

A move is a function of the state and the versions, so it can be tried at any time (a dry run, a
rehearsal) and gives the same whenever it is done. A migration left over from an earlier version is
harmless: the shape of its stage has not changed, so it is not run.

An instance that a person resumes was on its stage's path when it stopped, so it is not taken to
another stage (F0103). All else that keeps a state from moving is R0017, with both shapes and the
line of the migration, or of the stage where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence

from qoqi.vm.bytecode.chunk import NO_FUNCTION, Chunk, MigrationDef, StageDef, Term
from qoqi.vm.effects import Operation
from qoqi.vm.failure import Failure, FlowError, TraceLine
from qoqi.vm.frames import Machine
from qoqi.vm.frozen import Part, SnapshotError
from qoqi.vm.interpreter import CallFailed, call, decode
from qoqi.vm.jsonform import json_text, parse_json, to_json, type_text
from qoqi.vm.keys import RUN
from qoqi.vm.program import Program
from qoqi.vm.snapshot import freeze, freeze_stage, start_state, thaw
from qoqi.vm.values import Time

Version = tuple[str, Program]
"""A version's hash and its program."""

START = "the start"


class NotMoved(Exception):
    """The state cannot go over; it is as it was. `failure` says where, with both shapes."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def move(
    state: str, versions: Sequence[Version], before: Program | None, *, resumed: bool = False
) -> str:
    """The state after each of the versions in turn, which follow the state's own, oldest first.

    `before` is the program of the state's own version; without it every migration that leaves the
    stage counts as one whose stage changed. `resumed`: a move to another stage is F0103.
    """
    raw = parse_json(state)
    if not isinstance(raw, dict) or not isinstance(raw.get("version"), str):
        raise SnapshotError("the frozen state names no version")
    if raw.get("stage") is None:
        return _move_start(state, versions, before)
    if "vars" not in raw:
        raise SnapshotError("an instance moves at a stage only, and this state stands behind one")
    for version in versions:
        raw = _step(raw, version, before, resumed)
        before = version[1]
    return json_text(raw)


def _step(
    raw: dict[str, object], version: Version, before: Program | None, resumed: bool
) -> dict[str, object]:
    """The plain state in the next version."""
    hash, program = version
    stage = str(raw["stage"])
    values = {**_object(raw, "vars"), **_object(raw, "fields")}
    old = str(raw["version"])[:12]
    if before is None:
        old = f"{stage}({', '.join(values)}) of version {old}"
    else:
        old = f"{_shape(before, _stage(before.chunk, stage))} of version {old}"
    move = _Move(old, stage, values, version, _now(raw))
    target, given = stage, dict[str, object]()
    migration = _leaving(program.chunk, stage)
    if migration is not None and not _same_shape(before, program, stage):
        target, given = move.migrate(migration)
    definition = _stage(program.chunk, target)
    if definition is None or (resumed and target != stage):
        raise NotMoved(move.gone(target))
    fresh = {**values, **given}
    wanted = [name for name, _, _ in definition.variables]
    slots = [slot.name for slot in program.chunk.flow_slots]
    channels = _object(raw, "channels")
    known = [one.name for one in program.chunk.channels]
    lost = [name for name in channels if name not in known and _holds(channels[name])]
    if lost:
        raise NotMoved(move.failed(f"channel {lost[0]} is gone, and it has values", definition))
    moved = {
        **raw,
        "version": hash,
        "stage": target,
        "vars": {name: fresh[name] for name in wanted if name in fresh},
        "fields": {name: fresh[name] for name in slots if name in fresh},
        "channels": {name: channels.get(name, {"items": [], "closed": False}) for name in known},
    }
    try:
        text = freeze_stage(thaw(json_text(moved), program), program)
    except SnapshotError as misfit:
        raise NotMoved(move.failed(_misfit(str(misfit)), definition, migration)) from None
    carried = parse_json(text)
    assert isinstance(carried, dict)
    return carried


def _object(raw: dict[str, object], name: str) -> dict[str, object]:
    found = raw.get(name)
    if not isinstance(found, dict):
        raise SnapshotError(f"state.{name}: expected an object")
    return found


def _now(raw: dict[str, object]) -> int:
    return Part(raw, "state").member("life").member("now").integer()


def _holds(channel: object) -> bool:
    return isinstance(channel, dict) and bool(channel.get("items"))


def _leaving(chunk: Chunk, stage: str) -> MigrationDef | None:
    return next((one for one in chunk.migrations if one.stage == stage), None)


def _misfit(text: str) -> str:
    """What a thaw says, without the words for where it looked."""
    for part in ("state.vars.", "state.fields.", "state."):
        text = text.removeprefix(part)
    return text.removeprefix("vars: ").removeprefix("fields: ")


class _Move:
    """One state on its way into one version: what a migration does there, what a failure says."""

    __slots__ = ("now", "old", "program", "stage", "values", "version")

    def __init__(
        self, old: str, stage: str, values: dict[str, object], version: Version, now: int
    ) -> None:
        """`old` is where it comes from, in words; `values` are all it has, as JSON by name."""
        self.old = old
        self.stage = stage
        self.values = values
        self.version, self.program = version
        self.now = now

    def migrate(self, migration: MigrationDef) -> tuple[str, dict[str, object]]:
        """The stage it becomes, and what it gives as JSON by name."""
        program = self.program
        try:
            args = [self.argument(one.name, one.type, one.default) for one in migration.params]
            value = call(program, migration.function, args, (), self._answer)
        except CallFailed as failed:
            raise NotMoved(self._failure(failed.message, failed.failure.trace)) from None
        except FlowError as misfit:
            line = _line(program, migration.function, 0)
            raise NotMoved(self._failure(misfit.message, (line,))) from None
        assert isinstance(value, tuple)
        stage, given = value
        assert isinstance(stage, str) and isinstance(given, dict)
        return stage, {str(name): to_json(one) for name, one in given.items()}

    def argument(self, name: str, term: Term, default: int) -> object:
        if name in self.values:
            try:
                return decode(self.program, self.values[name], term)
            except FlowError as misfit:
                raise FlowError("R0004", f"{name}: {misfit.message}") from None
        if default != NO_FUNCTION:
            return self.program.default(default)
        raise FlowError("R0004", f"{name} is missing")

    def _answer(self, operation: Operation) -> object:
        assert operation.name == "flow.now", operation.name
        return Time(self.now)

    def at_start(self, why: str) -> Failure:
        return self._failure(why, (_line(self.program, self.program.chunk.run, 0),))

    def failed(self, why: str, target: StageDef, migration: MigrationDef | None = None) -> Failure:
        """What was carried over does not fit: the line is the migration's, else the stage's."""
        program = self.program
        if migration is not None:
            line = _line(program, migration.function, 0)
        else:
            line = _line(program, program.chunk.run, target.entry - 1)
        return self._failure(why, (line,), target)

    def _failure(
        self, why: str, trace: tuple[TraceLine, ...], target: StageDef | None = None
    ) -> Failure:
        new = "" if target is None else f"{_shape(self.program, target)} of "
        message = (
            f"{self.program.chunk.flow} does not go over from {self.old} to {new}version "
            f"{self.version[:12]}: {why}"
        )
        return Failure("R0017", message, trace)

    def gone(self, target: str) -> Failure:
        chunk = self.program.chunk
        stages = ", ".join(dict.fromkeys(one.name for one in chunk.stages)) or "none"
        if target != self.stage:
            what = f"makes it {target} by a migration"
        else:
            what = f"has no such stage (it has: {stages})"
        message = (
            f"it stands at {self.old}, and version {self.version[:12]} {what}; what was done since "
            "that stage was done on its path, so it cannot go on there: pin its version and resume "
            "it in that, or cancel it"
        )
        migration = _leaving(chunk, self.stage)
        function = chunk.run if migration is None else migration.function
        return Failure("F0103", message, (_line(self.program, function, 0),))


def _stage(chunk: Chunk, name: str) -> StageDef | None:
    return next((one for one in chunk.stages if one.name == name), None)


def _shape(program: Program, stage: StageDef | None) -> str:
    """A stage with the names and types of what is kept at it; without one, of the parameters."""
    if stage is None:
        given = [slot for slot in program.chunk.flow_slots if slot.parameter]
        shown = ", ".join(f"{one.name}: {type_text(one.type, program.types)}" for one in given)
        return f"{START}({shown})"
    parts = [(name, term) for name, _, term in stage.variables]
    parts += [(slot.name, slot.type) for slot in program.chunk.flow_slots]
    shown = ", ".join(f"{name}: {type_text(term, program.types)}" for name, term in parts)
    return f"{stage.name}({shown})"


def _line(program: Program, function: int, pc: int) -> TraceLine:
    """The line of an instruction, or the first the function has."""
    name = program.chunk.functions[function].name
    if program.debug is None:
        return TraceLine(name, "", 0)
    debug = program.debug.functions[function]
    line = debug.lines[0][1] if debug.lines else 0
    for at, number in debug.lines:
        if at > pc:
            break
        line = number
    return TraceLine(name, debug.file, line)


# -- an instance that has passed no stage --------------------------------------------------------


def _move_start(state: str, versions: Sequence[Version], before: Program | None) -> str:
    """Its arguments go over by name; all else is as a start in the last version makes it."""
    if not versions:
        return state
    if before is None:
        raise SnapshotError("the version of a state at its start is needed to read it")
    machine = thaw(state, before)
    task = machine.tasks.get(RUN)
    if task is None or len(machine.tasks) != 1 or len(task.frames) != 1 or task.frames[0].pc:
        raise SnapshotError("an instance moves at a stage only, and this one is on its way")
    values = {
        slot.name: to_json(value)
        for slot, value in zip(before.chunk.flow_slots, machine.flow_slots, strict=True)
        if slot.parameter
    }
    old, args = before, list[object]()
    for version in versions:
        hash, program = version
        came = f"{_shape(old, None)} of version {machine.version[:12]}"
        move = _Move(came, START, values, version, task.now)
        slots = [slot for slot in program.chunk.flow_slots if slot.parameter]
        try:
            args = [move.argument(slot.name, slot.type, slot.default) for slot in slots]
        except FlowError as misfit:
            raise NotMoved(move.at_start(misfit.message)) from None
        values = {slot.name: to_json(one) for slot, one in zip(slots, args, strict=True)}
        old, machine.version = program, hash
    hash, program = versions[-1]
    started = start_state(program, machine.id, machine.birth, hash, args, task.now)
    return freeze(_with_life(started, machine), program)


def _with_life(fresh: Machine, old: Machine) -> Machine:
    fresh.pass_number = old.pass_number
    fresh.undo_count, fresh.undos = old.undo_count, old.undos
    fresh.undos_at_stop = old.undos_at_stop
    fresh.given, fresh.started = old.given, old.started
    fresh.cancels, fresh.refuses = old.cancels, old.refuses
    return fresh


# -- shapes --------------------------------------------------------------------------------------


def _same_shape(before: Program | None, after: Program, stage: str) -> bool:
    """Whether a stage has the same variables, parameters and fields, of the same types, in both."""
    if before is None:
        return False
    old, new = _shape_of(before.chunk, stage), _shape_of(after.chunk, stage)
    return old is not None and old == new


def _shape_of(chunk: Chunk, stage: str) -> tuple[object, object] | None:
    """Names and types of a stage, and what each declared type in them looks like."""
    found = _stage(chunk, stage)
    if found is None:
        return None
    parts = {name: term for name, _, term in found.variables}
    parts.update({slot.name: slot.type for slot in chunk.flow_slots})
    declared: dict[str, object] = {}
    return {name: _named(chunk, term, declared) for name, term in parts.items()}, declared


def _named(chunk: Chunk, term: Term, declared: dict[str, object]) -> object:
    """The term with the names of declared types in place of their numbers, which may differ."""
    if not isinstance(term, tuple):
        return term
    head, *args = term
    if head not in ("struct", "enum"):
        return (head, *(_named(chunk, one, declared) for one in args))
    index, *args = args
    assert isinstance(index, int)
    definition = chunk.types[index]
    if definition.name not in declared:
        declared[definition.name] = None  # it may name itself
        variants = definition.variants
        groups = [("", definition.fields or ())]
        if variants is not None:
            groups = [(one.json_name, one.fields) for one in variants]
        declared[definition.name] = [
            (
                name,
                [(one.json_name, _named(chunk, one.type, declared)) for one in fields],
            )
            for name, fields in groups
        ]
    return (head, definition.name, *(_named(chunk, one, declared) for one in args))
