"""Every code has a page, and the page's examples are so: one fails with the code, one is clean.

Every fix that a failing example's diagnostics carry is applied, must parse, and must remove its
diagnostic.
"""

from __future__ import annotations

import pytest

from qoqi.compiler.codes import BUILD, CODES, RULES, SYNTAX, TYPES
from qoqi.compiler.diagnostics import Severity
from qoqi.compiler.rules import pages
from qoqi.vm.codes import RUNTIME_CODES
from tests.compiler.rules_check import judge

# What no single text can show: a package of several files, or a text too large to print.
WITHOUT_EXAMPLE = {"E0107", "E0108", "E0126", "E0205", "E0211", "E0212", "E0322"}
WITH_EXAMPLE = sorted({*SYNTAX, *TYPES, *RULES} - WITHOUT_EXAMPLE)
# What no program is to blame for.
WITHOUT_PROGRAM = {"R0011", "R0014", "R0016"}
WITH_PROGRAM = sorted(set(RUNTIME_CODES) - WITHOUT_PROGRAM)


def test_no_code_is_given_twice() -> None:
    sizes = [len(SYNTAX), len(TYPES), len(RULES), len(BUILD), len(RUNTIME_CODES)]
    assert len(CODES) == sum(sizes)


def test_every_page_is_of_a_code() -> None:
    assert pages.codes() == sorted(CODES)


@pytest.mark.parametrize("code", sorted(CODES))
def test_every_code_has_a_page(code: str) -> None:
    page = pages.page(code)
    assert page is not None
    assert page.code == code
    assert page.title == CODES[code]
    assert page.title[0].islower() or page.title[0] == "`"
    assert not page.title.endswith(".")
    assert len(page.prose) > 40


@pytest.mark.parametrize("code", WITH_PROGRAM)
def test_the_programs_of_a_code_of_the_run_time_have_no_errors(code: str) -> None:
    page = pages.page(code)
    assert page is not None
    assert page.stops is not None
    assert page.mended is not None
    for text in (page.stops, page.mended):
        found = [each for each in judge.everything(text) if each.severity is Severity.ERROR]
        assert [f"{each.code} {each.message}" for each in found] == []


def test_a_code_nobody_has_is_no_page() -> None:
    assert pages.page("F9999") is None
    assert pages.page("../codes") is None


@pytest.mark.parametrize("code", WITH_EXAMPLE)
def test_the_failing_example_fails_with_its_code(code: str) -> None:
    page = pages.page(code)
    assert page is not None
    assert page.failing is not None
    found = [each.code for each in judge.everything(page.failing)]
    assert code in found
    assert len([each for each in found if each != code]) <= 1, found


@pytest.mark.parametrize("code", WITH_EXAMPLE)
def test_the_fixed_example_is_clean(code: str) -> None:
    page = pages.page(code)
    assert page is not None
    assert page.fixed is not None
    assert [f"{each.code} {each.message}" for each in judge.everything(page.fixed)] == []


@pytest.mark.parametrize("code", WITH_EXAMPLE)
def test_every_fix_removes_its_diagnostic(code: str) -> None:
    page = pages.page(code)
    assert page is not None
    assert page.failing is not None
    for diagnostic in judge.everything(page.failing):
        for fix in diagnostic.fixes:
            judge.must_help(page.failing, diagnostic, fix)
