"""Folders as disks have them: `qoqi check` says what is wrong with each file, and goes on."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from qoqi.compiler import api
from qoqi.compiler.project.load import DiskReader, load_package
from qoqi.runtime.cli.main import app

GOOD = "fn good() -> Int { return 1 }\n"
NAMED = 'name = "it"\n'


def checked(folder: Path, **files: str) -> list[str]:
    """`CODE message` of each diagnostic of a folder with these files, as the command shows them."""
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_toml", ".toml").replace("_flow", ".flow")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    ran = CliRunner().invoke(app, ["check", str(folder), "--format", "json"])
    assert ran.exit_code in (0, 1), ran.output
    assert ran.exception is None or isinstance(ran.exception, SystemExit)
    human = CliRunner().invoke(app, ["check", str(folder)])
    assert human.exit_code == ran.exit_code
    found = json.loads(ran.stdout)
    found = found["diagnostics"] if isinstance(found, dict) else found
    return [f"{each['code']} {each['message']}" for each in found]


def test_a_link_to_nothing_and_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "gone.flow").symlink_to("nothing")
    (tmp_path / "self.flow").symlink_to("self.flow")
    (tmp_path / "around").symlink_to(".")
    assert checked(tmp_path, good_flow=GOOD) == [
        "E0212 this file cannot be read: No such file or directory",
        "E0212 this file cannot be read: Too many levels of symbolic links",
    ]


class Closed(DiskReader):
    """A disk that lets nobody read; root reads everything."""

    def read(self, path: str) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "closed.flow").write_text(GOOD)
    (found,) = api.check(str(tmp_path), Closed()).diagnostics
    assert (found.code, found.message) == ("E0212", "this file cannot be read: Permission denied")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.flow")
    assert checked(tmp_path, good_flow=GOOD) == ["E0212 this file cannot be read: it is no file"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "latin.flow").write_bytes(b'const a = "\xe9"\n')
    (tmp_path / "noise.flow").write_bytes(b"\xff\x00" * 500)
    (tmp_path / "zeros.flow").write_bytes(b"\0" * 500)
    assert checked(tmp_path) == [
        "E0212 this file is not UTF-8 text (byte 11)",
        "E0212 this file is not UTF-8 text (byte 0)",
        "E0102 the character U+0000 is not part of the language",
    ]


def test_files_that_are_too_large(tmp_path: Path) -> None:
    (tmp_path / "large.flow").write_text("//\n" * 1_500_000)
    with (tmp_path / "larger.flow").open("wb") as file:
        file.truncate(2**40)
    found = checked(tmp_path, good_flow=GOOD)
    assert [each.split(" ")[0] for each in found] == ["E0108", "E0212"]


def test_a_folder_named_like_a_file(tmp_path: Path) -> None:
    found = checked(tmp_path, x_flow__y_flow=GOOD, good_flow=GOOD)
    assert found == ["E0212 `x.flow` cannot be part of a module's name"]


def test_nothing_and_an_empty_file(tmp_path: Path) -> None:
    assert checked(tmp_path) == []
    assert checked(tmp_path, a_flow="") == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("My File.flow", "`My File` cannot be part of a module's name"),
        ("über.flow", "`über` cannot be part of a module's name"),
        ("std.flow", "`std` would be a module of the standard library"),
        ("match.flow", "`match` is a word of the language, and no module can have the name"),
    ],
)
def test_names_that_no_module_can_have(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_text(GOOD)
    assert checked(tmp_path) == [f"E0212 {message}"]


def test_two_modules_of_one_name(tmp_path: Path) -> None:
    manifest = f'{NAMED}sources = ["src", "lib"]\n'
    found = checked(tmp_path, flow_toml=manifest, src__a_flow=GOOD, lib__a_flow=GOOD)
    assert found == ["E0212 a second module is named `a`"]


def test_constants_that_need_each_other_across_modules(tmp_path: Path) -> None:
    found = checked(
        tmp_path, a_flow="import b\nconst x = b.y\n", b_flow="import a\nconst y = a.x\n"
    )
    assert found == ["E0207 the constant `x` needs its own value, by `y`"]


def test_modules_that_import_each_other_are_fine(tmp_path: Path) -> None:
    a = "import b\nfn f(n: Int) -> Int { return b.g(n) }\n"
    b = "import a\nfn g(n: Int) -> Int { return a.f(n) }\n"
    assert checked(tmp_path, a_flow=a, b_flow=b) == []


@pytest.mark.parametrize(
    ("manifest", "messages"),
    [
        ("name = \n", ["flow.toml is not TOML: Invalid value"]),
        ('[[["', None),
        ("", ['a package has a name in lower case: `name = "billing"`']),
        ("name = 3\n", ['a package has a name in lower case: `name = "billing"`']),
        ('nmae = "it"\n', ["`nmae` is not a setting of flow.toml"]),
        (f"{NAMED}source = []\n", ["`source` is not a setting of flow.toml"]),
        (f'{NAMED}sources = "src"\n', ['`sources` is a list of folders: `sources = ["src"]`']),
        (f'{NAMED}sources = ["gone"]\n', ["there is no source folder `gone`"]),
        (
            f'{NAMED}sources = ["/etc", ".."]\n',
            [
                "the source folder `/etc` lies outside of the package",
                "the source folder `..` lies outside of the package",
            ],
        ),
        (f"{NAMED}dependencies = 4\n", ["`dependencies` is a table of names and paths"]),
        (
            f'{NAMED}[dependencies]\nstd = {{ path = "." }}\n',
            ["`std` is the standard library, and no dependency can have the name"],
        ),
        (
            f'{NAMED}[dependencies]\nmoney = {{ path = "gone" }}\n',
            ["dependency `money` is not there: no folder `gone`"],
        ),
        (
            f'{NAMED}[dependencies]\nmoney = "1.0"\n',
            ['dependency `money` is not written as `money = { path = "../money" }`'],
        ),
        (
            f'{NAMED}[dependencies]\nmoney = {{ path = "." }}\n',
            ["dependency `money` leads back to this package"],
        ),
    ],
)
def test_mistakes_in_flow_toml(tmp_path: Path, manifest: str, messages: list[str] | None) -> None:
    found = checked(tmp_path, flow_toml=manifest, good_flow=GOOD)
    if messages is None:
        assert [each[:5] for each in found] == ["E0211"]
    else:
        assert found == [f"E0211 {message}" for message in messages]


def test_a_setting_spelled_wrongly_is_the_only_mistake_and_has_its_fix(tmp_path: Path) -> None:
    (tmp_path / "flow.toml").write_text('nmae = "it"\n')
    (found,) = api.check(str(tmp_path)).diagnostics
    (fix,) = found.fixes
    assert fix.title == "Change to `name`"
    assert tuple(fix.edits[0].span) == (0, 4)


def test_toml_is_marked_where_it_is_wrong(tmp_path: Path) -> None:
    text = f"{NAMED}sources = [1, 2\n[dependencies]\n"
    (tmp_path / "flow.toml").write_text(text)
    (found,) = api.check(str(tmp_path)).diagnostics
    assert text[found.span.start :].startswith("[dependencies]") or found.span.start > len(NAMED)
    assert re.search(r"line \d", found.message) is None


def test_a_dependency_that_leads_back_is_said_of_its_own_manifest(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        manifest = f'name = "{name}"\n[dependencies]\n{other} = {{ path = "../{other}" }}\n'
        (tmp_path / name / "flow.toml").write_text(manifest)
    assert checked(tmp_path / "a") == ["E0211 dependency `a` leads back to this package"]


def test_source_folders_do_not_overlap(tmp_path: Path) -> None:
    manifest = f'{NAMED}sources = ["src", "."]\n'
    found = checked(tmp_path, flow_toml=manifest, src__a_flow=GOOD)
    assert found == ["E0211 the source folder `.` has files of another one in it"]
    assert [source.module for source in load_package(DiskReader(), str(tmp_path)).sources] == ["a"]
