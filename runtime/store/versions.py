"""Versions and pins. The newest version of a flow is the one that was deployed last.

A deploy names the version it was built after; if that is not the newest, it is behind, and would
take instances back. In a store that has no version of the flow, any version is the first.
"""

from __future__ import annotations

from qoqi.runtime.model import VersionRow
from qoqi.runtime.store import sql
from qoqi.runtime.store.dialect import Database


def put(db: Database, version: VersionRow) -> str:
    if db.one(sql.VERSION, {"hash": version.hash}) is not None:
        return "known"
    last = newest(db, version.flow)
    if last is not None and last != version.previous:
        return "behind"
    db.run(
        sql.NEW_VERSION,
        {
            "hash": version.hash,
            "flow": version.flow,
            "previous": version.previous,
            "bytecode": version.bytecode,
            "debug": version.debug,
            "deployed_at": version.deployed_at,
        },
    )
    return "new"


def of_hash(db: Database, hash: str) -> VersionRow | None:
    row = db.one(sql.VERSION, {"hash": hash})
    return None if row is None else VersionRow(*row)


def all_of(db: Database, flow: str | None) -> tuple[VersionRow, ...]:
    statement = sql.VERSIONS if flow is None else sql.VERSIONS_OF
    return tuple(VersionRow(*row) for row in db.all(statement, {"flow": flow}))


def newest(db: Database, flow: str) -> str | None:
    row = db.one(sql.NEWEST, {"flow": flow})
    return None if row is None else row[0]


def pin(db: Database, flow: str, version: str, on: bool) -> None:
    db.run(sql.PIN if on else sql.UNPIN, {"flow": flow, "version": version})


def pinned(db: Database, flow: str, version: str) -> bool:
    return db.one(sql.PINNED, {"flow": flow, "version": version}) is not None


def pins(db: Database) -> frozenset[tuple[str, str]]:
    return frozenset((flow, version) for flow, version in db.all(sql.PINS, {}))


def standing(db: Database) -> dict[tuple[str, str, str | None], int]:
    return {
        (flow, version, stage): count for flow, version, stage, count in db.all(sql.STANDING, {})
    }
