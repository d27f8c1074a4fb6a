"""Replays after a resume: whatever stands under a key, the rule is that of any take-up."""

from __future__ import annotations

from pathlib import Path

from qoqi.runtime.simulation.world import Leaving, Reply
from qoqi.vm.host import FAILED
from tests.versions.lineage import FLOW, build, deploy, dry, echo, left, short, world

MISTAKE = '{"code":"R0001","message":"bank said 500","trace":[]}'

WAITING = """
flow Plan(user: String) -> String {
    channel go: Int
    channel no: Int

    run {
        stage asking
        let n = wait match {
            case let n = go.receive(): n
            case let n = no.receive(): 0 - n
            case after 2d: 7
        }
        return "\\(10 / n)"
    }
}
"""


def test_a_wait_is_the_same_question_whatever_its_lengths_of_time(tmp_path: Path) -> None:
    longer = WAITING.replace("2d", "9d").replace("10 / n", "10 / (n + 5)")
    first, second = build(tmp_path, WAITING, longer)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    made.send("p", "go", 0)
    assert made.row("p").status == "stopped"
    deploy(made, second)
    assert [short(line)[0] for line in dry(made, second).lines] == ["taken"]
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").result == '"2"'


def test_the_cases_of_a_wait_in_another_order_are_another_question(tmp_path: Path) -> None:
    lines = WAITING.splitlines()
    at = next(n for n, line in enumerate(lines) if "go.receive" in line)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    first, second = build(tmp_path, WAITING, "\n".join(lines))
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    made.send("p", "go", 0)
    deploy(made, second)
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").error_code == "F0102"


def test_a_channel_that_is_new_takes_no_other_ones_messages(tmp_path: Path) -> None:
    """It stands first in the source; the numbers of the others are those of the lock."""
    more = WAITING.replace("    channel go", "    channel all: String\n    channel go").replace(
        "10 / n", "10 / (n + 5)"
    )
    first, second = build(tmp_path, WAITING, more)
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    made.send("p", "go", 0)
    made.send("p", "no", 3)
    deploy(made, second)
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").result == '"2"'
    channels = made.store.channels("p")
    assert [(number, name) for number, name, *_ in channels] == [(0, "go"), (1, "no"), (2, "all")]


SETTLED = """
step pay(cents: Int) -> Settled<String> { return Known("") }

flow Plan(user: String) -> String {
    run {
        stage paying
        return match pay(5) {
            case Known(receipt): receipt
            case Unknown: "nobody knows"
        }
    }
}
"""


def test_a_settled_step_that_failed_may_have_acted_and_is_unknown(tmp_path: Path) -> None:
    (first,) = build(tmp_path, SETTLED)

    def fails(leaving: Leaving) -> Reply:
        return Reply(FAILED, failure=MISTAKE)

    made = world(first, fails)
    made.start(FLOW, "p", ("ana",))
    assert (made.row("p").status, made.row("p").error_code) == ("stopped", "R0001")
    plan = dry(made, first)
    assert plan.run.next == ('it would end, done, with "nobody knows"',)
    made.store.resume("p", made.now, "kim", first.hash)
    made.rest()
    assert made.row("p").result == '"nobody knows"'
    assert left(made) == ["pay(5)"]


TRIED = """
step call(n: Int) -> String tries 2 { return "" }

flow Plan(user: String) -> String {
    run {
        stage calling
        return call(1) + call(2)
    }
}
""".replace("call(1) + call(2)", '"\\(call(1)) \\(call(2))"')


def test_a_step_without_an_answer_gets_new_attempts_numbered_on(tmp_path: Path) -> None:
    (first,) = build(tmp_path, TRIED)
    answers = {"never": True}

    def silent(leaving: Leaving) -> Reply:
        if leaving.args == (2,) and answers["never"]:
            return Reply("", never=True)
        return echo(leaving)

    made = world(first, silent)
    made.start(FLOW, "p", ("ana",))
    made.rest()
    assert made.row("p").error_code == "R0012"
    assert [(step.args, step.attempt) for step in made.left] == [((1,), 1), ((2,), 1), ((2,), 2)]
    plan = dry(made, first)
    assert [short(line) for line in plan.lines] == [("taken", "0:call#1"), ("again", "0:call#2")]
    assert plan.run.next == ("call(2) would leave (attempt 3)",)
    answers["never"] = False
    made.store.resume("p", made.now, "kim", first.hash)
    made.rest()
    assert made.row("p").result == '"call(1) call(2)"'
    assert [step.attempt for step in made.left] == [1, 1, 2, 3]


JOINED = """
step slow(n: Int) -> String within 10m { return "" }

flow Plan(user: String) -> String {
    channel go: Int

    run {
        stage first
        let helper = task.start(work, 1)
        let n = go.receive()
        let tenth = 10 / n
        let done = helper.join()
        return "\\(tenth) \\(done)"
    }

    fn work(n: Int) -> String {
        let one = slow(n)
        return "\\(one) \\(slow(n + 1))"
    }
}
"""


def test_an_attempt_under_way_at_the_stop_is_waited_for_by_the_replay(tmp_path: Path) -> None:
    first, second = build(tmp_path, JOINED, JOINED.replace("10 / n", "10 / (n + 1)"))

    def later(leaving: Leaving) -> Reply:
        return Reply(f'"{leaving.args[0]}"', after=120_000)

    made = world(first, later)
    made.start(FLOW, "p", ("ana",))
    made.send("p", "go", 0)
    assert made.row("p").status == "stopped"
    deploy(made, second)
    plan = dry(made, second)
    assert [short(line) for line in plan.lines] == [
        ("taken", "0:wait#1"),
        ("again", "0/work#1:slow#1"),
        ("new", "0:wait#2"),
    ]
    assert plan.run.end == "waits"
    assert plan.run.next[0].startswith("it would wait for the answer of slow, under way until ")
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    assert made.row("p").result == '"10 {\\"Ok\\":\\"1 2\\"}"'
    assert left(made) == ["slow(1)", "slow(2)"]


BESIDE = """
step slow(n: Int) -> String within 10m { return "" }

flow Plan(user: String) -> String {
    channel go: Int
    var done = ""

    run {
        stage first
        let _ = task.start(work, 1)
        let n = go.receive()
        stage second(n)
        let tenth = 10 / n
        wait match {
            case when done != "": return "\\(tenth) \\(done)"
        }
    }

    fn work(n: Int) {
        let one = slow(n)
        flow.sleep(3h)
        done = "\\(one) \\(slow(n + 1))"
    }
}
"""


def test_at_a_stage_that_run_does_not_pass_alone_nothing_is_missed(tmp_path: Path) -> None:
    """The helper's answers are asked for later than run passes the stage: that is no F0101."""
    first, second = build(tmp_path, BESIDE, BESIDE.replace("10 / n", "10 / (n + 1)"))
    made = world(first)
    made.start(FLOW, "p", ("ana",))
    made.advance_to(made.now + 3_600_000)
    made.send("p", "go", 0)
    row = made.row("p")
    assert (row.error_code, row.stage, row.pass_number) == ("R0003", "second", 2)
    deploy(made, second)
    made.store.resume("p", made.now, "kim", second.hash)
    made.rest()
    row = made.row("p")
    assert (row.status, row.version) == ("done", second.hash)
    assert row.result == '"10 slow(1) slow(2)"'
    assert left(made) == ["slow(1)", "slow(2)"]


UNDONE = """
step reserve(n: Int) -> String undo release(it) { return "" }
step release(place: String) -> Result<(), String> { return Ok(()) }

flow Plan(user: String) -> Result<String, String> {
    run {
        stage reserving
        let place = reserve(1)
        return Err("no \\(place)")
    }
}
"""


def test_an_undo_that_failed_is_tried_dry_and_then_again(tmp_path: Path) -> None:
    (first,) = build(tmp_path, UNDONE)
    answers = {"release": '{"Err":"locked"}'}

    def undo(leaving: Leaving) -> Reply:
        return Reply(answers["release"]) if leaving.step == "release" else echo(leaving)

    made = world(first, undo)
    made.start(FLOW, "p", ("ana",))
    made.rest()
    row = made.row("p")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0015")
    plan = dry(made, first)
    assert (plan.run.end, plan.run.next) == (
        "leaves",
        ('release("reserve(1)") would leave (attempt 2)',),
    )
    answers["release"] = '{"Ok":null}'
    made.store.resume("p", made.now, "kim", first.hash)
    made.rest()
    assert (made.row("p").status, made.row("p").result) == ("done", '{"Err":"no reserve(1)"}')
    assert left(made) == ["reserve(1)", 'release("reserve(1)")', 'release("reserve(1)")']


def test_a_thousand_stopped_on_one_mistake_go_on_with_its_fix(tmp_path: Path) -> None:
    first, second = build(tmp_path, WAITING, WAITING.replace("10 / n", "10 / (n + 5)"))
    made = world(first)
    names = [f"p-{number}" for number in range(1_000)]
    for name in names:
        made.outside.create(made.first_row(name, FLOW, ("ana",), None), made.now)
        made.outside.send(name, "go", None, "0", None, made.now)
    made.rest()
    assert made.outside.counts() == {"stopped": 1_000}
    deploy(made, second)
    assert dry(made, second, names[7]).run.failure is None
    for name in names:
        made.outside.resume(name, made.now, "kim", second.hash)
    made.rest()
    assert made.outside.counts() == {"done": 1_000}
    assert {made.row(name).result for name in names} == {'"2"'}
