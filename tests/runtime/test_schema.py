"""The tables are those of the algorithm, with what the design adds to them, and no others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from qoqi.runtime.store import schema, sql
from qoqi.runtime.store.attempts import key_range
from qoqi.runtime.store.dialect import SQLITE
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.schema import Table
from qoqi.vm.host import WORDS

ROOT = Path(__file__).resolve().parents[2]
TABLES = {table.name: table for table in vars(schema).values() if isinstance(table, Table)}

# What the seed names, then what runtime.md and the decided open points add.
WANTED = {
    "instances": (
        {"id", "birth", "flow", "version", "parent", "status", "phase", "since", "stage", "pass"}
        | {"state", "at_stage", "result", "stopped_by", "cancel", "lease_owner", "lease_until"}
        | {"keep_until"},
        {"args", "paused", "error_code", "note", "refuses", "takings", "created"}
        | {"wake_at", "at_stage_pass", "stopped_state", "ending"},
    ),
    "daemons": ({"incarnation", "alive_until"}, set()),
    "attempts": (
        {
            "key",
            "attempt",
            "instance",
            "pass",
            "asked",
            "owner",
            "until",
            "delay",
            "result",
            "late",
        },
        {"started", "ended", "given", "given_at", "message", "step", "settled", "failure", "undo"}
        | {"queue", "otherwise"},
    ),
    "waits": (
        {"instance", "task", "kase", "kind", "channel", "other", "left", "any", "at"},
        {"other_birth"},
    ),
    "members": ({"instance", "task", "kase", "child"}, {"birth"}),
    "channels": ({"instance", "channel", "name", "capacity", "inside"}, {"closed", "private"}),
    "messages": (
        {"seq", "instance", "channel", "key", "value", "taken", "taken_pass"},
        {"at", "answer", "answered", "asks"},
    ),
    "versions": ({"hash", "flow", "previous", "bytecode"}, {"seq", "debug", "deployed_at"}),
    "pins": ({"flow", "version"}, set()),
    "ledger": (set(), {"seq", "instance", "at", "kind", "detail", "actor"}),
    "begun": (set(), {"key", "attempt", "step", "at", "until"}),
    "tokens": (set(), {"hash", "role", "name", "created"}),
}


@pytest.mark.parametrize("name", sorted(WANTED))
def test_a_table_has_the_columns_of_the_algorithm_and_those_of_the_design(name: str) -> None:
    seed, design = WANTED[name]
    assert {column.name for column in TABLES[name].columns} == seed | design


def test_may_be_empty_what_the_seed_says_may_be() -> None:
    empty = {column.name for column in TABLES["instances"].columns if column.null}
    assert {"parent", "lease_owner", "keep_until", "cancel", "result", "stopped_by"} <= empty
    assert not {"id", "birth", "flow", "version", "status", "phase", "since", "pass"} & empty
    empty = {column.name for column in TABLES["attempts"].columns if column.null}
    assert {"owner", "until", "delay", "result", "late"} <= empty
    assert not {"key", "attempt", "instance", "pass", "asked", "step", "settled"} & empty
    empty = {column.name for column in TABLES["messages"].columns if column.null}
    assert {"key", "taken", "taken_pass"} <= empty


def test_keys_are_those_of_the_seed() -> None:
    assert TABLES["instances"].key == ("id",)
    assert TABLES["attempts"].key == ("key", "attempt")
    assert TABLES["waits"].key == ("instance", "task", "kase")
    assert TABLES["channels"].key == ("instance", "channel")
    assert TABLES["pins"].key == ("flow", "version")
    assert TABLES["messages"].unique == ("instance", "channel", "key")
    assert TABLES["versions"].unique == ("hash",)


def test_what_is_looked_for_has_an_index() -> None:
    """Also as SQLite sees it: none of the looks of the daemon reads a whole table."""
    database = memory_store().database
    looks: dict[str, dict[str, object]] = {
        sql.DUE: {"now": 1, "ahead": 1, "limit": 50},
        sql.NEXT_WAKE: {"now": 1},
        sql.LIVING_CHILDREN: {"id": "i"},
        sql.MORE_UNTAKEN: {"id": "i", "channel": 0, "many": 15},
        sql.CHANNEL_OF_NAME: {"id": "i", "name": "n"},
        sql.SAME_MESSAGE: {"id": "i", "channel": 0, "key": "k"},
        sql.ASKING: {"id": "i"},
        sql.LEDGER_OF: {"id": "i", "after": 0, "limit": 1},
        sql.EXPIRED_ANY: {"now": 1, "limit": 1},
    }
    for statement, arguments in looks.items():
        plan = database.all(f"EXPLAIN QUERY PLAN {SQLITE.translate(statement)}", arguments)
        steps = [str(row[3]) for row in plan]
        scans = [step for step in steps if step.startswith("SCAN") and "INDEX" not in step]
        assert scans == [], f"{statement}\n{steps}"
    names = {index.name for table in TABLES.values() for index in table.indexes}
    assert {"instances_parent", "instances_wake", "instances_keep", "waits_other"} <= names
    assert {"members_child", "messages_untaken"} <= names


def test_attempts_of_an_instance_stand_together() -> None:
    """The key starts with the instance, so no index on (instance, pass) is needed."""
    assert TABLES["attempts"].clustered
    plan = memory_store().database.all(
        f"EXPLAIN QUERY PLAN {SQLITE.translate(sql.DROP_BEFORE)}",
        {**key_range("i", "b"), "before": 3},
    )
    assert all("SEARCH" in str(row[3]) for row in plan), plan


def test_numbers_of_messages_and_rows_of_the_ledger_only_grow() -> None:
    ddl = "\n".join(str(part) for part in schema.ddl(SQLITE))
    for name in ("messages", "ledger"):
        assert f'CREATE TABLE "{name}" ("seq" INTEGER PRIMARY KEY AUTOINCREMENT' in " ".join(
            ddl.split()
        )


def test_the_words_of_attempts_are_no_json() -> None:
    """So a value, which is always JSON, is never taken for one of them."""
    import json

    for word in WORDS:
        with pytest.raises(json.JSONDecodeError):
            json.loads(word)


def test_births_are_drawn_from_so_many_that_none_comes_again() -> None:
    from qoqi.runtime.host import draw_birth

    births = {draw_birth() for _ in range(2_000)}
    assert len(births) == 2_000
    assert all(
        len(birth) == 8 and set(birth) <= set("abcdefghijklmnopqrstuvwxyz234567")
        for birth in births
    )


def writers() -> set[str]:
    """The functions of the store that write rows of `instances`, but for making and deleting."""
    wrote = {
        name
        for name, text in vars(sql).items()
        if isinstance(text, str) and 'UPDATE "instances"' in text
    } | {"update_instance"}
    found: set[str] = set()
    for path in sorted((ROOT / "runtime" / "store").glob("*.py")):
        for function in ast.parse(path.read_text("utf-8")).body:
            if isinstance(function, ast.FunctionDef):
                used = {
                    node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
                    for node in ast.walk(function)
                    if isinstance(node, ast.Attribute | ast.Name)
                }
                if used & (wrote | {"change"}):
                    found.add(function.name)
    return found


def test_only_these_calls_write_the_row_of_an_instance() -> None:
    """save, lease, renew; what a person asks; and what becomes due by it (`wake_at`, `cancel`)."""
    people = {"cancel", "resume", "end", "pause"}
    becomes_due = {"wake", "wake_more", "cancel_children", "abandon"}
    assert writers() - {"change", "update_instance"} == (
        {"save", "lease", "renew"} | people | becomes_due
    )
