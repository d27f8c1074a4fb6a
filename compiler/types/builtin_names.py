"""The names of builtin methods: of channels, instances, requests, tasks and handles of tests."""

from __future__ import annotations

from qoqi.compiler.types.model import Con, Type

METHODS: dict[str, tuple[str, ...]] = {
    "Channel": ("receive", "send", "poll", "close"),
    "Instance": ("wait", "cancel"),
    "Outbox": ("send", "ask"),
    "Request": ("answer",),
    "Task": ("join", "cancel"),
    "test.Handle": (
        *("result", "status", "stage", "stoppedBy", "waits", "undos", "steps"),
        *("cancel", "pause", "resume", "answer", "end"),
    ),
}


def builtin_methods(type_: Type) -> tuple[str, ...]:
    return METHODS.get(type_.name, ()) if isinstance(type_, Con) else ()
