"""What goes wrong around a daemon, and flows that misbehave: nothing is lost, the rest goes on."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from qoqi.runtime.model import Settings
from qoqi.runtime.store.sqlite import open_file
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.vm import interpreter
from tests.daemon.workbench import Bench, Watched
from tests.reliability.lab import DAY, HOUR, MINUTE, SECOND
from tests.reliability.site import Site, open_site

NOTES = """
flow Notes() -> Int {
    channel notes: String capacity 20000
    var heard = 0
    run {
        while heard < 1000000 {
            stage listening()
            if notes.receive() == "end" { return heard }
            heard += 1
        }
        return heard
    }
}
"""


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Site]:
    """A daemon on a file, whose other programs' locks are waited for a tenth of a second."""
    bench = Bench()
    bench.store = Watched(SqlStore(open_file(tmp_path / "flows.db", "test", busy_timeout=100)))
    async with open_site(bench) as site:
        await site.deploy(NOTES)
        await site.start("Notes", "n")
        yield site
    await bench.close()


def connection(site: Site) -> sqlite3.Connection:
    found: sqlite3.Connection = site.bench.store._store.database._connection  # type: ignore[attr-defined]
    return found


async def heard(site: Site) -> int:
    answer = await site.http.get("/instances/n/views/heard")
    assert answer.status_code == 404  # no such view: the row is what counts
    return int((await site.http.get("/instances/n")).json()["variables"][-1]["value"])


async def refused(site: Site, said: str) -> None:
    answer = await site.send("n", "notes", "lost?", "k")
    assert answer.status_code == 503, answer.text
    assert answer.json()["code"] == "database_busy"
    assert said in answer.json()["message"]
    assert answer.headers["retry-after"] == "1"


async def goes_on(site: Site) -> None:
    """By itself: the same message under its key is new, for it was never acknowledged."""
    await site.bench.advance(MINUTE)
    assert (await site.send("n", "notes", "lost?", "k")).json()["outcome"] == "delivered"
    await site.bench.advance(MINUTE)
    assert await heard(site) == 1
    assert (await site.bench.row("n")).status == "waiting"


async def test_a_full_disk_refuses_and_goes_on_once_there_is_room(disk: Site) -> None:
    pages = connection(disk).execute("PRAGMA page_count").fetchone()[0]
    connection(disk).execute(f"PRAGMA max_page_count = {pages}")
    big = "x" * 500_000
    for number in range(20):
        answer = await disk.send("n", "notes", big, f"big-{number}")
        if answer.status_code == 503:
            break
    assert answer.status_code == 503, "the disk never was full"
    assert "the disk is full" in answer.json()["message"]
    await disk.bench.advance(5 * SECOND)
    assert (await disk.http.get("/health")).status_code == 200  # reading goes on
    connection(disk).execute("PRAGMA max_page_count = 1073741823")
    await disk.bench.advance(MINUTE)
    assert (await disk.send("n", "notes", "after", "after")).status_code == 202
    await disk.bench.advance(MINUTE)
    assert await heard(disk) == number + 1


async def test_a_file_that_was_deleted_is_noticed_before_anything_is_acknowledged(
    disk: Site, tmp_path: Path
) -> None:
    away = tmp_path / "away.db"
    os.rename(tmp_path / "flows.db", away)
    await refused(disk, "was moved or deleted")
    os.rename(away, tmp_path / "flows.db")
    await goes_on(disk)


async def test_a_read_only_database_refuses_and_goes_on(disk: Site) -> None:
    connection(disk).execute("PRAGMA query_only = ON")
    await refused(disk, "read-only")
    connection(disk).execute("PRAGMA query_only = OFF")
    await goes_on(disk)


async def test_another_programs_lock_is_waited_for_then_named_then_over(
    disk: Site, tmp_path: Path
) -> None:
    other = sqlite3.connect(tmp_path / "flows.db", isolation_level=None, timeout=5)
    other.execute("BEGIN IMMEDIATE")
    await refused(disk, "another program has the database locked")
    other.execute("ROLLBACK")
    other.close()
    await goes_on(disk)


async def test_a_damaged_page_is_told_and_stops_no_daemon(disk: Site, tmp_path: Path) -> None:
    for number in range(40):
        await disk.send("n", "notes", f"{number}-" + "x" * 5_000, f"k-{number}")
    await disk.bench.settle()
    database = connection(disk)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (root,) = database.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
    ).fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    with open(tmp_path / "flows.db", "r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    database.execute("PRAGMA cache_size = 0")
    database.execute("PRAGMA shrink_memory")
    answer = await disk.send("n", "notes", "lost?", "k")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_damaged")
    assert "restore it from a copy" in answer.json()["message"]
    await disk.bench.advance(5 * SECOND)
    assert (await disk.http.get("/health")).status_code == 200
    assert not disk.daemon.draining


# -- the clock ------------------------------------------------------------------------------------


async def test_a_clock_set_back_an_hour_doubles_nothing(site: Site) -> None:
    text = """
    import std.http
    step pay() -> Int { return http.get("http://bank/").status }
    flow Main() -> Int {
        run {
            flow.sleep(10s)
            let first = pay()
            flow.sleep(10s)
            return first + pay()
        }
    }
    """
    await site.deploy(text)
    await site.start("Main", "i")
    await site.bench.advance(5 * SECOND)
    site.bench.clock.set(site.bench.clock.now() - HOUR)
    await site.bench.advance(HOUR + MINUTE)

    row = await site.bench.row("i")
    assert (row.status, row.result) == ("done", "400")
    assert len(site.bench.requests) == 2


async def test_a_clock_set_forward_a_day_doubles_nothing(site: Site) -> None:
    text = """
    import std.http
    step pay() -> Int { return http.get("http://bank/").status }
    flow Main() -> Int { run { return pay() } }
    """
    came = asyncio.Event()

    async def slow(_: httpx.Request) -> httpx.Response:
        await came.wait()
        return httpx.Response(200)

    site.bench.answer = slow
    await site.deploy(text)
    await site.start("Main", "i")
    site.bench.clock.set(site.bench.clock.now() + DAY)
    came.set()
    await site.bench.advance(5 * MINUTE)

    row = await site.bench.row("i")
    assert (row.status, row.result) == ("done", "200")
    life = await site.bench.store.life("i")
    assert life is not None
    asked = {(one.key, one.attempt) for one in life.attempts}
    assert len(site.bench.requests) == len(asked)  # each under an attempt of its own


# -- steps and flows that misbehave ---------------------------------------------------------------

BODY = """
import std.http
step bad() -> Int within 10s tries 2 {body}
step good(n: Int) -> Int {{ return n }}
flow Bad() -> Int {{ run {{ return bad() }} }}
flow Good(n: Int) -> Int {{ run {{ return good(n) }} }}
"""


async def test_a_step_that_never_returns_is_given_up_at_its_limit(site: Site) -> None:
    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    site.bench.answer = never
    await site.deploy(BODY.format(body='{ return http.get("http://bank/").status }'))
    await site.start("Bad", "bad")
    await site.start("Good", "good", n=1)
    assert (await site.bench.row("good")).status == "done"
    await site.bench.advance(HOUR)

    row = await site.bench.row("bad")
    assert (row.status, row.error_code) == ("stopped", "R0012")
    assert "bad gave no answer in 2 attempts" in (row.stopped_by or "")
    assert len(site.bench.requests) == 2


async def test_a_body_that_loops_fails_and_holds_up_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "MAX_INSTRUCTIONS", 400_000)
    await site.deploy(BODY.format(body="{ var n = 0\n while true { n += 1 }\n return n }"))
    bad = asyncio.create_task(site.start("Bad", "bad"))
    await site.start("Good", "good", n=1)
    assert (await site.bench.row("good")).status == "done"
    await bad
    await site.bench.advance(HOUR)

    row = await site.bench.row("bad")
    assert (row.status, row.error_code) == ("stopped", "R0007")


LOOP = """
flow Bad(endless: Bool) -> Int {
    run {
        var n = 0
        while endless || n < 10 { n += 1 }
        return n
    }
}
"""


async def test_a_flow_that_loops_is_stopped_and_holds_up_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "MAX_INSTRUCTIONS", 400_000)
    await site.deploy(LOOP)
    bad = asyncio.create_task(site.start("Bad", "bad", endless=True))
    await site.start("Bad", "good", endless=False)
    assert (await site.bench.row("good")).result == "10"
    await bad
    row = await site.bench.row("bad")
    assert (row.status, row.error_code) == ("stopped", "R0007")
    assert "m.flow" in (row.stopped_by or "")


GROWING = """
flow Growing(limit: Int) -> Int {
    channel more: String capacity 2000
    var kept: List<String> = []
    var small = 0
    run {
        while kept.len() < limit {
            kept.append(more.receive())
            small += 1
        }
        return small
    }
}
"""


async def test_a_flow_that_grows_its_state_is_noted_then_stopped(bench: Bench) -> None:
    bench.settings = Settings(state_note=100_000, state_limit=500_000)
    async with open_site(bench) as site:
        await site.deploy(GROWING)
        await site.start("Growing", "g", limit=100)
        for _ in range(10):
            await site.send("g", "more", "x" * 60_000)
            await bench.settle()

        row = await bench.row("g")
        assert (row.status, row.error_code) == ("stopped", "R0008")
        assert "largest: kept" in (row.stopped_by or "")
        noted = [one.kind for one in await bench.store.ledger("g", 0, 1_000)]
        assert noted.count("large_state") == 1


async def test_a_pass_with_a_thousand_answers_is_noted_once(site: Site) -> None:
    await site.deploy(GROWING)
    await site.start("Growing", "g", limit=1_100)
    await send_all(site, "g", "more", 0, 1_100)
    await site.bench.settle()
    assert (await site.bench.row("g")).result == "1100"
    noted = [one.kind for one in await site.bench.store.ledger("g", 0, 10_000)]
    assert noted.count("many_answers") == 1


# -- sizes ----------------------------------------------------------------------------------------


async def test_a_message_of_a_megabyte_passes_and_one_byte_more_does_not(site: Site) -> None:
    site.daemon.settings = Settings(value_limit=(1 << 20) - 1_000)
    await site.deploy(NOTES)
    await site.start("Notes", "n")
    most = (1 << 20) - 1_002  # and two quotes
    assert (await site.send("n", "notes", "x" * most)).status_code == 202
    await site.bench.settle()
    assert await heard(site) == 1
    answer = await site.send("n", "notes", "x" * (most + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert (
        "the message takes 1,047,577 bytes; at most 1,047,576 are kept" in answer.json()["message"]
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("pay(big)", "the answer of pay takes 1,000,002 bytes; at most 500,000 are kept"),
        ('Other.start("other", big)', "what other is started with takes"),
        ("other.notes.send(big)", "a message to notes takes 1,000,002 bytes"),
    ],
)
async def test_what_is_too_large_is_refused_where_it_is_made(
    bench: Bench, call: str, said: str
) -> None:
    text = f"""
    step pay(n: String) -> String {{ return n.repeat(10) }}
    flow Other(text: String) {{
        channel notes: String
        run {{ notes.receive() }}
    }}
    flow Main() {{
        run {{
            let other = Other.start("small", "")
            let big = "x".repeat({100_000 if "pay" in call else 1_000_000})
            {call}
        }}
    }}
    """
    bench.settings = Settings(value_limit=500_000)
    async with open_site(bench) as site:
        await site.deploy(text)
        await site.start("Main", "i")
        await bench.settle()
        row = await bench.row("i")
        assert (row.status, row.error_code) == ("stopped", "R0008")
        assert said in (row.stopped_by or "")


# -- many -----------------------------------------------------------------------------------------


async def send_all(site: Site, name: str, channel: str, begin: int, end: int) -> None:
    """Messages of these numbers, all in one transaction."""
    now = site.bench.clock.now()

    def send(store: SqlStore) -> set[str]:
        with store.database.transaction():
            return {
                store.send(name, channel, f"k-{number}", f'"{number}"', None, now).outcome
                for number in range(begin, end)
            }

    assert await site.bench.store.aside(send, site.bench.store._store) == {"Delivered"}
    site.daemon.wake()


async def test_ten_thousand_messages_to_one_channel_are_each_taken_once(site: Site) -> None:
    await site.deploy(NOTES)
    await site.start("Notes", "n")
    for begin in range(0, 10_000, 2_500):
        await send_all(site, "n", "notes", begin, begin + 2_500)
        await site.bench.settle()
    await site.send("n", "notes", "end")
    await site.bench.settle()

    row = await site.bench.row("n")
    assert (row.status, row.result) == ("done", "10000")


async def test_sleepers_cost_nothing_and_wake_when_they_said(bench: Bench) -> None:
    """Two thousand here; `bench/` has a hundred thousand."""
    text = "flow Nap(n: Int) -> Int { run {\n flow.sleep(1h)\n return n } }"
    count = 2_000
    async with open_site(bench) as site:
        await site.deploy(text)
        hash = await site.daemon.programs.newest("m.Nap")
        assert hash is not None
        program = site.daemon.programs.code(hash)
        rows = [
            site.daemon.first_row(f"nap-{number}", program, hash, (number,), None)
            for number in range(count)
        ]

        def create(store: SqlStore) -> None:
            with store.database.transaction():
                for row in rows:
                    assert store.create(row, bench.clock.now()).created

        await bench.store.aside(create, bench.store._store)
        site.daemon.wake()
        await bench.settle()
        assert await bench.store.counts() == {"waiting": count}
        assert site.daemon.hosts == {}
        looks = bench.store.calls
        await bench.advance(10 * SECOND)
        assert bench.store.calls - looks < 40  # looks and heartbeats, none of them a sleeper's
        await bench.advance(HOUR)
        assert await bench.store.counts() == {"done": count}


async def test_draining_in_the_middle_of_an_ending_gives_the_instance_back(site: Site) -> None:
    text = """
    import std.http
    step pay() -> Int within 1h undo refund() { return http.get("http://bank/").status }
    step refund() { }
    flow Main() -> Int { run { return pay() } }
    """

    async def never(_: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    site.bench.answer = never
    await site.deploy(text)
    await site.start("Main", "i")
    await site.post("/instances/i/cancel", {"reason": "no"})
    await site.bench.settle()
    stopping = asyncio.ensure_future(site.daemon.stop())
    await site.bench.advance(MINUTE)
    await stopping

    row = await site.bench.row("i")
    assert (row.status, row.lease_owner) == ("waiting", None)
    await site.bench.daemon("next")
    await site.bench.advance(2 * HOUR)
    row = await site.bench.row("i")
    assert (row.status, row.error_code) == ("stopped", "R0013")
    assert len(site.bench.requests) == 1


def test_a_lock_held_by_another_process_outlasts_the_limit_and_no_more(tmp_path: Path) -> None:
    """The seconds of the issue, shortened: held for four limits, waited for one at a time."""
    store = SqlStore(open_file(tmp_path / "flows.db", "test", busy_timeout=100))
    other = sqlite3.connect(tmp_path / "flows.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    released = threading.Timer(0.4, lambda: other.execute("ROLLBACK"))
    released.start()
    from qoqi.runtime.store.protocol import StoreBusy

    failed = 0
    while True:
        try:
            store.alive("me", 1)
            break
        except StoreBusy:
            failed += 1
    assert 1 <= failed <= 8
    released.join()
    store.close()
    other.close()
