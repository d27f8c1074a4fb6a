"""Dry runs: what an instance would do if it went on from its last stage in another version.

    plan(life, version, reader)        what a resume would take by key, and what it would do next
    dry_run(life, version, reader)     one run: what was asked, where, and how it ended

The real turn runs against a host that writes nothing. It has what a resume would leave: the state
at the last stage, the kept answers, the messages taken since, untaken. It is over before anything
leaves or waits, and when the instance stops, ends, or cannot go over into the version.

A plan compares two such runs over the same kept answers: one in the version that asked, one in the
version it would go on in. So each question has the line that asked it and the line that asks now,
and a person sees what is taken again, what asks something else (F0102), what nobody asks for any
more (F0101), and what is new. Which version asked is read from the ledger, which is for people.

Nothing here takes a lease: what the store says may change while it is read, and then the plan is
of the moment before.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from qoqi.runtime.model import InstanceRow, Phase, Status
from qoqi.runtime.programs import NoVersion, Programs
from qoqi.runtime.store.attempts import marks
from qoqi.runtime.store.protocol import Life
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm import turn
from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import Failure, TraceLine
from qoqi.vm.frames import Task
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import (
    Attempt,
    EndedInstance,
    Event,
    LeavingStep,
    LedgerLine,
    Limits,
    Message,
    NewInstance,
    PutResult,
    Save,
    Saved,
    Started,
    TakenUp,
    TimeOver,
    WaitRow,
)
from qoqi.vm.instance import Instance, LeftMemory
from qoqi.vm.interpreter import trace
from qoqi.vm.jsonform import json_text, parse_json
from qoqi.vm.keys import is_undo
from qoqi.vm.migrate import NotMoved
from qoqi.vm.program import Program
from qoqi.vm.steps import answer_of
from qoqi.vm.text import time_text
from qoqi.vm.values import Time

NOWHERE = TraceLine("", "", 0)

LEAVES, WAITS, STOPS, ENDS = "leaves", "waits", "stops", "ends"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A version that is not deployed: what a rehearsal tries."""

    hash: str
    program: Program
    previous: str | None


@dataclass(slots=True)
class Reader:
    """What dry runs read: a store, its versions, the time; and a candidate, if one is tried."""

    store: StoreThread
    programs: Programs
    now: int
    limits: Limits
    keep: int
    candidate: Candidate | None = None

    def code(self, hash: str) -> Program:
        if self.candidate is not None and hash == self.candidate.hash:
            return self.candidate.program
        return self.programs.code(hash)

    async def lineage(self, old: str, new: str) -> tuple[str, ...]:
        candidate = self.candidate
        if candidate is None or new != candidate.hash:
            return await self.programs.lineage(old, new)
        if candidate.previous is None:
            return ()
        if old == candidate.previous:
            return (new,)
        before = await self.programs.lineage(old, candidate.previous)
        return (*before, new) if before else ()

    async def prepare(self, row: InstanceRow, version: str) -> None:
        known = row.version if self.candidate and version == self.candidate.hash else version
        await self.programs.prepare(known, row.version, row.state, row.at_stage)


# -- one run -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """Something asked under a key, as JSON text, and the line that asked."""

    key: str
    asked: str
    line: TraceLine


@dataclass(frozen=True, slots=True)
class DryRun:
    """`end` is leaves, waits, stops or ends; `next` says in words what would happen then.

    `stages` are those it passed. `failure` is why it stops.
    """

    version: str
    end: str
    questions: tuple[Question, ...] = ()
    stages: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    failure: Failure | None = None


async def dry_run(life: Life, version: str, reader: Reader) -> DryRun:
    """Runs the instance from its last stage in `version`, or its undos where it is ending."""
    await reader.prepare(life.row, version)
    taken = _taken_up(life, version, reader)
    host = _DryHost(life, reader)
    try:
        instance = await turn.take(taken, host, reader.code, reader.limits)
    except NotMoved as stays:
        return DryRun(version, STOPS, failure=stays.failure)
    except (SnapshotError, LookupError) as damage:
        return DryRun(version, STOPS, failure=Failure("R0016", str(damage)))
    questions: list[Question] = []

    def watch(task: Task, key: str, asked: str) -> None:
        calls = trace(instance.program, task)
        questions.append(Question(key, asked, calls[0] if calls else NOWHERE))

    instance.watch = watch
    found = DryRun(version, ENDS)
    try:
        await turn.live(instance)
    except _Over as over:
        found = _outcome(instance, over)
    except LeftMemory:
        pass  # a save that lets an instance leave is over before, so this is an end as any
    notes = [*host.ledger, *instance.ledger]
    stages = tuple(str(line.detail["name"]) for line in notes if line.kind == "stage")
    return replace(found, version=version, questions=tuple(questions), stages=stages)


async def stays(life: Life, version: str, reader: Reader) -> Failure | None:
    """Why the instance's last state does not go over into `version`; None if it does."""
    await reader.prepare(life.row, version)
    try:
        await turn.take(
            _taken_up(life, version, reader), _DryHost(life, reader), reader.code, reader.limits
        )
    except NotMoved as stays:
        return stays.failure
    except (SnapshotError, LookupError) as damage:
        return Failure("R0016", str(damage))
    return None


def _taken_up(life: Life, version: str, reader: Reader) -> TakenUp:
    row = life.row
    attempts = life.attempts
    if row.status is Status.STOPPED:
        changed = {(one.key, one.attempt): word for one, word in marks(attempts)}
        attempts = tuple(
            replace(one, result=changed.get((one.key, one.attempt), one.result)) for one in attempts
        )
    running = row.phase is Phase.RUN
    state = row.at_stage if running and row.at_stage is not None else row.state
    return TakenUp(
        row.id,
        row.birth,
        row.flow,
        version if running else row.version,
        row.phase,
        state,
        row.result,
        None,
        attempts,
        _messages(life, _pass(state) if running else None),
        reader.keep,
        row.state if running else None,
    )


def _pass(state: str) -> int:
    raw = parse_json(state)
    number = raw.get("pass") if isinstance(raw, dict) else None
    return number if isinstance(number, int) else 0


def _messages(life: Life, since: int | None) -> tuple[Message, ...]:
    """Those not taken, and those a resume would untake: taken in the pass of the stage or later."""
    return tuple(
        Message(one.seq, one.channel, one.key, one.value, one.at)
        for one in life.messages
        if one.taken is None or (since is not None and (one.taken_pass or 0) >= since)
    )


class _Over(Exception):
    """The dry run ends here: at a save that would let something happen, or at a wait."""

    def __init__(self, save: Save | None) -> None:
        super().__init__()
        self.save = save


@dataclass(slots=True)
class _DryHost:
    """A Host that reads and never writes; only time that has passed passes."""

    life: Life
    reader: Reader
    ledger: list[LedgerLine] = field(default_factory=list)

    def now(self) -> int:
        return self.reader.now

    def draw_uuid(self) -> str:
        return str(uuid.uuid4())

    def draw_int(self, low: int, high: int) -> int:
        return low

    async def attempt(self, key: str) -> Attempt | None:
        return await self.reader.store.attempt(key)

    async def kept(self) -> tuple[Attempt, ...]:
        return self.life.attempts

    async def still(self, save: Save) -> Saved:
        leaves = save.attempts or save.starts or save.sends or save.cancels
        if leaves or save.status != Status.RUNNING:
            raise _Over(save)
        self.ledger += save.ledger
        return Saved()

    async def start(self, new: NewInstance) -> Started:
        found = await self.reader.store.named(new.id, self.reader.now)
        if found is not None:
            return Started(found.birth, False, found.flow)
        return Started("", True, new.flow)

    async def put_result(self, put: PutResult) -> Attempt:
        raise AssertionError("no body runs in a dry run")

    async def put_results(self, puts: Sequence[PutResult]) -> Sequence[Attempt]:
        raise AssertionError("no body runs in a dry run")

    async def put_alone(self, put: PutResult) -> None:
        raise AssertionError("no body runs in a dry run")

    async def give_up(self, key: str, attempt: int, word: str, delay: int) -> tuple[bool, Attempt]:
        row = next(r for r in self.life.attempts if (r.key, r.attempt) == (key, attempt))
        return True, replace(row, result=word, until=self.reader.now, delay=delay)

    async def late(self, key: str, attempt: int, result: str) -> None:
        raise AssertionError("no body runs in a dry run")

    async def leave(self, step: LeavingStep) -> None:
        raise AssertionError("nothing leaves a dry run")

    def under_way(self, key: str, attempt: int) -> bool:
        return False

    def ready(self) -> bool:
        return False

    async def event(self, until: int | None) -> Event:
        if until is not None and until <= self.reader.now:
            return TimeOver()
        raise _Over(None)

    async def messages(self) -> tuple[Message, ...]:
        return ()

    async def ended(self, instance: str, birth: str) -> EndedInstance | None:
        return await self.reader.store.ended(instance, birth)

    async def children(self) -> tuple[tuple[str, str], ...]:
        return await self.reader.store.children(self.life.row.id)

    async def in_use(self, step: str, per: int) -> int:
        return 0

    async def find(self, flow: str, name: str) -> str | None:
        row = await self.reader.store.instance(name)
        return row.birth if row is not None and row.flow == flow else None

    async def answer(self, seq: int) -> tuple[str, str] | None:
        return await self.reader.store.answer(seq)

    async def newest(self, flow: str) -> str | None:
        return None

    async def lineage(self, old: str, new: str) -> tuple[str, ...]:
        return await self.reader.lineage(old, new)


def _outcome(instance: Instance, over: _Over) -> DryRun:
    version, save = instance.version, over.save
    if save is None:
        return DryRun(version, WAITS, next=_waits(instance, None))
    if save.status == Status.STOPPED:
        return DryRun(version, STOPS, failure=_failure(save.stopped_by))
    if save.status in (Status.DONE, Status.FAILED):
        result = f"it would end, {save.status}, with {save.result or 'null'}"
        return DryRun(version, ENDS, next=(result,))
    leaving = tuple(_leaving(save))
    if leaving:
        return DryRun(version, LEAVES, next=leaving)
    return DryRun(version, WAITS, next=_waits(instance, save.waits))


def _failure(text: str | None) -> Failure:
    raw = parse_json(text or "null")
    if not isinstance(raw, dict):
        return Failure("R0001", text or "")
    calls = raw.get("trace")
    lines = [TraceLine(*line) for line in calls] if isinstance(calls, list) else []
    return Failure(str(raw["code"]), str(raw["message"]), tuple(lines))


def _leaving(save: Save) -> Iterable[str]:
    for new in save.attempts:
        number = f" (attempt {new.attempt})" if new.attempt > 1 else ""
        yield f"{new.step}{_call(new.asked)} would leave{number}"
    for start in save.starts:
        yield f"{start.flow} {start.id} would be started with {_call(start.args)}"
    for sent in save.sends:
        yield f"{sent.value} would be sent to {sent.to}.{sent.channel}"
    for cancel in save.cancels:
        yield f"{cancel.to} would be cancelled: {cancel.reason}"


def _call(asked: str) -> str:
    """The arguments of a step, as a call has them."""
    raw = parse_json(asked)
    if not isinstance(raw, list):
        return f"({asked})"
    return f"({', '.join(json_text(one) for one in raw)})"


def _waits(instance: Instance, rows: tuple[WaitRow, ...] | None) -> tuple[str, ...]:
    """What the instance would wait for, in words."""
    words = [
        f"the answer of {one.step.name}, under way until {time_text(Time(one.until))}"
        for one in instance.open.values()
    ]
    channels = [one.name for one in instance.program.chunk.channels]
    words += [_wait(row, channels) for row in (instance.wait_rows() if rows is None else rows)]
    return tuple(f"it would wait for {word}" for word in words) or ("it would wait",)


def _wait(row: WaitRow, channels: list[str]) -> str:
    match row.kind:
        case "receive" | "send" if row.channel is not None:
            what = "a message of" if row.kind == "receive" else "room in"
            return f"{what} {channels[row.channel]}"
        case "flow":
            return f"the end of {row.other}"
        case "all":
            return f"the end of {', '.join(name for name, _ in row.members)}"
        case "cancelled":
            return "a cancellation"
        case "answer":
            return "an answer"
        case kind:
            at = "" if row.at is None else f" {time_text(Time(row.at))}"
            return f"{'the next try at' if kind == 'retry' else 'the time'}{at}"


# -- the plan of a resume ------------------------------------------------------------------------

TAKEN, OTHER, DROPPED, UNASKED, AGAIN, NEW = "taken", "other", "dropped", "unasked", "again", "new"


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One key. `what` is one of:

    taken     kept, and asked for again: nothing leaves
    other     kept, and something else is asked under it now (F0102)
    dropped   kept, and nobody asks for it any more (F0101)
    unasked   kept, and not asked for as far as this dry run goes
    again     tried before without an answer: a new attempt
    new       asked now, and nothing is kept
    """

    what: str
    key: str
    before: str | None
    now: str | None
    answer: str | None
    version: str | None
    line_before: TraceLine
    line_now: TraceLine


@dataclass(frozen=True, slots=True)
class Plan:
    """`old` is the version it stopped in. `run` is the dry run in the version it would go on in."""

    row: InstanceRow
    old: str
    lines: tuple[PlanLine, ...]
    run: DryRun


async def plan(life: Life, version: str, reader: Reader) -> Plan:
    """What a resume into `version` would take and do."""
    run = await dry_run(life, version, reader)
    asked_in = versions_asked(life)
    before: dict[str, Mapping[str, Question]] = {}
    for old in sorted({*asked_in.values()} - {version}):
        played = await _play_old(life, old, reader)
        before[old] = {one.key: one for one in played.questions}
    now = {one.key: one for one in run.questions}
    before[version] = now
    rows = _last(life)
    lines = [
        _line(run, key, question, rows.get(key), asked_in.get(key), before)
        for key, question in now.items()
    ]
    kept = [row for key, row in rows.items() if key not in now and answer_of(row) is not None]
    over = run.end == ENDS or (run.failure is not None and run.failure.code == "F0101")
    for row in sorted(kept, key=lambda row: (row.given or 1 << 60, row.key)):
        old = asked_in.get(row.key, life.row.version)
        question = before.get(old, {}).get(row.key)
        lines.append(
            PlanLine(
                DROPPED if over else UNASKED,
                row.key,
                row.asked,
                None,
                answer_of(row),
                old,
                NOWHERE if question is None else question.line,
                NOWHERE,
            )
        )
    return Plan(life.row, life.row.version, tuple(lines), run)


async def _play_old(life: Life, old: str, reader: Reader) -> DryRun:
    """The same kept answers in the version that asked for them; nothing, where it is gone."""
    try:
        return await dry_run(life, old, reader)
    except NoVersion:
        return DryRun(old, STOPS)


def _line(
    run: DryRun,
    key: str,
    question: Question,
    row: Attempt | None,
    old: str | None,
    before: Mapping[str, Mapping[str, Question]],
) -> PlanLine:
    asked = before.get(old or "", {}).get(key)
    what = NEW
    if row is not None and answer_of(row) is not None:
        stopped = run.failure is not None and run.failure.code == "F0102"
        what = OTHER if stopped and question is run.questions[-1] else TAKEN
    elif row is not None:
        what = AGAIN
    return PlanLine(
        what,
        key,
        None if row is None else row.asked,
        question.asked,
        None if row is None else answer_of(row),
        old,
        NOWHERE if asked is None else asked.line,
        question.line,
    )


def _last(life: Life) -> dict[str, Attempt]:
    """The last attempt of each key since the stage, undos left out."""
    rows: dict[str, Attempt] = {}
    for row in sorted(life.attempts, key=lambda row: (row.key, row.attempt)):
        if not is_undo(row.key):
            rows[row.key] = row
    return rows


def versions_asked(life: Life) -> dict[str, str]:
    """In which version each kept question was asked, by the ledger."""
    since: list[tuple[int, str]] = []
    for line in life.ledger:
        detail = parse_json(line.detail)
        name = {"started": "version", "resumed": "version", "moved": "new"}.get(line.kind)
        if name is not None and isinstance(detail, dict) and isinstance(detail.get(name), str):
            since.append((line.at, str(detail[name])))
    found: dict[str, str] = {}
    for key, row in _last(life).items():
        begun = [version for at, version in since if at < (row.started or 0)] or [
            version for _, version in since[:1]
        ]
        found[key] = begun[-1] if begun else life.row.version
    return found
