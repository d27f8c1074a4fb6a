"""An instance's life outside a save: start, due, lease, and what a person asks of it.

`save` is in `saving`. Each function runs inside a transaction of its caller, locks the row it
changes first, and adds its rows to the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qoqi.runtime.model import ENDED, InstanceRow, LedgerRow, Phase, Status, WaitView
from qoqi.runtime.store import attempts, messages, sql, upkeep, versions, waits
from qoqi.runtime.store.dialect import Database, Row
from qoqi.runtime.store.lifecycle import (
    Head,
    allow,
    cancel_children,
    cancel_text,
    change,
    head,
    note,
    read_cancel,
    tell_waiters,
    to_text,
    wake,
    wake_at,
    wake_more,
)
from qoqi.runtime.store.protocol import (
    Asked,
    Due,
    Filter,
    Hold,
    Life,
    Sent,
    StartOutcome,
    StartRequest,
    Taken,
)
from qoqi.vm.host import Cancel, EndedInstance

_OK = "ok"
_NO_LIMIT = 1 << 31
_NO_INSTANCE = Asked("no_instance")


def instance_of(row: Row) -> InstanceRow:
    values: list[Any] = list(row)
    values[5], values[6], values[20] = Status(row[5]), Phase(row[6]), bool(row[20])
    return InstanceRow(*values)


# -- start -------------------------------------------------------------------------------------


def create(db: Database, request: StartRequest, now: int) -> StartOutcome:
    taken = insert(db, request, now, "create")
    if taken is not None:
        return StartOutcome(False, taken)
    return StartOutcome(True, born(request, now))


def born(request: StartRequest, now: int) -> InstanceRow:
    """The row that `insert` has written."""
    hold = request.hold
    return InstanceRow(
        request.id,
        request.birth,
        request.flow,
        request.version,
        request.parent,
        Status.WAITING if hold is None else Status.RUNNING,
        Phase.RUN,
        now,
        None,
        0,
        request.state,
        request.state,
        request.args,
        lease_owner=None if hold is None else hold.owner,
        lease_until=None if hold is None else hold.until,
        created=now,
    )


def insert(db: Database, request: StartRequest, now: int, by: str) -> InstanceRow | None:
    """None, or the instance that has the name; one that may be swept makes way for it."""
    allow(by, None, None, Status.WAITING, Phase.RUN)
    if request.hold is not None:
        allow("lease", Status.WAITING, Phase.RUN, Status.RUNNING, Phase.RUN)
    if not _insert(db, request, now):
        taken = instance(db, request.id)
        if taken is not None and not (
            taken.status in ENDED and upkeep.sweep_name(db, request.id, now)
        ):
            return taken
        _insert(db, request, now)
    id = request.id
    if request.channels:
        db.many(
            sql.NEW_CHANNEL,
            [
                {
                    "instance": id,
                    "channel": number,
                    "name": name,
                    "capacity": capacity,
                    "inside": 0,
                    "closed": 0,
                    "private": int(private),
                }
                for number, name, capacity, private in request.channels
            ],
        )
    if request.hold is None:
        waits.first(db, id, now)
    detail: dict[str, object] = {"flow": request.flow, "version": request.version}
    note(db, id, now, "started", detail, request.parent)
    return None


def _insert(db: Database, request: StartRequest, now: int) -> bool:
    """The row alone; false if the name is taken."""
    hold = request.hold
    written = db.run(
        sql.NEW_INSTANCE,
        {
            "id": request.id,
            "birth": request.birth,
            "flow": request.flow,
            "version": request.version,
            "parent": request.parent,
            "status": (Status.WAITING if hold is None else Status.RUNNING).value,
            "phase": Phase.RUN.value,
            "since": now,
            "pass": 0,
            "state": request.state,
            "at_stage": request.state,
            "args": request.args,
            "created": now,
            "wake_at": now if hold is None else hold.until,
            "lease_owner": None if hold is None else hold.owner,
            "lease_until": None if hold is None else hold.until,
            "takings": int(hold is not None),
        },
    )
    return bool(written)


# -- leases ------------------------------------------------------------------------------------


def due(db: Database, now: int, limit: int, ahead: int) -> list[Due]:
    rows = db.all(sql.DUE, {"now": now, "ahead": now + ahead, "limit": limit})
    return [Due._make(row) for row in rows]


def next_wake(db: Database, now: int) -> int | None:
    row = db.one(sql.NEXT_WAKE, {"now": now})
    return None if row is None else row[0]


def locked(db: Database, id: str) -> InstanceRow | None:
    """The row, which nobody else changes for the rest of the transaction."""
    found = db.one(sql.LOCKED_INSTANCE, {"id": id})
    return None if found is None else instance_of(found)


def lease(
    db: Database, id: str, me: str, now: int, until: int, row: InstanceRow | None = None
) -> Taken | None:
    """`row` is the instance, if it was `locked` in this transaction."""
    before = row or locked(db, id)
    if before is not None and before.status in ENDED:
        wake_more(db, id, before.birth, before.status == Status.FAILED, now)
    if before is None or not _may_be_taken(before, now):
        return None
    allow("lease", before.status, before.phase, Status.RUNNING, before.phase)
    lapsed_of = before.lease_owner
    db.run(
        sql.update_instance(
            ("status", "since", "lease_owner", "lease_until", "takings", "wake_at")
        ),
        {
            "id": id,
            "status": Status.RUNNING.value,
            "since": now,
            "lease_owner": me,
            "lease_until": until,
            "takings": before.takings + 1,
            "wake_at": until,
        },
    )
    if lapsed_of is not None:
        note(db, id, now, "taken over", {"from": lapsed_of}, me)
    cancel = read_cancel(before.cancel) if before.phase == Phase.RUN else None
    return Taken(
        replace(before, status=Status.RUNNING, since=now, lease_owner=me, lease_until=until),
        attempts.of_instance(db, id, before.birth),
        messages.untaken(db, id),
        cancel,
    )


def send(
    db: Database,
    id: str,
    channel: str,
    key: str | None,
    value: str,
    birth: str | None,
    now: int,
    hold: Hold | None,
    row: InstanceRow | None,
) -> Sent:
    """A message; what it makes due is taken with it, if there is a hold and no suspicion.

    `row` is the instance, if it was `locked` in this transaction.
    """
    to = row or locked(db, id)
    sent, due = messages.deliver(db, to, channel, key, value, birth, now)
    if to is None or not due:
        return sent
    if hold is not None and not to.takings:
        taken = lease(db, id, hold.owner, now, hold.until, to)
        if taken is not None:
            return Sent(sent.outcome, sent.seq, hold.owner, None, taken)
    wake(db, [(id, None)], now)
    return sent


def _may_be_taken(row: InstanceRow, now: int) -> bool:
    if row.paused or row.status in ENDED:
        return False
    if row.lease_owner is not None:
        return row.lease_until is not None and row.lease_until <= now
    if row.status == Status.STOPPED:
        return row.phase == Phase.RUN and row.cancel is not None
    return row.status == Status.WAITING


def renew(db: Database, ids: Sequence[str], me: str, now: int, until: int) -> list[str]:
    return [id for id in ids if db.run(sql.RENEW, {"id": id, "me": me, "now": now, "until": until})]


# -- a person ----------------------------------------------------------------------------------


def cancel(db: Database, id: str, birth: str | None, asked: Cancel, now: int, actor: str) -> Asked:
    """A later cancellation stands in for one not seen yet, but never makes it weaker."""
    row = head(db, id)
    if row is None:
        return _NO_INSTANCE if birth is None else Asked("ended")
    if row.ended or (birth is not None and row.birth != birth):
        return Asked("ended")
    if row.phase == Phase.FINISH:
        return Asked(_OK, owner=row.lease_owner)
    if row.refuses is not None and not asked.now:
        return Asked("refused", row.refuses)
    pending = read_cancel(row.cancel)
    if pending is None or asked.now or not pending.now:
        db.run(sql.CANCEL, {"id": id, "cancel": cancel_text(asked), "now": now})
    note(db, id, now, "cancel", {"reason": asked.reason, "now": asked.now}, actor)
    return Asked(_OK, owner=row.lease_owner)


def resume(db: Database, id: str, now: int, actor: str, version: str | None) -> Asked:
    row = head(db, id)
    if row is None:
        return _NO_INSTANCE
    if row.ended:
        return Asked("ended")
    if row.paused:
        at = row.lease_until
        if row.lease_owner is None:
            at = wake_at(db, id, row.status, row.phase, row.cancel, now)
        change(db, id, {"paused": 0, "wake_at": at})
        note(db, id, now, "pause over", {}, actor)
        return Asked(_OK, "its pause is over", row.lease_owner)
    if row.status != Status.STOPPED:
        return Asked("not_stopped", f"it is {row.status}")
    if row.phase == Phase.RUN and row.cancel is not None:
        return Asked("refused", "a cancellation was asked for, and is carried out first")
    allow("resume", row.status, row.phase, Status.WAITING, row.phase)
    changes: dict[str, object] = {
        "status": Status.WAITING.value,
        "since": now,
        "stopped_by": None,
        "error_code": None,
        "wake_at": now,
    }
    if row.phase == Phase.RUN:
        db.run(sql.RESUMED_STATE, {"id": id})
        changes["version"] = version or _version_to_resume(db, row)
        changes["pass"] = row.at_stage_pass
    change(db, id, changes)
    marked = attempts.mark_for_resume(db, id, row.birth)
    if row.phase == Phase.RUN:
        db.run(sql.UNTAKE, {"id": id, "pass": row.at_stage_pass})
    waits.only_after(db, id, now)
    detail: dict[str, object] = {"phase": row.phase}
    if row.stopped_by is not None:
        detail["stopped_by"] = row.stopped_by
    if "version" in changes:
        detail["version"] = changes["version"]
    if marked:
        detail["again"] = marked
    note(db, id, now, "resumed", detail, actor)
    return Asked(_OK)


def _version_to_resume(db: Database, row: Head) -> str:
    if versions.pinned(db, row.flow, row.version):
        return row.version
    return versions.newest(db, row.flow) or row.version


def end(db: Database, id: str, why: str, now: int, keep: int, actor: str) -> Asked:
    """As it would have ended had its undos run; no undo runs."""
    row = head(db, id)
    if row is None:
        return _NO_INSTANCE
    if row.ended:
        return Asked("ended")
    if row.status != Status.STOPPED:
        return Asked("not_stopped", f"it is {row.status}")
    finishing = row.phase == Phase.FINISH
    to = Status(row.ending or Status.FAILED) if finishing else Status.FAILED
    allow("end", row.status, row.phase, to, row.phase)
    text = f"ended by {actor}: {why}"
    changes: dict[str, object] = {
        "status": to.value,
        "since": now,
        "keep_until": now + keep,
        "note": text,
        "stopped_state": None,
        "wake_at": None,
    }
    if not finishing:
        changes["result"] = to_text({"reason": text, "at": now})
    change(db, id, changes)
    woken = [
        *cancel_children(db, id, row.birth, text, now),
        *tell_waiters(db, id, row.birth, to == Status.FAILED, now),
    ]
    note(db, id, now, "ended", {"status": to.value, "why": why}, actor)
    return Asked(_OK, woken=tuple(woken))


def pause(db: Database, id: str, now: int, actor: str) -> Asked:
    row = head(db, id)
    if row is None:
        return _NO_INSTANCE
    if row.ended:
        return Asked("ended")
    if not row.paused:
        change(db, id, {"paused": 1, "wake_at": None})
        note(db, id, now, "paused", {}, actor)
    return Asked(_OK, owner=row.lease_owner)


def post_result(db: Database, key: str, result: str, now: int, actor: str, asked: str) -> Asked:
    """`asked` is what the question was, for a key that no attempt is under yet."""
    found = _asker(db, key)
    if found is None:
        return _NO_INSTANCE
    row, pass_number = found
    if row.ended:
        return Asked("ended")
    if row.status != Status.STOPPED:
        return Asked("not_stopped", f"it is {row.status}")
    last = attempts.last(db, key)
    if last is not None and last.result is None:
        return Asked("refused", "an attempt is under way under this key")
    number = 1 if last is None else last.attempt + 1
    db.run(
        sql.KEPT_ANSWER,
        {
            "key": key,
            "attempt": number,
            "instance": row.id,
            "pass": pass_number if last is None else last.pass_number,
            "asked": asked if last is None else last.asked,
            "result": result,
            "started": now,
            "ended": now,
            "given": None,
            "given_at": None,
            "message": None,
            "step": "" if last is None else last.step,
        },
    )
    note(db, row.id, now, "answered", {"key": key, "attempt": number}, actor)
    return Asked(_OK)


def _asker(db: Database, key: str) -> tuple[Head, int] | None:
    """The instance a key belongs to, and the pass."""
    for id, birth, pass_number in attempts.places(key):
        row = head(db, id)
        if row is not None and row.birth == birth:
            return row, pass_number
    return None


# -- reading -----------------------------------------------------------------------------------


def instance(db: Database, id: str) -> InstanceRow | None:
    row = db.one(sql.INSTANCE, {"id": id})
    return None if row is None else instance_of(row)


def named(db: Database, id: str, now: int) -> InstanceRow | None:
    found = instance(db, id)
    gone = found is not None and found.status in ENDED and upkeep.expired(db, id, now)
    return None if gone else found


def ended(db: Database, id: str, birth: str) -> EndedInstance | None:
    row = db.one(sql.ENDED, {"id": id, "birth": birth})
    if row is None:
        return EndedInstance("gone", '"gone"', 0)
    status, result, since = row
    return EndedInstance(status, result or "null", since) if status in ENDED else None


def living_children(db: Database, id: str) -> tuple[tuple[str, str], ...]:
    return tuple((child, birth) for child, birth in db.all(sql.LIVING_CHILDREN, {"id": id}))


def instances(db: Database, filter: Filter) -> tuple[InstanceRow, ...]:
    wanted: dict[str, object | None] = {
        "status": None if filter.status is None else filter.status.value,
        "phase": filter.phase,
        "flow": filter.flow,
        "version": filter.version,
        "stage": filter.stage,
        "since": filter.since,
        "text": None if filter.text is None else _like(filter.text),
        "after": filter.after,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    rows = db.all(sql.list_instances(tuple(given)), {**given, "limit": filter.limit})
    return tuple(instance_of(row) for row in rows)


def _like(text: str) -> str:
    for special in "!%_":
        text = text.replace(special, f"!{special}")
    return f"%{text}%"


def life(db: Database, id: str) -> Life | None:
    row = instance(db, id)
    if row is None:
        return None
    of = {"id": id}
    children = db.all(sql.CHILDREN, of)
    return Life(
        row,
        tuple(WaitView(*wait) for wait in db.all(sql.WAIT_VIEWS, of)),
        attempts.of_instance(db, id, row.birth),
        messages.all_of(db, id),
        tuple(instance_of(child) for child in children),
        ledger(db, id, 0, _NO_LIMIT),
    )


def ledger(db: Database, id: str | None, after: int, limit: int) -> tuple[LedgerRow, ...]:
    """Of one instance, or of all."""
    statement = sql.LEDGER if id is None else sql.LEDGER_OF
    rows = db.all(statement, {"id": id, "after": after, "limit": limit})
    return tuple(LedgerRow(*row) for row in rows)


def last_change(db: Database) -> int:
    row = db.one(sql.LAST_CHANGE, {})
    return 0 if row is None else row[0]


def counts(db: Database) -> dict[str, int]:
    return {status: count for status, count in db.all(sql.COUNTS, {})}
