"""Runs the tests of flows: each in a world of its own, on the real turn and the real store.

A test's body runs in the machine; its tools are operations answered by `tools`. The world is an
in-memory store under a virtual clock that begins at 2026-01-01T00:00Z. A test passes when its body
ends; what fails is told with the line, both sides of a comparison, and the steps that left so far.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qoqi.runtime.simulation.crashes import CrashingStore
from qoqi.runtime.simulation.world import Leaving, Reply, Restless, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.runtime.testing.givens import Givens, TestFailed
from qoqi.runtime.testing.tools import Tools
from qoqi.vm.effects import Ended, Failed, Operation, OutOfBudget
from qoqi.vm.failure import FlowError, TraceLine
from qoqi.vm.frames import Machine, Task
from qoqi.vm.interpreter import advance, resume, start_task, trace
from qoqi.vm.program import Program

SLICE = 1_000_000


@dataclass(frozen=True, slots=True)
class FlowUnderTest:
    """A flow of the package: its version, its program, and its steps by qualified name."""

    name: str
    version: str
    program: Program
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TestCase:
    """`function` and `givens` are functions of the module's test program."""

    __test__ = False

    file: str
    title: str
    line: int
    program: Program
    function: int
    givens: int


@dataclass(frozen=True, slots=True)
class TestReport:
    """`failure` is None for a test that passed. `crashes` counts the points it was killed at."""

    __test__ = False

    case: TestCase
    failure: str | None = None
    line: int = 0
    steps: tuple[str, ...] = ()
    crashes: int = 0


def run_test(
    case: TestCase, flows: Sequence[FlowUnderTest], *, crashes: bool = False
) -> TestReport:
    """Runs one test; with `crashes`, again with a crash at each of its writes."""
    report, calls = _play(case, flows, 0, False)
    if report.failure is not None or not crashes:
        return report
    points = 0
    for crash_at in range(1, calls + 1):
        for after in (False, True):
            again, _ = _play(case, flows, crash_at, after)
            if again.failure is not None:
                when = "after" if after else "before"
                said = f"with a crash {when} write {crash_at}: {again.failure}"
                return TestReport(case, said, again.line, again.steps, points)
            points += 1
    return TestReport(case, crashes=points)


def _play(
    case: TestCase, flows: Sequence[FlowUnderTest], crash_at: int, after: bool
) -> tuple[TestReport, int]:
    by_name = {flow.name: flow for flow in flows}
    givens = Givens(case.program, {flow.name: flow.steps for flow in flows})
    store = memory_store()
    crashing = CrashingStore(store, crash_at, after)
    world = _world(crashing, store, by_name, givens)
    tools = Tools(world, case.program, givens)
    try:
        failure, line = _run(case, case.givens, tools)
        if failure is None:
            failure, line = _run(case, case.function, tools)
        if crash_at and world.void_settled:
            failure = None  # a Settled step under way at a crash is Unknown: another story
        steps = tuple(_shown(step) for step in world.departures())
        return TestReport(case, failure, line, steps), crashing.calls
    finally:
        store.close()


def _world(
    store: Store,
    outside: Store,
    flows: Mapping[str, FlowUnderTest],
    givens: Givens,
) -> Simulation:
    def answer(leaving: Leaving) -> Reply:
        return givens.answer(world, leaving)

    world = Simulation(
        store,
        {flow.version: flow.program for flow in flows.values()},
        {flow.name: flow.version for flow in flows.values()},
        answer,
        at_once=True,
    )
    world.outside = outside
    return world


def _run(case: TestCase, function: int, tools: Tools) -> tuple[str | None, int]:
    """Runs a function of the test's program; gives why it failed, and the line."""
    program = case.program
    task = Task("test", start_task(program, function, ()), 0)
    machine = Machine("test", "", "")
    while True:
        effect = advance(program, machine, task, SLICE)
        match effect:
            case Ended():
                return None, 0
            case Failed(failure):
                return failure.message, _line(case, failure.trace)
            case OutOfBudget():
                continue
            case Operation():
                calls = trace(program, task)
                failure_text = _guarded(task, tools, effect)
                if failure_text is not None:
                    return failure_text, _line(case, calls)
            case _:
                calls = trace(program, task)
                return "a test cannot wait or call a step itself", _line(case, calls)


def _answer(task: Task, tools: Tools, asked: Operation) -> None:
    if asked.name == "flow.print":
        resume(task, ())
    else:
        resume(task, tools.answer(asked))


def _guarded(task: Task, tools: Tools, asked: Operation) -> str | None:
    """Why the test fails there. A bug of ours is told as one, with its place."""
    try:
        _answer(task, tools, asked)
    except TestFailed as failed:
        return str(failed)
    except FlowError as failed:
        return failed.message
    except Restless as failed:
        return str(failed)
    except Exception as bug:
        place = traceback.extract_tb(bug.__traceback__)[-1]
        return (
            f"a bug of qoqi, not of this test: {type(bug).__name__}: {bug} "
            f"({place.filename}:{place.lineno})"
        )
    return None


def _line(case: TestCase, calls: Sequence[TraceLine]) -> int:
    """The line of the test's own file at which it failed: the innermost call there."""
    for call in calls:
        if call.file == case.file and call.line:
            return call.line
    return case.line


def _shown(step: Leaving) -> str:
    return f"{step.step} (attempt {step.attempt})" if step.attempt > 1 else step.step
