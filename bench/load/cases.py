"""The cases: each gives its figures by name, and `TARGETS` says what they have to reach.

The shapes, counts and clocks are those of the common benchmarks of durable workflows: started from
outside, done when the store says so. Every case begins with an empty store and a new process that
has run a few workflows before the clock starts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

from load.driver import (
    Look,
    Serve,
    Worker,
    cpu_seconds,
    fresh_folder,
    median_import_ms,
    memory_mb,
    percentile,
    wait_until,
)

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Target:
    """`peer` is the best figure of another system on two cores of this kind, and whose it is."""

    case: str
    figure: str
    unit: str
    target: float
    more: bool
    peer: float | None = None
    whose: str = ""


TARGETS = (
    Target("oneshot", "per_second", "workflows/s", 2_000, True, 672, "Absurd"),
    Target("chain", "per_second", "steps/s", 5_000, True, 1_924, "Restate"),
    Target("chain50", "per_second", "steps/s, 50 a chain", 5_000, True),
    Target("lone", "p50_ms", "ms a step, p50", 0.6, False, 0.78, "Absurd"),
    Target("lone", "p99_ms", "ms a step, p99", 2.72, False, 2.72, "Absurd"),
    Target("fan", "per_second", "steps/s", 8_000, True, 4_055, "Restate"),
    Target("children", "per_second", "children/s", 1_500, True, 434, "Restate"),
    Target("messages", "per_second", "messages to done/s", 2_500, True, 888, "Absurd"),
    Target("paced", "p50_ms", "ms to done at 20/s, p50", 2, False, 5.63, "Procrastinate"),
    Target("paced", "p99_ms", "ms to done at 20/s, p99", 8, False, 11.3, "Procrastinate"),
    Target("sleepers", "created_per_second", "created/s", 4_000, True, 982, "Absurd"),
    Target("sleepers", "kb_each", "KB of memory each", 0.1, False, 0.04, "Absurd"),
    Target("sleepers", "woken_per_second", "woken/s", 1_057, True, 1_057, "Absurd"),
    Target("idle", "cpu_percent", "% CPU with the sleepers", 1, False, 3.0, "Absurd, 10,000"),
    Target("timer", "p50_ms", "ms late, p50", 5, False, 14.1, "DBOS"),
    Target("timer", "p99_ms", "ms late, p99", 20, False, 32.5, "Restate"),
    Target("timer_stored", "p50_ms", "ms late from the store, p50", 5, False),
    Target("timer_stored", "p99_ms", "ms late from the store, p99", 20, False),
    Target("recovery", "seconds", "s from restart to all done", 1.0, False, 0.98, "Restate"),
    Target("recovery", "steps_twice", "steps begun twice", 92, False, 26, "DBOS"),
    Target("coldstart", "seconds", "s to the first done", 0.3, False, 0.22, "Procrastinate"),
    Target("coldstart", "import_ms", "ms to import", 150, False, 139, "Absurd"),
    Target("coldstart", "idle_mb", "MB idle", 60, False, 38.9, "Procrastinate"),
)


def oneshot(base: Path, scale: float) -> Figures:
    return _timed(base, "One", int(1_000 * scale), 1, n=1)


def chain(base: Path, scale: float) -> Figures:
    return _timed(base, "Chain", int(200 * scale), 10, n=10)


def chain50(base: Path, scale: float) -> Figures:
    return _timed(base, "Chain", int(200 * scale), 50, n=50)


def _timed(base: Path, flow: str, count: int, steps: int, **args: object) -> Figures:
    """Rate, and what a step costs: CPU, time of the loop's thread, statements, calls a commit."""
    worker = _primed(base)
    before = worker.ask(stats=True)
    begin = time.time()
    worker.start(flow, count, "timed", **args)
    seconds = wait_until("all done", lambda: worker.look.done() >= 5 + count) - begin
    after = worker.ask(stats=True)
    worker.stop()
    total = count * steps
    spent = {name: after[name] - before[name] for name in after}
    return {
        "per_second": total / seconds,
        "cpu_us": spent["cpu"] / total * 1e6,
        "loop_us": spent["loop"] / total * 1e6,
        "statements": spent["statements"] / total,
        "calls_a_commit": spent["calls"] / spent["groups"],
    }


def _primed(base: Path, *options: str) -> Worker:
    worker = Worker(fresh_folder(base), *options)
    worker.start("One", 5, "prime", n=1)
    wait_until("the first", lambda: worker.look.done() >= 5)
    return worker


def lone(base: Path, scale: float) -> Figures:
    worker = _primed(base)
    worker.ask(steps=True)
    worker.start("Chain", 1, "lone", n=int(500 * scale))
    wait_until("the chain", lambda: worker.look.done() >= 6)
    begun = worker.ask(steps=True)["steps"]
    worker.stop()
    gaps = [(after - before) * 1e3 for before, after in pairwise(begun)]
    return {"p50_ms": percentile(gaps, 0.5), "p99_ms": percentile(gaps, 0.99)}


def fan(base: Path, scale: float) -> Figures:
    return _inside(base, "Fan", int(100 * scale), 20, 1)


def children(base: Path, scale: float) -> Figures:
    return _inside(base, "Parent", int(100 * scale), 5, int(100 * scale) + 1)


def _inside(base: Path, flow: str, count: int, rounds: int, ends: int) -> Figures:
    """Timed by the flow itself, one after the other in a process: the median of the rounds."""
    worker = _primed(base)
    stats = worker.ask(stats=True)
    times = []
    for number in range(rounds):
        name = f"round{number}"
        args: dict[str, object] = {"n": count}
        if flow == "Parent":
            args["name"] = name
        before = worker.look.done()
        worker.start(flow, 1, name, **args)
        wait_until(flow, lambda: worker.look.done() >= before + ends)  # noqa: B023
        times.append(
            max(1, int(worker.look.value("SELECT result FROM instances WHERE id = ?", f"{name}-0")))
        )
    spent = {name: value - stats[name] for name, value in worker.ask(stats=True).items()}
    worker.stop()
    total = count * rounds
    return {
        "per_second": count / percentile(times, 0.5) * 1e3,
        "loop_us": spent["loop"] / total * 1e6,
        "statements": spent["statements"] / total,
    }


def messages(base: Path, scale: float) -> Figures:
    """As fast as four clients send, over HTTP; done when the instance says so."""
    count = int(500 * scale)
    daemon, look = _waiting(base, count)
    local = threading.local()

    def send(number: int) -> None:
        if not hasattr(local, "client"):
            local.client = daemon.client()
        local.client.send(f"wait-{number}", "go", number)

    begin = time.time()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, range(count)))
    sent = time.time() - begin
    seconds = wait_until("all done", lambda: look.done() >= count) - begin
    daemon.stop()
    return {"per_second": count / seconds, "sent_per_second": count / sent}


def paced(base: Path, scale: float) -> Figures:
    """From just before a send to when a reader of the file sees the instance done."""
    count = max(20, int(100 * scale))
    daemon, look = _waiting(base, count)
    client = daemon.client()
    late = []
    begin = time.time()
    for number in range(count):
        time.sleep(max(0.0, begin + number * 0.05 - time.time()))
        before = time.time()
        client.send(f"wait-{number}", "go", number)
        done = wait_until(
            "the message",
            lambda: (
                look.value("SELECT status FROM instances WHERE id = ?", f"wait-{number}")  # noqa: B023
                == "done"
            ),
            0.0001,
        )
        late.append((done - before) * 1e3)
    client.close()
    daemon.stop()
    return {"p50_ms": percentile(late, 0.5), "p99_ms": percentile(late, 0.99)}


def _waiting(base: Path, count: int) -> tuple[Serve, Look]:
    daemon = Serve(fresh_folder(base))
    daemon.ready()
    client = daemon.client()
    for number in range(count):
        client.start("Wait", f"wait-{number}", {"n": number})
    client.close()
    look = Look(daemon.folder)
    wait_until("all asleep", lambda: look.receiving() >= count, 0.05)
    time.sleep(0.5)
    return daemon, look


def sleepers(base: Path, scale: float) -> Figures:
    """Created from outside, until each has left memory; then a tenth is woken by a message.

    Memory is what half as many more add to it. By then the database's cache, which is bounded, is
    full, and the process has had as many in memory at once as it ever will: what grows from there
    on is what an instance costs, and `held_mb` is all that it came to.
    """
    count = int(10_000 * scale)
    worker = _primed(base)
    worker.ask(sleepers=count)
    asleep = worker.look.receiving()
    begin = time.time()
    _sleep(worker, "wait", count)
    created = _asleep(worker, count + asleep) - begin
    memory = memory_mb(worker.pid)
    _sleep(worker, "more", count // 2)
    _asleep(worker, count + count // 2 + asleep)
    held = memory_mb(worker.pid)
    woken = count // 10
    begin = time.time()
    worker.ask(send="go", names="wait0", count=min(1_000, woken))
    seconds = wait_until("the woken", lambda: worker.look.done() >= 5 + min(1_000, woken)) - begin
    worker.stop()
    return {
        "created_per_second": count / created,
        "kb_each": max(0.0, (held - memory) * 1024 / (count // 2)),
        "held_mb": held,
        "woken_per_second": min(1_000, woken) / seconds,
    }


def _sleep(worker: Worker, names: str, count: int) -> None:
    for first in range(0, count, 1_000):
        worker.start("Wait", min(1_000, count - first), f"{names}{first}", n=1)


def _asleep(worker: Worker, count: int) -> float:
    return wait_until("all asleep", lambda: worker.look.receiving() >= count, 0.05)


def idle(base: Path, scale: float) -> Figures:
    """The CPU of a daemon on a store in which nothing is due."""
    worker = _primed(base)
    worker.ask(sleepers=int(100_000 * scale))
    time.sleep(3)
    before = cpu_seconds(worker.pid)
    time.sleep(20)
    used = cpu_seconds(worker.pid) - before
    worker.stop()
    return {"cpu_percent": used / 20 * 100}


def timer(base: Path, scale: float) -> Figures:
    return _timer(_primed(base), int(200 * scale), 1_000)


def timer_stored(base: Path, scale: float) -> Figures:
    """The same for instances that left memory: they are found by the look for what is due."""
    return _timer(_primed(base, "--far", "1500"), int(200 * scale), 2_000)


def _timer(worker: Worker, count: int, ms: int) -> Figures:
    worker.start("Sleep", count, "sleep", ms=ms)
    wait_until("all awake", lambda: worker.look.done() >= 5 + count)
    rows = worker.look.rows("SELECT result FROM instances WHERE id LIKE 'sleep-%'")
    worker.stop()
    late = [float(row[0]) for row in rows]
    return {"p50_ms": percentile(late, 0.5), "p99_ms": percentile(late, 0.99)}


class _SlowServer(ThreadingHTTPServer):
    """Answers after 50 ms, and knows what it was asked."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _SlowHandler)
        self.asked: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is what this is about."""


class _SlowHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        assert isinstance(self.server, _SlowServer)
        self.server.asked.append(self.path)
        time.sleep(0.05)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Not to the terminal."""


def recovery(base: Path, scale: float) -> Figures:
    """`kill -9` when half of the steps have begun; then a new daemon that need not wait."""
    count = int(100 * scale)
    server = _SlowServer()
    slow = f"http://127.0.0.1:{server.server_address[1]}"
    folder = fresh_folder(base)
    daemon = Serve(folder, "--recover", "at-once", slow=slow)
    daemon.ready()
    client = daemon.client()
    for number in range(count):
        client.start("Three", f"three-{number}", {"name": f"three-{number}"})
    wait_until("half of them", lambda: len(server.asked) >= count * 3 // 2, 0.0005)
    daemon.kill()
    daemon = Serve(folder, "--recover", "at-once", slow=slow)
    look = Look(folder)
    seconds = wait_until("all done", lambda: look.done() >= count) - daemon.began
    daemon.stop()
    server.shutdown()
    return {
        "seconds": seconds,
        "steps_twice": float(len(server.asked) - len(set(server.asked))),
    }


def coldstart(base: Path, scale: float) -> Figures:
    """A daemon that finds one instance due, from the start of the process to its end."""
    folder = fresh_folder(base)
    first = Serve(folder)
    first.ready()
    client = first.client()
    client.start("One", "one", {"n": 1})
    look = Look(folder)
    wait_until("the first done", lambda: look.done() >= 1)
    soon = time.time() * 1e3 + 10_000
    client.start("Sleep", "cold", {"ms": 31_000})
    wait_until("asleep", lambda: look.value("SELECT COUNT(*) FROM waits WHERE at > ?", soon) == 1)
    first.stop()
    look.close()
    _make_due(folder)
    second = Serve(folder)
    look = Look(folder)
    seconds = wait_until("the second done", lambda: look.done() >= 2) - second.began
    time.sleep(2)
    mb = memory_mb(second.pid)
    second.stop()
    return {
        "seconds": seconds,
        "import_ms": median_import_ms("qoqi.runtime.cli.serve"),
        "idle_mb": mb,
    }


def _make_due(folder: Path) -> None:
    """Its wait is over before the daemon that will find it starts."""
    import sqlite3

    with sqlite3.connect(folder / "flows.db") as connection:
        (state,) = connection.execute("SELECT state FROM instances WHERE id = 'cold'").fetchone()
        (at,) = connection.execute("SELECT at FROM waits WHERE instance = 'cold'").fetchone()
        past = at - 3_600_000
        connection.execute(
            "UPDATE instances SET wake_at = ?, state = ? WHERE id = 'cold'",
            (past, state.replace(str(at), str(past))),
        )
        connection.execute("UPDATE waits SET at = ? WHERE instance = 'cold'", (past,))
    connection.close()


CASES: dict[str, Callable[[Path, float], Figures]] = {
    case.__name__: case
    for case in (
        oneshot,
        chain,
        chain50,
        lone,
        fan,
        children,
        messages,
        paced,
        sleepers,
        idle,
        timer,
        timer_stored,
        recovery,
        coldstart,
    )
}
