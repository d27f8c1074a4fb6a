"""Messages and channels: what is sent from outside or by another instance, and requests' answers.

A sending never waits. A channel holds its untaken messages and the values that were inside at the
last write, together at most its capacity. A key is remembered as long as its message is kept, also
after the receiver has ended: a repeat is `Already`, with the answer if there is one.
"""

from __future__ import annotations

from qoqi.runtime.model import ENDED, InstanceRow, MessageRow
from qoqi.runtime.store import sql
from qoqi.runtime.store.dialect import Database
from qoqi.runtime.store.lifecycle import Head, head, note, wake
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
    sent, due = deliver(db, to, channel, key, value, birth, now, actor, asks)
    if due:
        wake(db, [(id, None)], now)
    return sent


def deliver(
    db: Database,
    to: Head | InstanceRow | None,
    channel: str,
    key: str | None,
    value: str,
    birth: str | None,
    now: int,
    actor: str | None = None,
    asks: bool = False,
) -> tuple[Sent, bool]:
    """The message alone, and whether its instance is due: free, and a wait of it is over.

    `to` was locked in this transaction.
    """
    if to is None or (birth is not None and to.birth != birth):
        return Sent(SendOutcome.NO_INSTANCE if birth is None else SendOutcome.ENDED), False
    id = to.id
    found = db.one(sql.CHANNEL_OF_NAME, {"id": id, "name": channel})
    if found is None or found[4]:
        return Sent(SendOutcome.NO_CHANNEL), False
    number, capacity, inside, closed, _, first, last, received = found
    place: dict[str, object] = {"id": id, "channel": number}
    if key is not None:
        same = db.one(sql.SAME_MESSAGE, {**place, "key": key})
        if same is not None:
            return Sent(SendOutcome.ALREADY, same[0], to.lease_owner, same[1]), False
    if to.status in ENDED or closed:
        return Sent(SendOutcome.ENDED), False
    if _full(db, place, capacity - inside, first, last):
        return Sent(SendOutcome.FULL), False
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
    due = bool(received) and to.lease_owner is None
    return Sent(SendOutcome.DELIVERED, seq, to.lease_owner), due


def _full(
    db: Database, place: dict[str, object], room: int, first: int | None, last: int | None
) -> bool:
    """Messages are counted only where there may be as many as there is room for.

    Their numbers say how many there are at most.
    """
    if room <= 0 or first is None or last is None:
        return room <= 0
    if last - first + 1 < room:
        return False
    return db.one(sql.MORE_UNTAKEN, {**place, "many": room - 1}) is not None


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
