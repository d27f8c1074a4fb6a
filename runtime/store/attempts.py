"""Attempts: each write says WHERE result IS NULL, so the first to land stands, whoever comes after.

None of these is under the lease of the instance: a step belongs to its attempt. An answer that
comes after its attempt was given up is kept beside it and in the ledger, for people.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from qoqi.runtime.store import sql
from qoqi.runtime.store.dialect import Database, Row
from qoqi.runtime.store.lifecycle import note
from qoqi.vm.host import FAILED, LOST, RETRY, SPENT, TIMEOUT, WORDS, Attempt, PutResult

# After an instance's name a key has its birth, its pass, and a task, whose name starts with 0.
_KEY_AFTER_NAME = re.compile(r"(?=/([^/]+)/(\d+):0[/:])")
_GIVEN_UP = frozenset({TIMEOUT, RETRY, LOST})
_UNDO_KEY = re.compile(r":0:undo#\d+$")


def attempt_of(row: Row) -> Attempt:
    values: list[Any] = list(row)
    values[15] = bool(row[15])
    return Attempt(*values)


def key_range(id: str, birth: str) -> dict[str, object]:
    """Encloses the keys of an instance: `0` is the character after `/`."""
    start = f"{id}/{birth}"
    return {"id": id, "low": f"{start}/", "high": f"{start}0"}


def places(key: str) -> Iterator[tuple[str, str, int]]:
    """The (name, birth, pass) that a key may stand for: a name may have slashes of its own."""
    for match in _KEY_AFTER_NAME.finditer(key):
        yield key[: match.start()], match[1], int(match[2])


def last(db: Database, key: str) -> Attempt | None:
    row = db.one(sql.LAST_ATTEMPT, {"key": key})
    return None if row is None else attempt_of(row)


def of_instance(db: Database, id: str, birth: str) -> tuple[Attempt, ...]:
    return tuple(attempt_of(row) for row in db.all(sql.ATTEMPTS, key_range(id, birth)))


def put_result(db: Database, put: PutResult, now: int) -> tuple[Attempt | None, str | None]:
    place = {"key": put.key, "attempt": put.attempt}
    values = {
        **place,
        "result": put.result,
        "failure": put.failure,
        "undo": put.undo,
        "now": now,
    }
    if put.given is None:
        written = db.run(sql.PUT, values)
    else:
        values |= {"given": put.given, "given_at": put.given_at}
        written = db.run(sql.PUT_GIVEN, values)
    found = db.one(sql.ATTEMPT, place)
    if found is None:
        return None, None
    (instance,) = db.one(sql.ATTEMPT_INSTANCE, place) or ("",)
    if written:
        note(db, instance, now, "answered", {**place, **_ended_how(put)})
    owner = db.one(sql.OWNER, {"id": instance})
    return attempt_of(found), None if owner is None else owner[0]


def _ended_how(put: PutResult) -> dict[str, object]:
    return {"word": FAILED} if put.result == FAILED else {}


def give_up(
    db: Database, key: str, attempt: int, word: str, delay: int, now: int
) -> tuple[bool, Attempt | None]:
    if word not in _GIVEN_UP:
        raise ValueError(f"{word} does not say why an attempt is given up")
    place = {"key": key, "attempt": attempt}
    written = db.run(sql.GIVE_UP, {**place, "word": word, "delay": delay, "now": now})
    found = db.one(sql.ATTEMPT, place)
    if written:
        (instance,) = db.one(sql.ATTEMPT_INSTANCE, place) or ("",)
        detail: dict[str, object] = {"key": key, "attempt": attempt, "word": word, "delay": delay}
        note(db, instance, now, "given up", detail)
    return bool(written), None if found is None else attempt_of(found)


def late(db: Database, key: str, attempt: int, result: str, now: int) -> None:
    """In the ledger too, since a stage deletes the attempt; of a gone instance nothing is kept."""
    place = {"key": key, "attempt": attempt}
    db.run(sql.LATE, {**place, "result": result})
    for id, birth, _ in places(key):
        if db.one(sql.ENDED, {"id": id, "birth": birth}) is not None:
            note(db, id, now, "late", {**place, "result": result})
            return


def working(db: Database, key: str, attempt: int) -> bool:
    return db.one(sql.WORKING, {"key": key, "attempt": attempt}) is not None


def under_way(db: Database, step: str, now: int) -> int:
    row = db.one(sql.UNDER_WAY, {"step": step, "now": now})
    return 0 if row is None else int(row[0])


def begun(db: Database, step: str, since: int) -> int:
    row = db.one(sql.BEGUN, {"step": step, "since": since})
    return 0 if row is None else int(row[0])


# -- a resume ----------------------------------------------------------------------------------


def mark_for_resume(db: Database, id: str, birth: str) -> list[dict[str, object]]:
    """Makes way for new attempts, whose numbers go on; nothing is deleted. Gives what it marked."""
    marked: list[dict[str, object]] = []
    for found, word in marks(of_instance(db, id, birth)):
        place: dict[str, object] = {"key": found.key, "attempt": found.attempt}
        db.run(sql.MARK, {**place, "word": word})
        marked.append({**place, "result": found.result})
    return marked


def marks(attempts: Iterable[Attempt]) -> list[tuple[Attempt, str]]:
    """The attempts whose results a resume changes, each with its new word.

    What was given up, or failed in a step that may run again, is `spent`: it reads as nothing kept
    and is no try. So is an undo that answered Err or Unknown: a person has looked, and it runs
    again. Another Settled step that failed may have acted, so it becomes `timeout`: its flow is
    given Unknown. A given-up attempt in whose place `else` was given has been answered, and stays.
    """
    by_key: dict[str, list[Attempt]] = {}
    for found in attempts:
        by_key.setdefault(found.key, []).append(found)
    changed: list[tuple[Attempt, str]] = []
    for tries in by_key.values():
        word = _mark(tries[-1])
        if word is None:
            continue
        changed += [
            (found, word)
            for found in tries
            if found is tries[-1] or (found.result in WORDS and found.result != SPENT)
        ]
    return changed


def _mark(last: Attempt) -> str | None:
    if last.result is None or last.result == SPENT:
        return None
    undo = _UNDO_KEY.search(last.key) is not None
    if last.result not in WORDS:
        return SPENT if undo and _not_undone(last.result) else None
    if last.given is not None:
        return None
    if undo or last.result in (RETRY, LOST) or not last.settled:
        return SPENT
    return TIMEOUT if last.result == FAILED else None


def _not_undone(result: str) -> bool:
    """Whether the answer of an undo's step says that it has not undone."""
    value: Any = json.loads(result)
    while _is_only(value, "Known") or _is_only(value, "Ok"):
        (value,) = value.values()
    return value == "Unknown" or _is_only(value, "Err")


def _is_only(value: Any, name: str) -> bool:
    return isinstance(value, dict) and len(cast(Any, value)) == 1 and name in value
