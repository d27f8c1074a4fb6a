"""The life of an instance as data: statuses, phases, the table of transitions, rows and settings.

The table is the seed's ("What an instance can be"), with the lines that draining, pausing, poison
and an Ok with undone business need. Nothing else changes a status: the store checks each of its
writes against `TRANSITIONS`, and a test takes every line.
"""

from __future__ import annotations

from enum import StrEnum

from qoqi.vm.dataclass import dataclass


class Status(StrEnum):
    """waiting: in the store, with the waits that can wake it.
    running: held by a daemon under a lease.
    stopped: not ended and going nowhere alone; a person resumes, cancels or ends it.
    done: run returned.
    failed: cancelled, its undos run; or ended by a person.
    """

    WAITING = "waiting"
    RUNNING = "running"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


ENDED = frozenset({Status.DONE, Status.FAILED})


class Phase(StrEnum):
    """run: carrying out its run. finish: cancelling its children and running its undos."""

    RUN = "run"
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class Transition:
    """One line of the table: from (None: new) to (None: gone), by which call of the store."""

    status: Status | None
    phase: Phase | None
    when: str
    to: Status | None
    to_phase: Phase | None
    by: str


_RUN, _FINISH = Phase.RUN, Phase.FINISH
_WAITING, _RUNNING, _STOPPED = Status.WAITING, Status.RUNNING, Status.STOPPED
_DONE, _FAILED = Status.DONE, Status.FAILED

TRANSITIONS: tuple[Transition, ...] = (
    Transition(None, None, "started from outside", _WAITING, _RUN, "create"),
    Transition(None, None, "started by another instance", _WAITING, _RUN, "save"),
    Transition(_WAITING, _RUN, "a wait is over, or cancel is set", _RUNNING, _RUN, "lease"),
    Transition(_WAITING, _FINISH, "a wait is over", _RUNNING, _FINISH, "lease"),
    Transition(_STOPPED, _RUN, "cancel is set", _RUNNING, _RUN, "lease"),
    Transition(_RUNNING, _RUN, "the lease has run out", _RUNNING, _RUN, "lease"),
    Transition(_RUNNING, _FINISH, "the lease has run out", _RUNNING, _FINISH, "lease"),
    Transition(_RUNNING, _RUN, "steps leave, or the next wake is near", _RUNNING, _RUN, "save"),
    Transition(_RUNNING, _FINISH, "an undo leaves, or it waits near", _RUNNING, _FINISH, "save"),
    Transition(_RUNNING, _RUN, "the next wake is far, drained, or paused", _WAITING, _RUN, "save"),
    Transition(_RUNNING, _FINISH, "the next wake is far, or drained", _WAITING, _FINISH, "save"),
    Transition(_RUNNING, _RUN, "run returned", _DONE, _RUN, "save"),
    Transition(_RUNNING, _RUN, "cancelled, or an Err with more to do", _RUNNING, _FINISH, "save"),
    Transition(_RUNNING, _RUN, "the same, and its next wake is far", _WAITING, _FINISH, "save"),
    Transition(_RUNNING, _RUN, "cancelled, and a step may have acted", _STOPPED, _FINISH, "save"),
    Transition(_RUNNING, _RUN, "cancelled, nothing to undo", _FAILED, _FINISH, "save"),
    Transition(_RUNNING, _FINISH, "the undos of an Err have run", _DONE, _FINISH, "save"),
    Transition(_RUNNING, _FINISH, "the undos of a cancellation have run", _FAILED, _FINISH, "save"),
    Transition(_RUNNING, _RUN, "a mistake, attempts spent, flow.stop", _STOPPED, _RUN, "save"),
    Transition(_RUNNING, _FINISH, "an undo gave Err", _STOPPED, _FINISH, "save"),
    Transition(_STOPPED, _RUN, "a person resumes it", _WAITING, _RUN, "resume"),
    Transition(_STOPPED, _FINISH, "a person resumes it", _WAITING, _FINISH, "resume"),
    Transition(_STOPPED, _RUN, "a person ends it", _FAILED, _RUN, "end"),
    Transition(_STOPPED, _FINISH, "a person ends it after a cancellation", _FAILED, _FINISH, "end"),
    Transition(_STOPPED, _FINISH, "a person ends it after an Err", _DONE, _FINISH, "end"),
    Transition(_DONE, None, "keep is over and nothing has it", None, None, "sweep"),
    Transition(_FAILED, None, "keep is over and nothing has it", None, None, "sweep"),
)

ALLOWED = frozenset((t.status, t.phase, t.to, t.to_phase, t.by) for t in TRANSITIONS)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every length of time and count of the runtime, in ms; each is a flag of `qoqi serve`."""

    lease: int = 30_000
    renew: int = 10_000
    heartbeat: int = 10_000
    alive: int = 30_000
    look: int = 1_000
    look_limit: int = 50
    far: int = 30_000
    wave: int = 10
    tries: int = 100
    retry: int = 1_000
    keep: int = 30 * 86_400_000
    drain: int = 30_000
    slice: int = 20_000
    state_note: int = 1 << 20
    state_limit: int = 16 << 20
    value_limit: int = 1 << 20
    recover_at_once: bool = False


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """A row of `instances`. Texts `state`, `at_stage`, `args`, `result` are JSON; times in ms.

    `stopped_state`: between a resume and the next save, the state at the stop (its undos, O2).
    """

    id: str
    birth: str
    flow: str
    version: str
    parent: str | None
    status: Status
    phase: Phase
    since: int
    stage: str | None
    pass_number: int
    state: str
    at_stage: str | None
    args: str
    result: str | None = None
    stopped_by: str | None = None
    error_code: str | None = None
    cancel: str | None = None
    lease_owner: str | None = None
    lease_until: int | None = None
    keep_until: int | None = None
    paused: bool = False
    note: str | None = None
    refuses: str | None = None
    takings: int = 0
    created: int = 0
    stopped_state: str | None = None


@dataclass(frozen=True, slots=True)
class MessageRow:
    seq: int
    instance: str
    channel: int
    key: str | None
    value: str
    at: int
    taken: int | None
    taken_pass: int | None
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class WaitView:
    """A row of `waits`, for people."""

    task: str
    case: int
    kind: str
    channel: int | None
    other: str | None
    left: int | None
    at: int | None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    seq: int
    instance: str
    at: int
    kind: str
    detail: str
    actor: str | None


@dataclass(frozen=True, slots=True)
class VersionRow:
    hash: str
    flow: str
    previous: str | None
    bytecode: bytes
    debug: bytes
    deployed_at: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How many living instances of a version are at a stage, in a status and phase."""

    flow: str
    version: str
    stage: str | None
    status: str
    phase: str
    instances: int


@dataclass(frozen=True, slots=True)
class DaemonRow:
    incarnation: str
    alive_until: int
