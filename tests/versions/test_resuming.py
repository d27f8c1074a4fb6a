"""A resume into a newer version: what it takes by key, what it does next, what stops it again.

Each scene is played three times: dry, which changes nothing; for real; and against what the dry run
said.
"""

from __future__ import annotations

from pathlib import Path

from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.vm.failure import TraceLine
from tests.versions.lineage import (
    FLOW,
    Version,
    build,
    deploy,
    dry,
    echo,
    left,
    parse,
    short,
    world,
)

HOUR = 3_600_000

# Three things are done, and the fourth line is a mistake.
ORDER = """
step reserve(item: String) -> String { return "" }
step charge(cents: Int) -> String { return "" }
step ship(item: String, receipt: String) -> String { return "" }

flow Plan(item: String, cents: Int) -> String {
    channel packed: Int

    run {
        stage ordering
        let place = reserve(item)
        let boxes = packed.receive()
        let receipt = charge(cents / boxes)
        return ship(item, "\\(receipt) \\(place)")
    }
}
"""
ARGS = ("pen", 12)


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


def stopped(tmp_path: Path, *newer: str, boxes: int = 0) -> tuple[Simulation, list[Version]]:
    """An order of no boxes: it stops on the division, with a reserve and a wait kept."""
    versions = build(tmp_path, ORDER, *newer)
    made = world(versions[0])
    made.start(FLOW, "p", ARGS)
    made.send("p", "packed", boxes)
    made.rest()
    row = made.row("p")
    assert (row.status, row.error_code) == ("stopped", "R0003")
    for version in versions[1:]:
        deploy(made, version)
    return made, versions


FIXED = ORDER.replace("cents / boxes", "cents / (if boxes == 0 { 1 } else { boxes })")


def test_a_fixed_program_takes_what_was_done_and_goes_on(tmp_path: Path) -> None:
    made, (first, second) = stopped(tmp_path, FIXED)
    before, ledger = made.row("p"), made.store.ledger("p", 0, 99)
    plan = dry(made, second)
    assert made.row("p") == before
    assert made.store.ledger("p", 0, 99) == ledger

    assert [short(line) for line in plan.lines] == [
        ("taken", "0:reserve#1"),
        ("taken", "0:wait#1"),
        ("new", "0:charge#1"),
    ]
    assert (plan.run.end, plan.run.next) == ("leaves", ("charge(12) would leave",))
    reserve = plan.lines[0]
    assert (reserve.before, reserve.now, reserve.version) == ('["pen"]', '["pen"]', first.hash)
    assert reserve.line_before == TraceLine("run", "plan.flow", line_of(ORDER, "let place"))
    assert reserve.line_now.line == line_of(FIXED, "let place")

    assert made.store.resume("p", made.now, "kim", second.hash).outcome == "ok"
    made.rest()
    row = made.row("p")
    assert (row.status, row.version) == ("done", second.hash)
    assert left(made) == [
        'reserve("pen")',
        "charge(12)",
        'ship("pen", "charge(12) reserve(\\"pen\\")")',
    ]


ANOTHER = FIXED.replace("reserve(item)", 'reserve("\\(item)s")')


def test_another_question_under_a_key_stops_it_f0102(tmp_path: Path) -> None:
    made, (first, second) = stopped(tmp_path, ANOTHER)
    plan = dry(made, second)
    assert [short(line) for line in plan.lines] == [
        ("other", "0:reserve#1"),
        ("unasked", "0:wait#1"),
    ]
    other = plan.lines[0]
    assert (other.before, other.now) == ('["pen"]', '["pens"]')
    assert (other.version, plan.run.version) == (first.hash, second.hash)
    assert other.line_before.line == line_of(ORDER, "let place")
    assert other.line_now.line == line_of(ANOTHER, "let place")
    assert plan.run.failure is not None
    assert plan.run.failure.code == "F0102"

    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    row = made.row("p")
    assert (row.status, row.error_code) == ("stopped", "F0102")
    said = parse(row.stopped_by)
    assert said["trace"] == [["run", "plan.flow", line_of(ANOTHER, "let place")]]
    assert '["pen"] before' in str(said["message"])
    assert 'asks ["pens"]' in str(said["message"])
    assert left(made) == ['reserve("pen")']


def test_after_f0102_the_next_version_finds_the_line_that_asked_first(tmp_path: Path) -> None:
    """The kept answers are the first version's, though the instance stopped in the second."""
    made, (first, second, third) = stopped(tmp_path, ANOTHER, FIXED.replace("{ 1 }", "{ 2 }"))
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    plan = dry(made, third)
    assert [(short(line)[0], line.version) for line in plan.lines] == [
        ("taken", first.hash),
        ("taken", first.hash),
        ("new", None),
    ]
    assert plan.lines[0].line_before.line == line_of(ORDER, "let place")
    made.store.resume("p", made.now, "kim", third.hash)
    made.rest()
    assert made.row("p").status == "done"


NO_RESERVE = FIXED.replace("let place = reserve(item)", 'let place = ""').replace(
    'step reserve(item: String) -> String { return "" }\n', ""
)


def test_what_was_done_and_is_not_asked_again_stops_it_f0101(tmp_path: Path) -> None:
    made, (first, second) = stopped(tmp_path, NO_RESERVE)
    plan = dry(made, second)
    # The wait is taken; the charge would leave before anyone can know that reserve is dropped.
    assert [short(line) for line in plan.lines] == [
        ("taken", "0:wait#1"),
        ("new", "0:charge#1"),
        ("unasked", "0:reserve#1"),
    ]
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    row = made.row("p")
    assert (row.status, row.error_code) == ("stopped", "F0101")
    assert 'reserve#1 gave "reserve' in str(parse(row.stopped_by)["message"])

    plan = dry(made, second)
    assert [short(line) for line in plan.lines][-1] == ("dropped", "0:reserve#1")
    dropped = plan.lines[-1]
    assert dropped.version == first.hash
    assert dropped.line_before.line == line_of(ORDER, "let place")
    assert plan.run.failure is not None
    assert plan.run.failure.code == "F0101"


RENAMED = FIXED.replace("stage ordering", "stage packing").replace(
    "    run {", "    migrate ordering() { become packing }\n\n    run {"
)


def test_a_stage_that_is_gone_is_no_place_to_resume_at_f0103(tmp_path: Path) -> None:
    """A migration takes those that pass it; one that was stopped on its path is not taken."""
    made, (first, second) = stopped(tmp_path, RENAMED)
    before = made.row("p")
    plan = dry(made, second)
    assert plan.run.failure is not None
    assert plan.run.failure.code == "F0103"
    for part in ("ordering", "packing", first.hash[:12], second.hash[:12]):
        assert part in plan.run.failure.message
    assert plan.run.failure.trace[0].line == line_of(RENAMED, "migrate ordering")

    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    row = made.row("p")
    assert (row.error_code, row.version, row.state) == ("F0103", first.hash, before.state)

    # The way out: pinned, it is resumed in its own version, and stops on its mistake again.
    made.store.pin(FLOW, first.hash, True)
    assert dry(made, first).run.failure is not None
    made.store.resume("p", made.now, "kim")
    made.rest()
    assert (made.row("p").error_code, made.row("p").version) == ("R0003", first.hash)


MORE = FIXED.replace(
    "let boxes = packed.receive()",
    "note(item)\n        let boxes = packed.receive()\n        note(item)",
).replace("flow Plan", "step note(item: String) { }\n\nflow Plan")


def test_steps_that_are_new_leave_and_move_no_key(tmp_path: Path) -> None:
    made, (_, second) = stopped(tmp_path, MORE)
    plan = dry(made, second)
    assert [short(line) for line in plan.lines] == [
        ("taken", "0:reserve#1"),
        ("new", "0:note#1"),
        ("unasked", "0:wait#1"),
    ]
    made.answer = echo_or_unit
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").status == "done"
    assert [step.step for step in made.left] == [
        "reserve", "note", "note", "charge", "ship"
    ]  # fmt: skip


def echo_or_unit(leaving: Leaving) -> Reply:
    return Reply("null", after=10) if leaving.step == "note" else echo(leaving)


ITEM = "struct Item { name: String }\n\n"


def test_a_default_stands_in_for_what_was_not_asked_before(tmp_path: Path) -> None:
    """A new field of an argument has its default in the old question, so it is the same one."""
    typed = ORDER.replace("step reserve(item: String)", ITEM + "step reserve(item: Item)")
    typed = typed.replace("reserve(item)", "reserve(Item { name: item })")
    newer = typed.replace("name: String }", 'name: String, colour: String = "any" }').replace(
        "cents / boxes", "cents / (boxes + 1)"
    )
    first, second = build(tmp_path, typed, newer)
    made = world(first)
    made.start(FLOW, "p", ARGS)
    made.send("p", "packed", 0)
    made.rest()
    deploy(made, second)
    plan = dry(made, second)
    assert [short(line)[0] for line in plan.lines] == ["taken", "taken", "new"]
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").status == "done"
    assert [step.step for step in made.left] == ["reserve", "charge", "ship"]


def test_without_a_default_what_was_asked_does_not_read(tmp_path: Path) -> None:
    typed = ORDER.replace("step reserve(item: String)", ITEM + "step reserve(item: Item)")
    typed = typed.replace("reserve(item)", "reserve(Item { name: item })")
    newer = typed.replace("name: String }", "name: String, colour: String }")
    newer = newer.replace("Item { name: item }", 'Item { name: item, colour: "red" }')
    first, second = build(tmp_path, typed, newer)
    made = world(first)
    made.start(FLOW, "p", ARGS)
    made.send("p", "packed", 0)
    made.rest()
    deploy(made, second)
    assert [short(line)[0] for line in dry(made, second).lines] == ["other", "unasked"]


SLOW = ORDER.replace("let receipt", "flow.sleep(2h)\n        let receipt")
SLOW_FIXED = SLOW.replace("cents / boxes", "cents / (boxes + 1)").replace(
    "flow.sleep(2h)", "flow.sleep(2h)\n        flow.sleep(3d)"
)


def test_a_replay_sleeps_and_dies_as_any_instance(tmp_path: Path) -> None:
    """What it slept is not slept again; what is new is, and a daemon dies meanwhile."""
    first, second = build(tmp_path, SLOW, SLOW_FIXED)
    made = world(first, daemons=2)
    made.start(FLOW, "p", ARGS)
    made.send("p", "packed", 0)
    made.rest()
    assert made.row("p").error_code == "R0003"
    deploy(made, second)
    began = made.now
    plan = dry(made, second)
    assert [short(line)[0] for line in plan.lines] == ["taken", "taken", "taken", "new"]
    assert plan.run.end == "waits"

    made.store.resume("p", made.now, "kim", second.hash)
    made.settle()
    assert made.row("p").status == "waiting"
    for daemon in list(made.daemons):
        made.kill(daemon)
    made.rest()
    assert made.row("p").status == "done"
    assert made.now - began >= 72 * HOUR
    assert made.now - began < 72 * HOUR + 1_000
    assert [step.step for step in made.left] == ["reserve", "charge", "ship"]


def test_from_the_start_where_no_stage_was_passed(tmp_path: Path) -> None:
    """The implicit first stage: arguments by name, fields anew, answers by key."""
    start = ORDER.replace("        stage ordering\n", "")
    newer = (
        FIXED.replace("        stage ordering\n", "")
        .replace("String, cents: Int)", 'String, cents: Int, note: String = "-")')
        .replace("    channel packed", '    var log = "\\(item)\\(note)"\n    channel packed')
        .replace('"\\(receipt)', '"\\(log) \\(receipt)')
    )
    first, second = build(tmp_path, start, newer)
    made = world(first)
    made.start(FLOW, "p", ARGS)
    made.send("p", "packed", 0)
    made.rest()
    deploy(made, second)
    assert [short(line)[0] for line in dry(made, second).lines] == ["taken", "taken", "new"]
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    row = made.row("p")
    assert (row.status, row.version) == ("done", second.hash)
    assert left(made)[-1] == 'ship("pen", "pen- charge(12) reserve(\\"pen\\")")'
