"""Right programs that combine what seldom meets: each is clean, becomes bytecode, and is loaded.

The files in `unusual` go through the language page by page. A warning in them is meant and listed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.compiler.diagnostics import Severity
from tests.compiler.fuzzing import survive

FOLDER = Path(__file__).parent / "unusual"
WARNINGS = {
    "words": ["W0107"] * 5,  # imports in every form
    "approval": ["W0105"],  # `after` in a loop
    "places": ["W0108"],  # `break` and `continue` in both branches
    "quorum": ["W0104", "W0105"],  # a task that lives at the stage; `after` in a loop
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.flow")), ids=lambda path: path.stem)
def test_an_unusual_program_is_right(path: Path) -> None:
    found = api.check(str(path)).diagnostics
    errors = [f"{each.code} {each.message}" for each in found if each.severity is Severity.ERROR]
    assert errors == []
    assert [each.code for each in found] == WARNINGS.get(path.stem, [])
    survive(path.read_text("utf-8"))


def test_all_of_them_are_there() -> None:
    assert len(list(FOLDER.glob("*.flow"))) == 10
