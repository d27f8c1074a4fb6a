"""The machine's loop: runs bytecode until it needs something from outside.

`advance` moves one task and gives an `Effect`; it has no clock, no chance and no input or output.
The frame then stands after the instruction that asked, without its answer: `resume` pushes that.

Model. A task is a stack of frames, each with locals (slots) and an operand stack. Instructions are
pairs (number, operand), decoded by `program.load`; the loop is one tree of comparisons on numbers,
common ones first, because it is the hot path of everything (bench/vm.py has the figure). Numbers
are written out with their names beside them, as a name would cost a look-up; a test compares both.

Limits. A task may have `MAX_CALLS` frames (R0006) and run `MAX_INSTRUCTIONS` without a step or wait
(R0007); a fused instruction counts as one. `budget` bounds one call of `advance`.

Failures. A `FlowError`, a division by zero, a number out of range ends the task: it is marked
ended with its `Failure` and its frames are dropped, so it can never run on from there. Any other
exception means that bytecode did what no checked program does: `MachineError`, with the place.

Sharing. Values are changed in place only where reference counts allow it (see `places`). Locals of
this loop count too, so containers are moved from the operand stack without being kept in one.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from qoqi.vm import places
from qoqi.vm.effects import (
    Case,
    Effect,
    Ended,
    Failed,
    Operation,
    OutOfBudget,
    PassStage,
    StepCall,
    Wait,
)
from qoqi.vm.failure import Failure, FlowError, TraceLine
from qoqi.vm.frames import Frame, Machine, Task
from qoqi.vm.jsonform import display, from_json
from qoqi.vm.values import (
    DECIMALS,
    INT_LIMIT,
    UNSET,
    Closure,
    RangeValue,
    SetValue,
    Struct,
    Variant,
    checked_float,
    checked_int,
    checked_text,
    divide_toward_zero,
    remainder,
    to_decimal,
    to_float,
)

if TYPE_CHECKING:
    from qoqi.vm.bytecode.chunk import Term
    from qoqi.vm.program import Program
    from qoqi.vm.values import TermValue

MAX_CALLS: Final = 1_000
MAX_INSTRUCTIONS: Final = 10_000_000
OPERATION_COST: Final = 500
"""Instructions that an operation or a stage counts for: each may leave something to be written."""
INT_FLOOR: Final = -INT_LIMIT


class MachineError(Exception):
    """The bytecode did what no checked program does, or was used as it must not be: a bug."""


class CallFailed(FlowError):
    """A function run by `call` failed; the failure has its calls."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code, failure.message)
        self.failure = failure


def start_task(program: Program, callee: Closure | int, args: Sequence[object]) -> list[Frame]:
    """The frames of a task that calls this function or closure."""
    captured: tuple[object, ...] = ()
    if isinstance(callee, Closure):
        captured = callee.captured
        callee = callee.function
    number, params, empty, _ = program.entries[callee]
    if len(captured) + len(args) != params:
        name = program.chunk.functions[number].name
        raise MachineError(f"{name} takes {params} values, was given {len(captured) + len(args)}")
    return [Frame(number, 0, [*captured, *args, *empty])]


def resume(task: Task, *answer: object) -> None:
    """Gives a task what its effect asked for; a wait takes a value and the number of its case."""
    task.frames[-1].stack.extend(answer)


def call(
    program: Program,
    callee: Closure | int,
    args: Sequence[object],
    flow_slots: Sequence[object] = (),
    answer: Callable[[Operation], object] | None = None,
) -> object:
    """What a function that waits for nothing gives; `CallFailed` (a FlowError) if it fails.

    Used for views, defaults, constants, conditions and clauses of steps. `answer` gives the answers
    of operations, where some are allowed (`flow.now` in the initial value of a field).
    """
    task = Task("", start_task(program, callee, args), 0)
    machine = Machine("", "", "", flow_slots=[*flow_slots])
    while True:
        effect = advance(program, machine, task, MAX_INSTRUCTIONS)
        match effect:
            case Ended(value):
                return value
            case Failed(failure):
                raise CallFailed(failure)
            case Operation(name) if answer is None:
                raise MachineError(f"a pure function asked for {name}")
            case Operation() if answer is not None:
                resume(task, answer(effect))
            case OutOfBudget():
                continue
            case _:
                raise MachineError(f"a pure function asked for a {type(effect).__name__}")


def decode(program: Program, raw: object, term: Term | TermValue) -> object:
    """JSON data as a value of the type, defaults run on this program; R0004."""
    return from_json(raw, term, program.types, program.default)


def constant(program: Program, function: int) -> object:
    """A named constant: its function runs once per loaded program."""
    cache = program.values_of_constants
    if function not in cache:
        cache[function] = call(program, function, ())
    return cache[function]


def advance(program: Program, machine: Machine, task: Task, budget: int) -> Effect:
    """Runs the task until it needs an answer, ends, fails, or has run `budget` instructions."""
    if task.ended or not task.frames:
        raise MachineError(f"task {task.name} has ended")
    frame = task.frames[-1]
    if len(frame.stack) != program.depths[frame.function][frame.pc]:
        raise MachineError(f"task {task.name} has not been given the answer it waits for")
    left = MAX_INSTRUCTIONS - task.spent
    if left <= 0:
        error = FlowError("R0007", f"{MAX_INSTRUCTIONS:,} instructions without a step or a wait")
        return _fail(program, task, error)
    try:
        with decimal.localcontext(DECIMALS):
            effect = _run(program, machine, task, min(budget, left))
    except FlowError as error:
        return _fail(program, task, error)
    except ZeroDivisionError:
        return _fail(program, task, FlowError("R0003", "division by zero"))
    except (decimal.DecimalException, OverflowError):
        return _fail(program, task, FlowError("R0005", "a number out of range"))
    except RecursionError:
        return _fail(program, task, FlowError("R0006", "a value is nested too deep"))
    except MachineError:
        raise
    except Exception as error:
        frame = task.frames[-1]
        name = program.chunk.functions[frame.function].name
        what = f"{type(error).__name__}: {error}"
        raise MachineError(f"{name}, pc {frame.pc - 1}: {what}") from error
    if isinstance(effect, (StepCall, Wait)):
        task.spent = 0
    elif isinstance(effect, (Operation, PassStage)):
        task.spent += OPERATION_COST
    return effect


def trace(program: Program, task: Task) -> tuple[TraceLine, ...]:
    """The calls under way, the innermost first."""
    return tuple(_line(program, frame) for frame in reversed(task.frames))


def _line(program: Program, frame: Frame) -> TraceLine:
    name = program.chunk.functions[frame.function].name
    if program.debug is None:
        return TraceLine(name, "", 0)
    debug = program.debug.functions[frame.function]
    line = 0
    for pc, number in debug.lines:
        if pc >= frame.pc:
            break
        line = number
    return TraceLine(name, debug.file, line)


def _fail(program: Program, task: Task, error: FlowError) -> Failed:
    inner = error.failure.trace if isinstance(error, CallFailed) else ()
    failure = Failure(error.code, error.message, (*inner, *trace(program, task)))
    task.ended = True
    task.failure = failure
    task.frames.clear()
    return Failed(failure)


def _run(program: Program, machine: Machine, task: Task, budget: int) -> Effect:
    frames = task.frames
    flow_slots = machine.flow_slots
    code_of = program.code
    frame = frames[-1]
    code: list[tuple[int, Any]] = code_of[frame.function]
    slots: list[Any] = frame.slots
    # What slots and operand stacks hold is `Any`: the checker, not Python, knows what is on them.
    stack: list[Any] = frame.stack
    pc = frame.pc
    count = 0
    arg: Any
    a: Any
    b: Any
    given: Any
    taken: Any
    try:
        for count in range(1, budget + 1):  # noqa: B007 (what is spent, read in `finally`)
            op, arg = code[pc]
            pc += 1
            if op >= 100:
                if op < 110:
                    if op == 105:  # LOAD_INT_ADD
                        a = slots[arg[0]] + arg[1]
                        if a.__class__ is not int or not INT_FLOOR < a < INT_LIMIT:
                            a = _checked(a)
                        stack.append(a)
                        pc += 2
                    elif op == 100:  # LOAD_LOAD
                        stack.append(slots[arg[0]])
                        stack.append(slots[arg[1]])
                        pc += 1
                    elif op == 104:  # ADD_STORE
                        b = stack.pop()
                        a = stack.pop() + b
                        if a.__class__ is not int or not INT_FLOOR < a < INT_LIMIT:
                            a = _checked(a)
                        slots[arg] = a
                        pc += 1
                    elif op == 101:  # LOAD_INT
                        stack.append(slots[arg[0]])
                        stack.append(arg[1])
                        pc += 1
                    elif op == 103:  # LOAD_FIELD
                        stack.append(slots[arg[0]].fields[arg[1]])
                        pc += 1
                    elif op == 106:  # LOAD_INT_SUB
                        a = slots[arg[0]] - arg[1]
                        if a.__class__ is not int or not INT_FLOOR < a < INT_LIMIT:
                            a = _checked(a)
                        stack.append(a)
                        pc += 2
                    elif op == 102:  # LOAD_STORE
                        slots[arg[1]] = slots[arg[0]]
                        pc += 1
                    else:
                        raise MachineError(f"no instruction {op}")
                elif op == 110:  # LT_JUMP
                    b = stack.pop()
                    if stack.pop() < b:
                        pc += 1
                    else:
                        pc = arg
                elif op == 114:  # EQ_JUMP
                    if stack.pop() == stack.pop():
                        pc += 1
                    else:
                        pc = arg
                elif op == 116:  # NEXT_STORE
                    walked, exit_pc, target = arg
                    given = slots[walked + 1]
                    a = slots[walked]
                    if a.__class__ is list:
                        if given < len(a):
                            slots[walked + 1] = given + 1
                            slots[target] = a[given]
                            pc += 2
                        else:
                            pc = exit_pc
                    else:
                        b = a.low + given
                        if b < a.high or (a.inclusive and b == a.high):
                            slots[walked + 1] = given + 1
                            slots[target] = b
                            pc += 2
                        else:
                            pc = exit_pc
                    a = None
                elif op == 112:  # GT_JUMP
                    b = stack.pop()
                    if stack.pop() > b:
                        pc += 1
                    else:
                        pc = arg
                elif op == 111:  # LE_JUMP
                    b = stack.pop()
                    if stack.pop() <= b:
                        pc += 1
                    else:
                        pc = arg
                elif op == 113:  # GE_JUMP
                    b = stack.pop()
                    if stack.pop() >= b:
                        pc += 1
                    else:
                        pc = arg
                elif op == 115:  # NE_JUMP
                    if stack.pop() != stack.pop():
                        pc += 1
                    else:
                        pc = arg
                else:
                    raise MachineError(f"no instruction {op}")
            elif op < 20:
                if op == 10:  # LOAD
                    stack.append(slots[arg])
                elif op == 11:  # STORE
                    slots[arg] = stack.pop()
                elif op == 1 or op == 2:  # CONST INT
                    stack.append(arg)
                elif op == 12:  # LOAD_FLOW
                    stack.append(flow_slots[arg])
                elif op == 6:  # POP
                    stack.pop()
                elif op == 4:  # TRUE
                    stack.append(True)
                elif op == 5:  # FALSE
                    stack.append(False)
                elif op == 3:  # UNIT
                    stack.append(())
                elif op == 13:  # STORE_FLOW
                    flow_slots[arg] = stack.pop()
                elif op == 16:  # PUT_PLACE
                    places.write(
                        flow_slots if arg[0] else slots, arg[1], arg[2], slots, stack.pop()
                    )
                elif op == 15:  # GET_PLACE
                    stack.append(
                        places.read(flow_slots if arg[0] else slots, arg[1], arg[2], slots)
                    )
                elif op == 17:  # CLEAR
                    slots[arg] = UNSET
                elif op == 7:  # DUP
                    stack.append(stack[-1])
                elif op == 14:  # LOAD_CONST
                    stack.append(constant(program, arg))
                else:
                    raise MachineError(f"no instruction {op}")
            elif op < 40:
                if op == 20:  # ADD
                    b = stack.pop()
                    a = stack[-1] + b
                    if a.__class__ is not int or not INT_FLOOR < a < INT_LIMIT:
                        a = _checked(a)
                    stack[-1] = a
                elif op == 21:  # SUB
                    b = stack.pop()
                    a = stack[-1] - b
                    if a.__class__ is not int or not INT_FLOOR < a < INT_LIMIT:
                        a = _checked(a)
                    stack[-1] = a
                elif op == 22:  # MUL
                    b = stack.pop()
                    a = stack[-1] * b
                    if a.__class__ is not int or not INT_FLOOR < a < INT_LIMIT:
                        a = _checked(a)
                    stack[-1] = a
                elif op == 29:  # LT
                    b = stack.pop()
                    stack[-1] = stack[-1] < b
                elif op == 27:  # EQ
                    stack.append(stack.pop() == stack.pop())
                elif op == 30:  # LE
                    b = stack.pop()
                    stack[-1] = stack[-1] <= b
                elif op == 31:  # GT
                    b = stack.pop()
                    stack[-1] = stack[-1] > b
                elif op == 32:  # GE
                    b = stack.pop()
                    stack[-1] = stack[-1] >= b
                elif op == 28:  # NE
                    stack.append(stack.pop() != stack.pop())
                elif op == 26:  # NOT
                    stack[-1] = not stack[-1]
                elif op == 23:  # DIV
                    b = stack.pop()
                    stack[-1] = _divide(stack[-1], b)
                elif op == 24:  # MOD
                    b = stack.pop()
                    stack[-1] = _modulo(stack[-1], b)
                elif op == 25:  # NEG
                    stack[-1] = -stack[-1]
                elif op == 33:  # IN
                    stack.append(stack.pop(-2) in stack.pop())
                else:
                    raise MachineError(f"no instruction {op}")
            elif op < 60:
                if op == 50:  # GET_FIELD
                    stack[-1] = stack[-1].fields[arg]
                elif op == 53:  # INDEX
                    b = stack.pop()
                    stack[-1] = places.index(stack[-1], b)
                elif op == 54:  # IS_VARIANT
                    stack[-1] = stack[-1].index == arg
                elif op == 52:  # GET_PAYLOAD
                    stack[-1] = stack[-1].payload[arg]
                elif op == 51:  # GET_ITEM
                    stack[-1] = stack[-1][arg]
                elif op == 56:  # NEXT
                    walked, exit_pc = arg
                    given = slots[walked + 1]
                    a = slots[walked]
                    if a.__class__ is list:
                        if given < len(a):
                            slots[walked + 1] = given + 1
                            stack.append(a[given])
                            pc += 1
                        else:
                            pc = exit_pc
                    else:
                        b = a.low + given
                        if b < a.high or (a.inclusive and b == a.high):
                            slots[walked + 1] = given + 1
                            stack.append(b)
                            pc += 1
                        else:
                            pc = exit_pc
                    a = None
                elif op == 48:  # VARIANT
                    of, index, size, unit = arg
                    if unit is not None:
                        stack.append(unit)
                    elif size == 1:
                        stack[-1] = Variant(of, index, (stack[-1],))
                    else:
                        stack[-size:] = [Variant(of, index, tuple(stack[-size:]))]
                elif op == 47:  # STRUCT
                    of, size = arg
                    start = len(stack) - size
                    stack[start:] = [Struct(of, stack[start:])]
                elif op == 40:  # CONCAT
                    stack[len(stack) - arg :] = [_concat(stack[len(stack) - arg :])]
                elif op == 41:  # LIST
                    stack[len(stack) - arg :] = [stack[len(stack) - arg :]]
                elif op == 44:  # TUPLE
                    stack[len(stack) - arg :] = [tuple(stack[len(stack) - arg :])]
                elif op == 42:  # MAP
                    start = len(stack) - 2 * arg
                    stack[start:] = [dict(zip(stack[start::2], stack[start + 1 :: 2], strict=True))]
                elif op == 43:  # SET
                    start = len(stack) - arg
                    stack[start:] = [SetValue(dict.fromkeys(stack[start:]))]
                elif op == 49:  # CLOSURE
                    number, size = arg
                    start = len(stack) - size
                    stack[start:] = [Closure(number, tuple(stack[start:]))]
                elif op == 45:  # RANGE
                    stack[-2:] = [RangeValue(stack[-2], stack[-1], False)]
                elif op == 46:  # RANGE_INCLUSIVE
                    stack[-2:] = [RangeValue(stack[-2], stack[-1], True)]
                elif op == 55:  # ITERABLE
                    if stack[-1].__class__ is not list:
                        stack[-1] = _iterable(stack[-1])
                elif op == 57:  # UPDATE_FIELD
                    b = stack.pop()
                    stack[-1] = _updated(stack[-1], arg, b)
                    b = None
                elif op == 58:  # TO_DECIMAL
                    stack[-1] = to_decimal(stack[-1])
                elif op == 59:  # TO_FLOAT
                    stack[-1] = to_float(stack[-1])
                else:
                    raise MachineError(f"no instruction {op}")
            elif op < 70:
                if op == 61:  # JUMP_IF_FALSE
                    if not stack.pop():
                        pc = arg
                elif op == 60:  # JUMP
                    pc = arg
                elif op == 62:  # JUMP_IF_TRUE
                    if stack.pop():
                        pc = arg
                elif op == 63:  # SWITCH
                    pc = arg[stack.pop()]
                else:
                    raise MachineError(f"no instruction {op}")
            elif op < 80:
                if op == 75:  # RETURN
                    frames.pop()
                    if not frames:
                        task.ended = True
                        task.value = stack.pop()
                        return Ended(task.value)
                    frame = frames[-1]
                    frame.stack.append(stack.pop())
                    code = code_of[frame.function]
                    slots = frame.slots
                    stack = frame.stack
                    pc = frame.pc
                elif op == 70 or op == 72:  # CALL CALL_MUTATING
                    number, size, empty, code = arg
                    if len(frames) >= MAX_CALLS:
                        raise FlowError("R0006", f"more than {MAX_CALLS:,} calls under way")
                    frame.pc = pc
                    if size:
                        slots = stack[-size:]
                        del stack[-size:]
                        slots += empty
                    else:
                        slots = empty[:]
                    stack = []
                    pc = 0
                    frame = Frame(number, 0, slots, stack)
                    frames.append(frame)
                elif op == 73:  # NATIVE
                    native, size = arg
                    if size == 1:
                        stack[-1] = native(stack[-1])
                    elif size == 2:
                        stack.append(native(stack.pop(-2), stack.pop()))
                    else:
                        start = len(stack) - size
                        stack[start:] = [native(*stack[start:])]
                elif op == 74:  # MUTATE
                    native, size, in_flow, root, steps = arg
                    start = len(stack) - size
                    taken = stack[start:]
                    del stack[start:]
                    stack.append(
                        places.mutate(
                            flow_slots if in_flow else slots, root, steps, slots, native, taken
                        )
                    )
                    taken = None
                elif op == 71:  # CALL_VALUE
                    start = len(stack) - arg
                    closure = stack[start - 1]
                    number, size, empty, code = program.entries[closure.function]
                    if len(frames) >= MAX_CALLS:
                        raise FlowError("R0006", f"more than {MAX_CALLS:,} calls under way")
                    frame.pc = pc
                    slots = [*closure.captured, *stack[start:]]
                    if len(slots) != size:
                        raise MachineError(f"a closure of {size} values was given {len(slots)}")
                    slots += empty
                    del stack[start - 1 :]
                    closure = None
                    stack = []
                    pc = 0
                    frame = Frame(number, 0, slots, stack)
                    frames.append(frame)
                elif op == 76:  # RETURN_MUTATED
                    frames.pop()
                    if not frames:
                        raise MachineError("a function with var self was run as a task")
                    frame = frames[-1]
                    frame.stack.append(stack.pop())
                    frame.stack.append(slots[0])
                    code = code_of[frame.function]
                    slots = frame.slots
                    stack = frame.stack
                    pc = frame.pc
                elif op == 77:  # TERM
                    stack.append(arg)
                else:
                    raise MachineError(f"no instruction {op}")
            elif op == 80:  # STEP
                number, size = arg
                return StepCall(number, _take(stack, size))
            elif op == 81:  # WAIT_CASE
                kind, number, size = arg
                stack.append(Case(number, kind, _take(stack, size)))
            elif op == 82:  # NO_CASE
                stack.append(None)
            elif op == 83:  # WAIT
                return Wait(tuple(case for case in _take(stack, arg) if case is not None))
            elif op == 84:  # STAGE
                return PassStage(arg)
            elif op == 85:  # OPERATION
                name, size = arg
                return Operation(name, _take(stack, size))
            elif op == 86:  # FAIL
                raise FlowError("R0001", arg)
            else:
                raise MachineError(f"no instruction {op}")
    finally:
        frame.pc = pc
        task.spent += count
    return OutOfBudget()


def _take(stack: list[Any], size: int) -> tuple[Any, ...]:
    start = len(stack) - size
    taken = tuple(stack[start:])
    del stack[start:]
    return taken


def _checked(value: Any) -> Any:
    """What arithmetic gave, if its type has a place for it; R0005."""
    if value.__class__ is int:
        return checked_int(value)
    if value.__class__ is float:
        return checked_float(value)
    return value


def _divide(a: Any, b: Any) -> Any:
    if a.__class__ is int:
        if b.__class__ is not int:
            return to_decimal(a) / b
        if a >= 0 and b > 0:
            return a // b
        return divide_toward_zero(a, b)
    if a.__class__ is decimal.Decimal and b == 0:
        raise FlowError("R0003", "division by zero")
    return _checked(a / b)


def _modulo(a: Any, b: Any) -> Any:
    if b == 0:
        raise FlowError("R0003", "division by zero")
    if a.__class__ is int and b.__class__ is int:
        return a % b if a >= 0 and b > 0 else remainder(a, b)
    if a.__class__ is float:
        return math.fmod(a, b)
    return a % b


def _concat(parts: list[Any]) -> str:
    return checked_text(
        "".join([part if part.__class__ is str else display(part) for part in parts])
    )


def _iterable(value: Any) -> Any:
    """What NEXT walks: lists and ranges as they are, a map's entries, a set's members."""
    if value.__class__ is RangeValue:
        return value
    if value.__class__ is dict:
        return list(value.items())
    if value.__class__ is SetValue:
        return list(value.items)
    raise MachineError(f"{type(value).__name__} cannot be walked")


def _updated(value: Any, field: int, new: object) -> Struct:
    fields = value.fields[:]
    fields[field] = new
    return Struct(value.type, fields)
