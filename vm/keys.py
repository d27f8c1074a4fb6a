"""Names of tasks and keys of steps and waits (seed 004, section 2 and "Three payments").

A task is `0` for run, else `{parent}/{function}#{n}`. A key is
`{instance}/{birth}/{pass}:{task}:{what}#{n}`; n counts per task, name and pass, so that a new
version that adds a step or a task moves the keys of no other. An undo's n counts registrations
over the instance's whole life (a later undo never meets an earlier one's answer).
"""

from __future__ import annotations

RUN = "0"


def child_task(parent: str, function: str, n: int) -> str:
    return f"{parent}/{function}#{n}"


def key(instance: str, birth: str, pass_number: int, task: str, what: str, n: int) -> str:
    return f"{instance}/{birth}/{pass_number}:{task}:{what}#{n}"


def undo_key(instance: str, birth: str, pass_number: int, n: int) -> str:
    return f"{instance}/{birth}/{pass_number}:{RUN}:undo#{n}"


def task_of(key: str) -> str:
    """The task a key belongs to."""
    return key.rsplit(":", 2)[1]


def is_undo(key: str) -> bool:
    return key.rpartition(":")[2].startswith("undo#")


def pass_of(key: str) -> int:
    """The pass a key belongs to."""
    return int(key.rsplit(":", 2)[0].rpartition("/")[2])
