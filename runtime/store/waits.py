"""The waits of an instance and the members of its `all`: only rows that changed are written.

A wait over other instances (`all`, `first`) counts in `left` its members that have not ended. The
count is made once, when the wait is inserted, and after that each instance that ends takes itself
off; a save that finds the same wait still standing leaves it alone. A member that is missing, or
lives under another birth, has ended. A member named twice is one member.
"""

from __future__ import annotations

from typing import TypeAlias

from qoqi.runtime.model import ENDED
from qoqi.runtime.store import sql
from qoqi.runtime.store.dialect import Database
from qoqi.vm.host import WaitRow

_Place: TypeAlias = tuple[str, int]
_WITH_MEMBERS = frozenset({"all", "first"})
_BY_TIME = frozenset({"after", "retry", "slot", "cancelled", "send", "join", "when"})


def stand(db: Database, id: str, waits: tuple[WaitRow, ...]) -> None:
    """Makes `waits` all that stand."""
    rows = db.all(sql.WAITS, {"id": id})
    if not rows and not waits:
        return
    before: dict[_Place, tuple[object, ...]] = {(row[0], row[1]): row[2:] for row in rows}
    members: dict[_Place, set[tuple[str, str]]] = {}
    if any(row[2] in _WITH_MEMBERS for row in rows):
        for task, case, child, birth in db.all(sql.MEMBERS, {"id": id}):
            members.setdefault((task, case), set()).add((child, birth))
    after = {(wait.task, wait.case): wait for wait in waits}
    for place, old in before.items():
        wait = after.get(place)
        same = (
            wait is not None
            and old == _columns(wait)
            and members.get(place, set()) == set(wait.members)
        )
        if same:
            del after[place]
        else:
            _delete(db, id, place, bool(members.get(place)))
    for wait in after.values():
        _insert(db, id, wait)


def first_time(waits: tuple[WaitRow, ...]) -> tuple[bool, int | None]:
    """Whether only the passing of time wakes them, and then when the first of them is over."""
    at: int | None = None
    for wait in waits:
        if wait.kind not in _BY_TIME:
            return False, None
        if wait.at is not None and (at is None or wait.at < at):
            at = wait.at
    return True, at


def first(db: Database, id: str, now: int) -> None:
    """The one wait of a new row, over already: the instance is due."""
    _insert(db, id, WaitRow("0", 0, "after", at=now))


def only_after(db: Database, id: str, now: int) -> None:
    """Puts one `after` that is over in place of all waits: the instance is due."""
    db.run(sql.DELETE_MEMBERS, {"id": id})
    db.run(sql.DELETE_WAITS, {"id": id})
    first(db, id, now)


def _columns(wait: WaitRow) -> tuple[object, ...]:
    return (wait.kind, wait.channel, _other(wait), wait.other_birth, wait.any, wait.at)


def _other(wait: WaitRow) -> str | None:
    """Of an answer only the number of the request: what follows a colon is the asker's own."""
    if wait.kind == "answer" and wait.other is not None:
        return wait.other.partition(":")[0]
    return wait.other


def _delete(db: Database, id: str, place: _Place, has_members: bool) -> None:
    at = {"instance": id, "task": place[0], "kase": place[1]}
    db.run(sql.DELETE_WAIT, at)
    if has_members:
        db.run(sql.DELETE_MEMBERS_OF, at)


def _insert(db: Database, id: str, wait: WaitRow) -> None:
    place: dict[str, object] = {"instance": id, "task": wait.task, "kase": wait.case}
    left: int | None = None
    if wait.kind in _WITH_MEMBERS:
        members = dict.fromkeys(wait.members)
        db.many(
            sql.NEW_MEMBER,
            [{**place, "child": child, "birth": birth} for child, birth in members],
        )
        left = sum(row[0] not in ENDED for row in db.all(sql.LOCK_MEMBERS, place))
    db.run(
        sql.NEW_WAIT,
        {
            **place,
            "kind": wait.kind,
            "channel": wait.channel,
            "other": _other(wait),
            "other_birth": wait.other_birth,
            "left": left,
            "any": wait.any,
            "at": wait.at,
        },
    )
