"""A loaded program: a chunk made ready to run.

`load` verifies the chunk, then decodes it once so that the interpreter decodes nothing: constants
are values, types are `TypeInfo`, natives are Python functions, and each operand is what its
instruction works with (see `_operand`). The pcs stay those of the chunk.

Common sequences are fused: the first instruction of one is replaced by an instruction of `Fused`
that does the work of all and goes on after them. The others stay where they are, so a jump or a
thawed frame may still enter at any of them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final

from qoqi.vm import natives
from qoqi.vm.bytecode.chunk import Chunk, Debug, Function, Place
from qoqi.vm.bytecode.codec import ChunkError
from qoqi.vm.bytecode.opcodes import WAIT_OPERANDS, Op, WaitKind
from qoqi.vm.bytecode.verify import verify
from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.interpreter import call
from qoqi.vm.types import Types
from qoqi.vm.values import UNSET, TermValue, date, duration, time

Code = list[tuple[int, Any]]


class Fused(IntEnum):
    """Instructions that only a loaded program has."""

    LOAD_LOAD = 100  # LOAD a, LOAD b
    LOAD_INT = 101  # LOAD a, INT n
    LOAD_STORE = 102  # LOAD a, STORE b
    LOAD_FIELD = 103  # LOAD a, GET_FIELD n
    ADD_STORE = 104  # ADD, STORE a
    LOAD_INT_ADD = 105  # LOAD a, INT n, ADD
    LOAD_INT_SUB = 106
    LT_JUMP = 110  # LT, JUMP_IF_FALSE
    LE_JUMP = 111
    GT_JUMP = 112
    GE_JUMP = 113
    EQ_JUMP = 114
    NE_JUMP = 115
    NEXT_STORE = 116  # NEXT, JUMP_IF_FALSE, STORE a


_COMPARE_JUMP: Final = {
    Op.LT: Fused.LT_JUMP,
    Op.LE: Fused.LE_JUMP,
    Op.GT: Fused.GT_JUMP,
    Op.GE: Fused.GE_JUMP,
    Op.EQ: Fused.EQ_JUMP,
    Op.NE: Fused.NE_JUMP,
}


class Program:
    """What the interpreter runs. Nothing in it changes but the cache of constants."""

    __slots__ = (
        "chunk",
        "code",
        "constants",
        "context",
        "debug",
        "depths",
        "entries",
        "natives",
        "terms",
        "types",
        "values_of_constants",
    )

    def __init__(self, chunk: Chunk, debug: Debug | None, depths: list[list[int]]) -> None:
        self.chunk = chunk
        self.debug = debug
        self.depths = depths
        self.types = Types(chunk.types)
        self.constants = [_constant(constant) for constant in chunk.constants]
        self.terms = [TermValue(number, term) for number, term in enumerate(chunk.terms)]
        self.code: list[Code] = [[] for _ in chunk.functions]
        self.entries = [
            (number, function.params, [UNSET] * (function.slots - function.params), code)
            for number, (function, code) in enumerate(zip(chunk.functions, self.code, strict=True))
        ]
        self.values_of_constants: dict[int, object] = {}
        self.context = Context(self.types, self.default)
        self.natives = [natives.bind(name, count, self.context) for name, count in chunk.natives]

    def default(self, function: int) -> object:
        """What a function of no parameters gives: a default. Run anew each time."""
        return call(self, function, ())


def load(chunk: Chunk, debug: Debug | None = None, fuse: bool = True) -> Program:
    """The chunk made ready to run; ChunkError if it is not a sound one."""
    depths = verify(chunk)
    try:
        program = Program(chunk, debug, depths)
    except FlowError as error:
        raise ChunkError(f"a constant is out of range: {error.message}") from None
    for function, code in zip(chunk.functions, program.code, strict=True):
        decode = _Decoder(program, function)
        code.extend(decode(at) for at in range(len(function.code)))
        if fuse:
            _fuse(code)
    return program


def _constant(constant: object) -> object:
    if not isinstance(constant, tuple):
        return constant
    kind, number = constant
    match kind:
        case "Duration":
            return duration(number)
        case "Time":
            return time(number)
        case "Date":
            return date(number)
        case _:
            return UNSET


class _Decoder:
    """Decodes the instructions of one function."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function

    def __call__(self, at: int) -> tuple[int, Any]:
        number, operand = self.function.code[at]
        decoded = self.operand(Op(number), operand, at)
        return number, decoded

    def operand(self, op: Op, operand: int, at: int) -> Any:
        program, function, chunk = self.program, self.function, self.program.chunk
        match op:
            case Op.CONST | Op.FAIL:
                return program.constants[operand]
            case Op.GET_PLACE | Op.PUT_PLACE:
                return _place(function.places[operand])
            case Op.MUTATE:
                name, count, place = function.mutations[operand]
                mutator = natives.mutator(name, count, program.context)
                return (mutator, count, *_place(function.places[place]))
            case Op.STRUCT:
                info = program.types.chunk_types[operand]
                return info, len(info.fields or ())
            case Op.VARIANT:
                number, index = chunk.variants[operand]
                info = program.types.chunk_types[number]
                return info, index, len(info.variants[index].fields), info.units[index]
            case Op.IS_VARIANT:
                return chunk.variants[operand][1]
            case Op.CLOSURE:
                return chunk.closures[operand]
            case Op.CALL | Op.CALL_MUTATING:
                return program.entries[operand]
            case Op.NATIVE:
                return program.natives[operand], chunk.natives[operand][1]
            case Op.NEXT:
                return operand, function.code[at + 1][1]
            case Op.SWITCH:
                return function.switches[operand]
            case Op.TERM:
                return program.terms[operand]
            case Op.STEP:
                return operand, len(chunk.steps[operand].params)
            case Op.WAIT_CASE:
                kind = WaitKind(operand % 16)
                return kind, operand // 16, WAIT_OPERANDS[kind]
            case Op.OPERATION:
                return chunk.operations[operand]
            case _:
                return operand


def _place(place: Place) -> tuple[bool, int, tuple[tuple[str, int], ...]]:
    return place.flow, place.root, place.steps


def _fuse(code: Code) -> None:
    plain: Code = [*code, (0, 0), (0, 0)]
    for at in range(len(code)):
        (first, a), (second, b), (third, _) = plain[at : at + 3]
        if first == Op.LOAD:
            if second == Op.LOAD:
                code[at] = (Fused.LOAD_LOAD.value, (a, b))
            elif second == Op.INT and third == Op.ADD:
                code[at] = (Fused.LOAD_INT_ADD.value, (a, b))
            elif second == Op.INT and third == Op.SUB:
                code[at] = (Fused.LOAD_INT_SUB.value, (a, b))
            elif second == Op.INT:
                code[at] = (Fused.LOAD_INT.value, (a, b))
            elif second == Op.STORE:
                code[at] = (Fused.LOAD_STORE.value, (a, b))
            elif second == Op.GET_FIELD:
                code[at] = (Fused.LOAD_FIELD.value, (a, b))
        elif first == Op.ADD and second == Op.STORE:
            code[at] = (Fused.ADD_STORE.value, b)
        elif first in _COMPARE_JUMP and second == Op.JUMP_IF_FALSE:
            code[at] = (_COMPARE_JUMP[Op(first)].value, b)
        elif first == Op.NEXT and third == Op.STORE:
            walked, exit_pc = plain[at][1]
            code[at] = (Fused.NEXT_STORE.value, (walked, exit_pc, plain[at + 2][1]))
