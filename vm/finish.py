"""The end of an instance: run returned, or a cancellation that it does not hear.

Seed 004, section 6. An Ok is written and done. An Err or a cancellation enters the finish phase in
one write, in which the children are told; they end first, then the undos run, the last registered
first, each a step with its own key and attempts; then the end is written. `flow.finally` calls
stand on the same stack and run at every end.
"""

from __future__ import annotations

from qoqi.vm import events, steps
from qoqi.vm.bytecode.chunk import NO_FUNCTION, StepDef
from qoqi.vm.failure import Failure, FlowError
from qoqi.vm.frames import AtStep, Task, UndoEntry
from qoqi.vm.host import (
    FAILED,
    LOST,
    SPENT,
    TIMEOUT,
    WORDS,
    Attempt,
    Cancel,
    LeavingStep,
    NewAttempt,
    NewMessage,
    WaitRow,
)
from qoqi.vm.instance import Instance, LeftMemory, Noted, Stopped, consumed
from qoqi.vm.interpreter import call, resume
from qoqi.vm.jsonform import from_json, json_text, parse_json, value_text
from qoqi.vm.keys import RUN, undo_key
from qoqi.vm.operations import stop_task
from qoqi.vm.program import Program
from qoqi.vm.values import Variant

_RETURNED_ERR = "it returned an Err"
UNDO_CASE = 1_000  # the case number of an undo's wait: above that of any case of a `wait match`


async def returned(instance: Instance) -> None:
    """run returned: what it gave is the result; its tasks stop, their steps under way end first."""
    machine = instance.machine
    value = instance.run_value
    acted = _gave_no_answer(instance)
    for task in list(machine.tasks.values()):
        stop_task(instance, task.name)
    instance.ending = True
    steps.open_left(instance)
    acted += await _let_steps_end(instance)
    untaken = unclaimed(instance)
    if untaken:
        raise Stopped(not_asked_again(untaken))
    machine.returned = True
    result = value_text(value)
    if _is(value, instance.program.types.result, "Err"):
        unread = _collect_undos(instance)
        await _leave_to_a_person(instance, acted, unread, result, _RETURNED_ERR)
        await _enter(instance, result, _RETURNED_ERR)
        return
    machine.undos = [entry for entry in machine.undos if entry.final]
    if machine.undos:
        instance.phase, instance.result = "finish", result
        _drop_tasks(instance)
        await go_on(instance)
        return
    instance.note("done", result=parse_json(result))
    await instance.save("done", release=True, waits=(), result=result)
    raise LeftMemory


async def cancelled(instance: Instance, cancel: Cancel) -> None:
    """No new step leaves, tasks stop where they are, steps under way end; then the finish phase."""
    instance.ending = True
    steps.open_left(instance)
    acted = _gave_no_answer(instance)
    instance.drop_asked()
    acted += await _let_steps_end(instance)
    unread = _collect_undos(instance)
    instance.seen_cancel = cancel.id or None
    result = json_text({"reason": cancel.reason, "at": cancel.at})
    instance.note("cancelled", reason=cancel.reason)
    await _leave_to_a_person(instance, acted, unread, result, cancel.reason)
    await _enter(instance, result, cancel.reason)


async def _leave_to_a_person(
    instance: Instance, acted: list[str], unread: list[str], result: str, reason: str
) -> None:
    """Where it is not known what has to be undone, it enters its finish phase stopped."""
    if not (acted or unread):
        return
    _drop_tasks(instance)
    names = ", ".join(dict.fromkeys(acted))
    whys = [f"{names} may have acted, and gave no answer"] if acted else []
    failure = Failure("R0013", "; ".join([*whys, *unread]))
    instance.note("stopped", code=failure.code, message=failure.message)
    await instance.save(
        "stopped",
        phase="finish",
        release=True,
        waits=(),
        stopped_by=failure,
        result=result,
        enter_finish=reason,
    )
    raise LeftMemory


async def gave_up(instance: Instance, why: str) -> None:
    """`flow.giveUp`: the end of a cancellation that nobody hears, asked for by the flow itself."""
    await cancelled(instance, Cancel("", why, True, instance.host.now()))


def _gave_no_answer(instance: Instance) -> list[str]:
    """Steps between two tries whose last attempt may have acted (O5)."""
    acted = []
    for task in instance.alive():
        if isinstance(task.at, AtStep):
            row = instance.kept.get(task.at.key)
            if row is not None and row.result in (TIMEOUT, LOST):
                acted.append(row.step)
    return acted


async def _let_steps_end(instance: Instance) -> list[str]:
    """Waits until nothing is under way; names the steps that reached their limit unanswered."""
    acted = []
    while instance.open:
        await instance.flush_puts()
        under_way = dict(instance.open)
        await events.wait(instance, min(opened.until for opened in under_way.values()))
        for key, opened in under_way.items():
            if key not in instance.open and _may_have_acted(instance.kept[key]):
                acted.append(opened.step.name)
    return acted


def _may_have_acted(row: Attempt) -> bool:
    """Its request may have left, and nobody knows more: a body says so too, as `Unknown`."""
    return row.result in (TIMEOUT, LOST) or (row.settled and row.result == steps.UNKNOWN)


def _collect_undos(instance: Instance) -> list[str]:
    """Undos of a replay that did not get so far, and of answers not given to their task (O2).

    Says which answers this version cannot read: what would undo them is not known.
    """
    machine = instance.machine
    numbers = {entry.number for entry in machine.undos}
    machine.undos += [entry for entry in machine.undos_at_stop if entry.number not in numbers]
    machine.undos.sort(key=lambda entry: entry.number)
    machine.undos_at_stop.clear()
    registered = {entry.key for entry in machine.undos}
    rows = [
        row
        for row in instance.kept.values()
        if row.step and row.result is not None and row.result not in WORDS
        if row.key not in registered and (row.given is None or row.key in instance.replaying)
    ]
    by_name = {step.name: step for step in instance.program.chunk.steps}
    unread = []
    for row in sorted(rows, key=lambda row: (row.given or 1 << 60, row.ended or 0, row.key)):
        step = by_name.get(row.step)
        if step is None or row.key in instance.given_here:
            continue
        try:
            steps.register_kept(instance, step, row)
        except FlowError as misfit:
            unread.append(f"what `{row.step}` did does not fit this version: {misfit.message}")
    return unread


def unclaimed(instance: Instance) -> list[Attempt]:
    """Kept answers that no task has asked for again since the stage (F0101)."""
    return [
        row
        for row in instance.kept.values()
        if steps.answer_of(row) is not None
        and row.key not in instance.given_here
        and not consumed(instance, row)
    ]


def not_asked_again(rows: list[Attempt]) -> Failure:
    listed = "; ".join(f"{row.key} gave {steps.answer_of(row)}" for row in rows)
    return Failure("F0101", f"done since the last stage and not asked for again: {listed}")


def _drop_tasks(instance: Instance) -> None:
    instance.machine.tasks.clear()
    instance.retries.clear()
    instance.runnable.clear()


async def _enter(instance: Instance, result: str, reason: str) -> None:
    """The write that enters the finish phase; straight to the end if there is nothing to do."""
    _drop_tasks(instance)
    begun = ((new.id, instance.begun[new.id].birth) for new in instance.starts if new.parent)
    children = (*await instance.host.children(), *begun)  # this write creates the last, and tells
    if not children and not instance.machine.undos:
        # An Err with nothing to undo is an end of run as any; a cancellation is told in finish.
        instance.phase = "run" if instance.machine.returned else "finish"
        instance.result = result
        await _end(instance)
    status = "waiting" if children else "running"
    instance.note("finishing", undos=[entry.target for entry in reversed(instance.machine.undos)])
    await instance.save(
        status,
        phase="finish",
        release=bool(children),
        waits=_children_wait(children),
        result=result,
        enter_finish=reason,
    )
    if children:
        raise LeftMemory
    instance.phase, instance.result = "finish", result
    await go_on(instance)


def _children_wait(children: tuple[tuple[str, str], ...]) -> tuple[WaitRow, ...]:
    return (WaitRow(RUN, 0, "all", any=0, members=children),) if children else ()


async def go_on(instance: Instance) -> None:
    """The finish phase, entered or taken up again: children, undos, the end."""
    instance.ending = True
    if not instance.machine.returned or _ends_in_err(instance):
        children = await instance.host.children()
        if children:
            await instance.save("waiting", release=True, waits=_children_wait(children))
            raise LeftMemory
    while instance.machine.undos:
        await _undo(instance, instance.machine.undos[-1])
        instance.machine.undos.pop()
        instance.dirty = True
    await _end(instance)


async def unwind(instance: Instance, task: Task) -> None:
    """`flow.unwind`: the undos run now, are forgotten, and the task goes on."""
    machine = instance.machine
    while entries := [entry for entry in machine.undos if not entry.final]:
        await _undo(instance, entries[-1])
        machine.undos.remove(entries[-1])
        instance.dirty = True
    resume(task, ())
    instance.wake(task)


async def _undo(instance: Instance, entry: UndoEntry) -> None:
    if entry.target == "send":
        await _undo_send(instance, entry)
    else:
        await _undo_step(instance, entry)


async def _end(instance: Instance) -> None:
    status = "done" if instance.machine.returned else "failed"
    instance.note(status, result=parse_json(instance.result or "null"))
    await instance.save(status, release=True, waits=())
    raise LeftMemory


def _ends_in_err(instance: Instance) -> bool:
    term = instance.program.chunk.result
    types = instance.program.types
    if not isinstance(term, tuple) or term[0] != "enum" or not isinstance(term[1], int):
        return False
    if types.at(term[1]) is not types.result:
        return False
    raw = parse_json(instance.result or "null")
    return isinstance(raw, dict) and set(raw) == {"Err"}


# -- undos -------------------------------------------------------------------------------------


async def _undo_step(instance: Instance, entry: UndoEntry) -> None:
    """Runs one undo to an answer; anything but Err and Unknown is done (language, Undo)."""
    program = instance.code(entry.version)
    number = next(
        (n for n, step in enumerate(program.chunk.steps) if step.name == entry.target), None
    )
    if number is None:
        raise Stopped(Failure("R0014", f"{entry.target} is no step of version {entry.version}"))
    step = program.chunk.steps[number]
    machine = instance.machine
    key = undo_key(machine.id, machine.birth, machine.pass_number, entry.number)
    try:
        args = steps.arguments(program, step, entry.args)
    except FlowError as misfit:
        raise Stopped(_could_not_undo(step.name, misfit.message)) from None
    while True:
        last = instance.kept.get(key)
        if last is None or last.result == SPENT:
            await _leave_undo(instance, program, number, entry, key, args, last)
        elif last.result is None:
            await _wait_for_undo(instance, step, key, last)
        elif last.result in WORDS:
            if not await _try_again(instance, step, args, last):
                otherwise = call(program, step.otherwise, args, instance.machine.flow_slots)
                _check_undone(instance, program, entry, otherwise)
                instance.note("undone", step=entry.target, key=key)
                return
            await _leave_undo(instance, program, number, entry, key, args, last)
        else:
            try:
                raw = parse_json(last.result)
                value = from_json(raw, step.result, program.types, program.default)
            except FlowError as misfit:
                raise Stopped(_could_not_undo(step.name, misfit.message)) from None
            _check_undone(instance, program, entry, value)
            instance.note("undone", step=entry.target, key=key)
            return


async def _leave_undo(
    instance: Instance,
    program: Program,
    number: int,
    entry: UndoEntry,
    key: str,
    args: tuple[object, ...],
    last: Attempt | None,
) -> None:
    if instance.draining:
        await _leave_memory(instance)
    step = program.chunk.steps[number]
    attempt = 1 if last is None else last.attempt + 1
    until = instance.host.now() + step.within
    queue = None
    if step.queue != NO_FUNCTION:
        value = call(program, step.queue, args, instance.machine.flow_slots)
        assert isinstance(value, str)
        queue = value
    row = NewAttempt(
        key,
        attempt,
        instance.machine.pass_number,
        entry.args,
        until,
        step.name,
        step.settled,
        queue,
    )
    leaving = LeavingStep(key, attempt, number, args, until, entry.version)
    instance.noted.append(Noted("", step, row, leaving))
    saved = await instance.save("running", release=False, attempts=True)
    if not saved.may_leave:
        instance.noted.clear()
        events.heed(instance, saved)
        await _leave_memory(instance)
    await steps.let_leave(instance)
    events.heed(instance, saved)


async def _wait_for_undo(instance: Instance, step: StepDef, key: str, last: Attempt) -> None:
    if key not in instance.open:
        steps.open_again(instance, step, last)
    await instance.flush_puts()
    await events.wait(instance, instance.open[key].until)
    if instance.draining > 1:
        await _leave_memory(instance)


async def _try_again(
    instance: Instance, step: StepDef, args: tuple[object, ...], last: Attempt
) -> bool:
    """Waits for the next try of an undo. False if `else` answered in its place."""
    name = step.name
    if last.result == TIMEOUT and step.settled:
        raise Stopped(_could_not_undo(name, "Unknown"))
    if last.result == FAILED:
        raise Stopped(steps.failed(step, last))
    if not steps.may_try(instance, step, last):
        if step.otherwise == NO_FUNCTION:
            raise Stopped(steps.no_answer(instance, step, last))
        return False
    due = (last.until or 0) + (last.delay or 0)
    while (now := instance.host.now()) < due:
        if due - now > instance.limits.far or instance.draining:
            await _sleep(instance, WaitRow(RUN, UNDO_CASE, "retry", at=due))
        await instance.flush_puts()
        await events.wait(instance, due)
    return True


async def _leave_memory(instance: Instance) -> None:
    await _sleep(instance, WaitRow(RUN, UNDO_CASE, "after", at=instance.host.now()))


async def _sleep(instance: Instance, wake: WaitRow) -> None:
    """An undo waits: so does the instance, with what else can wake it if it is unwinding."""
    others = instance.wait_rows() if instance.phase == "run" else ()
    await instance.save("waiting", release=True, waits=(*others, wake))
    raise LeftMemory


def _check_undone(instance: Instance, program: Program, entry: UndoEntry, value: object) -> None:
    types = program.types
    if _is(value, types.settled, "Known"):
        assert isinstance(value, Variant)
        value = value.payload[0]
    if _is(value, types.settled, "Unknown"):
        raise Stopped(_could_not_undo(entry.target, "Unknown"))
    if _is(value, types.result, "Err"):
        assert isinstance(value, Variant)
        raise Stopped(_could_not_undo(entry.target, value_text(value.payload[0])))


def _could_not_undo(step: str, why: str) -> Failure:
    return Failure("R0015", f"{step} could not undo: {why}")


async def _undo_send(instance: Instance, entry: UndoEntry) -> None:
    """An undo that is a send: one message, its key the undo's; Err(Ended) is done too."""
    machine = instance.machine
    key = undo_key(machine.id, machine.birth, machine.pass_number, entry.number)
    raw = parse_json(entry.args)
    assert isinstance(raw, list)
    other, channel, value, *own = raw
    assert isinstance(other, dict)
    message_key = own[0] if own and isinstance(own[0], str) else key
    instance.sends.append(
        NewMessage(
            key,
            str(other["instance"]),
            str(other["birth"]),
            str(channel),
            json_text(value),
            message_key,
            asked=entry.args,
            pass_number=machine.pass_number,
        )
    )
    saved = await instance.save("running", release=False)
    outcome = saved.sent[0].outcome
    if outcome == "Full":
        raise Stopped(_could_not_undo(f"the send to {channel}", "Full"))
    instance.note("undone", step=f"send {channel}", key=key)


def _is(value: object, enum: object, name: str) -> bool:
    return isinstance(value, Variant) and value.type is enum and value.name == name
