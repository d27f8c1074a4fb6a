"""`qoqi history` reads as prose: whatever kind the sources write to the ledger has its sentence."""

from __future__ import annotations

import ast
from pathlib import Path

from qoqi.runtime.cli.history import _SENTENCES

ROOT = Path(__file__).resolve().parents[2]
# Which argument of a call is the kind: `note(db, id, now, kind, …)`, `instance.note(kind, …)`.
WRITERS = {"LedgerLine": 0, "ledger_row": 2}


def kinds() -> dict[str, set[str]]:
    """Every kind that is written, with the files that write it."""
    found: dict[str, set[str]] = {}
    for folder in ("vm", "runtime"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Call):
                    for kind in _kind(node):
                        found.setdefault(kind, set()).add(path.name)
    return found


def _kind(call: ast.Call) -> list[str]:
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr == "note":
        position = 0
    elif isinstance(function, ast.Name) and function.id == "note":
        position = 3
    elif isinstance(function, ast.Name) and function.id in WRITERS:
        position = WRITERS[function.id]
    else:
        return []
    given = call.args[position] if len(call.args) > position else None
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return [given.value]
    return []


def test_every_kind_that_is_written_has_a_sentence() -> None:
    written = kinds()
    assert len(written) > 20
    assert {kind: files for kind, files in written.items() if kind not in _SENTENCES} == {}


def test_every_sentence_is_of_a_kind_that_is_written() -> None:
    # An instance's own ends are noted by their status.
    assert set(_SENTENCES) - set(kinds()) - {"done", "failed"} == set()
