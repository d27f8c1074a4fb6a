"""Failures: mistakes that end a task, with the place they were made."""

from __future__ import annotations

from collections.abc import Mapping

from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One call: the function, and the line in its file (0 where no debug table is at hand)."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Failure:
    """`code` is R0001 to R0011 or F01xx; `message` has no address, path or time in it."""

    code: str
    message: str
    trace: tuple[TraceLine, ...] = ()


def read_calls(raw: Mapping[str, object]) -> tuple[TraceLine, ...]:
    """The calls of a failure that was kept as JSON; those in another form are left out."""
    kept = raw.get("trace")
    calls = []
    for call in kept if isinstance(kept, list) else []:
        match call:
            case [str() as function, str() as file, int() as line]:
                calls.append(TraceLine(function, file, line))
            case _:
                pass
    return tuple(calls)


class FlowError(Exception):
    """Raised inside the machine by a value or a native; the interpreter makes it a `Failure`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
