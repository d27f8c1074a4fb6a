"""An instance's life and a flow as lines of text: what `qoqi show` and `qoqi pkg show` print.

Lines are (role, text); `render.lines` draws them and makes every control character visible, so a
value from outside is shown and never obeyed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qoqi.runtime.api.wire import (
    AttemptItem,
    FlowView,
    InstanceView,
    LifeView,
    StepView,
    WaitItem,
)
from qoqi.runtime.cli.history import line, moment, short_key
from qoqi.vm.jsonform import json_text
from qoqi.vm.text import duration_text
from qoqi.vm.values import Duration

Line = tuple[str, str]

VALUE_WIDTH = 2_000


def position(view: InstanceView) -> str:
    """`expense:4411: asking, waiting`: name, stage, status."""
    status = f"{view.status}, paused" if view.paused else view.status
    return f"{view.name}: {view.stage or 'start'}, {status}"


def value(raw: object) -> str:
    text = json_text(raw)
    return text if len(text) <= VALUE_WIDTH else f"{text[:VALUE_WIDTH]}… ({len(text):,} characters)"


def life(view: LifeView) -> Iterator[Line]:
    """Everything about an instance, from what it is to what happened."""
    at = view.instance
    yield "title", position(at)
    yield "", f"  flow      {at.flow}, version {at.version[:12]}"
    yield "", f"  birth     {at.birth}, {moment(at.created)}"
    yield "", f"  phase     {at.phase}, {at.status} since {moment(at.since)}"
    if at.parent:
        yield "", f"  parent    {at.parent}"
    if at.held_by:
        yield "", f"  held by   {at.held_by}"
    if at.cancel:
        yield "", f"  cancel    {at.cancel}"
    over = at.status in ("done", "failed")
    if at.stopped_by:
        code = f"{at.error_code}: " if at.error_code else ""
        yield (
            "bad",
            f"  {'was ' if over else ''}stopped{'' if over else '  '} {code}{at.stopped_by}",
        )
    for call in view.calls:
        where = f" ({call.file}:{call.line})" if call.line else ""
        yield "bad", f"            at {call.function}{where}"
    if view.result is not None:
        yield "", f"  result    {value(view.result)}"
    if view.note:
        yield "note", f"  note      {view.note}"
    yield from _part("variables", (f"{one.name} = {value(one.value)}" for one in view.variables))
    yield from _part("waits for", map(_wait, view.waits))
    yield from _attempts(view.attempts)
    yield from _part(
        "undos that did not run" if over else "undos, the next to run first",
        (
            f"{undo.target} {value(undo.args)}" + (" (finally)" if undo.final else "")
            for undo in reversed(view.undos)
        ),
    )
    yield from _part(
        "messages not received",
        (
            f"{one.channel}: {value(one.value)}, {moment(one.at)}"
            + (f", key {one.key}" if one.key else "")
            for one in view.messages
        ),
    )
    yield from _part("children", (f"{position(child)} ({child.flow})" for child in view.children))
    yield from _part("history", map(line, view.ledger))


def _part(title: str, shown: Iterable[str]) -> Iterator[Line]:
    first = True
    for text in shown:
        if first:
            yield "title", title
            first = False
        yield "", f"  {text}"


def _wait(wait: WaitItem) -> str:
    task = "" if wait.task == "0" else f"task {wait.task}: "
    what = {
        "receive": f"a message on {wait.channel}",
        "send": f"room in {wait.channel}",
        "after": f"the time {moment(wait.at)}",
        "retry": f"the next try of a step, {moment(wait.at)}",
        "flow": f"the end of {wait.other}",
        "all": f"the end of {wait.left} instances" if wait.left != 1 else "the end of 1 instance",
        "cancelled": "a cancellation",
        "answer": "the answer to a message it sent",
        "slot": "room in a step's limit",
    }
    return task + what.get(wait.kind, wait.kind)


def _attempts(attempts: tuple[AttemptItem, ...]) -> Iterator[Line]:
    """Each attempt with what it was asked and gave; a late answer stands right under it.

    Questions stand in the order in which they were first asked, each with all its attempts.
    """
    first: dict[str, int] = {}
    for one in attempts:
        first[one.key] = min(first.get(one.key, 1 << 62), one.started or 0)
    shown = False
    for one in sorted(attempts, key=lambda one: (first[one.key], one.key, one.attempt)):
        if not one.step and short_key(one.key).startswith("wait#"):
            continue  # what a wait gave: the history has it
        if not shown:
            yield "title", "attempts"
            shown = True
        number = f" (attempt {one.attempt})" if one.attempt > 1 else ""
        undoes = f" {one.step}" if short_key(one.key).startswith("undo#") else ""
        yield "", f"  {short_key(one.key)}{number}{undoes} {value(one.asked)}"
        yield ("bad" if one.failure else ""), f"    {_outcome(one)}"
        instead = one.outcome != "answer" and one.answer is not None
        if instead:
            yield "", f"    its `else` was given: {value(one.answer)}"
        if one.late is not None:
            given = f"the flow was given {'its `else`' if instead else 'Unknown'}"
            when = "it was given up" if one.given is None else given
            yield "bad", f"    came late, after {when}: {value(one.late)}"


def _outcome(one: AttemptItem) -> str:
    if one.outcome == "answer":
        return f"answered {value(one.answer)}, {moment(one.ended)}"
    if one.outcome == "open":
        owner = f" from {one.owner}" if one.owner else ""
        return f"under way{owner} since {moment(one.started)}, given up at {moment(one.until)}"
    words = {
        "timeout": "gave no answer before its limit",
        "retry": "is to be tried again",
        "lost": "got no answer from the network",
        "failed": f"failed, {one.failure}",
        "spent": "spent; a person resumed it",
    }
    return f"{words.get(one.outcome, one.outcome)}, {moment(one.ended or one.until)}"


def flow(view: FlowView) -> Iterator[Line]:
    """A flow: what it takes and gives, its parts, its versions, and who stands where."""
    params = ", ".join(f"{one.name}: {one.type}" for one in view.params)
    yield "title", f"flow {view.flow}({params}) -> {view.result}"
    yield "", f"  newest    {view.newest[:12]}"
    yield "", f"  cancel    {'listens' if view.listens else 'ends it, with its undos'}"
    yield from _part("fields", (f"{one.name}: {one.type}" for one in view.fields))
    yield from _part(
        "channels",
        (
            f"{one.name}: {one.type}, capacity {one.capacity}"
            + (f", answers {one.answers}" if one.answers else "")
            + (", inside" if one.inside else "")
            for one in view.channels
        ),
    )
    yield from _part(
        "stages",
        (
            f"{one.name}({', '.join(f'{part.name}: {part.type}' for part in one.variables)})"
            for one in view.stages
        ),
    )
    yield from _part("steps", map(_step, view.steps))
    newest = view.newest
    yield from _part(
        "versions, the oldest first",
        (
            f"{one.hash[:12]}  deployed {moment(one.deployed_at)}, {one.size:,} bytes"
            + (", newest" if one.hash == newest else "")
            for one in view.versions
        ),
    )
    yield from _part(
        "instances",
        (
            f"{one.instances} at {one.stage or 'start'} in {one.version[:12]}"
            for one in view.standing
        ),
    )


def _step(step: StepView) -> str:
    params = ", ".join(f"{one.name}: {one.type}" for one in step.params)
    tries = {0: "", -1: " tries forever"}.get(step.tries, f" tries {step.tries}")
    undo = f" undo {step.undo}" if step.undo else ""
    extern = "extern " if step.extern else ""
    within = duration_text(Duration(step.within))
    return f"{extern}{step.name}({params}) -> {step.result} within {within}{tries}{undo}"
