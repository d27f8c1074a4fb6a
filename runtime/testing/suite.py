"""All tests of a package: chosen by name, run on several processes, told in order of the sources.

A worker is a fork of the process that compiled the package, so programs are shared and not sent.
It is handed one test at a time and answers with a `TestResult`; which worker ran what never shows.
A worker that dies fails the test it had, and another takes its place.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from qoqi.runtime.testing.runner import FlowUnderTest, TestCase, run_test
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of the package at `root`, in the order of its files and of their lines."""

    root: str
    cases: tuple[TestCase, ...]
    flows: tuple[FlowUnderTest, ...]


@dataclass(frozen=True, slots=True)
class TestResult:
    """How a test ended: `failure` is None if it passed, else `at` is the line where it failed.

    `crashes`, `showed` and `faults` are those of `runner.TestReport`.
    """

    __test__ = False

    file: str
    title: str
    line: int
    seconds: float
    failure: str | None = None
    at: int = 0
    steps: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()
    crashes: int = 0
    showed: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)


def chosen(cases: Sequence[TestCase], text: str | None) -> tuple[TestCase, ...]:
    """The tests whose title or file contains a text, in whatever case it is written."""
    if not text:
        return tuple(cases)
    wanted = text.casefold()
    return tuple(
        case for case in cases if wanted in case.title.casefold() or wanted in case.file.casefold()
    )


def run(
    cases: Sequence[TestCase], flows: Sequence[FlowUnderTest], *, crashes: bool, jobs: int
) -> Iterator[TestResult]:
    """The result of each test, in their order, as soon as those before it are known."""
    if min(jobs, len(cases)) < 2:
        for case in cases:
            yield run_one(case, flows, crashes)
        return
    known: dict[int, TestResult] = {}
    told = 0
    for number, result in _in_workers(cases, flows, crashes, min(jobs, len(cases))):
        known[number] = result
        while told in known:
            yield known.pop(told)
            told += 1


def run_one(case: TestCase, flows: Sequence[FlowUnderTest], crashes: bool) -> TestResult:
    begun = time.perf_counter()
    report = run_test(case, flows, crashes=crashes)
    return TestResult(
        case.file,
        case.title,
        case.line,
        time.perf_counter() - begun,
        report.failure,
        report.line,
        report.steps,
        report.printed,
        report.crashes,
        report.showed,
        {str(fault): count for fault, count in report.faults.items()},
    )


# -- workers -----------------------------------------------------------------------------------


@dataclass(slots=True)
class _Worker:
    """`busy` is the number of the test it has."""

    process: BaseProcess
    pipe: Connection
    busy: int | None = None


def _in_workers(
    cases: Sequence[TestCase], flows: Sequence[FlowUnderTest], crashes: bool, jobs: int
) -> Iterator[tuple[int, TestResult]]:
    waiting = iter(range(len(cases)))
    workers: list[_Worker] = []

    def hire() -> None:
        worker = _start(cases, flows, crashes, [one.pipe for one in workers])
        workers.append(worker)
        _hand(worker, waiting)

    try:
        for _ in range(jobs):
            hire()
        while busy := {one.pipe: one for one in workers if one.busy is not None}:
            for pipe in wait(list(busy)):
                assert isinstance(pipe, Connection)
                worker = busy[pipe]
                number = worker.busy
                assert number is not None
                try:
                    result = pipe.recv()
                    assert isinstance(result, TestResult)
                except (EOFError, ConnectionResetError):
                    result = _died(cases[number], worker.process)
                    workers.remove(worker)
                    pipe.close()
                    hire()
                else:
                    _hand(worker, waiting)
                yield number, result
    finally:
        for worker in workers:
            worker.pipe.close()
            worker.process.terminate()
        for worker in workers:
            worker.process.join()


def _start(
    cases: Sequence[TestCase],
    flows: Sequence[FlowUnderTest],
    crashes: bool,
    others: list[Connection],
) -> _Worker:
    fork = multiprocessing.get_context("fork")
    mine, theirs = fork.Pipe()
    process = fork.Process(
        target=_work, args=(cases, flows, crashes, theirs, [mine, *others]), daemon=True
    )
    process.start()
    theirs.close()
    return _Worker(process, mine)


def _hand(worker: _Worker, waiting: Iterator[int]) -> None:
    """Hands a worker the next test; it rests when there is none."""
    worker.busy = next(waiting, None)
    if worker.busy is not None:
        worker.pipe.send(worker.busy)


def _work(
    cases: Sequence[TestCase],
    flows: Sequence[FlowUnderTest],
    crashes: bool,
    pipe: Connection,
    inherited: list[Connection],
) -> None:
    """A worker: it ends when nobody holds the other end of its pipe any more.

    An interrupt from the terminal is for the one who started it, who ends it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    while True:
        try:
            number = pipe.recv()
        except EOFError:
            os._exit(0)
        assert isinstance(number, int)
        pipe.send(run_one(cases[number], flows, crashes))


def _died(case: TestCase, process: BaseProcess) -> TestResult:
    process.join()
    said = f"the process that ran it ended with {process.exitcode}"
    return TestResult(case.file, case.title, case.line, 0.0, said, case.line)
