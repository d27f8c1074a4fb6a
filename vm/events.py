"""What happens to an instance while it is in memory: one event at a time, and the passing of time.

`turn` and `finish` both wait here. An attempt that settles goes to the task that asked for it,
unless the instance is ending: then no task goes on, and what settled is only kept.
"""

from __future__ import annotations

from qoqi.vm import steps, waits
from qoqi.vm.frames import AtStep
from qoqi.vm.host import Cancel, CancelTold, Drain, Event, Saved, SlotFree, StepEnded, Told
from qoqi.vm.instance import CancelFound, Instance, OpenAttempt
from qoqi.vm.jsonform import json_text

TOGETHER = 100
"""Of a stream of events no more than so many are applied before the turn goes on."""


async def wait(instance: Instance, until: int | None) -> None:
    """Waits for the next event, at most until then, and applies it and the time that passed.

    What else has happened by then is applied as well: all that follows goes on in one turn.
    """
    await _apply(instance, await instance.host.event(until))
    for _ in range(TOGETHER):
        if not instance.host.ready():
            break
        await _apply(instance, await instance.host.event(until))
    await pass_time(instance)


async def _apply(instance: Instance, event: Event) -> None:
    match event:
        case StepEnded():
            opened = await steps.ended(instance, event)
            if opened is not None:
                _settled(instance, opened)
        case Told(other):
            await look(instance, other)
        case CancelTold():
            instance.cancel_told = True
        case SlotFree(step):
            if not instance.ending:
                steps.slot_is_free(instance, step)
        case Drain():
            instance.draining += 1
        case _:
            pass


async def look(instance: Instance, other: str | None = None) -> None:
    """Reads what may have landed: messages, answers of other daemons' bodies, other instances."""
    if not instance.ending:  # nobody takes them any more: they stay untaken
        waits.admit(instance, await instance.host.messages())
    for opened in await steps.look_again(instance):
        _settled(instance, opened)
    if other is None:
        instance.look_others = True
    else:
        instance.told_of.add(other)


async def pass_time(instance: Instance) -> None:
    """Gives up what is past its limit and notes the tries whose delay is over."""
    now = instance.host.now()
    soonest = instance.soonest()
    if soonest is None or now < soonest:
        return
    instance.forget_soonest()
    for opened in [one for one in instance.open.values() if one.until <= now]:
        if await steps.out_of_time(instance, opened):
            _settled(instance, opened)
    if instance.ending:
        return
    for name in [name for name, at in instance.retries.items() if at <= now]:
        task = instance.machine.tasks.get(name)
        if task is not None and not task.ended:
            steps.retry_now(instance, task)


def _settled(instance: Instance, opened: OpenAttempt) -> None:
    if instance.ending:
        return
    if opened.step.limits:
        steps.slot_is_free(instance, opened.step.name)
    if not opened.task:
        return
    task = instance.machine.tasks.get(opened.task)
    if task is None or task.ended:
        steps.keep_undo(instance, opened)
    elif isinstance(task.at, AtStep):
        steps.consider(instance, task)


def heed(instance: Instance, saved: Saved) -> None:
    """Acts on what a save in the run phase gave back: a pause, a cancellation."""
    instance.paused = instance.paused or saved.paused
    instance.cancel_told = False
    if saved.cancel is not None and instance.phase == "run":
        hear(instance, saved.cancel)


def hear(instance: Instance, cancel: Cancel) -> None:
    """A flow that listens is given the reason at its next wait; any other is cancelled here.

    One that is stopped hears nothing: none of its tasks goes on.
    """
    if cancel.now or instance.taken.stopped or not instance.program.chunk.listens:
        raise CancelFound(cancel)
    instance.seen_cancel = cancel.id
    if cancel.id not in instance.heard:
        instance.heard.add(cancel.id)
        instance.machine.cancels.append(json_text({"reason": cancel.reason, "at": cancel.at}))
        instance.dirty = True
