"""Messages and channels: what is sent from outside or by another instance, and requests' answers.

A sending never waits. A channel holds its untaken messages and the values that were inside at the
last write, together at most its capacity. A key is remembered as long as its message is kept, also
after the receiver has ended: a repeat is `Already`, with the answer if there is one.
"""

from __future__ import annotations

from qoqi.runtime.model import ENDED, MessageRow
from qoqi.runtime.store import sql
from qoqi.runtime.store.dialect import Database
from qoqi.runtime.store.lifecycle import head, note, wake
from qoqi.runtime.store.protocol import SendOutcome, Sent
from qoqi.vm.host import Message


def send(
    db: Database,
    id: str,
    channel: str,
    key: str | None,
    value: str,
    birth: str | None,
    now: int,
    actor: str | None = None,
    asks: bool = False,
) -> Sent:
    """`birth` says which instance of the name is meant: if it is gone, it has ended."""
    to = head(db, id)
    if to is None or (birth is not None and to.birth != birth):
        return Sent(SendOutcome.NO_INSTANCE if birth is None else SendOutcome.ENDED)
    found = db.one(sql.CHANNEL_OF_NAME, {"id": id, "name": channel})
    if found is None or found[4]:
        return Sent(SendOutcome.NO_CHANNEL)
    number, capacity, inside, closed, _ = found
    place: dict[str, object] = {"id": id, "channel": number}
    if key is not None:
        same = db.one(sql.SAME_MESSAGE, {**place, "key": key})
        if same is not None:
            return Sent(SendOutcome.ALREADY, same[0], to.lease_owner, same[1])
    if to.ended or closed:
        return Sent(SendOutcome.ENDED)
    untaken = db.one(sql.UNTAKEN, place) or (0,)
    if untaken[0] + inside >= capacity:
        return Sent(SendOutcome.FULL)
    seq = db.insert(
        sql.NEW_MESSAGE,
        {
            "instance": id,
            "channel": number,
            "key": key,
            "value": value,
            "at": now,
            "asks": int(asks),
        },
    )
    note(db, id, now, "message", {"channel": channel, "seq": seq, "key": key}, actor)
    if to.lease_owner is None and db.one(sql.RECEIVERS, place) is not None:
        wake(db, [(id, None)], now)
    return Sent(SendOutcome.DELIVERED, seq, to.lease_owner)


def reply(db: Database, id: str, seq: int, answer: str, now: int) -> list[tuple[str, str | None]]:
    """The first answer stands. Gives the instances that waited for it."""
    if not db.run(sql.REPLY, {"seq": seq, "id": id, "answer": answer, "now": now}):
        return []
    askers = db.all(sql.ASKERS, {"seq": str(seq)})
    wake(db, askers, now)
    return [(asker, owner) for asker, owner in askers]


def answer(db: Database, seq: int) -> tuple[str, str] | None:
    row = db.one(sql.ANSWER, {"seq": seq})
    if row is None:
        return "ended", ""
    answered, text, status = row
    if answered is not None:
        return "ok", text
    return ("ended", "") if status in ENDED else None


def untaken(db: Database, id: str) -> tuple[Message, ...]:
    return tuple(Message(*row) for row in db.all(sql.NEW_MESSAGES, {"id": id}))


def all_of(db: Database, id: str) -> tuple[MessageRow, ...]:
    return tuple(MessageRow(*row) for row in db.all(sql.MESSAGES, {"id": id}))


def channels(db: Database, id: str) -> tuple[tuple[int, str, int, int, bool, bool], ...]:
    return tuple(
        (number, name, capacity, inside, bool(closed), bool(private))
        for number, name, capacity, inside, closed, private in db.all(sql.CHANNELS, {"id": id})
    )
