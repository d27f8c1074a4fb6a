"""The settings of a daemon as options of a command: one for each field of `Settings`.

`options` are a command's options in place of its `**given`; `read` makes Settings of what was
given. Lengths of time are written as in flows (30s, 5m, 2d), sizes as 1MiB or in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from qoqi.runtime.cli import commands
from qoqi.runtime.cli.commands import Told
from qoqi.runtime.model import Settings

LENGTHS = {
    "lease": "How long an instance is held unrenewed.",
    "renew": "How often leases are renewed.",
    "heartbeat": "How often the daemon says that it lives.",
    "alive": "How long a heartbeat counts; three of them by default.",
    "look": "How often the store is looked at when nothing is told.",
    "far": "An instance that waits longer than this leaves memory.",
    "wave": "How long steps that can leave are gathered for one write.",
    "retry": "Delay of a step without `backoff`.",
    "keep": "How long an ended instance is kept, and a taken message remembered.",
    "drain": "How long steps may end at a stop.",
}
COUNTS = {
    "look_limit": "How many due instances are taken at a look.",
    "tries": "Attempts of a step without `tries`.",
    "slice": "Instructions of one instance before the others have a turn.",
}
SIZES = {
    "state_note": "A state larger than this is noted in the history.",
    "state_limit": "A state larger than this stops its instance.",
    "value_limit": "The largest answer, message or argument that is kept.",
}
MAY_BE_ZERO = frozenset({"wave", "retry", "drain"})
RECOVER = ("wait", "at-once")

_TIMES = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def options() -> dict[str, Told]:
    """The options of a command that runs a daemon, by the names of their settings."""
    return {name: _told(name, what) for name, what in {**LENGTHS, **COUNTS, **SIZES}.items()}


def _told(name: str, what: str) -> Told:
    metavar = "TIME" if name in LENGTHS else "SIZE" if name in SIZES else "COUNT"
    shown = _shown(name, getattr(Settings(), name))
    return commands.option(option(name), help=f"{what} [{shown}]", metavar=metavar)


def _shown(name: str, value: int) -> str:
    units = _TIMES if name in LENGTHS else _UNITS if name in SIZES else {"": 1}
    unit = max((unit for unit in units if value % units[unit] == 0), key=lambda unit: units[unit])
    return f"{value // units[unit]}{unit}"


def read(given: Mapping[str, str | None], recover: str) -> Settings:
    """The settings; what is no value, or fits no other, ends the command."""
    from qoqi.runtime.cli.ending import USAGE, fail

    if recover not in RECOVER:
        fail(USAGE, f"--recover: {recover} is neither {' nor '.join(RECOVER)}")
    values = {name: _value(name, text) for name, text in given.items() if text is not None}
    settings = replace(Settings(), **values, recover_at_once=recover == "at-once")
    if "alive" not in values:
        settings = replace(settings, alive=3 * settings.heartbeat)
    if settings.renew * 2 > settings.lease:
        fail(USAGE, "--renew: at most half of --lease, or leases run out")
    if settings.alive <= settings.heartbeat:
        fail(USAGE, "--alive: longer than --heartbeat, or the daemon looks dead between two")
    if settings.state_note > settings.state_limit:
        fail(USAGE, "--state-note: at most --state-limit")
    return settings


def _value(name: str, text: str) -> int:
    from qoqi.runtime.cli.ending import USAGE, fail
    from qoqi.vm.text import parse_duration

    least = 0 if name in MAY_BE_ZERO else 1
    if name in LENGTHS:
        length = parse_duration(text)
        if length is None or length.ms < least:
            fail(USAGE, f"{option(name)}: {text} is no length of time (30s, 5m, 2d)")
        return length.ms
    match = re.fullmatch(r"([0-9]{1,15})([A-Za-z]*)", text, re.ASCII)
    units = _UNITS if name in SIZES else {"": 1}
    if match is None or match[2] not in units or int(match[1]) * units[match[2]] < least:
        what = "size (65536, 64KiB, 1MiB)" if name in SIZES else "number from 1 up"
        fail(USAGE, f"{option(name)}: {text} is no {what}")
    return int(match[1]) * units[match[2]]
