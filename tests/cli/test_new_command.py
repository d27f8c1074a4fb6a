"""`qoqi new`: what it makes checks without a word, tests, builds, and is laid out as `fmt` would."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from qoqi.compiler import api
from qoqi.runtime.cli.main import app
from qoqi.runtime.cli.new import module_name


def invoke(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_package_to_begin_from(here: Path) -> None:
    code, said = invoke("new", "expense-report")

    assert code == 0
    assert "qoqi test" in said
    made = sorted(file.name for file in (here / "expense-report").iterdir())
    assert made == [".gitignore", "README.md", "expenseReport.flow", "flow.toml"]
    result = api.check("expense-report")
    assert [each.message for each in result.diagnostics] == []
    assert result.package.name == "expense-report"
    assert invoke("fmt", "--check", "expense-report")[0] == 0
    assert invoke("test", "expense-report")[0] == 0
    assert invoke("build", "expense-report")[0] == 0
    assert (here / "expense-report" / "flow.lock").is_file()


def test_crashes_change_nothing_in_it(here: Path) -> None:
    assert invoke("new", "demo")[0] == 0
    code, said = invoke("test", "demo", "--crashes")

    assert code == 0, said
    assert said.startswith("demo/demo.flow: 4 passed\n")


def test_an_empty_folder_is_taken_one_with_files_is_not(here: Path) -> None:
    (here / "empty").mkdir()
    assert invoke("new", "empty")[0] == 0

    (here / "full").mkdir()
    (here / "full" / "mine").write_text("x", "utf-8")
    code, said = invoke("new", "full")

    assert code == 3
    assert "full is not empty; nothing was written" in said
    assert [file.name for file in (here / "full").iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["Bad", "1st", "a b", "ä"])
def test_a_name_that_cannot_be_a_packages(here: Path, name: str) -> None:
    assert invoke("new", name)[0] == 2
    assert not (here / name).exists()


def test_a_file_in_the_way(here: Path) -> None:
    (here / "file").write_text("x", "utf-8")
    assert invoke("new", "file")[0] == 3
    assert invoke("new", "file/below")[0] == 3
    assert (here / "file").read_text("utf-8") == "x"


@pytest.mark.parametrize(
    ("name", "module"),
    [("demo", "demo"), ("expense-report", "expenseReport"), ("a-b-c", "aBC"), ("a_b", "a_b")],
)
def test_a_module_is_named_like_a_value(name: str, module: str) -> None:
    assert module_name(name) == module
