"""The commands about versions, on a daemon that runs: what a person reads before deciding."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.test_daemon_commands import Done, Serving, qoqi

ORDER = """\
import std.log

step reserve(item: String) -> String {
    log.write("reserve")
    return "shelf 4"
}

step charge(cents: Int) -> String {
    log.write("charge")
    return "r\\(cents)"
}

flow Order(item: String, cents: Int) -> String {
    channel packed: Int

    run {
        stage ordering
        let place = reserve(item)
        let boxes = packed.receive()
        let receipt = charge(cents / boxes)
        let agreed: Bool = flow.stop("is \\(receipt) right?")
        return "\\(receipt) \\(place) \\(agreed)"
    }
}
"""
FIXED = ORDER.replace("cents / boxes", "cents / (boxes + 1)")
OTHER = FIXED.replace("reserve(item)", 'reserve("\\(item)s")')


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "flow.toml").write_text('name = "shop"\n')
    (folder / "order.flow").write_text(ORDER)
    serving = Serving(folder)
    here = Path.cwd()
    os.chdir(folder)
    try:
        said = qoqi("deploy")
        assert said.code == 0, said.err
        assert said.out.splitlines()[-1].startswith("deployed order.Order ")
        yield folder
    finally:
        os.chdir(here)
        serving.stop()


def until(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline, "it did not come about in 10 s"
        time.sleep(0.02)


def status(name: str) -> str:
    shown = qoqi("show", name, "--json").json()["instance"]
    return str(shown["status"])


def newest() -> str:
    return str(qoqi("versions", "--json").json()[-1]["hash"])[:12]


def stop(name: str) -> None:
    qoqi("start", "Order", name, '{"item": "pen", "cents": 12}')
    qoqi("send", name, "packed", "0")
    until(lambda: status(name) == "stopped")


def without_marks(done: Done) -> list[str]:
    assert done.code == 0, done.err
    return [line.strip() for line in done.out.splitlines()]


def test_from_a_mistake_to_an_answer(at: Path) -> None:
    """Stop, look, mend, rehearse, deploy, look again, go on, answer."""
    first = newest()
    stop("o-1")
    qoqi("start", "Order", "o-2", '{"item": "ink", "cents": 7}')
    until(lambda: status("o-2") == "waiting")
    again = without_marks(qoqi("resume", "o-1"))
    assert again[0] == "o-1: ordering, stopped"
    assert "then it would stop: R0003: division by zero" in again
    assert f"at order.flow:{line_of(ORDER, 'cents / boxes')}" in again

    (at / "order.flow").write_text(OTHER)
    bad = qoqi("deploy", "--rehearse")
    assert bad.code == 1
    lines = [line.strip() for line in bad.out.splitlines()]
    assert lines[0].endswith("2 instances, all tried from their last stage")
    place = f"order.flow:{line_of(OTHER, 'let place')}"
    assert lines[1] == f"1 stopped at ordering would stop with F0102 at {place}: o-1"
    assert lines[3] == f"1 waiting at ordering would stop with F0102 at {place}: o-2"

    (at / "order.flow").write_text(FIXED)
    good = qoqi("deploy", "--rehearse", "--json").json()
    assert [(one["outcome"], one["status"], one["instances"]) for one in good[0]["outcomes"]] == [
        ("leaves", "stopped", 1),
        ("waits", "waiting", 1),
    ]
    dry = without_marks(qoqi("deploy", "--dry-run"))
    assert dry[2:] == [
        f"order.Order: 1 instance of {first} to move at the next stage: 1 at ordering",
        f"order.Order: 1 instance of {first} stopped, to move on a resume: 1 at ordering",
    ]
    assert newest() == first
    assert qoqi("deploy").code == 0
    second = newest()

    before = qoqi("show", "o-1", "--json").json()
    plan = without_marks(qoqi("resume", "o-1"))
    assert plan[2:4] == [
        f"from        stage ordering, version {first}",
        f"in          version {second}",
    ]
    assert plan[4] == '= reserve#1 ["pen"] -> "shelf 4"'
    asked = f"order.flow:{line_of(ORDER, 'let place')} in"
    assert plan[5] == f"{asked} {first}, now {asked} {second}"
    assert plan[8] == "+ charge#1 [12]"
    assert plan[10:] == [
        "then charge(12) would leave",
        "nothing was changed; `qoqi resume o-1 --go` does it",
    ]
    assert qoqi("show", "o-1", "--json").json() == before

    assert qoqi("resume", "o-1", "--go").code == 0
    until(lambda: status("o-1") == "stopped")
    assert qoqi("show", "o-1", "--json").json()["instance"]["stopped_by"] == "is r12 right?"
    assert "an answer of type Bool" in qoqi("resume", "o-1", "--go").err
    assert "expected Bool" in qoqi("answer", "o-1", '"yes"').err
    assert qoqi("answer", "o-1", "true").code == 0
    until(lambda: status("o-1") == "done")
    assert qoqi("show", "o-1", "--json").json()["result"] == "r12 shelf 4 true"


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate(source.splitlines(), 1) if text in line)


def test_pins_and_versions(at: Path) -> None:
    listed = qoqi("versions", "--json").json()
    oldest = listed[0]["hash"][:12]
    pinned = qoqi("pin", "Order", oldest)
    assert pinned.out == f"order.Order {oldest} is pinned: its instances stay in it\n"
    rows = [line.split() for line in qoqi("versions").out.splitlines()]
    assert rows[1][:2] == ["order.Order", oldest]
    assert "pinned, oldest living" in qoqi("versions").out
    assert "newest" in qoqi("versions").out.splitlines()[-1]

    (at / "order.flow").write_text(FIXED.replace("boxes + 1", "boxes + 2"))
    dry = qoqi("deploy", "--dry-run").out
    assert f"1 instance of {oldest} to stay, the version is pinned: 1 at ordering" in dry
    assert qoqi("unpin", "Order").out.startswith(f"order.Order {oldest} is not pinned")
    assert qoqi("unpin", "Order").code == 3
    hint = "no version starts with zz; see `qoqi versions order.Order`\n"
    assert qoqi("pin", "Order", "zz").err.endswith(hint)


def test_what_was_deployed_before_is_not_deployed_again(at: Path) -> None:
    """A to B to A: instances go forward only, and the message says what to do."""
    before = newest()
    (at / "order.flow").write_text(FIXED.replace("boxes + 1", "boxes + 3"))
    assert qoqi("deploy").code == 0
    (at / "order.flow").write_text(FIXED)
    refused = qoqi("deploy")
    assert refused.code == 3
    assert refused.err.startswith(f"error: nothing was deployed: version {before} of order.Order")
    assert newest() != before
    (at / "order.flow").write_text(FIXED.replace("run {", 'run {\n        print("as before")'))
    assert qoqi("deploy").code == 0


def test_versions_nobody_needs_are_swept(at: Path) -> None:
    """Of four: the oldest has an instance until it is cancelled; the newest always stays."""
    versions = len(qoqi("versions", "--json").json())
    assert versions == 4
    assert "deleted: nobody needed it" not in qoqi("sweep").out
    qoqi("cancel", "o-2")
    until(lambda: status("o-2") == "failed")
    # Ended instances are shown as long as they are kept, so their versions stay too.
    assert "deleted: nobody needed it" not in qoqi("sweep").out
    assert len(qoqi("versions", "--json").json()) == versions
