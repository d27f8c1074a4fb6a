"""The tables as data, and their DDL in a dialect.

Nothing that the algorithm reads or writes is outside them. Beside the columns that belong to the
algorithm, `instances` has four that the store keeps for itself:

    wake_at        from when on a daemon may take the instance: the end of its lease while it is
                   held, the moment its first wait is over while it waits, the moment a cancellation
                   landed; NULL if nothing alone can wake it, or while it is paused. Once it ended:
                   set while there are waiters of it that are not woken yet. Each write that
                   changes one of these keeps it, so that looking for due instances is one look into
                   one index, however many sleep. It stands in for an index on waits.at.
    at_stage_pass  the pass in which at_stage was kept: a resume goes back to it.
    stopped_state  between a resume and the next save, the state at the stop.
    ending         in phase finish: `done` or `failed`, the status the instance will end with.

`attempts` is kept in the order of its key. The key starts with the instance's name and birth, so
all attempts of an instance stand together, and need no second index.
"""

from __future__ import annotations

from dataclasses import field

from qoqi.runtime.store.dialect import Dialect, Kind
from qoqi.vm.dataclass import dataclass

# MIGRATIONS[n] brings a store of schema n + 1 to n + 2, statement by statement.
MIGRATIONS: tuple[tuple[str, ...], ...] = (('ALTER TABLE "attempts" ADD COLUMN "otherwise" TEXT',),)

SCHEMA_VERSION = 1 + len(MIGRATIONS)


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: Kind
    null: bool = False
    default: int | None = None


@dataclass(frozen=True, slots=True)
class Index:
    """`where` makes it partial, on databases that know such indexes."""

    name: str
    columns: tuple[str, ...]
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """`key` is empty if the first column is a SERIAL.

    `clustered` keeps the rows in the order of the key.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    clustered: bool = False
    indexes: tuple[Index, ...] = field(default=())


def _name(name: str, null: bool = False) -> Column:
    return Column(name, Kind.NAME, null)


def _text(name: str, null: bool = False) -> Column:
    return Column(name, Kind.TEXT, null)


def _int(name: str, null: bool = False, default: int | None = None) -> Column:
    return Column(name, Kind.INTEGER, null, default)


# The long texts come last: a row is read up to the last column that is asked for.
INSTANCES = Table(
    "instances",
    (
        _name("id"),
        _name("birth"),
        _name("flow"),
        _name("version"),
        _name("parent", null=True),
        _name("status"),
        _name("phase"),
        _int("since"),
        _name("stage", null=True),
        _int("pass"),
        _int("created"),
        _name("lease_owner", null=True),
        _int("lease_until", null=True),
        _int("keep_until", null=True),
        _int("paused", default=0),
        _int("takings", default=0),
        _int("wake_at", null=True),
        _int("at_stage_pass", default=0),
        _name("ending", null=True),
        _name("error_code", null=True),
        _text("cancel", null=True),
        _text("refuses", null=True),
        _text("stopped_by", null=True),
        _text("note", null=True),
        _text("result", null=True),
        _text("args"),
        _text("state"),
        _text("at_stage", null=True),
        _text("stopped_state", null=True),
    ),
    key=("id",),
    indexes=(
        Index("instances_wake", ("wake_at",), where='"wake_at" IS NOT NULL'),
        Index("instances_parent", ("parent",), where='"parent" IS NOT NULL'),
        Index("instances_keep", ("keep_until",), where='"keep_until" IS NOT NULL'),
        Index("instances_status", ("status", "id")),
        Index("instances_flow", ("flow", "version", "status", "stage")),
    ),
)

DAEMONS = Table("daemons", (_name("incarnation"), _int("alive_until")), key=("incarnation",))

ATTEMPTS = Table(
    "attempts",
    (
        _name("key"),
        _int("attempt"),
        _name("instance"),
        _int("pass"),
        _text("asked"),
        _name("owner", null=True),
        _int("until", null=True),
        _int("delay", null=True),
        _text("result", null=True),
        _text("late", null=True),
        _int("started", null=True),
        _int("ended", null=True),
        _int("given", null=True),
        _int("given_at", null=True),
        _int("message", null=True),
        _name("step"),
        _int("settled", default=0),
        _text("failure", null=True),
        _text("undo", null=True),
        _name("queue", null=True),
        _text("otherwise", null=True),
    ),
    key=("key", "attempt"),
    clustered=True,
    indexes=(Index("attempts_step", ("step", "until"), where='"result" IS NULL'),),
)

WAITS = Table(
    "waits",
    (
        _name("instance"),
        _name("task"),
        _int("kase"),
        _name("kind"),
        _int("channel", null=True),
        _name("other", null=True),
        _name("other_birth", null=True),
        _int("left", null=True),
        _int("any", null=True),
        _int("at", null=True),
    ),
    key=("instance", "task", "kase"),
    clustered=True,
    indexes=(Index("waits_other", ("other",), where='"other" IS NOT NULL'),),
)

MEMBERS = Table(
    "members",
    (_name("instance"), _name("task"), _int("kase"), _name("child"), _name("birth")),
    key=("instance", "task", "kase", "child", "birth"),
    clustered=True,
    indexes=(Index("members_child", ("child",)),),
)

CHANNELS = Table(
    "channels",
    (
        _name("instance"),
        _int("channel"),
        _name("name"),
        _int("capacity"),
        _int("inside"),
        _int("closed", default=0),
        _int("private", default=0),
    ),
    key=("instance", "channel"),
    clustered=True,
)

MESSAGES = Table(
    "messages",
    (
        Column("seq", Kind.SERIAL),
        _name("instance"),
        _int("channel"),
        _name("key", null=True),
        _text("value"),
        _int("at"),
        _int("taken", null=True),
        _int("taken_pass", null=True),
        _text("answer", null=True),
        _int("answered", null=True),
        _int("asks", default=0),
    ),
    unique=("instance", "channel", "key"),
    indexes=(
        Index("messages_untaken", ("instance", "channel"), where='"taken" IS NULL'),
        Index("messages_taken", ("taken",), where='"taken" IS NOT NULL'),
        Index("messages_asking", ("instance",), where='"asks" = 1 AND "answered" IS NULL'),
    ),
)

LEDGER = Table(
    "ledger",
    (
        Column("seq", Kind.SERIAL),
        _name("instance"),
        _int("at"),
        _name("kind"),
        _text("detail"),
        _name("actor", null=True),
    ),
    indexes=(Index("ledger_instance", ("instance",)),),
)

VERSIONS = Table(
    "versions",
    (
        Column("seq", Kind.SERIAL),
        _name("hash"),
        _name("flow"),
        _name("previous", null=True),
        Column("bytecode", Kind.BLOB),
        Column("debug", Kind.BLOB),
        _int("deployed_at"),
    ),
    unique=("hash",),
    indexes=(Index("versions_flow", ("flow",)),),
)

PINS = Table("pins", (_name("flow"), _name("version")), key=("flow", "version"))

TOKENS = Table(
    "tokens", (_name("hash"), _name("role"), _name("name"), _int("created")), key=("name",)
)

# The starts that `limit n per d` counts: they outlive the attempts, which stages delete.
BEGUN = Table(
    "begun",
    (_name("key"), _int("attempt"), _name("step"), _int("at"), _int("until")),
    key=("key", "attempt"),
    indexes=(Index("begun_step", ("step", "at")), Index("begun_until", ("until",))),
)

TABLES = (
    INSTANCES,
    ATTEMPTS,
    CHANNELS,
    MESSAGES,
    WAITS,
    MEMBERS,
    LEDGER,
    VERSIONS,
    PINS,
    DAEMONS,
    TOKENS,
    BEGUN,
)


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _column(column: Column, dialect: Dialect) -> str:
    text = f'"{column.name}" {dialect.types[column.kind]}'
    if column.kind is not Kind.SERIAL and not column.null:
        text += " NOT NULL"
    if column.default is not None:
        text += f" DEFAULT {column.default}"
    return text


def ddl(dialect: Dialect) -> tuple[str, ...]:
    """The statements that make an empty database a store."""
    statements: list[str] = []
    for table in TABLES:
        parts = [_column(column, dialect) for column in table.columns]
        if table.key:
            parts.append(f"PRIMARY KEY ({_quoted(table.key)})")
        if table.unique:
            parts.append(f"UNIQUE ({_quoted(table.unique)})")
        end = dialect.clustered if table.clustered else ""
        statements.append(f'CREATE TABLE "{table.name}" ({", ".join(parts)}){end}')
        for index in table.indexes:
            where = f" WHERE {index.where}" if index.where and dialect.partial_indexes else ""
            statements.append(
                f'CREATE INDEX "{index.name}" ON "{table.name}" ({_quoted(index.columns)}){where}'
            )
    return tuple(statements)
