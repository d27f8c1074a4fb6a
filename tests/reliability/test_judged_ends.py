"""Ends that users of durable runtimes have lost money by: what says "done" has been done."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from qoqi.runtime.api import calls
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.vm.host import RETRY, Cancel
from tests.reliability.lab import (
    MINUTE,
    SECOND,
    ending,
    kinds,
    left,
    meddled,
    null,
    programs,
    world,
)
from tests.reliability.site import Site

MAIN = "m.Main"

HELD = """
step hold(what: String) -> String undo drop(it) { return what }
step drop(what: String) -> Result<(), String> tries 2 else OTHERWISE backoff 1s { return Ok(()) }
flow Main() -> Result<String, String> {
    run {
        hold("seat")
        return Err("rain")
    }
}
"""


def spent(otherwise: str) -> Simulation:
    """The undo asks to be tried again until its tries are spent, once; then the world is mended."""

    def answer(leaving: Leaving) -> Reply:
        if leaving.step == "hold":
            return Reply('"seat-1"')
        return Reply(RETRY) if leaving.attempt <= 2 else Reply('{"Ok":null}')

    simulation = world(HELD.replace("OTHERWISE", otherwise), answer)
    simulation.start(MAIN, "i", ())
    simulation.rest()
    return simulation


def test_an_undo_whose_else_is_an_err_has_not_undone() -> None:
    simulation = spent('Err("nobody answers")')
    row = simulation.row("i")
    assert (row.status, row.phase, row.error_code) == ("stopped", "finish", "R0015")
    assert 'drop could not undo: \\"nobody answers\\"' in (row.stopped_by or "")
    assert "undone" not in kinds(simulation, "i")

    assert simulation.outside.resume("i", simulation.now, "ana").outcome == "ok"
    simulation.rest()
    assert ending(simulation, "i") == ("done", '{"Err":"rain"}')
    assert left(simulation) == [("hold", 1), ("drop", 1), ("drop", 2), ("drop", 3)]
    assert kinds(simulation, "i").count("undone") == 1


def test_an_undo_whose_else_is_an_ok_is_done_and_says_so() -> None:
    simulation = spent("Ok(())")
    assert ending(simulation, "i") == ("done", '{"Err":"rain"}')
    assert left(simulation) == [("hold", 1), ("drop", 1), ("drop", 2)]
    assert kinds(simulation, "i").count("undone") == 1


# -- births ------------------------------------------------------------------------------------

ROOM = """
flow Main() -> Int {
    channel words: String
    run {
        wait match {
            case let word = words.receive(): return word.len()
            case after 1d: return 0
        }
    }
}
flow Other() -> Int {
    channel numbers: Int
    run { return numbers.receive() }
}
"""


@pytest.mark.parametrize("namesake", [None, "Main", "Other"])
async def test_a_message_for_a_birth_that_is_over_is_told_ended(
    site: Site, namesake: str | None
) -> None:
    """Whoever has the name now, or nobody: the sender of a webhook is told that it is over."""
    await site.deploy(ROOM)
    if namesake is not None:
        await site.start(namesake, "room")
    answer = await site.post(
        "/instances/room/channels/words", {"value": "hello", "birth": "aaaaaaaa"}
    )
    assert (answer.status_code, answer.json()["code"]) == (410, "ended")
    assert "room with birth aaaaaaaa" in answer.json()["message"]
    if namesake is not None:
        await site.bench.advance(SECOND)
        assert (await site.bench.row("room")).status == "waiting", "it took what was not for it"


# -- a person's answer under a key ------------------------------------------------------------

ASKED = """
import std.http
step charge() -> Result<String, String> tries 1 { return Ok("\\(http.get("http://bank/").status)") }
step look() -> Int within 10m tries 1 { flow.retry() }
step wire() -> String within 10m { return "\\(http.get("http://bank/wire").status)" }
flow Main() -> String {
    run {
        let worker = task.start(wire)
        let paid = charge()
        return "\\(paid) \\(look()) \\(worker.join())"
    }
}
"""


async def test_a_person_answers_what_has_no_answer_and_nothing_else(site: Site) -> None:
    """What was kept is what the flow is given, always; a person's own answer may be bettered."""
    never = asyncio.Event()

    async def bank(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/wire":
            await never.wait()
        return httpx.Response(200)

    site.bench.answer = bank
    await site.deploy(ASKED)
    await site.start("Main", "i")
    await site.bench.advance(SECOND)
    row = await site.bench.row("i")
    assert (row.status, row.error_code) == ("stopped", "R0012")
    life = await site.bench.store.life("i")
    assert life is not None
    keys = {one.step: one.key for one in life.attempts}

    async def answer(step: str, value: object) -> tuple[int, str, str]:
        found = await site.post(f"/attempts/{quote(keys[step], safe='')}", {"value": value})
        return found.status_code, found.json().get("code") or "", found.json().get("message") or ""

    code, word, said = await answer("charge", {"Ok": "nothing"})
    assert (code, word) == (409, "not_possible")
    assert "was answered already" in said
    code, word, said = await answer("wire", "moved")
    assert (code, word) == (409, "not_possible")
    assert said == "i: an attempt is under way under this key"
    assert (await answer("look", 3))[0] == 200
    assert (await answer("look", 4))[0] == 200
    never.set()
    await site.bench.settle()
    await site.post("/instances/i/resume", {"go": True})
    await site.bench.advance(11 * MINUTE)
    assert (await site.bench.row("i")).result == json.dumps('{"Ok":"200"} 4 {"Ok":"200"}')


# -- a peer in a version before the channel ----------------------------------------------------

DESK_BEFORE = """
flow Desk() -> Int {
    channel notes: Int
    run { return notes.receive() }
}
"""

DESK_AFTER = """
flow Desk() -> Int {
    channel notes: Int
    channel words: String
    channel questions: Int answers String
    run {
        wait match {
            case let n = notes.receive(): return n
            case let word = words.receive(): return word.len()
            case let q = questions.receive():
                q.answer("yes")
                return 1
        }
    }
}
flow Main() -> String {
    run {
        match Desk.find("d") {
            case Some(desk): return "\\(desk.CALL)"
            case None: return "nobody"
        }
    }
}
"""


@pytest.mark.parametrize("call", ['words.send("hello")', "questions.ask(1)"])
def test_a_channel_that_a_peers_version_does_not_have_is_unknown_there(call: str) -> None:
    """The peer waits in the version before: it has not ended, and the asker is not broken by it."""
    before, first = programs(DESK_BEFORE)
    after, second = programs(DESK_AFTER.replace("CALL", call))
    simulation = Simulation(memory_store(), {**before, **after}, dict(first), null)
    simulation.start("m.Desk", "d", ())
    simulation.newest.update(second)
    simulation.start(MAIN, "i", ())
    simulation.rest()

    assert ending(simulation, "i") == ("done", json.dumps('{"Err":"Unknown"}'))
    assert simulation.row("d").status == "waiting"


# -- a cancellation at the very moment of a write ----------------------------------------------

REFUSES = """
step pay() -> Int { return 1 }
step pack() -> Int within 10m { return 1 }
flow Main() -> Int {
    run {
        pay()
        REFUSAL
        return pack()
    }
}
"""


def cancelled_at_the_second_wave(refusal: str, now: bool) -> Simulation:
    """A person cancels between the answer of `pay` and the write with which `pack` would leave."""
    text = REFUSES.replace("REFUSAL", refusal)
    simulation, meddler = meddled(text, lambda leaving: Reply("1", after=SECOND))
    asked: list[str] = []

    def before(name: str, args: tuple[Any, ...]) -> None:
        if name == "save" and not asked and [new.step for new in args[2].attempts] == ["pack"]:
            cancel = Cancel("c1", "no", now, simulation.now)
            found = simulation.outside.cancel("i", None, cancel, simulation.now, "ana")
            asked.append(found.outcome)

    meddler.before = before
    simulation.start(MAIN, "i", ())
    simulation.rest()
    assert asked == ["ok"]
    return simulation


def test_of_a_refusal_and_a_cancellation_at_once_the_refusal_wins() -> None:
    simulation = cancelled_at_the_second_wave('flow.refuse("it is on its way")', False)
    assert ending(simulation, "i") == ("done", "1")
    assert left(simulation) == [("pay", 1), ("pack", 1)]
    (refused,) = [
        row.detail for row in simulation.outside.ledger("i", 0, 99) if row.kind == "cancel refused"
    ]
    assert json.loads(refused) == {"reason": "no", "text": "it is on its way"}


def test_now_wins_over_both() -> None:
    simulation = cancelled_at_the_second_wave('flow.refuse("it is on its way")', True)
    assert simulation.row("i").status == "failed"
    assert "cancel refused" not in kinds(simulation, "i")


def test_the_history_does_not_say_that_a_step_left_which_was_held_back() -> None:
    simulation = cancelled_at_the_second_wave("let _ = 1", False)
    assert simulation.row("i").status == "failed"
    assert left(simulation) == [("pay", 1)]
    assert kinds(simulation, "i").count("left") == 1


# -- a start that is repeated across a deploy --------------------------------------------------

CLAIM = """
struct Claim { cents: Int }
flow Main(claim: Claim) -> Int {
    channel go: Int
    run { return claim.cents + go.receive() }
}
"""
CLAIM_WITH_MEMO = CLAIM.replace("cents: Int }", 'cents: Int, memo: String = "" }')


async def test_a_start_repeated_after_a_deploy_is_the_same_start(site: Site) -> None:
    """Its arguments were kept in the old shape, and are compared in the new one."""
    await site.deploy(CLAIM)
    await site.start("Main", "i", claim={"cents": 5})
    await site.deploy(CLAIM_WITH_MEMO)

    async def again(claim: dict[str, object]) -> tuple[int, str]:
        answer = await site.post("/flows/Main/instances", {"name": "i", "args": {"claim": claim}})
        found = answer.json()
        return answer.status_code, found.get("outcome") or found["code"]

    assert await again({"cents": 5}) == (200, "already")
    assert await again({"cents": 5, "memo": ""}) == (200, "already")
    assert await again({"cents": 6}) == (409, "name_taken")
    assert await again({"cents": 5, "memo": "lunch"}) == (409, "name_taken")


# -- a database that does not answer -----------------------------------------------------------


async def test_health_is_answered_while_the_database_is_not(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program's lock is waited for thirty seconds; a watchdog asks with less patience."""
    never = asyncio.Event()

    async def counts() -> dict[str, int]:
        await never.wait()
        return {}

    monkeypatch.setattr(calls, "HEALTH_TIME", 0.01)
    monkeypatch.setattr(site.daemon.store, "counts", counts)
    answer = await site.http.get("/health")
    assert answer.status_code == 200
    assert (answer.json()["status"], answer.json()["instances"]) == ("busy", {})


# -- who waits for what a person ends ----------------------------------------------------------

AWAITED = """
flow Other() -> Int {
    run {
        flow.stop("is it paid?")
        return 1
    }
}
flow Main() -> String {
    run {
        let other = Other.start("other")
        wait match {
            case let end = other.wait(): return if end.isOk() { "done" } else { "ended" }
            case after 20s: return "late"
        }
    }
}
"""


async def test_who_waits_in_memory_hears_at_once_of_what_a_person_ends(site: Site) -> None:
    await site.deploy(AWAITED)
    await site.start("Main", "m")
    await site.bench.advance(SECOND)
    assert (await site.bench.row("m")).status == "running", "its next wake is near"
    answer = await site.post("/instances/other/end", {"reason": "settled by phone"})
    assert answer.status_code == 200
    await site.bench.advance(SECOND)
    assert (await site.bench.row("m")).result == '"ended"'
