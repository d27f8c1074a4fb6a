"""The ledger is written with what it tells of: both stand, or neither."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.vm.host import Cancel
from tests.runtime.store_lab import request

NOW = 1_000


class Undone(Exception):
    pass


def rows(store: SqlStore) -> list[str]:
    return [row.kind for row in store.ledger(None, 0, 100)]


WRITES: dict[str, Callable[[SqlStore], object]] = {
    "started": lambda store: store.create(request("j"), NOW),
    "message": lambda store: store.send("i", "decisions", None, "1", None, NOW),
    "cancel": lambda store: store.cancel("i", None, Cancel("c", "no", False, NOW), NOW, "ana"),
    "paused": lambda store: store.pause("i", NOW, "ana"),
}


def write_and_fail(store: SqlStore, kind: str, wanted: list[str]) -> None:
    with store.database.transaction():
        WRITES[kind](store)
        assert rows(store) == wanted
        raise Undone


@pytest.mark.parametrize("kind", sorted(WRITES))
def test_a_change_and_its_row_are_one_transaction(kind: str) -> None:
    store = memory_store()
    store.create(request("i"), NOW)
    before, instance = rows(store), store.instance("i")
    with pytest.raises(Undone):
        write_and_fail(store, kind, [*before, kind])
    assert rows(store) == before
    assert store.instance("i") == instance
    assert store.instance("j") is None
    WRITES[kind](store)
    assert rows(store) == [*before, kind]


def test_what_a_dead_daemon_left_is_given_up_with_a_row_for_each() -> None:
    from qoqi.vm.host import NewAttempt, Save
    from tests.runtime.store_lab import key

    store = memory_store()
    store.create(request("i"), NOW)
    store.lease("i", "shop/1", NOW, NOW + 30_000)
    attempts = tuple(
        NewAttempt(key("i", "pay", n), 1, 0, "[]", NOW + 60_000, "pay", False) for n in (1, 2)
    )
    save = Save("{}", "running", "run", None, 0, "v1", False, attempts=attempts)
    store.save("i", "shop/1", save, (), NOW)
    assert store.abandon(NOW + 1) == (1, 2)
    told = [row for row in store.ledger("i", 0, 100) if row.kind == "given up"]
    assert len(told) == 2
    assert all('"word":"timeout"' in row.detail for row in told)
