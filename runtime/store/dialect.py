"""What differs between databases: types, indexes, the text of a statement, and one connection.

Every statement is written once, in `sql`, in the form that SQLite and Postgres share: `:name`
parameters, every identifier in double quotes, `ON CONFLICT`, `FOR UPDATE` where a row is read to be
written. A `Dialect` says how a database spells what is not shared, and a `Database` is one open
connection: it translates each text once and keeps the result.

The methods of the store know `Database` only, so a server needs its own `Database` and `Dialect`
and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from enum import Enum
from typing import Any, Protocol, TypeAlias

from qoqi.vm.dataclass import dataclass

Arguments: TypeAlias = Mapping[str, object]
Row: TypeAlias = tuple[Any, ...]


class Kind(Enum):
    """NAME is text in a key or an index, TEXT is text of any length, SERIAL never repeats."""

    NAME = "name"
    TEXT = "text"
    INTEGER = "integer"
    BLOB = "blob"
    SERIAL = "serial"


@dataclass(frozen=True, slots=True)
class Dialect:
    """`clustered` ends a table that is stored in the order of its key; `translate` is for
    statements.

    With `partial_indexes` false an index with a condition becomes a whole one.
    """

    name: str
    types: Mapping[Kind, str]
    clustered: str
    partial_indexes: bool
    translate: Callable[[str], str]


def _to_sqlite(statement: str) -> str:
    """A writing transaction has the whole file: there are no rows to lock."""
    return statement.replace(" FOR UPDATE", "")


SQLITE = Dialect(
    name="sqlite",
    types={
        Kind.NAME: "TEXT",
        Kind.TEXT: "TEXT",
        Kind.INTEGER: "INTEGER",
        Kind.BLOB: "BLOB",
        Kind.SERIAL: "INTEGER PRIMARY KEY AUTOINCREMENT",
    },
    clustered=" WITHOUT ROWID",
    partial_indexes=True,
    translate=_to_sqlite,
)


class Database(Protocol):
    """One connection, used by one thread at a time."""

    def one(self, statement: str, arguments: Arguments) -> Row | None:
        """The first row."""
        ...

    def all(self, statement: str, arguments: Arguments) -> list[Row]: ...

    def run(self, statement: str, arguments: Arguments) -> int:
        """How many rows it touched."""
        ...

    def many(self, statement: str, rows: Iterable[Arguments]) -> None: ...

    def insert(self, statement: str, arguments: Arguments) -> int:
        """The number its SERIAL column drew."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """All of the block or nothing of it; inside another one, a savepoint."""
        ...

    def begin(self) -> None: ...

    def begin_at_once(self) -> bool:
        """False where `begin` would have to wait for another program."""
        ...

    def commit(self) -> None:
        """If it fails, nothing of the transaction stands."""
        ...

    def rollback(self) -> None: ...

    def savepoints(self, on: bool) -> None:
        """Off: a transaction inside another one makes no savepoint. One of them that fails after
        it has written cannot be undone alone, and leaves the whole `spoiled`."""
        ...

    @property
    def spoiled(self) -> bool:
        """What is open holds writes of a part that failed: it may only be rolled back."""
        ...

    @property
    def open(self) -> bool:
        """Whether a transaction is open: an error such as a full disk may end it from below."""
        ...

    @property
    def changes(self) -> int:
        """How many rows were written since the connection was opened."""
        ...

    def close(self) -> None: ...
