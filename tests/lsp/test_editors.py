"""Real editors, without a screen: each opens a file, sees the diagnostic, applies the fix,
completes, renames and formats (`editors/*/test.*`). An editor that is not installed is not tried.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qoqi.compiler.syntax.tokens import CLAUSE_WORDS, DECLARATION_WORDS, RESERVED

ROOT = Path(__file__).resolve().parent.parent.parent
EDITORS = ROOT / "editors"
PARTS = [
    "client",
    "diagnostic",
    "fix",
    "no diagnostic after the fix",
    "completion",
    "rename",
    "format",
    "hover",
]
COMMANDS = {
    "nvim": ["--headless", "--clean", "-u", "NONE", "-S", str(EDITORS / "neovim" / "test.lua")],
    "emacs": ["-Q", "--batch", "-l", str(EDITORS / "emacs" / "test.el")],
}
READY = (EDITORS / "vscode" / "node_modules" / "vscode-textmate").is_dir()
INSTALLED = [name for name in COMMANDS if shutil.which(name)]


@pytest.mark.editors
@pytest.mark.parametrize("name", INSTALLED)
def test_an_editor_works_with_the_server(name: str, tmp_path: Path) -> None:
    server = f"{sys.executable} -m qoqi.runtime.cli.main"
    env = {
        **os.environ,
        "QOQI": server,
        "PYTHONPATH": str(ROOT / ".links"),
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [name, *COMMANDS[name]],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    heard = [line[3:] for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert heard[: len(PARTS)] == PARTS


# -- VS Code -------------------------------------------------------------------------------------

VSCODE = EDITORS / "vscode"


def test_the_manifest_of_the_extension_names_files_that_are_there() -> None:
    manifest = json.loads((VSCODE / "package.json").read_text("utf-8"))
    contributes = manifest["contributes"]
    paths = [each["configuration"] for each in contributes["languages"]]
    paths += [each["path"] for each in contributes["grammars"] + contributes["snippets"]]

    for path in paths:
        json.loads((VSCODE / path).read_text("utf-8"))
    assert contributes["languages"][0]["extensions"] == [".flow"]


def test_the_grammar_knows_every_word() -> None:
    """A new keyword of the language is in the grammars of all three editors."""
    words = RESERVED | DECLARATION_WORDS | CLAUSE_WORDS
    files = ["vscode/syntaxes/flow.tmLanguage.json", "neovim/syntax/flow.vim", "emacs/flow-mode.el"]

    for file in files:
        known = set(re.findall(r"[a-z]+", (EDITORS / file).read_text("utf-8")))
        known |= {
            f"{word}s" for word in known if f"{word}s?" in (EDITORS / file).read_text("utf-8")
        }
        assert sorted(words - known) == [], file


@pytest.mark.editors
@pytest.mark.parametrize("node", [shutil.which("node")] if READY else [])
def test_the_grammar_in_the_engine_of_vs_code(node: str) -> None:
    """With `npm install` done; over all sources of the project as well."""
    sources = [*(ROOT / "examples").rglob("*.flow"), *(ROOT / "stdlib").glob("*.flow")]
    done = subprocess.run(
        [node, str(VSCODE / "test" / "grammar.js"), *map(str, sorted(sources))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr
