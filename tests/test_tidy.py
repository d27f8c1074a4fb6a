"""Habits that a machine can check: size of files, empty packages, no loose ends, help texts."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import click
import pytest

from qoqi.runtime.cli.main import app

ROOT = Path(__file__).resolve().parent.parent
CODE = ["compiler", "vm", "runtime", "lsp", "stdlib", "grammar"]
DATA = {"grammar", "stdlib"}
LIMIT = 800
# One small class after another, without logic: longer, and still one subject.
CATALOGUES = {"compiler/syntax/ast.py"}

# Split so that this file does not find itself.
LOOSE_ENDS = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b|pytest\.(mark\.)?(sk" r"ip|xf" r"ail)")
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common"}


def _python(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


SOURCES = _python(*CODE)
EVERYTHING = _python(*CODE, "tests", "examples", "bench")


def test_there_is_something_to_look_at() -> None:
    assert len(SOURCES) > 40


def test_files_are_short_enough_to_read() -> None:
    lengths = {_name(p): len(p.read_text("utf-8").splitlines()) for p in EVERYTHING}
    long = {name: length for name, length in lengths.items() if length > LIMIT}

    assert {name: length for name, length in long.items() if name not in CATALOGUES} == {}


def test_packages_are_empty() -> None:
    """Except those of data, whose module reads it."""
    packages = [p for p in SOURCES if p.name == "__init__.py" and p.parent.name not in DATA]
    full = [_name(p) for p in packages if p.read_text("utf-8").strip()]

    assert full == []


def test_modules_open_with_their_design() -> None:
    modules = [p for p in EVERYTHING if p.name != "__init__.py"]
    bare = [_name(p) for p in modules if not ast.get_docstring(ast.parse(p.read_text("utf-8")))]

    assert bare == []


def test_modules_have_names_that_say_something() -> None:
    assert [_name(p) for p in EVERYTHING if p.stem in VAGUE] == []


def test_no_loose_ends() -> None:
    lines = [
        f"{_name(path)}:{number}: {line.strip()}"
        for path in EVERYTHING
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if LOOSE_ENDS.search(line)
    ]

    assert lines == []


def test_no_error_is_swallowed() -> None:
    silent = [
        f"{_name(path)}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        and all(isinstance(statement, ast.Pass) for statement in node.body)
    ]

    assert silent == []


def _commands(command: Any, path: str) -> list[tuple[str, Any]]:
    """A command and those below it, by what one types."""
    found = [(path, command)]
    for name, child in getattr(command, "commands", {}).items():
        found += _commands(child, f"{path} {name}")
    return found


COMMANDS = dict(_commands(app, "qoqi"))


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help(path: str) -> None:
    command = COMMANDS[path]
    params = command.get_params(click.Context(command))

    assert (command.help or "").strip()
    assert [param.name for param in params if not (param.help or "").strip()] == []


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_is_documented(path: str) -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")

    assert f"`{path}" in page


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_is_documented(path: str) -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    params = COMMANDS[path].get_params(click.Context(COMMANDS[path]))
    options = [o for param in params for o in param.opts if o.startswith("--")]

    assert [option for option in options if option not in page] == []
