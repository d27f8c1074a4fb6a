"""What people ask of an instance and are told of it: resume, answer, a wait or a stop in words.

The API, the tests of flows and the command line use these; none of it is part of the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable

from qoqi.runtime.model import InstanceRow, Status, WaitView
from qoqi.runtime.store.protocol import Store
from qoqi.vm.failure import FlowError
from qoqi.vm.frames import AtOperation
from qoqi.vm.interpreter import decode
from qoqi.vm.jsonform import json_text, parse_json, to_json, type_text
from qoqi.vm.operations import fits_name
from qoqi.vm.program import Program
from qoqi.vm.snapshot import thaw
from qoqi.vm.text import time_text
from qoqi.vm.values import TermValue, Time

__all__ = ["answer", "asked_for", "fits_name", "resume", "stopped_message", "wait_words"]

QUESTION = "F0104"
UNIT = ("Tuple",)


def stopped_message(row: InstanceRow) -> str | None:
    """Why an instance stopped, None if it did not."""
    if row.stopped_by is None or row.status is not Status.STOPPED:
        return None
    raw = parse_json(row.stopped_by)
    return str(raw["message"]) if isinstance(raw, dict) else row.stopped_by


def wait_words(wait: WaitView, channels: list[str]) -> str:
    """A row of `waits` as a person reads it."""
    match wait.kind:
        case "receive" | "send" if wait.channel is not None:
            return f"{wait.kind} {channels[wait.channel]}"
        case "after" | "retry" if wait.at is not None:
            word = "until" if wait.kind == "after" else "to try again at"
            return f"{word} {time_text(Time(wait.at))}"
        case "flow":
            return f"the end of {wait.other}"
        case "all":
            return f"the end of {wait.left} instance{'' if wait.left == 1 else 's'}"
        case "answer":
            return "an answer"
        case "slot":
            return "a free place among the attempts of its step"
        case "cancelled":
            return "a cancellation"
        case _:
            return wait.kind


def asked_for(program: Program, row: InstanceRow) -> tuple[str, TermValue] | None:
    """The key and the wanted type of the `flow.stop` an instance is stopped at."""
    if row.error_code != QUESTION or row.status is not Status.STOPPED:
        return None
    for task in thaw(row.state, program).tasks.values():
        if isinstance(task.at, AtOperation) and task.at.name == "flow.stop":
            term = task.at.args[1]
            assert isinstance(term, TermValue)
            return task.at.key, term
    return None


def answer(
    store: Store,
    code: Callable[[str], Program],
    row: InstanceRow,
    raw: object,
    now: int,
    actor: str,
) -> str | None:
    """A person's answer to `flow.stop`: kept under its key, and the instance goes on.

    Gives None, or why it was refused.
    """
    program = code(row.version)
    question = asked_for(program, row)
    if question is None:
        return "it asks no question"
    key, term = question
    try:
        value = decode(program, raw, term)
    except FlowError as misfit:
        return misfit.message
    posted = store.post_result(key, json_text(to_json(value)), now, actor)
    if posted.outcome != "ok":
        return posted.text or posted.outcome
    resumed = store.resume(row.id, now, actor, row.version)
    return None if resumed.outcome == "ok" else resumed.text or resumed.outcome


def resume(
    store: Store, code: Callable[[str], Program], row: InstanceRow, now: int, actor: str
) -> str | None:
    """A plain resume; one of a `flow.stop` answers `()`, and is refused if more is wanted."""
    if not row.paused:
        program = code(row.version)
        question = asked_for(program, row)
        if question is not None:
            if question[1].term != UNIT:
                wanted = type_text(question[1].term, program.types)
                return f"its question wants a {wanted}: answer it"
            return answer(store, code, row, None, now, actor)
    resumed = store.resume(row.id, now, actor, row.version)
    return None if resumed.outcome == "ok" else resumed.text or resumed.outcome
