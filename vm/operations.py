"""Operations of flow code: what `OPERATION` instructions ask, answered by the turn.

Most are answered at once, a start too: it is noted, and the next write creates the instance. Four
need a write first, because their answer is the store's: a send, an ask, a cancellation, and a
person's answer to `flow.stop`. Such a task stops at the operation; `turn`
saves, and `settle` gives what the save found. What was found is kept under the operation's key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qoqi.vm.bytecode.opcodes import WaitKind
from qoqi.vm.effects import Case, Operation
from qoqi.vm.failure import Failure, FlowError
from qoqi.vm.frames import AtOperation, AtWait, Task
from qoqi.vm.host import (
    WORDS,
    Attempt,
    CancelAsked,
    NewCancel,
    NewInstance,
    NewMessage,
    NotDeployed,
    Saved,
    SentMessage,
    Started,
)
from qoqi.vm.instance import Instance, Stopped
from qoqi.vm.interpreter import resume, start_task
from qoqi.vm.jsonform import json_text, parse_json, to_json
from qoqi.vm.keys import RUN, child_task
from qoqi.vm.questions import same
from qoqi.vm.sizes import too_large
from qoqi.vm.steps import add_undo, another_question
from qoqi.vm.values import (
    AskValue,
    Closure,
    InstanceValue,
    RangeValue,
    RequestValue,
    TaskValue,
    TermValue,
    Time,
    UndoValue,
    Variant,
)
from qoqi.vm.waits import MAP

UNWIND = "flow.unwind"

_Outcome = SentMessage | CancelAsked
NAME_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@/~+"
)


class GaveUp(Exception):
    """`flow.giveUp(why)`: the instance ends as if cancelled."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def unwinding(instance: Instance) -> Task | None:
    """The task that waits for its undos to run (`flow.unwind`), if one does."""
    for task in instance.machine.tasks.values():
        at = task.at
        if at.__class__ is AtOperation and isinstance(at, AtOperation) and at.name == UNWIND:
            return task
    return None


def fits_name(name: str) -> bool:
    """Whether an instance may have this name: 1 to 256 of letters, digits and -_.:@/~+."""
    return 1 <= len(name) <= 256 and set(name) <= NAME_CHARACTERS


async def answer(instance: Instance, task: Task, effect: Operation) -> None:
    """Answers an operation, or leaves the task stopped at it."""
    handler = _AT_ONCE.get(effect.name)
    if handler is not None:
        resume(task, handler(instance, task, effect.args))
        instance.runnable.appendleft(task)
        return
    if effect.name in _STARTS:
        task.spent = 0  # a loop of starts is bounded by their writes
    if effect.name in _KEPT_HERE:
        await _kept_here(instance, task, effect)
    elif effect.name in _NEEDS_WRITE:
        _needs_write(instance, task, effect)
    elif effect.name == "task.map":
        _start_map(instance, task, effect.args)
    elif effect.name == UNWIND:
        task.at = AtOperation(UNWIND, instance.key(task, "unwind"), (), "[]")
    elif effect.name == "flow.giveUp":
        raise GaveUp(_text(effect.args[0]))
    else:
        raise FlowError("R0001", f"`{effect.name}` cannot be used in flow code")


# -- answered at once --------------------------------------------------------------------------


def _text(value: object) -> str:
    assert isinstance(value, str)
    return value


def _check_size(instance: Instance, what: str, text: str) -> None:
    said = too_large(what, text, instance.limits.value_limit)
    if said is not None:
        raise FlowError("R0008", said)


def _undo(instance: Instance, args: tuple[object, ...], final: bool) -> tuple[()]:
    undo = args[0]
    assert isinstance(undo, UndoValue)
    add_undo(instance, undo.target, json_text([to_json(one) for one in undo.args]), "", final)
    return ()


def _commit(instance: Instance, task: Task, args: tuple[object, ...]) -> tuple[()]:
    instance.machine.undos = [entry for entry in instance.machine.undos if entry.final]
    return ()


def _refuse(instance: Instance, text: str | None) -> tuple[()]:
    instance.machine.refuses = text
    return ()


def _print(instance: Instance, task: Task, args: tuple[object, ...]) -> tuple[()]:
    instance.note("print", text=_text(args[0]), task=task.name)
    return ()


def _step_undo(instance: Instance, task: Task, args: tuple[object, ...]) -> UndoValue:
    step, values = args
    assert isinstance(step, int) and isinstance(values, tuple)
    return UndoValue(instance.program.chunk.steps[step].name, values)


def _send_undo(instance: Instance, task: Task, args: tuple[object, ...]) -> UndoValue:
    return UndoValue("send", args)


def _close(instance: Instance, task: Task, args: tuple[object, ...]) -> tuple[()]:
    channel = args[0]
    assert isinstance(channel, int)
    instance.machine.channels[channel].closed = True
    return ()


def _reply(instance: Instance, task: Task, args: tuple[object, ...]) -> tuple[()]:
    request, value = args
    assert isinstance(request, RequestValue)
    answer = json_text(to_json(value))
    _check_size(instance, "the answer to a request", answer)
    instance.replies.append((request.seq, answer))
    return ()


def _start_one(instance: Instance, task: Task, args: tuple[object, ...]) -> TaskValue:
    closure, values = args
    assert isinstance(closure, Closure) and isinstance(values, tuple)
    return new_task(instance, task, closure, values, "")


def _cancel_task(instance: Instance, task: Task, args: tuple[object, ...]) -> tuple[()]:
    value = args[0]
    assert isinstance(value, TaskValue)
    stop_task(instance, value.name)
    return ()


def stop_task(instance: Instance, name: str) -> None:
    """Stops a task where it is; its steps under way end and are kept."""
    task = instance.machine.tasks.get(name)
    if task is None or task.ended:
        return
    task.ended = task.cancelled = True
    task.frames.clear()
    task.at = None
    instance.retries.pop(name, None)
    instance.held.discard(name)
    instance.noted = [noted for noted in instance.noted if noted.task != name]


def new_task(
    instance: Instance, parent: Task, closure: Closure, args: tuple[object, ...], group: str
) -> TaskValue:
    """Starts a task of this instance, named after its parent and its function."""
    function = instance.program.chunk.functions[closure.function].name.rpartition(".")[2]
    n = instance.count(parent, f"/{function}")
    name = child_task(parent.name, function, n)
    frames = start_task(instance.program, closure, args)
    task = Task(name, frames, parent.now, group=group)
    instance.machine.tasks[name] = task
    instance.join_group(task)
    instance.runnable.append(task)
    return TaskValue(name)


def _start_map(instance: Instance, task: Task, args: tuple[object, ...]) -> None:
    items, closure, limit = args
    assert isinstance(items, list) and isinstance(closure, Closure) and isinstance(limit, int)
    group = ""
    if limit > 0:
        group = f"{task.name}/map#{instance.count(task, '/map')}:{limit}"
    tasks: list[object] = [new_task(instance, task, closure, (item,), group) for item in items]
    key = instance.key(task, "wait")
    case = Case(0, WaitKind.TASKS, (tasks,))
    task.at = AtWait(key, (case,), {}, instance.host.now(), MAP)


_AT_ONCE: dict[str, Callable[[Instance, Task, tuple[object, ...]], object]] = {
    "flow.now": lambda instance, task, args: Time(task.now),
    "flow.id": lambda instance, task, args: instance.machine.id,
    "flow.birth": lambda instance, task, args: instance.machine.birth,
    "flow.version": lambda instance, task, args: instance.version,
    "flow.self": lambda instance, task, args: InstanceValue(
        instance.taken.flow, instance.machine.id, instance.machine.birth
    ),
    "flow.print": _print,
    "flow.undo": lambda instance, task, args: _undo(instance, args, final=False),
    "flow.finally": lambda instance, task, args: _undo(instance, args, final=True),
    "flow.commit": _commit,
    "flow.refuse": lambda instance, task, args: _refuse(instance, _text(args[0])),
    "flow.accept": lambda instance, task, args: _refuse(instance, None),
    "undo.step": _step_undo,
    "undo.send": _send_undo,
    "channel.close": _close,
    "request.answer": _reply,
    "task.start": _start_one,
    "task.cancel": _cancel_task,
}


# -- kept under a key, found without a write ---------------------------------------------------

_STARTS = ("instance.start", "instance.detach")
_KEPT_HERE = frozenset({"flow.uuid", "flow.random", "channel.poll", "instance.find", *_STARTS})


async def _kept_here(instance: Instance, task: Task, effect: Operation) -> None:
    name = effect.name.rpartition(".")[2]
    key = instance.key(task, name)
    asked = json_text(_asked(instance, effect))
    instance.asks(task, key, asked)
    kept = instance.kept.get(key)
    if kept is not None and kept.result is not None and kept.result not in WORDS:
        if instance.held_back(key):
            task.at = AtOperation(effect.name, key, effect.args, asked)
            instance.held.add(task.name)
            return
        _compare(instance, task, effect, kept, asked)
        value = _read_kept(instance, effect, kept)
        task.now = instance.give_order(key, kept.attempt)
    else:
        value, raw, message = await _find(instance, effect)
        task.now = instance.keep(key, asked, json_text(raw), message)
    resume(task, value)
    instance.wake(task)


def _compare(
    instance: Instance, task: Task, effect: Operation | AtOperation, kept: Attempt, asked: str
) -> None:
    """A replay gives what was kept only to the same question (F0102)."""
    if kept.asked == asked:
        return
    before = parse_json(kept.asked)
    if not same(before, [*effect.args], instance.program.default):
        name = effect.name.rpartition(".")[2]
        raise Stopped(another_question(instance, task, name, kept, asked))


def _asked(instance: Instance, effect: Operation) -> list[object]:
    """What an operation was given, as JSON: what a replay compares."""
    return [
        value.number if isinstance(value, TermValue) else _plain(value) for value in effect.args
    ]


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return to_json(value)


async def _find(instance: Instance, effect: Operation) -> tuple[object, object, int | None]:
    """The value, its JSON and the message it took."""
    types, args = instance.program.types, effect.args
    match effect.name:
        case "flow.uuid":
            drawn = instance.host.draw_uuid()
            return drawn, drawn, None
        case "flow.random":
            span = args[0]
            assert isinstance(span, RangeValue)
            assert isinstance(span.low, int) and isinstance(span.high, int)
            high = span.high + 1 if span.inclusive else span.high
            if high <= span.low:
                raise FlowError("R0001", "flow.random of an empty range")
            number = instance.host.draw_int(span.low, high)
            return number, number, None
        case "channel.poll":
            channel = args[0]
            assert isinstance(channel, int)
            items = instance.machine.channels[channel].items
            if not items:
                return types.none(), None, None
            item = items.pop(0)
            assert isinstance(item, tuple)
            value, _, seq = item
            raw = to_json(value)
            if instance.program.chunk.channels[channel].answers is not None:
                value = RequestValue(channel, seq, value)
            return types.some(value), [raw], seq
        case "instance.start" | "instance.detach":
            started = await _start(instance, effect)
            raw = {"birth": started.birth, "created": started.created, "flow": started.flow}
            return _started(effect, started), raw, None
        case _:  # instance.find
            flow, name = _text(args[0]), _text(args[1])
            begun = instance.begun.get(name)
            if begun is not None:
                birth = begun.birth if begun.flow == flow else None
            else:
                birth = await instance.host.find(flow, name)
            if birth is None:
                return types.none(), None, None
            return types.some(InstanceValue(flow, name, birth)), birth, None


async def _start(instance: Instance, effect: Operation) -> Started:
    """The instance of that name, or one that the next save creates; its own birth is drawn now."""
    flow, name, values = effect.args
    if not fits_name(_text(name)):
        raise FlowError(
            "R0010",
            f"{_text(name)!r} is no name for an instance: 1 to 256 of letters, digits and -_.:@/~+",
        )
    assert isinstance(values, tuple)
    args = json_text([to_json(value) for value in values])
    _check_size(instance, f"what {_text(name)} is started with", args)
    begun = instance.begun.get(_text(name))
    if begun is not None:
        return replace(begun, created=False)
    parent = instance.machine.id if effect.name == "instance.start" else None
    new = NewInstance(_text(name), _text(flow), args, parent)
    try:
        started = await instance.host.start(new)
    except NotDeployed as missing:
        raise FlowError("R0010", str(missing)) from None
    if started.created:
        instance.starts.append(new)
        instance.begun[new.id] = started
    return started


def _started(at: Operation | AtOperation, started: Started) -> InstanceValue:
    flow, name = _text(at.args[0]), _text(at.args[1])
    if started.flow != flow:
        raise FlowError("R0010", f"the name {name} is taken by an instance of {started.flow}")
    return InstanceValue(flow, name, started.birth)


def _cancelled(instance: Instance, outcome: str) -> Variant:
    types = instance.program.types
    if outcome == "ok":
        return types.ok(())
    error = types.enum("CancelError")
    if outcome == "ended":
        return types.err(error.variant("Ended"))
    return types.err(error.variant("Refused", outcome.removeprefix("refused: ")))


def _read_kept(instance: Instance, effect: Operation | AtOperation, kept: Attempt) -> object:
    """What was kept, as a value; a poll takes the message it took again."""
    types, raw = instance.program.types, parse_json(kept.result or "null")
    if effect.name == "channel.poll" and kept.message is not None:
        _drop_item(instance, effect.args[0], kept.message)
    match effect.name:
        case "flow.uuid" | "flow.random":
            return raw
        case "channel.poll":
            if raw is None:
                return types.none()
            channel = effect.args[0]
            assert isinstance(channel, int) and isinstance(raw, list)
            definition = instance.program.chunk.channels[channel]
            value = instance.decode(json_text(raw[0]), definition.type)
            return types.some(value)
        case "instance.start" | "instance.detach":
            assert isinstance(raw, dict)
            return _started(effect, Started(str(raw["birth"]), False, str(raw["flow"])))
        case _:  # instance.find
            if raw is None:
                return types.none()
            return types.some(
                InstanceValue(_text(effect.args[0]), _text(effect.args[1]), _text(raw))
            )


def _drop_item(instance: Instance, channel: object, seq: int) -> None:
    assert isinstance(channel, int)
    items = instance.machine.channels[channel].items
    for position, item in enumerate(items):
        assert isinstance(item, tuple)
        if item[2] == seq:
            del items[position]
            return


# -- answered by a write -----------------------------------------------------------------------

_NEEDS_WRITE = frozenset({"instance.send", "instance.ask", "instance.cancel", "flow.stop"})


def _needs_write(instance: Instance, task: Task, effect: Operation) -> None:
    name = effect.name.rpartition(".")[2]
    key = instance.key(task, "flow.stop" if name == "stop" else name)
    asked = json_text(_asked(instance, effect))
    task.at = AtOperation(effect.name, key, effect.args, asked)
    task.spent = 0  # it waits for a write, as a step does
    instance.asks(task, key, asked)
    consider(instance, task)


def consider(instance: Instance, task: Task) -> None:
    """A task at an operation: gives what is kept under its key, else asks the next save for it."""
    at = task.at
    assert isinstance(at, AtOperation)
    if at.name == UNWIND:
        return  # the turn goes on with the undos that are left
    kept = instance.kept.get(at.key)
    if kept is not None and kept.result is not None and kept.result not in WORDS:
        if instance.held_back(at.key):
            instance.held.add(task.name)
            return
        if at.name != "flow.stop":
            _compare(instance, task, at, kept, at.asked)
        if at.name in _KEPT_HERE:
            value = _read_kept(instance, at, kept)
        else:
            value = _read_written(instance, at, kept.result)
        task.now = instance.give_order(at.key, kept.attempt)
        _give(instance, task, at, value)
        return
    match at.name:
        case "flow.stop":
            question = _text(at.args[0])
            raise Stopped(instance.failure(task, "F0104", question))
        case "instance.cancel":
            other, why = at.args
            assert isinstance(other, InstanceValue)
            pass_number = instance.machine.pass_number
            instance.cancels.append(
                NewCancel(at.key, other.name, other.birth, _text(why), at.asked, pass_number)
            )
        case _:
            _ask_send(instance, at)


def _ask_send(instance: Instance, at: AtOperation) -> None:
    other, channel, value, *rest = at.args
    assert isinstance(other, InstanceValue)
    own = rest[0] if rest else None
    if isinstance(own, Variant):
        own = own.payload[0] if own.payload else None
    message = json_text(to_json(value))
    _check_size(instance, f"a message to {_text(channel)}", message)
    instance.sends.append(
        NewMessage(
            at.key,
            other.name,
            other.birth,
            _text(channel),
            message,
            at.key if own is None else _text(own),
            asks=at.name == "instance.ask",
            asked=at.asked,
            pass_number=instance.machine.pass_number,
        )
    )


def settle(instance: Instance, saved: Saved) -> None:
    """What a save found at other instances goes to the tasks that asked."""
    found: tuple[_Outcome, ...] = (*saved.sent, *saved.cancelled)
    if not found:
        return
    outcomes = {one.key: one for one in found}
    for task in list(instance.machine.tasks.values()):
        at = task.at
        if not isinstance(at, AtOperation) or at.key not in outcomes:
            continue
        try:
            value = _found(instance, at, outcomes[at.key])
        except FlowError as mistake:
            fail(instance, task, Failure(mistake.code, mistake.message))
            continue
        task.now = instance.give_order(at.key, 1)
        _give(instance, task, at, value)


def _give(instance: Instance, task: Task, at: AtOperation, value: object) -> None:
    resume(task, value)
    instance.wake(task)


def _read_written(instance: Instance, at: AtOperation, result: str) -> object:
    raw = parse_json(result)
    if at.name == "flow.stop":
        term = at.args[1]
        assert isinstance(term, TermValue)
        return instance.decode(result, term.term)
    if at.name == "instance.cancel":
        return _cancelled(instance, _text(raw))
    assert isinstance(raw, dict)
    seq = raw["seq"]
    assert seq is None or isinstance(seq, int)
    return _found(instance, at, SentMessage(at.key, str(raw["outcome"]), seq))


def _found(instance: Instance, at: AtOperation, found: _Outcome) -> object:
    types = instance.program.types
    if isinstance(found, CancelAsked):
        return _cancelled(instance, found.outcome)
    if at.name == "instance.ask":
        other, channel = at.args[0], at.args[1]
        assert isinstance(other, InstanceValue)
        asked = found.outcome in ("Delivered", "Already")
        word = str(found.seq) if asked else _send_error(found.outcome)
        return AskValue(f"{word}:{other.flow}/{_text(channel)}")
    if found.outcome in ("Delivered", "Already"):
        return types.ok(types.enum("Sent").variant(found.outcome))
    return types.err(types.enum("SendError").variant(_send_error(found.outcome)))


def _send_error(outcome: str) -> str:
    """The `SendError` of an outcome: a channel that the peer's version does not have is Unknown."""
    return outcome if outcome in ("Full", "Ended") else "Unknown"


def fail(instance: Instance, task: Task, failure: Failure) -> None:
    """A task ends with a failure: whoever joins it is given it; run's stops the instance."""
    task.ended = True
    task.failure = failure
    task.frames.clear()
    task.at = None
    instance.retries.pop(task.name, None)
    if task.name == RUN:
        raise Stopped(failure)
    instance.note("task_failed", task=task.name, code=failure.code, message=failure.message)
