"""The language by programs in it: every file here is clean, and its tests pass.

Some are also run with a crash at each of their writes; `qoqi test tests/language --crashes` does
that with all.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.runtime.cli.test import load_suite
from qoqi.runtime.testing.runner import TestCase, run_test
from qoqi.runtime.testing.suite import Suite

FOLDER = Path(__file__).parent
FILES = sorted(file.name for file in FOLDER.glob("*.flow"))
CRASHED = ["draws.flow", "requests.flow", "persons.flow"]


@cache
def checked(file: str) -> api.CheckResult:
    return api.check(str(FOLDER / file))


@cache
def suite(file: str) -> Suite:
    return load_suite(str(FOLDER / file), api.build_tests(checked(file)))


def test_there_are_programs() -> None:
    assert len(FILES) >= 18


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_wrong_with_them(file: str) -> None:
    assert [f"{each.code} {each.message}" for each in checked(file).diagnostics] == []


@pytest.mark.parametrize("file", FILES)
def test_their_tests_pass(file: str) -> None:
    cases = suite(file).cases

    assert len(cases) >= 5
    assert failures(file, crashes=False) == []


@pytest.mark.parametrize("file", CRASHED)
def test_they_pass_whatever_write_the_daemon_dies_at(file: str) -> None:
    assert failures(file, crashes=True) == []


def failures(file: str, *, crashes: bool) -> list[str]:
    flows = suite(file).flows
    reports = [run_test(case, flows, crashes=crashes) for case in suite(file).cases]
    return [
        f"{file}:{report.line} {title(report.case)}: {report.failure}"
        for report in reports
        if report.failure is not None
    ]


def title(case: TestCase) -> str:
    return case.title
