"""A store with a clock that stands, and short ways to say what its tests do to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qoqi.runtime.model import ENDED, InstanceRow, Phase, Status
from qoqi.runtime.store.protocol import Asked, Sent, StartOutcome, StartRequest, Taken, Woken
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.vm.host import Attempt, Cancel, NewAttempt, Save, Saved, WaitRow

ME = "shop-1/7c3e"
OTHER = "shop-2/91ab"
LEASE = 30_000
KEEP = 86_400_000
CHANNELS = ((0, "decisions", 2, False), (1, "inside", 4, True))


def birth_of(id: str) -> str:
    return f"b{id}"


def key(id: str, what: str, n: int = 1, pass_number: int = 0, task: str = "0") -> str:
    return f"{id}/{birth_of(id)}/{pass_number}:{task}:{what}#{n}"


def request(id: str, parent: str | None = None, **changes: Any) -> StartRequest:
    row: dict[str, Any] = {
        "id": id,
        "birth": birth_of(id),
        "flow": "Order",
        "version": "v1",
        "args": '{"n":1}',
        "state": f'{{"at":"start of {id}"}}',
        "parent": parent,
        "channels": CHANNELS,
    }
    return StartRequest(**{**row, **changes})


def after(at: int, task: str = "0", case: int = 0) -> WaitRow:
    return WaitRow(task, case, "after", at=at)


def receive(channel: int = 0) -> WaitRow:
    return WaitRow("0", 0, "receive", channel=channel)


def ending_of(id: str, birth: str | None = None) -> WaitRow:
    return WaitRow("0", 0, "flow", other=id, other_birth=birth or birth_of(id))


def members(*ids: str, any: int = 0, case: int = 0) -> WaitRow:
    return WaitRow("0", case, "all", any=any, members=tuple((id, birth_of(id)) for id in ids))


@dataclass(slots=True)
class Lab:
    store: SqlStore
    now: int = 1_000_000

    # -- what a daemon does -------------------------------------------------------------------

    def start(self, id: str, parent: str | None = None, **changes: Any) -> StartOutcome:
        return self.store.create(request(id, parent, **changes), self.now)

    def take(self, id: str, me: str = ME) -> Taken:
        taken = self.store.lease(id, me, self.now, self.now + LEASE)
        assert taken is not None, f"{id} could not be taken"
        return taken

    def save(
        self,
        id: str,
        status: str = "running",
        *,
        me: str = ME,
        children: tuple[StartRequest, ...] = (),
        **changes: Any,
    ) -> Saved:
        return self.saved(id, status, me=me, children=children, **changes)[0]

    def saved(
        self,
        id: str,
        status: str = "running",
        *,
        me: str = ME,
        children: tuple[StartRequest, ...] = (),
        **changes: Any,
    ) -> tuple[Saved, Woken]:
        row = self.row(id)
        fields: dict[str, Any] = {
            "state": row.state,
            "status": status,
            "phase": row.phase,
            "stage": row.stage,
            "pass_number": row.pass_number,
            "version": row.version,
            "release": status != "running",
            "keep": KEEP if status in ENDED else 0,
        }
        save = Save(**{**fields, **changes})
        return self.store.save(id, me, save, children, self.now)

    def running(self, id: str, parent: str | None = None) -> str:
        """A new instance that `ME` holds; gives its name."""
        self.start(id, parent)
        self.take(id)
        return id

    def waiting(self, id: str, *waits: WaitRow, parent: str | None = None) -> str:
        self.running(id, parent)
        self.save(id, "waiting", waits=waits)
        return id

    def stopped(self, id: str, **changes: Any) -> str:
        self.running(id)
        self.save(id, "stopped", **{"stopped_by": "a mistake", **changes})
        return id

    def done(
        self, id: str, result: str = '"ok"', parent: str | None = None, keep: int = KEEP
    ) -> str:
        self.running(id, parent)
        self.save(id, "done", result=result, keep=keep)
        return id

    def step(self, id: str, what: str = "charge", **changes: Any) -> str:
        """Lets an attempt of a step leave; gives its key."""
        new = self.new_attempt(id, what, **changes)
        assert self.save(id, attempts=(new,)).may_leave
        return new.key

    def new_attempt(self, id: str, what: str = "charge", **changes: Any) -> NewAttempt:
        fields: dict[str, Any] = {
            "key": key(id, what),
            "attempt": 1,
            "pass_number": 0,
            "asked": "[1]",
            "until": self.now + 60_000,
            "step": what,
            "settled": False,
        }
        return NewAttempt(**{**fields, **changes})

    # -- what comes from outside --------------------------------------------------------------

    def send(
        self, id: str, value: str = "1", sender_key: str | None = None, birth: str | None = None
    ) -> Sent:
        return self.store.send(id, "decisions", sender_key, value, birth, self.now)

    def cancel(self, id: str, reason: str = "no more", now: bool = False) -> Asked:
        cancel = Cancel(f"c-{reason}", reason, now, self.now)
        return self.store.cancel(id, None, cancel, self.now, "ana")

    # -- looking ------------------------------------------------------------------------------

    def row(self, id: str) -> InstanceRow:
        row = self.store.instance(id)
        assert row is not None, f"{id} is gone"
        return row

    def at(self, id: str) -> tuple[Status, Phase]:
        row = self.row(id)
        return row.status, row.phase

    def due(self) -> list[str]:
        return [row.id for row in self.store.due(self.now, 1_000)]

    def last(self, key: str) -> Attempt:
        attempt = self.store.attempt(key)
        assert attempt is not None, f"nothing under {key}"
        return attempt

    def tables(self) -> dict[str, list[Any]]:
        """Everything the store has, to say that nothing changed."""
        names = ["instances", "attempts", "waits", "members", "channels", "messages", "ledger"]
        return {name: self.store.database.all(f'SELECT * FROM "{name}"', {}) for name in names}


Make = Callable[[], SqlStore]
