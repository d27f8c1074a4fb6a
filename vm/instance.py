"""One instance in a daemon's memory, between its take-up and its last write.

`Instance` holds the machine, what the store knows of its attempts, and what the next save will
write. It has no rules of its own: `steps`, `waits`, `operations`, `finish` and `turn` move it, and
`save` here is the one place where what they noted becomes a `Save`.

Invariants
- Nothing leaves before the save that names it: `noted` steps have no attempt row, `open` ones do.
- Every answer given to a task since the last save is in `answers`, `given` or `puts`.
- An answer belongs to the pass in which it was given, not to the pass of the write.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import field, replace

from qoqi.vm.bytecode.chunk import PeerDef, StepDef, Term
from qoqi.vm.bytecode.opcodes import WaitKind
from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import Failure, FlowError
from qoqi.vm.frames import AtOperation, AtStep, AtWait, Machine, Task
from qoqi.vm.host import (
    SPENT,
    Attempt,
    Cancel,
    ChannelRow,
    GivenMark,
    Host,
    KeptAnswer,
    LeavingStep,
    LedgerLine,
    Limits,
    NameTaken,
    NewAttempt,
    NewCancel,
    NewInstance,
    NewMessage,
    PutLost,
    PutResult,
    Save,
    Saved,
    Started,
    TakenUp,
    WaitRow,
)
from qoqi.vm.interpreter import trace
from qoqi.vm.jsonform import from_json, json_text, parse_json, value_text
from qoqi.vm.keys import RUN, is_undo, key
from qoqi.vm.program import Program
from qoqi.vm.snapshot import freeze
from qoqi.vm.values import UNSET, Closure, InstanceValue, RequestValue, TaskValue

MANY_ANSWERS = 1_000


class Stopped(Exception):
    """The instance can only stop: raised anywhere in a turn, written by `turn.run`."""

    def __init__(self, failure: Failure, *, in_finish: bool = False) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.in_finish = in_finish


class CancelFound(Exception):
    """A cancellation that this flow does not hear was found in its run phase."""

    def __init__(self, cancel: Cancel) -> None:
        super().__init__(cancel.reason)
        self.cancel = cancel


class LeftMemory(Exception):
    """The instance was written and its lease given back: nothing more to do here."""


@dataclass(slots=True)
class OpenAttempt:
    """A step under way. `task` is empty for an undo. `mine`: a body of this daemon runs it."""

    task: str
    step: StepDef
    key: str
    attempt: int
    until: int
    mine: bool


@dataclass(slots=True)
class Noted:
    """A step that will leave after the next save."""

    task: str
    step: StepDef
    row: NewAttempt
    leaving: LeavingStep


@dataclass(slots=True)
class Instance:
    taken: TakenUp
    machine: Machine
    program: Program
    host: Host
    code: Callable[[str], Program]
    limits: Limits
    phase: str
    result: str | None
    kept: dict[str, Attempt] = field(default_factory=dict)
    spent: Counter[str] = field(default_factory=Counter)
    first_started: dict[str, int] = field(default_factory=dict)
    replaying: dict[str, int] = field(default_factory=dict)
    given_here: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    open: dict[str, OpenAttempt] = field(default_factory=dict)
    retries: dict[str, int] = field(default_factory=dict)
    slots: set[str] = field(default_factory=set)
    noted: list[Noted] = field(default_factory=list)
    noted_at: int = 0
    runnable: deque[Task] = field(default_factory=deque)
    groups: dict[str, list[Task]] = field(default_factory=dict)
    seen_messages: set[int] = field(default_factory=set)
    ended_others: dict[tuple[str, str], tuple[str, str, int]] = field(default_factory=dict)
    look_others: bool = True
    told_of: set[str] = field(default_factory=set)
    gate: list[Task] = field(default_factory=list)
    run_value: object = None
    run_ended: bool = False
    seen_cancel: str | None = None
    draining: int = 0
    paused: bool = False
    cancel_told: bool = False
    heard: set[str] = field(default_factory=set)
    ending: bool = False
    last_state: str = ""
    dirty: bool = True
    known_soonest: bool = False
    at_soonest: int | None = None
    last_save: Save | None = None  # of this taking
    watch: Callable[[Task, str, str], None] | None = None
    size: int = 0  # of the state as it was written last
    answered: int = 0  # answers kept in this pass
    # what the next save writes
    answers: list[KeptAnswer] = field(default_factory=list)
    given: list[GivenMark] = field(default_factory=list)
    puts: list[PutResult] = field(default_factory=list)
    taken_messages: list[tuple[int, int]] = field(default_factory=list)
    starts: list[NewInstance] = field(default_factory=list)
    begun: dict[str, Started] = field(default_factory=dict)  # those of `starts`, by name
    sends: list[NewMessage] = field(default_factory=list)
    cancels: list[NewCancel] = field(default_factory=list)
    replies: list[tuple[int, str]] = field(default_factory=list)
    ledger: list[LedgerLine] = field(default_factory=list)
    at_stage: Callable[[], str] | None = None  # the state there, once it is written
    drop_before: int | None = None
    saved_channels: dict[int, ChannelRow] = field(default_factory=dict)

    # -- names and types ----------------------------------------------------------------------

    @property
    def version(self) -> str:
        return self.machine.version

    def count(self, task: Task, name: str) -> int:
        """The next number of this name in the task."""
        n = task.counts.get(name, 0) + 1
        task.counts[name] = n
        return n

    def key(self, task: Task, what: str) -> str:
        machine = self.machine
        n = self.count(task, what)
        return key(machine.id, machine.birth, machine.pass_number, task.name, what, n)

    def asks(self, task: Task, key: str, asked: str) -> None:
        """A task asks something new under a key: told to who watches (a dry run)."""
        if self.watch is not None:
            self.watch(task, key, asked)

    def failure(self, task: Task, code: str, message: str) -> Failure:
        """A failure at the line where the task stands."""
        return Failure(code, message, trace(self.program, task))

    def decode(self, text: str, term: Term) -> object:
        """A value of JSON text, read into a type of this version; FlowError R0004 if it misfits."""
        return from_json(parse_json(text), term, self.program.types, self.program.default)

    def peer(self, flow: str) -> PeerDef:
        """The types of another flow, as this version knows them (itself among them)."""
        for peer in self.program.chunk.peers:
            if peer.flow == flow:
                return peer
        chunk = self.program.chunk
        if flow != chunk.flow:
            raise FlowError("R0010", f"this version knows nothing of {flow}")
        channels = tuple((one.name, one.type, one.answers) for one in chunk.channels)
        return PeerDef(flow, chunk.result, channels)

    def peer_answer(self, flow: str, channel: str) -> Term:
        """The type of the answers of another flow's channel."""
        for name, _, answers in self.peer(flow).channels:
            if name == channel and answers is not None:
                return answers
        raise FlowError("R0010", f"{flow} has no channel {channel} that answers")

    def alive(self) -> list[Task]:
        return [task for task in self.machine.tasks.values() if not task.ended]

    def run_alone(self) -> bool:
        """Whether run is the only task alive; one with a step still out counts as alive (O24)."""
        if any(task.name != RUN and not task.ended for task in self.machine.tasks.values()):
            return False
        return not any(opened.task != RUN for opened in self.open.values())

    # -- giving -------------------------------------------------------------------------------

    def give_order(self, key: str, attempt: int, otherwise: str | None = None) -> int:
        """Notes that an attempt's answer is given now; gives the moment it was first given."""
        row = self.kept.get(key)
        self.replaying.pop(key, None)
        self.given_here.add(key)
        if row is not None and row.given is not None:
            return row.given_at if row.given_at is not None else self.host.now()
        now = self.host.now()
        self.machine.given += 1
        self.given.append(GivenMark(key, attempt, self.machine.given, now, otherwise))
        self._count_answer()
        return now

    def keep(self, key: str, asked: str, result: str, message: int | None = None) -> int:
        """Keeps what a wait, draw or operation gave, first given now."""
        now = self.host.now()
        self.machine.given += 1
        self.answers.append(
            KeptAnswer(
                key, self.machine.pass_number, asked, result, self.machine.given, now, message
            )
        )
        self._count_answer()
        return now

    def _count_answer(self) -> None:
        """A pass that keeps very many answers is noted once: a loop may be missing its stage."""
        self.answered += 1
        if self.answered == MANY_ANSWERS:
            self.note("many_answers", pass_number=self.machine.pass_number, answers=MANY_ANSWERS)

    def tries_used(self, key: str, attempt: int) -> int:
        """Attempts under the key that count: those a person's resume spent do not (O10)."""
        return attempt - self.spent[key]

    def held_back(self, key: str) -> bool:
        """Whether an answer kept earlier must be given first (a replay keeps the order)."""
        order = self.replaying.get(key)
        return order is not None and any(other < order for other in self.replaying.values())

    # -- tasks --------------------------------------------------------------------------------

    def wake(self, task: Task) -> None:
        task.at = None
        self.retries.pop(task.name, None)
        self.slots.discard(task.name)
        self.runnable.append(task)

    def gated(self, task: Task) -> bool:
        """Whether a task of a limited `task.map` has to wait for its turn."""
        if not task.group:
            return False
        limit = int(task.group.rpartition(":")[2])
        before = 0
        for other in self.groups[task.group]:
            if other is task:
                return before >= limit
            if not other.ended:
                before += 1
        return False

    def join_group(self, task: Task) -> None:
        if task.group:
            self.groups.setdefault(task.group, []).append(task)

    # -- writing ------------------------------------------------------------------------------

    def asks_others(self) -> bool:
        """Whether the next save starts others, or finds what a task waits for."""
        return bool(self.starts or self.sends or self.cancels)

    def drop_asked(self) -> None:
        """What tasks wait for will not go with the next save: they are frozen there, unasked.

        Starts go: the tasks have gone on with what the save creates.
        """
        self.noted.clear()
        self.sends.clear()
        self.cancels.clear()

    def note(self, line: str, **detail: object) -> None:
        self.ledger.append(LedgerLine(line, detail))

    async def save(
        self,
        status: str,
        *,
        phase: str | None = None,
        release: bool,
        attempts: bool = False,
        waits: tuple[WaitRow, ...] | None = None,
        stopped_by: Failure | None = None,
        result: str | None = None,
        enter_finish: str | None = None,
    ) -> Saved:
        """Writes the instance. With `attempts`, the noted steps get their rows and may leave."""
        machine, limits = self.machine, self.limits
        state = self._frozen(may_fail=stopped_by is None)
        size = len(state)
        if size > limits.state_limit and stopped_by is None and not self.ending:
            raise Stopped(Failure("R0008", self._too_large(size)))
        if size > limits.state_note >= self.size:
            self.note("large_state", bytes=size)
        rows = tuple(noted.row for noted in self.noted) if attempts else ()
        if rows:
            detail: dict[str, object] = {"steps": [[row.key, row.attempt] for row in rows]}
            for row in rows:
                if is_undo(row.key):
                    detail["undo"] = row.step
            self.note("left", **detail)
        save = Save(
            state=state,
            status=status,
            phase=phase or self.phase,
            stage=machine.stage,
            pass_number=machine.pass_number,
            version=machine.version,
            release=release,
            at_stage=None if self.at_stage is None else self.at_stage(),
            drop_before=self.drop_before,
            waits=self.wait_rows() if waits is None else waits,
            attempts=rows,
            answers=tuple(self.answers),
            given=tuple(self.given),
            puts=tuple(self.puts),
            taken=tuple(self.taken_messages),
            channels=self._channel_rows(),
            starts=tuple(self.starts),
            sends=tuple(self.sends),
            cancels=tuple(self.cancels),
            replies=tuple(self.replies),
            result=result if result is not None else self.result,
            keep=self.program.chunk.keep or self.taken.keep,
            stopped_by=None if stopped_by is None else failure_json(stopped_by),
            error_code=None if stopped_by is None else stopped_by.code,
            refuses=machine.refuses,
            listens=self.program.chunk.listens,
            seen_cancel=self.seen_cancel,
            enter_finish=enter_finish,
            ledger=tuple(self.ledger),
        )
        save.again = _only_state(save, self.last_save)
        try:
            saved = await self.host.still(save)
        except (PutLost, NameTaken):
            await self._put_each()
            raise
        self._written(save)
        return saved

    def _frozen(self, *, may_fail: bool) -> str:
        """The state as text. Where it has none, the instance stops as it was written last."""
        try:
            return freeze(self.machine, self.program)
        except FlowError as too_large:
            if may_fail:
                raise Stopped(Failure(too_large.code, too_large.message)) from None
            return self.last_state or self.taken.state

    async def flush_puts(self) -> None:
        """Writes answers that no save is about to carry. If one lost, memory is not the truth."""
        if not self.puts:
            return
        self._mark_puts()
        if await self._put_each():
            raise PutLost

    def _mark_puts(self) -> None:
        """With when each was given: after a crash it is given at that moment (`flow.now()`)."""
        marks = {(mark.key, mark.attempt): mark for mark in self.given}
        for number, put in enumerate(self.puts):
            mark = marks.pop((put.key, put.attempt), None)
            if mark is not None:
                self.puts[number] = replace(put, given=mark.given, given_at=mark.given_at)
        self.given = list(marks.values())

    async def _put_each(self) -> bool:
        """The slow way of one commit a step: each answer stands or falls alone, in one call.

        Gives whether one came too late. Until they are written they stay in `puts`.
        """
        late = False
        for put, row in zip(self.puts, await self.host.put_results(self.puts), strict=True):
            if row.result != put.result:
                await self.host.late(put.key, put.attempt, put.result)
                late = True
        self.puts = []
        return late

    def _written(self, save: Save) -> None:
        self.answers.clear()
        self.given.clear()
        self.puts.clear()
        self.taken_messages.clear()
        self.starts.clear()
        self.begun.clear()
        self.sends.clear()
        self.cancels.clear()
        self.replies.clear()
        self.ledger.clear()
        self.at_stage = None
        self.drop_before = None
        self.seen_cancel = None
        self.dirty = False
        self.last_state = save.state
        self.last_save = save
        self.size = len(save.state)
        for row in save.channels:
            self.saved_channels[row.channel] = row

    def _channel_rows(self) -> tuple[ChannelRow, ...]:
        rows = []
        for number, (definition, channel) in enumerate(
            zip(self.program.chunk.channels, self.machine.channels, strict=True)
        ):
            row = ChannelRow(
                number,
                definition.name,
                definition.capacity,
                len(channel.items),
                channel.closed,
                definition.inside,
            )
            if self.saved_channels.get(number) != row:
                rows.append(row)
        return tuple(rows)

    def _too_large(self, size: int) -> str:
        """Names the largest parts of the state, for the person who has to make it smaller."""
        chunk, machine = self.program.chunk, self.machine
        parts = [
            (len(value_text(value)), slot.name)
            for slot, value in zip(chunk.flow_slots, machine.flow_slots, strict=False)
            if _is_data(value)
        ]
        parts += [
            (
                sum(len(value_text(item)) for item in channel.items if _is_data(item)),
                definition.name,
            )
            for definition, channel in zip(chunk.channels, machine.channels, strict=True)
        ]
        largest = ", ".join(f"{name} ({length:,} bytes)" for length, name in sorted(parts)[:-4:-1])
        limit = self.limits.state_limit
        return f"the state has {size:,} bytes, over the limit of {limit:,}; largest: {largest}"

    # -- waits as rows ------------------------------------------------------------------------

    def wait_rows(self) -> tuple[WaitRow, ...]:
        """What can wake this instance, as rows of `waits`."""
        rows: list[WaitRow] = []
        for task in self.machine.tasks.values():
            if task.ended:
                continue
            at = task.at
            if isinstance(at, AtStep):
                due = self.retries.get(task.name)
                if due is not None:
                    kind = "slot" if task.name in self.slots else "retry"
                    rows.append(WaitRow(task.name, 0, kind, at=due))
            elif isinstance(at, AtWait):
                rows.extend(_case_rows(task.name, at))
            elif isinstance(at, AtOperation) and at.name != "flow.unwind":
                rows.append(WaitRow(task.name, 0, "after", at=self.host.now()))
        return tuple(rows)

    def look_at(self, moment: int) -> None:
        """Something will be over then."""
        if self.known_soonest and (self.at_soonest is None or moment < self.at_soonest):
            self.at_soonest = moment

    def soonest(self) -> int | None:
        """Nothing here is over before this moment. It may be too early by what is not there
        any more: that costs one look at everything, where `next_time` costs one each time."""
        if not self.known_soonest:
            self.at_soonest, self.known_soonest = self.next_time(), True
        return self.at_soonest

    def forget_soonest(self) -> None:
        self.known_soonest = False

    def next_time(self) -> int | None:
        """The earliest moment at which something here is over."""
        times = [opened.until for opened in self.open.values()]
        times += self.retries.values()
        for task in self.machine.tasks.values():
            if not task.ended and isinstance(task.at, AtWait):
                times += task.at.times.values()
        return min(times, default=None)

    def can_be_woken(self) -> bool:
        """Whether anything from outside can still move this instance (R0009 if not; O39)."""
        for task in self.machine.tasks.values():
            if task.ended:
                continue
            at = task.at
            if isinstance(at, AtOperation) or (
                isinstance(at, AtStep) and task.name in self.retries
            ):
                return True
            if isinstance(at, AtWait) and any(self._wakes(at, case.number) for case in at.cases):
                return True
        return False

    def _wakes(self, at: AtWait, number: int) -> bool:
        case = next(case for case in at.cases if case.number == number)
        match case.kind:
            case WaitKind.RECEIVE:
                channel = case.operands[0]
                assert isinstance(channel, int)
                definition = self.program.chunk.channels[channel]
                return not definition.inside and not self.machine.channels[channel].closed
            case WaitKind.AFTER | WaitKind.AT:
                return number in at.times
            case WaitKind.FLOW | WaitKind.ALL | WaitKind.SETTLE | WaitKind.FIRST:
                return True
            case WaitKind.CANCELLED | WaitKind.ANSWER:
                return True
            case _:
                return False


def _only_state(save: Save, last: Save | None) -> bool:
    """Whether the row and the waits stay as the last save wrote them, but for the state."""
    return (
        last is not None
        and save.status == last.status == "running"
        and not save.release
        and save.phase == last.phase
        and save.stage == last.stage
        and save.pass_number == last.pass_number
        and save.version == last.version
        and save.refuses == last.refuses
        and save.result == last.result
        and save.waits == last.waits
        and save.at_stage is None
        and save.drop_before is None
        and save.stopped_by is None
        and save.seen_cancel is None
        and save.enter_finish is None
    )


def _case_rows(task: str, at: AtWait) -> list[WaitRow]:
    rows = []
    for case in at.cases:
        number, operands = case.number, case.operands
        match case.kind:
            case WaitKind.RECEIVE | WaitKind.SEND:
                channel = operands[0]
                assert isinstance(channel, int)
                kind = "receive" if case.kind is WaitKind.RECEIVE else "send"
                rows.append(WaitRow(task, number, kind, channel=channel))
            case WaitKind.AFTER | WaitKind.AT:
                if number in at.times:
                    rows.append(WaitRow(task, number, "after", at=at.times[number]))
            case WaitKind.FLOW:
                other = operands[0]
                assert isinstance(other, InstanceValue)
                rows.append(
                    WaitRow(task, number, "flow", other=other.name, other_birth=other.birth)
                )
            case WaitKind.ALL | WaitKind.SETTLE | WaitKind.FIRST:
                members = tuple((m.name, m.birth) for m in instances(operands[0]))
                any_ = {WaitKind.ALL: 1, WaitKind.SETTLE: 0, WaitKind.FIRST: 2}[case.kind]
                rows.append(WaitRow(task, number, "all", any=any_, members=members))
            case WaitKind.CANCELLED:
                rows.append(WaitRow(task, number, "cancelled"))
            case WaitKind.ANSWER:
                asked = operands[0]
                rows.append(WaitRow(task, number, "answer", other=getattr(asked, "key", None)))
            case _:
                pass  # a join, a condition: woken from inside only, no row
    return rows


def instances(value: object) -> list[InstanceValue]:
    """A flow list of instances."""
    assert isinstance(value, list)
    return [item for item in value if isinstance(item, InstanceValue)]


def _is_data(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_data(item) for item in value)
    return value is not UNSET and not isinstance(value, Closure | RequestValue | TaskValue)


def failure_json(failure: Failure) -> str:
    """A failure as `attempts.failure` and `instances.stopped_by` keep it: JSON with the calls."""
    return json_text(
        {
            "code": failure.code,
            "message": failure.message,
            "trace": [[line.function, line.file, line.line] for line in failure.trace],
        }
    )


def read_attempts(instance: Instance, attempts: tuple[Attempt, ...]) -> None:
    """Takes the store's attempts in: the last one of each key, and what a replay has to give."""
    for row in sorted(attempts, key=lambda row: (row.key, row.attempt)):
        instance.kept[row.key] = row
        if row.result == SPENT:
            instance.spent[row.key] += 1
        elif row.started is not None:
            instance.first_started.setdefault(row.key, row.started)
        if row.given is not None:
            instance.answered += row.pass_number == instance.machine.pass_number
            instance.machine.given = max(instance.machine.given, row.given)
            if not consumed(instance, row):
                instance.replaying[row.key] = row.given


def consumed(instance: Instance, row: Attempt) -> bool:
    """Whether the task a key belongs to has asked for it: its counter is past the key's number."""
    machine = instance.machine
    _, _, rest = row.key[len(f"{machine.id}/{machine.birth}/") :].partition(":")
    name, _, what = rest.rpartition(":")
    what, _, number = what.rpartition("#")
    if what == "undo":
        return True
    task = machine.tasks.get(name)
    if task is None:
        return False
    if isinstance(task.at, AtStep | AtWait | AtOperation) and task.at.key == row.key:
        return False
    return task.counts.get(what, 0) >= int(number)
