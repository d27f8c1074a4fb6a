"""Steps: a key asked first, an attempt noted, an answer given, an attempt given up.

Seed 004, section 2 (taking up), 3 (turns) and 4 (a step ends). The table of section 2 is
`consider`: it decides by the last attempt under the key and is the same for a fresh call, a take-up
after a crash and a replay.
"""

from __future__ import annotations

from qoqi.vm.bytecode.chunk import FOREVER, NO_FUNCTION, StepDef
from qoqi.vm.effects import StepCall
from qoqi.vm.failure import Failure, FlowError, TraceLine, read_calls
from qoqi.vm.frames import AtStep, Task, UndoEntry
from qoqi.vm.host import (
    FAILED,
    LOST,
    RETRY,
    SPENT,
    TIMEOUT,
    WORDS,
    Attempt,
    LeavingStep,
    NewAttempt,
    PutResult,
    StepEnded,
)
from qoqi.vm.instance import Instance, Noted, OpenAttempt, Stopped
from qoqi.vm.interpreter import call, resume, trace
from qoqi.vm.jsonform import from_json, json_text, parse_json, to_json, value_text
from qoqi.vm.keys import is_undo, task_of
from qoqi.vm.program import Program
from qoqi.vm.values import Duration, Variant


def ask(instance: Instance, task: Task, effect: StepCall) -> None:
    """A task calls a step: it stops there, and what stands under the key decides."""
    step = instance.program.chunk.steps[effect.step]
    key = instance.key(task, step.name)
    asked = json_text([to_json(value) for value in effect.args])
    task.at = AtStep(effect.step, key, effect.args, 0, asked)
    instance.asks(task, key, asked)
    consider(instance, task)


def consider(instance: Instance, task: Task) -> None:
    """Gives, notes, or leaves stopped a task that is at a step (the table of section 2)."""
    at = task.at
    assert isinstance(at, AtStep)
    step = instance.program.chunk.steps[at.step]
    last = instance.kept.get(at.key)
    if last is None or last.result == SPENT:
        note(instance, task.name, at, 1 if last is None else last.attempt + 1)
        return
    at.attempt = last.attempt
    if last.result is None:
        open_again(instance, step, last, task.name)
    elif last.result in WORDS:
        gave_up(instance, task, last)
    else:
        give_kept(instance, task, last)


def same_question(instance: Instance, step: StepDef, kept: str, asked: str) -> bool:
    """Compares what was asked after reading both into this version's types."""
    if kept == asked:
        return True
    try:
        program = instance.program
        return arguments(program, step, kept) == arguments(program, step, asked)
    except FlowError:
        return False  # the old question does not read into the new types: it is another one


def arguments(program: Program, step: StepDef, asked: str) -> tuple[object, ...]:
    """What a step was asked, read into its parameters of this program; FlowError if it misfits."""
    raw = parse_json(asked)
    assert isinstance(raw, list)
    values: list[object] = []
    for number, parameter in enumerate(step.params):
        if number < len(raw):
            values.append(from_json(raw[number], parameter.type, program.types, program.default))
        elif parameter.default != NO_FUNCTION:
            values.append(program.default(parameter.default))
        else:
            raise FlowError("R0004", f"{parameter.name}: missing")
    return tuple(values)


def another_question(
    instance: Instance, task: Task, name: str, last: Attempt, asked: str
) -> Failure:
    """F0102, at the line that asks now; a dry run also finds the line that asked before."""
    return instance.failure(
        task,
        "F0102",
        f"`{name}` was asked {last.asked} before, and version {instance.version[:12]} asks {asked} "
        f"under {last.key}",
    )


def note(instance: Instance, task: str, at: AtStep, attempt: int) -> None:
    """A new attempt: written by the next save, after which it leaves."""
    program = instance.program
    step = program.chunk.steps[at.step]
    at.attempt = attempt
    now = instance.host.now()
    if not instance.noted:
        instance.noted_at = now
    queue = None
    if step.queue != NO_FUNCTION:
        value = call(program, step.queue, at.args, instance.machine.flow_slots)
        assert isinstance(value, str)
        queue = value
    until = now + step.within
    row = NewAttempt(
        at.key,
        attempt,
        instance.machine.pass_number,
        at.asked,
        until,
        step.name,
        step.settled,
        queue,
        next((per for _, per in step.limits if per), None),
    )
    leaving = LeavingStep(at.key, attempt, at.step, at.args, until, instance.version)
    instance.noted.append(Noted(task, step, row, leaving))
    instance.dirty = True
    instance.first_started.setdefault(at.key, now)


def open_again(instance: Instance, step: StepDef, last: Attempt, task: str = "") -> None:
    """An attempt found under way: it may still answer until its limit, whoever runs it."""
    mine = instance.host.under_way(last.key, last.attempt)
    until = last.until if last.until is not None else 0
    instance.open[last.key] = OpenAttempt(task, step, last.key, last.attempt, until, mine)
    instance.look_at(until)


def open_left(instance: Instance) -> None:
    """Every attempt the store has as under way, also those that no task of this state is at.

    A task that was stopped, and a cancellation found at the take-up, leave such attempts: they may
    have acted, so they are waited for like any other.
    """
    steps = {step.name: step for step in instance.program.chunk.steps}
    for row in list(instance.kept.values()):
        step = steps.get(row.step)
        under_way = row.result is None and row.key not in instance.open
        if under_way and step is not None and not is_undo(row.key):
            open_again(instance, step, row, task_of(row.key))


SLOT_LOOK = 1_000
"""How often a step that waits for a slot of its `limit` looks again, in ms, if no step of this
instance gives one free before."""


async def hold_back(instance: Instance) -> None:
    """Of the noted steps with a `limit`, those that find no slot wait and are noted again.

    What is counted are rows of attempts, so a crash cannot leak a slot (runtime, 8).
    """
    if not any(noted.step.limits for noted in instance.noted):
        return
    await instance.flush_puts()  # an answer that is not written still counts as under way
    taken: dict[tuple[str, int], int] = {}
    leaving = []
    for noted in instance.noted:
        free = True
        for count, per in noted.step.limits:
            mark = (noted.step.name, per)
            if mark not in taken:
                taken[mark] = await instance.host.in_use(*mark)
            free = free and taken[mark] < count
        task = instance.machine.tasks.get(noted.task)
        if free or task is None or not isinstance(task.at, AtStep):
            for _, per in noted.step.limits:
                taken[noted.step.name, per] += 1
            leaving.append(noted)
        else:
            task.at.attempt -= 1
            instance.slots.add(task.name)
            instance.retries[task.name] = instance.host.now() + SLOT_LOOK
            instance.look_at(instance.retries[task.name])
    instance.noted = leaving


def slot_is_free(instance: Instance, step: str) -> None:
    """An attempt of a step with a `limit` ended: those that wait for its slot look again."""
    for name in [name for name in instance.retries if name in instance.slots]:
        task = instance.machine.tasks.get(name)
        if task is None or task.ended or not isinstance(task.at, AtStep):
            continue
        if instance.program.chunk.steps[task.at.step].name == step:
            retry_now(instance, task)


async def let_leave(instance: Instance) -> None:
    """After the save: the noted steps are rows now, and their bodies start."""
    noted, instance.noted = instance.noted, []
    now = instance.host.now()
    for one in noted:
        row, leaving = one.row, one.leaving
        instance.kept[row.key] = Attempt(
            row.key,
            row.attempt,
            row.pass_number,
            row.asked,
            until=row.until,
            started=now,
            step=row.step,
            settled=row.settled,
        )
        instance.open[row.key] = OpenAttempt(
            one.task, one.step, row.key, row.attempt, row.until, True
        )
        instance.look_at(row.until)
        await instance.host.leave(leaving)


# -- how an attempt ends -----------------------------------------------------------------------


async def ended(instance: Instance, event: StepEnded) -> OpenAttempt | None:
    """A body of this daemon ended. Gives the attempt it settled, None where it came too late."""
    opened = instance.open.get(event.key)
    if opened is None or opened.attempt != event.attempt:
        if event.result not in WORDS:
            await instance.host.late(event.key, event.attempt, event.result)
        return None
    row = instance.kept[event.key]
    if event.why is not None:
        instance.note("network", key=event.key, attempt=event.attempt, why=event.why)
    if event.result in (RETRY, LOST):
        delay = event.delay
        if delay is None:
            delay = backoff(instance, opened.step, opened.attempt)
        _, row = await instance.host.give_up(event.key, event.attempt, event.result, delay)
    elif event.result == FAILED:
        put = PutResult(event.key, event.attempt, FAILED, event.failure, event.undo)
        row = await instance.host.put_result(put)
    else:
        instance.puts.append(PutResult(event.key, event.attempt, event.result, undo=event.undo))
        row = _answered(row, event)
    instance.kept[event.key] = row
    del instance.open[event.key]
    instance.dirty = True
    return opened


def _answered(row: Attempt, event: StepEnded) -> Attempt:
    """The row as the put will leave it (`replace` would take ten times as long)."""
    return Attempt(
        row.key,
        row.attempt,
        row.pass_number,
        row.asked,
        row.owner,
        row.until,
        row.delay,
        event.result,
        row.late,
        row.started,
        row.ended,
        row.given,
        row.given_at,
        row.message,
        row.step,
        row.settled,
        row.failure,
        event.undo,
    )


async def out_of_time(instance: Instance, opened: OpenAttempt) -> bool:
    """`until` is past: whoever writes first is right, and only then is it acted on.

    Gives whether the attempt is settled now.
    """
    delay = backoff(instance, opened.step, opened.attempt)
    _, row = await instance.host.give_up(opened.key, opened.attempt, TIMEOUT, delay)
    instance.kept[opened.key] = row
    if row.result is None:
        return False
    del instance.open[opened.key]
    instance.dirty = True
    return True


async def look_again(instance: Instance) -> list[OpenAttempt]:
    """Reads the attempts that other daemons run; gives those that have a result now."""
    settled = []
    for opened in [opened for opened in instance.open.values() if not opened.mine]:
        row = await instance.host.attempt(opened.key)
        if row is not None and row.attempt == opened.attempt and row.result is not None:
            instance.kept[opened.key] = row
            del instance.open[opened.key]
            settled.append(opened)
    return settled


def retry_delay(args: tuple[object, ...]) -> int | None:
    """The delay that a body's `flow.retry(after: d)` asks for, in ms; None for the step's own."""
    match args:
        case (Variant(payload=(Duration(ms),)),):
            return max(0, ms)
        case (Duration(ms),):
            return max(0, ms)
        case _:
            return None


def backoff(instance: Instance, step: StepDef, attempt: int) -> int:
    """The step's delay before its next try: doubled up to `to`, the daemon's without a clause."""
    first = step.backoff or instance.limits.retry
    if not step.backoff_most:
        return first
    doubled = first << min(attempt - 1, 40)
    return min(doubled, step.backoff_most)


UNKNOWN = '"Unknown"'


def answer_of(row: Attempt) -> str | None:
    """The JSON of the value an attempt stands for, which is final; None if it ended without one.

    That is its result, what `else` gave in its place, or the `Unknown` of a Settled step that
    reached its limit.
    """
    if row.result not in WORDS:
        return row.result
    if row.otherwise is not None:
        return row.otherwise
    return UNKNOWN if row.result == TIMEOUT and row.settled else None


def gave_up(instance: Instance, task: Task, last: Attempt) -> None:
    """The last attempt ended without a value: Unknown, another try, `else`, or a stop."""
    at = task.at
    assert isinstance(at, AtStep)
    step = instance.program.chunk.steps[at.step]
    if answer_of(last) is not None or (last.result == TIMEOUT and step.settled):
        give_kept(instance, task, last)
        return
    calls = trace(instance.program, task)
    if last.result == FAILED:
        raise Stopped(failed(step, last, calls))
    if may_try(instance, step, last):
        instance.retries[task.name] = _retry_at(last)
        instance.look_at(_retry_at(last))
        return
    if step.otherwise != NO_FUNCTION:
        value = call(instance.program, step.otherwise, at.args, instance.machine.flow_slots)
        _give(instance, task, value, last, value_text(value))
        return
    raise Stopped(no_answer(instance, step, last, calls))


def may_try(instance: Instance, step: StepDef, last: Attempt) -> bool:
    """Whether tries are left, in number and in length of time."""
    tries = step.tries or instance.limits.tries
    if tries != FOREVER and instance.tries_used(last.key, last.attempt) >= tries:
        return False
    first = instance.first_started.get(last.key)
    return not (step.tries_for and first is not None and _retry_at(last) >= first + step.tries_for)


def _retry_at(last: Attempt) -> int:
    return (last.until or 0) + (last.delay or 0)


def no_answer(
    instance: Instance, step: StepDef, last: Attempt, calls: tuple[TraceLine, ...] = ()
) -> Failure:
    """`calls` are those of the task that asked; an undo has none."""
    used = instance.tries_used(last.key, last.attempt)
    attempts = "1 attempt" if used == 1 else f"{used} attempts"
    return Failure("R0012", f"{step.name} gave no answer in {attempts}", calls)


def failed(step: StepDef, last: Attempt, calls: tuple[TraceLine, ...] = ()) -> Failure:
    """A mistake in a step's body, read back from its attempt: its calls, then the task's."""
    raw = parse_json(last.failure) if last.failure else None
    if not isinstance(raw, dict):
        return Failure("R0001", f"{step.name} failed", calls)
    code, message = str(raw.get("code", "R0001")), str(raw.get("message", ""))
    return Failure(code, f"{step.name} failed: {message}", (*read_calls(raw), *calls))


def retry_now(instance: Instance, task: Task) -> None:
    """The delay of a given-up attempt is over: the next one is noted."""
    at = task.at
    assert isinstance(at, AtStep)
    instance.retries.pop(task.name, None)
    instance.slots.discard(task.name)
    note(instance, task.name, at, at.attempt + 1)


# -- giving ------------------------------------------------------------------------------------


def give_kept(instance: Instance, task: Task, last: Attempt) -> None:
    """Gives what the row says, after what was given before it the first time."""
    at = task.at
    assert isinstance(at, AtStep)
    step = instance.program.chunk.steps[at.step]
    if not same_question(instance, step, last.asked, at.asked):
        raise Stopped(another_question(instance, task, step.name, last, at.asked))
    if instance.held_back(last.key):
        instance.held.add(task.name)
        return
    try:
        if last.result == TIMEOUT and last.otherwise is None and not step.settled:
            raise FlowError("R0004", "it was Unknown, and the step is not Settled any more")
        value = instance.decode(answer_of(last) or UNKNOWN, step.result)
    except FlowError as misfit:
        message = f"the kept answer of `{step.name}` does not fit: {misfit.message}"
        raise Stopped(instance.failure(task, "F0102", message)) from None
    _give(instance, task, value, last)


def _give(
    instance: Instance, task: Task, value: object, last: Attempt, otherwise: str | None = None
) -> None:
    at = task.at
    assert isinstance(at, AtStep)
    step = instance.program.chunk.steps[at.step]
    first = last.given is None
    task.now = instance.give_order(last.key, last.attempt, otherwise)
    if first or last.key not in {entry.key for entry in instance.machine.undos}:
        register_undos(instance, step, at.args, value, last)
    resume(task, value)
    instance.wake(task)


def keep_undo(instance: Instance, opened: OpenAttempt) -> None:
    """An answer to a task that was stopped is kept, and what undoes it (language, tasks)."""
    row = instance.kept[opened.key]
    if row.result is None or row.result in WORDS:
        return
    register_kept(instance, opened.step, row)


def register_kept(instance: Instance, step: StepDef, row: Attempt) -> None:
    """What undoes an answer that no task was given; FlowError where it cannot be read."""
    args = arguments(instance.program, step, row.asked)
    value = instance.decode(row.result or "null", step.result)
    register_undos(instance, step, args, value, row)


def register_undos(
    instance: Instance, step: StepDef, args: tuple[object, ...], value: object, last: Attempt
) -> None:
    """What undoes this answer: the step's own clause, then what its body registered."""
    if step.undo >= 0:
        it = unwrap(instance, value)
        if it is not None:
            given = call(
                instance.program, step.undo_args, (it[0], *args), instance.machine.flow_slots
            )
            assert isinstance(given, tuple)
            target = instance.program.chunk.steps[step.undo].name
            add_undo(instance, target, json_text([to_json(one) for one in given]), last.key)
    if last.undo:
        entries = parse_json(last.undo)
        assert isinstance(entries, list)
        for entry in entries:
            assert isinstance(entry, list)
            add_undo(instance, str(entry[0]), json_text(entry[1]), last.key)


def add_undo(instance: Instance, target: str, args: str, key: str, final: bool = False) -> None:
    machine = instance.machine
    machine.undo_count += 1
    machine.undos.append(UndoEntry(machine.undo_count, machine.version, target, args, final, key))


def unwrap(instance: Instance, value: object) -> tuple[object] | None:
    """The value inside Ok, Known, Some, however deep; None where there is nothing to undo."""
    types = instance.program.types
    inside = {types.result: "Ok", types.settled: "Known", types.option: "Some"}
    while isinstance(value, Variant) and value.type in inside:
        if value.name != inside[value.type]:
            return None
        value = value.payload[0]
    return (value,)
