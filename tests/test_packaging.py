"""What a checkout imports is what a wheel ships, and what it needs is what it declares."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
SOURCES: dict[str, str] = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["sources"]

# Needed only to make the parser's tables again; imported late, on the way that makes them.
DEVELOPMENT_ONLY = {"lark"}


def _files(folder: str) -> list[Path]:
    found = (ROOT / folder).rglob("*")
    return [p for p in found if p.is_file() and "__pycache__" not in p.parts]


def _distribution(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return name[0].lower().replace("_", "-")


def _locked() -> set[str]:
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    return {_distribution(line) for line in lines if re.match(r"[A-Za-z0-9]", line)}


def test_links_are_the_source_folders() -> None:
    links = {path.name: path.resolve() for path in (ROOT / ".links" / "qoqi").iterdir()}

    assert links == {folder: ROOT / folder for folder in SOURCES}


def test_links_are_relative() -> None:
    targets = {path.name: str(path.readlink()) for path in (ROOT / ".links" / "qoqi").iterdir()}

    assert targets == {folder: f"../../{folder}" for folder in SOURCES}


def test_wheel_through_sdist_has_every_file(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sdist:
        sdist.extractall(tmp_path, filter="data")
    unpacked = next(path for path in tmp_path.iterdir() if path.is_dir())
    subprocess.run([*build, "-t", "wheel"], cwd=unpacked, check=True, capture_output=True)
    shipped = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())

    expected = {
        f"{name}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, name in SOURCES.items()
        for path in _files(folder)
    }
    assert {name for name in shipped if ".dist-info/" not in name} == expected
    assert {path.rsplit(".", 1)[-1] for path in expected} >= {"py", "typed", "lark", "flow", "md"}


def test_every_import_is_a_declared_dependency() -> None:
    declared = {_distribution(line) for line in PYPROJECT["project"]["dependencies"]}
    owners = packages_distributions()
    undeclared: dict[str, str] = {}
    for folder in SOURCES:
        for path in _files(folder):
            if path.suffix != ".py":
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                names = (
                    [alias.name for alias in node.names]
                    if isinstance(node, ast.Import)
                    else [node.module or ""]
                    if isinstance(node, ast.ImportFrom)
                    else []
                )
                for top in {name.split(".")[0] for name in names}:
                    if top in sys.stdlib_module_names or top in {"qoqi", *DEVELOPMENT_ONLY}:
                        continue
                    if (
                        not {name.lower().replace("_", "-") for name in owners.get(top, [])}
                        & declared
                    ):
                        undeclared[top] = path.relative_to(ROOT).as_posix()

    assert undeclared == {}


def test_lock_pins_every_dependency() -> None:
    wanted = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["dependency-groups"]["dev"]]

    assert {_distribution(line) for line in wanted} <= _locked()


def test_lock_is_exact_and_hashed() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)[1:]

    assert entries
    assert [e for e in entries if not re.match(r"[A-Za-z0-9._\[\]-]+==\S+", e)] == []
    assert [e for e in entries if "--hash=sha256:" not in e] == []
    assert "://" not in text
