"""What the cases drive the processes with: children, a look into the file, HTTP, and /proc.

The driver is a process of its own, as with every peer: it sees what is done by reading the file
over a connection that only reads, which a writer in WAL mode never waits for.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / ".links")}
TICKS = os.sysconf("SC_CLK_TCK")
QOQI = (sys.executable, "-c", "from qoqi.runtime.cli.main import app; app()")
PATIENCE = 60.0


def fresh_folder(base: Path) -> Path:
    """A package of one file, with an empty store beside it."""
    folder = base / "flow"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copy(HERE / "load.flow", folder)
    (folder / "flow.toml").write_text('name = "load"\n', "utf-8")
    subprocess.run([*QOQI, "build", str(folder)], env=ENVIRONMENT, check=True, capture_output=True)
    return folder


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def wait_until(what: str, true: Callable[[], bool], every: float = 0.002) -> float:
    """When it was first true."""
    end = time.time() + PATIENCE
    while not true():
        if time.time() > end:
            raise TimeoutError(f"waited {PATIENCE:.0f} s for {what}")
        time.sleep(every)
    return time.time()


def memory_mb(pid: int, what: str = "VmRSS") -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(what)


def cpu_seconds(pid: int) -> float:
    parts = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / TICKS


class Look:
    """The store's file, read from outside."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(
            f"file:{folder / 'flows.db'}?mode=ro", uri=True, isolation_level=None
        )

    def value(self, query: str, *arguments: object) -> Any:
        return self._connection.execute(query, arguments).fetchone()[0]

    def rows(self, query: str, *arguments: object) -> list[Any]:
        return self._connection.execute(query, arguments).fetchall()

    def done(self) -> int:
        count: int = self.value("SELECT COUNT(*) FROM instances WHERE status = 'done'")
        return count

    def receiving(self) -> int:
        """Instances that wait for a message: they leave memory with the write that says so."""
        count: int = self.value("SELECT COUNT(*) FROM waits WHERE kind = 'receive'")
        return count

    def close(self) -> None:
        self._connection.close()


class Worker:
    """`worker.py` on a folder."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self._log = (folder / "worker.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), str(folder), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=ENVIRONMENT,
        )
        self.pid = self._process.pid
        self._read()
        self.look = Look(folder)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError((self.folder / "worker.log").read_text("utf-8"))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, **command: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._read()

    def start(self, flow: str, count: int, names: str = "", **args: object) -> None:
        self.ask(start=flow, names=names or flow.lower(), count=count, args=args)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self.look.close()
        self._log.close()


class Serve:
    """`qoqi serve` on a folder."""

    def __init__(self, folder: Path, *options: str, slow: str = "") -> None:
        self.folder = folder
        self.port = _free_port()
        self._log = (folder / "serve.log").open("ab")
        self.began = time.time()
        self._process = subprocess.Popen(
            [
                *QOQI,
                *("serve", str(folder), "--listen", f"127.0.0.1:{self.port}"),
                *("--store", f"sqlite:{folder / 'flows.db'}", *options),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**ENVIRONMENT, "SLOW": slow},
        )
        self.pid = self._process.pid

    def ready(self) -> float:
        """When it answered first."""
        return wait_until("the daemon", self._answers, 0.005)

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError((self.folder / "serve.log").read_text("utf-8"))
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return (self.folder / ".qoqi" / "token").exists()
        return False

    def client(self) -> Client:
        return Client(self.port, (self.folder / ".qoqi" / "token").read_text("utf-8").strip())

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)
        self._log.close()


class Client:
    """One connection that is kept.

    It writes its requests itself: `http.client` takes a quarter of a millisecond for each, on the
    cores that the daemon needs, where a driver of a database takes a third of that.
    """

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )

    def post(self, path: str, body: object) -> int:
        text = json.dumps(body)
        self._socket.sendall(f"POST {path}{self._head}{len(text)}\r\n\r\n{text}".encode("ascii"))
        status, answer = self._answer()
        if status >= 300:
            raise RuntimeError(f"{path}: {status} {answer!r}")
        return status

    def _answer(self) -> tuple[int, bytes]:
        got = self._more(b"")
        while b"\r\n\r\n" not in got:
            got = self._more(got)
        head, _, body = got.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        while len(body) < size:
            body = self._more(body)
        return int(head[9:12]), body

    def _more(self, got: bytes) -> bytes:
        part = self._socket.recv(1 << 16)
        if not part:
            raise ConnectionError("the daemon closed the connection")
        return got + part

    def start(self, flow: str, name: str, args: dict[str, object]) -> None:
        self.post(f"/flows/load.{flow}/instances", {"name": name, "args": args})

    def send(self, name: str, channel: str, value: object) -> None:
        self.post(f"/instances/{name}/channels/{channel}", {"value": value})

    def close(self) -> None:
        self._socket.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def median_import_ms(module: str, rounds: int = 5) -> float:
    code = (
        "import time; t = time.perf_counter(); "
        f"import {module}; print((time.perf_counter() - t) * 1e3)"
    )
    times: Sequence[float] = sorted(
        float(
            subprocess.run(
                [sys.executable, "-c", code],
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(rounds)
    )
    return times[rounds // 2]
