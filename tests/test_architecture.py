"""Arrows between the parts point one way, and each library of others is known in one place.

The contracts of pyproject.toml say which way; the tables here say who may know what: what is not
named in them may not be imported at all.
"""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("qoqi.compiler", "qoqi.grammar", "qoqi.lsp", "qoqi.runtime", "qoqi.vm")

# A part, and what of ours it may import beside itself.
MAY_IMPORT = {
    "qoqi.vm.bytecode": ("qoqi.vm.codes", "qoqi.vm.dataclass"),
    "qoqi.vm": (),
    "qoqi.grammar": (),
    "qoqi.compiler": (
        "qoqi.grammar",
        "qoqi.stdlib",
        "qoqi.vm.bytecode",
        "qoqi.vm.codes",
        "qoqi.vm.dataclass",
    ),
    "qoqi.lsp": ("qoqi.compiler", "qoqi.stdlib", "qoqi.vm.codes", "qoqi.vm.dataclass"),
    "qoqi.runtime.deploy": ("qoqi.compiler", "qoqi.runtime", "qoqi.vm"),
    "qoqi.runtime.cli": (
        "qoqi.compiler",
        "qoqi.lsp",
        "qoqi.runtime",
        "qoqi.stdlib",
        "qoqi.vm",
    ),
    "qoqi.runtime": ("qoqi.vm",),
}

# A library, and the modules that may know it.
KNOWN_IN = {
    "lark": ("qoqi.compiler.syntax.tables",),
    "msgpack": ("qoqi.vm.bytecode.codec",),
    "rich": ("qoqi.runtime.cli",),
    "click": ("qoqi.runtime.cli",),
    "uvicorn": ("qoqi.runtime.api", "qoqi.runtime.cli.serve"),
    "httpx": ("qoqi.runtime.api", "qoqi.runtime.bodies"),
    "sqlite3": ("qoqi.runtime.store",),
    "pygls": ("qoqi.lsp",),
    "lsprotocol": ("qoqi.lsp",),
    "asyncio": ("qoqi.lsp", "qoqi.runtime"),
    "random": ("qoqi.runtime",),
    "secrets": ("qoqi.runtime",),
    "socket": ("qoqi.runtime",),
    "subprocess": (),
    "threading": ("qoqi.runtime",),
    "time": ("qoqi.runtime",),
    "pickle": (),
}


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PARTS, include_external_packages=True, cache_dir=None)


def under(module: str, *prefixes: str) -> bool:
    return any(module == prefix or module.startswith(f"{prefix}.") for prefix in prefixes)


def test_import_contracts() -> None:
    run = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", run, "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


def test_parts_import_what_is_theirs_to_import() -> None:
    strays: list[str] = []
    for module in sorted(graph().modules):
        part = next((part for part in MAY_IMPORT if under(module, part)), None)
        if part is None:
            continue
        allowed = (part, *MAY_IMPORT[part])
        for other in sorted(graph().find_modules_directly_imported_by(module)):
            if under(other, "qoqi") and not under(other, *allowed):
                strays.append(f"{module} -> {other}")

    assert strays == []


@pytest.mark.parametrize("library", KNOWN_IN)
def test_a_library_is_known_in_one_place(library: str) -> None:
    known = library in graph().modules
    users = graph().find_modules_that_directly_import(library) if known else set()

    assert sorted(user for user in users if not under(user, *KNOWN_IN[library])) == []


def test_starting_loads_neither_compiler_nor_daemon() -> None:
    """`qoqi --help` is quick: commands import what they do when they run."""
    look = (
        "import sys; import qoqi.runtime.cli.main;"
        "print([m for m in sys.modules if m.startswith(('qoqi.compiler', 'qoqi.vm', 'asyncio',"
        " 'uvicorn', 'httpx', 'lark', 'sqlite3', 'rich.console'))])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert loaded.stdout.strip() == "[]"
