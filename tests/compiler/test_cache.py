"""The cache of `qoqi check`: the same answer as a check, however the file on disk came about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.compiler.project import cache

TEXT = (
    "fn f() -> Int {\n    let unused = 1\n    return x\n}\n\nflow F() {\n    run { }\n}\n"
    + "// a comment that makes the file long\n" * (cache.LEAST // 30)
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flow.toml").write_text('name = "it"\n')
    (tmp_path / "m.flow").write_text(TEXT)
    return tmp_path


def kept(folder: Path) -> Path:
    return folder / cache.PLACE


def answer(summary: api.Summary) -> tuple[object, int]:
    return summary.diagnostics, summary.flows


def test_what_was_found_is_found_again_on_disk(folder: Path) -> None:
    first = api.summary(str(folder))
    checked = api.check(str(folder))
    assert answer(first) == (checked.diagnostics, 1)
    assert "E0201" in [each.code for each in first.diagnostics]
    data = json.loads(kept(folder).read_text())
    data["flows"] = 7  # shows that the second answer is the one on disk
    kept(folder).write_text(json.dumps(data))
    assert answer(api.summary(str(folder))) == (first.diagnostics, 7)


def test_a_change_of_a_source_is_seen(folder: Path) -> None:
    api.summary(str(folder))
    (folder / "m.flow").write_text(TEXT.replace("return x", "return unused"))
    assert answer(api.summary(str(folder))) == ((), 1)


def test_a_change_of_flow_toml_is_seen(folder: Path) -> None:
    api.summary(str(folder))
    (folder / "flow.toml").write_text('name = "it"\nsourcse = []\n')
    assert "E0211" in [each.code for each in api.summary(str(folder)).diagnostics]


def test_a_new_file_and_another_name_are_seen(folder: Path) -> None:
    before = api.summary(str(folder)).diagnostics
    (folder / "m.flow").rename(folder / "n.flow")
    after = api.summary(str(folder)).diagnostics
    assert {each.file for each in after} == {str(folder / "n.flow")}
    assert len(after) == len(before)


@pytest.mark.parametrize(
    "damage",
    ["", "{", "[]", "null", '{"key": 1}', "\0" * 100, "[" * 100_000, "cut", "spans", "keys"],
)
def test_a_damaged_file_is_as_good_as_none(folder: Path, damage: str) -> None:
    first = api.summary(str(folder))
    whole = kept(folder).read_text()
    data = json.loads(whole)
    data["diagnostics"][0][3] = ["a"]
    texts = {"cut": whole[:-9], "spans": json.dumps(data), "keys": whole.replace('"key"', '"kye"')}
    kept(folder).write_text(texts.get(damage, damage))
    assert answer(api.summary(str(folder))) == answer(first)
    assert kept(folder).read_text() == whole


def test_bytes_that_are_no_text_are_as_good_as_none(folder: Path) -> None:
    first = api.summary(str(folder))
    kept(folder).write_bytes(b"\xff\xfe")
    assert answer(api.summary(str(folder))) == answer(first)


def test_where_nothing_can_be_written_the_answer_is_the_same(folder: Path) -> None:
    (folder / ".qoqi").write_text("a file where the folder would be")
    first = api.summary(str(folder))
    assert answer(first) == answer(api.summary(str(folder)))
    assert first.flows == 1


@pytest.mark.parametrize("name", ["small", "without flow.toml", "one file"])
def test_nothing_is_left_behind_where_nothing_is_gained(folder: Path, name: str) -> None:
    root = folder
    match name:
        case "small":
            (folder / "m.flow").write_text("fn f() { }\n")
        case "without flow.toml":
            (folder / "flow.toml").unlink()
        case _:
            root = folder / "m.flow"
    api.summary(str(root))
    assert not (folder / ".qoqi").exists()
