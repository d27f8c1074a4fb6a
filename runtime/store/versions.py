"""Versions and pins. The newest version of a flow is the one that was deployed last.

A deploy names the version it was built after; if that is not the newest, it is behind, and would
take instances back. In a store that has no version of the flow, any version is the first. So the
versions of a flow are a chain, each after the one before, and a sweep takes from its old end only.
"""

from __future__ import annotations

from qoqi.runtime.model import Standing, VersionRow
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


def standing(db: Database) -> tuple[Standing, ...]:
    return tuple(Standing(*row) for row in db.all(sql.STANDING, {}))


def sweep(db: Database) -> tuple[tuple[str, str], ...]:
    """Deletes the oldest versions of each flow, up to the first that somebody needs.

    Needed are the newest, pinned ones, those of instances (ended ones too, while they are kept),
    those that a state or an undo names, and all that came after one of these: an instance moves
    through every version in between. Gives (flow, hash) of what went.
    """
    deleted: list[tuple[str, str]] = []
    kept: set[str] = set()
    for hash, flow in db.all(sql.VERSION_NAMES, {}):
        if flow in kept or _needed(db, flow, hash):
            kept.add(flow)
        else:
            db.run(sql.DELETE_VERSION, {"hash": hash})
            deleted.append((flow, hash))
    return tuple(deleted)


def _needed(db: Database, flow: str, hash: str) -> bool:
    of = {"flow": flow, "hash": hash}
    return (
        newest(db, flow) == hash
        or pinned(db, flow, hash)
        or db.one(sql.HAS_INSTANCES, of) is not None
        or db.one(sql.IS_NAMED, {"flow": flow, "named": f'%"{hash}"%'}) is not None
    )
