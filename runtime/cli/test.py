"""`qoqi test`: runs the `test` blocks of flows and tells which failed, where and why.

Each path is a package, as for every command, and nothing runs while one has errors. Passed tests
are counted for each file (listed with `-v`), failed ones are told whole.
"""

from __future__ import annotations

import os
import sys
import time
import xml.etree.ElementTree as Xml
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from rich.text import Text

from qoqi.compiler import api
from qoqi.runtime import deploy
from qoqi.runtime.cli import package, render
from qoqi.runtime.cli.ending import FOUND, REFUSED, USAGE, fail, show_json
from qoqi.runtime.testing import suite
from qoqi.runtime.testing.runner import FlowUnderTest, TestCase
from qoqi.runtime.testing.suite import Suite, TestResult
from qoqi.runtime.testing.tools import VersionBefore
from qoqi.vm.dataclass import dataclass
from qoqi.vm.program import load

MOST_STEPS = 20
"""Of the steps that left, at most so many are told of a test that failed."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says beside paths. `jobs` 0: as many as there are processors."""

    text: str | None = None
    crashes: bool = False
    junit: Path | None = None
    as_json: bool = False
    jobs: int = 0
    names: bool = False


def run(paths: list[Path], options: Options) -> None:
    begun = time.perf_counter()
    suites = _suites(paths, options.text)
    if not any(one.cases for one in suites):
        _nothing(options)
    jobs = options.jobs or os.cpu_count() or 1
    results: list[TestResult] = []
    for file, of_file in groupby(_run(suites, options.crashes, jobs), lambda one: one.file):
        told: list[TestResult] = []
        for result in of_file:
            told.append(result)
            if not options.as_json and (options.names or result.failure is not None):
                _tell(result, options)
        if not options.as_json:
            _tell_file(file, told)
        results += told
    seconds = time.perf_counter() - begun
    if options.junit is not None:
        _write_junit(options.junit, results)
    if options.as_json:
        show_json(_json(results, seconds))
    else:
        render.console().print(_summary(results, seconds, options.crashes))
    if any(one.failure is not None for one in results):
        raise SystemExit(FOUND)


def _nothing(options: Options) -> None:
    """No test is to be run: a mistake of the command line if `-k` is to blame for it."""
    if options.text:
        fail(USAGE, f"-k: no test's title or file contains {options.text!r}")


def _run(suites: Iterable[Suite], crashes: bool, jobs: int) -> Iterator[TestResult]:
    """Results with the paths of their files as seen from here."""
    for one in suites:
        folder = deploy.lock_folder(one.root)
        for result in suite.run(one.cases, one.flows, crashes=crashes, jobs=jobs):
            yield replace(result, file=os.path.relpath(Path(folder) / result.file))


# -- what to run -------------------------------------------------------------------------------


def _suites(paths: list[Path], text: str | None) -> list[Suite]:
    """The chosen tests of each path; errors of any end the command before a test runs."""
    places = dict.fromkeys(map(package.root, paths)) if paths else [package.root(None)]
    results = [api.check(where) for where in places]
    wrong = [one for one in results if not one.ok]
    for result in wrong:
        found = result.diagnostics
        render.diagnostics(found, api.indexes(result), render.console(sys.stderr))
        print(render.verdict(found), file=sys.stderr)
    if wrong:
        raise SystemExit(FOUND)
    suites = []
    for result in results:
        loaded = load_suite(result.package.root, api.build_tests(result))
        suites.append(replace(loaded, cases=suite.chosen(loaded.cases, text)))
    return suites


def load_suite(root: str, build: api.TestBuild) -> Suite:
    """The tests of a package that was compiled for them."""
    cases: list[TestCase] = []
    for module in build.modules:
        program = load(module.chunk, module.debug)
        cases += [
            TestCase(module.file, test.title, test.line, program, test.function, module.givens)
            for test in module.tests
        ]
    return Suite(root, tuple(cases), tuple(map(_loaded, build.flows)))


def _loaded(flow: api.FlowToTest) -> FlowUnderTest:
    before = None
    if flow.before is not None:
        always = [part.name for part in (*flow.before.params, *flow.before.fields)]
        stages = {
            stage.name: frozenset([*always, *(part.name for part in stage.variables)])
            for stage in flow.before.stages
        }
        channels = tuple(channel.name for channel in flow.before.channels)
        before = VersionBefore(flow.before.hash, stages, channels)
    return FlowUnderTest(flow.name, flow.hash, load(flow.chunk, flow.debug), flow.steps, before)


# -- for people --------------------------------------------------------------------------------


def _tell(result: TestResult, options: Options) -> None:
    to = render.console()
    if result.failure is None:
        crashes = f", {_crashes(result)}" if options.crashes else ""
        to.print(Text.assemble(("ok   ", "green"), render.visible(result.title) + crashes))
        return
    line = Text.assemble(("FAIL ", "bold red"), (render.visible(result.title), "bold"))
    to.print(line)
    to.print(Text(f"     {render.visible(result.file)}:{result.at or result.line}"))
    for text in result.failure.splitlines():
        to.print(Text(f"     {render.visible(text)}"))
    if result.steps:
        to.print(Text(f"     steps so far: {render.visible(_last(result.steps))}"))
    for text in result.printed:
        to.print(Text(f"     printed: {render.visible(text)}"))


def _last(steps: tuple[str, ...]) -> str:
    """The steps that left, of many the last ones."""
    left_out = len(steps) - MOST_STEPS
    shown = ", ".join(steps[-MOST_STEPS:])
    return f"{left_out} others, then {shown}" if left_out > 0 else shown


def _crashes(result: TestResult) -> str:
    said = "1 crash" if result.crashes == 1 else f"{result.crashes} crashes"
    return f"{said}, {result.showed} of them shown to the flow" if result.showed else said


def _tell_file(file: str, told: list[TestResult]) -> None:
    failed = sum(one.failure is not None for one in told)
    counts = f"{len(told) - failed} passed" + (f", {failed} failed" if failed else "")
    style = "red" if failed else "green"
    render.console().print(Text.assemble(render.visible(file) + ": ", (counts, style)))


def _summary(results: list[TestResult], seconds: float, crashes: bool) -> Text:
    failed = sum(one.failure is not None for one in results)
    text = f"{len(results) - failed} passed, {failed} failed in {seconds:.1f} s"
    if crashes:
        text += f", with {sum(one.crashes for one in results)} crashes"
    return Text(text, "bold red" if failed else "bold")


# -- for programs ------------------------------------------------------------------------------


def _json(results: list[TestResult], seconds: float) -> dict[str, object]:
    failed = sum(one.failure is not None for one in results)
    return {
        "passed": len(results) - failed,
        "failed": failed,
        "seconds": round(seconds, 3),
        "tests": [_test_json(one) for one in results],
    }


def _test_json(result: TestResult) -> dict[str, object]:
    shown: dict[str, object] = {
        "file": result.file,
        "title": result.title,
        "line": result.line,
        "passed": result.failure is None,
        "seconds": round(result.seconds, 3),
        "crashes": result.crashes,
    }
    if result.faults:
        shown["faults"] = dict(result.faults)
    if result.failure is not None:
        shown |= {"message": result.failure, "at": result.at, "steps": list(result.steps)}
    if result.printed:
        shown["printed"] = list(result.printed)
    return shown


def _write_junit(path: Path, results: list[TestResult]) -> None:
    """JUnit's XML, a suite for each file; what XML cannot hold is shown escaped."""
    top = Xml.Element("testsuites")
    for file, of_file in groupby(results, lambda one: one.file):
        told = list(of_file)
        failed = sum(one.failure is not None for one in told)
        seconds = f"{sum(one.seconds for one in told):.3f}"
        counts = {"tests": str(len(told)), "failures": str(failed), "errors": "0"}
        node = Xml.SubElement(top, "testsuite", name=_xml(file), time=seconds, attrib=counts)
        for one in told:
            case = Xml.SubElement(
                node,
                "testcase",
                classname=_xml(one.file),
                name=_xml(one.title),
                file=_xml(one.file),
                line=str(one.line),
                time=f"{one.seconds:.3f}",
            )
            if one.failure is not None:
                first = one.failure.splitlines()[0] if one.failure else "failed"
                failure = Xml.SubElement(case, "failure", message=_xml(first))
                place = f"{one.file}:{one.at or one.line}"
                steps = f"\nsteps so far: {', '.join(one.steps)}" if one.steps else ""
                failure.text = "\n".join(map(_xml, f"{place}\n{one.failure}{steps}".splitlines()))
    try:
        Xml.ElementTree(top).write(path, "utf-8", xml_declaration=True)
    except OSError as error:
        fail(REFUSED, f"--junit: {path} cannot be written: {error.strerror or error}")


def _xml(text: str) -> str:
    return render.visible(text)
