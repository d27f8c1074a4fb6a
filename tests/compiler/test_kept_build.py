"""The last build is kept, and taken only for what it was made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from qoqi.compiler import api
from qoqi.compiler.project import kept

GOOD = """pub fn twice(n: Int) -> Int { return n * 2 }

flow Main() -> Int {
    run { return twice(2) }
}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "flow.toml").write_text('name = "app"\n', "utf-8")
    (tmp_path / "app.flow").write_text(GOOD, "utf-8")
    return tmp_path


def built(package: Path) -> api.BuildResult:
    result = api.build(str(package))
    assert result.ok
    kept.write(result)
    return result


def test_what_was_built_is_what_is_read(package: Path) -> None:
    result = built(package)
    flows = kept.read(str(package))

    assert flows is not None
    assert [(each.name, each.hash, each.previous, each.data) for each in flows] == [
        (each.name, each.hash, each.previous, each.data) for each in result.flows
    ]
    debug = package / ".qoqi" / "build" / f"{flows[0].hash}.debug"
    assert flows[0].debug == debug.read_bytes()


def edit_source(package: Path) -> None:
    (package / "app.flow").write_text(GOOD.replace("* 2", "* 3"), "utf-8")


def add_source(package: Path) -> None:
    (package / "more.flow").write_text("/// Nothing here.\n", "utf-8")


def edit_manifest(package: Path) -> None:
    (package / "flow.toml").write_text('name = "app"\nwrong = 1\n', "utf-8")


def drop_lock(package: Path) -> None:
    (package / "flow.lock").unlink()


def edit_lock(package: Path) -> None:
    lock = package / "flow.lock"
    lock.write_text(lock.read_text("utf-8").replace("deployed = false", "deployed = true"), "utf-8")


@pytest.mark.parametrize("change", [edit_source, add_source, edit_manifest, drop_lock, edit_lock])
def test_any_change_makes_it_none(package: Path, change: Callable[[Path], None]) -> None:
    built(package)
    before = {path: path.read_bytes() for path in package.iterdir() if path.is_file()}
    change(package)
    after = {path: path.read_bytes() for path in package.iterdir() if path.is_file()}

    assert before != after
    assert kept.read(str(package)) is None


def other_bytecode(data: dict[str, list[list[str]]]) -> object:
    data["flows"][0][3] = data["flows"][0][3][:-8] + "AAAAAAA="
    return data


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: None,
        lambda data: [],
        lambda data: {**data, "key": "0"},
        lambda data: {"key": data["key"]},
        lambda data: {**data, "flows": [["app.Main"]]},
        lambda data: {**data, "flows": [[*data["flows"][0][:3], "no base64!", ""]]},
        other_bytecode,
    ],
)
def test_a_damaged_file_is_as_good_as_none(
    package: Path, damage: Callable[[dict[str, list[list[str]]]], object]
) -> None:
    built(package)
    place = package / kept.PLACE
    place.write_text(json.dumps(damage(json.loads(place.read_text("utf-8")))), "utf-8")

    assert kept.read(str(package)) is None


def test_half_a_file_is_as_good_as_none(package: Path) -> None:
    built(package)
    place = package / kept.PLACE
    place.write_bytes(place.read_bytes()[:100])

    assert kept.read(str(package)) is None


def test_a_build_with_something_to_say_says_it_again(package: Path) -> None:
    """A warning that is kept from a person would be one that is never seen again."""
    source = GOOD.replace("return twice(2)", "let unused = 1\n        return twice(2)")
    (package / "app.flow").write_text(source, "utf-8")

    result = built(package)

    assert [str(each.code) for each in result.diagnostics] != []
    assert not (package / kept.PLACE).exists()


def test_one_file_is_not_kept(tmp_path: Path) -> None:
    source = tmp_path / "one.flow"
    source.write_text(GOOD, "utf-8")

    kept.write(api.build(str(source)))

    assert not (tmp_path / ".qoqi" / "cache").exists()
    assert kept.read(str(source)) is None
