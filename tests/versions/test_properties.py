"""Old states at random, moved on: what comes out is what the JSON says, read by the types."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qoqi.vm.failure import FlowError
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.interpreter import decode
from qoqi.vm.jsonform import json_text, to_json
from qoqi.vm.migrate import move
from qoqi.vm.snapshot import freeze, freeze_stage, thaw
from tests.versions.lineage import Version, build, parse

FIRST = """
struct Line { sku: String, cents: Int }
enum Level { Free, Full(until: Time?) }

flow Plan(user: String) -> String {
    channel go: Line
    var total = 0
    var tags: Map<String, Bool> = [:]

    run {
        let lines: List<Line> = []
        let level = Level.Free
        let note: String? = None
        stage trial(lines, level, note)
        let _ = go.receive()
        return "\\(lines) \\(level) \\(note)"
    }
}
"""

# What old JSON reads into by itself: new fields with defaults, wider types, variants more.
SECOND = """
struct Line { sku: String, cents: Decimal, memo: String = "none" }
enum Level { Free, Full(until: Time?, seats: Int = 3), Trial }

flow Plan(user: String) -> String {
    channel go: Line
    channel more: Int
    var total: Decimal = 0
    var tags: Map<String, Bool> = [:]
    var best: String = "\\(user) \\(total)"

    run {
        let lines: List<Line> = []
        let level = Level.Free
        let note: String? = None
        stage trial(lines, level, note)
        let _ = go.receive()
        return "\\(lines) \\(level) \\(note)"
    }
}
"""

# A migration, and a variable that becomes a field.
THIRD = """
struct Line { sku: String, cents: Decimal, memo: String = "none" }
enum Level { Free, Full(until: Time?, seats: Int = 3), Trial }

flow Plan(user: String) -> String {
    channel go: Line
    channel more: Int
    var total: Decimal = 0
    var note: String? = None
    var best: String = ""

    migrate trial(lines: List<Line>, total: Decimal) {
        let first: String? = if lines.isEmpty() { None } else { Some(lines[0].sku) }
        become open(first: first, total: total + 1)
    }

    run {
        let first: String? = None
        let level = Level.Free
        stage open(first, level)
        let _ = go.receive()
        return "\\(first) \\(level) \\(note)"
    }
}
"""

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
LINE = st.fixed_dictionaries({"sku": TEXT, "cents": st.integers(-(10**20), 10**20)})
TIME = st.sampled_from([None, "2026-01-01T00:00:00Z", "1999-12-31T23:59:59.999Z"])
LEVEL = st.one_of(st.just("Free"), st.builds(lambda t: {"Full": {"until": t}}, TIME))
STATE = st.fixed_dictionaries(
    {
        "vars": st.fixed_dictionaries(
            {"lines": st.lists(LINE, max_size=3), "level": LEVEL, "note": st.none() | TEXT}
        ),
        "fields": st.fixed_dictionaries(
            {
                "user": TEXT,
                "total": st.integers(-(10**30), 10**30),
                "tags": st.dictionaries(TEXT, st.booleans(), max_size=3),
            }
        ),
        "items": st.lists(LINE, max_size=2),
    }
)


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Version]:
    return build(Path(tmp_path_factory.mktemp("plan")), FIRST, SECOND, THIRD)


def old_state(first: Version, drawn: dict[str, object]) -> str:
    """A state of the first version at `trial`, as an instance would have written it."""
    items = drawn["items"]
    assert isinstance(items, list)
    life = {
        "id": "p",
        "birth": "b",
        "given": 4,
        "started": 0,
        "undos": 1,
        "cancels": [],
        "refuses": None,
        "returned": False,
        "undosAtStop": [],
        "now": 1_767_225_600_000,
    }
    undo = {
        "number": 1,
        "version": first.hash,
        "target": "refund",
        "args": '["r"]',
        "final": False,
        "key": "p/b/0:0:charge#1",
    }
    channel = [{"value": item, "at": 7, "seq": 3} for item in items]
    text = json_text(
        {
            "format": "qoqi.flow/1",
            "version": first.hash,
            "pass": 3,
            "stage": "trial",
            "life": life,
            "vars": drawn["vars"],
            "fields": drawn["fields"],
            "channels": {"go": {"items": channel, "closed": False}},
            "undo": [undo],
            "counts": {},
        }
    )
    return freeze(thaw(text, first.program), first.program)


@settings(max_examples=150, deadline=None)
@given(drawn=STATE)
def test_moved_and_thawed_is_the_json_read(
    versions: list[Version], drawn: dict[str, object]
) -> None:
    first, second, _ = versions
    old = old_state(first, drawn)
    moved = move(old, [(second.hash, second.program)], first.program)
    machine = thaw(moved, second.program)
    assert freeze_stage(machine, second.program) == moved

    raw, chunk = parse(old), second.program.chunk
    assert isinstance(raw["vars"], dict) and isinstance(raw["fields"], dict)
    slots = machine.tasks["0"].frames[0].slots
    for name, slot, term in chunk.stages[0].variables:
        assert slots[slot] == decode(second.program, raw["vars"][name], term)
    for number, field in enumerate(chunk.flow_slots):
        if field.name in raw["fields"]:
            wanted = decode(second.program, raw["fields"][field.name], field.type)
            assert machine.flow_slots[number] == wanted
    total = to_json(machine.flow_slots[1])
    assert machine.flow_slots[3] == f"{raw['fields']['user']} {total}"
    assert [to_json(item[0])["sku"] for item in machine.channels[0].items] == [  # type: ignore
        item["sku"]
        for item in drawn["items"]  # type: ignore[attr-defined]
    ]
    assert machine.channels[1].items == []
    kept = parse(moved)
    assert {**kept, "version": "", "vars": {}, "fields": {}, "channels": {}} == {
        **raw,
        "version": "",
        "vars": {},
        "fields": {},
        "channels": {},
    }


@settings(max_examples=100, deadline=None)
@given(drawn=STATE)
def test_two_moves_are_one_after_the_other(
    versions: list[Version], drawn: dict[str, object]
) -> None:
    first, second, third = versions
    old = old_state(first, drawn)
    one = move(old, [(second.hash, second.program)], first.program)
    two = move(one, [(third.hash, third.program)], second.program)
    at_once = [(second.hash, second.program), (third.hash, third.program)]
    assert move(old, at_once, first.program) == two
    assert move(old, [], first.program) == old

    machine, before = thaw(two, third.program), parse(one)
    assert isinstance(before["vars"], dict)
    kept = parse(two)
    assert kept["stage"] == "open"
    lines = before["vars"]["lines"]
    assert kept["vars"] == {
        "first": lines[0]["sku"] if lines else None,
        "level": before["vars"]["level"],
    }
    assert isinstance(kept["fields"], dict)
    assert kept["fields"]["note"] == before["vars"]["note"]
    assert "tags" not in kept["fields"]
    assert freeze(machine, third.program) == two


@settings(max_examples=60, deadline=None)
@given(drawn=STATE, cut=st.integers(0, 400))
def test_a_damaged_state_moves_nowhere(
    versions: list[Version], drawn: dict[str, object], cut: int
) -> None:
    first, second, _ = versions
    old = old_state(first, drawn)
    with pytest.raises((SnapshotError, FlowError)):
        move(old[: -1 - cut % (len(old) - 1)], [(second.hash, second.program)], first.program)
