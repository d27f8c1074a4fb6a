"""`qoqi fmt`: which files it touches, how it writes them, and how it ends."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from qoqi.runtime.cli.main import app

UGLY = "fn f( ){\n  g( )\n}"
PRETTY = "fn f() {\n    g()\n}\n"
WRONG = "fn f( {\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fmt(*words: str, piped: bytes | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["fmt", *words], input=piped)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.stdout, result.stderr


def test_files_are_written_only_where_they_change(here: Path) -> None:
    (here / "a.flow").write_text(UGLY)
    (here / "b.flow").write_text(PRETTY)
    (here / "notes.txt").write_text(UGLY)
    os.utime(here / "b.flow", (1, 1))

    assert fmt() == (0, "", "1 file formatted, 1 file unchanged\n")
    assert (here / "a.flow").read_text() == PRETTY
    assert (here / "b.flow").stat().st_mtime == 1
    assert (here / "notes.txt").read_text() == UGLY
    assert sorted(path.name for path in here.iterdir()) == ["a.flow", "b.flow", "notes.txt"]
    assert fmt() == (0, "", "2 files unchanged\n")


def test_files_and_folders_may_be_named(here: Path) -> None:
    for name in ("one/a.flow", "one/deep/b.flow", "one/.hidden/c.flow", "two/d.flow", "e.flow"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_text(UGLY)

    assert fmt("one", "e.flow", "one/a.flow")[0] == 0
    changed = {path.name for path in here.rglob("*.flow") if path.read_text() == PRETTY}
    assert changed == {"a.flow", "b.flow", "e.flow"}


def test_what_is_no_source_is_a_wrong_command_line(here: Path) -> None:
    (here / "notes.txt").write_text(UGLY)

    assert fmt("gone.flow")[0] == 2
    assert fmt("notes.txt")[0] == 2
    assert fmt("-", "notes.txt")[0] == 2
    assert (here / "notes.txt").read_text() == UGLY


def test_check_lists_what_would_change_and_writes_nothing(here: Path) -> None:
    (here / "a.flow").write_text(UGLY)
    (here / "b.flow").write_text(PRETTY)

    assert fmt("--check") == (1, "a.flow\n", "1 file would change, 1 file unchanged\n")
    assert (here / "a.flow").read_text() == UGLY
    assert fmt("--check", "b.flow") == (0, "", "1 file unchanged\n")


def test_a_diff_can_be_applied(here: Path) -> None:
    (here / "a.flow").write_text(UGLY)

    code, out, _ = fmt("--diff")

    assert code == 1
    assert out == (
        "--- a/a.flow\n+++ b/a.flow\n@@ -1,3 +1,3 @@\n"
        "-fn f( ){\n-  g( )\n-}\n\\ No newline at end of file\n"
        "+fn f() {\n+    g()\n+}\n"
    )
    assert (here / "a.flow").read_text() == UGLY


def test_wrong_syntax_is_reported_and_the_file_left_alone(here: Path) -> None:
    (here / "a.flow").write_text(WRONG)
    (here / "b.flow").write_text(UGLY)

    code, out, err = fmt()

    assert (code, out) == (1, "")
    assert "error[E01" in err
    assert "--> a.flow:1:" in err
    assert err.endswith("1 file formatted, 1 file not formatted\n")
    assert (here / "a.flow").read_text() == WRONG
    assert (here / "b.flow").read_text() == PRETTY


def test_bytes_that_are_no_text_are_left_alone(here: Path) -> None:
    (here / "a.flow").write_bytes(b"// \xff\n")

    code, _, err = fmt()

    assert code == 1
    assert err.startswith("error: a.flow: it is not UTF-8 at byte 3\n")
    assert (here / "a.flow").read_bytes() == b"// \xff\n"


def test_the_mode_of_a_file_stays_and_a_link_stays_a_link(here: Path) -> None:
    (here / "real").mkdir()
    target = here / "real" / "a.flow"
    target.write_text(UGLY)
    target.chmod(0o640)
    (here / "link.flow").symlink_to(target)

    assert fmt("link.flow")[0] == 0
    assert (here / "link.flow").is_symlink()
    assert target.read_text() == PRETTY
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_file_that_cannot_be_replaced_stays_whole(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "a.flow").write_text(UGLY)

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "replace", refuse)
    code, _, err = fmt()

    assert code == 1
    assert err == "error: a.flow: Read-only file system\n1 file not formatted\n"
    assert (here / "a.flow").read_text() == UGLY
    assert [path.name for path in here.iterdir()] == ["a.flow"]


def test_line_ends_and_the_byte_order_mark_are_changes(here: Path) -> None:
    (here / "a.flow").write_bytes(b"\xef\xbb\xbf" + PRETTY.replace("\n", "\r\n").encode())

    assert fmt("--check")[0] == 1
    assert fmt()[0] == 0
    assert (here / "a.flow").read_bytes() == PRETTY.encode()


def test_what_is_piped_in_comes_out(here: Path) -> None:
    assert fmt("-", piped=UGLY.encode()) == (0, PRETTY, "")
    assert fmt("-", "--check", piped=UGLY.encode()) == (1, "", "")
    assert fmt("-", "--check", piped=PRETTY.encode()) == (0, "", "")
    assert fmt("-", "--diff", piped=PRETTY.encode()) == (0, "", "")

    code, out, err = fmt("-", piped=WRONG.encode())
    assert (code, out) == (1, "")
    assert "--> <stdin>:1:" in err
