"""What was written once is read for ever: golden bytecode and states, thawed and gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoqi.runtime.programs import open_version
from qoqi.runtime.simulation.world import Simulation
from qoqi.runtime.store.protocol import StartRequest
from qoqi.vm.bytecode.codec import decode, decode_debug, encode, encode_debug, version_hash
from qoqi.vm.jsonform import json_text
from qoqi.vm.migrate import move
from qoqi.vm.snapshot import freeze, thaw
from tests.versions.lineage import FLOW, Version, parse, world

GOLDEN = Path(__file__).parents[1] / "golden"
CHUNKS = sorted((GOLDEN / "qoqi.bytecode-1").glob("*.chunk"))
STATES = sorted((GOLDEN / "qoqi.flow-1").glob("*.json"))

CHARGED = [
    'charge({"sku":"pen","cents":"1.50","memo":null})',
    'charge({"sku":"ink","cents":"20.00","memo":"blue"})',
]
RESULT = json_text(f"ana 12 {json_text(CHARGED)}")

# By where an instance stands: what is sent to it then, so that it ends with RESULT.
TO_COME = {
    "at-the-start": (5, 6),
    "a-step-is-under-way": (5, 6),
    "two-tasks-are-at-steps": (5, 6),
    "at-a-stage": (5, 6),
    "waiting-for-a-message": (5, 6),
    "at-another-stage": (6,),
}


def name(path: Path) -> str:
    return path.stem.partition("-")[2]


def text(path: Path) -> str:
    return path.read_text("utf-8").removesuffix("\n")


def version_of(path: Path) -> Version:
    (chunk,) = (one for one in CHUNKS if one.stem.startswith(path.stem[:12]))
    debug = chunk.with_suffix(".debug").read_bytes()
    made = Version(chunk.stem, None, chunk.read_bytes(), debug)  # type: ignore[arg-type]
    return Version(made.hash, open_version(made.row(None)), made.data, made.debug)


def test_there_are_golden_files() -> None:
    assert len(CHUNKS) >= 1
    assert {name(path) for path in STATES} >= {*TO_COME, "with-a-result", "stopped", "undoing"}


@pytest.mark.parametrize("path", CHUNKS, ids=lambda path: path.stem[:12])
def test_bytecode_is_read_and_written_as_it_was(path: Path) -> None:
    data, debug = path.read_bytes(), path.with_suffix(".debug").read_bytes()
    assert version_hash(data) == path.stem
    assert encode(decode(data)) == data
    assert encode_debug(decode_debug(debug)) == debug


@pytest.mark.parametrize("path", STATES, ids=name)
def test_a_state_is_thawed_and_frozen_as_it_was(path: Path) -> None:
    program = version_of(path).program
    assert freeze(thaw(text(path), program), program) == text(path)


@pytest.mark.parametrize("path", [path for path in STATES if name(path) in TO_COME], ids=name)
def test_an_instance_goes_on_from_it(path: Path) -> None:
    version = version_of(path)
    made = world(version)
    life = parse(text(path))["life"]
    assert isinstance(life, dict)
    channels = tuple(
        (number, one.name, one.capacity, one.inside)
        for number, one in enumerate(version.program.chunk.channels)
    )
    request = StartRequest(
        "p", str(life["birth"]), FLOW, version.hash, "{}", text(path), None, channels
    )
    made.store.create(request, made.now)
    finish(made, TO_COME[name(path)])
    assert (made.row("p").status, made.row("p").result) == ("done", RESULT)


def finish(made: Simulation, messages: tuple[int, ...]) -> None:
    made.advance_to(made.now + 1_000)
    for message in messages:
        assert made.send("p", "go", message) == "Delivered"
        made.advance_to(made.now + 1_000)


def test_a_golden_stage_moves_on(tmp_path: Path) -> None:
    """A state of the past goes over into a version of now, here the same code again."""
    (path,) = (path for path in STATES if name(path) == "at-a-stage")
    version = version_of(path)
    moved = parse(move(text(path), [("f" * 64, version.program)], version.program))
    assert {**moved, "version": version.hash} == parse(text(path))
