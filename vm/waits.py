"""Waits: which of their cases has happened, the first by the store's clock (seed 004, section 2).

A message happened when it arrived, a time at its `at`, another instance when it ended, a
cancellation when it was asked; ties go to the earlier case. What a wait gave is kept under its key,
so that a replay is given the same case and value without waiting.
"""

from __future__ import annotations

from qoqi.vm.bytecode.chunk import Term
from qoqi.vm.bytecode.opcodes import WaitKind
from qoqi.vm.dataclass import dataclass
from qoqi.vm.effects import Case, Wait
from qoqi.vm.failure import Failure, FlowError
from qoqi.vm.frames import AtWait, Task
from qoqi.vm.host import Attempt, Message
from qoqi.vm.instance import Instance, Stopped, instances
from qoqi.vm.interpreter import call, resume
from qoqi.vm.jsonform import from_json, json_text, parse_json, to_json
from qoqi.vm.steps import another_question
from qoqi.vm.values import (
    AskValue,
    Closure,
    Duration,
    InstanceValue,
    RequestValue,
    TaskValue,
    Time,
    Variant,
)


@dataclass(frozen=True, slots=True)
class Happened:
    """A case that is over: when, which, what it gives; `message` is the seq a receive takes.

    `keeps` is false for what follows from the instance's own tasks: a replay finds it again.
    """

    at: int
    number: int
    value: object
    message: int | None = None
    keeps: bool = True


MAP = '[[0,"MAP"]]'
"""What a `task.map` asks: a wait for its tasks that the machine reached as an operation."""


_OF_INSTANCES = frozenset({WaitKind.FLOW, WaitKind.ALL, WaitKind.SETTLE, WaitKind.FIRST})


def begin(instance: Instance, task: Task, effect: Wait) -> None:
    """A task begins to wait: times are fixed now, by the clock of the store."""
    key = instance.key(task, "wait")
    now = instance.host.now()
    times: dict[int, int] = {}
    for case in effect.cases:
        moment = _moment(case, now)
        if moment is not None:
            times[case.number] = moment
            instance.look_at(moment)
    asked = json_text([_question(instance, case) for case in effect.cases])
    task.at = AtWait(key, effect.cases, times, now, asked)
    if any(case.kind in _OF_INSTANCES for case in effect.cases):
        instance.look_others = True  # one may have ended before anybody waited for it
    instance.asks(task, key, asked)


def _moment(case: Case, now: int) -> int | None:
    if case.kind not in (WaitKind.AFTER, WaitKind.AT):
        return None
    value = case.operands[0]
    if isinstance(value, Variant):
        if value.name == "None":
            return None
        value = value.payload[0]
    if isinstance(value, Duration):
        return now + value.ms
    assert isinstance(value, Time)
    return value.ms


def _question(instance: Instance, case: Case) -> list[object]:
    """A case as it is compared on a replay: its kind and whom it asks, never a length of time."""
    what = case.operands[0] if case.operands else None
    match case.kind:
        case WaitKind.RECEIVE | WaitKind.SEND:
            assert isinstance(what, int)
            return [case.number, case.kind.name, instance.program.chunk.channels[what].name]
        case WaitKind.FLOW:
            assert isinstance(what, InstanceValue)
            return [case.number, case.kind.name, what.name]
        case WaitKind.ALL | WaitKind.SETTLE | WaitKind.FIRST:
            return [case.number, case.kind.name, [one.name for one in instances(what)]]
        case _:
            return [case.number, case.kind.name]


async def look(instance: Instance, task: Task) -> bool:
    """Goes on if the wait is over: by what is kept under its key, else by what has happened."""
    at = task.at
    assert isinstance(at, AtWait)
    kept = instance.kept.get(at.key)
    if kept is not None and kept.result is not None:
        return _give_kept(instance, task, at, kept)
    happened = await _first(instance, at)
    if happened is None:
        return False
    if happened.keeps:
        result = json_text({"case": happened.number, "value": _value_json(happened.value)})
        task.now = instance.keep(at.key, at.asked, result, happened.message)
    else:
        task.now = max([task.now, *_moments(instance, at, happened.number)])
    _take(instance, at, happened.number, happened.message)
    _give(instance, task, happened.number, happened.value)
    return True


def _moments(instance: Instance, at: AtWait, number: int) -> list[int]:
    """When the tasks that a case joined took their last answers: what follows from them is no
    earlier, and a replay finds the same."""
    what = next(case for case in at.cases if case.number == number).operands[0]
    joined = what if isinstance(what, list) else [what]
    return [instance.machine.tasks[one.name].now for one in joined if isinstance(one, TaskValue)]


def _give(instance: Instance, task: Task, number: int, value: object) -> None:
    at = task.at
    assert isinstance(at, AtWait)
    if at.asked == MAP:
        resume(task, value)  # an operation: it gives its value alone
    else:
        resume(task, value, number)
    instance.wake(task)


def _value_json(value: object) -> object:
    return to_json(value.value if isinstance(value, RequestValue) else value)


def _take(instance: Instance, at: AtWait, number: int, message: int | None) -> None:
    """What taking the case changes: the channel it came from, the cancellation it heard."""
    case = next(case for case in at.cases if case.number == number)
    if case.kind is WaitKind.RECEIVE:
        channel = case.operands[0]
        assert isinstance(channel, int)
        items = instance.machine.channels[channel].items
        for position, item in enumerate(items):
            assert isinstance(item, tuple)
            if message is None or item[2] == message:
                del items[position]
                break
    elif case.kind is WaitKind.SEND:
        channel, value = case.operands
        assert isinstance(channel, int)
        put_inside(instance, channel, value)
    elif case.kind is WaitKind.CANCELLED and instance.machine.cancels:
        instance.machine.cancels.pop(0)


def put_inside(instance: Instance, channel: int, value: object) -> None:
    """A value from inside goes behind what the channel has; seq 0 says it is no message."""
    instance.machine.channels[channel].items.append((value, instance.host.now(), 0))


async def _first(instance: Instance, at: AtWait) -> Happened | None:
    """Of the cases that have happened, the earliest.

    Ties go to the earlier case, except that of two messages the one that came first wins.
    """
    best: Happened | None = None
    now = instance.host.now()
    for case in at.cases:
        happened = await _happened(instance, at, case, now)
        if happened is not None and (best is None or _before(happened, best)):
            best = happened
    return best


def _before(one: Happened, other: Happened) -> bool:
    if one.at == other.at and one.message is not None and other.message is not None:
        return one.message < other.message
    return one.at < other.at


async def _happened(instance: Instance, at: AtWait, case: Case, now: int) -> Happened | None:
    number, machine = case.number, instance.machine
    what = case.operands[0] if case.operands else None
    match case.kind:
        case WaitKind.RECEIVE:
            assert isinstance(what, int)
            items = machine.channels[what].items
            if not items:
                return None
            item = items[0]
            assert isinstance(item, tuple)
            value, arrived, seq = item
            if instance.program.chunk.channels[what].answers is not None:
                value = RequestValue(what, seq, value)
            return Happened(arrived, number, value, seq or None)
        case WaitKind.SEND:
            assert isinstance(what, int)
            definition = instance.program.chunk.channels[what]
            room = len(machine.channels[what].items) < definition.capacity
            return Happened(now, number, ()) if room else None
        case WaitKind.AFTER | WaitKind.AT:
            moment = at.times.get(number)
            return Happened(moment, number, ()) if moment is not None and moment <= now else None
        case WaitKind.FLOW:
            assert isinstance(what, InstanceValue)
            ended = await _ended(instance, what)
            if ended is None:
                return None
            return Happened(ended[2], number, _outcome(instance, what, ended))
        case WaitKind.ALL | WaitKind.SETTLE | WaitKind.FIRST:
            return await _members(instance, case, instances(what), now)
        case WaitKind.JOIN:
            assert isinstance(what, TaskValue)
            return _joined(instance, number, machine.tasks.get(what.name), now)
        case WaitKind.TASKS:
            return _all_tasks(instance, number, what, now)
        case WaitKind.WHEN:
            assert isinstance(what, Closure)
            true = call(instance.program, what.function, what.captured, instance.machine.flow_slots)
            return Happened(now, number, ()) if true is True else None
        case WaitKind.CANCELLED:
            if not machine.cancels:
                return None
            asked = parse_json(machine.cancels[0])
            assert isinstance(asked, dict)
            moment, reason = asked["at"], asked["reason"]
            assert isinstance(moment, int)
            return Happened(moment, number, reason)
        case WaitKind.ANSWER:
            assert isinstance(what, AskValue)
            return await _answered(instance, number, what, now)


async def _ended(instance: Instance, other: InstanceValue) -> tuple[str, str, int] | None:
    found = instance.ended_others.get((other.name, other.birth))
    looks = instance.look_others or other.name in instance.told_of
    if found is None and looks and other.name not in instance.begun:
        ended = await instance.host.ended(other.name, other.birth)
        if ended is not None:
            found = (ended.status, ended.result, ended.at)
            instance.ended_others[other.name, other.birth] = found
    return found


def _outcome(instance: Instance, other: InstanceValue, ended: tuple[str, str, int]) -> object:
    """Result<T, Cancelled>: what run gave, or why there is nothing."""
    status, result, _ = ended
    types = instance.program.types
    if status == "done":
        return types.ok(_peer_result(instance, other, result))
    reason = "gone" if status == "gone" else _reason(result)
    return types.err(types.struct("Cancelled", reason))


def _peer_result(instance: Instance, other: InstanceValue, result: str) -> object:
    peer = instance.peer(other.flow)
    return instance.decode(result, peer.result)


def _reason(result: str) -> str:
    raw = parse_json(result) if result else None
    if isinstance(raw, dict) and isinstance(raw.get("reason"), str):
        return str(raw["reason"])
    return ""


async def _members(
    instance: Instance, case: Case, members: list[InstanceValue], now: int
) -> Happened | None:
    found = [(other, await _ended(instance, other)) for other in members]
    ended = [(position, other, end) for position, (other, end) in enumerate(found) if end]
    types = instance.program.types
    if case.kind is WaitKind.FIRST:
        if not ended:
            return None
        position, other, end = min(ended, key=lambda one: (one[2][2], one[0]))
        return Happened(end[2], case.number, (position, _outcome(instance, other, end)))
    if case.kind is WaitKind.ALL:
        failed = [one for one in ended if one[2][0] != "done"]
        if failed:
            _, other, end = min(failed, key=lambda one: (one[2][2], one[0]))
            return Happened(end[2], case.number, _outcome(instance, other, end))
    if len(ended) < len(members):
        return None
    last = max((end[2] for _, _, end in ended), default=now)
    outcomes = [_outcome(instance, other, end) for _, other, end in ended]
    if case.kind is WaitKind.SETTLE:
        return Happened(last, case.number, outcomes)
    values = [one.payload[0] for one in outcomes if isinstance(one, Variant)]
    return Happened(last, case.number, types.ok(values))


def _joined(instance: Instance, number: int, task: Task | None, now: int) -> Happened | None:
    if task is None or not task.ended:
        return None
    if any(opened.task == task.name for opened in instance.open.values()):
        return None  # cancelled, and its steps under way end first
    types = instance.program.types
    if task.failure is None and not task.cancelled:
        return Happened(now, number, types.ok(task.value), keeps=False)
    message = "the task was cancelled" if task.failure is None else task.failure.message
    place = "" if task.failure is None or not task.failure.trace else _place(task.failure)
    return Happened(now, number, types.err(types.struct("Failure", message, place)), keeps=False)


def _place(failure: Failure) -> str:
    line = failure.trace[0]
    return f"{line.file}:{line.line}" if line.file else line.function


def _all_tasks(instance: Instance, number: int, what: object, now: int) -> Happened | None:
    assert isinstance(what, list)
    values = []
    waiting = False
    for one in what:
        assert isinstance(one, TaskValue)
        task = instance.machine.tasks[one.name]
        if task.ended and (task.failure is not None or task.cancelled):
            failure = task.failure or Failure("R0001", "the task was cancelled")
            raise TaskFailed(failure)
        waiting = waiting or not task.ended
        values.append(task.value)
    return None if waiting else Happened(now, number, values, keeps=False)


class TaskFailed(Exception):
    """A task of a `task.map` failed: its caller fails with the same failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


async def _answered(instance: Instance, number: int, asking: AskValue, now: int) -> Happened | None:
    """Result<R, SendError> of an ask: an error at once, else the answer when it is there."""
    types = instance.program.types
    word, _, rest = asking.key.partition(":")
    if not word.isdigit():
        return Happened(now, number, types.err(types.enum("SendError").variant(word)))
    answer = await instance.host.answer(int(word))
    if answer is None:
        return None
    if answer[0] == "ended":
        return Happened(now, number, types.err(types.enum("SendError").variant("Ended")))
    flow, _, channel = rest.partition("/")
    term = instance.peer_answer(flow, channel)
    return Happened(now, number, types.ok(instance.decode(answer[1], term)))


# -- on a replay -------------------------------------------------------------------------------


def _give_kept(instance: Instance, task: Task, at: AtWait, kept: Attempt) -> bool:
    if instance.held_back(kept.key):
        instance.held.add(task.name)
        return False
    if parse_json(kept.asked) != parse_json(at.asked):
        raise Stopped(another_question(instance, task, "a wait", kept, at.asked))
    raw = parse_json(kept.result or "null")
    assert isinstance(raw, dict)
    number = raw["case"]
    assert isinstance(number, int)
    case = next(case for case in at.cases if case.number == number)
    try:
        value = _kept_value(instance, case, raw["value"], kept.message)
    except FlowError as misfit:
        message = f"what a wait was given no longer fits: {misfit.message} ({at.key})"
        raise Stopped(instance.failure(task, "F0102", message)) from None
    task.now = instance.give_order(kept.key, kept.attempt)
    _take(instance, at, number, kept.message or 0)
    _give(instance, task, number, value)
    return True


def _kept_value(instance: Instance, case: Case, raw: object, message: int | None) -> object:
    types, chunk = instance.program.types, instance.program.chunk
    what = case.operands[0] if case.operands else None

    def read(term: Term) -> object:
        return from_json(raw, term, types, instance.program.default)

    match case.kind:
        case WaitKind.RECEIVE:
            assert isinstance(what, int)
            definition = chunk.channels[what]
            value = read(definition.type)
            if definition.answers is None:
                return value
            return RequestValue(what, message or 0, value)
        case WaitKind.FLOW:
            assert isinstance(what, InstanceValue)
            return _read_outcome(instance, what, raw)
        case WaitKind.ALL:
            members = instances(what)
            assert isinstance(raw, dict)
            if "Err" in raw:
                return _read_outcome(instance, members[0], raw)
            items = raw["Ok"]
            assert isinstance(items, list)
            return types.ok(
                [
                    from_json(item, instance.peer(one.flow).result, types, instance.program.default)
                    for one, item in zip(members, items, strict=True)
                ]
            )
        case WaitKind.SETTLE:
            assert isinstance(raw, list)
            return [
                _read_outcome(instance, one, item)
                for one, item in zip(instances(what), raw, strict=True)
            ]
        case WaitKind.FIRST:
            assert isinstance(raw, list)
            position = raw[0]
            assert isinstance(position, int)
            return (position, _read_outcome(instance, instances(what)[position], raw[1]))
        case WaitKind.CANCELLED:
            return str(raw)
        case WaitKind.ANSWER:
            assert isinstance(what, AskValue) and isinstance(raw, dict)
            if "Err" in raw:
                return types.err(types.enum("SendError").variant(str(raw["Err"])))
            flow, _, channel = what.key.partition(":")[2].partition("/")
            term = instance.peer_answer(flow, channel)
            return types.ok(instance.decode(json_text(raw["Ok"]), term))
        case _:
            return ()


def _read_outcome(instance: Instance, other: InstanceValue, raw: object) -> object:
    types = instance.program.types
    assert isinstance(raw, dict)
    if "Ok" in raw:
        term = instance.peer(other.flow).result
        return types.ok(from_json(raw["Ok"], term, types, instance.program.default))
    error = raw["Err"]
    assert isinstance(error, dict)
    return types.err(types.struct("Cancelled", str(error["reason"])))


# -- messages ----------------------------------------------------------------------------------


def admit(instance: Instance, messages: tuple[Message, ...]) -> None:
    """Takes messages from outside into their channels, behind what is there, by seq.

    They count as taken in the pass in force now, and the next save says so.
    """
    channels = instance.program.chunk.channels
    for message in sorted(messages, key=lambda one: one.seq):
        if message.seq in instance.seen_messages:
            continue
        instance.seen_messages.add(message.seq)
        try:
            value = instance.decode(message.value, channels[message.channel].type)
        except FlowError as misfit:
            name = channels[message.channel].name
            raise Stopped(
                Failure("R0004", f"a message of `{name}` (seq {message.seq}): {misfit.message}")
            ) from None
        instance.machine.channels[message.channel].items.append((value, message.at, message.seq))
        instance.taken_messages.append((message.seq, instance.machine.pass_number))
        instance.dirty = True
