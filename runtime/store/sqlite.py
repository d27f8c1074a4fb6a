"""SQLite: one file, one daemon. Opening, the lock, pragmas, and what its errors mean.

A daemon owns its file: it holds an operating system's lock on `FILE.lock` for as long as it has the
store open, and writes its name and process id there for whoever is refused. The lock goes with the
process, however that ends, so holding it proves that the one before is dead.

A file is looked at before SQLite touches it. Only an empty or missing file is made a store; one
that is something else, damaged, or written by a newer qoqi is refused and left as it is. A new
store is made in one transaction, before WAL, so that its mark is in the file from the first byte.

`synchronous=FULL` in WAL: a commit is on disk when it returns. Readers are on the same connection,
so nothing ever waits for a lock of ours; `busy_timeout` is for other programs.
"""

from __future__ import annotations

import fcntl
import os
import re
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import TextIO

from qoqi.runtime.store.dialect import SQLITE, Arguments, Row
from qoqi.runtime.store.protocol import StoreBroken, StoreBusy, StoreHeld
from qoqi.runtime.store.schema import MIGRATIONS, SCHEMA_VERSION, ddl

APPLICATION_ID = 0x716F7169  # "qoqi"
BUSY_TIMEOUT = 30_000

_MAGIC = b"SQLite format 3\0"
_HEADER_SIZE = 100
# Up to this size every page is checked at the start: it takes well under a second.
_CHECKED_SIZE = 64 << 20

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_OUTSIDE = {
    sqlite3.SQLITE_BUSY: "another program has the database locked",
    sqlite3.SQLITE_LOCKED: "another program has the database locked",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "the disk gave an error",
    sqlite3.SQLITE_CANTOPEN: "the database file cannot be opened",
    sqlite3.SQLITE_READONLY: "the database file is read-only",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
    sqlite3.SQLITE_INTERRUPT: "the database was interrupted",
}


def _translated(error: sqlite3.Error) -> Exception:
    """What an error of SQLite means to the runtime; one that is a mistake of ours stays itself."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in _DAMAGED:
        return StoreBroken(f"the database is damaged ({error}): restore it from a copy")
    if code in _OUTSIDE:
        return StoreBusy(f"{_OUTSIDE[code]} ({error})")
    return error


_NAME = re.compile(r":([a-z_]\w*)")
_Bind = Callable[[Arguments], tuple[object, ...]]


def _positional(statement: str) -> tuple[str, _Bind]:
    """With `?` for each `:name`, and what puts the arguments in that order.

    Found by name, SQLite would ask for each of them, and Python make a text of each, at every call.
    """
    names = _NAME.findall(statement)
    text = _NAME.sub("?", statement)
    if not names:
        return text, lambda arguments: ()
    if len(names) == 1:
        (only,) = names
        return text, lambda arguments: (arguments[only],)
    bind: _Bind = itemgetter(*names)
    return text, bind


class _Transaction:
    """The block of `SqliteDatabase.transaction`; one object serves them all."""

    __slots__ = ("_database",)

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def __enter__(self) -> None:
        self._database.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._database.commit()
        else:
            self._database.rollback()


class SqliteDatabase:
    """`lock` is the open lock file of a store on disk. `statements` counts, for the bench."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        lock: TextIO | None = None,
        busy_timeout: int = BUSY_TIMEOUT,
        path: Path | None = None,
    ) -> None:
        self._path = path
        self._file = None if path is None else _file_of(path)
        self._connection = connection
        self._execute = connection.execute
        self._lock = lock
        self._busy_timeout = busy_timeout
        self._texts: dict[str, tuple[str, _Bind]] = {}
        self._depth = 0
        self._marks: list[int] = []
        self._savepoints = True
        self.spoiled = False
        self._transaction = _Transaction(self)
        self.statements = 0

    # -- statements ---------------------------------------------------------------------------

    def _known(self, statement: str) -> tuple[str, _Bind]:
        known = self._texts.get(statement)
        if known is None:
            known = self._texts[statement] = _positional(SQLITE.translate(statement))
        self.statements += 1
        return known

    def one(self, statement: str, arguments: Arguments) -> Row | None:
        text, bind = self._known(statement)
        try:
            cursor = self._execute(text, bind(arguments))
            row: Row | None = cursor.fetchone()
            cursor.close()
        except sqlite3.Error as error:
            raise _translated(error) from error
        return row

    def all(self, statement: str, arguments: Arguments) -> list[Row]:
        text, bind = self._known(statement)
        try:
            return self._execute(text, bind(arguments)).fetchall()
        except sqlite3.Error as error:
            raise _translated(error) from error

    def run(self, statement: str, arguments: Arguments) -> int:
        text, bind = self._known(statement)
        try:
            return self._execute(text, bind(arguments)).rowcount
        except sqlite3.Error as error:
            raise _translated(error) from error

    def many(self, statement: str, rows: Iterable[Arguments]) -> None:
        text, bind = self._known(statement)
        try:
            self._connection.executemany(text, [bind(row) for row in rows])
        except sqlite3.Error as error:
            raise _translated(error) from error

    def insert(self, statement: str, arguments: Arguments) -> int:
        text, bind = self._known(statement)
        try:
            number = self._execute(text, bind(arguments)).lastrowid
        except sqlite3.Error as error:
            raise _translated(error) from error
        assert number is not None
        return number

    # -- transactions -------------------------------------------------------------------------

    def transaction(self) -> AbstractContextManager[None]:
        return self._transaction

    @property
    def open(self) -> bool:
        return self._connection.in_transaction

    @property
    def changes(self) -> int:
        return self._connection.total_changes

    def begin_at_once(self) -> bool:
        self._execute("PRAGMA busy_timeout = 0")
        try:
            self.begin()
        except StoreBusy:
            return False
        finally:
            self._execute(f"PRAGMA busy_timeout = {self._busy_timeout}")
        return True

    def savepoints(self, on: bool) -> None:
        self._savepoints = on

    def begin(self) -> None:
        if self._depth == 0:
            if self._path is not None and _file_of(self._path) != self._file:
                # What is written to a file without a name is gone once the process ends.
                raise StoreBusy(f"{self._path} was moved or deleted: put it back, or start again")
            self._control("BEGIN IMMEDIATE")
            self.spoiled = False
        elif self._savepoints:
            self._control(f"SAVEPOINT s{self._depth}")
        else:
            self._marks.append(self.changes)
        self._depth += 1

    def commit(self) -> None:
        """If it fails, nothing of the transaction stands."""
        self._depth -= 1
        if self._depth:
            if self._savepoints:
                self._control(f"RELEASE s{self._depth}")
            else:
                self._marks.pop()
            return
        if not self.open:
            raise StoreBusy("the database ended the transaction")
        try:
            self._control("COMMIT")
        except BaseException:
            self._abort()
            raise

    def rollback(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._marks.clear()
            self._abort()
        elif not self._savepoints:
            self.spoiled = self.spoiled or self._marks.pop() != self.changes
        elif self.open:
            self._control(f"ROLLBACK TO s{self._depth}")
            self._control(f"RELEASE s{self._depth}")

    def _abort(self) -> None:
        if self.open:
            self._control("ROLLBACK")

    def _control(self, statement: str) -> None:
        try:
            self._execute(statement)
        except sqlite3.Error as error:
            raise _translated(error) from error

    def close(self) -> None:
        """Twice is as once. The lock goes last."""
        self._connection.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _file_of(path: Path) -> tuple[int, int] | None:
    """Which file has this name now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


# -- opening -----------------------------------------------------------------------------------


def open_memory() -> SqliteDatabase:
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, cached_statements=512, check_same_thread=False
    )
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.executescript(_MAKE)
    return SqliteDatabase(connection)


def open_file(path: Path, holder: str, busy_timeout: int = BUSY_TIMEOUT) -> SqliteDatabase:
    """`holder` is who opens it, for the one who finds it held."""
    lock = _lock(path, holder)
    try:
        existing = _look(path)
        connection = _connect(path, existing, busy_timeout)
    except BaseException:
        lock.close()
        raise
    return SqliteDatabase(connection, lock, busy_timeout, path)


def _lock(path: Path, holder: str) -> TextIO:
    name = Path(f"{path}.lock")
    try:
        lock = open(name, "a+", encoding="utf-8")  # noqa: SIM115 (open as long as the store)
    except OSError as error:
        raise StoreBroken(f"{name}: {error.strerror}: a store needs its folder") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        held_by = lock.read().strip() or "another daemon"
        lock.close()
        raise StoreHeld(f"{path} is held by {held_by}: one daemon has a file of SQLite") from error
    lock.truncate(0)
    lock.write(f"{holder} (process {os.getpid()})\n")
    lock.flush()
    return lock


def _look(path: Path) -> bool:
    """Whether the file is a store already. Reads its first bytes and opens nothing."""
    try:
        with open(path, "rb") as file:
            start = file.read(_HEADER_SIZE)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreBroken(f"{path}: {error.strerror}") from error
    if not start:
        return False
    if len(start) < _HEADER_SIZE or not start.startswith(_MAGIC):
        raise StoreBroken(f"{path} is no database: move it away, or name another file")
    if int.from_bytes(start[68:72], "big") != APPLICATION_ID:
        raise StoreBroken(f"{path} is a database of another program: name another file")
    _check_schema(path, int.from_bytes(start[60:64], "big"), SCHEMA_VERSION)
    if not os.access(path, os.W_OK):
        raise StoreBroken(f"{path} is read-only: a daemon needs to write it")
    return True


def _check_schema(path: Path, schema: int, known: int) -> None:
    if schema > known:
        raise StoreBroken(
            f"{path} was written by a newer qoqi (schema {schema}, this one knows {known}): "
            "upgrade qoqi"
        )


def _connect(path: Path, existing: bool, busy_timeout: int) -> sqlite3.Connection:
    try:
        connection = sqlite3.connect(
            path,
            timeout=busy_timeout / 1000,
            isolation_level=None,
            cached_statements=512,
            check_same_thread=False,
        )
        try:
            if existing:
                _examine(path, connection)
            else:
                connection.executescript(_MAKE)
            connection.execute("PRAGMA journal_mode = WAL")
            for pragma in (
                "synchronous = FULL",
                "foreign_keys = OFF",
                "temp_store = MEMORY",
                "cache_size = -16384",
                "wal_autocheckpoint = 4000",
                "journal_size_limit = 67108864",
            ):
                connection.execute(f"PRAGMA {pragma}")
            migrate(path, connection, MIGRATIONS)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        translated = _translated(error)
        if isinstance(translated, StoreBroken | StoreBusy):
            raise type(translated)(f"{path}: {translated}") from error
        raise
    return connection


def _examine(path: Path, connection: sqlite3.Connection) -> None:
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    if not names:  # the process that made it died before its first commit
        connection.executescript(_MAKE)
        return
    if "instances" not in names:
        raise StoreBroken(f"{path} is damaged (it has no instances): restore it from a copy")
    if path.stat().st_size <= _CHECKED_SIZE:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            what = " ".join(verdict.split())
            raise StoreBroken(f"{path} is damaged ({what}): restore it from a copy")


def migrate(
    path: Path, connection: sqlite3.Connection, migrations: tuple[tuple[str, ...], ...]
) -> None:
    """Brings a store up to the newest schema, each step in one transaction."""
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    _check_schema(path, schema, 1 + len(migrations))
    for number, statements in enumerate(migrations[schema - 1 :], start=schema + 1):
        script = ";\n".join((*statements, f"PRAGMA user_version = {number}", "COMMIT;"))
        connection.executescript(f"BEGIN IMMEDIATE;\n{script}")


_MAKE = ";\n".join(
    (
        "BEGIN IMMEDIATE",
        f"PRAGMA application_id = {APPLICATION_ID}",
        *ddl(SQLITE),
        f"PRAGMA user_version = {SCHEMA_VERSION}",
        "COMMIT;",
    )
)
