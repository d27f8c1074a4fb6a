"""Runs the tests of flows: each in a world of its own, on the real turn and the real store.

A test's body runs in the machine; its tools are operations answered by `tools`. The world is an
in-memory store under a virtual clock that begins at 2026-01-01T00:00Z. A test passes when its body
ends; what fails is told with the line, both sides of a comparison, and the steps that left so far.

With crashes, a test is run again and again, and must still pass; after each run everything that
must hold at any time is looked at (`simulation.invariants`).

- The daemon dies before and after each write. Its steps under way are given up then, and that is
  all that a crash may change: a Settled step is `Unknown`, an attempt of so many is used up, a
  cancelled step may have acted. So where a test ends otherwise it is run once more, without a
  crash: at the same write the same attempts are given up, and nothing else happens. If it ends as
  that does, and every instance, its steps and its undos with it, the crash only showed what it may.
- Everything else that can happen to a daemon or its store (`faults.UNSEEN`) happens at each write,
  one kind after the other in one run. None of it may be seen.
"""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import cast

from qoqi.runtime.simulation.crashes import Outcome, outcome_of
from qoqi.runtime.simulation.faults import UNSEEN, At, CrashingStore, Fault
from qoqi.runtime.simulation.invariants import Broken, Watch
from qoqi.runtime.simulation.world import Leaving, Reply, Restless, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.runtime.testing.givens import Givens, TestFailed
from qoqi.runtime.testing.tools import Tools, VersionBefore
from qoqi.vm.dataclass import dataclass
from qoqi.vm.effects import Ended, Failed, Operation, OutOfBudget
from qoqi.vm.failure import FlowError, TraceLine
from qoqi.vm.frames import Machine, Task
from qoqi.vm.interpreter import OPERATION_COST, advance, resume, start_task, trace
from qoqi.vm.program import Program

SLICE = 1_000_000


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

    `crashes` counts what happened to its daemons, and `faults` each kind of it; of the deaths,
    `showed` are those that it ends differently after, as the language allows it.
    """

    __test__ = False

    case: TestCase
    failure: str | None = None
    line: int = 0
    steps: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    crashes: int = 0
    showed: int = 0
    faults: Mapping[Fault, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Crashes:
    """What happens before or after write `at`, then at each `every` writes; or all that may not be
    seen, in turn."""

    at: int
    after: bool
    every: int
    fault: Fault = Fault.DIES
    cycle: tuple[At | None, ...] = ()

    def __str__(self) -> str:
        if self.cycle:
            return f"with a fault at each second write (run {self.at})"
        what = "a crash" if self.fault is Fault.DIES else f"a fault ({self.fault})"
        again = f" and each {self.every} writes later" if self.every else ""
        return f"with {what} {'after' if self.after else 'before'} write {self.at}{again}"

    def store(self, store: Store) -> CrashingStore:
        return CrashingStore(
            store, self.at, self.after, self.every, fault=self.fault, cycle=self.cycle
        )


@dataclass(frozen=True, slots=True)
class _Played:
    """One run. `gave_up`: an attempt under way, because its daemon died."""

    report: TestReport
    outcome: Outcome
    writes: int
    happened: Counter[Fault]
    gave_up: bool

    def same(self, other: _Played) -> bool:
        """Whether the test ended alike, and its world as well: each instance, its undos and steps.

        Results are the test's to compare: what is drawn by chance may be drawn again.
        """
        mine, others = self.report, other.report
        return (mine.failure, mine.line) == (others.failure, others.line) and not self.differs(
            other
        )

    def differs(self, other: _Played) -> str | None:
        """In what the worlds differ, where nothing is decided by chance."""
        for name, status in _statuses(self.outcome).items():
            before = _statuses(other.outcome).get(name)
            if before != status:
                return f"{name} is {status}, and was {before}"
        if self.outcome.undone != other.outcome.undone:
            return f"undone is {self.outcome.undone}, and was {other.outcome.undone}"
        mine, others = Counter(self.report.steps), Counter(other.report.steps)
        if mine != others:
            return f"these steps left: {list(self.report.steps)}, and before {list(other.report.steps)}"
        return None


NO_CRASH = _Crashes(0, False, 0)
IN_TURN = tuple(one for at in UNSEEN for one in (at, None))
"""After each of them a write that nothing happens at, so that all gets on."""
ALONE = 100
"""Up to so many writes, each crash has a run of its own."""
APART = 10
"""In a longer test the crashes of one run are at least so many writes apart,"""
TOGETHER = 5_000
"""and so many more that all its runs together make about so many writes."""
ENOUGH = 50_000
"""When the runs of one kind have made so many writes no more are begun: in a test that long the
same writes come again and again, and not each of them is died at."""


def run_test(
    case: TestCase, flows: Sequence[FlowUnderTest], *, crashes: bool = False
) -> TestReport:
    """Runs one test; with `crashes`, again with all that can happen at each of its writes."""
    whole = _play(case, flows, NO_CRASH)
    if whole.report.failure is not None or not crashes:
        return whole.report
    happened: Counter[Fault] = Counter()
    showed = 0
    for crash in (*_enough(_points(whole.writes), whole.writes), *_in_turn(whole.writes)):
        now = _play(case, flows, crash)
        happened += now.happened
        if now.same(whole):
            continue
        if crash.fault is Fault.DIES and now.gave_up and not crash.cycle:
            without = _play(case, flows, replace(crash, fault=Fault.GIVEN_UP))
            if now.same(without):
                showed += now.report.failure is not None
                continue
        why = now.report.failure or f"the test passes, but {now.differs(whole)}"
        failure = f"{_blamed(case, flows, crash, whole)}: {why}"
        crashes_so_far = happened.total() - 1
        return replace(now.report, failure=failure, crashes=crashes_so_far, faults=dict(happened))
    return TestReport(case, crashes=happened.total(), showed=showed, faults=dict(happened))


def _statuses(outcome: Outcome) -> dict[str, str]:
    return {name: status for name, (status, _) in outcome.ends.items()}


def _points(writes: int) -> Iterator[_Crashes]:
    """Every write once before and once after. The number of runs grows with the test only so far:
    else the time of a long test would grow with its square."""
    apart = writes if writes <= ALONE else max(APART, TOGETHER // writes)
    for at in range(1, apart + 1):
        for after in (False, True):
            yield _Crashes(at, after, 0 if apart == writes else apart)


def _in_turn(writes: int) -> Iterator[_Crashes]:
    """Runs in which each kind of fault comes to each write once."""
    if writes:
        runs = (_Crashes(at, False, 0, cycle=IN_TURN) for at in range(len(IN_TURN)))
        yield from _enough(runs, writes)


def _enough(runs: Iterator[_Crashes], writes: int) -> Iterator[_Crashes]:
    """At least two, and of a long test no more than fit into `ENOUGH` writes."""
    for number, run in enumerate(runs):
        if number >= 2 and number * writes >= ENOUGH:
            return
        yield run


def _blamed(
    case: TestCase, flows: Sequence[FlowUnderTest], crash: _Crashes, whole: _Played
) -> _Crashes:
    """Of a run with many faults: the first one that fails the test alone, if one does."""
    if not crash.cycle or whole.writes > ALONE:
        return crash
    for number in range(1, whole.writes + 1):
        at = crash.cycle[(crash.at + number) % len(crash.cycle)]
        if at is not None:
            alone = _Crashes(number, at.after, 0, at.fault)
            if not _play(case, flows, alone).same(whole):
                return alone
    return crash


def _play(case: TestCase, flows: Sequence[FlowUnderTest], crash: _Crashes) -> _Played:
    """One run, and what must hold after it."""
    by_name = {flow.name: flow for flow in flows}
    givens = Givens(case.program, {flow.name: flow.steps for flow in flows})
    store = memory_store()
    crashing = crash.store(store)
    world = _world(cast(Store, crashing), store, by_name, givens)
    watch = Watch(store, "of what must always hold")
    crashing.world, crashing.watch = world, watch
    world.on_leave = lambda: watch.leaves(world, world.left[-1])
    before = {flow.name: flow.before for flow in flows if flow.before is not None}
    tools = Tools(world, case.program, givens, before)
    printed: list[str] = []
    try:
        failure, line = _run(case, case.givens, tools, printed)
        if failure is None:
            failure, line = _run(case, case.function, tools, printed)
        if failure is None or crash is not NO_CRASH:
            broken = _broken(watch, world)
            if broken is not None:
                failure = broken if failure is None else f"{failure}\n{broken}"
                line = line or case.line
        steps = tuple(_shown(step) for step in world.departures())
        return _Played(
            TestReport(case, failure, line, steps, tuple(printed)),
            outcome_of(store, world),
            crashing.calls,
            crashing.happened,
            bool(world.void),
        )
    finally:
        store.close()


def _broken(watch: Watch, world: Simulation) -> str | None:
    try:
        watch.settled(world)
    except Broken as broken:
        return f"a bug of qoqi, not of this test: {broken}"
    return None


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
                task.spent -= OPERATION_COST  # that is for flows, which others wait for
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
    except Broken as broken:
        return f"a bug of qoqi, not of this test: {broken}"
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
