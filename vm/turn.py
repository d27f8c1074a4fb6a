"""The algorithm of an instance's life (seed 004, sections 2, 3 and 5), against Host alone.

`run` takes an instance up, lets everything that can go on go on, writes it before anything leaves,
and returns when it has left memory: asleep, stopped or ended. It is `await`ed but imports no event
loop: the daemon drives it with asyncio, tests drive it with a host of their own.

The one guarantee: nothing leaves the program before the save that names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from qoqi.vm import events, finish, operations, steps, waits
from qoqi.vm.effects import (
    Ended,
    Failed,
    Operation,
    OutOfBudget,
    PassStage,
    StepCall,
    Wait,
)
from qoqi.vm.failure import Failure, FlowError
from qoqi.vm.frames import AtOperation, AtStep, AtWait, Task
from qoqi.vm.frozen import SnapshotError
from qoqi.vm.host import (
    Cancel,
    Host,
    LeaseLost,
    LedgerLine,
    Limits,
    NameTaken,
    PutLost,
    Save,
    TakenUp,
    WaitRow,
)
from qoqi.vm.instance import (
    CancelFound,
    Instance,
    LeftMemory,
    Stopped,
    failure_json,
    read_attempts,
)
from qoqi.vm.interpreter import advance, trace
from qoqi.vm.jsonform import parse_json
from qoqi.vm.keys import RUN
from qoqi.vm.migrate import NotMoved, move
from qoqi.vm.program import Program
from qoqi.vm.snapshot import frozen_stage, thaw, version_of
from qoqi.vm.values import UNSET


async def run(taken: TakenUp, host: Host, code: Callable[[str], Program], limits: Limits) -> None:
    """One stay in memory of an instance. Raises LeaseLost when a write of it was refused."""
    try:
        instance = await take(taken, host, code, limits)
    except NotMoved as stays:
        await _stop_untouched(taken, host, stays.failure)
        return
    except (SnapshotError, LookupError) as damage:
        await _stop_untouched(taken, host, Failure("R0016", str(damage)))
        return
    try:
        await live(instance)
    except LeftMemory:
        return
    except PutLost:
        # What memory was given is not what the store keeps: only the store is right.
        raise LeaseLost("an answer was given up before it was written") from None
    except NameTaken as taken_name:
        raise LeaseLost(f"the name {taken_name} was taken before it was written") from None
    except LeaseLost:
        for put in instance.puts:  # answers are not under the lease
            await host.put_alone(put)
        raise


async def take(
    taken: TakenUp, host: Host, code: Callable[[str], Program], limits: Limits
) -> Instance:
    """The instance in memory, ready to go on. Nothing is written.

    The state says in which version it is. A person who resumed it has set the row's version: then
    the state is that of its last stage, and goes over into that version first (section 2b). Raises
    NotMoved if it cannot, SnapshotError or LookupError if it cannot be read.
    """
    state, old = taken.state, version_of(taken.state)
    if old != taken.version:
        lineage = await host.lineage(old, taken.version)
        if not lineage:
            raise SnapshotError(f"version {taken.version} does not come after {old}")
        versions = [(hash, code(hash)) for hash in lineage]
        state = move(state, versions, code(old), resumed=True)
    program = code(taken.version)
    machine = thaw(state, program)
    instance = Instance(taken, machine, program, host, code, limits, taken.phase, taken.result)
    if old != taken.version:
        instance.note("moved", old=old, new=taken.version, stage=machine.stage)
    read_attempts(instance, taken.attempts)
    instance.size = len(taken.state)
    if taken.stopped_state is not None:
        at_stop = thaw(taken.stopped_state, code(version_of(taken.stopped_state)))
        machine.undos_at_stop = [*at_stop.undos_at_stop, *at_stop.undos]
    return instance


async def live(instance: Instance) -> None:
    """The instance moves until it leaves memory. Raises LeftMemory, LeaseLost or PutLost."""
    taken = instance.taken
    try:
        if instance.phase == "finish":
            await finish.go_on(instance)
        try:
            if taken.cancel is not None:
                events.hear(instance, taken.cancel)
            await _take_up(instance)
            await _turn(instance)
        except operations.GaveUp as gave_up:
            await finish.gave_up(instance, gave_up.why)
        except CancelFound as found:
            await finish.cancelled(instance, found.cancel)
    except Stopped as stopped:
        await _stop(instance, stopped.failure)


async def _stop(instance: Instance, failure: Failure) -> None:
    """Nothing more will happen alone: the instance is written as it is, for a person."""
    instance.drop_asked()
    instance.note("stopped", code=failure.code, message=failure.message)
    await instance.save("stopped", release=True, waits=(), stopped_by=failure)
    raise LeftMemory


async def _stop_untouched(taken: TakenUp, host: Host, failure: Failure) -> None:
    """Stops an instance that cannot be loaded, as it was found; a resume counts for nothing.

    Nor can a cancellation be carried out: it is over, or the instance would be due for ever.
    """
    state, version = taken.state, taken.version
    if taken.stopped_state is not None:
        state = taken.stopped_state
        version = version_of(state)
    await host.still(
        Save(
            state=state,
            status="stopped",
            phase=taken.phase,
            stage=None,
            pass_number=-1,
            version=version,
            release=True,
            result=taken.result,
            stopped_by=failure_json(failure),
            error_code=failure.code,
            seen_cancel=None if taken.cancel is None else taken.cancel.id,
            ledger=(LedgerLine("stopped", {"code": failure.code, "message": failure.message}),),
        )
    )


async def _take_up(instance: Instance) -> None:
    """Looks at every task where it stopped (section 2)."""
    waits.admit(instance, instance.taken.messages)
    for task in list(instance.machine.tasks.values()):
        instance.join_group(task)
        if task.ended:
            continue
        if task.at is None:
            instance.runnable.append(task)
        else:
            _consider(instance, task)
    if not instance.replaying:
        steps.open_left(instance)
    await events.pass_time(instance)


def _consider(instance: Instance, task: Task) -> None:
    """Asks again for what a task stopped at. A FlowError is the task's failure, not the daemon's."""
    try:
        if isinstance(task.at, AtStep):
            steps.consider(instance, task)
        elif isinstance(task.at, AtOperation):
            operations.consider(instance, task)
    except FlowError as mistake:
        operations.fail(instance, task, Failure(mistake.code, mistake.message))


# -- turns -------------------------------------------------------------------------------------


async def _turn(instance: Instance) -> None:
    while True:
        if instance.draining or instance.paused:
            await _leave(instance)
            continue
        await _run_tasks(instance)
        if instance.run_ended:
            await finish.returned(instance)
        unwinding = operations.unwinding(instance)
        if unwinding is not None:
            await finish.unwind(instance, unwinding)
            continue
        if not _pending(instance):
            if not instance.open:
                if not _next_kept(instance):
                    await _rest(instance)
                continue
            await _keep_answers(instance)
            await events.wait(instance, instance.soonest())
            continue
        gathered = instance.noted_at + instance.limits.wave
        if instance.open and instance.noted and instance.host.now() < gathered:
            await _keep_answers(instance)
            times = (gathered, instance.soonest())
            await events.wait(instance, min(at for at in times if at is not None))
            continue
        await _write(instance)


async def _keep_answers(instance: Instance) -> None:
    """Before it waits: a cancellation is read by a save, answers are written without the state.

    While more has come already, answers wait for it. The state goes with the wave that leaves.
    """
    if instance.cancel_told and not instance.asks_others():
        events.heed(instance, await instance.save("running", release=False))
    elif not instance.host.ready():
        await instance.flush_puts()


def _pending(instance: Instance) -> bool:
    """Whether something waits for a write: a step to leave, a start, a send, an answer."""
    return bool(instance.noted or instance.asks_others() or instance.replies)


async def _write(instance: Instance) -> None:
    """The save before anything leaves; then the steps leave, and what it found is known."""
    await steps.hold_back(instance)
    if not _pending(instance):
        return
    saved = await instance.save("running", release=False, attempts=True)
    if saved.may_leave:
        await steps.let_leave(instance)
    operations.settle(instance, saved)
    events.heed(instance, saved)


def _next_kept(instance: Instance) -> bool:
    """On a replay: the earliest kept answer that nobody has asked for yet is passed over."""
    if not instance.held:
        return False
    earliest = min(instance.replaying, key=lambda key: instance.replaying[key])
    asked_by = [
        task
        for task in instance.alive()
        if task.name in instance.held and getattr(task.at, "key", "") == earliest
    ]
    if not asked_by:
        del instance.replaying[earliest]
    _release_held(instance)
    return True


def _release_held(instance: Instance) -> None:
    for name in sorted(instance.held):
        task = instance.machine.tasks[name]
        if task.ended or instance.held_back(getattr(task.at, "key", "")):
            continue
        instance.held.discard(name)
        _consider(instance, task)


async def _rest(instance: Instance) -> None:
    """Nothing can go on and nothing is under way: asleep, in memory if the next wake is near."""
    if not instance.can_be_woken():
        raise Stopped(Failure("R0009", "no task can go on, and nothing can wake one: a deadlock"))
    now = instance.host.now()
    wake = instance.next_time()
    far = wake is None or wake - now > instance.limits.far
    if far:
        await instance.save("waiting", release=True)
        raise LeftMemory
    if instance.dirty or instance.cancel_told:
        events.heed(instance, await instance.save("running", release=False))
        waits.admit(instance, await instance.host.messages())
        return
    await events.wait(instance, wake)


async def _leave(instance: Instance) -> None:
    """Drained or paused: steps under way here end, then the instance is written and let go."""
    instance.drop_asked()
    if instance.draining < 2 and any(opened.mine for opened in instance.open.values()):
        await instance.flush_puts()
        await events.wait(instance, instance.next_time())
        return
    elapsed = (WaitRow(RUN, 0, "after", at=instance.host.now()),)
    await instance.save("waiting", release=True, waits=elapsed)
    raise LeftMemory


# -- tasks -------------------------------------------------------------------------------------


BREATH = 200
"""After as many effects the others have a turn: most are answered without a pause."""

STARTS = 10_000
"""After as many starts comes a write: a loop that starts others may have no end."""


async def _run_tasks(instance: Instance) -> None:
    """While a task can go on: it runs. Ends when every task is stopped, or run has ended."""
    ran = 0
    while True:
        while instance.runnable and not instance.run_ended:
            task = instance.runnable.popleft()
            if task.ended:
                continue
            if instance.gated(task):
                instance.gate.append(task)
                continue
            instance.dirty = True
            await _run_task(instance, task)
            ran += 1
            if ran % BREATH == 0:
                await events.wait(instance, instance.host.now())
            if len(instance.starts) >= STARTS:
                return
        if instance.run_ended:
            return
        await _look_at_waits(instance)
        if not instance.runnable:
            instance.look_others = False
            instance.told_of.clear()
            return


async def _look_at_waits(instance: Instance) -> None:
    tasks = instance.machine.tasks.values()
    for task in [task for task in tasks if task.at.__class__ is AtWait]:
        if task.ended or not isinstance(task.at, AtWait):
            continue
        try:
            await waits.look(instance, task)
        except waits.TaskFailed as failed:
            operations.fail(instance, task, failed.failure)
        except FlowError as mistake:
            operations.fail(instance, task, Failure(mistake.code, mistake.message))


async def _run_task(instance: Instance, task: Task) -> None:
    effect = advance(instance.program, instance.machine, task, instance.limits.slice)
    try:
        match effect:
            case StepCall():
                steps.ask(instance, task, effect)
            case Operation():
                await operations.answer(instance, task, effect)
            case Wait():
                waits.begin(instance, task, effect)
            case PassStage(stage):
                await _pass_stage(instance, task, stage)
            case Ended(value):
                _task_ended(instance, task, value)
            case Failed(failure):
                operations.fail(instance, task, failure)
            case OutOfBudget():
                instance.runnable.append(task)
                await events.wait(instance, instance.host.now())
    except FlowError as mistake:
        operations.fail(instance, task, Failure(mistake.code, mistake.message))


def _task_ended(instance: Instance, task: Task, value: object) -> None:
    task.ended = True
    task.value = value
    task.frames.clear()
    if task.name == RUN:
        instance.run_ended, instance.run_value = True, value
    if task.group:
        instance.runnable.extend(instance.gate)
        instance.gate.clear()


async def _pass_stage(instance: Instance, task: Task, number: int) -> None:
    """A stage (section 5): where run is alone, what was done before it is behind it for good."""
    machine, program = instance.machine, instance.program
    stage = program.chunk.stages[number]
    alone = instance.run_alone() and not instance.noted
    if alone:
        untaken = finish.unclaimed(instance)
        if untaken:
            raise Stopped(replace(finish.not_asked_again(untaken), trace=trace(program, task)))
    machine.pass_number += 1
    machine.stage = stage.name
    instance.note("stage", name=stage.name, pass_number=machine.pass_number)
    if alone:
        frame = task.frames[0]
        named = {slot for _, slot, _ in stage.variables}
        for slot in range(len(frame.slots)):
            if slot not in named:
                frame.slots[slot] = UNSET
        machine.tasks = {RUN: task}
        instance.groups.clear()
        task.counts.clear()
        machine.undos_at_stop.clear()
        _forget_before(instance, machine.pass_number)
        instance.at_stage = frozen_stage(machine, program)
        await _move_on(instance, instance.at_stage)
        task = instance.machine.tasks[RUN]
    instance.runnable.appendleft(task)


async def _move_on(instance: Instance, state: Callable[[], str]) -> None:
    """To the newest version, if there is one: it is written before it goes on in other bytecode.

    What cannot go over stays as it is, and stops. Where a version cannot be loaded here, which
    another daemon may be able to, the instance only stays.
    """
    flow, old = instance.taken.flow, instance.version
    try:
        newest = await instance.host.newest(flow)
        if newest is None or newest == old:
            return
        lineage = await instance.host.lineage(old, newest)
        versions = [(hash, instance.code(hash)) for hash in lineage]
    except LookupError as missing:
        instance.note("not_moved", why=str(missing))
        return
    if not versions:
        return
    try:
        moved = move(state(), versions, instance.program)
        program = instance.code(newest)
        machine = thaw(moved, program)
    except NotMoved as stays:
        raise Stopped(stays.failure) from None
    except SnapshotError as damage:
        raise Stopped(Failure("R0016", str(damage))) from None
    instance.machine, instance.program = machine, program
    instance.at_stage = lambda: moved
    instance.note("moved", old=old, new=newest, stage=machine.stage)
    events.heed(instance, await instance.save("running", release=False))
    if machine.cancels and not program.chunk.listens:
        # It was to be heard by the old code; the new code cannot, so it ends the instance here.
        asked = parse_json(machine.cancels[0])
        assert isinstance(asked, dict)
        cancel = Cancel("", str(asked["reason"]), False, instance.host.now())
        machine.cancels.clear()
        raise CancelFound(cancel)


def _forget_before(instance: Instance, pass_number: int) -> None:
    """The attempts of earlier passes go with the next write; answers not written yet never land."""
    old = {key for key, row in instance.kept.items() if row.pass_number < pass_number}
    for key in old:
        del instance.kept[key]
        instance.spent.pop(key, None)
        instance.first_started.pop(key, None)
        instance.replaying.pop(key, None)
        instance.given_here.discard(key)
    instance.given = [mark for mark in instance.given if mark.key not in old]
    instance.answers = [one for one in instance.answers if one.pass_number >= pass_number]
    instance.answered = len(instance.answers)
    instance.drop_before = pass_number
