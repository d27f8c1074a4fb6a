"""SqlStore: the Store over one `Database`. Each writing call is one transaction.

Inside a transaction of its caller (a group of `StoreThread`) a call is a savepoint of it instead.
The methods are in the modules of their subject; this one says which of them write.
"""

from __future__ import annotations

from collections.abc import Sequence

from qoqi.runtime.model import DaemonRow, InstanceRow, LedgerRow, Standing, VersionRow
from qoqi.runtime.store import attempts, instances, messages, saving, upkeep, versions
from qoqi.runtime.store.dialect import Database
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
    Woken,
)
from qoqi.vm.host import Attempt, Cancel, EndedInstance, Message, PutResult, Save, Saved


class SqlStore:
    """`database` is for whoever groups calls into a transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def close(self) -> None:
        self.database.close()

    # -- an instance's life -------------------------------------------------------------------

    def create(self, request: StartRequest, now: int) -> StartOutcome:
        with self.database.transaction():
            return instances.create(self.database, request, now)

    def due(self, now: int, limit: int, ahead: int = 0) -> list[Due]:
        return instances.due(self.database, now, limit, ahead)

    def next_wake(self, now: int) -> int | None:
        return instances.next_wake(self.database, now)

    def lease(self, id: str, me: str, now: int, until: int) -> Taken | None:
        with self.database.transaction():
            return instances.lease(self.database, id, me, now, until)

    def renew(self, ids: Sequence[str], me: str, now: int, until: int) -> list[str]:
        with self.database.transaction():
            return instances.renew(self.database, ids, me, now, until)

    def save(
        self, id: str, me: str, save: Save, starts: Sequence[StartRequest], now: int
    ) -> tuple[Saved, Woken]:
        with self.database.transaction():
            return saving.save(self.database, id, me, save, starts, now)

    # -- attempts -----------------------------------------------------------------------------

    def attempt(self, key: str) -> Attempt | None:
        return attempts.last(self.database, key)

    def put_result(self, put: PutResult, now: int) -> tuple[Attempt | None, str | None]:
        with self.database.transaction():
            return attempts.put_result(self.database, put, now)

    def put_results(self, puts: Sequence[PutResult], now: int) -> Sequence[Attempt | None]:
        with self.database.transaction():
            return [attempts.put_result(self.database, put, now)[0] for put in puts]

    def give_up(
        self, key: str, attempt: int, word: str, delay: int, now: int
    ) -> tuple[bool, Attempt | None]:
        with self.database.transaction():
            return attempts.give_up(self.database, key, attempt, word, delay, now)

    def late(self, key: str, attempt: int, result: str, now: int) -> None:
        with self.database.transaction():
            attempts.late(self.database, key, attempt, result, now)

    def working(self, key: str, attempt: int) -> bool:
        return attempts.working(self.database, key, attempt)

    def under_way(self, step: str, now: int) -> int:
        return attempts.under_way(self.database, step, now)

    def begun(self, step: str, since: int) -> int:
        return attempts.begun(self.database, step, since)

    def abandon(self, now: int, queued: bool = False) -> tuple[int, int]:
        with self.database.transaction():
            return upkeep.abandon(self.database, now, queued)

    # -- from outside -------------------------------------------------------------------------

    def send(
        self,
        id: str,
        channel: str,
        key: str | None,
        value: str,
        birth: str | None,
        now: int,
        hold: Hold | None = None,
        row: InstanceRow | None = None,
    ) -> Sent:
        with self.database.transaction():
            return instances.send(self.database, id, channel, key, value, birth, now, hold, row)

    def locked(self, id: str) -> InstanceRow | None:
        return instances.locked(self.database, id)

    def cancel(self, id: str, birth: str | None, cancel: Cancel, now: int, actor: str) -> Asked:
        with self.database.transaction():
            return instances.cancel(self.database, id, birth, cancel, now, actor)

    def resume(self, id: str, now: int, actor: str, version: str | None = None) -> Asked:
        with self.database.transaction():
            return instances.resume(self.database, id, now, actor, version)

    def end(self, id: str, why: str, now: int, keep: int, actor: str) -> Asked:
        with self.database.transaction():
            return instances.end(self.database, id, why, now, keep, actor)

    def pause(self, id: str, now: int, actor: str) -> Asked:
        with self.database.transaction():
            return instances.pause(self.database, id, now, actor)

    def answer(self, seq: int) -> tuple[str, str] | None:
        return messages.answer(self.database, seq)

    def post_result(
        self, key: str, result: str, now: int, actor: str, asked: str = "null"
    ) -> Asked:
        with self.database.transaction():
            return instances.post_result(self.database, key, result, now, actor, asked)

    # -- reading ------------------------------------------------------------------------------

    def instance(self, id: str) -> InstanceRow | None:
        return instances.instance(self.database, id)

    def named(self, id: str, now: int) -> InstanceRow | None:
        return instances.named(self.database, id, now)

    def messages(self, id: str) -> tuple[Message, ...]:
        return messages.untaken(self.database, id)

    def channels(self, id: str) -> tuple[tuple[int, str, int, int, bool, bool], ...]:
        return messages.channels(self.database, id)

    def ended(self, id: str, birth: str) -> EndedInstance | None:
        return instances.ended(self.database, id, birth)

    def children(self, id: str) -> tuple[tuple[str, str], ...]:
        return instances.living_children(self.database, id)

    def instances(self, filter: Filter) -> tuple[InstanceRow, ...]:
        return instances.instances(self.database, filter)

    def life(self, id: str) -> Life | None:
        return instances.life(self.database, id)

    def ledger(self, id: str | None, after: int, limit: int) -> tuple[LedgerRow, ...]:
        return instances.ledger(self.database, id, after, limit)

    def last_change(self) -> int:
        return instances.last_change(self.database)

    def counts(self) -> dict[str, int]:
        return instances.counts(self.database)

    # -- versions -----------------------------------------------------------------------------

    def put_version(self, version: VersionRow) -> str:
        with self.database.transaction():
            return versions.put(self.database, version)

    def versions(self, flow: str | None) -> tuple[VersionRow, ...]:
        return versions.all_of(self.database, flow)

    def version(self, hash: str) -> VersionRow | None:
        return versions.of_hash(self.database, hash)

    def newest(self, flow: str) -> str | None:
        return versions.newest(self.database, flow)

    def pin(self, flow: str, version: str, on: bool) -> None:
        with self.database.transaction():
            versions.pin(self.database, flow, version, on)

    def pins(self) -> frozenset[tuple[str, str]]:
        return versions.pins(self.database)

    def standing(self) -> tuple[Standing, ...]:
        return versions.standing(self.database)

    def sweep_versions(self) -> tuple[tuple[str, str], ...]:
        with self.database.transaction():
            return versions.sweep(self.database)

    # -- daemons and upkeep -------------------------------------------------------------------

    def alive(self, me: str, until: int) -> None:
        with self.database.transaction():
            upkeep.alive(self.database, me, until)

    def daemons(self) -> tuple[DaemonRow, ...]:
        return upkeep.daemons(self.database)

    def sweep(self, now: int, keep: int) -> int:
        with self.database.transaction():
            return upkeep.sweep(self.database, now, keep)

    def put_token(self, hash: str, role: str, name: str, now: int) -> None:
        with self.database.transaction():
            upkeep.put_token(self.database, hash, role, name, now)

    def tokens(self) -> tuple[tuple[str, str, str], ...]:
        return upkeep.tokens(self.database)

    def drop_token(self, name: str) -> bool:
        with self.database.transaction():
            return upkeep.drop_token(self.database, name)
