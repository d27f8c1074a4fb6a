"""The contract of a store, in words and types. One suite of tests runs on every implementation.

Each writing call is one transaction: all of it is on disk when the call returns, or none of it is.
Calls are synchronous; the runtime reaches a store through `StoreThread`, which groups what is
waiting into one commit, each call under a savepoint of its own. Times are ms and always arguments:
a store never reads a clock (a server store may replace them by the database's `now()`).

Every call that changes an instance adds its ledger rows in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import NamedTuple, Protocol

from qoqi.runtime.model import (
    DaemonRow,
    InstanceRow,
    LedgerRow,
    MessageRow,
    Standing,
    Status,
    VersionRow,
    WaitView,
)
from qoqi.vm.dataclass import dataclass
from qoqi.vm.host import (
    Attempt,
    Cancel,
    EndedInstance,
    Message,
    PutResult,
    Save,
    Saved,
    TakenUp,
)


class StoreBusy(Exception):
    """The database did not answer within its limits (503 `database_busy`). Nothing was written."""


class StoreBroken(Exception):
    """The file is no store of ours, of a future schema, or damaged: what, and what to do."""


class StoreHeld(Exception):
    """Another daemon has the file: which."""


class Hold(NamedTuple):
    """What a call makes due it leases to `owner` until `until`, in its own transaction: the daemon
    that asks runs it next, so a lease of its own would be one more commit, one after the other."""

    owner: str
    until: int


@dataclass(frozen=True, slots=True)
class StartRequest:
    """`state` is filled in by the daemon that creates, which has it in its `hold` if it runs it.

    `channels` are (number, name, capacity, private).
    """

    id: str
    birth: str
    flow: str
    version: str
    args: str
    state: str
    parent: str | None
    channels: tuple[tuple[int, str, int, bool], ...]
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class StartOutcome:
    """`created` false: the name was taken by `row`, and nobody holds it for this."""

    created: bool
    row: InstanceRow


class Due(NamedTuple):
    """An instance that may be taken; `takings` as in `Taken`: above 0 it is under suspicion."""

    id: str
    takings: int


@dataclass(frozen=True, slots=True)
class Taken:
    """What a lease gave: the row, its attempts, its messages not taken, its cancellation.

    `row.takings` is how many times before this one it was taken and not written or renewed again:
    each time it may have been what ended its daemon.
    """

    row: InstanceRow
    attempts: tuple[Attempt, ...]
    messages: tuple[Message, ...]
    cancel: Cancel | None

    def for_turn(self, keep: int) -> TakenUp:
        """The same as a turn takes it; `keep` is the daemon's, for a flow that does not say."""
        row = self.row
        return TakenUp(
            row.id,
            row.birth,
            row.flow,
            row.version,
            row.phase,
            row.state,
            row.result,
            self.cancel,
            self.attempts,
            self.messages,
            keep,
            row.stopped_state,
            row.stopped_by is not None,
        )


class SendOutcome:
    """The words a send is answered with."""

    DELIVERED = "Delivered"
    ALREADY = "Already"
    FULL = "Full"
    ENDED = "Ended"
    NO_INSTANCE = "no_instance"
    NO_CHANNEL = "no_channel"


@dataclass(frozen=True, slots=True)
class Sent:
    """`owner` is the incarnation to tell, `answer` the answer a repeat finds, if there is one.

    `taken` is the instance, if the message made it due and it was leased to the `Hold`.
    """

    outcome: str
    seq: int | None = None
    owner: str | None = None
    answer: str | None = None
    taken: Taken | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What `cancel`, `resume`, `end`, `pause`, `post_result` answer, and whom to tell.

    `outcome` is ok, ended, refused, not_stopped or no_instance. `woken` as in `Woken`.
    """

    outcome: str
    text: str = ""
    owner: str | None = None
    woken: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Filter:
    """None asks for all. `after` is the id of the last row of the page before."""

    status: Status | None = None
    phase: str | None = None
    flow: str | None = None
    version: str | None = None
    stage: str | None = None
    since: int | None = None
    text: str | None = None
    after: str | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Life:
    """Everything about one instance, for people."""

    row: InstanceRow
    waits: tuple[WaitView, ...]
    attempts: tuple[Attempt, ...]
    messages: tuple[MessageRow, ...]
    children: tuple[InstanceRow, ...]
    ledger: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class Woken:
    """A save's news: instances (and the incarnations that hold them) to be told.

    `cancels` are those of which a cancellation was asked, `born` those it started that are held.
    """

    owners: tuple[tuple[str, str | None], ...] = field(default=())
    cancels: tuple[tuple[str, str | None], ...] = field(default=())
    born: tuple[InstanceRow, ...] = field(default=())


class Store(Protocol):
    def close(self) -> None: ...

    # -- an instance's life -------------------------------------------------------------------

    def create(self, request: StartRequest, now: int) -> StartOutcome:
        """A new row: waiting, run, an `after` that is over, its channels, at_stage = state.

        In a hold it is leased by the same write, and has no wait to be found by.
        """
        ...

    def due(self, now: int, limit: int, ahead: int = 0) -> list[Due]:
        """What a daemon may take, by when it became due. Walks one index.

        With `ahead`, also what nobody holds and will be due within that time.
        """
        ...

    def next_wake(self, now: int) -> int | None:
        """The earliest `at` of a wait of an unheld instance, or end of a lease, after now."""
        ...

    def lease(self, id: str, me: str, now: int, until: int) -> Taken | None:
        """Takes it if due names its state; None if another was first."""
        ...

    def renew(self, ids: Sequence[str], me: str, now: int, until: int) -> list[str]:
        """The ids whose lease was renewed; one not named is lost."""
        ...

    def save(
        self, id: str, me: str, save: Save, starts: Sequence[StartRequest], now: int
    ) -> tuple[Saved, Woken]:
        """Raises LeaseLost, or PutLost if a put of it came too late: nothing was written then.

        `starts` has a ready row for each of `save.starts`, in the same order.
        """
        ...

    # -- attempts -----------------------------------------------------------------------------

    def attempt(self, key: str) -> Attempt | None:
        """The last one under the key."""
        ...

    def put_result(self, put: PutResult, now: int) -> tuple[Attempt | None, str | None]:
        """First write stands. Gives the attempt as it is now, and who holds the instance."""
        ...

    def put_results(self, puts: Sequence[PutResult], now: int) -> Sequence[Attempt | None]:
        """Several, each as if it were alone, in one transaction."""
        ...

    def give_up(
        self, key: str, attempt: int, word: str, delay: int, now: int
    ) -> tuple[bool, Attempt | None]: ...

    def late(self, key: str, attempt: int, result: str, now: int) -> None:
        """Kept beside the attempt; in the ledger if the attempt is gone (O24)."""
        ...

    def working(self, key: str, attempt: int) -> bool: ...

    def under_way(self, step: str, now: int) -> int:
        """How many attempts of a step are open and before their `until` (`limit n`)."""
        ...

    def begun(self, step: str, since: int) -> int:
        """How many attempts of a step with `limit n per d` began after `since`."""
        ...

    def abandon(self, now: int, queued: bool = False) -> tuple[int, int]:
        """Ends every lease and gives up every open attempt of a body of a daemon: how many.

        With `queued`, also those of extern steps, which supervisors may have under way.

        Only where it is known that no other process lives that had them (`--recover at-once`).
        """
        ...

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
        """With a hold, an instance that the message makes due is leased, unless it is suspected.

        `row` is what `locked` gave in the same transaction.
        """
        ...

    def locked(self, id: str) -> InstanceRow | None:
        """The row, for a caller that writes by what is in it in the same transaction."""
        ...

    def cancel(self, id: str, birth: str | None, cancel: Cancel, now: int, actor: str) -> Asked: ...

    def resume(self, id: str, now: int, actor: str, version: str | None = None) -> Asked:
        """stopped -> waiting (seed 004, "resume and end are a person's"); clears a pause first.

        `version` is what the caller has tried dry; without it, the newest, or its own if pinned.
        """
        ...

    def end(self, id: str, why: str, now: int, keep: int, actor: str) -> Asked: ...

    def pause(self, id: str, now: int, actor: str) -> Asked: ...

    def answer(self, seq: int) -> tuple[str, str] | None:
        """("ok", JSON), ("ended", "") when the instance ended without, None when not yet."""
        ...

    def post_result(
        self, key: str, result: str, now: int, actor: str, asked: str = "null"
    ) -> Asked:
        """A person's answer under a key, as its next attempt; only while stopped, none open.

        `asked` is the question, if no attempt is under the key (flow.stop).
        """
        ...

    # -- reading ------------------------------------------------------------------------------

    def instance(self, id: str) -> InstanceRow | None: ...
    def named(self, id: str, now: int) -> InstanceRow | None:
        """Whom a start of that name would find; one that may be swept makes way for it."""
        ...

    def messages(self, id: str) -> tuple[Message, ...]: ...
    def channels(self, id: str) -> tuple[tuple[int, str, int, int, bool, bool], ...]:
        """(number, name, capacity, inside, closed, private)."""
        ...

    def ended(self, id: str, birth: str) -> EndedInstance | None: ...
    def children(self, id: str) -> tuple[tuple[str, str], ...]:
        """(id, birth) of the instances it started (parent) that have not ended, oldest first."""
        ...

    def instances(self, filter: Filter) -> tuple[InstanceRow, ...]: ...
    def life(self, id: str) -> Life | None: ...
    def ledger(self, id: str | None, after: int, limit: int) -> tuple[LedgerRow, ...]: ...
    def last_change(self) -> int:
        """The seq of the newest row of the ledger; 0 if there is none."""
        ...

    def counts(self) -> dict[str, int]:
        """Instances by status, for health and metrics."""
        ...

    # -- versions -----------------------------------------------------------------------------

    def put_version(self, version: VersionRow) -> str:
        """`new`, `known`, or `behind` if `previous` is not the flow's newest (nothing written)."""
        ...

    def versions(self, flow: str | None) -> tuple[VersionRow, ...]:
        """Oldest first."""
        ...

    def version(self, hash: str) -> VersionRow | None: ...
    def newest(self, flow: str) -> str | None: ...
    def pin(self, flow: str, version: str, on: bool) -> None: ...
    def pins(self) -> frozenset[tuple[str, str]]: ...
    def standing(self) -> tuple[Standing, ...]:
        """How many living instances stand where, by flow, version, stage, status and phase."""
        ...

    def sweep_versions(self) -> tuple[tuple[str, str], ...]:
        """Deletes the oldest versions that nobody needs; gives their (flow, hash)."""
        ...

    # -- daemons and upkeep -------------------------------------------------------------------

    def alive(self, me: str, until: int) -> None: ...
    def daemons(self) -> tuple[DaemonRow, ...]: ...
    def sweep(self, now: int, keep: int) -> int: ...
    def put_token(self, hash: str, role: str, name: str, now: int) -> None: ...
    def tokens(self) -> tuple[tuple[str, str, str], ...]: ...
    def drop_token(self, name: str) -> bool: ...
