"""Which requirement is shown by which test.

`requirements_ids.toml` lists every requirement with the part of the work that brings it;
`requirements.toml` names, for those that are shown, the tests that show them. A name is
`path::function` (a test), or `path.md::Heading` (a page whose headings are tests). Run as a script
(`make requirements`), this file prints what no test shows yet.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IDS = ROOT / "tests" / "requirements_ids.toml"
SHOWN = ROOT / "tests" / "requirements.toml"


def requirements() -> dict[str, str]:
    """Requirement to the part that brings it."""
    parts: dict[str, list[str]] = tomllib.loads(IDS.read_text("utf-8"))
    return {row: part for part, rows in parts.items() for row in rows}


def shown() -> dict[str, list[str]]:
    return tomllib.loads(SHOWN.read_text("utf-8"))


def names_in(path: Path) -> set[str]:
    """The names of the tests of a file: functions, `Class::method`, or headings of a page."""
    text = path.read_text("utf-8")
    if path.suffix == ".md":
        return {line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")}
    names: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{member.name}"
                for member in node.body
                if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return {name for name in names if name.rpartition("::")[2].startswith("test")}


def missing() -> dict[str, list[str]]:
    """What is not shown, by part."""
    gone: dict[str, list[str]] = {}
    for row, part in requirements().items():
        if row not in shown():
            gone.setdefault(part, []).append(row)
    return gone


def test_every_row_is_a_requirement() -> None:
    assert sorted(set(shown()) - set(requirements())) == []


def test_every_requirement_is_listed_once() -> None:
    parts: dict[str, list[str]] = tomllib.loads(IDS.read_text("utf-8"))
    rows = [row for part in parts.values() for row in part]

    assert len(rows) == len(set(rows)) > 400


def test_every_named_test_exists() -> None:
    unknown = []
    for row, names in shown().items():
        assert names, f"{row} names no test"
        for name in names:
            file, _, test = name.partition("::")
            path = ROOT / file
            if not path.is_file() or test.partition("[")[0] not in names_in(path):
                unknown.append(f"{row}: {name}")

    assert unknown == []


if __name__ == "__main__":
    total = len(requirements())
    for part, rows in missing().items():
        print(f"{part}: {len(rows)} not shown yet")
        for start in range(0, len(rows), 10):
            print("  " + " ".join(rows[start : start + 10]))
    print(f"{len(shown())} of {total} requirements are shown by a test")
