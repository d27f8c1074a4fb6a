"""Building a package: versions against flow.lock, and files that are whole or not there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.compiler.project.lockfile import Lock, mark_deployed, read, write
from qoqi.vm.bytecode.codec import decode, decode_debug, version_hash

FIRST = """
enum Kind { Small, Large }
step note(n: Int) undo forget(n) { }
step forget(n: Int) { }
flow Main(claim: String) {
    channel decisions: Kind
    channel changes: Int answers Bool
    var count = 0
    run {
        var day = 1
        note(day)
        while day < 9 {
            stage waiting(day)
            let _ = decisions.receive()
            day += 1
        }
    }
}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "main.flow").write_text(FIRST)
    return tmp_path


def sources(package: Path, text: str) -> None:
    (package / "main.flow").write_text(text)


def lock_of(package: Path) -> Lock:
    lock = read((package / "flow.lock").read_text())
    assert isinstance(lock, Lock)
    return lock


def deploy(package: Path) -> str:
    """What `qoqi deploy` does to the lock."""
    lock = lock_of(package)
    hash_ = lock.flow("main.Main").versions[-1].hash
    (package / "flow.lock").write_text(write(mark_deployed(lock, "main.Main", hash_)))
    return hash_


def built(package: Path, *, locked: bool = False) -> api.BuildResult:
    result = api.build(str(package), locked=locked)
    assert result.ok, [(each.code, each.message) for each in result.diagnostics]
    return result


def refused(package: Path) -> list[tuple[str, str]]:
    """The codes of a build that fails, each with the text it marks."""
    before = snapshot(package)
    result = api.build(str(package))
    assert not result.ok
    assert result.flows == ()
    assert snapshot(package) == before
    text = (package / "main.flow").read_text()
    return [
        (each.code, text[each.span.start : each.span.end])
        for each in result.diagnostics
        if not each.code.startswith("W")
    ]


def snapshot(package: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(package)): path.read_bytes()
        for path in sorted(package.rglob("*"))
        if path.is_file()
    }


def test_a_build_writes_bytecode_and_lock(package: Path) -> None:
    result = built(package)
    (flow,) = result.flows
    assert (flow.name, flow.previous, flow.change) == ("main.Main", None, "new")
    folder = package / ".qoqi" / "build"
    data = (folder / f"{flow.hash}.chunk").read_bytes()
    assert version_hash(data) == flow.hash
    assert decode(data) == flow.chunk
    debug = decode_debug((folder / f"{flow.hash}.debug").read_bytes())
    assert {function.file for function in debug.functions} == {"main.flow"}
    (locked,) = lock_of(package).flow("main.Main").versions
    assert (locked.hash, locked.previous, locked.deployed) == (flow.hash, None, False)
    assert [str(part) for part in locked.params] == ["claim: String"]
    assert [str(part) for part in locked.fields] == ["count: Int = …"]
    assert [(stage.name, [*map(str, stage.variables)]) for stage in locked.stages] == [
        ("waiting", ["day: Int"])
    ]
    assert [channel.name for channel in locked.channels] == ["decisions", "changes"]
    assert locked.steps == ("note(n: Int) -> ()", "forget(n: Int) -> ()")
    assert locked.undos == ("forget",)
    assert locked.types == {"main.Kind": ("enum", "Small", "Large")}


def test_a_second_build_changes_no_file(package: Path) -> None:
    built(package)
    before = snapshot(package)
    times = {path: path.stat().st_mtime_ns for path in package.rglob("*")}
    result = built(package)
    assert [flow.change for flow in result.flows] == ["same"]
    assert snapshot(package) == before
    assert {path: path.stat().st_mtime_ns for path in package.rglob("*")} == times


def test_a_version_never_deployed_is_replaced(package: Path) -> None:
    first = built(package).flows[0].hash
    sources(package, FIRST.replace("day < 9", "day < 10"))
    second = built(package).flows[0]
    assert second.change == "changed"
    assert [each.hash for each in lock_of(package).flow("main.Main").versions] == [second.hash]
    assert first != second.hash


def test_a_deployed_version_stays(package: Path) -> None:
    built(package)
    first = deploy(package)
    sources(package, FIRST.replace("day < 9", "day < 10"))
    second = built(package).flows[0]
    assert second.previous == first
    versions = lock_of(package).flow("main.Main").versions
    assert [(each.hash, each.previous, each.deployed) for each in versions] == [
        (first, None, True),
        (second.hash, first, False),
    ]


def test_a_comment_makes_no_version(package: Path) -> None:
    built(package)
    first = deploy(package)
    sources(package, "// a comment\n\n" + FIRST)
    assert built(package).flows[0].hash == first
    assert len(lock_of(package).flow("main.Main").versions) == 1


def test_locked_refuses_what_would_change_the_lock(package: Path) -> None:
    built(package)
    built(package, locked=True)
    sources(package, FIRST.replace("day < 9", "day < 10"))
    before = snapshot(package)
    result = api.build(str(package), locked=True)
    assert [each.code for each in result.diagnostics] == ["E0233"]
    assert "main.Main" in result.diagnostics[0].notes[0]
    assert snapshot(package) == before


def test_locked_without_a_lock_is_refused(package: Path) -> None:
    result = api.build(str(package), locked=True)
    assert [each.code for each in result.diagnostics] == ["E0233"]
    assert not (package / ".qoqi").exists()


def test_a_flow_that_is_gone_keeps_what_was_deployed(package: Path) -> None:
    built(package)
    sources(package, FIRST.replace("flow Main", "flow Renamed"))
    built(package)
    assert [flow.name for flow in lock_of(package).flows] == ["main.Renamed"]
    sources(package, FIRST)
    built(package)
    deploy(package)
    sources(package, FIRST.replace("flow Main", "flow Renamed"))
    built(package)
    assert [flow.name for flow in lock_of(package).flows] == ["main.Main", "main.Renamed"]


def test_channels_keep_their_numbers(package: Path) -> None:
    built(package)
    deploy(package)
    text = FIRST.replace(
        "    channel decisions: Kind\n    channel changes: Int answers Bool\n",
        "    channel more: Int\n    channel changes: Int answers Bool\n"
        "    channel decisions: Kind\n",
    )
    sources(package, text)
    (flow,) = built(package).flows
    assert [each.name for each in flow.chunk.channels] == ["decisions", "changes", "more"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("var count = 0", "var count = 0\n    var label = claim"),
        ("enum Kind { Small, Large }", "enum Kind { Small, Large, Huge }"),
        ("claim: String)", "claim: String, tag: String? = None)"),
        ("stage waiting(day)", "stage waiting"),
    ],
)
def test_what_old_instances_read_by_themselves(package: Path, old: str, new: str) -> None:
    text = FIRST.replace("var day = 1", "var day = 1\n        var round = 1")
    text = text.replace("day < 9", "round < 9").replace("day += 1", "round += 1")
    text = text.replace("waiting(day)", "waiting(day, round)").replace("note(day)", "note(day)")
    sources(package, text)
    built(package)
    deploy(package)
    new = new.replace("stage waiting", "stage waiting(round)")
    assert old.replace("(day)", "(day, round)") in text
    sources(package, text.replace(old.replace("(day)", "(day, round)"), new))
    built(package)


def test_a_stage_of_another_shape_needs_a_migration(package: Path) -> None:
    built(package)
    deploy(package)
    text = FIRST.replace("var day = 1", 'var day = "1"').replace("note(day)", "note(1)")
    text = text.replace("day < 9", "day.len() < 9").replace("day += 1", 'day = "\\(day)0"')
    sources(package, text)
    assert refused(package) == [("F0007", "stage waiting(day)")]
    migration = """
    migrate waiting(day: Int) {
        become waiting(day: "\\(day)")
    }
"""
    sources(package, text.rstrip().removesuffix("}") + migration + "}\n")
    built(package)


def test_a_type_that_changed_under_its_name_needs_a_migration(package: Path) -> None:
    text = FIRST.replace("var count = 0", "var kind = Kind.Small")
    sources(package, text)
    built(package)
    deploy(package)
    sources(package, text.replace("Small, Large", "Small, Wide"))
    found = refused(package)
    assert ("F0007", "stage waiting(day)") in found
    assert ("F0013", "decisions") in found


def test_a_stage_that_is_gone(package: Path) -> None:
    built(package)
    deploy(package)
    text = FIRST.replace("stage waiting(day)", "stage counting(day)")
    sources(package, text)
    assert refused(package) == [("F0010", "Main")]
    migration = "\n    migrate waiting(day: Int) { become counting }\n"
    sources(package, text.rstrip().removesuffix("}") + migration + "}\n")
    built(package)


def test_channels_removed_or_retyped(package: Path) -> None:
    built(package)
    deploy(package)
    sources(package, FIRST.replace("    channel changes: Int answers Bool\n", ""))
    assert refused(package) == [("F0013", "Main")]
    sources(package, FIRST.replace("changes: Int answers Bool", "changes: String answers Bool"))
    assert refused(package) == [("F0013", "changes")]
    sources(package, FIRST.replace("changes: Int answers Bool", "changes: Int answers Int"))
    assert refused(package) == [("F0013", "changes")]


@pytest.mark.parametrize(
    ("migration", "marked"),
    [
        ("migrate nowhere(day: Int) { become waiting(day: 1) }", "nowhere"),
        ("migrate waiting(hour: Int) { become waiting(day: hour) }", "hour: Int"),
        ("migrate waiting(day: String) { become waiting(day: 1) }", "day: String"),
        ("migrate waiting(day: Int) { become other }", "other"),
    ],
)
def test_migrations_that_do_not_fit(package: Path, migration: str, marked: str) -> None:
    built(package)
    deploy(package)
    text = FIRST.replace(
        "stage waiting(day)",
        "let why = claim\n            stage other(why, day)\n            stage waiting(day)",
    ).replace("let _ = decisions", "print(why)\n            let _ = decisions")
    text = FIRST.replace(
        "        note(day)\n",
        "        let why = claim\n        stage other(day, why)\n        print(why)\n",
    )
    sources(package, text.rstrip().removesuffix("}") + f"    {migration}\n}}\n")
    assert ("F0008", marked) in refused(package)


def test_the_step_of_an_undo_that_is_gone_is_a_warning(package: Path) -> None:
    built(package)
    deploy(package)
    sources(package, FIRST.replace(" undo forget(n)", ""))
    result = built(package)
    assert "W0120" in [each.code for each in result.diagnostics]


def test_a_package_with_an_error_is_not_built(package: Path) -> None:
    sources(package, FIRST.replace("day += 1", 'day += "x"'))
    assert [code for code, _ in refused(package)] == ["E0309"]


def test_a_damaged_lock_stops_the_build_and_is_left_alone(package: Path) -> None:
    built(package)
    lock = package / "flow.lock"
    lock.write_text("<<<<<<< HEAD\n" + lock.read_text())
    before = snapshot(package)
    result = api.build(str(package))
    assert [each.code for each in result.diagnostics] == ["E0230"]
    assert result.diagnostics[0].file == str(lock)
    assert snapshot(package) == before


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_an_interrupted_build_leaves_nothing_half_written(
    package: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """The disk is full at the n-th rename: chunk, debug table, lock."""
    built(package)
    old_lock = (package / "flow.lock").read_bytes()
    sources(package, FIRST.replace("day < 9", "day < 10"))
    calls = 0
    replace = os.replace

    def full(source: str, target: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(28, "No space left on device", str(target))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    result = api.build(str(package))
    assert [each.code for each in result.diagnostics] == ["E0234"]
    assert "No space left" in result.diagnostics[0].message
    assert (package / "flow.lock").read_bytes() == old_lock
    leftovers = [path.name for path in package.rglob("*") if path.name.startswith(".flow.lock")]
    assert leftovers == []
    for path in (package / ".qoqi" / "build").iterdir():
        assert path.suffix in (".chunk", ".debug")
    for path in (package / ".qoqi" / "build").glob("*.chunk"):
        assert version_hash(path.read_bytes()) == path.stem


def test_the_folder_a_package_lies_in_does_not_matter(package: Path, tmp_path: Path) -> None:
    here = built(package)
    there = tmp_path / "elsewhere" / "deep"
    there.mkdir(parents=True)
    shutil.copy(package / "main.flow", there / "main.flow")
    away = built(there)
    assert [flow.hash for flow in here.flows] == [flow.hash for flow in away.flows]
    assert [flow.debug for flow in here.flows] == [flow.debug for flow in away.flows]
