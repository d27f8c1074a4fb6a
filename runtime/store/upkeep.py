"""Sweeping, heartbeats, tokens, and what a dead process left.

An ended instance goes when its `keep_until` is past and nothing has it: no wait for it, no
membership in an `all`, no living child. Then all its rows go, and its name is free.
"""

from __future__ import annotations

from qoqi.runtime.model import DaemonRow
from qoqi.runtime.store import sql
from qoqi.runtime.store.attempts import key_range
from qoqi.runtime.store.dialect import Database
from qoqi.runtime.store.lifecycle import allow, ledger_row
from qoqi.vm.host import TIMEOUT

# One sweep is one transaction, and nobody else writes meanwhile: it is kept short.
SWEEP_LIMIT = 500
DAEMON_FORGOTTEN = 24 * 3_600_000


def sweep(db: Database, now: int, keep: int) -> int:
    """How many instances went; as many as `SWEEP_LIMIT` means that more may be left."""
    expired = db.all(sql.EXPIRED_ANY, {"now": now, "limit": SWEEP_LIMIT})
    for id, birth, status in expired:
        _delete(db, id, birth, status)
    db.run(sql.FORGET_MESSAGES, {"before": now - keep})
    db.run(sql.FORGET_DAEMONS, {"before": now - DAEMON_FORGOTTEN})
    db.run(sql.FORGET_BEGUN, {"now": now})
    return len(expired)


def expired(db: Database, id: str, now: int) -> bool:
    """Whether the instance of that name may be swept: its name is free for another."""
    return db.one(sql.EXPIRED_ONE, {"id": id, "now": now}) is not None


def sweep_name(db: Database, id: str, now: int) -> bool:
    """Frees the name, if its instance may be swept."""
    row = db.one(sql.EXPIRED_ONE, {"id": id, "now": now})
    if row is None:
        return False
    _delete(db, *row)
    return True


def _delete(db: Database, id: str, birth: str, status: str) -> None:
    allow("sweep", status, None, None, None)
    of = key_range(id, birth)
    for statement in (
        sql.DELETE_INSTANCE,
        sql.DELETE_ATTEMPTS,
        sql.DELETE_CHANNELS,
        sql.DELETE_MESSAGES,
        sql.DELETE_WAITS,
        sql.DELETE_MEMBERS,
        sql.DELETE_LEDGER,
    ):
        db.run(statement, of)


def abandon(db: Database, now: int, queued: bool) -> tuple[int, int]:
    abandoned = db.all(sql.ABANDONED, {"queued": int(queued)})
    attempts = db.run(sql.ABANDON_ATTEMPTS, {"now": now, "queued": int(queued)})
    if abandoned:
        details: list[tuple[str, dict[str, object]]] = [
            (instance, {"key": key, "attempt": attempt, "word": TIMEOUT, "delay": 0})
            for instance, key, attempt in abandoned
        ]
        db.many(
            sql.NEW_LEDGER,
            [ledger_row(instance, now, "given up", detail, None) for instance, detail in details],
        )
    return db.run(sql.ABANDON_LEASES, {"now": now}), attempts


def alive(db: Database, me: str, until: int) -> None:
    db.run(sql.ALIVE, {"incarnation": me, "alive_until": until})


def daemons(db: Database) -> tuple[DaemonRow, ...]:
    return tuple(DaemonRow(*row) for row in db.all(sql.DAEMONS, {}))


def put_token(db: Database, hash: str, role: str, name: str, now: int) -> None:
    db.run(sql.PUT_TOKEN, {"hash": hash, "role": role, "name": name, "created": now})


def tokens(db: Database) -> tuple[tuple[str, str, str], ...]:
    return tuple((hash, role, name) for hash, role, name in db.all(sql.TOKENS, {}))


def drop_token(db: Database, name: str) -> bool:
    return db.run(sql.DROP_TOKEN, {"name": name}) > 0
