"""What a command loads: no more than it needs, so that it starts at once.

Each command runs here as a user runs it, in a process of its own which then says what it loaded.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=open({loaded!r}, "w")))
sys.argv[0] = "qoqi"
from qoqi.runtime.cli.main import app
app()
"""

SOURCE = """flow Hello(name: String) -> String {
    run { return "hello, \\(name)" }
}
"""

# Loaded by no command but those that need them.
SERVER = ("asyncio", "sqlite3", "uvicorn", "qoqi.runtime.store", "qoqi.vm.turn")
CLIENT = ("httpx", "ssl")
CHECKER = ("qoqi.compiler.types", "qoqi.compiler.rules", "qoqi.compiler.syntax.parser")
EMITTER = ("qoqi.compiler.emit", "qoqi.compiler.project.build")
EDITORS = ("pygls", "lsprotocol", "qoqi.lsp")
DRAWING = ("rich", "pygments")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "flow.toml").write_text('name = "greet"\n', "utf-8")
    (tmp_path / "hello.flow").write_text(SOURCE, "utf-8")
    return tmp_path


def words(folder: Path, *command: str) -> list[str]:
    program = RUN.format(loaded=str(folder / "loaded"))
    return [sys.executable, "-c", program, *command]


def loaded(folder: Path, *command: str) -> set[str]:
    ran = subprocess.run(
        words(folder, *command), cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return set((folder / "loaded").read_text("utf-8").split())


def among(modules: set[str], *parts: str) -> list[str]:
    return sorted(m for m in modules if any(f"{m}.".startswith(f"{part}.") for part in parts))


@pytest.mark.parametrize("command", [["--help"], ["check", "--help"], ["token", "--help"]])
def test_help_loads_the_names_of_commands_only(tmp_path: Path, command: list[str]) -> None:
    modules = loaded(tmp_path, *command)

    assert among(modules, "qoqi") == [
        "qoqi",
        "qoqi.runtime",
        "qoqi.runtime.cli",
        "qoqi.runtime.cli.commands",
        "qoqi.runtime.cli.main",
    ]
    assert among(modules, *SERVER, *CLIENT, *DRAWING, "pydantic") == []


def test_a_check_without_findings_loads_the_checker_only(package: Path) -> None:
    modules = loaded(package, "check")

    assert among(modules, *CHECKER) != []
    assert among(modules, *SERVER, *CLIENT, *EMITTER, *EDITORS, *DRAWING) == []


def test_a_daemon_on_a_built_package_does_not_load_the_compiler(package: Path) -> None:
    loaded(package, "build")

    modules = served(package)

    assert "qoqi.vm.turn" in modules
    assert among(modules, *CHECKER, *EMITTER, *CLIENT[:1], *EDITORS, *DRAWING, "pydantic") == []


def test_a_daemon_on_a_changed_package_does(package: Path) -> None:
    loaded(package, "build")
    served(package)
    (package / "hello.flow").write_text(SOURCE + "\n// Another line.\n", "utf-8")

    assert among(served(package), *CHECKER) != []


def test_what_a_daemon_compiled_is_kept_for_the_next(package: Path) -> None:
    loaded(package, "build")
    (package / ".qoqi" / "cache" / "build.json").unlink()

    first, second = served(package), served(package)

    assert among(first, *CHECKER) != []
    assert among(second, *CHECKER) == []


def served(package: Path) -> set[str]:
    """What a daemon had loaded when it listened and had deployed the package, then stopped."""
    daemon = subprocess.Popen(
        words(package, "serve", ".", "--listen", "127.0.0.1:0", "--drain", "0s"),
        cwd=package,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert daemon.stdout is not None
    line = daemon.stdout.readline()
    daemon.send_signal(signal.SIGTERM)
    _, errors = daemon.communicate(timeout=60)
    assert line.startswith("flow daemon"), errors
    assert daemon.returncode == 0, errors
    return set((package / "loaded").read_text("utf-8").split())
