"""Failures: mistakes that end a task, with the place they were made."""

from __future__ import annotations

from dataclasses import dataclass


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


class FlowError(Exception):
    """Raised inside the machine by a value or a native; the interpreter makes it a `Failure`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
