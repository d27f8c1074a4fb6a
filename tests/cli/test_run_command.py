"""`qoqi run`: a flow from its arguments to its result, by the real daemon on a store in memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from qoqi.runtime.cli.main import app

SOURCE = """\
import std.http
import std.log

enum Kind { A, B(n: Int) }
struct P { x: Int, name: String = "n" }

step fetch(url: String) -> Int {
    log.write("fetching")
    return http.get(url).status
}

extern step ask(n: Int) -> Int

flow Get(url: String) -> Kind {
    run {
        print("asking")
        return B(fetch(url))
    }
}

flow Typed(n: Int, d: Duration, k: Kind, p: P = P { x: 1 },
    s: String = "x", f: Decimal = 1) -> (Int, Duration, Kind, P, String, Decimal) {
    run { return (n, d, k, p, s, f) }
}

flow Ask() -> Int { run { return ask(1) } }

flow Parent() -> Int {
    run {
        let child = Ask.start("child")
        return match child.wait() {
            case Ok(n): n
            case Err(_): 0
        }
    }
}

flow Stop() -> Int { run { return flow.stop("how many?") } }

flow Fails(n: Int) -> () { run { fail("it was \\(n)") } }

flow Waits() -> () {
    channel go: Int
    run { let _ = go.receive() }
}
"""


class Fine(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Fine)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.flow").write_text(SOURCE, "utf-8")
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["run", "r.flow", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, result.stdout, result.stderr


def test_steps_really_run(url: str) -> None:
    code, out, _ = run("Get", url)

    assert (code, out) == (0, "asking\nB(204)\n")


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["n=4", "d=1h30m", "k=A"], '(4, 1h30m, A, P { x: 1, name: "n" }, "x", 1)'),
        (["4", "2d", '{"B": {"n": 2}}', "s=7"], '(4, 2d, B(2), P { x: 1, name: "n" }, "7", 1)'),
        (
            ["-4", "1s", "A", 'p={"x": 5}', "f=2.50"],
            '(-4, 1s, A, P { x: 5, name: "n" }, "x", 2.50)',
        ),
        (["1", "1s", "A", "s=a=b"], '(1, 1s, A, P { x: 1, name: "n" }, "a=b", 1)'),
    ],
)
def test_arguments_are_words_read_by_their_types(words: list[str], result: str) -> None:
    assert run("Typed", *words)[:2] == (0, f"{result}\n")


def test_arguments_and_result_as_json() -> None:
    code, out, _ = run("Typed", "--args", '{"n": 1, "d": "1h", "k": "A"}', "--json")

    assert code == 0
    assert json.loads(out) == [1, "1h", "A", {"x": 1, "name": "n"}, "x", "1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Typed", "x", "1h", "A"], 'n: expected Int, found "x"'),
        (["Typed", "1"], "d: is missing"),
        (["Typed", "n=1", "n=2"], "n is given twice"),
        (["Ask", "1"], "1: r.Ask takes nothing"),
        (["Nope"], "Nope is no flow here: Ask, Fails, Get, Parent, Stop, Typed, Waits"),
        ([], "name the flow to run: Ask, Fails"),
        (["Ask", "--name", "a b"], "'a b' may not be an instance's name"),
        (["Typed", "--args", "[1]"], "one JSON object"),
        (["Typed", "1", "--args", "{}"], "not both"),
    ],
)
def test_a_wrong_command_line(words: list[str], said: str) -> None:
    code, _, err = run(*words)

    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Ask"], "run called ask, an extern step: nobody here answers it"),
        (["Parent"], "child called ask, an extern step: nobody here answers it"),
        (["Stop"], "run asks a person: how many?"),
        (["Fails", "3"], "run stopped: it was 3 (R0001)\n  in run at r.flow:40"),
    ],
)
def test_it_ends_where_it_cannot_go_on(words: list[str], said: str) -> None:
    code, out, err = run(*words)

    assert (code, out) == (1, "")
    assert said in err


def test_errors_are_shown_and_nothing_runs(tmp_path: Path) -> None:
    (tmp_path / "wrong.flow").write_text("flow F() -> Int { run { return 1.5 } }\n", "utf-8")

    result = CliRunner().invoke(app, ["run", "wrong.flow"])

    assert result.exit_code == 1
    assert "error[E0301]" in result.output


def test_it_says_what_it_waits_for_and_an_interrupt_ends_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "qoqi.runtime.cli.main", "run", "r.flow", "Waits"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "run waits for: receive go\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)

    assert (process.returncode, out) == (1, "")
    assert err == "error: run was left; it waits for: receive go\n"
