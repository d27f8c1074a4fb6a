"""Compiled flows on the daemon: children, sends and answers, finding, drawing, retries, undos."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from qoqi.compiler import api
from qoqi.runtime.daemon import Daemon
from qoqi.runtime.deploy import versions
from qoqi.runtime.model import Status
from qoqi.vm.host import Cancel, CancelTold
from tests.daemon.workbench import Bench

SOURCE = """\
import std.env
import std.http
import std.log

flow Child(n: Int) -> Int {
    channel go: Int
    run {
        let more = go.receive()
        return n + more
    }
}

flow Parent(count: Int) -> Int {
    channel inner: Int inside
    run {
        var children: List<Instance<Child>> = []
        for n in 0..count {
            children.append(Child.start("child-\\(n)", n))
        }
        match task.all(children) {
            case Ok(values): return values.sum()
            case Err(why): return -1
        }
    }
}

flow Sender(to: String) -> String {
    run {
        let Some(child) = Child.find(to) else { return "nobody" }
        match child.go.send(5) {
            case Ok(Delivered): return "delivered"
            case Ok(Already): return "already"
            case Err(why): return "refused"
        }
    }
}

struct Change { by: Int }

flow Server() -> Int {
    channel changes: Change answers Int
    run {
        let request = changes.receive()
        request.answer(request.value.by * 2)
        return request.value.by
    }
}

flow Asker() -> Int {
    run {
        let server = Server.start("server")
        match server.changes.ask(Change { by: 21 }) {
            case Ok(doubled): return doubled
            case Err(why): return -1
        }
    }
}

flow Drawing() -> Bool {
    run {
        let id = flow.uuid()
        let number = flow.random(1..7)
        return id.len() == 36 && number in 1..7
    }
}

step charge(n: Int) -> Int tries 5 backoff 10s {
    let answer = http.get("\\(env.require("BANK"))/charge/\\(flow.attempt())")
    match answer.status {
        case 200: return n
        case 429: flow.retry(after: 30s)
        case _: fail("bank said \\(answer.status)")
    }
}

flow Paying(n: Int) -> Int {
    run {
        return charge(n)
    }
}

step reserve(n: Int) -> Result<Int, String> undo release(it) {
    return Ok(n)
}

step release(n: Int) {
    log.write("released \\(n)")
    http.get("http://stock/release/\\(n)")
}

flow Booking() -> Result<Int, String> {
    channel never: Int
    run {
        let Ok(first) = reserve(1) else { return Err("none") }
        let Ok(second) = reserve(2) else { return Err("none") }
        return Ok(never.receive())
    }
}
"""

SECOND = 1_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> api.BuildResult:
    folder: Path = tmp_path_factory.mktemp("flows")
    (folder / "shop.flow").write_text(SOURCE)
    result = api.build(str(folder))
    assert [one.message for one in result.diagnostics if one.severity == 1] == []
    return result


@pytest.fixture
async def daemon(bench: Bench, built: api.BuildResult) -> Daemon:
    made = await bench.daemon()
    for version in versions(built):
        assert await made.deploy(version.row(bench.clock.now())) == "new"
    return made


async def start(bench: Bench, daemon: Daemon, flow: str, name: str, **args: object) -> None:
    await bench.start(daemon, f"shop.{flow}", name, **args)
    await bench.settle()


async def result(bench: Bench, name: str) -> Any:
    row = await bench.row(name)
    assert row.status == Status.DONE, (row.status, row.stopped_by)
    return json.loads(row.result or "null")


async def cancel(bench: Bench, daemon: Daemon, name: str, reason: str) -> None:
    now = bench.clock.now()
    asked = await bench.store.cancel(name, None, Cancel("c", reason, False, now), now, "ana")
    assert asked.outcome == "ok"
    daemon.tell(name, asked.owner, CancelTold())
    await bench.settle()


async def test_a_parent_goes_on_when_its_last_child_has_ended(bench: Bench, daemon: Daemon) -> None:
    await start(bench, daemon, "Parent", "p", count=3)
    assert (await bench.row("child-1")).parent == "p"
    for n in range(3):
        assert (await bench.row("p")).status == Status.WAITING
        assert await bench.send(daemon, f"child-{n}", "go", "10") == "Delivered"
        await bench.settle()
    assert await result(bench, "p") == 33


async def test_cancelled_children_end_before_their_parent(bench: Bench, daemon: Daemon) -> None:
    await start(bench, daemon, "Parent", "p", count=2)
    await cancel(bench, daemon, "p", "not needed")
    for name in ("p", "child-0", "child-1"):
        assert (await bench.row(name)).status == Status.FAILED
    assert "its parent ended: not needed" in ((await bench.row("child-0")).result or "")
    ledger = await bench.store.ledger(None, 0, 1_000)
    ends = [row.instance for row in ledger if row.kind == "failed"]
    assert ends[-1] == "p"


async def test_a_send_finds_its_instance_or_nobody(bench: Bench, daemon: Daemon) -> None:
    await start(bench, daemon, "Sender", "early", to="child-7")
    assert await result(bench, "early") == "nobody"
    await start(bench, daemon, "Child", "child-7", n=7)
    await start(bench, daemon, "Sender", "late", to="child-7")
    assert await result(bench, "late") == "delivered"
    assert await result(bench, "child-7") == 12


async def test_an_ask_is_answered(bench: Bench, daemon: Daemon) -> None:
    await start(bench, daemon, "Asker", "a")
    assert await result(bench, "a") == 42
    assert await result(bench, "server") == 21


async def test_draws_are_what_they_say(bench: Bench, daemon: Daemon) -> None:
    await start(bench, daemon, "Drawing", "d")
    assert await result(bench, "d") is True


async def test_a_step_is_tried_again_under_one_key(bench: Bench, daemon: Daemon) -> None:
    """429: after the 30 s it names; no connection: after the step's backoff; then an answer."""
    bench.environment["BANK"] = "http://bank"

    def bank(request: httpx.Request) -> httpx.Response:
        match request.url.path:
            case "/charge/1":
                return httpx.Response(429)
            case "/charge/2":
                raise httpx.ConnectError("no", request=request)
            case _:
                return httpx.Response(200)

    bench.answer = bank
    await start(bench, daemon, "Paying", "p", n=4)
    await bench.advance(29 * SECOND)
    assert len(bench.requests) == 1
    await bench.advance(1 * SECOND)
    assert len(bench.requests) == 2
    await bench.advance(10 * SECOND)
    assert await result(bench, "p") == 4
    attempts = (await bench.store.life("p")).attempts  # type: ignore[union-attr]
    assert len({one.key for one in attempts}) == 1
    assert [one.result for one in sorted(attempts, key=lambda one: one.attempt)] == [
        "retry",
        "retry",
        "4",
    ]


async def test_a_mistake_in_a_body_stops_with_its_line(bench: Bench, daemon: Daemon) -> None:
    bench.environment["BANK"] = "http://bank"
    bench.answer = lambda _: httpx.Response(500)
    await start(bench, daemon, "Paying", "p", n=4)
    row = await bench.row("p")
    assert row.status == Status.STOPPED
    assert json.loads(row.stopped_by or "")["message"] == "charge failed: bank said 500"
    failure = json.loads((await bench.store.life("p")).attempts[0].failure or "")  # type: ignore[union-attr]
    function, file, line = failure["trace"][0]
    assert (function, file.rpartition("/")[2]) == ("charge", "shop.flow")
    assert SOURCE.splitlines()[line - 1].strip().startswith("case _: fail(")


async def test_undos_run_last_first(bench: Bench, daemon: Daemon) -> None:
    await start(bench, daemon, "Booking", "b")
    await cancel(bench, daemon, "b", "changed her mind")
    assert (await bench.row("b")).status == Status.FAILED
    assert [request.url.path for request in bench.requests] == ["/release/2", "/release/1"]


async def test_a_flow_that_is_not_deployed_stops_who_starts_it(
    bench: Bench, built: api.BuildResult
) -> None:
    daemon = await bench.daemon()
    (parent,) = [one for one in versions(built) if one.flow == "shop.Parent"]
    await daemon.deploy(parent.row(0))
    await start(bench, daemon, "Parent", "p", count=1)
    row = await bench.row("p")
    assert (row.status, row.error_code) == (Status.STOPPED, "R0010")
    assert "no version of shop.Child is deployed" in (row.stopped_by or "")
    assert await bench.store.instance("child-0") is None
