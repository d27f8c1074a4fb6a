"""A file of SQLite: what is refused and left as it is, who holds it, what a full disk does."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from qoqi.runtime.store import sqlite
from qoqi.runtime.store.open import UnknownStore, memory_store, open_store
from qoqi.runtime.store.protocol import StoreBroken, StoreBusy, StoreHeld
from tests.runtime.store_lab import Lab, request

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "flows.db"


def fill(path: Path, count: int = 200) -> None:
    """A store with instances in it, closed as a daemon closes it."""
    store = open_store(f"sqlite:{path}", "shop-1")
    with store.database.transaction():
        for number in range(count):
            store.create(request(f"a{number}", state="x" * 500), 1)
    store.close()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refused(path: Path, error: type[Exception] = StoreBroken) -> str:
    """The one line that an opening is refused with; the file is as it was."""
    before = digest(path)
    with pytest.raises(error) as caught:
        open_store(f"sqlite:{path}", "shop-1")
    assert digest(path) == before
    message = str(caught.value)
    assert message.startswith(str(path))
    assert "\n" not in message
    return message


def test_what_was_written_is_there_in_the_next_process(path: Path) -> None:
    fill(path, 3)
    store = open_store(str(path), "shop-1")
    assert [row.id for row in (store.instance("a1"),) if row] == ["a1"]
    assert store.counts() == {"waiting": 3}
    store.close()


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    open_store(f"sqlite:{tmp_path / 'new' / 'deep' / 'flows.db'}", "x").close()
    assert (tmp_path / "new" / "deep" / "flows.db").exists()


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    fill(path, 1)


def test_commits_are_on_disk_when_they_return(path: Path) -> None:
    store = open_store(str(path), "shop-1")
    settings = {
        name: store.database.all(f"PRAGMA {name}", {})[0][0]
        for name in ("journal_mode", "synchronous", "foreign_keys", "application_id")
    }
    store.close()
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 0,
        "application_id": sqlite.APPLICATION_ID,
    }


def test_a_text_file_is_refused(path: Path) -> None:
    path.write_text("notes to myself\n" * 100)
    assert "is no database" in refused(path)


def test_a_few_bytes_are_refused(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0")
    assert "is no database" in refused(path)


def test_a_database_of_another_program_is_refused(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE instances (id)")
    connection.commit()
    connection.close()
    assert "another program" in refused(path)


def test_a_store_of_a_newer_qoqi_is_refused(path: Path) -> None:
    fill(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    message = refused(path)
    assert "schema 99" in message
    assert "upgrade qoqi" in message


def test_a_store_of_an_older_qoqi_is_migrated_step_by_step(path: Path) -> None:
    fill(path, 2)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA user_version = 1")
    first = ("ALTER TABLE instances ADD COLUMN one INTEGER", "UPDATE instances SET one = 1")
    second = ("ALTER TABLE instances ADD COLUMN two INTEGER", "UPDATE nothing SET two = 2")
    sqlite.migrate(path, connection, (first,))
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert connection.execute("SELECT SUM(one) FROM instances").fetchone() == (2,)
    with pytest.raises(sqlite3.OperationalError, match="nothing"):
        sqlite.migrate(path, connection, (first, second))
    connection.rollback()
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(instances)")]
    assert columns[-1] == "one"
    connection.close()


def test_a_store_of_the_first_schema_becomes_as_one_that_is_new(path: Path) -> None:
    def tables() -> list[tuple[str, list[tuple[object, ...]]]]:
        connection = sqlite3.connect(path)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master ORDER BY 1")]
        found = [(name, list(connection.execute(f"PRAGMA table_info({name})"))) for name in names]
        connection.close()
        return found

    fill(path, 2)
    new = tables()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("ALTER TABLE attempts DROP COLUMN otherwise")
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    assert tables() != new
    open_store(str(path), "shop-2").close()
    assert tables() == new


def test_a_store_whose_making_was_cut_off_is_made_again(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA application_id = {sqlite.APPLICATION_ID}")
    connection.commit()
    connection.close()
    assert path.stat().st_size > 0
    fill(path, 1)


def _truncate(path: Path) -> None:
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _overwrite(path: Path) -> None:
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"\xa5" * 8192)


def _cut_header(path: Path) -> None:
    with open(path, "r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 400)


@pytest.mark.parametrize("damage", [_truncate, _overwrite, _cut_header])
def test_a_damaged_store_is_refused(path: Path, damage: Callable[[Path], None]) -> None:
    fill(path)
    damage(path)
    assert "damaged" in refused(path)


def test_damage_that_is_met_later_is_named_and_ends_only_the_call(path: Path) -> None:
    fill(path, 3_000)
    store = open_store(str(path), "shop-1")
    connection = sqlite3.connect(path)
    (page,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'versions'"
    ).fetchone()
    connection.close()
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 4096)
    with pytest.raises(StoreBroken, match="damaged"):
        store.versions(None)
    assert store.counts() == {"waiting": 3_000}
    store.close()


def _as_nobody(path: Path) -> str:
    """Opens the store in another process, without the rights of root, if the tests have them."""
    code = (
        "import os, sys\n"
        "from qoqi.runtime.store.open import open_store\n"
        "if os.getuid() == 0: os.setuid(65534)\n"
        "try: open_store(sys.argv[1], 'shop-1')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    return _python(code, str(path))


def _python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / ".links")},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def open_folder(path: Path) -> Path:
    """A folder that every user may reach and write."""
    for folder in (path.parent, *path.parent.parents):
        if folder.stat().st_uid == os.getuid() and str(folder).count("/") > 1:
            folder.chmod(0o777)
    return path.parent


def test_a_read_only_file_is_refused(path: Path, open_folder: Path) -> None:
    fill(path, 1)
    path.chmod(0o444)
    Path(f"{path}.lock").chmod(0o666)
    said = _as_nobody(path)
    assert said.startswith(f"StoreBroken {path} is read-only")


def test_a_folder_that_may_not_be_written_is_refused(path: Path, open_folder: Path) -> None:
    open_folder.chmod(0o555)
    said = _as_nobody(path)
    open_folder.chmod(0o755)
    assert said.startswith(f"StoreBroken {path}.lock: Permission denied")


# -- who holds it ------------------------------------------------------------------------------


def test_a_second_daemon_does_not_start_and_says_who_holds_the_file(path: Path) -> None:
    store = open_store(str(path), "shop-1/7c3e")
    with pytest.raises(StoreHeld) as caught:
        open_store(str(path), "shop-2/91ab")
    assert str(caught.value) == (
        f"{path} is held by shop-1/7c3e (process {os.getpid()}): one daemon has a file of SQLite"
    )
    said = _python(
        "import sys\n"
        "from qoqi.runtime.store.open import open_store\n"
        "try: open_store(sys.argv[1], 'shop-2')\n"
        "except Exception as error: print(type(error).__name__, error)\n",
        str(path),
    )
    assert said.startswith(f"StoreHeld {path} is held by shop-1/7c3e (process {os.getpid()})")
    store.close()
    open_store(str(path), "shop-2/91ab").close()


def test_the_lock_goes_with_a_process_that_is_killed(path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from qoqi.runtime.store.open import open_store\n"
        "store = open_store(sys.argv[1], 'shop-1')\n"
        "store.alive('shop-1/1', 7)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / ".links")},
        timeout=30,
        check=False,
    )
    assert done.returncode == -9
    store = open_store(str(path), "shop-2")
    assert [row.incarnation for row in store.daemons()] == ["shop-1/1"]
    store.close()


def test_another_programs_lock_is_waited_for_and_then_named(path: Path) -> None:
    store = open_store(str(path), "shop-1", busy_timeout=50)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with pytest.raises(StoreBusy, match="another program has the database locked"):
        store.create(request("a"), 1)
    assert 0.04 < time.monotonic() - start < 5
    other.execute("ROLLBACK")
    other.close()
    assert store.create(request("a"), 1).created
    store.close()


# -- a full disk -------------------------------------------------------------------------------


def limit_pages(lab: Lab, more: int) -> None:
    (pages,) = lab.store.database.one("PRAGMA page_count", {}) or (0,)
    lab.store.database.all(f"PRAGMA max_page_count = {pages + more}", {})


def test_a_full_disk_is_told_and_nothing_of_the_call_stands(path: Path) -> None:
    lab = Lab(open_store(str(path), "shop-1"))
    lab.running("a")
    limit_pages(lab, 2)
    before = lab.tables()
    with pytest.raises(StoreBusy, match="the disk is full"):
        lab.save("a", state="x" * 100_000)
    assert lab.tables() == before
    limit_pages(lab, 10_000)
    lab.save("a", state="x" * 100_000)
    assert len(lab.row("a").state) == 100_000
    lab.store.close()


# -- the rest ----------------------------------------------------------------------------------


def test_other_databases_are_not_known() -> None:
    with pytest.raises(UnknownStore, match="postgres"):
        open_store("postgres://db/flows", "x")


def test_a_store_in_memory_is_made_fast() -> None:
    memory_store().close()
    times = []
    for _ in range(20):
        start = time.perf_counter()
        memory_store().close()
        times.append(time.perf_counter() - start)
    assert sorted(times)[10] < 0.005


def test_closing_twice_is_as_once(path: Path) -> None:
    store = open_store(str(path), "x")
    store.close()
    store.close()
