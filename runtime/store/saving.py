"""`save`: one transaction for an instance's row and all that goes with it.

It is refused once the lease is over, if an answer it carries came too late, or if a name was taken
meanwhile under which it creates an instance. The usual save (a step's answer, the next step) is
four statements: the row is written where it is still held and nothing was asked of it, the answer
put, the attempt inserted, the ledger added to. Where something was asked, or the save changes more
than the state (`Save.again`), the row is read first, and its waits compared; anything else costs
only those who have it.

New attempts are inserted only if they may leave: not while a cancellation is pending that the flow
does not wait for, and not while the instance is paused. So an attempt's row always means that it
may have left.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from qoqi.runtime.model import ENDED, InstanceRow, Phase, Status
from qoqi.runtime.store import messages, sql, waits
from qoqi.runtime.store.attempts import key_range
from qoqi.runtime.store.dialect import Database
from qoqi.runtime.store.instances import born, cancel, insert
from qoqi.runtime.store.lifecycle import (
    OF_PARENT,
    Head,
    NotAllowed,
    allow,
    cancel_children,
    change,
    head,
    ledger_row,
    note,
    read_cancel,
    tell_waiters,
    to_text,
    wake_at,
)
from qoqi.runtime.store.protocol import SendOutcome, StartRequest, Woken
from qoqi.vm.host import (
    Cancel,
    CancelAsked,
    LeaseLost,
    NameTaken,
    NewAttempt,
    NewCancel,
    NewMessage,
    PutLost,
    Save,
    Saved,
    SentMessage,
)

_Owners = list[tuple[str, str | None]]

_LEFT, _STAYED, _NOBODY = Saved(), Saved(may_leave=False), Woken()


def save(
    db: Database, id: str, me: str, save: Save, starts: Sequence[StartRequest], now: int
) -> tuple[Saved, Woken]:
    if save.again and db.run(sql.SAVE_AGAIN, {"state": save.state, "id": id, "me": me, "now": now}):
        return _write(db, id, me, save, starts, now)
    before = head(db, id)
    if before is None or before.lease_owner != me or (before.lease_until or 0) <= now:
        raise LeaseLost(id)
    allow("save", before.status, before.phase, save.status, save.phase)
    keeps_lease = save.status == Status.RUNNING
    if keeps_lease and save.release:
        raise NotAllowed("save: running without a lease, so never due again")

    ended = save.status in ENDED
    seen, pending = _cancellation(before, save, ended)
    may_leave = not before.paused and (pending is None or (save.listens and not pending.now))
    saved, told = _write(db, id, me, save, starts, now, may_leave)
    if save.drop_before is not None:
        db.run(sql.DROP_BEFORE, {**key_range(id, before.birth), "before": save.drop_before})
    woken, cancels = list(told.owners), list(told.cancels)
    if not ended:
        waits.stand(db, id, save.waits)
    if save.enter_finish is not None:
        cancels += cancel_children(db, id, before.birth, save.enter_finish, now)

    changes = _changes(before, save, now)
    if seen is not None and not any(new.to == id for new in save.cancels):
        changes["cancel"] = None
    if seen is not None and seen.id != save.seen_cancel:
        detail: dict[str, object] = {"reason": seen.reason, "text": save.refuses}
        note(db, id, now, "cancel refused", detail)
    if not keeps_lease:
        changes["lease_owner"] = changes["lease_until"] = None
        changes["wake_at"] = _wakes(db, before, save, pending, now)
    change(db, id, changes)
    if ended:
        woken += tell_waiters(db, id, before.birth, save.status == Status.FAILED, now)
    if pending is not None or before.paused:
        saved = replace(saved, cancel=pending, paused=bool(before.paused))
    if not (woken or cancels or told.born):
        return saved, _NOBODY
    return saved, Woken(tuple(woken), tuple(cancels), told.born)


def _write(
    db: Database,
    id: str,
    me: str,
    save: Save,
    starts: Sequence[StartRequest],
    now: int,
    may_leave: bool = True,
) -> tuple[Saved, Woken]:
    """All of a save but its row and its waits."""
    ledger = _write_answers(db, id, save, now)
    if save.attempts and may_leave:
        _insert_attempts(db, id, me, save.attempts, now)
    for line in save.ledger:
        if line.kind == "left" and not may_leave:
            continue
        ledger.append(ledger_row(id, now, line.kind, line.detail, line.actor))
    if ledger:
        db.many(sql.NEW_LEDGER, ledger)
    _write_channels(db, id, save)
    if not (save.taken or save.replies or save.starts or save.sends or save.cancels):
        return _LEFT if may_leave or not save.attempts else _STAYED, _NOBODY
    woken: _Owners = []
    _write_messages(db, id, save, now, woken)
    held: list[InstanceRow] = []
    for request in starts:
        _start(db, request, now, woken, held)
    sent = tuple(_send(db, id, message, now, woken) for message in save.sends)
    cancels: _Owners = []
    cancelled = tuple(_cancel(db, id, new, now, cancels) for new in save.cancels)
    saved = Saved(may_leave=may_leave or not save.attempts, sent=sent, cancelled=cancelled)
    return saved, Woken(tuple(woken), tuple(cancels), tuple(held))


def _cancellation(before: Head, save: Save, ended: bool) -> tuple[Cancel | None, Cancel | None]:
    """The one that this save clears, and the one that is still pending.

    In phase finish nobody hears a cancellation: the instance is ending. One that was asked before
    `flow.refuse` was written is refused by the write, unless it is the end of the parent.
    """
    asked = read_cancel(before.cancel)
    if asked is None:
        return None, None
    if asked.id == save.seen_cancel:
        return asked, None
    if ended or save.phase == Phase.FINISH:
        return None, None
    refuses = save.refuses is not None and before.refuses is None and not asked.now
    if refuses and not asked.id.startswith(OF_PARENT):
        return asked, None
    return None, asked


def _changes(before: Head, save: Save, now: int) -> dict[str, object]:
    """The columns that differ. Those not read into the head are written only if they are given."""
    changes: dict[str, object] = {"state": save.state}
    if save.status != before.status:
        changes["status"] = str(save.status)
        changes["since"] = now
    if save.phase != before.phase:
        changes["phase"] = str(save.phase)
        changes["ending"] = _ending(save)
    if save.pass_number >= 0:  # below: the state could not be read, and stays where it is
        if save.stage != before.stage:
            changes["stage"] = save.stage
        if save.pass_number != before.pass_number:
            changes["pass"] = save.pass_number
    if save.version != before.version:
        changes["version"] = save.version
    if save.refuses != before.refuses:
        changes["refuses"] = save.refuses
    if save.stopped_by != before.stopped_by:
        changes["stopped_by"] = save.stopped_by
    if save.error_code != before.error_code:
        changes["error_code"] = save.error_code
    if save.at_stage is not None:
        changes["at_stage"] = save.at_stage
        changes["at_stage_pass"] = (
            save.pass_number if save.drop_before is None else save.drop_before
        )
    if save.result is not None:
        changes["result"] = save.result
    if save.status in ENDED:
        changes["keep_until"] = now + save.keep
    if before.takings:
        changes["takings"] = 0
    if before.resumed and not save.as_found:
        # What it held that must not be lost is in the state that is written now.
        changes["stopped_state"] = None
    return changes


def _ending(save: Save) -> str:
    """With what an instance that enters its finish phase will end.

    Children are told of an Err and of a cancellation; a run that gave a value leaves them alone.
    """
    if save.status in ENDED:
        return str(save.status)
    if save.enter_finish is None:
        return str(Status.DONE)
    result: Any = json.loads(save.result or "null")
    returned_err = isinstance(result, dict) and list(cast(Any, result)) == ["Err"]
    return str(Status.DONE if returned_err else Status.FAILED)


def _wakes(db: Database, before: Head, save: Save, pending: Cancel | None, now: int) -> int | None:
    if before.paused or save.status in ENDED:
        return None
    if pending is not None:
        return now
    if save.status == Status.WAITING:
        only_time, at = waits.first_time(save.waits)
        if only_time:
            return at
    return wake_at(db, before.id, save.status, save.phase, None, now)


# -- attempts ----------------------------------------------------------------------------------


def _write_answers(db: Database, id: str, save: Save, now: int) -> list[dict[str, object]]:
    """Gives rows for the ledger. An answer put and given in one save is one write."""
    ledger: list[dict[str, object]] = []
    given = {(mark.key, mark.attempt): mark for mark in save.given} if save.given else {}
    for put in save.puts:
        mark = given.pop((put.key, put.attempt), None)
        values: dict[str, object] = {
            "key": put.key,
            "attempt": put.attempt,
            "result": put.result,
            "failure": put.failure,
            "undo": put.undo,
            "now": now,
        }
        if mark is not None:
            values["given"] = mark.given
            values["given_at"] = mark.given_at
        if not db.run(sql.PUT if mark is None else sql.PUT_GIVEN, values):
            raise PutLost(put.key)
        detail: dict[str, object] = {"key": put.key, "attempt": put.attempt}
        ledger.append(ledger_row(id, now, "answered", detail, None))
    if given:
        db.many(
            sql.GIVEN,
            [
                {
                    "key": mark.key,
                    "attempt": mark.attempt,
                    "given": mark.given,
                    "given_at": mark.given_at,
                    "otherwise": mark.otherwise,
                }
                for mark in given.values()
            ],
        )
    if save.answers:
        db.many(
            sql.KEPT_ANSWER,
            [
                {
                    "key": answer.key,
                    "attempt": 1,
                    "instance": id,
                    "pass": answer.pass_number,
                    "asked": answer.asked,
                    "result": answer.result,
                    "started": answer.given_at,
                    "ended": answer.given_at,
                    "given": answer.given,
                    "given_at": answer.given_at,
                    "message": answer.message,
                    "step": "",
                }
                for answer in save.answers
                if save.drop_before is None or answer.pass_number >= save.drop_before
            ],
        )
    return ledger


def _insert_attempts(
    db: Database, id: str, me: str, attempts: Sequence[NewAttempt], now: int
) -> None:
    db.many(
        sql.NEW_ATTEMPT,
        [
            {
                "key": new.key,
                "attempt": new.attempt,
                "instance": id,
                "pass": new.pass_number,
                "asked": new.asked,
                "owner": me,
                "until": new.until,
                "started": now,
                "step": new.step,
                "settled": int(new.settled),
                "queue": new.queue,
            }
            for new in attempts
        ],
    )
    counted = [new for new in attempts if new.per is not None]
    if counted:
        db.many(
            sql.NEW_BEGUN,
            [
                {
                    "key": new.key,
                    "attempt": new.attempt,
                    "step": new.step,
                    "at": now,
                    "until": now + (new.per or 0),
                }
                for new in counted
            ],
        )


def _keep_answer(
    db: Database, id: str, by: NewMessage | NewCancel, result: object, now: int
) -> None:
    """What the store found for another instance is kept by the same write, for a replay.

    An undo's send that is made again after a crash finds its own message; the first outcome stays.
    """
    if by.asked is None:
        return
    db.run(
        sql.KEPT_OUTCOME,
        {
            "key": by.key,
            "attempt": 1,
            "instance": id,
            "pass": by.pass_number,
            "asked": by.asked,
            "result": to_text(result),
            "started": now,
            "ended": now,
            "given": None,
            "given_at": None,
            "message": None,
            "step": "",
        },
    )


# -- channels and messages ---------------------------------------------------------------------


def _write_channels(db: Database, id: str, save: Save) -> None:
    if save.channels:
        db.many(
            sql.PUT_CHANNEL,
            [
                {
                    "instance": id,
                    "channel": channel.channel,
                    "name": channel.name,
                    "capacity": channel.capacity,
                    "inside": channel.inside,
                    "closed": int(channel.closed),
                    "private": int(channel.private),
                }
                for channel in save.channels
            ],
        )


def _write_messages(db: Database, id: str, save: Save, now: int, woken: _Owners) -> None:
    if save.taken:
        db.many(
            sql.TAKE,
            [{"seq": seq, "id": id, "now": now, "pass": taken} for seq, taken in save.taken],
        )
    for seq, answer in save.replies:
        woken += messages.reply(db, id, seq, answer, now)


def _send(db: Database, id: str, message: NewMessage, now: int, woken: _Owners) -> SentMessage:
    sent = messages.send(
        db,
        message.to,
        message.channel,
        message.message_key,
        message.value,
        message.birth,
        now,
        actor=id,
        asks=message.asks,
    )
    if sent.outcome == SendOutcome.DELIVERED and message.to != id:
        woken.append((message.to, sent.owner))
    _keep_answer(db, id, message, {"outcome": sent.outcome, "seq": sent.seq}, now)
    return SentMessage(message.key, sent.outcome, sent.seq)


# -- other instances ---------------------------------------------------------------------------


def _cancel(db: Database, id: str, new: NewCancel, now: int, cancels: _Owners) -> CancelAsked:
    asked = cancel(db, new.to, new.birth, Cancel(new.key, new.reason, False, now), now, id)
    match asked.outcome:
        case "ok":
            cancels.append((new.to, asked.owner))
            outcome = "ok"
        case "refused":
            outcome = f"refused: {asked.text}"
        case _:
            outcome = "ended"
    _keep_answer(db, id, new, outcome, now)
    return CancelAsked(new.key, outcome)


def _start(
    db: Database, request: StartRequest, now: int, woken: _Owners, held: list[InstanceRow]
) -> None:
    if insert(db, request, now, "save") is not None:
        raise NameTaken(request.id)
    if request.hold is None:
        woken.append((request.id, None))
    else:
        held.append(born(request, now))
