"""kill -9, again and again, under load: what has to hold is counted by somebody else.

A daemon serves a small flow; four clients start instances and send to them, each repeating under its
key until it is answered. A payment server writes down every request it gets. At a random moment the
daemon is killed; it starts again, in one half of the rounds with `--recover at-once`. After the last
round everything has to come to its end, and then:

- every instance that was acknowledged is there and ended, with the result that its messages give:
  none lost, none taken twice;
- no attempt was asked twice, and no step a second time unless the ledger says that the attempt
  before was given up;
- no `Settled` step was asked twice at all.

- no instance was ever stopped. None of them ends its daemon, so one that is stopped because daemons
  ended while it was in memory (R0011) was blamed for what somebody else did, however often the
  daemons are killed.

Run it as a script for as many rounds as you like; `--folder` keeps what there is, and a run that was
broken off goes on there. The seed it prints gives the same moments again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

FLOW = """\
import std.env
import std.http

step pay(n: Int) -> Int within 1s backoff 100ms undo refund(it) { return ask("pay", n) }
step refund(n: Int) -> Int within 1s backoff 100ms { return ask("refund", n) }

step once(n: Int) -> Settled<Int> within 1s { return Known(ask("once", n)) }

fn ask(what: String, n: Int) -> Int {
    let headers = ["Key": flow.key(), "Attempt": "\\(flow.attempt())"]
    return http.post("\\(env.require("BANK"))/\\(what)/\\(n)", headers: headers).json().decode()
}

flow Order(n: Int) -> Result<Int, Int> {
    channel news: Int

    run {
        var sum = pay(n)
        let unknown = match once(n) {
            case Known(_): 0
            case Unknown: 1
        }
        var heard = 0
        while heard < 3 {
            stage hearing(sum, unknown, heard)
            sum += news.receive()
            heard += 1
        }
        for part in task.map([1, 2, 3], fn(k) => pay(k)) { sum += part }
        if n % 5 == 0 { return Err(sum) }
        return Ok(sum)
    }
}
"""
CLIENTS = 4
PATIENCE = 120.0


class Payments:
    """Every request, in the order they came: (what, key, attempt). Kept in a file as well."""

    def __init__(self, log: Path) -> None:
        self.lock = threading.Lock()
        self.requests: list[tuple[str, str, int]] = []
        if log.is_file():
            for line in log.read_text("utf-8").splitlines():
                what, key, attempt = json.loads(line)
                self.requests.append((what, key, attempt))
        self._log = log.open("a", encoding="utf-8")
        payments = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                _, what, number = self.path.split("/")
                payments.came(what, self.headers["Key"], int(self.headers["Attempt"]))
                time.sleep(random.random() * 0.02)
                try:
                    self.send_response(200)
                    self.send_header("Content-Length", str(len(number)))
                    self.end_headers()
                    self.wfile.write(number.encode())
                except OSError:
                    self.close_connection = True  # who asked was killed meanwhile

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                """Silent: the requests are what counts."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def came(self, what: str, key: str, attempt: int) -> None:
        with self.lock:
            self.requests.append((what, key, attempt))
            print(json.dumps([what, key, attempt]), file=self._log, flush=True)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._log.close()


@dataclass
class Torture:
    """One folder: its store, its payment server, its clients."""

    folder: Path
    seed: int
    payments: Payments = field(init=False)
    started: set[str] = field(default_factory=set)
    kills: int = 0
    process: subprocess.Popen[bytes] | None = None
    quiet: threading.Event = field(default_factory=threading.Event)
    mistakes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "flow.toml").write_text('name = "orders"\n')
        (self.folder / "order.flow").write_text(FLOW)
        self.payments = Payments(self.folder / "requests.log")
        names = self.folder / "started.log"
        if names.is_file():
            self.started = set(names.read_text("utf-8").split())
        self._names = names.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.chance = random.Random(f"{self.seed}/{len(self.started)}")

    # -- the daemon -------------------------------------------------------------------------------

    def serve(self, recover: str) -> None:
        with (self.folder / "daemon.log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "qoqi.runtime.cli.main", "serve"),
                    *(() if self.token() else (".",)),  # the first start deploys
                    *("--listen", f"127.0.0.1:{self.port}", "--name", "shop", "--recover", recover),
                    *("--lease", "1s", "--renew", "300ms", "--retry", "100ms"),
                ],
                cwd=self.folder,
                env={**os.environ, "BANK": self.payments.url},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    def _until_it_answers(self) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/health", timeout=5).raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(0.02)
        raise TimeoutError("the daemon did not start")

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.kills += 1

    def build(self) -> None:
        words = [sys.executable, "-m", "qoqi.runtime.cli.main", "build", "."]
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True)

    def token(self) -> str:
        path = self.folder / ".qoqi" / "token"
        return path.read_text("utf-8").strip() if path.is_file() else ""

    # -- the clients ------------------------------------------------------------------------------

    def client(self, number: int) -> None:
        """Starts instances and sends to them, until it is told to be quiet."""
        try:
            base = f"http://127.0.0.1:{self.port}"
            with httpx.Client(base_url=base, timeout=5.0) as http:
                count = 0
                while not self.quiet.is_set():
                    name = f"o-{self.seed}-{os.getpid()}-{number}-{count}"
                    self._one(http, name, count)
                    count += 1
        except Exception as mistake:
            self.mistakes.append(f"client {number}: {mistake!r}")

    def _one(self, http: httpx.Client, name: str, number: int) -> None:
        self._until_said(
            http, "/flows/Order/instances", {"name": name, "args": {"n": number}}, None
        )
        with self._lock:
            self.started.add(name)
            print(name, file=self._names, flush=True)
        for message in range(3):
            path = f"/instances/{name}/channels/news"
            self._until_said(http, path, {"value": 10**message}, f"{name}/{message}")

    def _until_said(self, http: httpx.Client, path: str, body: object, key: str | None) -> None:
        """Repeats until the daemon has it; only no answer and 503 are repeated."""
        end = time.monotonic() + PATIENCE
        while True:
            headers = {"Authorization": f"Bearer {self.token()}"}
            if key is not None:
                headers["Idempotency-Key"] = key
            try:
                answer = http.post(path, json=body, headers=headers)
            except httpx.TransportError:
                time.sleep(0.02)
            else:
                if answer.status_code in (200, 201, 202):
                    return
                # Before its first start the daemon has no token and no flow.
                if answer.status_code not in (401, 404, 503) or time.monotonic() > end:
                    raise RuntimeError(f"{path}: {answer.status_code} {answer.text}")
                time.sleep(0.02)
            if time.monotonic() > end:
                raise TimeoutError(f"{path}: no answer for {PATIENCE:g} s")

    # -- rounds -----------------------------------------------------------------------------------

    def run(self, rounds: int) -> None:
        self.build()
        clients = [
            threading.Thread(target=self.client, args=(number,)) for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        try:
            for number in range(rounds):
                self.serve("at-once" if number % 2 else "wait")
                # Mostly under load; one in eight in the middle of its start.
                if self.chance.random() < 0.875:
                    self._until_it_answers()
                time.sleep(self.chance.uniform(0.0, 0.9))
                self.kill()
                if rounds > 20 and number % 10 == 9:
                    print(f"{number + 1} rounds, {len(self.started)} instances", flush=True)
        finally:
            self.serve("at-once")
            self.quiet.set()
            for client in clients:
                client.join()
        self.check()

    def check(self) -> None:
        assert self.mistakes == [], self.mistakes
        ends = self._ends()
        assert set(ends) >= self.started, f"lost: {sorted(self.started - set(ends))[:5]}"
        for name in sorted(self.started):
            number = int(name.rpartition("-")[2])
            total = number + 111 + 6
            wanted = {"Err" if number % 5 == 0 else "Ok": total}
            status, result = ends[name]
            assert (status, result) == ("done", wanted), f"{name}: {status} {result}, not {wanted}"
        self._check_requests()

    def _http(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token()}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=30)

    def _ends(self) -> dict[str, tuple[str, Any]]:
        """Waits until nothing lives; gives how each instance ended."""
        end = time.monotonic() + PATIENCE
        with self._http() as http:
            while True:
                try:
                    counts = http.get("/health").json()["instances"]
                    if counts.get("stopped"):
                        self._tell_stopped(http)
                    if not {"waiting", "running"} & set(filter(counts.get, counts)):
                        break
                except httpx.TransportError:
                    counts = {}
                assert time.monotonic() < end, f"still under way: {counts}"
                time.sleep(0.1)
            found: dict[str, tuple[str, Any]] = {}
            for name in sorted(self.started):
                answer = http.get(f"/instances/{name}")
                if answer.status_code == 200:
                    life = answer.json()
                    found[name] = (life["instance"]["status"], life["result"])
        return found

    def _tell_stopped(self, http: httpx.Client) -> None:
        page = http.get("/instances", params={"status": "stopped"}).json()
        stopped = [f"{one['name']}: {one['stopped_by']}" for one in page["instances"]]
        raise AssertionError(f"stopped: {stopped}")

    def _check_requests(self) -> None:
        given_up = self._given_up()
        asked: Counter[tuple[str, int]] = Counter()
        for what, key, attempt in self.payments.requests:
            asked[key, attempt] += 1
            assert asked[key, attempt] == 1, f"{key}: attempt {attempt} was asked twice"
            if attempt > 1:
                assert what != "once", f"{key} is Settled and was asked again"
                assert (key, attempt - 1) in given_up, (
                    f"{key}: attempt {attempt} was made, and {attempt - 1} not given up"
                )

    def _given_up(self) -> set[tuple[str, int]]:
        found: set[tuple[str, int]] = set()
        with self._http() as http:
            for name in self.started:
                after = 0
                while after is not None:
                    page = http.get(f"/instances/{name}/ledger", params={"after": after}).json()
                    found |= {
                        (row["detail"]["key"], row["detail"]["attempt"])
                        for row in page["ledger"]
                        if row["kind"] == "given up"
                    }
                    after = page["next"]
        return found

    def close(self) -> None:
        self.quiet.set()
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.payments.close()
        self._names.close()


def torture(folder: Path, seed: int, rounds: int) -> Torture:
    """So many rounds in a folder; what did not hold is an AssertionError."""
    made = Torture(folder, seed)
    try:
        made.run(rounds)
    finally:
        made.close()
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="kill -9 under load, round after round")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="torture-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {given.seed}, {given.rounds} rounds, in {folder}", flush=True)
    done = torture(folder, given.seed, given.rounds)
    requests, again = done.payments.requests, [one for one in done.payments.requests if one[2] > 1]
    print(
        f"{done.kills} kills, {len(done.started)} instances, {len(requests)} requests, "
        f"{len(again)} of them tried again after a giving up, none stopped: everything held"
    )


if __name__ == "__main__":
    main()
