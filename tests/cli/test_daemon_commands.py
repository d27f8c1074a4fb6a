"""The commands against a daemon that runs: what each prints, and each refusal in one line."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from qoqi.runtime.cli.main import app

APPROVAL = """\
import std.log

struct Claim { manager: String, cents: Int, memo: String = "" }
enum Decision { Approved(by: String), Rejected(by: String, why: String) }
enum Outcome { Paid(by: String), Refused(why: String), Expired }

flow Approval(claim: Claim) -> Outcome {
    channel decisions: Decision capacity 2

    run {
        ask(claim)
        let deadline = flow.now() + 2d
        while true {
            stage asking(deadline)
            wait match {
                case let d = decisions.receive():
                    match d {
                        case Approved(by) if by == claim.manager: return Paid(by)
                        case Rejected(by, why) if by == claim.manager: return Refused(why)
                        case Approved(by) | Rejected(by, _): print("ignored \\(by)")
                    }
                case at deadline: return Expired
            }
        }
    }
}

step ask(claim: Claim) {
    log.write("ask \\(claim.manager)")
}

flow Failing() {
    run {
        fail("no money")
    }
}
"""

JOB = """\
flow Job() -> Int {
    run {
        return 1
    }
}
"""

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("QOQI_")},
    "NO_COLOR": "1",
}


@dataclass
class Done:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


def qoqi(*words: str) -> Done:
    """A command in this process, run where the test stands."""
    result = CliRunner(env={"QOQI_URL": None, "QOQI_TOKEN": None}).invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def refused(*words: str) -> tuple[int, str]:
    """The exit code and the one line of a command that is refused."""
    done = qoqi(*words)
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1, done.err
    return done.code, done.err.removeprefix("error: ").rstrip("\n")


class Serving:
    """`qoqi serve` as a process of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "qoqi.runtime.cli.main",
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--name",
                "shop",
                *words,
            ],
            cwd=folder,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        self.process.send_signal(sent)
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, err


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    (folder / "flow.toml").write_text('name = "expenses"\n')
    (folder / "approval.flow").write_text(APPROVAL)
    return folder


@pytest.fixture(scope="module")
def served(package: Path) -> Iterator[Serving]:
    """A daemon on the package's folder, with the package deployed."""
    serving = Serving(package)
    here = Path.cwd()
    os.chdir(package)
    try:
        assert qoqi("deploy").code == 0
        start("kept")
        assert _until("kept", "waiting")
        yield serving
        code, err = serving.stop()
        assert code == 0, err
    finally:
        os.chdir(here)
        serving.process.kill()
        serving.process.communicate()


@pytest.fixture
def at(served: Serving, package: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(package)
    return package


def start(name: str, manager: str = "ana") -> None:
    claim = {"claim": {"manager": manager, "cents": 1200}}
    assert qoqi("start", "Approval", name, json.dumps(claim)).code == 0


# -- from the sources to an end ----------------------------------------------------------------


def test_what_the_first_page_shows(at: Path, served: Serving) -> None:
    """check, build, serve, deploy, start, ls, send twice, pkg show: the texts people read first."""
    assert re.fullmatch(r"flow daemon shop/[0-9a-f]{4} at http://127\.0\.0\.1:\d+\n", served.line)
    assert qoqi("check").out == "2 flows, no problems\n"
    built = qoqi("build")
    assert built.out.splitlines()[-1] == "2 flows in .qoqi/build, flow.lock"
    assert (at / "flow.lock").is_file()
    assert "approval.Approval" in qoqi("deploy").out
    claim = '{"claim": {"manager": "ana", "cents": 1200}}'
    assert qoqi("start", "Approval", "expense:4411", claim).out.startswith("started expense:4411:")
    assert _until("expense:4411", "waiting")
    listed = qoqi("ls", "expense").out.splitlines()
    assert listed[0].split()[:4] == ["NAME", "FLOW", "STAGE", "STATUS"]
    assert listed[1].split()[:4] == ["expense:4411", "approval.Approval", "asking", "waiting"]
    words = ("expense:4411", "decisions", '{"Approved": {"by": "bob"}}', "--key", "click-77")
    assert qoqi("send", *words).out == "expense:4411: asking, waiting\n"
    assert qoqi("send", *words).out == "duplicate: expense:4411: asking, waiting\n"
    shown = qoqi("pkg", "show", "expense:4411").out
    for part in (
        "expense:4411: asking, waiting",
        "flow      approval.Approval, version ",
        "phase     run, waiting since ",
        'claim = {"manager":"ana","cents":1200,"memo":""}',
        "a message on decisions",
        "reached stage asking",
        "a message came to decisions with key click-77",
        "said: ignored bob",
    ):
        assert part in shown
    assert qoqi("send", "expense:4411", "decisions", '{"Approved": {"by": "ana"}}').code == 0
    assert _until("expense:4411", "done")
    assert 'result    {"Paid":{"by":"ana"}}' in qoqi("show", "expense:4411").out
    assert (
        qoqi("history", "expense:4411").out.splitlines()[-1].endswith('done: {"Paid":{"by":"ana"}}')
    )


def _until(name: str, status: str) -> bool:
    """Looks until the daemon has come to it; a look takes a few milliseconds."""
    for _ in range(200):
        life = qoqi("show", name, "--json").json()
        if isinstance(life, dict) and life["instance"]["status"] == status:
            return True
    return False


def test_a_start_again_is_the_same_instance(at: Path) -> None:
    start("again")
    claim = '{"claim": {"manager": "ana", "cents": 1200}}'
    assert qoqi("start", "Approval", "again", claim).out.startswith("already there: again:")
    drawn = qoqi("start", "Approval", claim, "--json").json()
    assert isinstance(drawn, dict) and drawn["instance"]["name"].startswith("approval-")


def test_cancel_pause_resume_end(at: Path) -> None:
    start("acts")
    assert qoqi("pause", "acts").out.rstrip().endswith("paused")
    assert not qoqi("resume", "acts", "--go").out.rstrip().endswith("paused")
    assert qoqi("cancel", "acts", "--reason", "changed her mind").code == 0
    assert _until("acts", "failed")
    past = qoqi("history", "acts").out
    assert "a cancellation was asked for: changed her mind (by admin)" in past
    assert qoqi("start", "Failing", "stuck").code == 0
    assert _until("stuck", "stopped")
    shown = qoqi("pkg", "show", "stuck").out
    assert "stopped   R0001: no money" in shown
    assert re.search(r"at run \(approval\.flow:\d+\)", shown)
    assert qoqi("ls", "--status", "stopped").out.count("stuck") == 1
    assert qoqi("end", "stuck", "--reason", "given up").out == "stuck: start, failed\n"


def test_a_flow_and_the_package_are_shown(at: Path) -> None:
    shown = qoqi("pkg", "show", "Approval").out
    assert "flow approval.Approval(claim: Claim) -> Outcome" in shown
    assert "decisions: Decision, capacity 2" in shown
    assert "asking(deadline: Time)" in shown
    package = qoqi("pkg", "show").out
    assert package.startswith("package expenses, 2 flows\n")
    assert "approval.Approval, as deployed" in package


def test_every_listing_is_json_too(at: Path) -> None:
    start("listed")
    for words in (
        ("ls",), ("show", "listed"), ("history", "listed"), ("versions",), ("daemons",),
        ("token", "ls"), ("pkg", "show"), ("pkg", "show", "Approval"), ("pkg", "show", "listed"),
        ("sweep",), ("deploy", "--dry-run"),
    ):  # fmt: skip
        assert isinstance(qoqi(*words, "--json").json(), dict | list)
    (daemon,) = qoqi("daemons", "--json").json()
    assert daemon["alive"] is True


def test_values_are_shown_and_never_obeyed(at: Path) -> None:
    start("evil", manager="\x1b[2J\x07‮")
    for words in (("show", "evil"), ("history", "evil"), ("ls", "evil")):
        assert not set(qoqi(*words).out) & {"\x1b", "\x07", "‮"}


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show", "nobody"), 3, "no instance is named nobody"),
        (("send", "nobody", "decisions", "1"), 3, "no instance is named nobody"),
        (("pkg", "show", "nobody"), 3, "nobody is neither an instance nor a deployed flow"),
        (("start", "Refund", "r-1"), 3, "no flow Refund is deployed (deployed: approval.Approval"),
        (("start", "Approval", "r-1", "{"), 2, "the arguments: no JSON: "),
        (("start", "Approval", "r-1", "[1]"), 2, "the arguments: expected an object by parameter"),
        (("start", "Approval", "a", "b", "c"), 2, "start takes a flow, a name and one JSON object"),
        (("start", "Approval", "r 1", "{}"), 3, "an instance cannot be named 'r 1'"),
        (
            ("start", "Approval", "r-1", '{"claim": {"manager": "ana"}}'),
            3,
            "claim.cents: missing, expected Int",
        ),
        (
            ("start", "Approval", "kept", '{"claim": {"manager": "eve", "cents": 1}}'),
            3,
            "kept exists already, started with other arguments",
        ),
        (("send", "kept", "letters", "1"), 3, "kept: approval.Approval has no channel letters"),
        (
            ("send", "kept", "decisions", '{"Approved": {"by": 3}}'),
            3,
            "Approved.by: expected String, found 3",
        ),
        (
            ("send", "kept", "decisions", '{"Approved": '),
            2,
            "the message: no JSON: expecting value (line 1, column 14)",
        ),
        (("send", "kept", "decisions", "1", "--key", ""), 2, "--key: expected 1 to 256"),
        (("cancel", "kept", "--reason", ""), 3, "the reason has 1 to 4,096 characters"),
        (("resume", "kept"), 3, "kept is not stopped; only a stopped instance"),
        (("answer", "kept", "1"), 3, "kept is not stopped, so it asks nothing"),
        (("pin", "Refund"), 3, "no flow Refund is deployed"),
        (("unpin", "Approval"), 3, "of Approval, no version is pinned"),
        (("resume", "kept", "--go"), 3, "kept is not stopped; only a stopped instance"),
        (("end", "kept"), 3, "kept is not stopped; only a stopped instance can be ended"),
        (("ls", "--status", "asleep"), 3, "status: 'asleep' is none of waiting, running"),
        (("ls", "--since", "someday"), 2, "--since: someday is no day or time"),
        (("ls", "--token", "qoqi_wrong"), 3, "the daemon does not know this token"),
        (("ls", "--token", "ä"), 2, "the token has characters no token has"),
        (("ls", "--url", "http://127.0.0.1:1"), 3, "no daemon at http://127.0.0.1:1 ("),
        (("ls", "--url", "ftp://x"), 3, "ftp://x is no address of a daemon"),
        (("token", "new", "x", "--role", "king"), 2, "--role: king is none of read, send"),
        (("token", "revoke", "nobody"), 3, "no token is named nobody"),
        (("check", "--format", "xml"), 2, "--format: xml is none of human, json, github, sarif"),
        (("check", "nowhere"), 2, "nowhere does not exist"),
        (("check", "flow.toml"), 2, "flow.toml is no source of flow"),
        (("explain", "F9999"), 2, "there is no diagnostic F9999"),
        (("serve", "--listen", "here"), 2, "--listen: here is no ADDRESS:PORT"),
        (("serve", "--drain", "5x"), 2, "--drain: 5x is no length of time"),
        (("serve", "--renew", "20s"), 2, "--renew: at most half of --lease"),
        (("serve", "--recover", "never"), 2, "--recover: never is neither wait nor at-once"),
        (("serve", "--store", "postgres://db/flows"), 2, "--store: postgres: "),
        (("serve", "--listen", "127.0.0.1:0"), 3, "is held by shop (process "),
    ],
)
def test_a_refusal_is_one_line_and_changes_nothing(
    at: Path, words: tuple[str, ...], code: int, said: str
) -> None:
    before = qoqi("show", "kept", "--json").json()
    found, line = refused(*words)
    assert found == code
    assert said in line
    assert qoqi("show", "kept", "--json").json() == before
    if words[0] == "start":
        assert qoqi("ls", "r-1", "--json").json() == []


def test_a_port_in_use(at: Path, served: Serving, tmp_path: Path) -> None:
    port = served.line.rstrip().rpartition(":")[2]
    code, line = refused(
        "serve", "--listen", f"127.0.0.1:{port}", "--store", f"sqlite:{tmp_path}/other.db"
    )
    assert code == 3
    assert line.startswith(f"cannot listen on 127.0.0.1:{port}: Address already in use; ")


def test_files_that_are_no_store(at: Path, tmp_path: Path) -> None:
    noise, foreign = tmp_path / "noise.db", tmp_path / "foreign.db"
    noise.write_bytes(bytes(range(256)) * 20)
    with sqlite3.connect(foreign) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    for file, said in ((noise, "is no database"), (foreign, "is a database of another program")):
        before = file.read_bytes()
        code, line = refused("serve", "--listen", "127.0.0.1:0", "--store", f"sqlite:{file}")
        assert (code, said in line) == (3, True)
        assert file.read_bytes() == before


def test_something_else_on_the_port(at: Path, tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert other.stdout is not None
        port = re.findall(r"port (\d+)", other.stdout.readline())[0]
        code, line = refused("ls", "--url", f"http://127.0.0.1:{port}")
        assert code == 3
        assert "is no flow daemon of this version" in line
    finally:
        other.kill()
        other.communicate()


def test_tokens_have_roles_and_can_be_revoked(at: Path) -> None:
    start("hooked")
    token = qoqi("token", "new", "hook", "--role", "send").out.strip()
    assert token.startswith("qoqi_")
    assert "hook   send" in qoqi("token", "ls").out
    code, line = refused("ls", "--token", token)
    assert (code, line) == (3, "the token hook has the role send, which may not do this")
    words = ("send", "hooked", "decisions", '{"Approved": {"by": "eve"}}', "--token", token)
    assert qoqi(*words).code == 0
    assert refused("token", "new", "hook")[1] == "a token named hook exists"
    assert qoqi("token", "revoke", "hook").out == "hook is revoked\n"
    assert refused(*words)[1] == "the daemon does not know this token"


def test_the_token_is_for_its_owner_only(at: Path) -> None:
    assert stat.S_IMODE((at / ".qoqi/token").stat().st_mode) == 0o600


# -- versions -----------------------------------------------------------------------------------


def test_a_deploy_goes_on_from_the_lock_and_refuses_what_is_behind(
    at: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two checkouts: one deploys a change, and the other, built before it, is refused whole."""
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "flow.toml").write_text('name = "jobs"\n')
        (folder / "job.flow").write_text(JOB)
    url, token = (at / ".qoqi/url").read_text().strip(), (at / ".qoqi/token").read_text().strip()
    to = ("--url", url, "--token", token)
    monkeypatch.chdir(tmp_path / "one")
    assert qoqi("deploy", "--dry-run", *to).out.splitlines()[1].split()[-1] == "new"
    assert not (tmp_path / "one/flow.lock").exists()
    assert qoqi("deploy", *to).out.splitlines()[1].split() == [
        "job.Job", qoqi("versions", "job.Job", "--json", *to).json()[0]["hash"][:12], "new"
    ]  # fmt: skip
    assert "deployed = true" in (tmp_path / "one/flow.lock").read_text()
    assert "known, nothing to do" in qoqi("deploy", "--dry-run", *to).out
    (tmp_path / "two/flow.lock").write_text((tmp_path / "one/flow.lock").read_text())
    for name, number in (("one", 2), ("two", 3)):
        file = tmp_path / name / "job.flow"
        file.write_text(file.read_text().replace("return 1", f"return {number}"))
    assert "new" in qoqi("deploy", *to).out
    assert len(qoqi("versions", "job.Job", "--json", *to).json()) == 2
    monkeypatch.chdir(tmp_path / "two")
    behind = qoqi("deploy", *to)
    assert behind.code == 3
    assert behind.err.startswith("error: nothing was deployed: of job.Job the daemon runs ")
    assert len(qoqi("versions", "job.Job", "--json", *to).json()) == 2


# -- the process --------------------------------------------------------------------------------


def test_what_waits_outlives_a_stop_and_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "approval.flow").write_text(APPROVAL)
    monkeypatch.chdir(tmp_path)
    assert qoqi("build").code == 0
    first = Serving(tmp_path, ".")
    try:
        start("kept")
        assert _until("kept", "waiting")
        code, err = first.stop()
        assert (code, err) == (0, "")
        assert refused("ls")[0] == 3
        second = Serving(tmp_path, "--recover", "at-once")
        assert qoqi("send", "kept", "decisions", '{"Approved": {"by": "bob"}}').code == 0
        second.process.kill()
        second.process.communicate()
        third = Serving(tmp_path, "--recover", "at-once")
        assert qoqi("send", "kept", "decisions", '{"Approved": {"by": "ana"}}').code == 0
        assert _until("kept", "done")
        past = qoqi("history", "kept").out
        assert past.count("said: ignored bob") == 1
        assert third.stop(signal.SIGINT)[0] == 0
    finally:
        for serving in (first,):
            serving.process.kill()


def test_serve_takes_no_newer_version_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "job.flow"
    source.write_text(JOB)
    assert qoqi("build").code == 0
    first = Serving(tmp_path, ".")
    assert first.line.startswith("flow daemon shop/")
    (deployed,) = qoqi("versions", "--json").json()
    assert first.stop()[0] == 0
    source.write_text(source.read_text().replace("return 1", "return 2"))
    stale = subprocess.run(
        [sys.executable, "-m", "qoqi.runtime.cli.main", "serve", ".", "--listen", "127.0.0.1:0"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=20,
    )  # fmt: skip
    assert stale.returncode == 1, "flow.lock is out of date"
    assert qoqi("build").code == 0
    second = Serving(tmp_path, ".")
    assert qoqi("versions", "--json").json() == [deployed]
    code, err = second.stop()
    assert code == 0
    assert f"is not deployed; {deployed['hash'][:12]} runs" in err


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("qoqi.runtime.cli.main", ["httpx", "rich", "uvicorn", "sqlite3", "qoqi.vm"]),
        ("qoqi.runtime.cli.serve", ["qoqi.compiler"]),
        ("qoqi.runtime.cli.instances", ["uvicorn", "sqlite3"]),
        ("qoqi.runtime.cli.check", ["httpx", "uvicorn", "sqlite3"]),
    ],
)
def test_commands_load_only_what_they_need(module: str, absent: list[str]) -> None:
    """So `qoqi --help`, a check and a start of the daemon are quick (lazy imports)."""
    program = f"import sys, {module}\nprint(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {name for name in loaded if any(f"{name}.".startswith(f"{a}.") for a in absent)} == set()
