"""everyCrash through versions: three daemons, a death at every write, before it and after it.

The outcome is that of the run without a death, and all that must hold does (`simulation.crashes`).
"""

from __future__ import annotations

from pathlib import Path

from qoqi.runtime.simulation.crashes import Outcome, Play, Report, every_crash
from qoqi.runtime.simulation.world import Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from tests.versions.lineage import FLOW, Version, build, deploy, parse, world
from tests.versions.test_moving import PAYING, TRIAL, WEEKS
from tests.versions.test_resuming import ARGS, FIXED, ORDER


def crashes(first: Version, play: Play) -> Report:
    def make(store: Store) -> Simulation:
        return world(first, store=store, daemons=3)

    return every_crash(make, memory_store, play, same)


def same(whole: Outcome, now: Outcome) -> bool:
    """Alike but for the moment of a cancellation, which a crash may put off."""

    def ends(outcome: Outcome) -> dict[str, tuple[str, str | None]]:
        return {
            id: (status, result if status != "failed" else str(parse(result)["reason"]))
            for id, (status, result) in outcome.ends.items()
        }

    return ends(whole) == ends(now) and whole.undone == now.undone


def test_through_migrations(tmp_path: Path) -> None:
    """From one version through a second to another stage of a third, and on to the end."""
    first, second, third = build(tmp_path, TRIAL, WEEKS, PAYING)

    def play(made: Simulation) -> None:
        made.start(FLOW, "p", ("ana",))
        made.rest()
        deploy(made, second)
        made.send("p", "go", 2, "a")
        made.rest()
        assert made.row("p").version == second.hash
        deploy(made, third)
        for key in ("b", "c"):
            made.send("p", "go", 5, key)
            made.rest()

    report = crashes(first, play)
    assert report.points >= 20
    assert report.outcome.ends == {"p": ("done", '"12"')}


def test_through_a_migration_that_fails_and_one_that_mends_it(tmp_path: Path) -> None:
    broken = WEEKS.replace('"\\(day / 7)w"', '"\\(7 / (day - 2))w"')
    first, second = build(tmp_path, TRIAL, broken)

    def play(made: Simulation) -> None:
        made.start(FLOW, "p", ("ana",))
        made.rest()
        deploy(made, second)
        made.send("p", "go", 2, "a")
        made.rest()
        row = made.row("p")
        assert (row.status, row.error_code, row.version) == ("stopped", "R0017", first.hash)
        made.outside.pin(FLOW, first.hash, True)
        made.outside.resume("p", made.now, "kim")
        made.rest()
        made.outside.pin(FLOW, first.hash, False)
        made.send("p", "go", 3, "b")
        made.rest()
        assert made.row("p").version == second.hash  # day 3 divides

    report = crashes(first, play)
    assert report.points >= 20
    assert report.outcome.ends == {"p": ("waiting", None)}


def test_through_a_resume_in_a_newer_version(tmp_path: Path) -> None:
    first, second = build(tmp_path, ORDER, FIXED)

    def play(made: Simulation) -> None:
        made.start(FLOW, "p", ARGS)
        made.send("p", "packed", 0, "boxes")
        made.rest()
        assert made.row("p").status == "stopped"
        deploy(made, second)
        assert made.outside.resume("p", made.now, "kim", second.hash).outcome == "ok"
        made.rest()

    report = crashes(first, play)
    assert report.points >= 20
    end = '"ship(\\"pen\\",\\"charge(12) reserve(\\\\\\"pen\\\\\\")\\")"'
    assert report.outcome.ends == {"p": ("done", end)}


def test_through_the_undos_of_an_older_version(tmp_path: Path) -> None:
    """Cancelled in the third version: what was charged in the first is refunded in the first."""
    first, second, third = build(tmp_path, TRIAL, WEEKS, PAYING)

    def play(made: Simulation) -> None:
        made.start(FLOW, "p", ("ana",))
        made.send("p", "go", 7, "a")
        made.rest()
        deploy(made, second)
        made.send("p", "go", 0, "b")
        made.rest()
        deploy(made, third)
        made.send("p", "go", 5, "c")
        made.rest()
        made.cancel("p", "enough")
        made.rest()

    report = crashes(first, play)
    assert report.points > 40
    status, _ = report.outcome.ends["p"]
    assert status == "failed"
    assert report.outcome.undone == {"p": ("undo#3", "undo#2", "undo#1")}


def test_a_cancellation_in_the_middle_of_a_replay(tmp_path: Path) -> None:
    """Resumed in a newer version, cancelled before it got there: all that was done is undone."""
    undone = ORDER.replace(
        "step reserve(item: String) -> String { return",
        "step release(place: String) -> String { return }\n"
        "step reserve(item: String) -> String undo release(it) { return",
    ).replace("-> String { return }", '-> String { return "" }')
    mended = undone.replace("cents / boxes", "cents / (boxes + 1)").replace(
        "let place", "flow.sleep(1h)\n        let place"
    )
    first, second = build(tmp_path, undone, mended)

    def play(made: Simulation) -> None:
        made.start(FLOW, "p", ARGS)
        made.send("p", "packed", 0, "boxes")
        made.rest()
        deploy(made, second)
        made.outside.resume("p", made.now, "kim", second.hash)
        made.settle()
        made.cancel("p", "enough")
        made.rest()

    report = crashes(first, play)
    assert report.outcome.ends["p"][0] == "failed"
    assert report.outcome.undone == {"p": ("undo#1",)}
