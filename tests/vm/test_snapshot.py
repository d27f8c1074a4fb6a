"""Frozen states: exact both ways at every instruction, plain at a stage, and no trust in a text."""

from __future__ import annotations

import copy
import json
import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qoqi.vm.bytecode.chunk import (
    ChannelDef,
    FieldDef,
    FlowSlot,
    Place,
    StageDef,
    StepDef,
    Term,
)
from qoqi.vm.bytecode.opcodes import WaitKind
from qoqi.vm.effects import Case, Ended, Operation, OutOfBudget, PassStage, StepCall, Wait
from qoqi.vm.failure import Failure, FlowError, TraceLine
from qoqi.vm.frames import AtOperation, AtStep, AtWait, Channel, Frame, Machine, Task, UndoEntry
from qoqi.vm.frozen import Part, SnapshotError, freeze_value, thaw_value
from qoqi.vm.interpreter import MachineError, advance, decode, resume
from qoqi.vm.jsonform import json_text, parse_json, value_text
from qoqi.vm.program import Program, load
from qoqi.vm.snapshot import freeze, freeze_stage, start_state, thaw
from qoqi.vm.values import (
    UNSET,
    AskValue,
    ChannelValue,
    Closure,
    Duration,
    RequestValue,
    Struct,
    TaskValue,
    TermValue,
    Time,
    UndoValue,
)
from tests.vm.assembler import assemble, program
from tests.vm.sample import DEFINITIONS, LINE
from tests.vm.strategies import INFO, TYPED_VALUES

# --- every instruction ------------------------------------------------------------------------

BLOCKS = {
    "number": "INT {n}",
    "sum": "LOAD 0\nINT {n}\nADD",
    "kept": "INT {n}\nSTORE 0\nLOAD 0",
    "list": "INT 1\nINT {n}\nLIST 2\nNATIVE 0",
    "map": "CONST 0\nINT {n}\nMAP 1\nNATIVE 2",
    "option": "INT {n}\nVARIANT 0\nGET_PAYLOAD 0",
    "struct": "CONST 0\nINT {n}\nVARIANT 1\nSTRUCT 4\nGET_FIELD 1",
    "call": "INT {n}\nCALL 1",
    "closure": "INT {n}\nCLOSURE 0\nINT 2\nCALL_VALUE 1",
    "append": "INT {n}\nMUTATE 0\nPOP\nLOAD_FLOW 0\nNATIVE 0",
    "branch": "INT {n}\nINT 3\nLT\nJUMP_IF_FALSE no{at}\nINT 1\nJUMP yes{at}\n"
    "no{at}:\nINT 2\nyes{at}:",
    "for": "INT 0\nINT 3\nRANGE\nITERABLE\nSTORE 1\nINT 0\nSTORE 2\nINT {n}\nagain{at}:\n"
    "NEXT 1\nJUMP_IF_FALSE done{at}\nADD\nJUMP again{at}\ndone{at}:\nCLEAR 1",
    "decimal": "CONST 1\nINT {n}\nTO_DECIMAL\nMUL\nNATIVE 1",
    "step": "INT {n}\nSTEP 0",
    "operation": "INT {n}\nOPERATION 0",
    "wait": "INT 0\nWAIT_CASE 0\nNO_CASE\nCONST 2\nWAIT_CASE 34\nWAIT 3\nPOP",
}

FUNCTIONS = """
function double 1 2
    LOAD 0
    INT 2
    MUL
    STORE 1
    LOAD 1
    RETURN
function plus 2 2
    LOAD 0
    LOAD 1
    ADD
    RETURN
"""


def machine_code(blocks: list[tuple[str, int]]) -> Program:
    code = []
    for at, (name, n) in enumerate(blocks):
        code.append(BLOCKS[name].format(n=n, at=at))
        if at:
            code.append("ADD")
    source = "function run 0 4\nINT 5\nSTORE 0\n" + "\n".join(code) + "\nRETURN\n" + FUNCTIONS
    return program(
        source,
        fuse=False,
        types=DEFINITIONS,
        variants=((0, 0), (0, 1)),
        constants=("k", Decimal("1.50"), ("Duration", 1500)),
        closures=((2, 1),),
        natives=(("List.len", 1), ("Decimal.toInt", 1), ("Map.len", 1)),
        operations=(("flow.random", 1),),
        flow_slots=(FlowSlot("xs", ("List", "Int"), False),),
        places={"run": [Place(True, 0)]},
        mutations={"run": [("List.append", 1, 0)]},
        steps=(StepDef("s", (FieldDef("n", "n", "Int"),), "Int", False),),
        channels=(ChannelDef("in", "Int", 4, False),),
    )


def started(loaded: Program) -> Machine:
    machine = Machine("i-1", "b2", "hash", flow_slots=[[7]], channels=[Channel([(3, 10, 1)])])
    run = loaded.chunk.functions[loaded.chunk.run]
    machine.tasks["0"] = Task("0", [Frame(loaded.chunk.run, 0, [UNSET] * run.slots)], 99)
    return machine


def answer(machine: Machine, effect: object) -> None:
    task = machine.tasks["0"]
    match effect:
        case StepCall(_, (int(n),)):
            resume(task, n + 100)
        case Operation(_, (int(n),)):
            resume(task, n + 1000)
        case Wait():
            resume(task, 10_000, 0)
        case _:
            assert isinstance(effect, OutOfBudget)


@given(st.lists(st.tuples(st.sampled_from([*BLOCKS]), st.integers(-3, 9)), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_a_state_is_the_same_when_thawed_at_every_instruction(
    blocks: list[tuple[str, int]],
) -> None:
    loaded = machine_code(blocks)
    plain, thawed = started(loaded), started(loaded)
    while True:
        effect = advance(loaded, plain, plain.tasks["0"], 1)
        assert advance(loaded, thawed, thawed.tasks["0"], 1) == effect
        if isinstance(effect, Ended):
            break
        answer(plain, effect)
        answer(thawed, effect)
        text = freeze(thawed, loaded)
        thawed = thaw(text, loaded, "hash")
        assert freeze(thawed, loaded) == text
        assert thawed == plain
    assert thawed == plain
    assert freeze(thaw(freeze(thawed, loaded), loaded), loaded) == freeze(plain, loaded)


def at_effect(blocks: list[tuple[str, int]]) -> tuple[Program, Machine, object]:
    loaded = machine_code(blocks)
    machine = started(loaded)
    effect = advance(loaded, machine, machine.tasks["0"], 10**6)
    return loaded, machine, effect


def test_a_task_at_a_step_a_wait_or_an_operation() -> None:
    loaded, machine, effect = at_effect([("step", 4)])
    assert isinstance(effect, StepCall)
    machine.tasks["0"].at = AtStep(0, "i-1/b2/0:0:s#1", effect.args, 2, '{"n":4}')
    check(machine, loaded)
    loaded, machine, effect = at_effect([("wait", 1)])
    assert isinstance(effect, Wait)
    machine.tasks["0"].at = AtWait("k", effect.cases, {2: 1599}, 99, "[]")
    check(machine, loaded)
    loaded, machine, effect = at_effect([("operation", 1)])
    assert isinstance(effect, Operation)
    machine.tasks["0"].at = AtOperation(effect.name, "k", effect.args, "[]")
    check(machine, loaded)


def test_a_task_stopped_by_what_it_asked_is_kept_and_cannot_go_on() -> None:
    loaded, machine, _ = at_effect([("operation", 1)])
    check(machine, loaded)
    thawed = thaw(freeze(machine, loaded), loaded)
    with pytest.raises(MachineError, match="has not been given the answer"):
        advance(loaded, thawed, thawed.tasks["0"], 10)


def check(machine: Machine, loaded: Program) -> None:
    text = freeze(machine, loaded)
    thawed = thaw(text, loaded)
    assert thawed == machine
    assert freeze(thawed, loaded) == text


def full_machine(loaded: Program) -> Machine:
    """One that uses every field there is."""
    machine = started(loaded)
    machine.pass_number, machine.stage, machine.given, machine.started = 3, "one", 17, 2
    machine.cancels, machine.refuses, machine.returned = ["why", ""], "too late", True
    machine.undo_count = 5
    machine.undos = [
        UndoEntry(4, "hash", "release", '{"n":1}', key="k"),
        UndoEntry(5, "old", "send", "[]", final=True),
    ]
    machine.tasks["0"].counts = {"s": 2, "wait": 1}
    machine.tasks["0/f#1"] = Task("0/f#1", [], -5, ended=True, value=[TaskValue("0")], group="g")
    failure = Failure("R0003", "division by zero", (TraceLine("f", "a.flow", 3),))
    machine.tasks["0/f#2"] = Task("0/f#2", [], 0, ended=True, failure=failure)
    machine.tasks["0/f#3"] = Task("0/f#3", [], 0, cancelled=True)
    machine.channels[0].closed = True
    return machine


def test_every_field_of_a_machine_is_kept() -> None:
    loaded = machine_code([("sum", 1)])
    check(full_machine(loaded), loaded)


@given(st.lists(TYPED_VALUES, min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_any_value_in_a_frame_is_kept(typed: list[tuple[Term, object]]) -> None:
    loaded = VALUES
    for _, value in typed:
        text = json_text(freeze_value(value))
        thawed = thaw_value(Part(parse_json(text), "it"), loaded)
        assert json_text(freeze_value(thawed)) == text
        assert freeze_value(thawed) == freeze_value(value)


VALUES = program(
    "function run 1 1\nLOAD 0\nRETURN",
    types=DEFINITIONS,
    terms=("Int", ("List", "Int")),
    channels=(ChannelDef("in", "Int", 4, False),),
    run=1,
)


@pytest.mark.parametrize(
    "value",
    [
        UNSET,
        None,
        -0.0,
        1e16,
        Decimal("-0.00"),
        Decimal("1E+40"),
        Closure(0, (1,)),
        TaskValue("0/f#1"),
        ChannelValue(0),
        RequestValue(0, 7, [1]),
        AskValue("k"),
        UndoValue("release", (1, "x")),
        TermValue(1, ("List", "Int")),
        Case(2, WaitKind.AFTER, (Duration(5),)),
        VALUES.types.enum("CancelError").variant("Refused", "no"),
        VALUES.types.struct("Cancelled", "why"),
    ],
)
def test_values_that_are_no_data_are_kept(value: object) -> None:
    text = json_text(freeze_value(value))
    thawed = thaw_value(Part(parse_json(text), "it"), VALUES)
    assert repr(thawed) == repr(value)
    assert json_text(freeze_value(thawed)) == text


def test_a_value_too_deep_to_freeze() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(FlowError) as caught:
        freeze_value(deep)
    assert caught.value.code == "R0008"


# --- stages -----------------------------------------------------------------------------------


def staged(term: Term) -> Program:
    source = "function run 0 3\nLOAD_FLOW 0\nSTORE 1\nSTAGE 0\nLOAD 1\nRETURN"
    return load(
        assemble(
            source,
            types=DEFINITIONS,
            flow_slots=(
                FlowSlot("claim", term, True),
                FlowSlot("votes", ("Map", "Int", "Int"), False),
            ),
            stages=(StageDef("asking", 3, (("plan", 1, term),)),),
            channels=(ChannelDef("in", term, 4, False), ChannelDef("asks", "Int", 4, False, "Int")),
        )
    )


def machine_at_stage(term: Term, given: object) -> tuple[Program, Machine]:
    """At its stage, with this value made one of the program's own types."""
    loaded = staged(term)
    value = decode(loaded, parse_json(value_text(given)), term)
    machine = Machine("i-1", "b2", "hash", flow_slots=[value, {3: 1}])
    machine.channels = [Channel([(value, 10, 1)]), Channel([(4, 11, 0)], closed=True)]
    machine.tasks["0"] = Task("0", [Frame(0, 0, [UNSET] * 3)], 99)
    assert advance(loaded, machine, machine.tasks["0"], 100) == PassStage(0)
    machine.stage, machine.pass_number = "asking", 1
    machine.undos = [UndoEntry(1, "hash", "release", "[]")]
    return loaded, machine


@given(TYPED_VALUES)
@settings(max_examples=100, deadline=None)
def test_a_stage_is_plain_json_and_comes_back(typed: tuple[Term, object]) -> None:
    term, value = typed
    loaded, machine = machine_at_stage(term, value)
    text = freeze(machine, loaded)
    assert text == freeze_stage(machine, loaded)
    assert "tasks" not in json.loads(text)
    thawed = thaw(text, loaded, "hash")
    assert thawed == machine
    assert freeze(thawed, loaded) == text
    assert advance(loaded, thawed, thawed.tasks["0"], 100) == Ended(machine.flow_slots[0])


def test_the_plain_form_is_one_a_person_can_read() -> None:
    line = Struct(INFO[LINE], ["s-1", 300, INFO[0].variant("None")])
    loaded, machine = machine_at_stage(("struct", LINE), line)
    shown = {"stock-number": "s-1", "cents": 300, "note": None}
    assert json.loads(freeze(machine, loaded)) == {
        "format": "qoqi.flow/1",
        "version": "hash",
        "pass": 1,
        "stage": "asking",
        "life": {
            "id": "i-1",
            "birth": "b2",
            "given": 0,
            "started": 0,
            "undos": 0,
            "cancels": [],
            "refuses": None,
            "returned": False,
            "now": 99,
        },
        "vars": {"plan": shown},
        "fields": {"claim": shown, "votes": [[3, 1]]},
        "channels": {
            "in": {"items": [{"value": shown, "at": 10, "seq": 1}], "closed": False},
            "asks": {"items": [{"value": 4, "at": 11, "seq": 0}], "closed": True},
        },
        "undo": [
            {
                "number": 1,
                "version": "hash",
                "target": "release",
                "args": "[]",
                "final": False,
                "key": "",
            }
        ],
        "counts": {},
    }


def test_not_alone_at_a_stage_is_not_plain() -> None:
    loaded, machine = machine_at_stage("Int", 5)
    machine.tasks["0/f#1"] = Task("0/f#1", [], 0, ended=True, value=())
    assert "tasks" in json.loads(freeze(machine, loaded))
    check(machine, loaded)
    with pytest.raises(SnapshotError, match="not alone"):
        freeze_stage(machine, loaded)


def test_old_json_without_a_new_field_takes_its_default() -> None:
    loaded, machine = machine_at_stage(
        ("struct", LINE), Struct(INFO[LINE], ["s", 1, INFO[0].units[1]])
    )
    state = json.loads(freeze(machine, loaded))
    del state["vars"]["plan"]["note"]
    thawed = thaw(json.dumps(state), loaded)
    assert thawed == machine


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda it: it["vars"].pop("plan"), r"state\.vars: plan is missing"),
        (lambda it: it["vars"].update(x=1), r"state\.vars: x is nothing that is kept here"),
        (lambda it: it["vars"].update(plan="x"), r'state\.vars\.plan: expected Int, found "x"'),
        (lambda it: it.update(stage="gone"), "has no stage gone"),
        (lambda it: it["channels"].pop("in"), r"state\.channels: in is missing"),
        (lambda it: it["counts"].update(s=-1), r"state\.counts\.s: -1 is out of range"),
        (lambda it: it["life"].pop("now"), r"state\.life: now is missing"),
    ],
)
def test_an_edited_stage_is_refused(change: Any, problem: str) -> None:
    loaded, machine = machine_at_stage("Int", 5)
    state = json.loads(freeze(machine, loaded))
    change(state)
    with pytest.raises(SnapshotError, match=problem):
        thaw(json.dumps(state), loaded)


# --- no trust ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "cannot be read"),
        ("{}", "no frozen state of format qoqi.flow/1"),
        ("[]", "no frozen state"),
        ('{"format":"qoqi.flow/2"}', "no frozen state"),
        ('{"format":"qoqi.flow/1"}', "life is missing"),
        ("[" * 100_000, "nested deeper"),
    ],
)
def test_what_is_no_state_is_refused(text: str, problem: str) -> None:
    with pytest.raises(SnapshotError, match=problem):
        thaw(text, VALUES)


def test_another_version_is_refused() -> None:
    loaded = machine_code([("sum", 1)])
    with pytest.raises(SnapshotError, match="of version hash, not other"):
        thaw(freeze(started(loaded), loaded), loaded, "other")


def test_every_prefix_is_refused() -> None:
    loaded = machine_code([("call", 1)])
    text = freeze(full_machine(loaded), loaded)
    for size in range(0, len(text), 7):
        with pytest.raises(SnapshotError):
            thaw(text[:size], loaded)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda frame: frame.update(fn=99), r"fn: 99 is out of range"),
        (lambda frame: frame.update(pc=99), r"pc: 99 is out of range"),
        (lambda frame: frame.update(pc=-1), r"pc: -1 is out of range"),
        (lambda frame: frame.update(pc=True), r"pc: expected an integer"),
        (lambda frame: frame.update(pc=10**40), r"pc: too big"),
        (lambda frame: frame["slots"].pop(), "expected 4 items, found 3"),
        (lambda frame: frame["stack"].append(1), "1 values on the stack, not 0"),
        (lambda frame: frame["slots"].__setitem__(0, ["fn", 99]), "99 is out of range"),
        (lambda frame: frame["slots"].__setitem__(0, ["fn", 2, 1, 2, 3]), "captures too much"),
        (lambda frame: frame["slots"].__setitem__(0, ["struct", 4, 1]), "has no 1 fields"),
        (lambda frame: frame["slots"].__setitem__(0, ["struct", 77]), "no such type"),
        (lambda frame: frame["slots"].__setitem__(0, ["variant", 0, 2]), "2 is out of range"),
        (lambda frame: frame["slots"].__setitem__(0, ["variant", 0, 1, 5]), "has no 1 fields"),
        (lambda frame: frame["slots"].__setitem__(0, ["nope"]), "no value has the tag 'nope'"),
        (lambda frame: frame["slots"].__setitem__(0, ["map", 1]), "a key without a value"),
        (lambda frame: frame["slots"].__setitem__(0, ["set", ["list"]]), "a key that can be none"),
        (lambda frame: frame["slots"].__setitem__(0, ["dec", "NaN"]), "a decimal number"),
        (lambda frame: frame["slots"].__setitem__(0, ["time", 10**16]), "is out of range"),
        (lambda frame: frame["slots"].__setitem__(0, {}), "expected an array"),
    ],
)
def test_an_edited_frame_is_refused(change: Any, problem: str) -> None:
    loaded = machine_code([("sum", 1)])
    state = json.loads(freeze(started(loaded), loaded))
    change(state["tasks"][0]["frames"][0])
    with pytest.raises(SnapshotError, match=problem):
        thaw(json.dumps(state), loaded)


def test_a_frame_under_another_must_stand_behind_a_call() -> None:
    loaded = machine_code([("call", 1)])
    machine = started(loaded)
    advance(loaded, machine, machine.tasks["0"], 5)
    state = json.loads(freeze(machine, loaded))
    assert len(state["tasks"][0]["frames"]) == 2
    state["tasks"][0]["frames"][0]["pc"] = 2
    with pytest.raises(SnapshotError, match="no call stands before pc 2"):
        thaw(json.dumps(state), loaded)


JUNK: list[Any] = [
    None,
    True,
    -1,
    10**6,
    "x",
    [],
    {},
    ["list", 1],
    ["dec", "1"],
    0.5,
    ["variant", 0, 0],
]


def test_random_damage_is_refused_or_thaws() -> None:
    """One part of a state replaced by junk: SnapshotError, or a machine that freezes again."""
    loaded = machine_code([("call", 1), ("struct", 2)])
    machine = full_machine(loaded)
    for _ in range(9):
        advance(loaded, machine, machine.tasks["0"], 1)
    whole = json.loads(freeze(machine, loaded))
    chance = random.Random(3)
    refused = 0
    for _ in range(1500):
        state = copy.deepcopy(whole)
        damage(state, chance)
        try:
            thawed = thaw(json.dumps(state), loaded)
        except SnapshotError:
            refused += 1
            continue
        freeze(thawed, loaded)
    assert refused > 500


def damage(state: Any, chance: random.Random) -> None:
    part = state
    while True:
        key = chance.choice([*part] if isinstance(part, dict) else range(len(part)))
        below = part[key]
        if isinstance(below, (list, dict)) and below and chance.random() < 0.9:
            part = below
            continue
        part[key] = copy.deepcopy(chance.choice(JUNK))
        return


# --- the start --------------------------------------------------------------------------------


def test_the_state_an_instance_starts_in() -> None:
    source = """
    function run 0 2
        UNIT
        RETURN
    function init 0 0
        LOAD_FLOW 0
        OPERATION 0
        CONST 0
        TUPLE 3
        RETURN
    """
    loaded = program(
        source,
        constants=(("Unset", 0),),
        operations=(("flow.now", 0),),
        flow_slots=(
            FlowSlot("order", "Int", True),
            FlowSlot("twice", "Int", False),
            FlowSlot("since", "Time", False),
            FlowSlot("later", "Int", False),
        ),
        channels=(ChannelDef("in", "Int", 4, False),),
        fields_init=1,
    )
    machine = start_state(loaded, "i", "b", "hash", [5], 1234)
    assert machine.flow_slots == [5, 5, Time(1234), UNSET]
    assert machine.tasks == {"0": Task("0", [Frame(0, 0, [UNSET, UNSET])], 1234)}
    assert machine.channels == [Channel()]
    check(machine, loaded)
    with pytest.raises(SnapshotError, match="takes 1 arguments, was given 0"):
        start_state(loaded, "i", "b", "hash", [], 0)


def test_of_several_tasks_only_those_that_moved_are_frozen_again() -> None:
    """The text is that of a machine that was never frozen before, whatever happened in between."""
    loaded = program("function run 0 2\n    INT 1\n    STORE 0\n    LOAD 0\n    RETURN\n")

    def stopped(name: str, attempt: int) -> Task:
        key = f"a/b/0:{name}:charge#1"
        return Task(name, [Frame(0, 2, [7, UNSET])], 5, AtStep(0, key, (1,), attempt, "[1]"))

    machine = Machine("a", "b", "v")
    machine.tasks = {name: stopped(name, 1) for name in ("0", "0/f#1", "0/f#2")}
    first = freeze(machine, loaded)
    texts = [task.text for task in machine.tasks.values()]

    def fresh() -> str:
        for task in machine.tasks.values():
            task.text = None
        return freeze(machine, loaded)

    assert freeze(machine, loaded) == first
    assert [task.text for task in machine.tasks.values()] == texts
    run, one, two = machine.tasks.values()
    assert isinstance(one.at, AtStep)
    one.at.attempt = 2  # a retry is noted in place
    two.at, two.frames[0].slots[0] = None, 8  # given its answer, and running
    moved = freeze(machine, loaded)
    assert '"attempt":2' in moved and moved.count('"slots":[8,') == 1
    assert moved == fresh()
    two.ended, two.value = True, 9
    two.frames.clear()
    ended = freeze(machine, loaded)
    assert '"ended":true,"value":9' in ended and ended == fresh()
    run.at = AtStep(0, "a/b/0:0:charge#2", (1,), 1, "[1]")
    assert "charge#2" in freeze(machine, loaded)
