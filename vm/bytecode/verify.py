"""Checks a chunk before the machine takes it: one that lies is refused, it cannot crash a daemon.

Every number is in the range of what it refers to; every type is well formed; the operand stack has
one depth at each pc, whatever way leads there, and never runs empty; code ends in an instruction
that goes nowhere else. `verify` gives those depths, one list per function with -1 at pcs that
nothing leads to: a thawed frame is held against them.

NEXT and the JUMP_IF_FALSE behind it are one instruction in two halves: nothing may jump between
them, and the item is on the stack only where the jump is not taken.

Types of values are the checker's business. Bytecode that mixes them up makes the interpreter raise
`MachineError`, with the place.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from qoqi.vm.bytecode.chunk import NO_FUNCTION, Chunk, FieldDef, Function, Term
from qoqi.vm.bytecode.codec import MAX_TERM_DEPTH, ChunkError
from qoqi.vm.bytecode.opcodes import OPCODES, WAIT_OPERANDS, Op, Operand, WaitKind

MAX_SLOTS: Final = 10_000
MAX_COUNT: Final = 1_000_000
_SCALARS: Final = frozenset(
    ["Bool", "Int", "Decimal", "Float", "String", "Bytes", "Duration", "Time", "Date", "Never"]
)
_ARITIES: Final = {"List": 1, "Set": 1, "Map": 2, "Range": 1, "Channel": 1, "Task": 1, "Request": 2}
_ENDS: Final = frozenset({Op.JUMP, Op.SWITCH, Op.RETURN, Op.RETURN_MUTATED, Op.FAIL})
_STEP_KINDS: Final = frozenset({"field", "item", "slot"})


def verify(chunk: Chunk) -> list[list[int]]:
    """The depth of the operand stack before each instruction; ChunkError for an unsound chunk."""
    _check_types(chunk)
    _check_tables(chunk)
    mutating = [_returns_self(function) for function in chunk.functions]
    depths = [
        _Flow(chunk, number, function, mutating).depths()
        for number, function in enumerate(chunk.functions)
    ]
    _check_stages(chunk, depths)
    return depths


def _require(holds: bool, problem: str) -> None:
    if not holds:
        raise ChunkError(problem)


# --- types and tables -------------------------------------------------------------------------


def _check_types(chunk: Chunk) -> None:
    for definition in chunk.types:
        name = definition.name
        _require(definition.params >= 0, f"type {name} has {definition.params} parameters")
        _require(
            (definition.fields is None) != (definition.variants is None),
            f"type {name} is neither a struct nor an enum",
        )
        for field in definition.fields or ():
            _check_field(chunk, field, definition.params, name)
        for variant in definition.variants or ():
            for field in variant.fields:
                _check_field(chunk, field, definition.params, name)
    for number, index in chunk.variants:
        _require(0 <= number < len(chunk.types), f"a variant of type {number}, which is not there")
        count = len(chunk.types[number].variants or ())
        _require(0 <= index < count, f"type {chunk.types[number].name} has no variant {index}")
    for term in chunk.terms:
        _check_term(chunk, term, 0, "a term")
    _check_term(chunk, chunk.result, 0, "the result")


def _check_field(chunk: Chunk, field: FieldDef, params: int, where: str) -> None:
    _check_term(chunk, field.type, params, f"{where}.{field.name}")
    _check_function(chunk, field.default, 0, f"the default of {where}.{field.name}")


def _check_term(chunk: Chunk, term: Term, params: int, where: str, depth: int = 0) -> None:
    _require(depth <= MAX_TERM_DEPTH, f"the type of {where} is nested too deep")
    if isinstance(term, str):
        _require(term in _SCALARS, f"the type of {where} is {term[:40]!r}, which is none")
        return
    _require(isinstance(term, tuple) and len(term) > 0, f"the type of {where} is malformed")
    assert isinstance(term, tuple) and term
    head = term[0]
    parts: tuple[Term, ...] = term[1:]
    problem = f"the type of {where}, a {head!r}, is malformed"
    if head in ("struct", "enum"):
        index = parts[0] if parts else None
        _require(isinstance(index, int) and 0 <= index < len(chunk.types), problem)
        assert isinstance(index, int)
        definition = chunk.types[index]
        _require((definition.fields is not None) == (head == "struct"), problem)
        _require(len(parts) - 1 == definition.params, problem)
        parts = parts[1:]
    elif head == "param":
        index = parts[0] if len(parts) == 1 else None
        _require(isinstance(index, int) and 0 <= index < params, problem)
        return
    elif head == "Instance":
        _require(len(parts) == 1 and isinstance(parts[0], str), problem)
        return
    elif head == "Fn":
        _require(len(parts) == 2 and isinstance(parts[0], tuple), problem)
        assert isinstance(parts[0], tuple)
        parts = (*parts[0], parts[1])
    elif head != "Tuple":
        _require(isinstance(head, str) and _ARITIES.get(head) == len(parts), problem)
    for part in parts:
        _check_term(chunk, part, params, where, depth + 1)


def _check_function(
    chunk: Chunk, number: int, params: int | None, where: str, optional: bool = True
) -> None:
    """That `number` is a function of so many parameters (any number for None), or is left out."""
    if optional and number == NO_FUNCTION:
        return
    _require(
        0 <= number < len(chunk.functions), f"{where} is function {number}, which is not there"
    )
    function = chunk.functions[number]
    _require(
        params is None or function.params == params,
        f"{where}, {function.name}, takes {function.params} parameters, not {params}",
    )
    _require(not _returns_self(function), f"{where}, {function.name}, gives back its self")


def _check_tables(chunk: Chunk) -> None:
    for constant in chunk.constants:
        known = isinstance(constant, (int, str, float, bytes, Decimal, tuple))
        _require(known, f"a {type(constant).__name__} is no constant")
        if isinstance(constant, tuple):
            _require(
                len(constant) == 2 and constant[0] in ("Duration", "Time", "Date", "Unset"),
                "a constant that is malformed",
            )
    for function in chunk.functions:
        _check_shape(function, chunk)
    for number, captured in chunk.closures:
        _check_function(chunk, number, None, "a closure", optional=False)
        params = chunk.functions[number].params
        _require(0 <= captured <= params, f"a closure captures {captured} of {params} values")
    for name, count in (*chunk.natives, *chunk.operations):
        _require(0 <= count <= 255, f"{name} takes {count} arguments")
    for slot in chunk.flow_slots:
        _check_term(chunk, slot.type, 0, slot.name)
        _check_function(chunk, slot.default, 0, f"the default of {slot.name}")
    for channel in chunk.channels:
        _check_term(chunk, channel.type, 0, channel.name)
        if channel.answers is not None:
            _check_term(chunk, channel.answers, 0, channel.name)
        _require(channel.capacity >= 0, f"channel {channel.name} has room for {channel.capacity}")
    for view in chunk.views:
        _check_term(chunk, view.result, 0, view.name)
        _check_function(chunk, view.function, 0, f"view {view.name}", optional=False)
    for peer in chunk.peers:
        _check_term(chunk, peer.result, 0, peer.flow)
        for name, term, answers in peer.channels:
            for of in (term, answers):
                if of is not None:
                    _check_term(chunk, of, 0, f"{peer.flow}.{name}")
    for migration in chunk.migrations:
        where = f"migration {migration.stage}"
        for field in migration.params:
            _check_field(chunk, field, 0, where)
        _check_function(chunk, migration.function, len(migration.params), where, optional=False)
    _check_function(chunk, chunk.run, 0, "run", optional=False)
    _check_function(chunk, chunk.fields_init, 0, "the initial fields", optional=False)
    _check_steps(chunk)


def _check_steps(chunk: Chunk) -> None:
    for step in chunk.steps:
        where, count = f"step {step.name}", len(step.params)
        for field in step.params:
            _check_field(chunk, field, 0, where)
        _check_term(chunk, step.result, 0, where)
        _check_function(chunk, step.body, count, f"the body of {where}")
        _check_function(chunk, step.otherwise, count, f"the else of {where}")
        _check_function(chunk, step.queue, count, f"the queue of {where}")
        _check_function(chunk, step.undo_args, count + 1, f"the undo of {where}")
        _require(-1 <= step.undo < len(chunk.steps), f"{where} has undo {step.undo}")
        times = (step.within, step.tries_for, step.backoff, step.backoff_most, step.beat)
        _require(min(times) >= 0 and step.tries >= -1, f"{where} has a clause below zero")


def _check_shape(function: Function, chunk: Chunk) -> None:
    name = function.name
    _require(
        0 <= function.params <= function.slots <= MAX_SLOTS,
        f"{name} has {function.slots} slots for {function.params} parameters",
    )
    _require(bool(function.code), f"{name} has no code")
    for place in function.places:
        room = len(chunk.flow_slots) if place.flow else function.slots
        _require(0 <= place.root < room, f"{name} has a place at slot {place.root}")
        for kind, number in place.steps:
            _require(kind in _STEP_KINDS and number >= 0, f"{name} has a place with a wrong step")
            _require(
                kind != "slot" or number < function.slots, f"{name} has an index at slot {number}"
            )
    for native, count, number in function.mutations:
        _require(
            0 <= number < len(function.places) and 0 <= count <= 255,
            f"{name} changes a place by {native} that is not there",
        )
    for switch in function.switches:
        for pc in switch:
            _require(0 <= pc < len(function.code), f"{name} switches to pc {pc}")


def _check_stages(chunk: Chunk, depths: list[list[int]]) -> None:
    run = chunk.functions[chunk.run]
    for number, stage in enumerate(chunk.stages):
        at = stage.entry - 1
        _require(0 <= at < len(run.code), f"stage {stage.name} enters at pc {stage.entry}")
        _require(
            run.code[at] == (Op.STAGE, number),
            f"stage {stage.name} does not stand before its entry",
        )
        _require(depths[chunk.run][at] >= 0, f"stage {stage.name} is never reached")
        for name, slot, term in stage.variables:
            _require(0 <= slot < run.slots, f"stage {stage.name} has {name} in slot {slot}")
            _check_term(chunk, term, 0, f"{stage.name}.{name}")


def _returns_self(function: Function) -> bool:
    return any(op == Op.RETURN_MUTATED for op, _ in function.code)


# --- code -------------------------------------------------------------------------------------


class _Flow:
    """The flow of control through one function."""

    def __init__(self, chunk: Chunk, number: int, function: Function, mutating: list[bool]) -> None:
        self.chunk = chunk
        self.number = number
        self.function = function
        self.mutating = mutating
        self.limits: dict[Operand, int] = {
            Operand.CONSTANT: len(chunk.constants),
            Operand.SLOT: function.slots,
            Operand.FLOW_SLOT: len(chunk.flow_slots),
            Operand.PLACE: len(function.places),
            Operand.COUNT: MAX_COUNT,
            Operand.STRUCT: len(chunk.types),
            Operand.VARIANT: len(chunk.variants),
            Operand.INDEX: MAX_COUNT,
            Operand.FUNCTION: len(chunk.functions),
            Operand.CLOSURE: len(chunk.closures),
            Operand.NATIVE: len(chunk.natives),
            Operand.MUTATION: len(function.mutations),
            Operand.OPERATION: len(chunk.operations),
            Operand.STEP: len(chunk.steps),
            Operand.JUMP: len(function.code),
            Operand.SWITCH: len(function.switches),
            Operand.STAGE: len(chunk.stages),
            Operand.TERM: len(chunk.terms),
            Operand.NONE: 1,
        }

    def fail(self, pc: int, problem: str) -> ChunkError:
        return ChunkError(f"{self.function.name}, pc {pc}: {problem}")

    def check(self, pc: int, holds: bool, problem: str) -> None:
        if not holds:
            raise self.fail(pc, problem)

    def depths(self) -> list[int]:
        code = self.function.code
        for pc in range(len(code)):
            self.check_operand(pc)
        depths = [-1] * len(code)
        depths[0] = 0
        todo = [0]
        while todo:
            pc = todo.pop()
            for target, depth in self.after(pc, depths[pc]):
                self.check(pc, target < len(code), "the code ends here")
                if depths[target] < 0:
                    depths[target] = depth
                    todo.append(target)
                elif depths[target] != depth:
                    problem = f"pc {target} is reached with {depths[target]} and {depth} values"
                    raise self.fail(pc, problem)
        return depths

    def check_operand(self, pc: int) -> None:
        number, operand = self.function.code[pc]
        try:
            op = Op(number)
        except ValueError:
            raise self.fail(pc, f"no instruction {number}") from None
        kind = OPCODES[op].operand
        problem = f"{op.name} {operand}, which is out of range"
        if kind is Operand.WAIT_CASE:
            known = operand >= 0 and operand % 16 in WaitKind.__members__.values()
            self.check(pc, known, problem)
            return
        if kind is not Operand.INTEGER:
            self.check(pc, 0 <= operand < self.limits[kind], problem)
        chunk, code = self.chunk, self.function.code
        if op is Op.STRUCT:
            self.check(pc, chunk.types[operand].fields is not None, "STRUCT of an enum")
        elif op is Op.LOAD_CONST:
            takes_none = not chunk.functions[operand].params and not self.mutating[operand]
            self.check(pc, takes_none, "LOAD_CONST of a function with parameters")
        elif op is Op.CALL:
            self.check(pc, not self.mutating[operand], "CALL of a function with var self")
        elif op is Op.CALL_MUTATING:
            self.check(pc, self.mutating[operand], "CALL_MUTATING of a plain function")
        elif op is Op.RETURN:
            mixed = self.mutating[self.number]
            self.check(pc, not mixed, "RETURN in a function with var self")
        elif op is Op.RETURN_MUTATED:
            self.check(pc, self.function.params > 0, "RETURN_MUTATED without a self")
        elif op is Op.FAIL:
            self.check(pc, isinstance(chunk.constants[operand], str), "FAIL without a text")
        elif op is Op.STAGE:
            self.check(pc, self.number == chunk.run, "STAGE outside run")
        elif op is Op.NEXT:
            self.check(pc, operand + 1 < self.function.slots, problem)
            paired = pc + 1 < len(code) and code[pc + 1][0] == Op.JUMP_IF_FALSE
            self.check(pc, paired, "NEXT without JUMP_IF_FALSE behind it")

    def after(self, pc: int, depth: int) -> list[tuple[int, int]]:
        """Where control goes from here, and with how many values."""
        number, operand = self.function.code[pc]
        op = Op(number)
        if op is Op.NEXT:
            return [(pc + 2, depth + 1), (self.function.code[pc + 1][1], depth)]
        self.check(
            pc,
            pc == 0 or self.function.code[pc - 1][0] != Op.NEXT,
            "a jump between NEXT and its JUMP_IF_FALSE",
        )
        pops = self.pops(op, operand)
        self.check(pc, depth >= pops, f"{op.name} takes {pops} values, there are {depth}")
        self.check(pc, op is not Op.STAGE or depth == 0, "STAGE with values on the stack")
        info = OPCODES[op]
        assert info.pushes is not None
        depth += info.pushes - pops
        targets: list[int] = [] if op in _ENDS else [pc + 1]
        if info.operand is Operand.JUMP:
            targets.append(operand)
        elif op is Op.SWITCH:
            targets.extend(self.function.switches[operand])
        return [(target, depth) for target in targets]

    def pops(self, op: Op, operand: int) -> int:
        chunk = self.chunk
        fixed = OPCODES[op].pops
        if fixed is not None:
            return fixed
        match op:
            case Op.CONCAT | Op.LIST | Op.SET | Op.TUPLE | Op.WAIT:
                return operand
            case Op.MAP:
                return 2 * operand
            case Op.STRUCT:
                return len(chunk.types[operand].fields or ())
            case Op.VARIANT:
                number, index = chunk.variants[operand]
                return len((chunk.types[number].variants or ())[index].fields)
            case Op.CLOSURE:
                return chunk.closures[operand][1]
            case Op.CALL | Op.CALL_MUTATING:
                return chunk.functions[operand].params
            case Op.CALL_VALUE:
                return operand + 1
            case Op.NATIVE:
                return chunk.natives[operand][1]
            case Op.MUTATE:
                return self.function.mutations[operand][1]
            case Op.OPERATION:
                return chunk.operations[operand][1]
            case Op.STEP:
                return len(chunk.steps[operand].params)
            case Op.WAIT_CASE:
                return WAIT_OPERANDS[WaitKind(operand % 16)]
            case _:
                raise AssertionError(f"{op.name} has no rule")
