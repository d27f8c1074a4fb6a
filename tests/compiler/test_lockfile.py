"""flow.lock: written and read back, damaged in every way, and what a build makes of it."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from qoqi.compiler.diagnostics import Diagnostic
from qoqi.compiler.project.lockfile import (
    Lock,
    LockedChannel,
    LockedFlow,
    LockedStage,
    LockedVersion,
    mark_deployed,
    read,
    write,
)
from qoqi.compiler.project.shapes import Comparison, Part, ShapeError, parse, parse_part

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64


def version(hash_: str, previous: str | None = None, deployed: bool = False) -> LockedVersion:
    return LockedVersion(
        hash=hash_,
        previous=previous,
        deployed=deployed,
        params=(Part("claim", "claims.Claim"),),
        fields=(Part("votes", "Map<String, Bool>", default=True),),
        channels=(
            LockedChannel("decisions", "claims.Decision"),
            LockedChannel("changes", "String", answers="Result<(), String>"),
        ),
        stages=(LockedStage("deciding", (Part("deadline", "Time"),)), LockedStage("paying", ())),
        steps=("pay(id: String) -> Settled<String>",),
        undos=("refund",),
        types={
            "claims.Claim": ("struct", "id: String", '"content-type": String?', "memo: String = …"),
            "claims.Decision": ("enum", "Approved(by: String, at: (Int, Time))", "Withdrawn"),
        },
    )


LOCK = Lock(
    (
        LockedFlow("claims.Expense", (version(ONE, deployed=True), version(TWO, previous=ONE))),
        LockedFlow("claims.Other", (version(THREE, deployed=True),)),
    )
)


def test_what_is_written_is_read() -> None:
    assert read(write(LOCK)) == LOCK
    assert read(write(Lock())) == Lock()


def test_the_text_is_toml_and_the_same_each_time() -> None:
    text = write(LOCK)
    assert text == write(LOCK)
    data = tomllib.loads(text)
    assert data["format"] == 1
    first = data["flow"][0]["version"][0]
    assert first["channels"] == [
        "decisions: claims.Decision",
        "changes: String answers Result<(), String>",
    ]
    assert first["stages"] == {"deciding": ["deadline: Time"], "paying": []}


def test_a_new_variable_changes_one_line() -> None:
    first, second = LOCK.flows[0].versions
    stage = LockedStage("deciding", (Part("deadline", "Time"), Part("round", "Int")))
    two = replace(first, stages=(LockedStage("deciding", (Part("a", "Int"), *stage.variables)),))
    three = replace(two, stages=(stage,))
    before = write(Lock((LockedFlow("f.F", (two,)),))).splitlines()
    after = write(Lock((LockedFlow("f.F", (three,)),))).splitlines()
    assert [line for line in before if line not in after] == ['    "a: Int",']
    assert [line for line in after if line not in before] == []
    assert second.previous == first.hash


def test_text_with_quotes_and_control_characters_survives() -> None:
    strange = 'a "b" \\ \x07 \x7f \n é 🎈'
    flow = LockedFlow(strange, (replace(version(ONE), steps=(strange,)),))
    assert read(write(Lock((flow,)))) == Lock((flow,))


def damaged(text: str) -> Diagnostic:
    found = read(text)
    assert isinstance(found, Diagnostic)
    return found


def test_a_merge_conflict_is_named_at_its_marker() -> None:
    text = write(LOCK)
    middle = text.index("  hash")
    conflicted = text[:middle] + "<<<<<<< HEAD\n" + text[middle:] + "=======\n>>>>>>> other\n"
    found = damaged(conflicted)
    assert found.code == "E0230"
    assert conflicted[found.span.start : found.span.end] == "<<<<<<< "
    assert "qoqi build" in found.notes[0]


def test_what_is_not_toml_is_marked_where_it_breaks() -> None:
    text = 'format = 1\n[[flow]]\nname = "x\n'
    found = damaged(text)
    assert found.code == "E0231"
    assert text[: found.span.start].count("\n") == 2


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "E0232", "says no format"),
        ('[metadata]\nname = "poetry"\n', "E0232", "says no format"),
        ("format = 2\n", "E0232", "of format 2"),
        ("format = 1\nflow = 3\n", "E0231", "is no list"),
        ("format = 1\n[[flow]]\n", "E0231", "`name` is missing"),
        ('format = 1\n[[flow]]\nname = "f"\n[[flow.version]]\nhash = "zz"\n', "E0231", "no hash"),
    ],
)
def test_other_files_are_refused(text: str, code: str, words: str) -> None:
    found = damaged(text)
    assert found.code == code
    assert words in found.message
    assert found.notes


def test_a_newer_format_asks_for_a_newer_tool() -> None:
    assert "install" in damaged("format = 2\n").notes[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("deadline: Time", "deadline Time"),
        ("deadline: Time", "deadline: Time<"),
        ("deployed = true", 'deployed = "yes"'),
        ('"struct",', '"record",'),
        (f'previous = "{ONE}"', f'previous = "{THREE}"'),
        ("  deployed = true\n  params", "  deployed = false\n  params"),
        ("Approved(by", "Approved by"),
    ],
)
def test_a_lock_changed_by_hand_is_refused(old: str, new: str) -> None:
    text = write(LOCK)
    assert old in text
    assert damaged(text.replace(old, new, 1)).code == "E0231"


def test_every_cut_of_the_text_is_refused_or_is_a_whole_lock() -> None:
    text = write(LOCK)
    for end in range(0, len(text), 97):
        found = read(text[:end])
        assert isinstance(found, Diagnostic | Lock)


def test_a_version_never_deployed_is_replaced() -> None:
    flow = LockedFlow("f.F", ()).followed_by(version(ONE))
    assert [each.hash for each in flow.versions] == [ONE]
    flow = flow.followed_by(version(TWO))
    assert [(each.hash, each.previous) for each in flow.versions] == [(TWO, None)]


def test_a_deployed_version_is_followed() -> None:
    lock = Lock().with_flows([LockedFlow("f.F", ()).followed_by(version(ONE))])
    lock = mark_deployed(lock, "f.F", ONE)
    flow = lock.flow("f.F").followed_by(version(TWO))
    assert [(each.hash, each.previous, each.deployed) for each in flow.versions] == [
        (ONE, None, True),
        (TWO, ONE, False),
    ]
    assert flow.base is not None
    assert flow.base.hash == ONE


def test_going_back_to_the_deployed_version_drops_the_one_after_it() -> None:
    flow = LockedFlow("f.F", (version(ONE, deployed=True), version(TWO, previous=ONE)))
    assert flow.followed_by(version(ONE)).versions == (version(ONE, deployed=True),)


def test_only_a_known_version_is_marked_deployed() -> None:
    with pytest.raises(KeyError):
        mark_deployed(LOCK, "claims.Expense", THREE)


def test_flows_are_sorted_by_name() -> None:
    b, a = (LockedFlow(name, (version(ONE),)) for name in ("m.B", "m.A"))
    assert [flow.name for flow in Lock().with_flows([b, a]).flows] == ["m.A", "m.B"]


OLD = {
    "m.Claim": ("struct", "id: String", "cents: Int"),
    "m.Kind": ("enum", "Small", "Large(by: Int)"),
    "m.Tree": ("struct", "children: List<m.Tree>", "at: Int"),
    "m.Box": ("struct", "value: $0"),
}


@pytest.mark.parametrize(
    ("old", "new", "reads"),
    [
        ("Int", "Int", True),
        ("Int", "Decimal", True),
        ("Decimal", "Int", False),
        ("Int", "Int?", True),
        ("Int?", "Int", False),
        ("()", "()?", False),
        ("Set<Int>", "List<Int>", True),
        ("List<Int>", "Set<Int>", False),
        ("List<Int>", "List<Decimal?>", True),
        ("Map<String, Int>", "Map<Int, Int>", False),
        ("(Int, String)", "(Decimal, String)", True),
        ("(Int, String)", "(Int, String, Int)", False),
        ("Result<Int, String>", "Result<Decimal, String>", True),
        ("Instance<m.F>", "Instance<m.G>", False),
        ("m.Claim", "Json", True),
        ("m.Claim", "m.Claim", True),
        ("m.Claim", "n.Wider", True),
        ("n.Wider", "m.Claim", False),
        ("m.Kind", "n.More", True),
        ("m.Kind", "n.Less", False),
        ("m.Tree", "n.Tree", True),
        ("m.Tree", "n.Bush", False),
        ("m.Box<Int>", "m.Box<Decimal>", True),
        ("m.Box<String>", "m.Box<Decimal>", False),
        ("m.Claim", "m.Kind", False),
    ],
)
def test_what_reads_into_what(old: str, new: str, reads: bool) -> None:
    later = {
        **OLD,
        "n.Wider": ("struct", "id: String", "cents: Decimal", "memo: String = …", "why: String?"),
        "n.More": ("enum", "Small", "Large(by: Int, over: Int?)", "Huge"),
        "n.Less": ("enum", "Large(by: Int)"),
        "n.Tree": ("struct", "children: List<n.Tree>", "at: Decimal"),
        "n.Bush": ("struct", "children: List<n.Bush>", "at: String"),
    }
    earlier = {**OLD, "n.Wider": ("struct", "id: String")}
    assert Comparison(earlier, later).reads(parse(old), parse(new)) is reads


def test_a_type_that_changed_under_its_name_is_seen_through_others() -> None:
    later = {**OLD, "m.Claim": ("struct", "id: Int", "cents: Int")}
    compared = Comparison(OLD, later)
    assert not compared.reads(parse("List<m.Box<m.Claim>>"), parse("List<m.Box<m.Claim>>"))
    assert compared.reads(parse("m.Tree"), parse("m.Tree"))


def test_a_type_that_grows_at_each_turn_compares_with_itself() -> None:
    types = {"m.Nest": ("struct", "next: m.Nest<List<$0>>?")}
    assert Comparison(types, types).reads(parse("m.Nest<Int>"), parse("m.Nest<Int>"))


@pytest.mark.parametrize(
    "text", ["", "List<", "List<Int", "(Int", "Int Int", "Int??!", "<Int>", "Int,"]
)
def test_what_is_no_type(text: str) -> None:
    with pytest.raises(ShapeError):
        parse(text)


def test_a_part_may_have_any_json_name() -> None:
    part = Part('a: "b"', "List<Int>", default=True)
    assert parse_part(str(part)) == part
