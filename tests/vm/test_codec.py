"""Bytes of chunks: round trip, one hash everywhere, damage and lies refused, dump."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qoqi.vm.bytecode.chunk import (
    Debug,
    FunctionDebug,
    MigrationDef,
    Place,
    StageDef,
    StepDef,
    ViewDef,
)
from qoqi.vm.bytecode.codec import (
    ChunkError,
    decode,
    decode_debug,
    encode,
    encode_debug,
    version_hash,
)
from qoqi.vm.bytecode.disassemble import disassemble
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.bytecode.verify import verify
from qoqi.vm.program import load
from tests.vm.assembler import assemble
from tests.vm.sample import chunk

ROOT = Path(__file__).parents[2]


def test_the_same_chunk_comes_back() -> None:
    data = encode(chunk())
    assert decode(data) == chunk()
    assert encode(decode(data)) == data


def test_a_loaded_program_takes_it() -> None:
    loaded = load(decode(encode(chunk())))
    assert loaded.constants[2] == 10**30


constants = st.one_of(
    st.integers(),
    st.text(st.characters(codec="utf-8")),
    st.floats(allow_nan=False),
    st.binary(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.tuples(st.sampled_from(["Duration", "Time", "Date"]), st.integers(-(2**40), 2**40)),
)


@given(st.lists(constants, max_size=5))
@settings(max_examples=100, deadline=None)
def test_constants_come_back_as_they_were(values: list[object]) -> None:
    before = replace(chunk(), constants=tuple(values))
    after = decode(encode(before))
    assert [(type(value), repr(value)) for value in after.constants] == [
        (type(value), repr(value)) for value in values
    ]


def test_debug_comes_back_and_is_no_part_of_the_hash() -> None:
    debug = Debug((FunctionDebug("a.flow", ((0, 3), (4, 5)), ("x", "")),))
    assert decode_debug(encode_debug(debug)) == debug
    assert len(version_hash(encode(chunk()))) == 64


HASHING = """
import sys
sys.path[:0] = [{root!r}, {links!r}, *{extra!r}]
from tests.vm.sample import chunk
from qoqi.vm.bytecode.codec import encode, version_hash
print(version_hash(encode(chunk())))
"""


def hash_elsewhere(python: str, seed: str) -> str:
    extra = [path for path in sys.path if path.endswith("site-packages")]
    code = HASHING.format(root=str(ROOT), links=str(ROOT / ".links"), extra=extra)
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def pythons() -> list[str]:
    """This Python, and the others that are here and start."""
    found = [shutil.which(f"python3.{minor}") for minor in (11, 12, 13)]
    starting = [
        path
        for path in found
        if path
        and not subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode
    ]
    return [sys.executable, *starting]


def test_the_hash_is_the_same_in_another_process_and_another_python() -> None:
    expected = version_hash(encode(chunk()))
    for number, python in enumerate(pythons()):
        assert hash_elsewhere(python, str(number + 1)) == expected


# --- damage -----------------------------------------------------------------------------------


def test_damaged_bytes_are_refused() -> None:
    data = encode(chunk())
    for wrong, text in (
        (data + b"\x00", "more bytes behind its end"),
        (data[:-1], "damaged or cut off"),
        (b"", "damaged or cut off"),
        (b"\xc0", "no bytecode of flow"),
        (msgpack.packb(["qoqi.bytecode/9"]), "has format 'qoqi.bytecode/9'"),
        (encode_debug(Debug()), "has format 'qoqi.debug/1'"),
        (b"\x91" * 5000, "damaged"),
    ):
        with pytest.raises(ChunkError, match=text):
            decode(wrong)


def test_every_prefix_is_refused() -> None:
    data = encode(chunk())
    for size in range(len(data)):
        with pytest.raises(ChunkError):
            decode(data[:size])


def test_bytes_that_are_not_canonical_are_refused() -> None:
    data = encode(chunk())
    kept = b"\xcd\x03\xe8"  # 1000 in three bytes, and once more in five
    assert data.count(kept) == 1
    long_form = data.replace(kept, b"\xce\x00\x00\x03\xe8")
    assert msgpack.unpackb(long_form) == msgpack.unpackb(data)
    with pytest.raises(ChunkError, match="canonical"):
        decode(long_form)


def test_random_damage_is_refused_or_decodes_to_something_else() -> None:
    """Never another exception, neither in the decoder nor in the verifier."""
    data = encode(chunk())
    chance = random.Random(7)
    for _ in range(1500):
        broken = bytearray(data)
        for _ in range(chance.randint(1, 3)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        try:
            found = decode(bytes(broken))
            verify(found)
        except ChunkError:
            continue
        assert encode(found) == bytes(broken)


# --- verify -----------------------------------------------------------------------------------


def refused(source: str, problem: str, **tables: object) -> None:
    with pytest.raises(ChunkError, match=problem):
        load(assemble(source, **tables))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("POP\nUNIT\nRETURN", "pc 0: POP takes 1 values, there are 0"),
        ("UNIT", "pc 0: the code ends here"),
        ("JUMP 7", "JUMP 7, which is out of range"),
        ("LOAD 1\nRETURN", "LOAD 1, which is out of range"),
        ("LOAD -1\nRETURN", "LOAD -1, which is out of range"),
        ("CONST 0\nRETURN", "CONST 0, which is out of range"),
        ("NATIVE 0\nRETURN", "NATIVE 0, which is out of range"),
        ("top:\nUNIT\nJUMP top", "is reached with 0 and 1 values"),
        ("TRUE\nJUMP_IF_FALSE b\nUNIT\nb:\nUNIT\nRETURN", "is reached with"),
        ("STAGE 0\nUNIT\nRETURN", "STAGE 0, which is out of range"),
        ("RETURN_MUTATED", "RETURN_MUTATED takes 1|without a self"),
        ("NEXT 0\nJUMP_IF_FALSE 0", "NEXT 0, which is out of range"),
        ("WAIT_CASE 15\nRETURN", "WAIT_CASE 15, which is out of range"),
        ("UNIT 1\nRETURN", "UNIT 1, which is out of range"),
    ],
)
def test_a_chunk_that_lies_is_refused(code: str, problem: str) -> None:
    refused(f"function main 0 1\n{code}", problem)


def test_nothing_jumps_between_next_and_its_jump() -> None:
    walk = "LIST 0\nSTORE 0\nINT 0\nSTORE 1\nTRUE\nJUMP_IF_TRUE half\nNEXT 0\nhalf:\n"
    refused(f"function main 0 2\n{walk}JUMP_IF_FALSE end\nPOP\nend:\nUNIT\nRETURN", "between NEXT")
    refused("function main 0 2\nNEXT 0\nUNIT\nRETURN", "NEXT without JUMP_IF_FALSE")


def test_natives_are_looked_up_as_a_program_is_loaded() -> None:
    refused("function main 0 0\nUNIT\nRETURN", "no native nope", natives=(("nope", 1),))
    refused(
        "function main 0 0\nUNIT\nRETURN",
        "List.take does not take 3 arguments",
        natives=(("List.take", 3),),
    )
    refused(
        "function main 0 1\nINT 1\nMUTATE 0\nRETURN",
        "no native List.len that changes a place",
        places={"main": [Place(False, 0)]},
        mutations={"main": [("List.len", 1, 0)]},
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"run": 99}, "run is function 99"),
        ({"run": 1}, "run, show, takes 1 parameters, not 0"),
        ({"terms": (("List",),)}, "malformed"),
        ({"terms": (("struct", 0),)}, "malformed"),
        ({"terms": ("Nope",)}, "'Nope', which is none"),
        ({"terms": (("param", 0),)}, "malformed"),
        ({"variants": ((0, 9),)}, "has no variant 9"),
        ({"closures": ((1, 2),)}, "captures 2 of 1 values"),
        ({"stages": (StageDef("one", 2, ()),)}, "does not stand before its entry"),
        ({"stages": (StageDef("one", 3, (("x", 9, "Int"),)),)}, "has x in slot 9"),
        ({"steps": (StepDef("pay", (), "Bool", True, body=1),)}, "the body of step pay"),
        ({"steps": (StepDef("pay", (), "Bool", True, undo=5),)}, "has undo 5"),
        ({"views": (ViewDef("tally", "Int", 1),)}, "view tally, show, takes 1"),
        ({"migrations": (MigrationDef("old", (), 3),)}, "migration old, moved, takes 1"),
    ],
)
def test_tables_that_lie_are_refused(change: dict[str, object], problem: str) -> None:
    with pytest.raises(ChunkError, match=problem):
        verify(replace(chunk(), **change))  # type: ignore[arg-type]


def test_changed_instructions_are_refused_or_run_within_bounds() -> None:
    """Any change of one number in the code: ChunkError, or depths for every pc."""
    good = chunk()
    run = good.functions[0]
    for at, (op, operand) in enumerate(run.code):
        for instruction in (
            *((other.value, operand) for other in Op),
            *((op, changed) for changed in (-1, 0, 1, 15, 40, 10**9)),
        ):
            code = (*run.code[:at], instruction, *run.code[at + 1 :])
            changed = replace(good, functions=(replace(run, code=code), *good.functions[1:]))
            try:
                depths = verify(changed)
            except ChunkError:
                continue
            assert len(depths[0]) == len(code)
            assert depths[0][0] == 0


# --- dump -------------------------------------------------------------------------------------


def test_the_dump_names_what_numbers_mean() -> None:
    debug = Debug(tuple(FunctionDebug("a.flow", ((0, 3),), ("lines", "at")) for _ in range(5)))
    text = disassemble(chunk(), debug)
    for line in (
        "flow test.Test -> () listens keep 1000ms",
        "  parameter 0 lines: List<List<Int>>",
        "  channel 0 in: Int answers Bool capacity 16",
        "  stage 0 one(lines@0: List<List<Int>>) at 3",
        "  step 0 pay(n: Int) -> Bool settled within 60000ms limit 3 undo 0 undo_args undo_of#2",
        "  view tally -> Int = fields#4",
        "  peer test.Other(in, ask) -> Int",
        "  migrate old(n: Int) = moved#3",
        '  struct 4 main.Line { sku: String as "stock-number", cents: Int, note: Option<String> }',
        "function 0 run: 0 of 4 slots",
        "    3    0  LOAD_FLOW        0     lines",
        "         4  WAIT_CASE        0     case 0 RECEIVE",
        "        11  STEP             0     pay",
        "        22  MUTATE           0     List.append/1 of lines[at]",
    ):
        assert line in text.splitlines()
