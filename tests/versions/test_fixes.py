"""What a build says about instances that live in the deployed version, and the fixes that do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.compiler.diagnostics import Diagnostic
from qoqi.vm.migrate import move
from tests.versions.lineage import build, parse, start_state_at
from tests.versions.test_moving import TRIAL, WEEKS


def refused(folder: Path, source: str) -> Diagnostic:
    (folder / "plan.flow").write_text(source, "utf-8")
    result = api.build(str(folder))
    assert not result.ok
    (found,) = (each for each in result.diagnostics if each.code.startswith("F"))
    return found


def applied(source: str, found: Diagnostic) -> str:
    (fix,) = found.fixes
    (edit,) = fix.edits
    return source[: edit.span.start] + edit.text + source[edit.span.end :]


RENAMED = TRIAL.replace("stage trial(day)", "stage testing(day)")
OTHER_NAME = TRIAL.replace("day", "at")


@pytest.mark.parametrize(
    ("source", "code", "migration"),
    [
        (RENAMED, "F0010", "migrate trial() {\n        become testing\n    }"),
        (OTHER_NAME, "F0007", "migrate trial(day: Int) {\n        become trial(at: day)\n    }"),
    ],
)
def test_the_fix_writes_the_migration(
    tmp_path: Path, source: str, code: str, migration: str
) -> None:
    """Applied, the build accepts it, and an instance goes over with what it had."""
    (first,) = build(tmp_path, TRIAL)
    found = refused(tmp_path, source)
    assert found.code == code
    mended = applied(source, found)
    assert migration in mended
    (second,) = build(tmp_path, mended)
    old = start_state_at(first, "trial", {"day": 8}, {"user": "ana", "total": 3})
    moved = parse(move(old, [(second.hash, second.program)], first.program))
    assert moved["vars"] in ({"day": 8}, {"at": 8})


SMALL = """
flow Plan(user: String) -> String {
    channel go: Int

    run {
        let day = go.receive()
        stage trial(day)
        let n = go.receive()
        return "\\(user) \\(day + n)"
    }
}
"""


def test_where_a_value_does_not_fit_the_build_asks_for_it(tmp_path: Path) -> None:
    """The fix takes what is gone; that it is an Int and no text is for the person to mend."""
    build(tmp_path, SMALL)
    source = SMALL.replace("let day = go.receive()", 'let week = "w\\(go.receive())"')
    source = source.replace("trial(day)", "trial(week)").replace("day + n", "week")
    mended = applied(source, refused(tmp_path, source))
    assert "migrate trial(day: Int) {\n        become trial(week: day)" in mended
    (tmp_path / "plan.flow").write_text(mended, "utf-8")
    asked = [each for each in api.build(str(tmp_path)).diagnostics if each.code.startswith("E")]
    assert [mended[each.span.start : each.span.end] for each in asked] == ["day"]


def test_a_migration_of_a_stage_that_did_not_change_is_named(tmp_path: Path) -> None:
    """It would not be run; it is removed by a fix."""
    build(tmp_path, TRIAL, WEEKS)
    kept = (
        WEEKS.replace("migrate trial(day: Int)", "migrate trial(weeks: String)")
        .replace('"\\(day / 7)w"', "weeks")
        .replace('"\\(n)w"', '"\\(n)x"')
    )
    (tmp_path / "plan.flow").write_text(kept, "utf-8")
    result = api.build(str(tmp_path))
    assert result.ok
    (warned,) = (each for each in result.diagnostics if each.code == "W0121")
    assert kept[warned.span.start : warned.span.end] == "trial"
    without = applied(kept, warned)
    assert "migrate" not in without
    (tmp_path / "plan.flow").write_text(without, "utf-8")
    assert [each.code for each in api.build(str(tmp_path)).diagnostics] == []
