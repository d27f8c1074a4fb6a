"""A daemon and a bank of one's own, in a temporary folder, as real processes on free ports.

The demo, the story of the crash and the tests of the stories are played here. The folder holds a
copy of the examples, so that nothing of the checkout is written to; leaving the playground stops
what runs and removes the folder. Every wait is bounded and says what it waited for.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
QOQI = Path(sys.executable).with_name("qoqi")

# How long anything here may take before it counts as broken.
PATIENCE = 60.0

T = TypeVar("T")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(what: str, look: Callable[[], T], patience: float = PATIENCE) -> T:
    """The first truthy thing that `look` gives."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        found = look()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"waited {patience:.0f} s for {what}")


def get_json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


class Playground:
    """`with Playground() as ground:` makes the folder; processes start when asked."""

    def __init__(self, serve_options: Sequence[str] = ()) -> None:
        self.serve_options = list(serve_options)
        self.folder = Path(tempfile.mkdtemp(prefix="flow-"))
        self.url = f"http://127.0.0.1:{free_port()}"
        self.bank_url = f"http://127.0.0.1:{free_port()}"
        self.daemon: subprocess.Popen[bytes] | None = None
        self.bank: subprocess.Popen[bytes] | None = None
        self.log = self.folder / "serve.log"

    def __enter__(self) -> Self:
        shutil.copy(ROOT / "flow.toml", self.folder)
        if (ROOT / "flow.lock").exists():
            shutil.copy(ROOT / "flow.lock", self.folder)
        (self.folder / "examples").mkdir()
        for source in EXAMPLES.glob("*.flow"):
            shutil.copy(source, self.folder / "examples")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop_daemon()
        finally:
            if self.bank is not None:
                self.bank.terminate()
                self.bank.wait(10)
            if kind is not None and self.log.exists():
                print(self.log.read_text("utf-8", "replace"), file=sys.stderr)
            shutil.rmtree(self.folder)

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "BANK": self.bank_url, "QOQI_URL": self.url, "NO_COLOR": "1"}

    # -- processes ----------------------------------------------------------------------------

    def start_bank(self) -> None:
        port = self.bank_url.rpartition(":")[2]
        self.bank = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "bank.py"), port], stdout=subprocess.DEVNULL
        )
        wait_for("the bank", lambda: answers(f"{self.bank_url}/counts"))

    def serve(self) -> None:
        """Starts a daemon on the folder's store and waits until it answers."""
        with self.log.open("ab") as log:
            self.daemon = subprocess.Popen(
                [
                    str(QOQI),
                    "serve",
                    "--listen",
                    self.url.removeprefix("http://"),
                    *self.serve_options,
                ],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        daemon = self.daemon
        wait_for("the daemon", lambda: daemon.poll() is not None or answers(f"{self.url}/health"))
        if daemon.poll() is not None:
            raise RuntimeError(
                f"qoqi serve ended with {daemon.returncode}:\n{self.log.read_text('utf-8')}"
            )

    def stop_daemon(self) -> int | None:
        """As a deploy does, with SIGTERM; gives its exit code."""
        daemon, self.daemon = self.daemon, None
        if daemon is None:
            return None
        daemon.send_signal(signal.SIGTERM)
        try:
            return daemon.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
            raise

    def crash_daemon(self) -> None:
        """kill -9: nothing of it gets to say goodbye."""
        assert self.daemon is not None
        self.daemon.kill()
        self.daemon.wait()
        self.daemon = None

    # -- asking -------------------------------------------------------------------------------

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(QOQI), *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def qoqi(self, *arguments: str) -> str:
        """What `qoqi` prints; an error if it fails."""
        ran = self.run(*arguments)
        if ran.returncode:
            raise RuntimeError(
                f"qoqi {' '.join(arguments)} ended with {ran.returncode}:\n{ran.stderr}{ran.stdout}"
            )
        return ran.stdout

    def show(self, instance: str) -> dict[str, Any]:
        """Everything about an instance, as the API gives it."""
        token = (self.folder / ".qoqi" / "token").read_text("utf-8").strip()
        request = urllib.request.Request(
            f"{self.url}/instances/{quote(instance, safe='')}",
            headers={"Authorization": f"Bearer {token}"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def wait_until(self, instance: str, *statuses: str) -> dict[str, Any]:
        """The instance, once it has one of these statuses."""

        def look() -> dict[str, Any] | None:
            life = self.show(instance)
            return life if life["instance"]["status"] in statuses else None

        found = wait_for(f"{instance} to be {' or '.join(statuses)}", look)
        assert found is not None
        return found

    # -- the bank -----------------------------------------------------------------------------

    def tell_bank(self, **rule: object) -> None:
        """A rule for requests to come, see bank.py."""
        body = json.dumps(rule).encode()
        request = urllib.request.Request(f"{self.bank_url}/rules", data=body, method="POST")
        urllib.request.urlopen(request, timeout=10).close()

    def counts(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = get_json(f"{self.bank_url}/counts")
        return found

    def done(self) -> list[str]:
        """The paths of what the bank carried out, in order."""
        return [path for path, _ in get_json(f"{self.bank_url}/done")]
