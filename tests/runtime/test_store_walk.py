"""Random walks: what the store keeps up to date is always what working it out afresh gives.

`wake_at` stands in for the definition of due, which reads every table; `left` for a count of
members. After each step of a walk both are compared with the definition.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from qoqi.runtime.model import ENDED, Phase, Status
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Filter, SendOutcome
from qoqi.vm.host import NewInstance, NewMessage, WaitRow
from tests.runtime.store_lab import KEEP, LEASE, ME, OTHER, Lab, after, request

DUE_BY_DEFINITION = """
SELECT i.id FROM instances i
WHERE i.paused = 0 AND (
   (i.lease_owner IS NOT NULL AND i.lease_until <= :now)
   OR (i.lease_owner IS NULL AND i.status = 'waiting' AND EXISTS (
          SELECT 1 FROM waits w WHERE w.instance = i.id AND (
              w.at <= :now
           OR w."left" = 0
           OR (w."any" > 0 AND EXISTS (
                 SELECT 1 FROM members x LEFT JOIN instances c
                     ON c.id = x.child AND c.birth = x.birth
                 WHERE x.instance = w.instance AND x.task = w.task AND x.kase = w.kase
                   AND (c.id IS NULL OR c.status = 'failed'
                        OR (w."any" = 2 AND c.status = 'done'))))
           OR (w.kind = 'receive' AND EXISTS (
                 SELECT 1 FROM messages m
                 WHERE m.instance = i.id AND m.channel = w.channel AND m.taken IS NULL))
           OR (w.kind = 'answer' AND EXISTS (
                 SELECT 1 FROM messages m JOIN instances c ON c.id = m.instance
                 WHERE m.seq = CAST(w.other AS INTEGER)
                   AND (m.answered IS NOT NULL OR c.status IN ('done', 'failed'))))
           OR (w.kind = 'flow' AND NOT EXISTS (
                 SELECT 1 FROM instances c
                 WHERE c.id = w.other AND c.birth = w.other_birth
                   AND c.status NOT IN ('done', 'failed'))))))
   OR (i.lease_owner IS NULL AND i.status IN ('waiting', 'stopped') AND i.phase = 'run'
       AND i.cancel IS NOT NULL))
ORDER BY i.id
"""

LEFT_BY_DEFINITION = """
SELECT w.instance, w.kase, w."left",
       (SELECT COUNT(*) FROM members x JOIN instances c ON c.id = x.child AND c.birth = x.birth
        WHERE x.instance = w.instance AND x.task = w.task AND x.kase = w.kase
          AND c.status NOT IN ('done', 'failed'))
FROM waits w WHERE w."left" IS NOT NULL
"""

NAMES = [f"n{number}" for number in range(7)]


@pytest.fixture
def lab() -> Iterator[Lab]:
    store = memory_store()
    yield Lab(store)
    store.close()


class Walk:
    """One random step after another on a few instances; each is something a daemon may do."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab = lab
        self.random = random.Random(seed)
        self.requests: list[tuple[int, str]] = []  # (seq, who was asked)
        self.sent = 0
        self.births = 0

    def step(self) -> None:
        lab, draw = self.lab, self.random
        id = draw.choice(NAMES)
        row = lab.store.instance(id)
        if row is None:
            lab.start(id, parent=draw.choice([None, *NAMES]), birth=self.new_birth())
            return
        if row.lease_owner == ME and (row.lease_until or 0) > lab.now and draw.random() < 0.7:
            self.save(id, row.phase)
            return
        match draw.randrange(12):
            case 0:
                lab.now += draw.choice([1, 50, LEASE])
            case 1 | 2 | 3:
                lab.store.lease(id, draw.choice([ME, ME, OTHER]), lab.now, lab.now + LEASE)
            case 4 | 5:
                lab.send(id)
            case 6:
                lab.cancel(id, str(draw.randrange(5)))
            case 7:
                lab.store.resume(id, lab.now, "ana")
            case 8:
                lab.store.end(id, "enough", lab.now, draw.choice([0, KEEP]), "ana")
            case 9 if draw.random() < 0.3:
                lab.store.pause(id, lab.now, "ana")
            case 10:
                lab.store.renew(NAMES, ME, lab.now, lab.now + LEASE)
            case 11:
                lab.store.sweep(lab.now, KEEP)
            case _:
                self.step()

    def save(self, id: str, phase: Phase) -> None:
        draw, lab = self.random, self.lab
        status = draw.choice(["running", "running", "waiting", "waiting", "stopped", "done"])
        changes: dict[str, Any] = {"keep": draw.choice([0, 0, KEEP])}
        if phase is Phase.RUN and draw.random() < 0.15:
            changes |= {"phase": "finish", "enter_finish": "no", "result": '{"Err":1}'}
            status = draw.choice(["running", "waiting", "stopped", "failed"])
        elif phase is Phase.FINISH and status == "done":
            status = draw.choice(["done", "failed"])
        if status in ("running", "waiting"):
            changes["waits"] = tuple(self.wait(case) for case in range(draw.randrange(3)))
        if draw.random() < 0.4:
            untaken = lab.store.messages(id)
            changes["taken"] = tuple((message.seq, 0) for message in untaken[:2])
        if draw.random() < 0.2:
            asked = [seq for seq, who in self.requests if who == id]
            changes["replies"] = tuple((seq, "1") for seq in asked)
        cancel = lab.row(id).cancel
        if cancel is not None and draw.random() < 0.5:
            changes["seen_cancel"] = cancel.split('"')[3]
        children: tuple[Any, ...] = ()
        if draw.random() < 0.2:
            child = draw.choice(NAMES)
            if lab.store.instance(child) is None:
                children = (request(child, id, birth=self.new_birth()),)
                changes["starts"] = (NewInstance(child, "Order", "[]", id),)
        if draw.random() < 0.3:
            to = lab.store.instance(draw.choice(NAMES))
            if to is not None:
                self.sent += 1
                key = f"m{self.sent}"
                changes["sends"] = (
                    NewMessage(key, to.id, to.birth, "decisions", "1", key, asks=True),
                )
        saved = lab.save(id, status, children=children, **changes)
        for sent, new in zip(saved.sent, changes.get("sends", ()), strict=True):
            if sent.outcome == SendOutcome.DELIVERED:
                assert sent.seq is not None
                self.requests.append((sent.seq, new.to))

    def wait(self, case: int) -> WaitRow:
        draw, lab = self.random, self.lab
        match draw.randrange(5):
            case 0:
                return after(lab.now + draw.choice([0, 40, 10_000]), case=case)
            case 1:
                return WaitRow("0", case, "receive", channel=draw.choice([0, 1]))
            case 2:
                other = draw.choice(NAMES)
                return WaitRow("0", case, "flow", other=other, other_birth=self.birth(other))
            case 3 if self.requests:
                seq, _ = draw.choice(self.requests)
                return WaitRow("0", case, "answer", other=str(seq))
            case _:
                some = draw.sample(NAMES, draw.randrange(4))
                of = tuple((name, self.birth(name)) for name in some)
                return WaitRow("0", case, "all", any=draw.randrange(3), members=of)

    def birth(self, name: str) -> str:
        row = self.lab.store.instance(name)
        return "gone" if row is None else row.birth

    def new_birth(self) -> str:
        self.births += 1
        return f"x{self.births}"


def check(lab: Lab) -> None:
    database = lab.store.database
    due = [row[0] for row in database.all(DUE_BY_DEFINITION, {"now": lab.now})]
    gone_requests = {
        row[0]
        for row in database.all(
            "SELECT w.instance FROM waits w WHERE w.kind = 'answer' AND NOT EXISTS "
            "(SELECT 1 FROM messages m WHERE m.seq = CAST(w.other AS INTEGER))",
            {},
        )
    }
    found = set(lab.due())
    assert set(due) <= found
    assert found - set(due) <= gone_requests  # its request was swept with who was asked
    for instance, case, left, counted in database.all(LEFT_BY_DEFINITION, {}):
        assert left == counted, (instance, case)
    for row in (lab.store.instance(name) for name in NAMES):
        if row is None:
            continue
        assert (row.lease_owner is None) == (row.status is not Status.RUNNING)
        assert (row.keep_until is None) == (row.status not in ENDED)


@pytest.mark.parametrize("seed", range(12))
def test_due_and_left_are_what_their_definitions_say(lab: Lab, seed: int) -> None:
    walk = Walk(lab, seed)
    for _ in range(250):
        walk.step()
        check(lab)


def test_the_walks_come_to_every_status() -> None:
    seen = set()
    for seed in range(6):
        lab = Lab(memory_store())
        walk = Walk(lab, seed)
        for _ in range(400):
            walk.step()
            seen |= {(row.status, row.phase) for row in lab.store.instances(Filter())}
        lab.store.close()
    assert seen == {(status, phase) for status in Status for phase in Phase}
