"""What a command says where it matters most: to whom, what has been done, and what to do next."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from qoqi.runtime.cli import instances, life
from qoqi.runtime.cli.main import app
from tests.cli.test_daemon_commands import Done, Serving, _until, qoqi, refused
from tests.cli.test_life import AT, KEY, VIEW, lines

SAGA = """\
import std.env

step hold(id: String) -> String undo drop(it) { return "held-\\(id)" }
step drop(what: String) -> Result<(), String> {
    if env.get("MENDED") == None { return Err("the shelf is locked") }
    return Ok(())
}
step look(id: String) -> Int tries 1 { flow.retry() }

flow Order(id: String) -> Result<Int, String> {
    channel go: String capacity 2
    channel questions: Int answers Int

    run {
        hold(id)
        if id == "asks" { return Ok(look(id)) }
        let word = go.receive()
        if word == "fail" { return Err(word) }
        return Ok(word.len())
    }
}
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("saga")
    (folder / "flow.toml").write_text('name = "saga"\n')
    (folder / "saga.flow").write_text(SAGA)
    serving = Serving(folder)
    here = Path.cwd()
    os.chdir(folder)
    try:
        assert qoqi("deploy").code == 0
        yield serving
        code, err = serving.stop(signal.SIGTERM)
        assert code == 0, err
    finally:
        os.chdir(here)
        serving.process.kill()
        serving.process.communicate()


@pytest.fixture
def order(served: Serving, request: pytest.FixtureRequest) -> str:
    """A fresh instance that waits for a word."""
    name = f"o-{abs(hash(request.node.name)) % 100_000}"
    assert qoqi("start", "Order", name, json.dumps({"id": name})).code == 0
    assert _until(name, "waiting")
    return name


def stuck(order: str) -> str:
    """It returned an Err, and its undo has failed."""
    assert qoqi("send", order, "go", '"fail"').code == 0
    assert _until(order, "stopped")
    return order


def from_stdin(text: str, *words: str) -> Done:
    environment = {"QOQI_URL": None, "QOQI_TOKEN": None}
    result = CliRunner(env=environment).invoke(app, list(words), input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return Done(result.exit_code, result.stdout, result.stderr)


# -- cancel and end ----------------------------------------------------------------------------


def test_a_cancellation_says_whether_it_ends_already(order: str) -> None:
    at = stuck(order)
    said = qoqi("cancel", at).out
    assert said.startswith(f"{at}: start, stopped; it is ending already: ")
    assert f"`qoqi resume {at}`" in said
    assert f"`qoqi end {at}`" in said
    assert qoqi("end", at).out == f"{at}: start, done\n"
    shown = qoqi("show", at).out
    assert "  was stopped R0015: drop could not undo" in shown
    assert "undos that did not run\n  drop " in shown
    assert "the shelf is locked" not in qoqi("ls", at).out, "it is stopped no more"


def test_a_cancellation_that_was_noted_says_so() -> None:
    told = replace(VIEW.instance, status="waiting", phase="run", cancel="withdrawn")
    assert instances._to_end(told) == "; it is told to end"
    assert instances._to_end(replace(told, cancel=None)) == ""
    assert instances._to_end(replace(told, phase="finish", status="running")) == "; it is ending"
    assert instances._to_end(replace(told, phase="finish", status="failed")) == ""


def test_an_end_of_what_is_not_stopped_names_the_way(order: str) -> None:
    code, line = refused("end", order)
    assert code == 3
    assert line.endswith(f"can be ended; `qoqi cancel {order}` asks it to end")


def test_a_resume_of_an_ending_shows_its_undos_and_no_questions(order: str) -> None:
    at = stuck(order)
    said = qoqi("resume", at).out
    assert "goes on     with its end: the undos that are left run" in said
    assert "would leave (attempt 2)" in said
    assert "hold#1" not in said


# -- births, keys, waits -----------------------------------------------------------------------


def test_a_birth_is_this_instance_of_the_name_and_no_other(order: str) -> None:
    birth = qoqi("show", order, "--json").json()["instance"]["birth"]
    code, line = refused("send", order, "go", '"x"', "--birth", "aaaaaaaa")
    assert (code, line) == (3, f"{order} with birth aaaaaaaa has ended")
    assert refused("cancel", order, "--birth", "aaaaaaaa")[0] == 3
    assert qoqi("show", order, "--json").json()["instance"]["status"] == "waiting"
    assert qoqi("send", order, "go", '"x"', "--birth", birth).code == 0
    assert _until(order, "done")


def test_a_full_channel_says_when_to_send_again(order: str) -> None:
    assert qoqi("pause", order).code == 0
    assert [qoqi("send", order, "go", '"x"').code for _ in range(2)] == [0, 0]
    code, line = refused("send", order, "go", '"x"')
    assert (code, line) == (
        3,
        f"{order}: go is full, 2 wait in it; send again once {order} has taken some",
    )


@pytest.mark.parametrize("wait", ["5", "90s", "soon", "-1s", "0s"])
def test_a_wait_that_is_none_is_a_mistake_in_the_command(order: str, wait: str) -> None:
    code, line = refused("send", order, "questions", "1", f"--wait={wait}")
    assert (code, line) == (2, f"--wait: {wait} is no length of time up to 60s (30s)")
    assert not qoqi("show", order, "--json").json()["messages"]


def test_a_wait_that_is_over_says_what_a_repeat_would_be(order: str) -> None:
    words = ("send", order, "questions", "1", "--wait", "10ms")
    said = "the message was delivered, and has no answer after 10ms; "
    assert refused(*words) == (3, f"{said}without a --key a repeat is another one")
    assert refused(*words, "--key", "k") == (3, f"{said}ask again under the same --key")
    assert len(qoqi("show", order, "--json").json()["messages"]) == 2
    assert qoqi("send", order, "go", '"x"').code == 0
    assert _until(order, "done")
    shown = qoqi("show", order).out  # the flow ended without them: a person sees which
    assert re.search(
        r"messages not received\n  questions: 1, .*\n  questions: 1, .*, key k\n", shown
    )


def test_a_message_larger_than_an_argument_comes_from_standard_input(order: str) -> None:
    done = from_stdin(json.dumps("x" * 200_000), "send", order, "go", "-")
    assert done.code == 0, done.err
    assert _until(order, "done")
    assert qoqi("show", order, "--json").json()["result"] == {"Ok": 200_000}
    begun = from_stdin('{"id": "from-stdin"}', "start", "Order", "-")
    assert begun.out.startswith("started order-")
    assert from_stdin("{", "send", order, "go", "-").code == 2


# -- answers under a key -----------------------------------------------------------------------


def test_a_person_answers_a_step_by_the_key_that_show_has(served: Serving) -> None:
    assert qoqi("start", "Order", "asks", '{"id": "asks"}').code == 0
    assert _until("asks", "stopped")
    code, line = refused("answer", "asks", "7", "--key", "find#1")
    assert (code, line) == (3, "asks has no step under find#1 (it has: hold#1, look#1)")
    assert "was answered already" in refused("answer", "asks", '"x"', "--key", "hold#1")[1]
    misfit = refused("answer", "asks", '"x"', "--key", "look#1")[1]
    assert misfit == 'the value does not fit: expected Int, found "x"'
    said = qoqi("answer", "asks", "7", "--key", "look#1").out
    assert said == "asks: start, stopped; `qoqi resume asks` takes the answer\n"
    assert qoqi("resume", "asks", "--go").code == 0
    assert _until("asks", "done")
    assert qoqi("show", "asks", "--json").json()["result"] == {"Ok": 7}


def test_what_is_ending_asks_for_the_answers_of_its_undos_only(served: Serving) -> None:
    assert qoqi("start", "Order", "ending", '{"id": "asks"}').code == 0
    assert _until("ending", "stopped")
    assert qoqi("cancel", "ending").code == 0
    for _ in range(200):
        at = qoqi("show", "ending", "--json").json()["instance"]
        if (at["phase"], at["status"]) == ("finish", "stopped"):
            break
    code, line = refused("answer", "ending", "7", "--key", "look#1")
    assert (code, line) == (3, "ending is ending: only its undos can be answered")
    assert qoqi("answer", "ending", '{"Ok": null}', "--key", "undo#1").code == 0


def test_an_undo_that_was_done_by_hand_is_answered_and_done(order: str) -> None:
    at = stuck(order)
    assert qoqi("answer", at, '{"Ok": null}', "--key", "undo#1").code == 0
    assert qoqi("resume", at, "--go").code == 0
    assert _until(at, "done")
    assert "undone: drop" in qoqi("history", at).out


# -- whose files these are ---------------------------------------------------------------------


def test_the_store_is_its_owners_as_the_token_is(served: Serving) -> None:
    kept = [path for path in Path(".qoqi").iterdir() if path.name.startswith(("flows.db", "token"))]
    assert len(kept) >= 3
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


# -- who is asked ------------------------------------------------------------------------------


def test_a_token_file_of_another_daemon_is_named(
    served: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = served.line.rsplit(" ", 1)[1].strip()
    (tmp_path / ".qoqi").mkdir()
    (tmp_path / ".qoqi" / "token").write_text("qoqi_of_another\n")
    monkeypatch.chdir(tmp_path)
    code, line = refused("ls", "--url", url)
    assert code == 3
    assert line.startswith(
        "the daemon does not know this token; .qoqi/token is revoked or of another"
    )


# -- the order of what was done ----------------------------------------------------------------


def test_questions_stand_in_the_order_they_were_asked_in_each_with_its_attempts() -> None:
    first, second, *_ = VIEW.attempts
    early = replace(first, key=KEY.replace("charge#1", "zip#1"), step="zip", started=AT - 1)
    undo = replace(second, key=KEY.replace("charge#1", "undo#2"), step="refund", started=AT + 9)
    shown = lines(replace(VIEW, attempts=(replace(second, started=AT + 5), first, undo, early)))
    heads = [text for text in shown if text.startswith(("  zip#", "  charge#", "  undo#"))]
    assert heads == [
        '  zip#1 ["inv-1"]',
        '  charge#1 ["inv-1"]',
        "  charge#1 (attempt 2) []",
        "  undo#2 (attempt 2) refund []",
    ]
    assert life.position(VIEW.instance) == "expense:4411: paying, stopped"
