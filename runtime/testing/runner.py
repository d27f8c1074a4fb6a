"""Runs the tests of flows: each in a world of its own, on the real turn and the real store.

A test's body runs in the machine; its tools are operations answered by `tools`. The world is an
in-memory store under a virtual clock that begins at 2026-01-01T00:00Z. A test passes when its body
ends; what fails is told with the line, both sides of a comparison, and the steps that left so far.

With crashes, a test is run again and again, and the daemon dies before and after each write of it:
it must still pass. Where the language lets a crash show, it may end otherwise: a Settled step is
`Unknown`, an attempt of so many is used up, a cancelled step may have acted.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from qoqi.runtime.simulation.crashes import CrashingStore
from qoqi.runtime.simulation.world import Leaving, Reply, Restless, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.runtime.testing.givens import Givens, TestFailed
from qoqi.runtime.testing.tools import Tools, VersionBefore
from qoqi.vm.effects import Ended, Failed, Operation, OutOfBudget
from qoqi.vm.failure import FlowError, TraceLine
from qoqi.vm.frames import Machine, Task
from qoqi.vm.interpreter import advance, resume, start_task, trace
from qoqi.vm.program import Program

SLICE = 1_000_000
MAY_HAVE_ACTED = "R0013"  # a cancellation found a step that a crash cut off: left to a person


@dataclass(frozen=True, slots=True)
class FlowUnderTest:
    """A flow of the package: its version, its program, and its steps by qualified name.

    `before` is the deployed version that this one follows, if flow.lock has one.
    """

    name: str
    version: str
    program: Program
    steps: tuple[str, ...]
    before: VersionBefore | None = None


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
    """`failure` is None for a test that passed; `printed` is what its own body printed.

    `crashes` counts the points it was killed at; of these, `showed` are those whose end differs as
    the language allows it.
    """

    __test__ = False

    case: TestCase
    failure: str | None = None
    line: int = 0
    steps: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    crashes: int = 0
    showed: int = 0


@dataclass(frozen=True, slots=True)
class _Crashes:
    """When the daemon dies: before or after write `at`, then at each `every` writes."""

    at: int
    after: bool
    every: int

    def __str__(self) -> str:
        again = f" and each {self.every} writes later" if self.every else ""
        return f"with a crash {'after' if self.after else 'before'} write {self.at}{again}"


NO_CRASH = _Crashes(0, False, 0)
ALONE = 100
"""Up to so many writes, each crash has a run of its own."""
APART = 10
"""In a longer test the crashes of one run are at least so many writes apart,"""
TOGETHER = 5_000
"""and so many more that all its runs together make about so many writes."""


def run_test(
    case: TestCase, flows: Sequence[FlowUnderTest], *, crashes: bool = False
) -> TestReport:
    """Runs one test; with `crashes`, again with a crash before and after each of its writes."""
    report, writes, _ = _play(case, flows, NO_CRASH)
    if report.failure is not None or not crashes:
        return report
    showed = 0
    for number, crash in enumerate(_points(writes)):
        again, _, shows = _play(case, flows, crash)
        if again.failure is None:
            continue
        if not shows:
            return replace(again, failure=f"{crash}: {again.failure}", crashes=number)
        showed += 1
    return TestReport(case, crashes=2 * writes, showed=showed)


def _points(writes: int) -> Iterator[_Crashes]:
    """Every write once before and once after. The number of runs grows with the test only so far:
    else the time of a long test would grow with its square."""
    apart = writes if writes <= ALONE else max(APART, TOGETHER // writes)
    for at in range(1, apart + 1):
        for after in (False, True):
            yield _Crashes(at, after, 0 if apart == writes else apart)


def _play(
    case: TestCase, flows: Sequence[FlowUnderTest], crash: _Crashes
) -> tuple[TestReport, int, bool]:
    """One run: its report, how many writes it made, and whether a crash may show in its end."""
    by_name = {flow.name: flow for flow in flows}
    givens = Givens(case.program, {flow.name: flow.steps for flow in flows})
    store = memory_store()
    crashing = CrashingStore(store, crash.at, crash.after, crash.every)
    world = _world(cast(Store, crashing), store, by_name, givens)
    before = {flow.name: flow.before for flow in flows if flow.before is not None}
    tools = Tools(world, case.program, givens, before)
    printed: list[str] = []
    try:
        failure, line = _run(case, case.givens, tools, printed)
        if failure is None:
            failure, line = _run(case, case.function, tools, printed)
        shows = world.crash_shows or any(row.error_code == MAY_HAVE_ACTED for row in world.rows())
        steps = tuple(_shown(step) for step in world.departures())
        return TestReport(case, failure, line, steps, tuple(printed)), crashing.calls, shows
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


def _run(case: TestCase, function: int, tools: Tools, printed: list[str]) -> tuple[str | None, int]:
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
            case Operation(name="flow.print", args=(text,)):
                printed.append(str(text))
                resume(task, ())
            case Operation():
                calls = trace(program, task)
                failure_text = _guarded(task, tools, effect)
                if failure_text is not None:
                    return failure_text, _line(case, calls)
            case _:
                calls = trace(program, task)
                return "a test cannot wait or call a step itself", _line(case, calls)


def _guarded(task: Task, tools: Tools, asked: Operation) -> str | None:
    """Why the test fails there. A bug of ours is told as one, with its place."""
    try:
        resume(task, tools.answer(asked))
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
