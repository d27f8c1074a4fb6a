"""`qoqi test`: what it prints of tests that pass and fail, its forms for programs, its exit codes."""

from __future__ import annotations

import json
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from qoqi.compiler import api
from qoqi.compiler.project.lockfile import LOCK, mark_deployed, read, write
from qoqi.runtime.cli.main import app
from qoqi.runtime.cli.test import load_suite
from qoqi.runtime.simulation.world import Simulation
from qoqi.runtime.testing import suite as suites
from qoqi.runtime.testing.runner import run_test

GOOD = """\
extern step ask(word: String) -> Int

flow Good() -> Int {
    channel go: ()
    run {
        let n = ask("first")
        let _ = go.receive()
        return n + ask("second")
    }
}

given ask(_) => 1

test "it adds" {
    let it = Good.start("g")
    it.go.send(())
    assert(it.result() == Ok(2))
}

test "arithmetic" { assert(1 + 1 == 2) }
"""

BAD = """\
enum Decision { Approved(by: String), Withdrawn }
struct Part { decision: Decision, price: Decimal, at: Time }

extern step ask(n: Int) -> Decision

flow Bad(n: Int) -> List<Part> {
    channel go: Int
    run {
        let decision = ask(n)
        let m = go.receive()
        return [Part { decision, price: 2.50 * m, at: flow.now() }]
    }
}

test "values" {
    given ask(_) => Approved("ana")
    let it = Bad.start("x", 1)
    print("it is \\(it.status())")
    it.go.send(3)
    assert(it.result() == Ok([]), "with a message")
}

test "hangs" {
    given ask(_) => Withdrawn
    let it = Bad.start("y", 1)
    let _ = it.result()
}

test "nothing is given" {
    let _ = Bad.start("z", 7)
}

test "an instance that is not there" {
    let _ = Bad.find("nobody")
}

test "a send refused" {
    given ask(_) => Withdrawn
    let it = Bad.start("w", 1)
    let _ = it.cancel("no")
    it.go.send(1)
}

test "in a function" { check(2) }

fn check(n: Int) { assert(n < 1) }

test "at a stage" { let _ = Bad.at("s", stage: "a", ["n": 1]) }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.flow").write_text(GOOD, "utf-8")
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["test", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.output


def test_passed_tests_are_counted_for_each_file(folder: Path) -> None:
    (folder / "other.flow").write_text('test "b" { assert(true) }\n', "utf-8")

    code, said = run()

    assert code == 0
    assert said.splitlines()[:2] == ["good.flow: 2 passed", "other.flow: 1 passed"]
    assert said.splitlines()[-1].startswith("3 passed, 0 failed in ")
    assert run("-v")[1].splitlines()[:3] == [
        "ok   it adds",
        "ok   arithmetic",
        "good.flow: 2 passed",
    ]


def test_a_failure_has_its_line_both_sides_and_the_steps_so_far(folder: Path) -> None:
    (folder / "bad.flow").write_text(BAD, "utf-8")

    code, said = run("bad.flow", "-k", "values")

    assert code == 1
    assert said.splitlines()[:-1] == [
        "FAIL values",
        "     bad.flow:20",
        "     it.result() == Ok([]) is false",
        '       left:  Ok([Part { decision: Approved("ana"), price: 7.50, '
        "at: @2026-01-01T00:00:00Z }])",
        "       right: Ok([])",
        "       with a message",
        "     steps so far: ask",
        "     printed: it is Waiting",
        "bad.flow: 0 passed, 1 failed",
    ]


@pytest.mark.parametrize(
    ("title", "line", "said"),
    [
        ("hangs", 26, "y has not ended; it waits for: receive go"),
        ("nothing is given", 30, "ask is an extern step, and no `given` answers (7)"),
        ("not there", 34, "no instance of bad.Bad is named nobody; there are: none"),
        ("a send refused", 41, "the send to w.go was refused: Ended"),
        ("in a function", 46, "n < 1 is false"),
        ("at a stage", 48, "flow.lock has none of bad.Bad"),
    ],
)
def test_what_else_fails_a_test(folder: Path, title: str, line: int, said: str) -> None:
    (folder / "bad.flow").write_text(BAD, "utf-8")

    code, output = run("bad.flow", "-k", title)

    assert code == 1
    assert f"bad.flow:{line}\n" in output
    assert said in output


def test_a_loop_without_an_end_fails(folder: Path) -> None:
    (folder / "loop.flow").write_text('test "loops" { while true { } }\n', "utf-8")

    assert "10,000,000 instructions without a step or a wait" in run("loop.flow")[1]


def test_results_are_in_the_order_of_the_source_on_many_processes(folder: Path) -> None:
    (folder / "bad.flow").write_text(BAD, "utf-8")

    alone, many = json.loads(run("--json", "-j", "1")[1]), json.loads(run("--json", "-j", "3")[1])

    def without_times(shown: dict[str, list[dict[str, object]]]) -> list[dict[str, object]]:
        return [{k: v for k, v in one.items() if k != "seconds"} for one in shown["tests"]]

    assert without_times(alone) == without_times(many)
    assert (many["passed"], many["failed"]) == (2, 7)
    first = many["tests"][0]
    assert (first["file"], first["title"], first["line"]) == ("bad.flow", "values", 15)
    assert (first["passed"], first["at"], first["steps"]) == (False, 20, ["ask"])
    assert first["message"].startswith("it.result() == Ok([]) is false\n")


def test_junit(folder: Path) -> None:
    (folder / "bad.flow").write_text(BAD, "utf-8")

    assert run("--junit", "out.xml")[0] == 1

    top = Xml.parse(folder / "out.xml").getroot()
    counts = [(s.get("name"), s.get("tests"), s.get("failures")) for s in top]
    assert counts == [("bad.flow", "7", "7"), ("good.flow", "2", "0")]
    failure = top.find("./testsuite/testcase[@name='hangs']/failure")
    assert failure is not None
    assert failure.get("message") == "y has not ended; it waits for: receive go"
    assert (failure.text or "").splitlines()[0] == "bad.flow:26"


def test_errors_are_shown_first_and_nothing_runs(folder: Path) -> None:
    (folder / "wrong.flow").write_text('test "x" { assert(1 == "1") }\n', "utf-8")

    code, said = run()

    assert code == 1
    assert "error[E0301]" in said
    assert "1 error" in said
    assert "passed" not in said


def test_a_wrong_command_line(folder: Path) -> None:
    assert run("-k", "no such test")[0] == 2
    assert run("nowhere")[0] == 2
    assert run("--jobs", "-1")[0] == 2
    (folder / "none.flow").write_text("fn f() {}\n", "utf-8")
    assert run("none.flow")[1].startswith("0 passed, 0 failed")


def test_a_crash_at_each_write_changes_nothing(folder: Path) -> None:
    code, said = run("--crashes", "-v")

    assert code == 0
    ok = next(line for line in said.splitlines() if line.startswith("ok   it adds"))
    assert int(ok.split()[3]) >= 12
    assert said.splitlines()[-1].endswith(f"with {ok.split()[3]} crashes")


def test_what_a_crash_changes_fails_the_test(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that a crash loses is found: here the daemon forgets that it recovers."""
    build = api.build_tests(api.check("good.flow"))
    loaded = load_suite("good.flow", build)
    case = next(case for case in loaded.cases if case.title == "it adds")
    monkeypatch.setattr(Simulation, "add_daemon", _only_the_first(Simulation.add_daemon))

    report = run_test(case, loaded.flows, crashes=True)

    assert (report.failure or "").startswith("with a crash before write 1: g has not ended")


def _only_the_first(add: object) -> object:
    def once(world: Simulation) -> object:
        return add(world) if not world.deaths else None  # type: ignore[operator]

    return once


def test_a_worker_that_dies_fails_its_test_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_suite("good.flow", api.build_tests(api.check("good.flow")))
    run_one = suites.run_one

    def dies(case: Any, *rest: Any) -> Any:
        if case.title == "it adds":
            raise SystemExit(7)
        return run_one(case, *rest)

    monkeypatch.setattr(suites, "run_one", dies)
    cases = loaded.cases * 2
    results = list(suites.run(cases, loaded.flows, crashes=False, jobs=2))

    assert [one.title for one in results] == [case.title for case in cases]
    said = [one.failure for one in results]
    assert said[0] == said[2] == "the process that ran it ended with 7"
    assert said[1] is None and said[3] is None


MIGRATING = """\
flow Billing(price: Int) -> Int {
    channel go: ()
    var paid = 0
    run {
        var round = 1
        while round < 3 {
            stage month(round)
            let _ = go.receive()
            paid += price
            round += 1
        }
        return paid
    }
}
"""
MIGRATED = """\
struct Plan { name: String, cents: Int }

flow Billing(price: Int) -> Int {
    channel go: ()
    var paid = 0
    run {
        var plan = Plan { name: "first", cents: price }
        var round = 1
        while round < 3 {
            stage month(round, plan)
            let _ = go.receive()
            paid += plan.cents
            round += 1
        }
        return paid
    }

    migrate month(round: Int, price: Int) {
        become month(round: round + 1, plan: Plan { name: "old", cents: price * 2 })
    }
}

test "what was paid is kept, the plan is new" {
    let it = Billing.at("b", stage: "month", ["round": 1, "price": 5, "paid": 100])
    assert(it.stage() == Some("month"))
    it.go.send(())
    assert(it.result() == Ok(110))
}

test "no such stage" { let _ = Billing.at("b", stage: "week", ["round": 1]) }

test "no such name" { let _ = Billing.at("b", stage: "month", ["rounds": 1]) }

test "too little" { let _ = Billing.at("b", stage: "month", ["round": 1, "paid": 0]) }
"""


def test_a_migration_is_tested_from_a_stage_of_the_deployed_version(folder: Path) -> None:
    path = folder / "good.flow"
    path.write_text(MIGRATING, "utf-8")
    built = api.build(str(folder))
    assert built.ok
    lock = read((folder / LOCK).read_text("utf-8"))
    assert not hasattr(lock, "code")
    [flow] = built.flows
    (folder / LOCK).write_text(write(mark_deployed(built.lock, flow.name, flow.hash)), "utf-8")
    path.write_text(MIGRATED, "utf-8")

    code, said = run("--crashes", "-v")

    assert code == 1
    assert "ok   what was paid is kept, the plan is new" in said
    assert "has no stage week; it has: month" in said
    assert "stage month keeps no rounds; it keeps: paid, price, round" in said
    assert "price is missing" in said
