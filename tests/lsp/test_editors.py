"""Real editors, without a screen: each opens a file, sees the diagnostic, applies the fix,
completes, renames, formats and runs tests (`editors/*/test.*`).

A test's parameter is the program it drives, and is named after what has to be there: without that
pytest leaves the test out, for want of a parameter of this name.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

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
OWN_PARTS = {
    "nvim": ["tests of a file", "test at the cursor", "lenses", "test of a lens"],
    "emacs": ["indent", "flow-test-at-point", "flow-test-file", "place of what failed"],
}
COMMANDS = {
    "nvim": ["--headless", "--clean", "-u", "NONE", "-S", str(EDITORS / "neovim" / "test.lua")],
    "emacs": ["-Q", "--batch", "-l", str(EDITORS / "emacs" / "test.el")],
}
BROWSER_PARTS = [
    "colours",
    "hints",
    "lenses",
    "hover",
    "completion",
    "diagnostic",
    "fix",
    "format",
    "rename",
    "tests",
    "no qoqi",
    "environment",
]


def programs(*names: str) -> list[str]:
    """The first of these on the path, as a list of parameters."""
    return [found for name in names if (found := shutil.which(name))][:1]


def environment(home: Path) -> dict[str, str]:
    return {
        **os.environ,
        "QOQI": f"{sys.executable} -m qoqi.runtime.cli.main",
        "PYTHONPATH": str(ROOT / ".links"),
        "HOME": str(home),
        "TMPDIR": str(home),
    }


@pytest.mark.editors
@pytest.mark.parametrize("nvim", programs("nvim"))
def test_neovim_works_with_the_server(nvim: str, tmp_path: Path) -> None:
    drive("nvim", nvim, tmp_path)


@pytest.mark.editors
@pytest.mark.parametrize("emacs", programs("emacs"))
def test_emacs_works_with_the_server(emacs: str, tmp_path: Path) -> None:
    drive("emacs", emacs, tmp_path)


def drive(name: str, program: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [program, *COMMANDS[name]],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    heard = [line[3:] for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert heard == PARTS + OWN_PARTS[name]


# -- VS Code -------------------------------------------------------------------------------------

VSCODE = EDITORS / "vscode"


def test_the_manifest_of_the_extension_names_files_that_are_there() -> None:
    manifest = json.loads((VSCODE / "package.json").read_text("utf-8"))
    contributes = manifest["contributes"]
    paths = [each["configuration"] for each in contributes["languages"]]
    paths += [each["path"] for each in contributes["grammars"] + contributes["snippets"]]

    for path in paths:
        json.loads((VSCODE / path).read_text("utf-8"))
    for path in contributes["languages"][0]["icon"].values():
        assert ElementTree.parse(VSCODE / path).getroot().tag.endswith("svg")
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


def nodes(module: str) -> list[str]:
    """Node, if `npm install` has brought this module."""
    return programs("node") if (VSCODE / "node_modules" / module).is_dir() else []


def browsers() -> list[str]:
    """Node, if everything is there that `browser.mjs` says it needs."""
    needed = [
        os.environ.get("CODE_SERVER") or shutil.which("code-server"),
        os.environ.get("CHROMIUM") or programs("chromium", "chromium-browser", "google-chrome"),
        list(VSCODE.glob("*.vsix")),
    ]
    return nodes("playwright-core") if all(needed) else []


@pytest.mark.editors
@pytest.mark.parametrize("node_after_npm_install", nodes("vscode-textmate"))
def test_the_grammar_in_the_engine_of_vs_code(node_after_npm_install: str) -> None:
    """Over all sources of the project as well."""
    sources = [*(ROOT / "examples").rglob("*.flow"), *(ROOT / "stdlib").glob("*.flow")]
    done = subprocess.run(
        [node_after_npm_install, str(VSCODE / "test" / "grammar.js"), *map(str, sorted(sources))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.editors
@pytest.mark.parametrize("node_with_code_server_chromium_and_vsix", browsers())
def test_the_extension_in_vs_code(
    node_with_code_server_chromium_and_vsix: str, tmp_path: Path
) -> None:
    """A minute, in a browser without a screen."""
    done = subprocess.run(
        [node_with_code_server_chromium_and_vsix, str(VSCODE / "test" / "browser.mjs")],
        # Its own folder for what is passing: the address of a socket has to be short.
        env={**environment(tmp_path), "TMPDIR": tempfile.gettempdir()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    heard = [line[3:] for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert heard == BROWSER_PARTS
