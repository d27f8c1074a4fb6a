"""A chunk as text: for `qoqi build --dump`, for people, and for the tests of the emitter.

One line an instruction: pc, name, operand, and what the operand stands for. Line numbers stand in
the margin where they change, if there is a debug table. The text depends on the chunk alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.vm.bytecode.chunk import (
    NO_FUNCTION,
    Chunk,
    Debug,
    FieldDef,
    Function,
    Place,
    StepDef,
    Term,
)
from qoqi.vm.bytecode.opcodes import OPCODES, Op, Operand, WaitKind


def disassemble(chunk: Chunk, debug: Debug | None = None) -> str:
    """The chunk as text, with a newline at its end."""
    return "\n".join(_chunk_lines(chunk, debug)) + "\n"


def disassemble_function(chunk: Chunk, number: int, debug: Debug | None = None) -> str:
    return "\n".join(_function_lines(chunk, number, debug)) + "\n"


def term_text(chunk: Chunk, term: Term) -> str:
    """A type term, readable: `List<main.Claim>`."""
    if not isinstance(term, tuple):
        return str(term)
    if not term:
        return "?"
    head, parts = term[0], term[1:]
    if head in ("struct", "enum") and parts and isinstance(parts[0], int):
        known = 0 <= parts[0] < len(chunk.types)
        head = chunk.types[parts[0]].name if known else f"type {parts[0]}"
        parts = parts[1:]
    if head == "param":
        return f"T{parts[0]}"
    shown = ", ".join(term_text(chunk, part) for part in parts)
    if head == "Tuple" or not isinstance(head, str):
        return f"({shown})"
    return f"{head}<{shown}>" if parts else head


def _chunk_lines(chunk: Chunk, debug: Debug | None) -> Iterator[str]:
    listens = " listens" if chunk.listens else ""
    keep = f" keep {chunk.keep}ms" if chunk.keep else ""
    yield f"flow {chunk.flow} -> {term_text(chunk, chunk.result)}{listens}{keep}"
    for number, slot in enumerate(chunk.flow_slots):
        kind = "parameter" if slot.parameter else "field"
        yield f"  {kind} {number} {slot.name}: {term_text(chunk, slot.type)}"
    for number, channel in enumerate(chunk.channels):
        answers = "" if channel.answers is None else f" answers {term_text(chunk, channel.answers)}"
        inside = " inside" if channel.inside else ""
        of = term_text(chunk, channel.type) + answers
        yield f"  channel {number} {channel.name}: {of} capacity {channel.capacity}{inside}"
    for number, stage in enumerate(chunk.stages):
        shown = ", ".join(
            f"{name}@{slot}: {term_text(chunk, term)}" for name, slot, term in stage.variables
        )
        yield f"  stage {number} {stage.name}({shown}) at {stage.entry}"
    for number, step in enumerate(chunk.steps):
        yield f"  step {number} {_step_text(chunk, step)}"
    for view in chunk.views:
        of = term_text(chunk, view.result)
        yield f"  view {view.name} -> {of} = {_name(chunk, view.function)}"
    for peer in chunk.peers:
        names = ", ".join(name for name, _, _ in peer.channels)
        yield f"  peer {peer.flow}({names}) -> {term_text(chunk, peer.result)}"
    for migration in chunk.migrations:
        params = _fields_text(chunk, migration.params)
        yield f"  migrate {migration.stage}({params}) = {_name(chunk, migration.function)}"
    for number, definition in enumerate(chunk.types):
        params = f"<{', '.join(f'T{at}' for at in range(definition.params))}>"
        name = definition.name + (params if definition.params else "")
        if definition.fields is not None:
            yield f"  struct {number} {name} {{ {_fields_text(chunk, definition.fields)} }}"
        else:
            shown = ", ".join(
                variant.name
                + (f"({_fields_text(chunk, variant.fields)})" if variant.fields else "")
                for variant in definition.variants or ()
            )
            yield f"  enum {number} {name} {{ {shown} }}"
    for number in range(len(chunk.functions)):
        yield ""
        yield from _function_lines(chunk, number, debug)


def _step_text(chunk: Chunk, step: StepDef) -> str:
    words = [f"{step.name}({_fields_text(chunk, step.params)}) -> {term_text(chunk, step.result)}"]
    if step.settled:
        words.append("settled")
    words.append(f"within {step.within}ms")
    if step.tries:
        words.append("forever" if step.tries < 0 else f"tries {step.tries}")
    for word, number in (
        ("for", step.tries_for),
        ("backoff", step.backoff),
        ("to", step.backoff_most),
        ("beat", step.beat),
    ):
        if number:
            words.append(f"{word} {number}ms")
    words += [f"limit {n} per {per}ms" if per else f"limit {n}" for n, per in step.limits]
    if step.undo >= 0:
        words.append(f"undo {step.undo}")
    for word, function in (
        ("body", step.body),
        ("else", step.otherwise),
        ("queue", step.queue),
        ("undo_args", step.undo_args),
    ):
        if function != NO_FUNCTION:
            words.append(f"{word} {_name(chunk, function)}")
    return " ".join(words)


def _fields_text(chunk: Chunk, fields: tuple[FieldDef, ...]) -> str:
    return ", ".join(_field_text(chunk, field) for field in fields)


def _field_text(chunk: Chunk, field: FieldDef) -> str:
    json_name = "" if field.json_name == field.name else f' as "{field.json_name}"'
    default = "" if field.default == NO_FUNCTION else f" = {_name(chunk, field.default)}"
    return f"{field.name}: {term_text(chunk, field.type)}{json_name}{default}"


def _name(chunk: Chunk, function: int) -> str:
    known = 0 <= function < len(chunk.functions)
    return f"{chunk.functions[function].name}#{function}" if known else f"function {function}"


def _function_lines(chunk: Chunk, number: int, debug: Debug | None) -> Iterator[str]:
    function = chunk.functions[number]
    yield f"function {number} {function.name}: {function.params} of {function.slots} slots"
    lines: dict[int, int] = {}
    names: tuple[str, ...] = ()
    if debug is not None and number < len(debug.functions):
        lines = dict(debug.functions[number].lines)
        names = debug.functions[number].slots
    for pc, (op, operand) in enumerate(function.code):
        margin = f"{lines[pc]:>5} " if pc in lines else " " * 6 if lines else "  "
        yield f"{margin}{pc:>4}  {_instruction(chunk, function, names, op, operand)}".rstrip()


def _instruction(
    chunk: Chunk, function: Function, names: tuple[str, ...], number: int, operand: int
) -> str:
    try:
        op = Op(number)
    except ValueError:
        return f"? {number} {operand}"
    kind = OPCODES[op].operand
    if kind is Operand.NONE:
        return op.name
    try:
        meaning = _meaning(chunk, function, names, kind, operand)
    except (IndexError, ValueError):  # a chunk that does not verify can still be shown
        meaning = "out of range"
    return f"{op.name:<16} {operand:<5} {meaning}"


def _meaning(
    chunk: Chunk, function: Function, names: tuple[str, ...], kind: Operand, operand: int
) -> str:
    match kind:
        case Operand.CONSTANT:
            return repr(chunk.constants[operand])
        case Operand.SLOT:
            return names[operand] if operand < len(names) else ""
        case Operand.FLOW_SLOT:
            return chunk.flow_slots[operand].name
        case Operand.PLACE:
            return _place_text(chunk, function.places[operand], names)
        case Operand.STRUCT:
            return chunk.types[operand].name
        case Operand.VARIANT:
            type_number, index = chunk.variants[operand]
            definition = chunk.types[type_number]
            return f"{definition.name}.{(definition.variants or ())[index].name}"
        case Operand.FUNCTION:
            return chunk.functions[operand].name
        case Operand.CLOSURE:
            target, captured = chunk.closures[operand]
            return f"{_name(chunk, target)} captures {captured}"
        case Operand.NATIVE:
            return "{}/{}".format(*chunk.natives[operand])
        case Operand.MUTATION:
            native, count, place = function.mutations[operand]
            return f"{native}/{count} of {_place_text(chunk, function.places[place], names)}"
        case Operand.OPERATION:
            return "{}/{}".format(*chunk.operations[operand])
        case Operand.STEP:
            return chunk.steps[operand].name
        case Operand.SWITCH:
            return " ".join(str(pc) for pc in function.switches[operand])
        case Operand.STAGE:
            return chunk.stages[operand].name
        case Operand.WAIT_CASE:
            return f"case {operand // 16} {WaitKind(operand % 16).name}"
        case Operand.TERM:
            return term_text(chunk, chunk.terms[operand])
        case _:
            return ""


def _place_text(chunk: Chunk, place: Place, names: tuple[str, ...]) -> str:
    def local(slot: int) -> str:
        return names[slot] if slot < len(names) and names[slot] else f"slot{slot}"

    text = chunk.flow_slots[place.root].name if place.flow else local(place.root)
    for kind, number in place.steps:
        text += f"[{local(number)}]" if kind == "slot" else f".{kind}{number}"
    return text
