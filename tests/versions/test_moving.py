"""An instance moves to a newer version at a stage: values, channels, undos, and what fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.versions.lineage import FLOW, build, deploy, left, parse, state, world

TRIAL = """
step charge(day: Int) -> String undo refund(it) { return "" }
step refund(receipt: String) -> String { return "" }

flow Plan(user: String) -> String {
    channel go: Int
    var total = 0

    run {
        var day = 1
        while day < 20 {
            stage trial(day)
            let n = go.receive()
            total += n
            let _ = charge(day)
            day += 1
        }
        return "\\(user) \\(total)"
    }
}
"""

# The variable has another name and type, and there is a field more.
WEEKS = """
step charge(day: Int) -> String undo refund(it) { return "" }
step refund(receipt: String) -> String { return "" }

flow Plan(user: String) -> String {
    channel go: Int
    var total = 0
    var last = "\\(user) at \\(total)"

    migrate trial(day: Int) {
        become trial(weeks: "\\(day / 7)w")
    }

    run {
        var weeks = "0w"
        while weeks != "9w" {
            stage trial(weeks)
            let n = go.receive()
            total += n
            let receipt = charge(n)
            last = receipt
            weeks = "\\(n)w"
        }
        return "\\(last) \\(total)"
    }
}
"""

# Another stage, for some, and a third version without the field.
PAYING = """
step charge(day: Int) -> String undo refund(it) { return "" }
step refund(receipt: String) -> String { return "" }

enum Level { Free, Full(since: String) }

flow Plan(user: String) -> String {
    channel go: Int
    channel stop: Bool
    var total = 0

    migrate trial(weeks: String, last: String) {
        if weeks == "0w" { become free }
        become paying(level: Level.Full(last))
    }

    run {
        stage free
        let first = go.receive() + go.receive()
        let level = Level.Full("\\(first)")
        stage paying(level)
        let n = go.receive()
        return "\\(total + n)"
    }
}
"""


def test_a_moved_instance_has_what_its_migration_gave_and_the_rest_by_name(tmp_path: Path) -> None:
    first, second = build(tmp_path, TRIAL, WEEKS)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    assert made.row("p").version == first.hash

    deploy(made, second)
    made.send("p", "go", 5)
    made.rest()
    row = made.row("p")
    assert (row.version, row.stage, row.pass_number) == (second.hash, "trial", 2)
    at_stage = made.row("p").at_stage
    assert at_stage is not None and second.hash in at_stage
    assert left(made) == ["charge(1)"]

    made.send("p", "go", 9)
    made.rest()
    assert left(made) == ["charge(1)", "charge(9)"]
    assert made.row("p").result == '"charge(9) 14"'


def test_a_new_field_begins_with_its_value_over_what_was_carried(tmp_path: Path) -> None:
    """`last` reads a parameter and the field above it, as they are when the instance moves."""
    first, second = build(tmp_path, TRIAL, WEEKS)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    deploy(made, second)
    made.send("p", "go", 5)
    made.rest()

    fields = parse(made.row("p").at_stage)["fields"]
    assert fields == {"user": "ana", "total": 5, "last": "ana at 5"}


def test_through_two_versions_to_another_stage(tmp_path: Path) -> None:
    first, second, third = build(tmp_path, TRIAL, WEEKS, PAYING)
    made = world(first)
    for name, day in (("new", 1), ("old", 8)):
        made.start(FLOW, name, ("ana",))
        for _ in range(day - 1):
            made.send(name, "go", 0)
            made.rest()
    deploy(made, second)
    deploy(made, third)
    for name in ("new", "old"):
        made.send(name, "go", 2)
        made.rest()

    assert [(made.row(n).stage, made.row(n).version) for n in ("new", "old")] == [
        ("free", third.hash),
        ("paying", third.hash),
    ]
    at_stage = parse(made.row("old").at_stage)
    assert at_stage["vars"] == {"level": {"Full": {"since": "ana at 2"}}}
    assert at_stage["fields"] == {"user": "ana", "total": 2}
    made.send("old", "go", 40)
    made.rest()
    assert made.row("old").result == '"42"'


def test_channels_and_undos_go_along(tmp_path: Path) -> None:
    """Messages that wait are taken in the new version; undos run in the code that named them."""
    first, second, third = build(tmp_path, TRIAL, WEEKS, PAYING)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    deploy(made, second)
    deploy(made, third)
    for n in (7, 1, 3):
        made.send("p", "go", n)
    made.rest()
    row = made.row("p")
    # 7 in the first version; 1 and 3 at stage `free` of the third.
    assert (row.version, row.stage) == (third.hash, "paying")
    assert "refund" not in {step.name for step in third.program.chunk.steps}
    undos = parse(row.state)["undo"]
    assert isinstance(undos, list)
    assert [(one["target"], one["version"]) for one in undos] == [("refund", first.hash)]

    made.cancel("p", "enough")
    made.rest()
    assert made.row("p").status == "failed"
    assert left(made) == ["charge(1)", 'refund("charge(1)")']


def test_a_pinned_version_keeps_its_instances(tmp_path: Path) -> None:
    first, second = build(tmp_path, TRIAL, WEEKS)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    made.store.pin(FLOW, first.hash, True)
    deploy(made, second)
    made.send("p", "go", 1)
    made.rest()
    assert (made.row("p").version, made.row("p").pass_number) == (first.hash, 2)
    made.store.pin(FLOW, first.hash, False)
    made.send("p", "go", 1)
    made.rest()
    assert (made.row("p").version, made.row("p").pass_number) == (second.hash, 3)


TASKS = """
step work(n: Int) -> String { return "" }

flow Plan(user: String) -> String {
    channel go: Int
    channel quit: Int
    var done = 0

    run {
        let helper = task.start(listen)
        stage asking
        let a = go.receive()
        stage alone(a)
        let _ = quit.receive()
        helper.cancel()
        stage after(a)
        let b = go.receive()
        return "\\(a + b)"
    }

    fn listen() {
        flow.sleep(9d)
        done += 1
    }
}
"""


def test_with_another_task_alive_it_stays_until_run_is_alone(tmp_path: Path) -> None:
    first, second = build(tmp_path, TASKS, TASKS.replace("a + b", "a * b"))
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    deploy(made, second)
    made.send("p", "go", 6)
    made.rest(until=made.now + 1_000)
    assert (made.row("p").stage, made.row("p").version) == ("alone", first.hash)
    made.send("p", "quit", 0)
    made.rest(until=made.now + 1_000)
    assert (made.row("p").stage, made.row("p").version) == ("after", second.hash)
    made.send("p", "go", 7)
    assert made.row("p").result == '"42"'


def test_a_migration_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    """It stops once, in its version, with both shapes and the line; a pin lets it go on."""
    broken = WEEKS.replace('"\\(day / 7)w"', '"\\(7 / (day - 2))w"')
    first, second = build(tmp_path, TRIAL, broken)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    deploy(made, second)
    made.send("p", "go", 5)
    made.rest()
    row = made.row("p")
    assert (row.status, row.version, row.stage) == ("stopped", first.hash, "trial")
    assert (row.error_code, row.pass_number) == ("R0017", 2)
    assert row.state == row.at_stage
    assert state(made)["vars"] == {"day": 2}
    stopped = parse(row.stopped_by)
    line = broken.splitlines().index('        become trial(weeks: "\\(7 / (day - 2))w")') + 1
    assert stopped["trace"] == [["migrate trial", "plan.flow", line]]
    message = stopped["message"]
    assert isinstance(message, str)
    for part in (
        "trial(day: Int, user: String, total: Int)",
        first.hash[:12],
        second.hash[:12],
        "division by zero",
    ):
        assert part in message
    stops = [line.kind for line in made.store.ledger("p", 0, 99) if line.kind == "stopped"]
    assert stops == ["stopped"]

    made.store.pin(FLOW, first.hash, True)
    assert made.store.resume("p", made.now, "kim").outcome == "ok"
    made.send("p", "go", 1)
    made.rest()
    assert left(made) == ["charge(1)", "charge(2)"]
    assert made.row("p").version == first.hash


def test_a_resume_that_cannot_go_over_counts_for_nothing(tmp_path: Path) -> None:
    """A store resumed it past the check: it is stopped again, with what it had at the stop."""
    broken = WEEKS.replace('"\\(day / 7)w"', '"\\(7 / (day - 2))w"')
    first, second = build(tmp_path, TRIAL, broken)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    deploy(made, second)
    made.send("p", "go", 5)
    made.rest()
    before = made.row("p")
    assert made.store.resume("p", made.now, "kim", second.hash).outcome == "ok"
    made.rest()
    after = made.row("p")
    assert (after.status, after.error_code, after.version) == ("stopped", "R0017", first.hash)
    assert (after.state, after.at_stage) == (before.state, before.at_stage)


@pytest.mark.parametrize("daemons", [1, 3])
def test_a_left_over_migration_is_not_run_again(tmp_path: Path, daemons: int) -> None:
    """The third version still has the second's migration: the stage has its shape, and stays."""
    third_source = WEEKS.replace("migrate trial(day: Int)", "migrate trial(weeks: String)").replace(
        '"\\(day / 7)w"', '"lost \\(weeks)"'
    )
    first, second, third = build(tmp_path, TRIAL, WEEKS, third_source)
    made = world(first, daemons=daemons)
    made.start(FLOW, "p", ("ana",))
    deploy(made, second)
    made.send("p", "go", 5)
    made.rest()
    made.send("p", "go", 3)
    deploy(made, third)
    made.rest()
    made.send("p", "go", 4)
    made.rest()
    row = made.row("p")
    assert row.version == third.hash
    assert parse(row.at_stage)["vars"] == {"weeks": "4w"}


def test_a_version_that_cannot_be_loaded_here_moves_nobody(tmp_path: Path) -> None:
    """Another daemon may have the code for it: the instance stays, and is not stopped."""
    first, second = build(tmp_path, TRIAL, WEEKS)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    deploy(made, second)
    del made.programs[second.hash]
    made.send("p", "go", 5)
    made.rest()
    row = made.row("p")
    assert (row.status, row.version, row.pass_number) == ("waiting", first.hash, 2)
    notes = [line for line in made.store.ledger("p", 0, 99) if line.kind == "not_moved"]
    assert len(notes) == 1
    made.programs[second.hash] = second.program
    made.send("p", "go", 5)
    made.rest()
    assert made.row("p").version == second.hash
