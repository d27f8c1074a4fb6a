"""Programs as people write them for workflows: checked, formatted, and their own tests run.

Each folder is a package (`16-shop` one with a dependency beside it, its own in `app`). `broken` has
what a newcomer gets wrong, one mistake a file:

    E0216 in inventory.flow
    --- instead of
    the text of the program
    --- there is
    the text with the «mistake» marked

The mistake must be the only thing that is said, with that code, at the mark.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.compiler.syntax import printer
from qoqi.runtime.testing.runner import FlowUnderTest, TestCase, run_test
from qoqi.vm.program import load

HERE = Path(__file__).parent
PROGRAMS = sorted(folder for folder in HERE.iterdir() if folder.name[:1].isdigit())
BROKEN = sorted(HERE.glob("*/broken/*.txt"))

# The moment of an answer is the same after a crash, though the answer of `first` is written before
# the state that has seen it: that is written when `slow` has answered, five minutes later.
MOMENTS = """
extern step first() -> Int on "a"
extern step slow() -> Int within 10m on "a"
extern step second() -> Int on "a"

flow Moments() -> Time {
    var at: Time? = None

    run {
        let notes = task.start(note)
        let slowly = task.start(slow)
        let _ = slowly.join()
        let _ = notes.join()
        second()
        return at ?? @2000-01-01T00:00Z
    }

    fn note() {
        first()
        at = Some(flow.now())
    }
}

test "the moment of an answer" {
    given first() => 1
    given slow() after 5m => 2
    given second() => 3
    let begun = clock.now()
    let it = Moments.start("m")
    clock.advance(5m)
    assert(it.result() == Ok(begun))
}
"""


def package(program: Path) -> Path:
    return program / "app" if (program / "app").is_dir() else program


@cache
def checked(root: Path) -> api.CheckResult:
    return api.check(str(root))


def run(result: api.CheckResult, *, crashes: bool = False) -> tuple[int, list[str]]:
    """How many tests there are, and what failed."""
    built = api.build_tests(result)
    flows = [
        FlowUnderTest(each.name, each.hash, load(each.chunk, each.debug), each.steps)
        for each in built.flows
    ]
    failed, number = [], 0
    for module in built.modules:
        program = load(module.chunk, module.debug)
        for test in module.tests:
            number += 1
            case = TestCase(
                module.file, test.title, test.line, program, test.function, module.givens
            )
            report = run_test(case, flows, crashes=crashes)
            if report.failure is not None:
                failed.append(f"{test.title}, line {report.line}: {report.failure}")
    return number, failed


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.name)
def test_a_program_is_right(program: Path) -> None:
    result = checked(package(program))
    assert [f"{each.code} {each.message}" for each in result.diagnostics] == []
    for parsed in result.parsed.values():
        assert printer.format(parsed) == parsed.file.text
    number, failed = run(result)
    assert failed == []
    assert number >= 5


@pytest.mark.parametrize(
    "broken", BROKEN, ids=lambda path: f"{path.parent.parent.name}-{path.stem}"
)
def test_a_mistake_is_said_once_where_it_is(broken: Path, tmp_path: Path) -> None:
    head, rest = broken.read_text(encoding="utf-8").split("\n--- instead of\n")
    old, new = rest.rstrip("\n").split("\n--- there is\n")
    code, _, name = head.split(" ")
    shutil.copytree(broken.parent.parent, tmp_path / "p")
    place = tmp_path / "p" / name
    text = place.read_text(encoding="utf-8")
    assert old in text
    text = text.replace(old, new, 1)
    start, end = text.index("«"), text.index("»") - 1
    place.write_text(text.replace("«", "").replace("»", ""), encoding="utf-8")

    found = api.check(str(package(tmp_path / "p"))).diagnostics
    said = [(each.code, tuple(each.span), Path(each.file).name) for each in found]
    assert said == [(code, (start, end), place.name)], [each.message for each in found]


def test_the_moment_of_an_answer_survives_a_crash(tmp_path: Path) -> None:
    place = tmp_path / "moments.flow"
    place.write_text(MOMENTS, encoding="utf-8")
    result = api.check(str(place))
    assert [each.message for each in result.diagnostics] == []
    assert run(result, crashes=True) == (1, [])


def test_a_body_may_register_undos(tmp_path: Path) -> None:
    """Of a step and of a send; both run last first when the flow is cancelled."""
    place = tmp_path / "undos.flow"
    text = """
step pay(id: String, to: Instance<Box>) -> Int {
    flow.undo(refund(id))
    flow.undo(to.notes.send("gone \\(id)"))
    return 1
}

extern step refund(id: String) on "a"

flow Box() -> String {
    channel notes: String

    run {
        return notes.receive()
    }
}

flow Payer(box: Instance<Box>) {
    run {
        pay("p1", box)
        flow.sleep(1d)
    }
}

test "both undos run" {
    given refund(_) => ()
    let box = Box.start("box")
    let it = Payer.start("payer", box)
    assert(it.undos().len() == 2)
    it.cancel("no")
    assert(it.result() == Err(Cancelled { reason: "no" }))
    assert(box.result() == Ok("gone p1"))
    assert(calls(refund) == ["p1"])
}
"""
    place.write_text(text, encoding="utf-8")
    result = api.check(str(place))
    assert [each.message for each in result.diagnostics] == []
    assert run(result) == (1, [])
