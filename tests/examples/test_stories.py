"""The three stories of examples/, played with real processes: a daemon, a bank, and a kill -9."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest
from payments_crash import INVOICES, NAME, asked, carried_out, until_the_third_charge_was_answered
from playground import Playground, wait_for

CLAIM = '{"claim": {"employee": "kim", "cents": 4250}}'
APPROVED = '{"Approved": {"by": "ana"}}'
TWO_DAYS = 2 * 86_400_000

# What had an answer once, what had none twice.
ASKED_AFTER_THE_CRASH = {
    "retryInvoice#1:charge#1": 2,
    "retryInvoice#1:record#1": 1,
    "retryInvoice#2:charge#1": 1,
    "retryInvoice#2:record#1": 2,
    "retryInvoice#3:charge#1": 1,
    "retryInvoice#3:record#1": 2,
}


@contextmanager
def playing(*options: str) -> Generator[Playground]:
    with Playground(options) as found:
        found.start_bank()
        found.serve()
        found.qoqi("deploy")
        yield found


@pytest.fixture
def ground() -> Iterator[Playground]:
    with playing("--lease", "2s", "--renew", "500ms") as found:
        yield found


def test_two_days(ground: Playground) -> None:
    """The five lines of the approval: it waits in the store, and a message ends it."""
    begin = time.time_ns() // 1_000_000
    ground.qoqi("start", "Approval", "expense:4411", CLAIM)
    life = ground.wait_until("expense:4411", "waiting")

    waits = {wait["kind"]: wait for wait in life["waits"]}
    assert set(waits) == {"receive", "after"}
    assert waits["receive"]["channel"] == "decisions"
    assert 0 <= waits["after"]["at"] - begin - TWO_DAYS < 60_000
    assert life["instance"]["held_by"] is None

    ground.qoqi("send", "expense:4411", "decisions", APPROVED, "--key", "click-77")
    life = ground.wait_until("expense:4411", "done")
    assert life["result"] == {"Approved": {"by": "ana"}}
    assert life["messages"] == []
    assert life["waits"] == []


def test_a_repeated_message_is_one_message(ground: Playground) -> None:
    ground.qoqi("start", "Approval", "expense:1", CLAIM)
    send = ["send", "expense:1", "decisions", APPROVED, "--key", "click-77"]
    ground.qoqi(*send)
    ground.wait_until("expense:1", "done")

    again = ground.run(*send)
    other = ground.run("send", "expense:1", "decisions", APPROVED, "--key", "click-78")
    assert again.returncode == 0
    assert again.stdout.startswith("duplicate: expense:1: ")
    assert other.returncode == 3


def test_an_approval_outlives_its_daemon(ground: Playground) -> None:
    ground.qoqi("start", "Approval", "expense:2", CLAIM)
    ground.wait_until("expense:2", "waiting")
    ground.crash_daemon()
    ground.serve()
    ground.qoqi("send", "expense:2", "decisions", '{"Rejected": {"by": "bo", "why": "late"}}')

    life = ground.wait_until("expense:2", "done")
    assert life["result"] == {"Rejected": {"by": "bo", "why": "late"}}


def test_three_payments_and_a_crash(ground: Playground) -> None:
    """What was answered is not asked again; what was not, is, under its key and after its limit."""
    until_the_third_charge_was_answered(ground)
    ground.crash_daemon()
    ground.serve()
    life = ground.wait_until(NAME, "done")

    assert [receipt["id"].partition("-")[0] for receipt in life["result"]] == ["receipt"] * 3
    assert len({receipt["id"] for receipt in life["result"]}) == 3
    assert asked(ground) == ASKED_AFTER_THE_CRASH
    assert set(carried_out(ground).values()) == {1}

    birth = life["instance"]["birth"]
    attempts = {(a["key"], a["attempt"]): a for a in life["attempts"]}
    for step in ("0/retryInvoice#1:charge#1", "0/retryInvoice#2:record#1"):
        key = f"{NAME}/{birth}/0:{step}"
        first, second = attempts[key, 1], attempts[key, 2]
        assert first["outcome"] in {"timeout", "retry"}
        assert second["outcome"] == "answer"
        # The first was given up at its limit, which counts from a moment before its row was
        # written; the second left after a pause of a second.
        assert first["until"] >= first["started"] + 5_000 - 100
        assert second["started"] >= first["until"] + 1_000
        assert first["owner"] != second["owner"]


def test_a_crash_costs_nothing_where_the_lock_proves_it() -> None:
    """With `--recover at-once` neither the lease nor a limit is waited for."""
    with playing("--recover", "at-once") as ground:
        until_the_third_charge_was_answered(ground)
        ground.crash_daemon()
        ground.serve()
        begin = time.monotonic()
        ground.wait_until(NAME, "done")

        assert time.monotonic() - begin < 5.0
        assert asked(ground) == ASKED_AFTER_THE_CRASH
        assert set(carried_out(ground).values()) == {1}


def test_a_drained_daemon_costs_nothing(ground: Playground) -> None:
    """SIGTERM: the step under way ends and is kept, the next daemon goes on, no step runs twice."""
    ground.tell_bank(match="retryInvoice#1:charge", delay=1.0)
    ground.qoqi("start", "Retries", NAME, json.dumps(INVOICES))
    wait_for("the first charge", lambda: "retryInvoice#1:charge#1" in asked(ground))
    assert ground.stop_daemon() == 0
    assert ground.counts()["asked"].keys() == ground.counts()["done"].keys()

    ground.serve()
    begin = time.monotonic()
    ground.wait_until(NAME, "done")
    assert time.monotonic() - begin < 2.0
    assert asked(ground) == dict.fromkeys(ASKED_AFTER_THE_CRASH, 1)


def test_an_order_goes_out(ground: Playground) -> None:
    ground.qoqi("start", "Purchase", "order:1", order("1"))
    life = ground.wait_until("order:1", "done")

    assert life["result"] == {"Ok": {"tracking": "parcel-3"}}
    assert ground.done() == ["/reserve", "/charges", "/ship"]


def test_an_order_is_undone_in_reverse(ground: Playground) -> None:
    ground.tell_bank(match="/ship", status=409)
    ground.qoqi("start", "Purchase", "order:2", order("2"))
    life = ground.wait_until("order:2", "done")

    assert life["result"] == {"Err": "NoCarrier"}
    assert ground.done() == ["/reserve", "/charges", "/refund", "/release"]
    assert life["undos"] == []


def test_a_cancelled_order_keeps_nothing(ground: Playground) -> None:
    """A step under way may end, its undo counts, and the instance has failed."""
    ground.tell_bank(match="/charges", delay=1.5)
    ground.qoqi("start", "Purchase", "order:3", order("3"))
    ground.wait_until("order:3", "running")
    wait_for("the charge", lambda: "/charges" in ground.done())
    ground.qoqi("cancel", "order:3", "--reason", "customer called")
    life = ground.wait_until("order:3", "failed")

    assert "customer called" in json.dumps(life["result"])
    assert ground.done() == ["/reserve", "/charges", "/refund", "/release"]


def order(id: str) -> str:
    return json.dumps({"order": {"id": id, "item": "lamp", "cents": 4900}})
