"""Every code has a page, and the page's examples are so: one fails with the code, one is clean.

Every fix that a failing example's diagnostics carry is applied, must parse, and must remove its
diagnostic.
"""

from __future__ import annotations

from collections import Counter

import pytest
from rules_check import judge

from qoqi.compiler.rules import pages
from qoqi.compiler.rules.codes import RULE_CODES
from qoqi.compiler.syntax.codes import SYNTAX_CODES
from qoqi.compiler.types.codes import TYPE_CODES

CATALOGUE = {**SYNTAX_CODES, **TYPE_CODES, **RULE_CODES}

# What no single text can show: a package of several files, or a text too large to print.
WITHOUT_EXAMPLE = {"E0107", "E0108", "E0126", "E0205", "E0211", "E0212", "E0322"}
WITH_EXAMPLE = sorted(set(CATALOGUE) - WITHOUT_EXAMPLE)


def test_no_code_is_in_two_catalogues() -> None:
    counts = Counter([*SYNTAX_CODES, *TYPE_CODES, *RULE_CODES])
    assert [code for code, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("code", sorted(CATALOGUE))
def test_every_code_has_a_page(code: str) -> None:
    page = pages.page(code)
    assert page is not None
    assert page.code == code
    assert page.title == CATALOGUE[code]
    assert len(page.prose) > 40


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
