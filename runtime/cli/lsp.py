"""`qoqi lsp`: the language server, on standard input and output or on a local port.

The server knows the compiler and nothing of the runtime; how many instances of a flow live, it asks
through `lives`, which looks for a daemon as every command does and keeps silent without one.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from qoqi.lsp.server import create


def run(port: int | None, log: Path | None, url: str | None, token: str | None) -> None:
    handler = logging.FileHandler(log) if log is not None else logging.StreamHandler(sys.stderr)
    logging.basicConfig(
        level=logging.INFO if log is not None else logging.WARNING,
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        handlers=[handler],
    )
    logging.getLogger("pygls").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    server = create(_version(), lambda flow: lives(flow, url, token))
    if port is not None:
        server.start_tcp("127.0.0.1", port)
    else:
        server.start_io()


def _version() -> str:
    try:
        return version("qoqi")
    except PackageNotFoundError:
        return "0"


def lives(flow: str, url: str | None, token: str | None) -> Mapping[str, int] | None:
    """The living instances of a flow by version, from a daemon that answers; None without one."""
    from qoqi.runtime.api.client import Client, NoDaemon
    from qoqi.runtime.api.wire import ApiError
    from qoqi.runtime.cli import connect

    if url is None and connect.nearest(Path.cwd()) is None and "QOQI_URL" not in os.environ:
        return None
    address, secret = connect.find(url, token)
    found: Counter[str] = Counter()
    try:
        with Client(address, secret) as client:
            for status in ("waiting", "running", "stopped"):
                after: str | None = ""
                while after is not None:
                    query = {"flow": flow, "status": status, "limit": "1000"}
                    page = client.instances({**query, "after": after} if after else query)
                    found.update(each.version for each in page.instances)
                    after = page.next
    except (NoDaemon, ApiError) as problem:
        logging.getLogger("qoqi.lsp").info("instances of %s: %s", flow, problem)
        return None
    return found
