"""What every write of an instance shares: its head, the table of transitions, waking, the ledger.

A write locks the row first (`head`), decides on what it read, and writes last. A change of status
is checked against the table of `model` here and nowhere else.

An instance is due when its `wake_at` has come (see `schema`). Three functions keep that column:
`wake_at` works it out afresh for a row that is let go, `wake` brings it forward because something
happened, and while an instance is held it is the end of its lease.

An end that very many wait for wakes a thousand of them with its own transaction. The ended instance
stays due until all were woken, a thousand each time that it is found (`wake_more`): nothing else
waits for the rest, and a crash between loses no wake.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from qoqi.runtime.model import ALLOWED, ENDED, Phase, Status
from qoqi.runtime.store import sql
from qoqi.runtime.store.dialect import Database, Row
from qoqi.vm.host import Cancel
from qoqi.vm.jsonform import json_text

OF_PARENT = "parent/"
"""How the id of a cancellation begins that is the end of the parent: no flow refuses that one."""

# So many instances are woken in one transaction.
AT_ONCE = 1_000


class NotAllowed(Exception):
    """A change of status that is no line of the table: a mistake in the runtime."""


class Head(NamedTuple):
    """The columns of a row that decide what may happen to it, in the order of `HEAD`."""

    id: str
    birth: str
    flow: str
    version: str
    parent: str | None
    status: str
    phase: str
    stage: str | None
    pass_number: int
    cancel: str | None
    lease_owner: str | None
    lease_until: int | None
    paused: int
    refuses: str | None
    stopped_by: str | None
    error_code: str | None
    takings: int
    keep_until: int | None
    wake_at: int | None
    at_stage_pass: int
    ending: str | None
    resumed: int  # it was, and not written since

    @property
    def ended(self) -> bool:
        return self.status in ENDED


def head(db: Database, id: str) -> Head | None:
    """Locks the row for the rest of the transaction."""
    row = db.one(sql.HEAD, {"id": id})
    return None if row is None else Head._make(row)


def allow(
    by: str, status: str | None, phase: str | None, to: str | None, to_phase: str | None
) -> None:
    if (status, phase, to, to_phase, by) not in ALLOWED:
        raise NotAllowed(f"{by}: {status or 'new'}, {phase or '-'} may not become {to}, {to_phase}")


def change(db: Database, id: str, changes: dict[str, object]) -> None:
    """Writes the columns named, and no others."""
    if changes:
        db.run(sql.update_instance(tuple(changes)), {**changes, "id": id})


# -- waking ------------------------------------------------------------------------------------


def wake_at(
    db: Database, id: str, status: str, phase: str, cancel: str | None, now: int
) -> int | None:
    """From when on an instance that nobody holds, and that is not paused, may be taken."""
    if cancel is not None and phase == Phase.RUN and status in (Status.WAITING, Status.STOPPED):
        return now
    if status != Status.WAITING:
        return None
    row = db.one(sql.WAKING, {"id": id})
    if row is None:
        return None
    at: int | None = row[0]
    if row[1] and (at is None or at > now):
        return now
    return at


def wake(db: Database, waiters: list[Row], now: int) -> None:
    """A wait of each (id, holder) is over: due now, unless it is held; then its holder is told."""
    free = [{"id": id, "now": now} for id, owner in waiters if owner is None]
    if free:
        db.many(sql.WAKE, free)


# -- ending ------------------------------------------------------------------------------------


def tell_waiters(
    db: Database, id: str, birth: str, failed: bool, now: int
) -> list[tuple[str, str | None]]:
    """An instance has ended: its own waits go, and whoever waits for it goes on."""
    of: dict[str, object] = {"id": id, "birth": birth}
    watched, waits, members = db.one(sql.WATCHED, of) or (True, True, True)
    if waits:
        db.run(sql.DELETE_WAITS, of)
    if members:
        db.run(sql.DELETE_MEMBERS, of)
    if not watched:
        return []
    db.run(sql.TAKE_OFF, of)
    asked = {**of, "failed": int(failed), "most": AT_ONCE + 1}
    waiters = db.all(sql.WAITERS, asked)
    if len(waiters) > AT_ONCE:
        waiters = [*db.all(sql.HELD_WAITERS, asked), *wake_more(db, id, birth, failed, now)]
    else:
        wake(db, waiters, now)
    for (seq,) in db.all(sql.ASKING, of):
        askers = db.all(sql.ASKERS, {"seq": str(seq)})
        wake(db, askers, now)
        waiters += askers
    return [(id, owner) for id, owner in waiters]


def wake_more(db: Database, id: str, birth: str, failed: bool, now: int) -> list[Row]:
    """Wakes so many of those that wait for an instance that has ended, if there are any.

    While there may be more, the instance is due itself, after them: whoever would take it wakes
    the next.
    """
    of = {"id": id, "birth": birth, "failed": int(failed), "now": now, "most": AT_ONCE}
    some = db.all(sql.FREE_WAITERS, of)
    wake(db, some, now)
    change(db, id, {"wake_at": now + 1 if len(some) == AT_ONCE else None})
    return some


def cancel_children(
    db: Database, id: str, birth: str, reason: str, now: int
) -> list[tuple[str, str | None]]:
    """The children that live and have no cancellation yet are told that their parent ended."""
    children = db.all(sql.CHILDREN_TO_CANCEL, {"id": id})
    if not children:
        return []
    why = f"its parent ended: {reason}"
    text = cancel_text(Cancel(f"{OF_PARENT}{birth}", why, False, now))
    db.many(sql.CANCEL, [{"id": child, "cancel": text, "now": now} for child, _ in children])
    detail = to_text({"reason": why, "now": False})
    db.many(
        sql.NEW_LEDGER,
        [
            {"instance": child, "at": now, "kind": "cancel", "detail": detail, "actor": id}
            for child, _ in children
        ],
    )
    return [(child, owner) for child, owner in children]


# -- cancellations and the ledger as text ------------------------------------------------------


to_text = json_text


def cancel_text(cancel: Cancel) -> str:
    return to_text({"id": cancel.id, "reason": cancel.reason, "now": cancel.now, "at": cancel.at})


def read_cancel(text: str | None) -> Cancel | None:
    if text is None:
        return None
    value = json.loads(text)
    return Cancel(value["id"], value["reason"], value["now"], value["at"])


def note(
    db: Database,
    instance: str,
    at: int,
    kind: str,
    detail: dict[str, object],
    actor: str | None = None,
) -> None:
    """Adds a row to the ledger."""
    db.run(
        sql.NEW_LEDGER,
        {"instance": instance, "at": at, "kind": kind, "detail": to_text(detail), "actor": actor},
    )


def ledger_row(
    instance: str, at: int, kind: str, detail: dict[str, object], actor: str | None
) -> dict[str, object]:
    """The same, for many at once."""
    text = to_text(detail) if detail else "{}"
    return {"instance": instance, "at": at, "kind": kind, "detail": text, "actor": actor}
