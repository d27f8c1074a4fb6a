"""How a command finds its daemon and reads its arguments.

A daemon is named by `--url` and `--token`, by `QOQI_URL` and `QOQI_TOKEN`, or by the nearest folder
`.qoqi` upward from where the command runs: `qoqi serve` leaves `url` and `token` there.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from qoqi.runtime.api.client import Client, NoDaemon
from qoqi.runtime.api.wire import ApiError
from qoqi.runtime.cli.ending import REFUSED, USAGE, fail
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import parse_json

FOLDER = ".qoqi"
STDIN = "-"
DEFAULT_URL = "http://127.0.0.1:7117"


def nearest(start: Path) -> Path | None:
    """The nearest `.qoqi` folder, upward from `start`."""
    for folder in (start, *start.parents):
        if (folder / FOLDER).is_dir():
            return folder / FOLDER
    return None


def _kept(folder: Path | None, name: str) -> str | None:
    if folder is None or not (folder / name).is_file():
        return None
    try:
        return (folder / name).read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        fail(REFUSED, f"{folder / name} cannot be read: {error}")


def find(url: str | None, token: str | None) -> tuple[str, str | None]:
    """Address and token: as given, else from the nearest `.qoqi`."""
    folder = nearest(Path.cwd())
    address = url or _kept(folder, "url") or DEFAULT_URL
    if "://" not in address:
        address = f"http://{address}"
    return address, token or _kept(folder, "token")


@contextmanager
def daemon(url: str | None, token: str | None) -> Generator[Client]:
    """A client for the body of a command; what the daemon refuses ends the command with 3."""
    address, secret = find(url, token)
    if secret is not None and (not secret.isascii() or not secret.isprintable()):
        fail(USAGE, "the token has characters no token has")
    try:
        with Client(address, secret) as client:
            yield client
    except NoDaemon as lost:
        fail(REFUSED, str(lost))
    except ApiError as refused:
        hint = ""
        if refused.code == "bad_token" and secret is None:
            hint = f"; give one with --token, or run where `qoqi serve` left {FOLDER}/token"
        elif refused.code == "bad_token" and token is None:
            hint = f"; {FOLDER}/token is revoked or of another one: name one with --token"
        elif refused.code == "needs_answer":
            hint = "; `qoqi answer` gives it one"
        bare = refused.code == "misfit" and refused.message.startswith("expected ")
        fail(REFUSED, f"{'the value does not fit: ' if bare else ''}{refused.message}{hint}")


def json_argument(text: str, what: str) -> object:
    """A JSON argument of a command; its mistakes are the caller's, with their place.

    `-` is standard input: an argument of a command is at most 128 KiB on many systems.
    """
    try:
        return parse_json(sys.stdin.buffer.read() if text == STDIN else text)
    except FlowError as error:
        fail(USAGE, f"{what}: {error.message}")
