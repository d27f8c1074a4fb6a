"""What the machine asks of the runtime of flows: the Host protocol and the records that pass it.

`turn` decides, the Host writes. The first calls are those of the seed's interface (attempt, still,
put_result, give_up, late, working); the rest is what Go has goroutines and select for, and what the
algorithm reads of other instances. Three hosts exist: `runtime.host.StoreHost`, the dry run of
`qoqi resume` (`runtime.replay`), and that of the simulation.

Results of attempts are text: a value is JSON (a string has quotes), and the bare words below are
how an attempt ended without one. `timeout`: its limit passed. `retry`: the body said flow.retry.
`lost`: no answer came from the network, so it is tried again but may have acted. `failed`: a
mistake in the body. `spent`: a person resumed, and the attempt counts as no try any more.

Nobody changes a record once it is made. Those made for every step are not frozen all the same:
making a frozen one takes several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from qoqi.vm.dataclass import dataclass

TIMEOUT = "timeout"
RETRY = "retry"
FAILED = "failed"
LOST = "lost"
SPENT = "spent"
WORDS = frozenset({TIMEOUT, RETRY, LOST, FAILED, SPENT})


class LeaseLost(Exception):
    """The write was refused: another daemon has the instance, or nobody. Drop it from memory."""


@dataclass(slots=True)
class Attempt:
    """A row of `attempts`. Times in ms; `result` is None while it is under way.

    `failure` has the text of a body that failed. `given` is its place in the order of giving and
    `given_at` when it was first given; `message` the seq a receive took. `undo` is the JSON of the
    undos its body registered: a list of [target, args]. `otherwise` is the JSON of what `else` gave
    in its place, once the attempts were spent: then that is the answer.
    """

    key: str
    attempt: int
    pass_number: int
    asked: str
    owner: str | None = None
    until: int | None = None
    delay: int | None = None
    result: str | None = None
    late: str | None = None
    started: int | None = None
    ended: int | None = None
    given: int | None = None
    given_at: int | None = None
    message: int | None = None
    step: str = ""
    settled: bool = False
    failure: str | None = None
    undo: str | None = None
    otherwise: str | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """Not taken yet, or taken and untaken by a resume. `at` is its arrival, by the store's clock.

    `wants_answer` says that a person or an instance waits for the answer of seq.
    """

    seq: int
    channel: int
    key: str | None
    value: str
    at: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """A cancellation that was asked for; `id` tells two of equal reason apart."""

    id: str
    reason: str
    now: bool
    at: int


@dataclass(frozen=True, slots=True)
class EndedInstance:
    """How another instance ended: `failed` with the reason, or the JSON of what run gave.

    `gone` is one that no longer exists under that birth.
    """

    status: str  # done, failed, gone
    result: str
    at: int


# -- what a save writes ------------------------------------------------------------------------


@dataclass(slots=True)
class NewAttempt:
    """A step that leaves after this save; `until` is its limit.

    `per` is the d of `limit n per d`: its start is counted that long.
    """

    key: str
    attempt: int
    pass_number: int
    asked: str
    until: int
    step: str
    settled: bool
    queue: str | None = None
    per: int | None = None


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """What a wait, poll, draw, start or send gave, kept under its key as attempt 1."""

    key: str
    pass_number: int
    asked: str
    result: str
    given: int
    given_at: int
    message: int | None = None


@dataclass(slots=True)
class GivenMark:
    """An attempt's answer was given to its task: its place in the order of giving.

    `otherwise`: it was that of `else`.
    """

    key: str
    attempt: int
    given: int
    given_at: int
    otherwise: str | None = None


@dataclass(slots=True)
class PutResult:
    """An answer written by the same transaction as the save that follows it.

    It counts only if the attempt has no result yet; else nothing of the save stands.
    """

    key: str
    attempt: int
    result: str
    failure: str | None = None
    undo: str | None = None
    # Where it is written before the save that says so: when it was first given, and in what order.
    given: int | None = None
    given_at: int | None = None


@dataclass(frozen=True, slots=True)
class WaitRow:
    """A row of `waits`: what can wake the instance.

    `kind` is receive, send, after, retry, flow, all, first, join, when, cancelled, answer, slot.
    `any` of an all: 1 wakes at the first member cancelled, 0 waits for all, 2 for the first ended.
    `other`/`other_birth`: the instance waited for. `members` of an all: (id, birth).
    """

    task: str
    case: int
    kind: str
    channel: int | None = None
    other: str | None = None
    other_birth: str | None = None
    any: int | None = None
    at: int | None = None
    members: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ChannelRow:
    channel: int
    name: str
    capacity: int
    inside: int
    closed: bool
    private: bool


@dataclass(frozen=True, slots=True)
class NewInstance:
    """An instance that the next save creates. `parent` None: detached. `args`: a JSON list."""

    id: str
    flow: str
    args: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A send from this instance to another.

    With `asked` the save keeps what it found under `key`, as {"outcome", "seq"}.
    """

    key: str
    to: str
    birth: str
    channel: str
    value: str
    message_key: str
    asks: bool = False
    asked: str | None = None
    pass_number: int = 0


@dataclass(frozen=True, slots=True)
class NewCancel:
    """A cancellation this instance asks of another: `key` is also the cancellation's id.

    The save keeps its outcome under `key`.
    """

    key: str
    to: str
    birth: str
    reason: str
    asked: str
    pass_number: int


@dataclass(slots=True)
class LedgerLine:
    """What happened, for people; the algorithm never reads it. `detail` is JSON-able."""

    kind: str
    detail: dict[str, object] = field(default_factory=dict)
    actor: str | None = None


@dataclass(slots=True)
class Save:
    """One transaction: an instance's row and all that goes with it.

    `drop_before` deletes the attempts of earlier passes (a stage where run was alone); `at_stage`
    is then the plain state there. `waits` are all that stand now. `seen_cancel` is the id of the
    cancellation this save moves into the state. `listens`: a pending cancellation does not keep new
    attempts from being written. `enter_finish`: children are told that their parent ended.
    `again`: but for the state, the row and the waits are those of the last save of this taking.
    `as_found`: the state is the row's own, written back by who could not run it.
    """

    state: str
    status: str
    phase: str
    stage: str | None
    pass_number: int
    version: str
    release: bool
    at_stage: str | None = None
    drop_before: int | None = None
    waits: tuple[WaitRow, ...] = ()
    attempts: tuple[NewAttempt, ...] = ()
    answers: tuple[KeptAnswer, ...] = ()
    given: tuple[GivenMark, ...] = ()
    puts: tuple[PutResult, ...] = ()
    taken: tuple[tuple[int, int], ...] = ()  # (seq, pass in force when it was taken)
    channels: tuple[ChannelRow, ...] = ()
    starts: tuple[NewInstance, ...] = ()
    sends: tuple[NewMessage, ...] = ()
    cancels: tuple[NewCancel, ...] = ()
    replies: tuple[tuple[int, str], ...] = ()  # (seq of a request, JSON of its answer)
    result: str | None = None
    keep: int = 0
    stopped_by: str | None = None
    error_code: str | None = None
    refuses: str | None = None
    listens: bool = False
    seen_cancel: str | None = None
    enter_finish: str | None = None
    ledger: tuple[LedgerLine, ...] = ()
    again: bool = False
    as_found: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """The instance of a name: found, or with `created` the one that the next save creates.

    `flow` is the flow the name belongs to (R0010 if it is another).
    """

    birth: str
    created: bool
    flow: str


@dataclass(frozen=True, slots=True)
class SentMessage:
    """What a send found: Delivered, Already, Full or Ended (and the seq, for an ask)."""

    key: str
    outcome: str
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """What a cancellation of another instance found: ok, ended, or `refused: TEXT`."""

    key: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Saved:
    """What a save gave back. With `may_leave` false its new attempts were not written.

    A cancellation is given only if one is pending that this save did not clear.
    """

    cancel: Cancel | None = None
    paused: bool = False
    may_leave: bool = True
    sent: tuple[SentMessage, ...] = ()
    cancelled: tuple[CancelAsked, ...] = ()


class PutLost(Exception):
    """A save carried an answer for an attempt that has a result already: nothing was written."""


class NameTaken(Exception):
    """A save would create an instance whose name was taken meanwhile: nothing was written."""


class NotDeployed(Exception):
    """An instance is to be started of a flow that has no version here."""

    def __init__(self, flow: str) -> None:
        super().__init__(f"no version of {flow} is deployed")
        self.flow = flow


# -- what comes back ---------------------------------------------------------------------------


@dataclass(slots=True)
class StepEnded:
    """A body of this daemon ended. `result` is JSON or a bare word; nothing is written yet.

    `delay` for RETRY. `network` says that the retry was no answer from the network (O5), and `why`
    what it said instead, for people.
    """

    key: str
    attempt: int
    result: str
    delay: int | None = None
    failure: str | None = None
    undo: str | None = None
    network: bool = False
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """Something landed for this instance: look at messages, attempts, other instances.

    `other` is the instance that ended, if that is the news.
    """

    other: str | None = None


@dataclass(frozen=True, slots=True)
class CancelTold:
    """A cancellation landed: save at once, it will give it back."""


@dataclass(frozen=True, slots=True)
class SlotFree:
    """An attempt of a step with a `limit` has ended: who waits for its slot looks again."""

    step: str


@dataclass(frozen=True, slots=True)
class TimeOver:
    """`until` of the call to event has passed."""


@dataclass(frozen=True, slots=True)
class Drain:
    """The daemon is stopping: write the instance and leave memory."""


Event = StepEnded | Told | CancelTold | SlotFree | TimeOver | Drain


@dataclass(slots=True)
class LeavingStep:
    """A step whose attempt is written: it may leave now, and is given up at `until`."""

    key: str
    attempt: int
    step: int
    args: tuple[object, ...]
    until: int
    version: str


class Host(Protocol):
    """One host serves one instance that a daemon holds under a lease."""

    def now(self) -> int:
        """The store's clock, in ms."""
        ...

    def draw_uuid(self) -> str: ...
    def draw_int(self, low: int, high: int) -> int:
        """At least low, below high."""
        ...

    async def attempt(self, key: str) -> Attempt | None:
        """The last attempt under a key: under way, given up, or with its result."""
        ...

    async def kept(self) -> tuple[Attempt, ...]:
        """All attempts of this instance that the store has, in no order."""
        ...

    async def still(self, save: Save) -> Saved:
        """Writes. Raises LeaseLost, PutLost or NameTaken; nothing is written then."""
        ...

    async def put_result(self, put: PutResult) -> Attempt:
        """The first to land stands: gives the attempt as it is now."""
        ...

    async def put_results(self, puts: Sequence[PutResult]) -> Sequence[Attempt]:
        """Several at once, each as if it were alone."""
        ...

    async def give_up(self, key: str, attempt: int, word: str, delay: int) -> tuple[bool, Attempt]:
        """TIMEOUT needs `until` to be past; RETRY and LOST are said from inside the step."""
        ...

    async def late(self, key: str, attempt: int, result: str) -> None: ...

    async def put_alone(self, put: PutResult) -> None:
        """An answer of a body here whose instance was lost: kept, or a late one; never dropped."""
        ...

    async def leave(self, step: LeavingStep) -> None:
        """Starts a body in the background; its end comes as StepEnded."""
        ...

    def under_way(self, key: str, attempt: int) -> bool:
        """Whether a body of this daemon runs that attempt."""
        ...

    def ready(self) -> bool:
        """Whether `event` has something to give that has happened already."""
        ...

    async def event(self, until: int | None) -> Event:
        """The next thing that happens, or TimeOver at `until`."""
        ...

    async def messages(self) -> tuple[Message, ...]:
        """Those not taken, by seq."""
        ...

    async def ended(self, instance: str, birth: str) -> EndedInstance | None:
        """How an instance ended; None while it lives."""
        ...

    async def children(self) -> tuple[tuple[str, str], ...]:
        """(id, birth) of the instances this one started that have not ended."""
        ...

    async def in_use(self, step: str, per: int) -> int:
        """Of a step with a `limit`: attempts under way, or begun within the last `per` ms."""
        ...

    async def start(self, new: NewInstance) -> Started:
        """Finds the name, or makes ready what the next save creates under it.

        Raises NotDeployed, or FlowError where the arguments do not fit the flow.
        """
        ...

    async def find(self, flow: str, name: str) -> str | None:
        """The birth of the instance of that name, if it is of the flow."""
        ...

    async def answer(self, seq: int) -> tuple[str, str] | None:
        """The answer to a message sent with `asks`: ("ok", JSON) or ("ended", ""); None yet."""
        ...

    async def newest(self, flow: str) -> str | None:
        """The newest version's hash, or None if this instance is pinned to its own."""
        ...

    async def lineage(self, old: str, new: str) -> tuple[str, ...]:
        """The versions after `old` up to `new`, the oldest first, each loaded.

        Empty if `new` does not come after `old`; LookupError if one between is gone.
        """
        ...


# -- what turn is given ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakenUp:
    """An instance as its daemon took it: the row's texts, its attempts, messages, cancellation.

    `keep` is how long it is kept once ended, if its flow does not say. `stopped_state` is the state
    at the stop, between a person's resume and the first save after it. `stopped`: a cancellation
    is why a stopped instance was taken.
    """

    id: str
    birth: str
    flow: str
    version: str
    phase: str
    state: str
    result: str | None
    cancel: Cancel | None
    attempts: tuple[Attempt, ...]
    messages: tuple[Message, ...]
    keep: int
    stopped_state: str | None = None
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What `turn` needs of the daemon's settings; ms and counts."""

    tries: int = 100
    retry: int = 1_000
    far: int = 30_000
    wave: int = 10
    slice: int = 20_000
    state_note: int = 1 << 20
    state_limit: int = 16 << 20
    value_limit: int = 1 << 20
