"""The ledger as prose: one line a row, in local time.

Each kind has its sentence; a kind without one is shown as it is, with its details, so nothing is
ever left out. Keys of steps are shown short: `charge#1`, or `0/retry#2:charge#1` in a task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from qoqi.runtime.api.wire import LedgerItem
from qoqi.vm.jsonform import json_text
from qoqi.vm.keys import is_undo

Detail = Mapping[str, object]


def moment(ms: int | None) -> str:
    """A time for people: the local day and second."""
    if ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(ms / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return f"{ms} ms"


def short_key(key: object) -> str:
    """`expense:4411/k7f2/3:0:charge#1` as `charge#1`; a task other than run is kept before it."""
    parts = str(key).rsplit(":", 2)
    task = parts[-2] if len(parts) == 3 else "0"
    return parts[-1] if task == "0" else f"{task}:{parts[-1]}"


def line(row: LedgerItem, *, named: bool = False) -> str:
    """One row as a line; `named` puts the instance before it."""
    words = _words(row)
    by = f" (by {row.actor})" if row.actor and row.kind not in _SAYS_ACTOR else ""
    who = f"{row.instance}: " if named else ""
    return f"{moment(row.at)}  {who}{words}{by}"


def _words(row: LedgerItem) -> str:
    sentence = _SENTENCES.get(row.kind)
    if sentence is not None:
        try:
            return sentence(row.detail)
        except (KeyError, TypeError, ValueError, IndexError):
            return _plain(row)  # a row of another version: its details say it
    return _plain(row)


def _plain(row: LedgerItem) -> str:
    return f"{row.kind} {json_text(dict(row.detail))}" if row.detail else row.kind


def _value(raw: object) -> str:
    text = json_text(raw)
    return text if len(text) <= 200 else f"{text[:199]}…"


def _left(detail: Detail) -> str:
    steps = detail["steps"]
    if not isinstance(steps, list):
        raise TypeError("steps")
    undo = f" {detail['undo']}" if "undo" in detail else ""
    shown = [
        f"{short_key(key)}{undo if is_undo(key) else ''}"
        + (f" (attempt {attempt})" if attempt > 1 else "")
        for key, attempt in steps
    ]
    return f"{', '.join(shown)} left"


def _attempt(detail: Detail) -> str:
    attempt = detail.get("attempt")
    said = "" if attempt in (None, 1) else f" (attempt {attempt})"
    return f"{short_key(detail['key'])}{said}"


def _gave_up(detail: Detail) -> str:
    reasons = {
        "timeout": "gave no answer before its limit",
        "retry": "is to be tried again",
        "lost": "got no answer from the network",
    }
    word = str(detail["word"])
    return f"{_attempt(detail)} {reasons.get(word, word)}"


def _message(detail: Detail) -> str:
    key = detail.get("key")
    return f"a message came to {detail['channel']}" + (f" with key {key}" if key else "")


def _cancel(detail: Detail) -> str:
    now = ", now" if detail.get("now") else ""
    return f"a cancellation was asked for{now}: {detail['reason']}"


def _stopped(detail: Detail) -> str:
    return f"stopped, {detail['code']}: {detail['message']}"


_SENTENCES: dict[str, Callable[[Detail], str]] = {
    "started": lambda d: f"started as {d['flow']}, version {str(d['version'])[:12]}",
    "taken over": lambda d: f"taken over from {d['from']}, whose lease ran out",
    "left": _left,
    "answered": lambda d: f"{_attempt(d)} {'failed' if d.get('word') == 'failed' else 'answered'}",
    "given up": _gave_up,
    "network": lambda d: f"{_attempt(d)} got {d['why']}",
    "late": lambda d: f"{_attempt(d)} answered too late: {d['result']}",
    "message": _message,
    "stage": lambda d: f"reached stage {d['name']}",
    "print": lambda d: f"said: {d['text']}",
    "cancel": _cancel,
    "cancel refused": lambda d: f"refuses to be cancelled ({d['reason']}): {d['text']}",
    "cancelled": lambda d: f"is cancelled: {d['reason']}",
    "finishing": lambda d: (
        "ends; to undo: " + (", ".join(map(str, _list(d["undos"]))) or "nothing")
    ),
    "undone": lambda d: f"undone: {d['step']}",
    "done": lambda d: f"done: {_value(d['result'])}",
    "failed": lambda d: f"failed: {_value(d['result'])}",
    "stopped": _stopped,
    "resumed": lambda d: "resumed",
    "paused": lambda d: "paused",
    "pause over": lambda d: "its pause is over",
    "ended": lambda d: f"ended as {d['status']}: {d['why']}",
    "task_failed": lambda d: f"task {d['task']} failed, {d['code']}: {d['message']}",
    "turn_failed": lambda d: f"the daemon failed to run it ({d['times']}); it is taken up again",
    "many_answers": lambda d: (
        f"kept {d['answers']:,} answers since its last stage; a loop may be missing one"
    ),
    "large_state": lambda d: f"its state is large: {d['bytes']:,} bytes",
    "not_moved": lambda d: f"stays in its version: {d['why']}",
    "moved": lambda d: f"moved from version {str(d['old'])[:12]} to {str(d['new'])[:12]}",
}
_SAYS_ACTOR = frozenset({"taken over"})


def _list(raw: object) -> list[object]:
    if not isinstance(raw, list):
        raise TypeError("a list was expected")
    return raw
