"""The records of versions and of going on: who stands where, plans of a resume, rehearsals.

They pass over HTTP as those of `wire` do.
"""

from __future__ import annotations

from qoqi.runtime.api.wire import InstanceView
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class StandsItem:
    """How many living instances of a version are at a stage, in a status and phase."""

    stage: str | None
    status: str
    phase: str
    instances: int


@dataclass(frozen=True, slots=True)
class VersionItem:
    """A deployed version. `pinned`: its instances stay in it. `size`: of the bytecode, in bytes."""

    hash: str
    flow: str
    previous: str | None
    deployed_at: int
    size: int
    newest: bool
    pinned: bool
    stands: tuple[StandsItem, ...]


@dataclass(frozen=True, slots=True)
class VersionList:
    """The oldest first."""

    versions: tuple[VersionItem, ...]


@dataclass(frozen=True, slots=True)
class PinAnswer:
    """Whether the version is pinned now."""

    flow: str
    version: str
    pinned: bool


@dataclass(frozen=True, slots=True)
class SweepAnswer:
    """How many instances were deleted, and which versions (flow and hash)."""

    deleted: int
    versions: tuple[VersionName, ...]


@dataclass(frozen=True, slots=True)
class VersionName:
    flow: str
    hash: str


# -- resume ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlanItem:
    """A key since the last stage: asked before at a line, and now at another.

    `what` is taken, other, dropped, unasked, again or new; `version` is the one that asked before.
    """

    what: str
    key: str
    before: object
    now: object
    answer: object
    version: str | None
    line_before: str
    line_now: str


@dataclass(frozen=True, slots=True)
class PlanView:
    """What a resume would take and do.

    `end` is leaves, waits, stops or ends, `next` what would happen then. `code`, `message` and
    `lines` say why it would stop.
    """

    old: str
    new: str
    stage: str | None
    items: tuple[PlanItem, ...]
    stages: tuple[str, ...]
    end: str
    next: tuple[str, ...]
    code: str | None
    message: str | None
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ResumeAnswer:
    """`outcome` is ok, or dry: then nothing was changed, and `plan` says what a resume would do.

    A resume of a paused instance ends its pause, and has no plan.
    """

    outcome: str
    instance: InstanceView
    plan: PlanView | None


@dataclass(frozen=True, slots=True)
class AnswerBody:
    """A person's answer, as JSON."""

    value: object


@dataclass(frozen=True, slots=True)
class AttemptAnswer:
    """`resumed`: it was the answer to a question, and the instance goes on."""

    key: str
    resumed: bool
    instance: InstanceView


# -- rehearsals --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CandidateBody:
    """A version that is not deployed; `bytecode` and `debug` are base64."""

    hash: str
    flow: str
    bytecode: str
    debug: str
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class RehearsalBody:
    """`sample`: at most so many instances of each flow, stopped ones first; without it, all."""

    versions: tuple[CandidateBody, ...]
    sample: int | None = None


@dataclass(frozen=True, slots=True)
class RehearsedItem:
    """How instances at a stage would fare.

    `outcome` is leaves, waits, ends or stops; one that stops has its code, message and line.
    `names` are some of them.
    """

    outcome: str
    stage: str | None
    status: str
    code: str | None
    message: str | None
    line: str
    instances: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RehearsalView:
    """One flow: how many living instances it has, how many were tried, how they fared."""

    flow: str
    version: str
    living: int
    tried: int
    outcomes: tuple[RehearsedItem, ...]


@dataclass(frozen=True, slots=True)
class RehearsalList:
    flows: tuple[RehearsalView, ...]
