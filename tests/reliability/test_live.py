"""Requests that wait, streams, views, and what a list says of who is stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from qoqi.runtime.api import live
from tests.reliability.lab import SECOND
from tests.reliability.site import Site

DESK = """
struct Tally { asked: Int, answered: Int }
step look(n: Int) -> Int { return n * n }
flow Desk(divisor: Int = 1) -> Int {
    channel questions: Int answers Int
    channel notes: String
    var asked = 0
    var answered = 0
    view tally -> Tally { return Tally { asked, answered } }
    view share -> Int { return answered / asked }
    run {
        while asked < 3 {
            wait match {
                case let q = questions.receive():
                    asked += 1
                    if q.value < 0 { return asked }
                    flow.sleep(10s)
                    q.answer(look(q.value) / divisor)
                    answered += 1
                case let note = notes.receive(): print(note)
            }
        }
        return answered
    }
}
"""


@pytest.fixture
async def desk(site: Site) -> Site:
    await site.deploy(DESK)
    await site.start("Desk", "d", divisor=1)
    return site


async def asking(desk: Site, value: int, key: str, wait: str) -> asyncio.Task[tuple[int, Any]]:
    async def ask() -> tuple[int, Any]:
        answer = await desk.send("d", "questions", value, key, wait=wait)
        return answer.status_code, answer.json()

    task = asyncio.create_task(ask())
    await desk.bench.settle()
    return task


async def test_a_send_waits_for_its_answer_and_a_repeat_gets_the_same(desk: Site) -> None:
    task = await asking(desk, 7, "q-1", "30s")
    assert not task.done()
    await desk.bench.advance(10 * SECOND)
    status, body = await task
    assert (status, body["outcome"], body["answered"], body["answer"]) == (
        200,
        "delivered",
        True,
        49,
    )
    again = await desk.send("d", "questions", 7, "q-1")
    assert again.status_code == 200
    assert (again.json()["outcome"], again.json()["answer"]) == ("already", 49)


async def test_two_who_repeat_one_question_are_both_answered(desk: Site) -> None:
    first = await asking(desk, 3, "q", "30s")
    second = await asking(desk, 3, "q", "30s")
    await desk.bench.advance(10 * SECOND)
    answers = [await first, await second]
    assert [body["answer"] for _, body in answers] == [9, 9]
    assert sorted(body["outcome"] for _, body in answers) == ["already", "delivered"]


async def test_a_wait_that_is_over_says_that_there_is_no_answer(desk: Site) -> None:
    task = await asking(desk, 7, "q-1", "5s")
    await desk.bench.advance(5 * SECOND)
    status, body = await task
    assert (status, body["outcome"], body["answered"], body["answer"]) == (
        202,
        "delivered",
        False,
        None,
    )


async def test_an_end_answers_ended_to_who_waits(desk: Site) -> None:
    task = await asking(desk, -1, "q-1", "30s")
    status, body = await task
    assert (status, body["code"]) == (410, "ended")


@pytest.mark.parametrize("wait", ["0s", "61s", "soon", "-1s", ""])
async def test_a_wait_has_a_length(desk: Site, wait: str) -> None:
    answer = await desk.send("d", "questions", 7, wait=wait)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
    assert (await desk.http.get("/instances/d/views/tally")).json()["value"]["asked"] == 0


async def test_what_is_not_answered_is_not_waited_for(desk: Site) -> None:
    answer = await desk.send("d", "notes", "hello", wait="5s")
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")


# -- views ----------------------------------------------------------------------------------------


async def test_a_view_is_of_what_was_written_last_and_wakes_nobody(desk: Site) -> None:
    answer = await desk.http.get("/instances/d/views/tally")
    assert answer.json() == {"view": "tally", "value": {"asked": 0, "answered": 0}}
    await desk.send("d", "questions", 2)
    await desk.bench.advance(10 * SECOND)
    before = await desk.bench.row("d")
    assert (await desk.http.get("/instances/d/views/tally")).json()["value"] == {
        "asked": 1,
        "answered": 1,
    }
    assert await desk.bench.row("d") == before
    await desk.send("d", "questions", -1)
    await desk.bench.settle()
    assert (await desk.bench.row("d")).status == "done"
    assert (await desk.http.get("/instances/d/views/tally")).json()["value"]["asked"] == 2


async def test_views_that_are_none_or_fail(desk: Site) -> None:
    missing = await desk.http.get("/instances/d/views/total")
    assert (missing.status_code, missing.json()["code"]) == (404, "no_view")
    assert (
        "share, tally" in missing.json()["message"] or "tally, share" in missing.json()["message"]
    )
    failing = await desk.http.get("/instances/d/views/share")
    assert (failing.status_code, failing.json()["code"]) == (422, "view_failed")
    assert "division by zero" in failing.json()["message"]


# -- events ---------------------------------------------------------------------------------------


async def test_events_come_as_they_happen_and_are_taken_up_again(desk: Site) -> None:
    async with desk.stream() as stream:
        await desk.bench.settle()
        assert (stream.status, stream.events()) == (200, [])  # from now on
        await desk.send("d", "notes", "two\nlines\n\nand: more")
        await desk.bench.advance(SECOND)
        first = stream.events()
        assert [kind for _, kind in first] == ["message", "print"]
        assert "two\\nlines\\n\\nand: more" in stream.text
    await desk.send("d", "notes", "meanwhile")
    await desk.bench.settle()
    async with desk.stream(seen=str(first[0][0])) as stream:
        await desk.bench.advance(SECOND)
        assert [kind for _, kind in stream.events()] == ["print", "message", "print"]
    assert desk.api.streams == 0


async def test_a_stream_may_be_of_one_instance(desk: Site) -> None:
    await desk.start("Desk", "other")
    async with desk.stream("instance=other&after=0") as stream:
        await desk.send("d", "notes", "not for you")
        await desk.bench.advance(SECOND)
        assert [kind for _, kind in stream.events()] == ["started"]
    async with desk.stream("instance=nobody") as stream:
        await desk.bench.settle()
        assert stream.status == 404
        assert stream.over


async def test_a_silent_stream_shows_that_it_lives_and_ends_with_the_daemon(desk: Site) -> None:
    async with desk.stream() as stream:
        await desk.bench.settle()
        said = len(stream.text)
        await desk.bench.advance(live.BEAT + SECOND)
        assert stream.text[said:] == ":\n\n"
        desk.daemon.draining = True
        await desk.bench.advance(2 * SECOND)
        assert stream.over


async def test_streams_are_counted_and_bounded(desk: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "STREAMS", 1)
    async with desk.stream():
        await desk.bench.settle()
        assert "qoqi_event_streams 1\n" in (await desk.http.get("/metrics")).text
        answer = await desk.http.get("/events")
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many")


# -- lists, metrics, refusals ---------------------------------------------------------------------

FAMILY = """
step undo_it() -> Result<(), String> { return Err("no") }
flow Child() {
    run {
        flow.undo(undo_it())
        flow.sleep(1d)
    }
}
flow Middle() { run { Child.start("child").wait() } }
flow Top() { run { Middle.start("middle").wait() } }
"""


async def test_a_list_says_whom_a_stopped_child_holds(site: Site) -> None:
    await site.deploy(FAMILY)
    await site.start("Top", "top")
    await site.bench.settle()
    await site.post("/instances/top/cancel", {"reason": "no"})
    await site.bench.advance(SECOND)
    listed = (await site.http.get("/instances", params={"status": "stopped"})).json()
    assert [(one["name"], one["holds"]) for one in listed["instances"]] == [
        ("child", ["middle", "top"])
    ]


async def test_a_flow_that_refuses_to_be_cancelled_is_409_with_its_words(site: Site) -> None:
    text = """
    flow Parcel() {
        channel news: Int
        run {
            flow.refuse("the parcel has left")
            news.receive()
        }
    }
    """
    await site.deploy(text)
    await site.start("Parcel", "p")
    refused = await site.post("/instances/p/cancel", {"reason": "no"})
    assert (refused.status_code, refused.json()["code"]) == (409, "refused")
    assert "the parcel has left" in refused.json()["message"]
    assert (await site.post("/instances/p/cancel", {"reason": "no", "now": True})).is_success
    await site.bench.settle()
    assert (await site.bench.row("p")).status == "failed"


async def test_metrics_are_in_the_format_of_prometheus(desk: Site) -> None:
    answer = await desk.http.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    lines = answer.text.splitlines()
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    names = {line.split()[0].partition("{")[0] for line in lines if not line.startswith("#")}
    assert names == set(kinds)
    assert all((kind == "counter") == name.endswith("_total") for name, kind in kinds.items())
    assert 'qoqi_instances{status="waiting"} 1' in lines
