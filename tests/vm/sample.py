"""Types of every shape, and one chunk that has something in each of its tables."""

from __future__ import annotations

from decimal import Decimal

from qoqi.vm.bytecode.chunk import (
    ChannelDef,
    Chunk,
    FieldDef,
    FlowSlot,
    MigrationDef,
    PeerDef,
    Place,
    StageDef,
    StepDef,
    Term,
    TypeDef,
    VariantDef,
    ViewDef,
)
from tests.vm.assembler import assemble, option


def _fields(**terms: Term) -> tuple[FieldDef, ...]:
    return tuple(FieldDef(name, name, term) for name, term in terms.items())


OPTION, RESULT, SETTLED, JSON, LINE, DECISION, LEVEL, BOX = range(8)

DEFINITIONS = (
    TypeDef(
        "Option",
        1,
        None,
        (VariantDef("Some", "Some", _fields(value=("param", 0))), VariantDef("None", "None", ())),
    ),
    TypeDef(
        "Result",
        2,
        None,
        (
            VariantDef("Ok", "Ok", _fields(value=("param", 0))),
            VariantDef("Err", "Err", _fields(error=("param", 1))),
        ),
    ),
    TypeDef(
        "Settled",
        1,
        None,
        (
            VariantDef("Known", "Known", _fields(value=("param", 0))),
            VariantDef("Unknown", "Unknown", ()),
        ),
    ),
    TypeDef(
        "Json",
        0,
        None,
        (
            VariantDef("Object", "Object", _fields(members=("Map", "String", ("enum", JSON)))),
            VariantDef("Array", "Array", _fields(items=("List", ("enum", JSON)))),
            VariantDef("String", "String", _fields(text="String")),
            VariantDef("Number", "Number", _fields(number="Decimal")),
            VariantDef("Bool", "Bool", _fields(value="Bool")),
            VariantDef("Null", "Null", ()),
        ),
    ),
    TypeDef(
        "main.Line",
        0,
        (
            FieldDef("sku", "stock-number", "String"),
            FieldDef("cents", "cents", "Int"),
            FieldDef("note", "note", ("enum", OPTION, "String")),
        ),
        None,
    ),
    TypeDef(
        "main.Decision",
        0,
        None,
        (
            VariantDef("Approved", "approved", _fields(by="String")),
            VariantDef("Rejected", "Rejected", _fields(by="String", why=("List", "String"))),
            VariantDef("Withdrawn", "Withdrawn", ()),
        ),
    ),
    TypeDef(
        "main.Level",
        0,
        None,
        (VariantDef("Low", "low", ()), VariantDef("High", "High", ())),
    ),
    TypeDef("main.Box", 1, _fields(held=("param", 0), more=("List", ("param", 0))), None),
)

SOURCE = """
function run 0 4
    LOAD_FLOW 0
    STORE 0
    STAGE 0
top:
    INT 0
    WAIT_CASE 0
    LOAD_FLOW 1
    WAIT_CASE 18
    WAIT 2
    SWITCH 0
    STORE 1
    LOAD 1
    STEP 0
    POP
    JUMP top
    POP
    LOAD 0
    ITERABLE
    STORE 2
    INT 0
    STORE 3
next:
    NEXT 2
    JUMP_IF_FALSE done
    MUTATE 0
    POP
    JUMP next
done:
    CONST 1
    CALL 1
    RETURN
function show 1 1
    CONST 0
    LOAD 0
    CONCAT 2
    NATIVE 0
    RETURN
function undo_of 2 2
    LOAD 1
    TUPLE 1
    RETURN
function moved 1 1
    CONST 0
    MAP 0
    TUPLE 2
    RETURN
"""


def chunk() -> Chunk:
    """One that has something in every table."""
    number = FieldDef("n", "n", "Int")
    return assemble(
        SOURCE,
        places={"run": [Place(True, 0, (("slot", 1),))]},
        mutations={"run": [("List.append", 1, 0)]},
        switches={"run": [(9, 14)]},
        types=(*DEFINITIONS, option()),
        variants=((0, 0), (0, 1)),
        terms=("Int", ("List", ("enum", 0, "String"))),
        constants=("é", Decimal("12.50"), 10**30, -5, 0.5, b"\x00", ("Duration", 5), ("Time", -1)),
        natives=(("String.len", 1),),
        flow_slots=(
            FlowSlot("lines", ("List", ("List", "Int")), True),
            FlowSlot("pause", "Duration", False),
        ),
        channels=(ChannelDef("in", "Int", 16, False, "Bool"),),
        stages=(StageDef("one", 3, (("lines", 0, ("List", ("List", "Int"))),)),),
        steps=(StepDef("pay", (number,), "Bool", True, undo=0, undo_args=2, limits=((3, 0),)),),
        migrations=(MigrationDef("old", (number,), 3),),
        views=(ViewDef("tally", "Int", 4),),
        listens=True,
        keep=1000,
        peers=(PeerDef("test.Other", "Int", (("in", "String", None), ("ask", "Int", "Bool"))),),
    )
