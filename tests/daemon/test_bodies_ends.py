"""How a step's body ends, and what it may ask: each way of ending, each effect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from qoqi.runtime import bodies
from qoqi.runtime.bodies import GRACE, Body
from qoqi.vm.bytecode.chunk import Chunk
from qoqi.vm.host import FAILED, LOST, RETRY, StepEnded
from qoqi.vm.program import load
from qoqi.vm.steps import retry_delay
from qoqi.vm.values import Duration
from tests.daemon.workbench import Bench, caller

HTTP = """
    CONST 0
    CONST 1
    CONST 2
    CONST 3
    MAP 1
    VARIANT 0
    OPERATION 0
"""
GET: dict[str, Any] = {
    "constants": ("GET", "http://bank/charges", "Idempotency-Key", "k-1"),
    "operations": (("http.request", 4),),
    "variants": ((0, 1), (0, 0)),
}


def body_of(
    bench: Bench,
    chunk: Chunk,
    *,
    may_act: Callable[[], bool] = lambda: True,
    working: bool = True,
    until: int = 60_000,
    args: tuple[object, ...] = (21,),
) -> Body:
    async def look() -> bool:
        return working

    at = bench.clock.now() + until
    return bodies.make(load(chunk), 0, args, "c/b/0:0:call#1", 2, at, may_act, look)


async def run(bench: Bench, chunk: Chunk, **given: Any) -> StepEnded | None:
    body, world = body_of(bench, chunk, **given), bench.world()
    first = bodies.run_slice(body, world)
    if isinstance(first, StepEnded):
        return first
    return await bodies.run(body, world, first)


async def ended(bench: Bench, chunk: Chunk, **given: Any) -> StepEnded:
    end = await run(bench, chunk, **given)
    assert end is not None
    return end


def failure(end: StepEnded) -> tuple[str, str]:
    assert end.result == FAILED and end.failure is not None
    said = json.loads(end.failure)
    return said["code"], said["message"]


async def test_a_value_is_its_json(bench: Bench) -> None:
    end = await ended(bench, caller("LOAD 0\nINT 2\nMUL\nRETURN"))
    assert end == StepEnded("c/b/0:0:call#1", 2, "42")


async def test_a_body_that_only_computes_needs_no_second_call(bench: Bench) -> None:
    body = body_of(bench, caller("LOAD 0\nRETURN"))
    assert isinstance(bodies.run_slice(body, bench.world()), StepEnded)


async def test_key_and_attempt_are_those_of_the_attempt(bench: Bench) -> None:
    chunk = caller(
        "OPERATION 0\nOPERATION 1\nTUPLE 2\nRETURN",
        ("Tuple", "String", "Int"),
        operations=(("step.key", 0), ("step.attempt", 0)),
    )
    assert (await ended(bench, chunk)).result == '["c/b/0:0:call#1",2]'


@pytest.mark.parametrize(("working", "said"), [(True, "true"), (False, "false")])
async def test_working_is_asked_of_the_store(bench: Bench, working: bool, said: str) -> None:
    chunk = caller("OPERATION 0\nRETURN", "Bool", operations=(("step.working", 0),))
    assert (await ended(bench, chunk, working=working)).result == said


async def test_retry_carries_its_delay_or_none(bench: Bench) -> None:
    tables: dict[str, Any] = {
        "operations": (("step.retry", 1),),
        "variants": ((0, 1), (0, 0)),
        "constants": (("Duration", 30_000),),
    }
    after = caller("CONST 0\nVARIANT 1\nOPERATION 0\nRETURN", **tables)
    plain = caller("VARIANT 0\nOPERATION 0\nRETURN", **tables)
    assert (await ended(bench, after)) == StepEnded("c/b/0:0:call#1", 2, RETRY, 30_000)
    assert (await ended(bench, plain)) == StepEnded("c/b/0:0:call#1", 2, RETRY)
    assert retry_delay((Duration(-5),)) == 0


async def test_fail_is_a_failure_with_its_calls(bench: Bench) -> None:
    end = await ended(bench, caller("FAIL 0\nUNIT\nRETURN", constants=("bank said 500",)))
    assert failure(end) == ("R0001", "bank said 500")
    assert json.loads(end.failure or "")["trace"] == [["call", "", 0]]


async def test_a_mistake_is_a_failure(bench: Bench) -> None:
    end = await ended(bench, caller("LOAD 0\nINT 0\nDIV\nRETURN"))
    assert failure(end)[0] == "R0003"


async def test_undos_registered_are_carried_with_the_answer(bench: Bench) -> None:
    chunk = caller(
        "INT 0\nLOAD 0\nTUPLE 1\nOPERATION 0\nOPERATION 1\nPOP\nLOAD 0\nRETURN",
        operations=(("undo.step", 2), ("flow.undo", 1)),
    )
    end = await ended(bench, chunk)
    assert (end.result, end.undo) == ("21", '[["call",[21]]]')


async def test_an_answer_over_the_limit_fails_with_its_size(bench: Bench) -> None:
    text = "x" * (1 << 20)
    end = await ended(bench, caller("CONST 0\nRETURN", "String", constants=(text,)))
    code, message = failure(end)
    assert code == "R0008"
    assert "the answer of call takes 1,048,578 bytes; at most 1,048,576" in message
    fits = "é" * ((1 << 19) - 1)
    end = await ended(bench, caller("CONST 0\nRETURN", "String", constants=(fits,)))
    assert end.result == f'"{fits}"'


# -- http --------------------------------------------------------------------------------------


async def test_a_request_and_its_response() -> None:
    bench = Bench(lambda _: httpx.Response(201, text="é", headers={"X-Id": "7"}))
    chunk = caller(
        HTTP
        + "STORE 1\nLOAD 1\nGET_FIELD 0\nLOAD 1\nGET_FIELD 1\nLOAD 1\nGET_FIELD 2\nTUPLE 3\nRETURN",
        ("Tuple", "Int", ("Map", "String", "String"), "String"),
        **GET,
    )
    end = await ended(bench, chunk)
    status, headers, text = json.loads(end.result)
    assert (status, headers["x-id"], text) == (201, "7", "é")
    (request,) = bench.requests
    assert (request.method, str(request.url)) == ("GET", "http://bank/charges")
    assert request.headers["idempotency-key"] == "k-1"
    await bench.close()


async def test_a_body_of_a_request_is_sent_as_it_is(bench: Bench) -> None:
    chunk = caller(
        "CONST 0\nCONST 1\nMAP 0\nCONST 2\nVARIANT 1\nOPERATION 0\nGET_FIELD 0\nRETURN",
        **{**GET, "constants": ("POST", "http://bank/charges", b'{"a":1}')},
    )
    assert (await ended(bench, chunk)).result == "200"
    assert bench.requests[0].content == b'{"a":1}'


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    bench = Bench(lambda _: httpx.Response(302, headers={"Location": "http://evil/"}))
    end = await ended(bench, caller(HTTP + "GET_FIELD 0\nRETURN", **GET))
    assert (end.result, len(bench.requests)) == ("302", 1)
    await bench.close()


def refusing(error: type[httpx.TransportError]) -> Callable[[httpx.Request], httpx.Response]:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error("no", request=request)

    return answer


@pytest.mark.parametrize(
    ("error", "plain", "in_settled"),
    [
        (httpx.ConnectError, RETRY, RETRY),
        (httpx.ConnectTimeout, RETRY, RETRY),
        (httpx.ReadError, LOST, '"Unknown"'),
        (httpx.ReadTimeout, LOST, '"Unknown"'),
        (httpx.RemoteProtocolError, LOST, '"Unknown"'),
        (httpx.WriteError, LOST, '"Unknown"'),
    ],
)
async def test_no_answer_from_the_network(
    error: type[httpx.TransportError], plain: str, in_settled: str
) -> None:
    bench = Bench(refusing(error))
    for is_settled, result in ((False, plain), (True, in_settled)):
        end = await ended(
            bench, caller(HTTP + "GET_FIELD 0\nRETURN", clauses={"settled": is_settled}, **GET)
        )
        assert end.result == result
        assert end.network == (result in (RETRY, LOST))
    await bench.close()


@pytest.mark.parametrize("url", ["ftp://bank/x", "bank", "http://", "http://a:port/"])
async def test_an_address_that_is_none_is_a_mistake(bench: Bench, url: str) -> None:
    chunk = caller(HTTP + "GET_FIELD 0\nRETURN", **{**GET, "constants": ("GET", url, "a", "b")})
    code, message = failure(await ended(bench, chunk))
    assert (code, message.startswith("http: ")) == ("R0001", True)
    assert bench.requests == []


async def test_a_header_with_a_line_break_is_a_mistake_and_no_request(bench: Bench) -> None:
    for name, value in (("a", "b\r\nc: d"), ("a\n", "b"), ("", "b")):
        constants = ("GET", "http://bank/", name, value)
        chunk = caller(HTTP + "GET_FIELD 0\nRETURN", **{**GET, "constants": constants})
        code, message = failure(await ended(bench, chunk))
        assert (code, message) == ("R0001", f"http: the header {name!r} cannot be sent")
    assert bench.requests == []


async def test_an_answer_too_large_to_keep_is_a_mistake() -> None:
    large = b"x" * (bodies.RESPONSE_LIMIT + 1)
    bench = Bench(lambda _: httpx.Response(200, content=large))
    end = await ended(bench, caller(HTTP + "GET_FIELD 0\nRETURN", **GET))
    assert failure(end) == ("R0008", "http: the answer is larger than 16,777,216 bytes")
    await bench.close()


async def test_without_the_lease_no_request_leaves(bench: Bench) -> None:
    chunk = caller(HTTP + "GET_FIELD 0\nRETURN", **GET)
    assert await run(bench, chunk, may_act=lambda: False) is None
    assert await run(bench, chunk, until=0) is None
    assert bench.requests == []


async def test_an_answer_after_the_limit_is_an_answer_still() -> None:
    """The turn gives the attempt up at its limit; the answer is late then, and not lost."""
    bench = Bench()

    async def late(_: httpx.Request) -> httpx.Response:
        bench.clock.advance(61_000)
        return httpx.Response(200)

    bench.answer = late
    assert (await ended(bench, caller(HTTP + "GET_FIELD 0\nRETURN", **GET))).result == "200"
    await bench.close()


# -- the rest of the world ---------------------------------------------------------------------


async def test_env_time_and_chance(bench: Bench) -> None:
    bench.environment["BANK"] = "http://bank"
    chunk = caller(
        "CONST 0\nOPERATION 0\nCONST 1\nOPERATION 0\nINT 3\nINT 5\nRANGE\nOPERATION 1\n"
        "OPERATION 2\nOPERATION 3\nTUPLE 5\nRETURN",
        ("Tuple", ("enum", 0, "String"), ("enum", 0, "String"), "Int", "String", "Time"),
        constants=("BANK", "NO_SUCH"),
        operations=(("env.get", 1), ("random.int", 1), ("random.uuid", 0), ("time.now", 0)),
    )
    bank, missing, number, drawn, now = json.loads((await ended(bench, chunk)).result)
    assert (bank, missing) == ("http://bank", None)
    assert number in (3, 4)
    assert (len(drawn), drawn[14]) == (36, "4")
    assert now == "1970-01-01T00:16:40Z"


async def test_an_empty_range_has_no_number(bench: Bench) -> None:
    chunk = caller("INT 5\nINT 5\nRANGE\nOPERATION 0\nRETURN", operations=(("random.int", 1),))
    assert failure(await ended(bench, chunk)) == ("R0001", "no number lies in 5..5")


async def test_files_are_written_whole_and_read_back(bench: Bench, tmp_path: Path) -> None:
    path = str(tmp_path / "report.txt")
    chunk = caller(
        "CONST 0\nCONST 1\nOPERATION 0\nPOP\nCONST 0\nOPERATION 1\nRETURN",
        "Bytes",
        constants=(path, b"total 7"),
        operations=(("file.write", 2), ("file.read", 1)),
    )
    assert (await ended(bench, chunk)).result == '"dG90YWwgNw=="'
    assert [one.name for one in tmp_path.iterdir()] == ["report.txt"]


async def test_a_missing_file_is_a_mistake(bench: Bench, tmp_path: Path) -> None:
    chunk = caller(
        "CONST 0\nOPERATION 0\nRETURN",
        "Bytes",
        constants=(str(tmp_path / "none"),),
        operations=(("file.read", 1),),
    )
    code, message = failure(await ended(bench, chunk))
    assert code == "R0001"
    assert message.endswith("No such file or directory")


# -- long computing ----------------------------------------------------------------------------


async def test_a_body_that_computes_for_ever_lets_others_run_and_is_dropped(bench: Bench) -> None:
    """Each slice gives the loop back; past its limit and the grace the body ends without a word."""
    ticks = 0

    async def others() -> None:
        nonlocal ticks
        for _ in range(5):
            await asyncio.sleep(0)
            ticks += 1
        bench.clock.advance(60_000 + GRACE + 1)

    chunk = caller("again:\nJUMP again\nUNIT\nRETURN")
    job: Awaitable[StepEnded | None] = run(bench, chunk)
    end, _ = await asyncio.gather(job, others())
    assert end is None
    assert ticks == 5


# -- a real network ------------------------------------------------------------------------------


async def test_the_daemons_own_client_on_a_real_socket(bench: Bench) -> None:
    """Refused: never made. Closed without an answer: may have left. A redirect: an answer."""
    replies = [b"", b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"]
    seen: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(replies[len(seen) - 1])
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    chunk = caller(
        HTTP + "GET_FIELD 0\nRETURN",
        **{**GET, "constants": ("GET", f"http://127.0.0.1:{port}/a", "X-Key", "k")},
    )
    async with bodies.http_client() as http:
        world = bodies.World(bench.clock.now, http)

        async def once() -> StepEnded | None:
            body = body_of(bench, chunk)
            first = bodies.run_slice(body, world)
            assert not isinstance(first, StepEnded)
            return await bodies.run(body, world, first)

        lost, redirect = await once(), await once()
        server.close()
        await server.wait_closed()
        refused = await once()
    assert lost is not None and (lost.result, lost.network) == (LOST, True)
    assert redirect is not None and redirect.result == "302"
    assert refused is not None and (refused.result, refused.network) == (RETRY, True)
    assert b"x-key: k" in seen[1].lower()
    assert b"user-agent: qoqi" in seen[1].lower()
