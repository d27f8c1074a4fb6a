"""What a daemon's process does for speed: it waits for no acknowledgement, and loads no httpx."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
from pathlib import Path

from qoqi.runtime import bodies
from qoqi.runtime.cli.serve import _bind
from qoqi.runtime.daemon import COLLECTIONS, collect_rarely

LINKS = Path(__file__).resolve().parents[2] / ".links"


def test_a_connection_of_the_listener_sends_what_it_has_at_once() -> None:
    listener = _bind("127.0.0.1", 0)
    with listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_garbage_is_still_collected() -> None:
    before = gc.get_threshold()
    try:
        collect_rarely()
        assert gc.isenabled()
        assert gc.get_threshold() == COLLECTIONS
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def test_a_daemon_without_requests_never_loads_httpx() -> None:
    code = "import sys, qoqi.runtime.cli.serve; sys.exit('httpx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(LINKS)}, check=False)
    assert ran.returncode == 0


async def test_the_client_that_bodies_share_is_made_at_the_first_request() -> None:
    async with bodies.http_client() as http:
        request = http.build_request("GET", "http://localhost/a", headers=[(b"x", b"1")])
        assert str(request.url) == "http://localhost/a"
        assert request.headers["User-Agent"] == "qoqi"
    async with bodies.http_client():
        pass  # closing one that was never used is no request either
