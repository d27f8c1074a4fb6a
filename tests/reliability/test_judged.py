"""What a user's worst program and worst moment may do to everybody else, and to themselves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from qoqi.runtime import bodies
from qoqi.runtime.model import ENDED, TRANSITIONS, Status
from qoqi.runtime.store import sql
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.sqlite import SqliteDatabase
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.vm import interpreter, turn
from qoqi.vm.frames import Task
from qoqi.vm.host import Cancel
from qoqi.vm.instance import Instance
from tests.daemon.workbench import Bench
from tests.reliability.site import Site, open_site

# -- loops of what is answered at once -----------------------------------------------------------

LOOPS = {
    "poll": "while true { if let Some(x) = words.poll() { return x } }",
    "stage": "while n > 0 {\n stage again\n n += 1 }",
    "print": 'while n > 0 { print("again") }',
    "uuid": "while n > 0 { let _ = flow.uuid() }",
    "task": "while n > 0 { let _ = task.start(nothing) }",
}

LOOPING = """
flow Loop() -> Int {{
    channel words: Int
    var n: Int = 1
    run {{
        {loop}
        return n
    }}
    fn nothing() {{ n += 1 }}
}}
flow Good() -> Int {{ run {{ return 1 }} }}
"""


@pytest.mark.parametrize("what", LOOPS)
async def test_a_loop_of_operations_is_stopped_and_holds_up_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A loop's rounds are few and its turn lets go of the event loop every `BREATH` of them."""
    monkeypatch.setattr(interpreter, "MAX_INSTRUCTIONS", 1_000_000)
    rounds = 1_000_000 // interpreter.OPERATION_COST
    await site.deploy(LOOPING.format(loop=LOOPS[what]))
    at_once, most, run_task = 0, 0, turn._run_task

    async def counted(instance: Instance, task: Task) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await run_task(instance, task)

    async def others() -> None:
        nonlocal at_once
        while True:
            await asyncio.sleep(0)
            at_once = 0

    monkeypatch.setattr(turn, "_run_task", counted)
    beside = asyncio.create_task(others())
    await site.start("Loop", "bad")
    beside.cancel()
    row = await site.bench.row("bad")
    assert (row.status, row.error_code) == ("stopped", "R0007")
    assert rounds / 4 > most >= turn.BREATH / 2
    ledger = await site.bench.store.ledger("bad", 0, 10 * rounds)
    assert len(ledger) <= rounds
    await site.start("Good", "good")
    assert (await site.bench.row("good")).result == "1"


async def test_a_body_that_loops_over_operations_holds_up_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "MAX_INSTRUCTIONS", 1_000_000)
    await site.deploy(
        """
        import std.time
        step pay() -> Int { while true { let _ = time.now() } }
        flow Main() -> Int { run { return pay() } }
        """
    )
    at_once, most, answered = 0, 0, bodies._at_once

    def counted(*given: Any) -> object:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        return answered(*given)

    async def others() -> None:
        nonlocal at_once
        while True:
            await asyncio.sleep(0)
            at_once = 0

    monkeypatch.setattr(bodies, "_at_once", counted)
    beside = asyncio.create_task(others())
    await site.start("Main", "bad")
    beside.cancel()
    row = await site.bench.row("bad")
    assert (row.status, row.error_code) == ("stopped", "R0007")
    assert most == bodies.AT_ONCE


async def test_a_loop_of_starts_is_no_loop_without_a_wait(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits for its write, as a step does: only what is answered at once adds up."""
    monkeypatch.setattr(interpreter, "MAX_INSTRUCTIONS", 10_000)
    await site.deploy(
        """
        flow Leaf(n: Int) -> Int { run { return n } }
        flow Main() -> Int {
            run {
                for n in 0..50 { let _ = Leaf.start("leaf-\\(n)", n) }
                return 50
            }
        }
        """
    )
    await site.start("Main", "m")
    assert (await site.bench.row("m")).result == "50"


# -- what ends its daemon, and is cancelled ------------------------------------------------------

WAITING = """
flow Main() -> Int {
    channel words: Int
    run {
        stage waiting
        let n = words.receive()
        return 10 / n
    }
}
"""


async def test_a_cancelled_instance_that_ends_its_daemon_is_taken_no_more(bench: Bench) -> None:
    async with open_site(bench) as site:
        await site.deploy(WAITING)
        await site.start("Main", "m")
        await site.daemon.kill()
    cancel = Cancel("c", "make it stop", True, bench.clock.now())
    await bench.store.cancel("m", None, cancel, bench.clock.now(), "kim")
    for number in range(6):
        now = bench.clock.now()
        assert await bench.store.lease("m", f"dead/{number}", now, now + 10) is not None
        bench.clock.advance(1_000)
    await bench.daemon("seventh")
    await bench.advance(60_000)
    row = await bench.row("m")
    assert (row.status, row.error_code, row.cancel) == ("stopped", "R0011", None)
    kinds = [line.kind for line in await bench.store.ledger("m", 0, 100)]
    assert kinds.count("stopped") == 1


UNDOING = """
import std.http
step book() -> Int undo drop() { return http.get("http://bank/book").status }
step drop() { http.get("http://bank/drop") }
flow Main() -> Int {
    channel words: Int
    run {
        stage waiting
        book()
        return 10 / words.receive()
    }
}
"""


async def test_a_resume_that_the_daemon_could_not_run_costs_no_undo(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its turn fails, is given back, and what was to be undone at the stop still is."""
    async with open_site(bench) as site:
        await site.deploy(UNDOING)
        await site.start("Main", "m")
        await site.send("m", "words", 0)
        await bench.settle()
        assert (await bench.row("m")).error_code == "R0003"
        at_stop = (await bench.row("m")).state
        whole = turn.live

        async def breaks(*args: object) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(turn, "live", breaks)
        assert (await site.post("/instances/m/resume", {"go": True})).status_code == 200
        await bench.settle()
        assert (await bench.row("m")).stopped_state == at_stop
        await bench.advance(10_000)
        row = await bench.row("m")
        assert (row.status, row.error_code, row.state) == ("stopped", "R0011", at_stop)

        monkeypatch.setattr(turn, "live", whole)
        await site.post("/instances/m/cancel", {"reason": "no"})
        await bench.settle()
        assert (await bench.row("m")).status == "failed"
        assert [request.url.path for request in bench.requests] == ["/book", "/drop"]


async def test_a_stop_says_where_in_the_body_and_in_the_flow(site: Site) -> None:
    await site.deploy(
        """
        step pay(n: Int) -> Int {
            let none: List<Int> = []
            return none[n]
        }
        flow Main() -> Int {
            run { return pay(3) }
        }
        """
    )
    await site.start("Main", "m")
    trace = json.loads((await site.bench.row("m")).stopped_by or "")["trace"]
    assert [(function, line) for function, _, line in trace] == [("pay", 4), ("run", 7)]


# -- an idle look --------------------------------------------------------------------------------

SLEEPERS = """
WITH RECURSIVE numbers(n) AS (SELECT :first UNION ALL SELECT n + 1 FROM numbers WHERE n < :last)
INSERT INTO "instances"
    ("id", "birth", "flow", "version", "status", "phase", "since", "pass", "created", "args",
     "state", "wake_at")
SELECT 'nap-' || n, 'b', 'm.Nap', 'v', 'waiting', 'run', 0, 0, 0, '[]', '{}',
       CASE n % 3 WHEN 0 THEN NULL ELSE :now + 60000 + n END
FROM numbers
"""


def steps_of_a_look(store: SqlStore, now: int) -> int:
    """How many instructions of SQLite a look for due instances and for the next wake takes.

    An instruction is at most a row stepped over, or an entry of an index: each costs several.
    """
    steps = 0

    def counted() -> int:
        nonlocal steps
        steps += 1
        return 0

    assert isinstance(store.database, SqliteDatabase)
    connection = store.database._connection
    connection.set_progress_handler(counted, 1)
    try:
        assert store.due(now, 50) == []
        assert store.next_wake(now) == now + 60_001
    finally:
        connection.set_progress_handler(None, 0)
    return steps


def test_an_idle_look_steps_over_no_sleeper() -> None:
    """A look is as long with fifty thousand as with none but one: it is one search of an index."""
    now = 1_000_000
    store = memory_store()
    store.database.run(SLEEPERS, {"first": 1, "last": 1, "now": now})
    alone = steps_of_a_look(store, now)
    store.database.run(SLEEPERS, {"first": 2, "last": 50_000, "now": now})
    assert alone <= steps_of_a_look(store, now) <= alone + 10

    for statement in (sql.DUE, sql.NEXT_WAKE):
        explained = store.database.all(f"EXPLAIN QUERY PLAN {statement}", NOBODY)
        plan = [str(row[3]) for row in explained]
        assert len(plan) == 1, plan
        assert plan[0].startswith("SEARCH instances USING"), plan
        assert "instances_wake (wake_at" in plan[0], plan


NOBODY = {"now": 0, "ahead": 0, "limit": 50}


# -- the page and the code -----------------------------------------------------------------------


def test_the_page_has_the_changes_of_status_that_the_code_has() -> None:
    """Where a page and the code differ the code is right, so the page is held against it."""
    page = (Path(__file__).parents[2] / "docs" / "runtime.md").read_text("utf-8")
    table = page.partition("| from | because | to |\n| --- | --- | --- |\n")[2].partition("\n\n")[0]
    told = set()
    for row in table.splitlines():
        begins, _, ends = (cell.strip() for cell in row.strip("|").split("|"))
        told |= {(one, other) for one in statuses(begins) for other in statuses(ends)}
    assert told == {(change.status, change.to) for change in TRANSITIONS}


def statuses(cell: str) -> set[str | None]:
    """What a cell of the table names: `running, finish` is running."""
    if cell in ("\N{EN DASH}", "gone"):
        return {None}
    if cell == "ended":
        return set(ENDED)
    return {status for status in Status if status in cell}


# -- what the network said -----------------------------------------------------------------------

ASKING = """
import std.http
step pay() -> {answer} within 5s {tries} {{ return {value} }}
flow Main() -> {answer} {{ run {{ return pay() }} }}
"""


def refused(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("all attempts failed") from ConnectionRefusedError(111, "refused")


def cut_off(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("", request=request)


@pytest.mark.parametrize(
    ("answer", "settled", "why"),
    [
        (refused, False, ["no connection to bank: refused"] * 2),
        (cut_off, False, ["no answer from bank: ReadError"] * 2),
        (cut_off, True, ["no answer from bank: ReadError"]),
    ],
)
async def test_the_history_says_why_there_was_no_answer(
    bench: Bench, answer: Any, settled: bool, why: list[str]
) -> None:
    value = 'http.get("http://bank/pay").status'
    text = (
        ASKING.format(answer="Settled<Int>", tries="", value=f"Known({value})")
        if settled
        else ASKING.format(answer="Int", tries="tries 2", value=value)
    )
    bench.answer = answer
    async with open_site(bench) as site:
        await site.deploy(text)
        await site.start("Main", "m")
        await bench.advance(10_000)
        ledger = await bench.store.ledger("m", 0, 100)
        said = [json.loads(line.detail)["why"] for line in ledger if line.kind == "network"]
        assert said == why


async def test_people_see_what_else_gave(site: Site) -> None:
    await site.deploy(
        """
        step pay() -> String tries 2 else "nobody" { flow.retry(after: 1s) }
        flow Main() -> String {
            channel words: Int
            run {
                let said = pay()
                let _ = words.receive()
                return said
            }
        }
        """
    )
    await site.start("Main", "m")
    await site.bench.advance(5_000)
    attempts = (await site.http.get("/instances/m")).json()["attempts"]
    assert [(one["outcome"], one["answer"]) for one in attempts] == [
        ("retry", None),
        ("retry", "nobody"),
    ]
