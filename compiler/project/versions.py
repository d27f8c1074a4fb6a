"""A flow against its last deployed version: what instances of that one need to go on in this one.

An instance moves to a new version at a stage. There its JSON (the stage's variables, the
parameters, the fields) must read into the new shape by itself, or a migration must leave that stage
(F0007, F0010). A migration must fit the stage it leaves, and what it does not give must carry over
(F0008); one whose stage did not change is left over, and is not run (W0121). Channels keep their
numbers and their messages must still read (F0013). An undo kept by an instance runs in the version
that registered it, so a step that is gone is only a warning (W0120).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, error, warning
from qoqi.compiler.names.symbols import FlowSymbol
from qoqi.compiler.project.lockfile import LockedChannel, LockedStage, LockedVersion
from qoqi.compiler.project.shapes import (
    Comparison,
    Part,
    Types,
    describe_types,
    parse,
    part_of,
    type_text,
)
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.vm.bytecode.chunk import NO_FUNCTION, Chunk, FlowSlot, MigrationDef, StepDef, Term
from qoqi.vm.dataclass import dataclass


def describe(chunk: Chunk, hash_: str, undos: tuple[str, ...]) -> LockedVersion:
    """What flow.lock keeps of a version; `previous` and `deployed` are the lock's business."""
    slots = [(slot, _slot_part(chunk, slot)) for slot in chunk.flow_slots]
    terms: list[Term] = [slot.type for slot in chunk.flow_slots]
    terms += [type_ for stage in chunk.stages for _, _, type_ in stage.variables]
    terms += [channel.type for channel in chunk.channels]
    terms += [channel.answers for channel in chunk.channels if channel.answers is not None]
    return LockedVersion(
        hash=hash_,
        previous=None,
        deployed=False,
        params=tuple(part for slot, part in slots if slot.parameter),
        fields=tuple(part for slot, part in slots if not slot.parameter),
        channels=tuple(
            LockedChannel(
                channel.name,
                type_text(chunk, channel.type),
                None if channel.answers is None else type_text(chunk, channel.answers),
            )
            for channel in chunk.channels
        ),
        stages=tuple(_stages(chunk)),
        steps=tuple(_signature(chunk, step) for step in chunk.steps),
        undos=undos,
        types=describe_types(chunk, terms),
    )


def _slot_part(chunk: Chunk, slot: FlowSlot) -> Part:
    return Part(slot.name, type_text(chunk, slot.type), slot.default != NO_FUNCTION)


def _stages(chunk: Chunk) -> Iterator[LockedStage]:
    """One per name: a stage that stands twice after inlining has one shape."""
    seen: set[str] = set()
    for stage in chunk.stages:
        if stage.name not in seen:
            seen.add(stage.name)
            variables = tuple(
                Part(name, type_text(chunk, type_)) for name, _, type_ in stage.variables
            )
            yield LockedStage(stage.name, variables)


def _signature(chunk: Chunk, step: StepDef) -> str:
    params = ", ".join(str(part_of(chunk, one)) for one in step.params)
    return f"{step.name}({params}) -> {type_text(chunk, step.result)}"


def channel_numbers(base: LockedVersion | None, names: list[str]) -> dict[str, int]:
    """The number of each channel: the locked one, and the next ones for what is new.

    A locked channel that is gone (F0013) leaves no gap: there is no chunk in the end.
    """
    locked = [channel.name for channel in base.channels] if base else []
    known = [name for name in locked if name in names]
    ordered = [*known, *(name for name in names if name not in known)]
    return {name: number for number, name in enumerate(ordered)}


# -- what instances of the base need -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Change:
    """Two versions of a flow, and where the new one stands."""

    file: str
    flow: FlowSymbol
    chunk: Chunk
    base: LockedVersion
    new: LockedVersion

    @property
    def comparison(self) -> Comparison:
        return Comparison(self.base.types, self.new.types)

    @property
    def migrations(self) -> list[tuple[MigrationDef, ast.MigrateDecl]]:
        declared = [m for m in self.flow.decl.members if isinstance(m, ast.MigrateDecl)]
        return list(zip(self.chunk.migrations, declared, strict=True))

    @property
    def name(self) -> Span:
        return self.flow.decl.name.span


def compare(
    file: str, flow: FlowSymbol, chunk: Chunk, base: LockedVersion, new: LockedVersion
) -> list[Diagnostic]:
    """What is owed to the instances of `base`; `file` is the path of the flow's module."""
    change = _Change(file, flow, chunk, base, new)
    return [
        *_channels(change),
        *_stage_shapes(change),
        *_migrations(change),
        *_undo_steps(change),
    ]


def _channels(change: _Change) -> Iterator[Diagnostic]:
    declared = {
        member.name.name: member
        for member in change.flow.decl.members
        if isinstance(member, ast.ChannelDecl)
    }
    now = {channel.name: channel for channel in change.new.channels}
    for old in change.base.channels:
        channel = now.get(old.name)
        if channel is None:
            yield error(
                "F0013",
                change.file,
                change.name,
                f"channel `{old.name}` of the deployed version is gone",
                notes=[
                    "Messages sent to it would be lost. Keep the channel, and let the flow take "
                    "from it what still comes."
                ],
            )
        elif not _same_channel(change.comparison, old, channel):
            was = _channel_text(old)
            yield error(
                "F0013",
                change.file,
                declared[old.name].name.span,
                f"channel `{old.name}` was {was} in the deployed version, "
                f"and that does not read as {_channel_text(channel)}",
                notes=["Keep its type, or add a second channel for the new messages."],
            )


def _same_channel(comparison: Comparison, old: LockedChannel, new: LockedChannel) -> bool:
    """Whether messages on their way read as the new type, and askers read the new answers."""
    if not comparison.reads(parse(old.type), parse(new.type)):
        return False
    if old.answers is None or new.answers is None:
        return old.answers == new.answers
    back = Comparison(comparison.new, comparison.old)
    return back.reads(parse(new.answers), parse(old.answers))


def _channel_text(channel: LockedChannel) -> str:
    answers = "" if channel.answers is None else f" answers {channel.answers}"
    return f"`{channel.type}{answers}`"


def _stage_shapes(change: _Change) -> Iterator[Diagnostic]:
    statements = _stage_statements(change.flow.decl)
    now = {stage.name: stage for stage in change.new.stages}
    leaving = {migration.stage for migration, _ in change.migrations}
    for old in change.base.stages:
        if old.name in leaving:
            continue
        stage = now.get(old.name)
        if stage is None:
            yield error(
                "F0010",
                change.file,
                change.name,
                f"stage `{old.name}` of the deployed version is gone, and no migration leaves it",
                notes=[_write_migration(change, old)],
                fixes=_migration_fixes(change, old, _successor(change)),
            )
            continue
        misfits = _misfits(change, old, stage, {})
        if misfits:
            yield error(
                "F0007",
                change.file,
                statements[old.name].span,
                f"the shape of stage `{old.name}` changed: {'; '.join(misfits)}",
                notes=[_write_migration(change, old)],
                fixes=_migration_fixes(change, old, stage),
            )


def _misfits(
    change: _Change, old: LockedStage, new: LockedStage, given: Mapping[str, Span]
) -> list[str]:
    """What an instance at `old` lacks for `new`, in words; `given` is what a migration gives."""
    before = {part.name: part for part in _whole(change.base, old)}
    problems: list[str] = []
    for part in _whole(change.new, new):
        if part.name in given:
            continue
        was = before.get(part.name)
        if change.comparison.part(was, part):
            continue
        if was is None:
            problems.append(f"`{part.name}: {part.type}` is new and has no default")
        elif was.type == part.type:
            problems.append(f"`{part.name}`: {_different_type(change, part)}")
        else:
            problems.append(f"`{part.name}` was `{was.type}` and is `{part.type}`")
    return problems


def _whole(version: LockedVersion, stage: LockedStage) -> tuple[Part, ...]:
    return (*stage.variables, *version.params, *version.fields)


def _different_type(change: _Change, part: Part) -> str:
    """Which declared type makes a part differ whose text is the same."""
    for name in _declared_in(part.type, change.new.types):
        if change.base.types.get(name) != change.new.types.get(name):
            return f"`{name}` is declared otherwise than it was"
    return f"a type that `{part.type}` names is declared otherwise than it was"


def _declared_in(text: str, types: Types) -> list[str]:
    found: list[str] = []
    pending = [text]
    while pending:
        current = pending.pop()
        for name in sorted(types):
            if name in current and name not in found:
                found.append(name)
                pending.extend(types[name])
    return found


def _write_migration(change: _Change, old: LockedStage) -> str:
    params = ", ".join(f"{part.name}: {part.type}" for part in old.variables)
    return (
        f"Instances stand at `{old.name}` with its old variables: write a migration "
        f"`migrate {old.name}({params}) {{ become … }}` that leaves it."
    )


def _successor(change: _Change) -> LockedStage | None:
    """The stage that stands in for one that is gone: the only one that is new, or the only one."""
    known = {stage.name for stage in change.base.stages}
    new = [stage for stage in change.new.stages if stage.name not in known]
    if len(new) == 1:
        return new[0]
    return change.new.stages[0] if len(change.new.stages) == 1 else None


def _migration_fixes(change: _Change, old: LockedStage, to: LockedStage | None) -> list[Fix]:
    """The migration, written at the end of the flow.

    A value that is new is taken from the variable that is gone, if one alone is; where nothing can
    be taken its own name stands there, so that the build asks for it and nothing wrong is deployed.
    """
    if to is None:
        return []
    before = {part.name: part for part in _whole(change.base, old)}
    after = {part.name: part for part in _whole(change.new, to)}
    wanted = [
        part for part in after.values() if not change.comparison.part(before.get(part.name), part)
    ]
    gone = [name for name in before if name not in after]
    sources = {
        part.name: gone[0] if len(gone) == 1 and part.name not in before else part.name
        for part in wanted
    }
    taken = [name for name in dict.fromkeys(sources.values()) if name in before]
    module = change.flow.module
    params = ", ".join(f"{name}: {_as_written(before[name].type, module)}" for name in taken)
    given = ", ".join(f"{name}: {source}" for name, source in sources.items())
    target = f"{to.name}({given})" if given else to.name
    text = f"\n    migrate {old.name}({params}) {{\n        become {target}\n    }}\n"
    end = change.flow.decl.span.end - 1
    edit = Edit(change.file, Span(end, end), text)
    return [Fix(f"Write the migration of `{old.name}`", (edit,))]


def _as_written(type_: str, module: str) -> str:
    """A type of the lock as the flow's own module names it."""
    return re.sub(rf"\b{re.escape(module)}\.(?=[A-Z])", "", type_)


def _stage_statements(flow: ast.FlowDecl) -> dict[str, ast.StageStmt]:
    found: dict[str, ast.StageStmt] = {}
    for node in _nodes(flow):
        if isinstance(node, ast.StageStmt):
            found.setdefault(node.name.name, node)
    return found


def _nodes(root: ast.Node) -> Iterator[ast.Node]:
    yield root
    for child in ast.children(root):
        yield from _nodes(child)


# -- migrations ----------------------------------------------------------------------------------


def _migrations(change: _Change) -> Iterator[Diagnostic]:
    old_stages = {stage.name: stage for stage in change.base.stages}
    for migration, decl in change.migrations:
        old = old_stages.get(migration.stage)
        if old is None:
            yield _no_such_stage(change, decl, list(old_stages))
            continue
        yield from _parameters(change, old, migration, decl)
        yield from _becomes(change, old, decl)
        if _unchanged(change, old):
            yield _not_run(change, decl)


def _unchanged(change: _Change, old: LockedStage) -> bool:
    """Whether a stage has the same names and types, and these look the same, in both versions."""
    stage = next((each for each in change.new.stages if each.name == old.name), None)
    if stage is None:
        return False
    before = {part.name: part.type for part in _whole(change.base, old)}
    after = {part.name: part.type for part in _whole(change.new, stage)}
    return before == after and all(
        change.base.types.get(name) == change.new.types.get(name)
        for type_ in after.values()
        for name in _declared_in(type_, change.new.types)
    )


def _not_run(change: _Change, decl: ast.MigrateDecl) -> Diagnostic:
    return warning(
        "W0121",
        change.file,
        decl.name.span,
        f"this migration is not run: stage `{decl.name.name}` is as the deployed version has it",
        notes=["A stage keeps its instances where its shape is the same. Remove the migration."],
        fixes=[Fix("Remove the migration", (Edit(change.file, decl.span, ""),))],
    )


def _no_such_stage(change: _Change, decl: ast.MigrateDecl, names: list[str]) -> Diagnostic:
    name = decl.name.name
    near = get_close_matches(name, names, 1)
    remove = Fix("Remove the migration", (Edit(change.file, decl.span, ""),))
    rename = [
        Fix(f"Change it to `{each}`", (Edit(change.file, decl.name.span, each),)) for each in near
    ]
    return error(
        "F0008",
        change.file,
        decl.name.span,
        f"the deployed version has no stage `{name}`",
        notes=[
            f"Its stages are {', '.join(f'`{each}`' for each in names)}."
            if names
            else "It has no stages.",
            "A migration leaves a stage of the version before this one. One that was deployed has "
            "done its work and can be removed.",
        ],
        fixes=[*rename, remove],
    )


def _parameters(
    change: _Change, old: LockedStage, migration: MigrationDef, decl: ast.MigrateDecl
) -> Iterator[Diagnostic]:
    before = {part.name: part for part in _whole(change.base, old)}
    types = describe_types(change.chunk, [one.type for one in migration.params])
    comparison = Comparison(change.base.types, types)
    for definition, parameter in zip(migration.params, decl.params, strict=True):
        name = definition.name
        was = before.get(name)
        text = type_text(change.chunk, definition.type)
        if was is None:
            yield error(
                "F0008",
                change.file,
                parameter.span,
                f"stage `{old.name}` of the deployed version keeps no `{name}`",
                notes=[f"It keeps {', '.join(f'`{each}`' for each in before) or 'nothing'}."],
            )
        elif not comparison.reads(parse(was.type), parse(text)):
            yield error(
                "F0008",
                change.file,
                parameter.span,
                f"`{name}` was `{was.type}` at stage `{old.name}` of the deployed version, "
                f"and that does not read as `{text}`",
                notes=[
                    "Give the parameter its old type. If that type has changed, declare the old "
                    "one again under another name."
                ],
            )


def _becomes(change: _Change, old: LockedStage, decl: ast.MigrateDecl) -> Iterator[Diagnostic]:
    now = {stage.name: stage for stage in change.new.stages}
    for node in _nodes(decl.body):
        if not isinstance(node, ast.BecomeStmt) or node.stage.name not in now:
            continue
        given = {_given_name(argument): argument.span for argument in node.args}
        misfits = _misfits(change, old, now[node.stage.name], given)
        if misfits:
            yield error(
                "F0008",
                change.file,
                node.stage.span,
                f"what `become {node.stage.name}` does not give does not carry over: "
                f"{'; '.join(misfits)}",
                notes=["Give it: `become stage(name: value)`."],
            )


def _given_name(argument: ast.Arg) -> str:
    if argument.name is not None:
        return argument.name.name
    return argument.value.name if isinstance(argument.value, ast.Name) else ""


def _undo_steps(change: _Change) -> Iterator[Diagnostic]:
    known = {step.name for step in change.chunk.steps}
    for name in change.base.undos:
        if name not in known:
            yield warning(
                "W0120",
                change.file,
                change.name,
                f"`{name}`, which undoes in the deployed version, is gone",
                notes=[
                    "Undos that instances have registered still run, in that version's code. Its "
                    "supervisor or service must go on answering."
                ],
            )
