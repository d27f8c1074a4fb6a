"""Attempts, and what people ask: cancel, resume, end, pause; on each kind of store."""

from __future__ import annotations

import json

import pytest

from qoqi.runtime.model import Phase, Status, VersionRow
from qoqi.vm.host import (
    Cancel,
    GivenMark,
    LeaseLost,
    PutResult,
)
from tests.runtime.store_lab import (
    KEEP,
    LEASE,
    ME,
    OTHER,
    Lab,
    after,
    key,
    members,
    receive,
)

# -- attempts ----------------------------------------------------------------------------------


def test_the_first_result_stands_and_tells_the_holder(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    first, owner = lab.store.put_result(PutResult(charge, 1, '"first"'), lab.now)
    second, _ = lab.store.put_result(PutResult(charge, 1, '"second"'), lab.now)
    assert first is not None
    assert (first.result, owner) == ('"first"', ME)
    assert second == first
    assert lab.store.put_result(PutResult("nothing", 1, "1"), lab.now) == (None, None)


def test_a_result_lands_whoever_has_the_lease(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    lab.now += LEASE
    lab.take("a", OTHER)
    _, owner = lab.store.put_result(PutResult(charge, 1, "1"), lab.now)
    assert owner == OTHER


def test_giving_up_for_time_needs_the_limit_to_be_past(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    early, row = lab.store.give_up(charge, 1, "timeout", 1_000, lab.now)
    assert not early
    assert row is not None
    assert row.result is None
    assert lab.store.working(charge, 1)
    lab.now += 60_000
    gave_up, row = lab.store.give_up(charge, 1, "timeout", 1_000, lab.now)
    assert gave_up
    assert row is not None
    assert (row.result, row.until, row.delay) == ("timeout", lab.now, 1_000)
    assert not lab.store.working(charge, 1)


@pytest.mark.parametrize("word", ["retry", "lost"])
def test_a_body_may_give_its_own_attempt_up_before_the_limit(lab: Lab, word: str) -> None:
    lab.running("a")
    charge = lab.step("a")
    gave_up, row = lab.store.give_up(charge, 1, word, 50, lab.now)
    assert gave_up
    assert row is not None
    assert (row.result, row.until, row.delay) == (word, lab.now, 50)


def test_giving_up_after_the_answer_finds_the_answer(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    lab.store.put_result(PutResult(charge, 1, '"retry"'), lab.now)
    lab.now += 60_000
    gave_up, row = lab.store.give_up(charge, 1, "timeout", 0, lab.now)
    assert not gave_up
    assert row is not None
    assert row.result == '"retry"'  # a string that a step gave is no word


def test_a_late_answer_is_kept_beside_and_in_the_ledger(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    lab.now += 60_000
    lab.store.give_up(charge, 1, "timeout", 0, lab.now)
    lab.store.late(charge, 1, '"too late"', lab.now)
    assert (lab.last(charge).result, lab.last(charge).late) == ("timeout", '"too late"')
    lab.store.late(key("a", "dropped"), 1, "2", lab.now)
    lab.store.late("nobody/b/0:0:charge#1", 1, "3", lab.now)
    late = [line for line in lab.store.ledger(None, 0, 20) if line.kind == "late"]
    assert [json.loads(line.detail)["result"] for line in late] == ['"too late"', "2"]


def test_limits_count_rows(lab: Lab) -> None:
    lab.running("a")
    assert lab.store.under_way("charge", lab.now) == 0
    charge = lab.step("a", per=10_000)
    assert lab.store.under_way("charge", lab.now) == 1
    assert lab.store.under_way("charge", lab.now + 60_000) == 0
    lab.save("a", pass_number=1, at_stage="{}", drop_before=1, puts=(PutResult(charge, 1, "1"),))
    assert lab.store.under_way("charge", lab.now) == 0
    assert lab.store.begun("charge", lab.now - 1) == 1
    assert lab.store.begun("charge", lab.now) == 0
    lab.now += 10_000
    lab.store.sweep(lab.now, KEEP)
    assert lab.store.begun("charge", 0) == 0


def test_what_a_dead_process_left_is_given_up_at_once(lab: Lab) -> None:
    lab.running("a")
    charge, extern = lab.step("a"), lab.step("a", "transcribe", queue="gpu")
    assert lab.store.abandon(lab.now) == (1, 1)
    assert lab.last(charge).result == "timeout"
    assert lab.last(extern).result is None
    assert lab.due() == ["a"]
    with pytest.raises(LeaseLost):
        lab.save("a")


# -- cancel ------------------------------------------------------------------------------------


def test_a_cancellation_makes_a_waiting_or_stopped_instance_due(lab: Lab) -> None:
    lab.waiting("a", receive())
    lab.stopped("b")
    lab.running("held")
    assert lab.cancel("a").outcome == lab.cancel("b").outcome == "ok"
    assert lab.cancel("held").owner == ME
    assert lab.due() == ["a", "b"]


def test_a_cancellation_in_finish_changes_nothing(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", "stopped", phase="finish", result="{}", enter_finish="no")
    before = lab.tables()
    assert lab.cancel("a").outcome == "ok"
    assert lab.tables() == before
    assert lab.store.lease("a", ME, lab.now, lab.now + LEASE) is None


def test_a_flow_that_refuses_is_cancelled_only_now(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", refuses="the parcel has left")
    asked = lab.cancel("a")
    assert (asked.outcome, asked.text) == ("refused", "the parcel has left")
    assert lab.cancel("a", now=True).outcome == "ok"


def test_a_cancellation_of_who_is_gone_or_over(lab: Lab) -> None:
    lab.done("a")
    lab.start("b")
    cancel = Cancel("c", "no", False, lab.now)
    assert lab.cancel("a").outcome == "ended"
    assert lab.cancel("nobody").outcome == "no_instance"
    assert lab.store.cancel("b", "old", cancel, lab.now, "a").outcome == "ended"
    assert lab.row("b").cancel is None


# -- resume, end, pause ------------------------------------------------------------------------


def test_a_resume_goes_back_to_the_stage_in_the_newest_version(lab: Lab) -> None:
    lab.store.put_version(VersionRow("v1", "Order", None, b"1", b"", lab.now))
    lab.store.put_version(VersionRow("v2", "Order", "v1", b"2", b"", lab.now))
    lab.running("a")
    lab.save("a", stage="month", pass_number=2, at_stage='{"s":1}', drop_before=2)
    before, since = lab.send("a", '"before"'), lab.send("a", '"since"')
    lab.save("a", state='{"s":2}', taken=((before.seq, 1), (since.seq, 2)), pass_number=3)
    lab.save("a", "stopped", state='{"s":3}', stopped_by="a mistake", error_code="R0002")
    assert lab.store.resume("a", lab.now, "ana").outcome == "ok"
    row = lab.row("a")
    assert (row.state, row.version, row.pass_number) == ('{"s":1}', "v2", 2)
    assert (row.stopped_by, row.error_code) == (None, None)
    assert row.stopped_state == '{"s":3}'
    assert [message.value for message in lab.store.messages("a")] == ['"since"']
    assert lab.due() == ["a"]
    lab.take("a")
    lab.save("a")
    assert lab.row("a").stopped_state is None


def test_a_pinned_instance_resumes_in_its_own_version(lab: Lab) -> None:
    lab.store.put_version(VersionRow("v2", "Order", "v1", b"2", b"", lab.now))
    lab.store.pin("Order", "v1", True)
    lab.stopped("a")
    lab.store.resume("a", lab.now, "ana")
    assert lab.row("a").version == "v1"


def test_a_resume_gives_spent_steps_new_attempts_and_deletes_none(lab: Lab) -> None:
    lab.running("a")
    plain = lab.step("a", "plain")
    lab.store.give_up(plain, 1, "retry", 0, lab.now)
    lab.save("a", attempts=(lab.new_attempt("a", "plain", attempt=2),))
    lab.now += 60_000
    lab.store.renew(["a"], ME, lab.now - 60_000, lab.now + LEASE)
    lab.now -= 60_000
    broken = lab.step("a", "broken")
    lab.store.put_result(PutResult(broken, 1, "failed", failure="R0001"), lab.now)
    settled = lab.step("a", "settled", settled=True)
    lab.store.put_result(PutResult(settled, 1, "failed", failure="R0001"), lab.now)
    unknown = lab.step("a", "unknown", settled=True)
    good = lab.step("a", "good")
    lab.store.put_result(PutResult(good, 1, "1"), lab.now)
    instead = lab.step("a", "instead")
    lab.store.give_up(instead, 1, "retry", 0, lab.now)
    lab.now += 60_000
    lab.store.renew(["a"], ME, lab.now - LEASE, lab.now + LEASE)
    lab.store.give_up(plain, 2, "timeout", 0, lab.now)
    lab.store.give_up(unknown, 1, "timeout", 0, lab.now)
    lab.save("a", "stopped", given=(GivenMark(instead, 1, 1, lab.now),), stopped_by="spent")
    lab.store.resume("a", lab.now, "ana")
    results = {(one.key, one.attempt): one.result for one in lab.take("a").attempts}
    assert results == {
        (plain, 1): "spent",
        (plain, 2): "spent",
        (broken, 1): "spent",
        (settled, 1): "timeout",
        (unknown, 1): "timeout",
        (good, 1): "1",
        (instead, 1): "retry",
    }
    assert lab.last(settled).failure == "R0001"


@pytest.mark.parametrize(
    ("result", "again"),
    [
        ('{"Err":"no"}', True),
        ('{"Known":{"Err":"no"}}', True),
        ('"Unknown"', True),
        ('{"Ok":null}', False),
        ("null", False),
    ],
)
def test_a_resume_in_finish_runs_again_the_undo_that_has_not_undone(
    lab: Lab, result: str, again: bool
) -> None:
    lab.running("a")
    lab.save("a", phase="finish", result='{"Err":1}', enter_finish="an Err")
    undo = lab.step("a", "undo")
    lab.store.put_result(PutResult(undo, 1, result), lab.now)
    lab.save("a", "stopped", state='{"undos":[1]}', stopped_by="could not undo")
    assert lab.store.resume("a", lab.now, "ana").outcome == "ok"
    assert lab.at("a") == (Status.WAITING, Phase.FINISH)
    assert lab.row("a").state == '{"undos":[1]}'
    assert lab.last(undo).result == ("spent" if again else result)
    told = json.loads(lab.store.ledger("a", 0, 20)[-1].detail)
    assert ([one["result"] for one in told.get("again", [])] == [result]) is again


def test_an_unknown_undo_runs_again_on_a_resume(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", phase="finish", result="{}", enter_finish="cancelled")
    undo = lab.step("a", "undo", settled=True, until=lab.now + 1)
    lab.now += 1
    lab.store.give_up(undo, 1, "timeout", 0, lab.now)
    lab.save("a", "stopped", stopped_by="Unknown")
    lab.store.resume("a", lab.now, "ana")
    assert lab.last(undo).result == "spent"


def test_a_resume_is_refused_while_a_cancellation_is_pending(lab: Lab) -> None:
    lab.stopped("a")
    lab.cancel("a")
    before = lab.tables()
    assert lab.store.resume("a", lab.now, "ana").outcome == "refused"
    assert lab.tables() == before


def test_only_a_stopped_instance_is_resumed_or_ended(lab: Lab) -> None:
    lab.running("a")
    lab.done("b")
    assert lab.store.resume("a", lab.now, "ana").outcome == "not_stopped"
    assert lab.store.end("a", "enough", lab.now, KEEP, "ana").outcome == "not_stopped"
    assert lab.store.resume("b", lab.now, "ana").outcome == "ended"
    assert lab.store.resume("c", lab.now, "ana").outcome == "no_instance"


def test_resuming_a_pause_leaves_everything_else_as_it_is(lab: Lab) -> None:
    lab.stopped("a")
    lab.store.pause("a", lab.now, "ana")
    assert lab.store.resume("a", lab.now, "ana").outcome == "ok"
    assert lab.row("a").status is Status.STOPPED
    assert not lab.row("a").paused
    lab.waiting("b", receive())
    lab.store.pause("b", lab.now, "ana")
    lab.send("b")
    lab.cancel("b")
    assert lab.due() == []
    lab.store.resume("b", lab.now, "ana")
    assert lab.due() == ["b"]
    lab.running("held")
    lab.store.pause("held", lab.now, "ana")
    assert lab.store.resume("held", lab.now, "ana").owner == ME
    lab.now += LEASE
    assert "held" in lab.due()


def test_what_fell_due_in_a_pause_is_due_after_it(lab: Lab) -> None:
    lab.waiting("a", after(lab.now + 10))
    lab.store.pause("a", lab.now, "ana")
    lab.now += 100
    assert lab.due() == []
    lab.store.resume("a", lab.now, "ana")
    assert lab.due() == ["a"]


def test_a_person_ends_what_will_not_end_itself(lab: Lab) -> None:
    lab.stopped("a")
    lab.start("child", "a")
    lab.waiting("parent", members("a"))
    asked = lab.store.end("a", "the shop is closed", lab.now, KEEP, "ana")
    assert asked.outcome == "ok"
    assert set(asked.woken) == {("child", None), ("parent", None)}
    row = lab.row("a")
    assert row.status is Status.FAILED
    assert row.note == "ended by ana: the shop is closed"
    assert json.loads(row.result or "")["reason"] == "ended by ana: the shop is closed"
    assert "its parent ended" in (lab.row("child").cancel or "")
    assert lab.due() == ["child", "parent"]


@pytest.mark.parametrize(
    ("result", "ends"), [('{"Err":"no"}', Status.DONE), ('{"reason":"no"}', Status.FAILED)]
)
def test_a_person_ends_a_finish_as_its_undos_would_have(
    lab: Lab, result: str, ends: Status
) -> None:
    lab.running("a")
    lab.save("a", "stopped", phase="finish", result=result, enter_finish="no")
    lab.store.end("a", "enough", lab.now, KEEP, "ana")
    row = lab.row("a")
    assert (row.status, row.result) == (ends, result)


def test_a_persons_answer_is_the_next_attempt_under_its_key(lab: Lab) -> None:
    lab.stopped("a")
    stop = key("a", "flow.stop")
    assert lab.store.post_result(stop, '"go"', lab.now, "ana", '["ok?"]').outcome == "ok"
    answer = lab.last(stop)
    assert (answer.attempt, answer.result, answer.asked) == (1, '"go"', '["ok?"]')
    assert lab.store.post_result(stop, '"stay"', lab.now, "ana").outcome == "ok"
    answer = lab.last(stop)
    assert (answer.attempt, answer.result, answer.asked) == (2, '"stay"', '["ok?"]')


def test_a_persons_answer_needs_a_stop_and_no_open_attempt(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    assert lab.store.post_result(charge, "1", lab.now, "ana").outcome == "not_stopped"
    lab.save("a", "stopped", stopped_by="another task failed")
    assert lab.store.post_result(charge, "1", lab.now, "ana").outcome == "refused"
    assert lab.store.post_result("x/y/0:0:z#1", "1", lab.now, "ana").outcome == "no_instance"
