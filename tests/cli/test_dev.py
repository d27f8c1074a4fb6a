"""`qoqi dev`: a save is deployed, a mistake is told, and what ran goes on running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from qoqi.runtime.api.client import Client

SAYS = """\
flow Says() -> String {{
    run {{ return "{word}" }}
}}
"""


class Developing:
    """The command as a process; what it prints is gathered beside."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-m", "qoqi.runtime.cli.main", "dev", "--listen", "127.0.0.1:0"],
            cwd=folder,
            env={**os.environ, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: list[str] = []
        self.gathering = threading.Thread(target=self._gather, daemon=True)
        self.gathering.start()

    def _gather(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(self.process.stdout)

    def until(self, word: str, times: int = 1) -> None:
        """Waits until the word was printed so often."""
        end = time.monotonic() + 20
        while sum(word in line for line in list(self.lines)) < times:
            assert time.monotonic() < end, "".join(self.lines)
            time.sleep(0.02)

    def save(self, text: str) -> None:
        (self.folder / "says.flow").write_text(text)

    def says(self, name: str) -> object:
        """What a new instance gives."""
        url, token = (
            (self.folder / ".qoqi" / what).read_text().strip() for what in ("url", "token")
        )
        with Client(url, token) as client:
            client.start("Says", name, {})
            end = time.monotonic() + 10
            while (life := client.life(name)).instance.status != "done":
                assert time.monotonic() < end
                time.sleep(0.02)
        return life.result


@pytest.fixture
def developing(tmp_path: Path) -> Iterator[Developing]:
    (tmp_path / "flow.toml").write_text('name = "says"\n')
    (tmp_path / "says.flow").write_text(SAYS.format(word="one"))
    started = Developing(tmp_path)
    try:
        started.until("flow daemon dev/")
        yield started
    finally:
        started.process.kill()
        started.process.wait()
        started.gathering.join(10)
        assert started.process.stdout is not None
        started.process.stdout.close()


def test_each_save_is_deployed_and_mistakes_are_told(developing: Developing) -> None:
    assert developing.says("a") == "one"

    developing.save(SAYS.format(word="two"))
    developing.until("deployed says.Says", 2)
    assert developing.says("b") == "two"

    developing.save(SAYS.format(word='three" + 1 + "'))
    developing.until("still running: says.Says")
    assert developing.says("c") == "two"

    # Back to what it was: that version is known, and new instances begin in it again.
    developing.save(SAYS.format(word="one"))
    developing.until("deployed says.Says", 3)
    assert developing.says("d") == "one"

    assert not (developing.folder / "flow.lock").exists()
    developing.process.send_signal(signal.SIGTERM)
    assert developing.process.wait(20) == 0
