"""The outside world of the examples: a bank with a warehouse and a carrier, in one small server.

Every POST answers as a provider with idempotency keys does: the first request under a key is
carried out, a later one gets the same answer again. Requests are counted per key, carried out or
not, so that `GET /counts` shows what a crash made a flow ask twice.

    POST /charges /records /reserve /ship /release /refund     with an Idempotency-Key
    POST /rules     {"match": "retryInvoice#1:charge", "delay": 3.0, "status": 503, "times": 1}
    GET  /counts    {"done": {key: how often carried out}, "asked": {key: how often asked}}
    GET  /done      what was carried out, in order: [[path, key], ...]

A rule holds for requests whose path or key contains `match`: they are answered late by `delay`
seconds, and with `status` instead of being carried out. `times` bounds how often; without it,
always. `{"forget": true}` drops all rules. Run it as `python bank.py [PORT]`.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Where one asks, and what one is given: a field, and the word before the number in it.
ANSWERS = {
    "/charges": ("id", "receipt"),
    "/records": ("id", "record"),
    "/reserve": ("id", "reservation"),
    "/ship": ("tracking", "parcel"),
    "/release": ("id", "release"),
    "/refund": ("id", "refund"),
}


@dataclass(slots=True)
class Rule:
    match: str
    delay: float = 0.0
    status: int | None = None
    times: int | None = None

    def holds(self, path: str, key: str) -> bool:
        return self.times != 0 and (self.match in path or self.match in key)


@dataclass(slots=True)
class Bank:
    """What the bank remembers. Every method may be called from any thread."""

    rules: list[Rule] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)
    done: list[tuple[str, str]] = field(default_factory=list)
    answers: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, path: str, key: str) -> tuple[float, int, dict[str, str]]:
        """How long to wait before answering, and the answer."""
        with self.lock:
            self.asked[key] += 1
            rule = next((rule for rule in self.rules if rule.holds(path, key)), Rule(""))
            if rule.times is not None:
                rule.times -= 1
            if rule.status is not None:
                return rule.delay, rule.status, {"error": f"told to answer {rule.status}"}
            if (path, key) not in self.answers:
                self.done.append((path, key))
                name, thing = ANSWERS[path]
                self.answers[path, key] = {name: f"{thing}-{len(self.done)}"}
            return rule.delay, 201, self.answers[path, key]

    def tell(self, rule: Rule | None) -> None:
        """One more rule; None drops them all."""
        with self.lock:
            if rule is None:
                self.rules.clear()
            else:
                self.rules.append(rule)

    def counts(self) -> dict[str, dict[str, int]]:
        with self.lock:
            return {"done": Counter(key for _, key in self.done), "asked": self.asked.copy()}


class Handler(BaseHTTPRequestHandler):
    """One request. `bank` is the server's."""

    protocol_version = "HTTP/1.1"
    bank: Bank

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == "/rules":
            told = json.loads(body)
            self.bank.tell(None if told.get("forget") else Rule(**told))
            self.answer(200, {})
        elif self.path in ANSWERS:
            delay, status, answer = self.bank.ask(
                self.path, self.headers.get("Idempotency-Key", "")
            )
            time.sleep(delay)
            self.answer(status, answer)
        else:
            self.answer(404, {"error": f"nothing at {self.path}"})

    def do_GET(self) -> None:
        if self.path == "/counts":
            self.answer(200, self.bank.counts())
        elif self.path == "/done":
            with self.bank.lock:
                done = list(self.bank.done)
            self.answer(200, done)
        else:
            self.answer(404, {"error": f"nothing at {self.path}"})

    def answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except (BrokenPipeError, ConnectionResetError):
            # Whoever asked is gone, killed in the middle: what was carried out stays carried out.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Silent: `/done` and `/counts` tell what happened."""


def server(port: int) -> ThreadingHTTPServer:
    """A bank of its own at that port; 0 takes a free one."""
    handler = type("BankHandler", (Handler,), {"bank": Bank()})
    found = ThreadingHTTPServer(("127.0.0.1", port), handler)
    found.daemon_threads = True
    return found


if __name__ == "__main__":
    running = server(int(sys.argv[1]) if len(sys.argv) > 1 else 7200)
    print(f"bank at http://127.0.0.1:{running.server_address[1]}", flush=True)
    try:
        running.serve_forever()
    except KeyboardInterrupt:
        running.server_close()
