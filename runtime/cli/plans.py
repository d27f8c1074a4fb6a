"""`qoqi resume` and `qoqi answer`: what a resume would take and do, as a diff a person decides on.

A line is a key since the last stage. In front of it, as in a diff:

    =  was answered, and is asked for again: the answer is taken, nothing leaves
    !  was answered, and something else is asked under it now (F0102)
    -  was answered, and nobody asks for it any more (F0101)
    ·  was answered, and is not asked for as far as one can see
    ~  was tried without an answer, and is tried again
    +  is new
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.runtime.api import wire
from qoqi.runtime.api.wire_versions import PlanItem, PlanView, ResumeAnswer
from qoqi.runtime.cli import life, render
from qoqi.runtime.cli.connect import daemon, json_argument
from qoqi.runtime.cli.ending import REFUSED, fail, show_json
from qoqi.runtime.cli.history import short_key
from qoqi.runtime.cli.instances import Target

Line = tuple[str, str]

_MARKS = {"taken": "=", "other": "!", "dropped": "-", "unasked": "·", "again": "~", "new": "+"}
_ROLES = {"other": "bad", "dropped": "bad", "unasked": "note"}


def resume(to: Target, name: str, go: bool, as_json: bool) -> None:
    with daemon(*to) as client:
        answer = client.resume(name, go=go)
    if as_json:
        show_json(wire.write(answer))
    elif answer.outcome == "ok":
        render.lines([("", life.position(answer.instance))], render.console())
    else:
        render.lines(_dry(answer), render.console())


def answer(to: Target, name: str, value: str, key: str | None, as_json: bool) -> None:
    """To its question, which goes on by it; or under the key of a step, which a resume takes."""
    given = json_argument(value, "the answer")
    with daemon(*to) as client:
        if key is None:
            found = client.answer(name, given)
        else:
            found = client.answer_attempt(_whole_key(client.life(name), key), given)
    if as_json:
        show_json(wire.write(found))
    else:
        taken = "" if found.resumed else f"; `qoqi resume {name}` takes the answer"
        render.lines([("", f"{life.position(found.instance)}{taken}")], render.console())


def _whole_key(view: wire.LifeView, key: str) -> str:
    """A key as `qoqi show` has it, `charge#1`, or whole."""
    keys = dict.fromkeys(one.key for one in view.attempts if one.step)
    for whole in keys:
        if key in (whole, short_key(whole)):
            return whole
    asked = ", ".join(map(short_key, keys)) or "none"
    fail(REFUSED, f"{view.instance.name} has no step under {key} (it has: {asked})")


def _dry(answer: ResumeAnswer) -> Iterator[Line]:
    at = answer.instance
    yield "title", life.position(at)
    if answer.plan is None:
        yield "", "a resume ends its pause; nothing else changes"
    else:
        if at.stopped_by:
            yield "", f"  stopped by  {at.stopped_by}"
        yield from _ending(answer.plan) if at.phase == "finish" else plan(answer.plan)
    yield "note", f"nothing was changed; `qoqi resume {at.name} --go` does it"


def _ending(view: PlanView) -> Iterator[Line]:
    """An instance that is ending only runs its undos on: no code of its flow asks anything."""
    yield "", "  goes on     with its end: the undos that are left run, the last registered first"
    yield from _next(view)


def plan(view: PlanView) -> Iterator[Line]:
    """A plan as lines."""
    yield "", f"  from        stage {view.stage or 'start'}, version {view.old[:12]}"
    same = ", the same" if view.old == view.new else ""
    yield "", f"  in          version {view.new[:12]}{same}"
    for item in view.items:
        yield from _item(item, view)
    for stage in view.stages:
        yield "", f"  passes stage {stage}"
    yield from _next(view)


def _next(view: PlanView) -> Iterator[Line]:
    if view.code is None:
        for words in view.next:
            yield "title", f"  then {words}"
        return
    yield "bad", f"  then it would stop: {view.code}: {view.message}"
    for line in view.lines:
        yield "bad", f"    at {line}"


def _item(item: PlanItem, view: PlanView) -> Iterator[Line]:
    role = _ROLES.get(item.what, "")
    mark = _MARKS.get(item.what, "?")
    asked = item.now if item.what in ("taken", "again", "new") else item.before
    yield role, f"  {mark} {short_key(item.key)} {life.value(asked)}{_answer(item)}"
    if item.what == "other":
        yield role, f"      asked now: {life.value(item.now)}"
    yield "note", f"      {_places(item, view)}"


def _answer(item: PlanItem) -> str:
    if item.what in ("new", "again"):
        return ""
    return f" -> {life.value(item.answer)}"


def _places(item: PlanItem, view: PlanView) -> str:
    """Where it was asked before, in which version, and where it is asked now."""
    before = ""
    if item.what != "new" and item.version is not None:
        where = f"{item.line_before} " if item.line_before else ""
        before = f"{where}in {item.version[:12]}"
    now = f"{item.line_now} in {view.new[:12]}" if item.line_now else ""
    if before and now:
        return before if before == now else f"{before}, now {now}"
    return before or now
