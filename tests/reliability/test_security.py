"""Who asks the wrong way, or too slowly, or for too much: refused, or shown as text, and no more.

Roles, tokens, births and bodies are shown beside the calls (tests/daemon/test_api_calls.py); here is
what needs a socket, and what must not be seen in a log, the ledger or a file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
import uvicorn

from qoqi.runtime.api import connections, server
from qoqi.runtime.api.connections import Connection
from qoqi.runtime.api.tokens import Role
from tests.reliability.lab import SECOND
from tests.reliability.site import Site

ECHO = """
flow Echo(secret: String = "none") -> String {
    channel notes: String
    run {
        let note = notes.receive()
        print(note)
        return note
    }
}
"""

# Names that mean something to a shell, a file system, a browser or SQL, and are no names here.
NO_NAMES = [
    "../../etc/passwd\x00",
    "..\\..\\windows",
    "a b",
    "a%2e",
    "a?b=c",
    "a#b",
    "<script>",
    "';DROP TABLE instances;--",
    "\u202eevil",
    "a\r\nSet-Cookie: x=1",
    "$(reboot)",
    "x" * 257,
    "",
]


@pytest.fixture
async def echo(site: Site) -> Site:
    await site.deploy(ECHO)
    return site


@pytest.mark.parametrize("name", NO_NAMES)
async def test_names_that_mean_something_elsewhere_are_refused(echo: Site, name: str) -> None:
    answer = await echo.post("/flows/Echo/instances", {"name": name})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    for call in ("", "/ledger", "/views/x") if name else ():
        answer = await echo.http.get(f"/instances/{quote(name, safe='')}{call}")
        assert answer.status_code == 404
    assert await echo.bench.store.counts() == {}


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", ".", "//", "a/../b", "~root", "@:+"])
async def test_a_name_with_slashes_and_dots_is_a_name_and_no_path(echo: Site, name: str) -> None:
    await echo.start("Echo", name)
    encoded = quote(name, safe="").replace(".", "%2E")
    life = await echo.http.get(f"/instances/{encoded}")
    assert life.json()["instance"]["name"] == name
    sent = await echo.http.post(f"/instances/{encoded}/channels/notes", json={"value": "x"})
    assert sent.status_code == 202


async def test_a_body_nested_without_end_is_refused(echo: Site) -> None:
    await echo.start("Echo", "e")
    for text in (
        "[" * 200_000,
        '{"value":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a":' * 50_000,
    ):
        answer = await echo.http.post(
            "/instances/e/channels/notes",
            content=text,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code in (400, 422), answer.text[:200]
    assert (await echo.http.get("/health")).status_code == 200


async def test_markup_and_escapes_are_text_wherever_they_come_back(echo: Site) -> None:
    await echo.start("Echo", "e", secret="<img src=x onerror=alert(1)>")
    evil = "\x1b[2J<script>alert(1)</script>\r\nX-Evil: 1"
    answer = await echo.send("e", "notes", evil)
    assert answer.status_code == 202
    await echo.bench.settle()
    life = await echo.http.get("/instances/e")
    assert life.headers["content-type"] == "application/json"
    assert life.headers["x-content-type-options"] == "nosniff"
    assert "x-evil" not in life.headers
    assert life.json()["result"] == evil
    assert "\x1b" not in life.text  # JSON says it in letters
    answer = await echo.http.get(f"/instances/{quote('<b>no one</b>', safe='')}")
    assert answer.headers["content-type"] == "application/json"


async def test_no_secret_is_in_a_log_or_the_ledger(
    echo: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token = await echo.api.make_token("other", Role.OPERATE)
    await echo.start("Echo", "e", secret="s3cret-argument")
    await echo.http.get("/instances", headers={"Authorization": f"Bearer {token}"})
    await echo.http.get("/instances", headers={"Authorization": "Bearer qoqi_wrong-token"})
    await echo.send("e", "notes", "s3cret-message")
    await echo.bench.advance(SECOND)
    kept = [one.detail for one in await echo.bench.store.ledger(None, 0, 1_000)]
    for secret in (token, echo.token, "qoqi_wrong-token"):
        assert secret not in caplog.text
        assert not any(secret in detail for detail in kept)
        assert not any(secret in "".join(row) for row in await echo.bench.store.tokens())
    for secret in ("s3cret-argument", "s3cret-message"):
        assert secret not in caplog.text
    # What the flow itself prints is its own: everything else of a message stays out of the ledger.
    said = [
        one.kind for one in await echo.bench.store.ledger("e", 0, 100) if "s3cret" in one.detail
    ]
    assert said == ["print", "done"]


# -- on a socket ----------------------------------------------------------------------------------


@asynccontextmanager
async def listening(site: Site) -> AsyncIterator[int]:
    config = uvicorn.Config(
        site.server, port=0, http=Connection, lifespan="off", log_config=None, access_log=False
    )
    served = uvicorn.Server(config)
    served.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(served._serve())
    while not served.started:
        await asyncio.sleep(0.01)
    port: int = served.servers[0].sockets[0].getsockname()[1]
    try:
        yield port
    finally:
        served.should_exit = True
        await task


async def said(port: int, data: bytes, *, then: bytes = b"") -> bytes:
    """All that comes back until the other side closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    await writer.drain()
    if then:
        await asyncio.sleep(0.05)
        writer.write(then)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def test_who_says_nothing_or_half_a_head_is_let_go(
    echo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_TIME", 0.2)
    async with listening(echo) as port:
        silent, line, head, second = await asyncio.gather(
            said(port, b""),
            said(port, b"GET /health HTT"),
            said(port, b"GET /health HTTP/1.1\r\nHost: x\r\nA: "),
            said(port, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", then=b"GET /hea"),
        )
        assert (silent, line, head) == (b"", b"", b"")
        assert second.startswith(b"HTTP/1.1 200")  # the first request of that connection


async def test_a_head_without_end_is_let_go(echo: Site) -> None:
    async with listening(echo) as port:
        head = b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"A: " + b"x" * (1 << 20)
        assert await said(port, head) == b""
        assert (await said(port, _request("GET /health"))).startswith(b"HTTP/1.1 200")


async def test_a_body_that_does_not_come_is_given_up(
    echo: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BODY_TIME", 0.2)
    async with listening(echo) as port:
        head = _request(
            "POST /flows/Echo/instances",
            f"Authorization: Bearer {echo.token}",
            "Content-Length: 1000",
        )
        answer = await said(port, head + b'{"na')
        assert answer.startswith(b"HTTP/1.1 408")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "too_slow"


async def test_what_is_no_http_is_no_request(echo: Site) -> None:
    async with listening(echo) as port:
        for data in (
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
            b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: x\r\nA\x00B: 1\r\n\r\n",
        ):
            assert (await said(port, data)).startswith(b"HTTP/1.1 400")
        # Two lengths that differ: what one side takes for a body the other takes for a request.
        smuggled = _request("POST /sweep", "Content-Length: 4", "Transfer-Encoding: chunked")
        assert not (await said(port, smuggled + b"0\r\n\r\nGET /health")).startswith(
            b"HTTP/1.1 200"
        )
        assert (await said(port, _request("GET /health"))).startswith(b"HTTP/1.1 200")


def _request(line: str, *headers: str) -> bytes:
    lines = [f"{line} HTTP/1.1", "Host: x", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode()


def test_a_token_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Also where the process would make files that all may read."""
    from qoqi.runtime.cli.serve import _write_token
    from qoqi.runtime.store.open import memory_store
    from tests.daemon.workbench import Bench

    async def write() -> None:
        bench = Bench()
        from qoqi.runtime.api.calls import Api

        await _write_token(Api(await bench.daemon()), tmp_path)
        await bench.close()

    before = os.umask(0)
    try:
        asyncio.run(write())
    finally:
        os.umask(before)
    memory_store().close()
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
