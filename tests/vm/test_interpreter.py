"""The interpreter on chunks assembled by hand: each instruction, limits, traces, speed."""

from __future__ import annotations

import re
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import qoqi.vm.interpreter
from qoqi.vm.bytecode.chunk import Debug, FieldDef, FlowSlot, FunctionDebug, Place, StepDef, TypeDef
from qoqi.vm.bytecode.opcodes import OPCODES, Op, WaitKind
from qoqi.vm.effects import (
    Case,
    Ended,
    Failed,
    Operation,
    OutOfBudget,
    PassStage,
    StepCall,
    Wait,
)
from qoqi.vm.failure import FlowError, TraceLine
from qoqi.vm.frames import Machine, Task
from qoqi.vm.interpreter import (
    MAX_INSTRUCTIONS,
    OPERATION_COST,
    CallFailed,
    MachineError,
    advance,
    call,
    resume,
    start_task,
)
from qoqi.vm.program import Fused, Program, load
from qoqi.vm.values import Closure, Duration, RangeValue, SetValue, Time
from tests.vm.assembler import assemble, option, program

TOP = 10**6


def run(source: str, *args: object, fuse: bool = True, **tables: Any) -> object:
    return call(program(source, fuse=fuse, **tables), 0, args)


def body(code: str, *args: object, slots: int = 8, **tables: Any) -> object:
    """What this code gives, fused and plain alike."""
    source = f"function main {len(args)} {slots}\n{code}"
    fused = run(source, *args, **tables)
    assert run(source, *args, fuse=False, **tables) == fused
    return fused


def failing(code: str, *args: object, **tables: Any) -> tuple[str, str]:
    with pytest.raises(FlowError) as caught:
        body(code, *args, **tables)
    return caught.value.code, caught.value.message


# --- arithmetic -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "a", "b", "result"),
    [
        ("ADD", 2, 3, 5),
        ("ADD", Decimal("1.10"), Decimal("2"), Decimal("3.10")),
        ("ADD", Time(1000), Duration(5), Time(1005)),
        ("SUB", Time(1000), Time(400), Duration(600)),
        ("SUB", 0.5, 0.25, 0.25),
        ("MUL", Duration(1500), 3, Duration(4500)),
        ("MUL", Duration(1000), Decimal("0.5"), Duration(500)),
        ("DIV", 7, 2, 3),
        ("DIV", -7, 2, -3),
        ("DIV", 7, -2, -3),
        ("DIV", -7, -2, 3),
        ("DIV", Decimal(1), Decimal(8), Decimal("0.125")),
        ("DIV", Duration(3000), Duration(2000), Decimal("1.5")),
        ("DIV", Duration(-3001), 2, Duration(-1500)),
        ("MOD", 7, 3, 1),
        ("MOD", -7, 3, -1),
        ("MOD", 7, -3, 1),
        ("MOD", -7.5, 2.0, -1.5),
        ("LT", 1, 2, True),
        ("GE", "b", "a", True),
        ("EQ", [1, (2, "x")], [1, (2, "x")], True),
        ("EQ", {"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ("EQ", Decimal("1.0"), Decimal("1.00"), True),
        ("NE", SetValue({1: None}), SetValue({2: None}), True),
        ("IN", 2, [1, 2], True),
        ("IN", 3, RangeValue(1, 3, False), False),
        ("IN", 3, RangeValue(1, 3, True), True),
        ("IN", "k", {"k": 1}, True),
    ],
)
def test_binary_operators(op: str, a: object, b: object, result: object) -> None:
    assert body(f"LOAD 0\nLOAD 1\n{op}\nRETURN", a, b) == result


def test_a_decimal_keeps_its_scale() -> None:
    product = body("LOAD 0\nINT 2\nTO_DECIMAL\nMUL\nRETURN", Decimal("10.00"))
    assert str(product) == "20.00"


def test_decimals_have_34_digits_rounded_half_even() -> None:
    assert body("LOAD 0\nLOAD 1\nDIV\nRETURN", Decimal(2), Decimal(3)) == Decimal(
        "0.6666666666666666666666666666666667"
    )


@pytest.mark.parametrize("zero", [0, Decimal("0.00")])
@pytest.mark.parametrize("op", ["DIV", "MOD"])
def test_division_by_zero(op: str, zero: object) -> None:
    one = 1 if zero == 0 and isinstance(zero, int) else Decimal(1)
    assert failing(f"LOAD 0\nLOAD 1\n{op}\nRETURN", one, zero) == ("R0003", "division by zero")


def test_a_duration_divided_by_no_duration() -> None:
    assert failing("LOAD 0\nLOAD 1\nDIV\nRETURN", Duration(1), Duration(0))[0] == "R0003"


def test_floats_stay_finite() -> None:
    assert failing("LOAD 0\nLOAD 0\nMUL\nRETURN", 1e300)[0] == "R0005"
    assert failing("LOAD 0\nLOAD 0\nADD\nRETURN", 1.7e308)[0] == "R0005"
    assert failing("LOAD 0\nTO_FLOAT\nRETURN", 10**400)[0] == "R0005"


def test_an_int_has_at_most_4096_digits() -> None:
    largest = 10**4096 - 1
    assert body("LOAD 0\nRETURN", largest) == largest
    assert failing("LOAD 0\nINT 1\nADD\nRETURN", largest)[0] == "R0005"
    assert failing("LOAD 0\nLOAD 0\nMUL\nRETURN", 10**2048)[0] == "R0005"
    assert failing("LOAD 0\nNEG\nINT 1\nSUB\nSTORE 0\nLOAD 0\nRETURN", largest)[0] == "R0005"


def test_a_decimal_out_of_range() -> None:
    assert failing("LOAD 0\nLOAD 0\nMUL\nRETURN", Decimal("1e4000"))[0] == "R0005"


def test_a_time_out_of_range() -> None:
    assert failing("LOAD 0\nLOAD 1\nADD\nRETURN", Time(253402300799999), Duration(1))[0] == "R0005"


# --- building and taking apart ----------------------------------------------------------------

PAIR = TypeDef("Pair", 0, (FieldDef("a", "a", "Int"), FieldDef("b", "b", "Int")), None)


def test_collections() -> None:
    assert body("INT 1\nINT 2\nLIST 2\nRETURN") == [1, 2]
    assert body("LIST 0\nRETURN") == []
    assert body("INT 1\nTRUE\nINT 2\nFALSE\nMAP 2\nRETURN") == {1: True, 2: False}
    assert body("MAP 0\nRETURN") == {}
    assert body("INT 1\nINT 1\nSET 2\nRETURN") == SetValue({1: None})
    assert body("INT 1\nUNIT\nTUPLE 2\nGET_ITEM 1\nRETURN") == ()
    assert body("INT 1\nINT 3\nRANGE_INCLUSIVE\nRETURN") == RangeValue(1, 3, True)


def test_structs_and_variants() -> None:
    tables: dict[str, Any] = {"types": (PAIR, option()), "variants": ((1, 0), (1, 1))}
    assert body("INT 1\nINT 2\nSTRUCT 0\nGET_FIELD 1\nRETURN", **tables) == 2
    assert body("INT 1\nINT 2\nSTRUCT 0\nINT 9\nUPDATE_FIELD 0\nGET_FIELD 0\nRETURN", **tables) == 9
    assert body("INT 7\nVARIANT 0\nGET_PAYLOAD 0\nRETURN", **tables) == 7
    assert body("VARIANT 1\nIS_VARIANT 1\nRETURN", **tables) is True
    assert body("VARIANT 1\nIS_VARIANT 0\nRETURN", **tables) is False


def test_interpolation_shows_each_kind() -> None:
    parts = ["a", 1, Decimal("2.50"), Duration(5_400_000), True, [1, "x"], Time(0), ()]
    code = "\n".join(f"LOAD {at}" for at in range(len(parts)))
    shown = body(f"{code}\nCONCAT {len(parts)}\nRETURN", *parts)
    assert shown == 'a12.501h30mtrue[1,"x"]1970-01-01T00:00:00Znull'


def test_index_and_missing_keys() -> None:
    assert body("LOAD 0\nINT 1\nINDEX\nRETURN", [4, 5]) == 5
    assert failing("LOAD 0\nINT 2\nINDEX\nRETURN", [4, 5]) == (
        "R0002",
        "index 2 is outside a list of 2",
    )
    assert failing("LOAD 0\nINT -1\nINDEX\nRETURN", [4, 5])[0] == "R0002"
    assert failing("LOAD 0\nLOAD 1\nINDEX\nRETURN", {"a": 1}, "b") == (
        "R0002",
        "the map has no key 'b'",
    )


WALK = """
    LIST 0
    STORE 4
    LOAD 0
    ITERABLE
    STORE 1
    INT 0
    STORE 2
top:
    NEXT 1
    JUMP_IF_FALSE end
    STORE 3
    LOAD 3
    MUTATE 0
    POP
    JUMP top
end:
    LOAD 4
    RETURN
"""


@pytest.mark.parametrize(
    ("walked", "items"),
    [
        ([3, 1], [3, 1]),
        ([], []),
        ({"a": 1}, [("a", 1)]),
        (SetValue({2: None, 1: None}), [2, 1]),
        (RangeValue(2, 5, False), [2, 3, 4]),
        (RangeValue(2, 5, True), [2, 3, 4, 5]),
        (RangeValue(5, 2, True), []),
    ],
)
def test_for_walks_what_can_be_walked(walked: object, items: list[object]) -> None:
    append: dict[str, Any] = {
        "places": {"main": [Place(False, 4)]},
        "mutations": {"main": [("List.append", 1, 0)]},
    }
    assert body(WALK, walked, **append) == items


def test_switch_goes_to_the_numbered_pc() -> None:
    code = "LOAD 0\nSWITCH 0\nINT 10\nRETURN\nINT 20\nRETURN"
    for number, result in ((0, 10), (1, 20)):
        assert body(code, number, switches={"main": [(2, 4)]}) == result


# --- calls ------------------------------------------------------------------------------------


def test_closures_capture_by_value() -> None:
    source = """
    function main 1 1
        LOAD 0
        CLOSURE 0
        INT 3
        CALL_VALUE 1
        RETURN
    function scaled 2 2
        LOAD 0
        LOAD 1
        MUL
        RETURN
    """
    assert run(source, 5, closures=((1, 1),)) == 15
    loaded = program(source, closures=((1, 1),))
    assert call(loaded, Closure(1, (4,)), [6]) == 24


def test_a_function_with_var_self_gives_it_back() -> None:
    source = """
    function main 1 1
        LOAD 0
        CALL_MUTATING 1
        TUPLE 2
        RETURN
    function grow 1 1
        INT 7
        MUTATE 0
        POP
        INT 1
        RETURN_MUTATED
    """
    held = [1]
    tables: dict[str, Any] = {
        "places": {"grow": [Place(False, 0)]},
        "mutations": {"grow": [("List.append", 1, 0)]},
    }
    assert run(source, held, **tables) == (1, [1, 7])
    assert held == [1]


def test_a_thousand_calls_and_no_more() -> None:
    source = """
    function down 1 1
        LOAD 0
        JUMP_IF_FALSE end
        LOAD 0
        INT 1
        SUB
        STORE 0
        LOAD 0
        INT 0
        GT
        JUMP_IF_FALSE end
        LOAD 0
        CALL 0
        RETURN
    end:
        INT 5
        RETURN
    """
    assert run(source, 1000) == 5
    with pytest.raises(FlowError) as caught:
        run(source, 1001)
    assert caught.value.code == "R0006"


def test_a_named_constant_runs_once() -> None:
    source = "function main 0 0\nLOAD_CONST 1\nRETURN\nfunction table 0 0\nINT 1\nLIST 1\nRETURN"
    loaded = program(source)
    assert call(loaded, 0, ()) is call(loaded, 0, ())


# --- effects ----------------------------------------------------------------------------------


def start(loaded: Program, *args: object) -> tuple[Machine, Task]:
    return Machine("i", "b", "v"), Task("0", start_task(loaded, 0, args), 0)


def test_each_effect_and_its_answer() -> None:
    source = """
    function main 1 1
        LOAD 0
        STEP 0
        STORE 0
        INT 2
        OPERATION 0
        STORE 0
        INT 0
        WAIT_CASE 0
        NO_CASE
        LOAD 0
        WAIT_CASE 34
        WAIT 3
        TUPLE 2
        RETURN
    """
    charge = StepDef("charge", (FieldDef("n", "n", "Int"),), "Int", False)
    loaded = program(source, steps=(charge,), operations=(("flow.print", 1),))
    machine, task = start(loaded, 9)
    assert advance(loaded, machine, task, TOP) == StepCall(0, (9,))
    with pytest.raises(MachineError, match="has not been given the answer"):
        advance(loaded, machine, task, TOP)
    resume(task, 11)
    assert advance(loaded, machine, task, TOP) == Operation("flow.print", (2,))
    resume(task, Duration(5))
    receive = Case(0, WaitKind.RECEIVE, (0,))
    after = Case(2, WaitKind.AFTER, (Duration(5),))
    assert advance(loaded, machine, task, TOP) == Wait((receive, after))
    resume(task, "message", 0)
    assert advance(loaded, machine, task, TOP) == Ended(("message", 0))
    assert task.ended
    assert task.value == ("message", 0)
    with pytest.raises(MachineError, match="has ended"):
        advance(loaded, machine, task, TOP)


def test_a_stage_stands_before_its_entry() -> None:
    from qoqi.vm.bytecode.chunk import StageDef

    loaded = program("function run 0 1\nSTAGE 0\nUNIT\nRETURN", stages=(StageDef("one", 1, ()),))
    machine, task = start(loaded)
    assert advance(loaded, machine, task, TOP) == PassStage(0)
    assert task.frames[0].pc == 1
    assert advance(loaded, machine, task, TOP) == Ended(())


def test_tasks_share_the_fields_of_the_flow() -> None:
    source = "function main 0 0\nLOAD_FLOW 0\nINT 1\nADD\nSTORE_FLOW 0\nLOAD_FLOW 0\nRETURN"
    loaded = program(source, flow_slots=(FlowSlot("n", "Int", False),))
    machine, task = start(loaded)
    machine.flow_slots = [41]
    assert advance(loaded, machine, task, TOP) == Ended(42)
    assert machine.flow_slots == [42]


def test_a_pure_call_leaves_the_fields_it_was_given() -> None:
    source = "function main 0 0\nINT 5\nMUTATE 0\nPOP\nLOAD_FLOW 0\nRETURN"
    loaded = program(
        source,
        flow_slots=(FlowSlot("xs", ("List", "Int"), False),),
        places={"main": [Place(True, 0)]},
        mutations={"main": [("List.append", 1, 0)]},
    )
    fields = [[1]]
    assert call(loaded, 0, (), fields) == [1, 5]
    assert fields == [[1]]


def test_a_pure_call_may_be_given_answers() -> None:
    source = "function main 0 0\nOPERATION 0\nRETURN"
    loaded = program(source, operations=(("flow.now", 0),))
    assert call(loaded, 0, (), answer=lambda effect: Time(7)) == Time(7)
    with pytest.raises(MachineError, match=r"pure function asked for flow\.now"):
        call(loaded, 0, ())


FOREVER = "function main 0 0\ntop:\nJUMP top"


def test_budget_is_exact_and_a_task_goes_on() -> None:
    loaded = program("function main 0 1\nINT 1\nSTORE 0\nLOAD 0\nRETURN", fuse=False)
    machine, task = start(loaded)
    for spent in (1, 2, 3):
        assert advance(loaded, machine, task, 1) == OutOfBudget()
        assert task.spent == spent
    assert advance(loaded, machine, task, 1) == Ended(1)


def test_ten_million_instructions_without_a_wait() -> None:
    loaded = program(FOREVER)
    machine, task = start(loaded)
    task.spent = MAX_INSTRUCTIONS - 10
    assert advance(loaded, machine, task, 20_000) == OutOfBudget()
    effect = advance(loaded, machine, task, 20_000)
    assert isinstance(effect, Failed)
    assert effect.failure.code == "R0007"


def test_a_step_or_wait_begins_the_count_anew_and_an_operation_does_not() -> None:
    source = "function main 0 0\nOPERATION 0\nPOP\nSTEP 0\nRETURN"
    step = StepDef("s", (), "Int", False)
    loaded = program(source, operations=(("flow.id", 0),), steps=(step,))
    machine, task = start(loaded)
    task.spent = 1000
    advance(loaded, machine, task, TOP)
    assert task.spent == 1001 + OPERATION_COST
    resume(task, "id")
    advance(loaded, machine, task, TOP)
    assert task.spent == 0


# --- failures ---------------------------------------------------------------------------------

DEEP = """
function outer 0 0
    INT 1
    CALL 1
    RETURN
function inner 1 1
    LOAD 0
    INT 0
    DIV
    RETURN
"""


def test_a_failure_has_its_calls_and_lines() -> None:
    debug = Debug(
        (
            FunctionDebug("a.flow", ((0, 10), (1, 11))),
            FunctionDebug("b.flow", ((0, 3), (2, 4))),
            FunctionDebug("a.flow", ()),
        )
    )
    loaded = load(assemble(DEEP), debug)
    machine, task = start(loaded)
    effect = advance(loaded, machine, task, TOP)
    assert isinstance(effect, Failed)
    assert effect.failure.trace == (
        TraceLine("inner", "b.flow", 4),
        TraceLine("outer", "a.flow", 11),
    )
    assert task.failure is effect.failure
    assert task.ended
    assert task.frames == []


def test_a_failing_call_has_the_failure() -> None:
    with pytest.raises(CallFailed) as caught:
        run(DEEP)
    assert [line.function for line in caught.value.failure.trace] == ["inner", "outer"]


def test_fail_is_r0001() -> None:
    assert failing("FAIL 0", constants=("no seats",)) == ("R0001", "no seats")


def test_bytecode_that_mixes_up_types_is_a_bug_with_its_place() -> None:
    with pytest.raises(MachineError, match=r"main, pc 2: TypeError"):
        run("function main 0 0\nINT 1\nUNIT\nADD\nRETURN")


def test_comparing_values_nested_too_deep_fails_the_task() -> None:
    deep: list[object] = []
    other: list[object] = []
    for _ in range(100_000):
        deep, other = [deep], [other]
    assert failing("LOAD 0\nLOAD 1\nEQ\nRETURN", deep, other)[0] == "R0006"


# --- the source of the loop -------------------------------------------------------------------


def test_numbers_in_the_loop_are_those_of_the_table() -> None:
    text = Path(qoqi.vm.interpreter.__file__).read_text("utf-8")
    seen: dict[int, str] = {}
    for tests, names in re.findall(r"if (op == \d+(?: or op == \d+)*):  # ([A-Z_ ]+)\n", text):
        numbers = [int(number) for number in re.findall(r"\d+", tests)]
        assert len(numbers) == len(names.split())
        for number, name in zip(numbers, names.split(), strict=True):
            assert number not in seen
            seen[number] = name
    expected = {int(op): op.name for op in (*OPCODES, *Fused)}
    assert seen == expected


def test_each_opcode_has_a_row() -> None:
    assert set(OPCODES) == set(Op)


# --- speed ------------------------------------------------------------------------------------


def test_appending_in_a_loop_does_not_copy() -> None:
    """Copying would move 5,000,000,000 items here; not copying takes a part of a second."""
    source = """
    function main 1 4
        LIST 0
        STORE 1
        INT 0
        STORE 2
    top:
        LOAD 2
        LOAD 0
        LT
        JUMP_IF_FALSE end
        LOAD 2
        MUTATE 0
        POP
        LOAD 1
        NATIVE 0
        STORE 3
        LOAD 1
        LOAD 2
        NATIVE 1
        POP
        LOAD 2
        INT 1
        ADD
        STORE 2
        JUMP top
    end:
        LOAD 3
        RETURN
    """
    tables: dict[str, Any] = {
        "places": {"main": [Place(False, 1)]},
        "mutations": {"main": [("List.append", 1, 0)]},
        "natives": (("List.len", 1), ("List.get", 2)),
    }
    begin = time.perf_counter()
    assert run(source, 100_000, **tables) == 100_000
    assert time.perf_counter() - begin < 3
