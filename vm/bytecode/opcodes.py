"""The opcode table: number, name, what the operand means, what happens to the stack.

An instruction is a pair (opcode, operand) of integers; an opcode without operand has 0 there. The
stack picture reads left to right, top last: `a b -> c`. The emitter, the verifier, the interpreter
and the disassembler all read this table; numbers are part of `qoqi.bytecode/1` and never reused.

`pops`/`pushes` of None mean that the count depends on the operand (see `Operand`).
"""

from __future__ import annotations

from enum import IntEnum

from qoqi.vm.dataclass import dataclass


class Operand(IntEnum):
    """What the operand of an instruction indexes; the verifier checks the range."""

    NONE = 0
    CONSTANT = 1  # chunk.constants
    INTEGER = 2  # the number itself, may be negative
    SLOT = 3  # a local of the frame
    FLOW_SLOT = 4  # chunk.flow_slots: parameters, then fields
    PLACE = 5  # function.places
    COUNT = 6  # how many values are taken from the stack
    STRUCT = 7  # chunk.types, a struct: pops its fields in order
    VARIANT = 8  # chunk.variants: pops the variant's fields in order
    INDEX = 9  # a position in a struct, tuple or variant
    FUNCTION = 10  # chunk.functions: pops its parameters
    CLOSURE = 11  # chunk.closures: (function, how many captured values)
    NATIVE = 12  # chunk.natives: (name, argument count)
    MUTATION = 13  # function.mutations: (native, argument count, place)
    OPERATION = 14  # chunk.operations: (name, argument count)
    STEP = 15  # chunk.steps: pops its parameters
    JUMP = 16  # a pc of the same function
    SWITCH = 17  # function.switches: a tuple of pcs
    STAGE = 18  # chunk.stages
    WAIT_CASE = 19  # kind + 16 * case number
    TERM = 20  # chunk.terms: a type


class Op(IntEnum):
    CONST = 1
    INT = 2
    UNIT = 3
    TRUE = 4
    FALSE = 5
    POP = 6
    DUP = 7
    LOAD = 10
    STORE = 11
    LOAD_FLOW = 12
    STORE_FLOW = 13
    LOAD_CONST = 14
    GET_PLACE = 15
    PUT_PLACE = 16
    CLEAR = 17
    ADD = 20
    SUB = 21
    MUL = 22
    DIV = 23
    MOD = 24
    NEG = 25
    NOT = 26
    EQ = 27
    NE = 28
    LT = 29
    LE = 30
    GT = 31
    GE = 32
    IN = 33
    CONCAT = 40
    LIST = 41
    MAP = 42
    SET = 43
    TUPLE = 44
    RANGE = 45
    RANGE_INCLUSIVE = 46
    STRUCT = 47
    VARIANT = 48
    CLOSURE = 49
    GET_FIELD = 50
    GET_ITEM = 51
    GET_PAYLOAD = 52
    INDEX = 53
    IS_VARIANT = 54
    ITERABLE = 55
    NEXT = 56
    UPDATE_FIELD = 57
    TO_DECIMAL = 58
    TO_FLOAT = 59
    JUMP = 60
    JUMP_IF_FALSE = 61
    JUMP_IF_TRUE = 62
    SWITCH = 63
    CALL = 70
    CALL_VALUE = 71
    CALL_MUTATING = 72
    NATIVE = 73
    MUTATE = 74
    RETURN = 75
    RETURN_MUTATED = 76
    TERM = 77
    STEP = 80
    WAIT_CASE = 81
    NO_CASE = 82
    WAIT = 83
    STAGE = 84
    OPERATION = 85
    FAIL = 86


@dataclass(frozen=True, slots=True)
class OpInfo:
    operand: Operand
    pops: int | None
    pushes: int | None
    picture: str


OPCODES: dict[Op, OpInfo] = {
    Op.CONST: OpInfo(Operand.CONSTANT, 0, 1, "-> constant"),
    Op.INT: OpInfo(Operand.INTEGER, 0, 1, "-> the operand as an Int"),
    Op.UNIT: OpInfo(Operand.NONE, 0, 1, "-> ()"),
    Op.TRUE: OpInfo(Operand.NONE, 0, 1, "-> true"),
    Op.FALSE: OpInfo(Operand.NONE, 0, 1, "-> false"),
    Op.POP: OpInfo(Operand.NONE, 1, 0, "a ->"),
    Op.DUP: OpInfo(Operand.NONE, 1, 2, "a -> a a"),
    Op.LOAD: OpInfo(Operand.SLOT, 0, 1, "-> the slot's value"),
    Op.STORE: OpInfo(Operand.SLOT, 1, 0, "a ->, kept in the slot"),
    Op.LOAD_FLOW: OpInfo(Operand.FLOW_SLOT, 0, 1, "-> the flow's parameter or field"),
    Op.STORE_FLOW: OpInfo(Operand.FLOW_SLOT, 1, 0, "a ->, kept in the field"),
    Op.LOAD_CONST: OpInfo(
        Operand.FUNCTION, 0, 1, "-> what this function of no parameters gives, run once per chunk"
    ),
    Op.GET_PLACE: OpInfo(Operand.PLACE, 0, 1, "-> the place's value; R0002 if a step is missing"),
    Op.PUT_PLACE: OpInfo(Operand.PLACE, 1, 0, "a ->, kept in the place (a last index may insert)"),
    Op.CLEAR: OpInfo(Operand.SLOT, 0, 0, "the slot becomes empty: what it held may be dropped"),
    Op.ADD: OpInfo(Operand.NONE, 2, 1, "a b -> a + b"),
    Op.SUB: OpInfo(Operand.NONE, 2, 1, "a b -> a - b"),
    Op.MUL: OpInfo(Operand.NONE, 2, 1, "a b -> a * b"),
    Op.DIV: OpInfo(Operand.NONE, 2, 1, "a b -> a / b; of Ints toward zero; R0003"),
    Op.MOD: OpInfo(Operand.NONE, 2, 1, "a b -> a % b, with the sign of a; R0003"),
    Op.NEG: OpInfo(Operand.NONE, 1, 1, "a -> -a"),
    Op.NOT: OpInfo(Operand.NONE, 1, 1, "a -> !a"),
    Op.EQ: OpInfo(Operand.NONE, 2, 1, "a b -> a == b"),
    Op.NE: OpInfo(Operand.NONE, 2, 1, "a b -> a != b"),
    Op.LT: OpInfo(Operand.NONE, 2, 1, "a b -> a < b"),
    Op.LE: OpInfo(Operand.NONE, 2, 1, "a b -> a <= b"),
    Op.GT: OpInfo(Operand.NONE, 2, 1, "a b -> a > b"),
    Op.GE: OpInfo(Operand.NONE, 2, 1, "a b -> a >= b"),
    Op.IN: OpInfo(Operand.NONE, 2, 1, "a c -> whether list, set, map (keys) or range c has a"),
    Op.CONCAT: OpInfo(Operand.COUNT, None, 1, "a… -> their text, joined (interpolation)"),
    Op.LIST: OpInfo(Operand.COUNT, None, 1, "a… -> [a…]"),
    Op.MAP: OpInfo(Operand.COUNT, None, 1, "k v … -> a map; the operand counts entries"),
    Op.SET: OpInfo(Operand.COUNT, None, 1, "a… -> a set"),
    Op.TUPLE: OpInfo(Operand.COUNT, None, 1, "a… -> (a…)"),
    Op.RANGE: OpInfo(Operand.NONE, 2, 1, "a b -> a..b"),
    Op.RANGE_INCLUSIVE: OpInfo(Operand.NONE, 2, 1, "a b -> a..=b"),
    Op.STRUCT: OpInfo(Operand.STRUCT, None, 1, "fields… -> the struct"),
    Op.VARIANT: OpInfo(Operand.VARIANT, None, 1, "fields… -> the variant"),
    Op.CLOSURE: OpInfo(Operand.CLOSURE, None, 1, "captured… -> a closure of the function"),
    Op.GET_FIELD: OpInfo(Operand.INDEX, 1, 1, "struct -> its field"),
    Op.GET_ITEM: OpInfo(Operand.INDEX, 1, 1, "tuple -> its item"),
    Op.GET_PAYLOAD: OpInfo(Operand.INDEX, 1, 1, "variant -> its field"),
    Op.INDEX: OpInfo(Operand.NONE, 2, 1, "c i -> c[i]; R0002"),
    Op.IS_VARIANT: OpInfo(Operand.VARIANT, 1, 1, "a -> whether it is that variant"),
    Op.ITERABLE: OpInfo(Operand.NONE, 1, 1, "c -> what NEXT walks: a list or a range"),
    Op.NEXT: OpInfo(
        Operand.SLOT,
        0,
        None,
        "-> item true, or -> false: the slot has the list, slot + 1 the count of items given. "
        "The verifier counts one push; JUMP_IF_FALSE follows and item is there on its other way",
    ),
    Op.UPDATE_FIELD: OpInfo(Operand.INDEX, 2, 1, "struct a -> a copy of it with the field a"),
    Op.TO_DECIMAL: OpInfo(Operand.NONE, 1, 1, "Int -> Decimal"),
    Op.TO_FLOAT: OpInfo(Operand.NONE, 1, 1, "Int or Decimal -> Float"),
    Op.JUMP: OpInfo(Operand.JUMP, 0, 0, "goes on at the operand"),
    Op.JUMP_IF_FALSE: OpInfo(Operand.JUMP, 1, 0, "a ->, and goes on there if it is false"),
    Op.JUMP_IF_TRUE: OpInfo(Operand.JUMP, 1, 0, "a ->, and goes on there if it is true"),
    Op.SWITCH: OpInfo(Operand.SWITCH, 1, 0, "n ->, and goes on at the n-th pc of the switch"),
    Op.CALL: OpInfo(Operand.FUNCTION, None, 1, "params… -> result"),
    Op.CALL_VALUE: OpInfo(Operand.COUNT, None, 1, "closure args… -> result"),
    Op.CALL_MUTATING: OpInfo(
        Operand.FUNCTION,
        None,
        2,
        "params… -> result self: the function has `var self` and ends in RETURN_MUTATED",
    ),
    Op.NATIVE: OpInfo(Operand.NATIVE, None, 1, "args… -> result"),
    Op.MUTATE: OpInfo(
        Operand.MUTATION,
        None,
        1,
        "args… -> result: the native is given the place's value, which it may change in place "
        "if nothing else holds it, then the args; the place gets the new value",
    ),
    Op.RETURN: OpInfo(Operand.NONE, 1, 0, "a -> to the caller"),
    Op.RETURN_MUTATED: OpInfo(Operand.NONE, 1, 0, "a -> to the caller: a, then slot 0"),
    Op.TERM: OpInfo(Operand.TERM, 0, 1, "-> a type, for decode and its kin"),
    Op.STEP: OpInfo(Operand.STEP, None, 1, "args… -> the step's answer, when it comes"),
    Op.WAIT_CASE: OpInfo(
        Operand.WAIT_CASE, None, 1, "operands of the kind… -> a case (see WaitKind)"
    ),
    Op.NO_CASE: OpInfo(Operand.NONE, 0, 1, "-> a case that is off"),
    Op.WAIT: OpInfo(
        Operand.COUNT, None, 2, "cases… -> value number: what happened first, when it does"
    ),
    Op.STAGE: OpInfo(Operand.STAGE, 0, 0, "passes the stage; the stack is empty there"),
    Op.OPERATION: OpInfo(
        Operand.OPERATION, None, 1, "args… -> result: asked of the runtime (see vm.effects)"
    ),
    Op.FAIL: OpInfo(Operand.CONSTANT, 0, 0, "the task fails, R0001 with this text"),
}


class WaitKind(IntEnum):
    """The kinds of a wait's cases and the operands each takes from the stack."""

    RECEIVE = 0  # channel number
    SEND = 1  # channel number, value
    AFTER = 2  # Duration or Duration?
    AT = 3  # Time or Time?
    FLOW = 4  # Instance
    ALL = 5  # list of Instance: Result<List<T>, Cancelled>
    SETTLE = 6  # list of Instance: List<Result<T, Cancelled>>
    FIRST = 7  # list of Instance: (Int, Result<T, Cancelled>)
    JOIN = 8  # Task
    WHEN = 9  # closure of no parameters -> Bool
    CANCELLED = 10  # nothing; gives the reason
    ANSWER = 11  # what `ask` gave: the wait for its answer
    TASKS = 12  # list of Task: their values, the first failure fails the waiter


WAIT_OPERANDS: dict[WaitKind, int] = {
    WaitKind.RECEIVE: 1,
    WaitKind.SEND: 2,
    WaitKind.AFTER: 1,
    WaitKind.AT: 1,
    WaitKind.FLOW: 1,
    WaitKind.ALL: 1,
    WaitKind.SETTLE: 1,
    WaitKind.FIRST: 1,
    WaitKind.JOIN: 1,
    WaitKind.WHEN: 1,
    WaitKind.CANCELLED: 0,
    WaitKind.ANSWER: 1,
    WaitKind.TASKS: 1,
}
