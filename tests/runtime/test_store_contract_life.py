"""An instance from its start through leases and saves, on each kind of store."""

from __future__ import annotations

import json

import pytest

from qoqi.runtime.model import Status
from qoqi.vm.host import (
    Cancel,
    ChannelRow,
    GivenMark,
    KeptAnswer,
    LeaseLost,
    LedgerLine,
    PutLost,
    PutResult,
    WaitRow,
)
from tests.runtime.store_lab import (
    LEASE,
    ME,
    OTHER,
    Lab,
    after,
    birth_of,
    ending_of,
    key,
    receive,
)

# -- start -------------------------------------------------------------------------------------


def test_a_start_makes_a_row_that_is_due_at_once(lab: Lab) -> None:
    outcome = lab.start("a")
    assert outcome.created
    row = lab.row("a")
    assert (row.status, row.phase, row.since, row.created) == ("waiting", "run", lab.now, lab.now)
    assert row.at_stage == row.state == '{"at":"start of a"}'
    assert row.args == '{"n":1}'
    assert lab.due() == ["a"]
    assert lab.store.channels("a") == (
        (0, "decisions", 2, 0, False, False),
        (1, "inside", 4, 0, False, True),
    )
    assert [line.kind for line in lab.store.ledger("a", 0, 10)] == ["started"]


def test_a_taken_name_gives_the_row_that_has_it(lab: Lab) -> None:
    lab.start("a")
    outcome = lab.start("a", birth="another", flow="Refund")
    assert not outcome.created
    assert (outcome.row.birth, outcome.row.flow) == (birth_of("a"), "Order")


def test_an_ended_name_is_free_once_its_keep_is_over_and_nothing_has_it(lab: Lab) -> None:
    lab.done("a", keep=100)
    lab.now += 99
    assert not lab.start("a", birth="second").created
    lab.now += 1
    assert lab.start("a", birth="second").created
    assert lab.row("a").birth == "second"


def test_an_ended_name_that_is_waited_for_is_not_free(lab: Lab) -> None:
    lab.done("a", keep=0)
    lab.waiting("w", ending_of("a"))
    assert not lab.start("a", birth="second").created


# -- due and leases ----------------------------------------------------------------------------


def test_due_is_ordered_by_when_it_became_due_and_obeys_its_limit(lab: Lab) -> None:
    for name, at in (("late", 300), ("early", 100), ("middle", 200)):
        lab.waiting(name, after(lab.now + at))
    assert lab.due() == []
    assert lab.store.next_wake(lab.now) == lab.now + 100
    lab.now += 1_000
    assert lab.due() == ["early", "middle", "late"]
    assert [row.id for row in lab.store.due(lab.now, 2)] == ["early", "middle"]


def test_of_several_waits_the_first_to_be_over_counts(lab: Lab) -> None:
    lab.waiting("a", after(lab.now + 500), after(lab.now + 50, case=1))
    assert lab.store.next_wake(lab.now) == lab.now + 50


def test_paused_instances_do_not_fill_the_limit(lab: Lab) -> None:
    for number in range(5):
        lab.start(f"p{number}")
        lab.store.pause(f"p{number}", lab.now, "ana")
    lab.start("free")
    assert lab.store.due(lab.now, 3) == [("free", 0)]


def test_a_lease_gives_everything_in_one_go(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    lab.send("a", '"yes"')
    lab.cancel("a")
    lab.save("a", "waiting", waits=(after(lab.now),))
    taken = lab.take("a", OTHER)
    assert taken.row.status is Status.RUNNING
    assert taken.row.lease_owner == OTHER
    assert taken.row.lease_until == lab.now + LEASE
    assert [(one.key, one.owner, one.result) for one in taken.attempts] == [(charge, ME, None)]
    assert [message.value for message in taken.messages] == ['"yes"']
    assert taken.cancel == Cancel("c-no more", "no more", False, lab.now)


def test_a_held_instance_is_taken_by_nobody_until_its_lease_is_over(lab: Lab) -> None:
    lab.running("a")
    assert lab.store.lease("a", OTHER, lab.now, lab.now + LEASE) is None
    assert lab.store.next_wake(lab.now) == lab.now + LEASE
    lab.now += LEASE - 1
    assert lab.due() == []
    lab.now += 1
    assert lab.due() == ["a"]
    lab.take("a", OTHER)
    last = lab.store.ledger("a", 0, 10)[-1]
    assert (last.kind, last.actor, json.loads(last.detail)) == ("taken over", OTHER, {"from": ME})


def test_a_renewal_has_the_guard_of_a_save(lab: Lab) -> None:
    lab.running("a")
    lab.running("b")
    lab.now += LEASE - 1
    assert lab.store.renew(["a"], ME, lab.now, lab.now + LEASE) == ["a"]
    lab.now += 1
    assert lab.store.renew(["a", "b", "gone"], ME, lab.now, lab.now + LEASE) == ["a"]
    assert lab.store.renew(["a"], OTHER, lab.now, lab.now + LEASE) == []


def test_only_takings_that_were_never_renewed_or_saved_are_counted(lab: Lab) -> None:
    lab.start("a")
    counted = []
    for _ in range(4):
        counted.append(lab.take("a").row.takings)
        lab.now += LEASE
    assert counted == [0, 1, 2, 3]
    assert lab.store.due(lab.now, 3) == [("a", 4)]
    lab.take("a")
    lab.store.renew(["a"], ME, lab.now, lab.now + LEASE)
    lab.now += LEASE
    assert lab.take("a").row.takings == 0
    lab.save("a")
    lab.now += LEASE
    assert lab.take("a").row.takings == 0


# -- save --------------------------------------------------------------------------------------


def test_a_save_under_a_lost_lease_writes_nothing(lab: Lab) -> None:
    lab.running("a")
    lab.now += LEASE
    before = lab.tables()
    with pytest.raises(LeaseLost):
        lab.save("a", state="{}", attempts=(lab.new_attempt("a"),))
    lab.take("a", OTHER)
    before = lab.tables()
    with pytest.raises(LeaseLost):
        lab.save("a", "done", result="1")
    assert lab.tables() == before


def test_a_put_that_comes_too_late_takes_the_whole_save_with_it(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    lab.store.put_result(PutResult(charge, 1, '"first"'), lab.now)
    before = lab.tables()
    with pytest.raises(PutLost):
        lab.save("a", state="{}", puts=(PutResult(charge, 1, '"second"'),))
    assert lab.tables() == before


def test_an_answer_its_giving_and_the_next_step_are_one_save(lab: Lab) -> None:
    lab.running("a")
    charge = lab.step("a")
    lab.now += 5
    lab.save(
        "a",
        state='{"at":2}',
        puts=(PutResult(charge, 1, '{"Ok":7}', undo="[]"),),
        given=(GivenMark(charge, 1, 1, lab.now),),
        attempts=(lab.new_attempt("a", "record"),),
        ledger=(LedgerLine("left", {"step": "record"}),),
    )
    answered = lab.last(charge)
    assert (answered.result, answered.ended, answered.given) == ('{"Ok":7}', lab.now, 1)
    assert answered.undo == "[]"
    new = lab.last(key("a", "record"))
    assert (new.asked, new.step, new.owner, new.started) == ("[1]", "record", ME, lab.now)
    assert lab.row("a").state == '{"at":2}'
    kinds = [line.kind for line in lab.store.ledger("a", 0, 10)]
    assert kinds == ["started", "answered", "left"]


def test_an_unseen_cancellation_keeps_new_attempts_from_being_written(lab: Lab) -> None:
    lab.running("a")
    lab.cancel("a")
    saved = lab.save("a", attempts=(lab.new_attempt("a"),))
    assert not saved.may_leave
    assert saved.cancel is not None
    assert saved.cancel.reason == "no more"
    assert lab.store.attempt(key("a", "charge")) is None


def test_a_flow_that_listens_goes_on_under_a_cancellation_but_not_under_now(lab: Lab) -> None:
    lab.running("a")
    lab.cancel("a")
    assert lab.save("a", listens=True, attempts=(lab.new_attempt("a"),)).may_leave
    lab.cancel("a", "at once", now=True)
    assert not lab.save("a", listens=True, attempts=(lab.new_attempt("a", "next"),)).may_leave


def test_the_save_that_acts_on_a_cancellation_clears_that_one_only(lab: Lab) -> None:
    lab.running("a")
    lab.cancel("a", "first")
    lab.cancel("a", "second")
    saved = lab.save("a", seen_cancel="c-first")
    assert saved.cancel is not None
    assert saved.cancel.reason == "second"
    assert lab.save("a", seen_cancel="c-second").cancel is None
    assert lab.row("a").cancel is None


def test_a_later_cancellation_does_not_make_one_that_is_meant_now_weaker(lab: Lab) -> None:
    lab.running("a")
    lab.cancel("a", "at once", now=True)
    lab.cancel("a", "please")
    cancel = lab.save("a").cancel
    assert cancel is not None
    assert (cancel.reason, cancel.now) == ("at once", True)


def test_a_paused_instance_lets_no_step_leave_and_says_so(lab: Lab) -> None:
    lab.running("a")
    assert lab.store.pause("a", lab.now, "ana").owner == ME
    saved = lab.save("a", attempts=(lab.new_attempt("a"),))
    assert saved.paused
    assert not saved.may_leave
    lab.save("a", "waiting", waits=(after(lab.now),))
    assert lab.due() == []
    assert lab.store.lease("a", ME, lab.now, lab.now + LEASE) is None


def test_what_a_wait_gave_is_kept_in_the_pass_it_happened_in(lab: Lab) -> None:
    lab.running("a")
    old, new = key("a", "wait"), key("a", "wait", pass_number=1)
    lab.save(
        "a",
        pass_number=1,
        stage="month",
        at_stage='{"stage":"month"}',
        drop_before=1,
        answers=(
            KeptAnswer(old, 0, "[0]", '"before"', 1, lab.now),
            KeptAnswer(new, 1, "[0]", '"after"', 2, lab.now, message=7),
        ),
    )
    assert lab.store.attempt(old) is None
    kept = lab.last(new)
    assert (kept.attempt, kept.result, kept.pass_number, kept.given) == (1, '"after"', 1, 2)
    assert kept.message == 7


def test_a_lone_stage_drops_the_attempts_before_it_but_none_that_is_open(lab: Lab) -> None:
    lab.running("a")
    charge, ask = lab.step("a"), lab.step("a", "ask")
    lab.save(
        "a",
        pass_number=1,
        at_stage="{}",
        drop_before=1,
        puts=(PutResult(charge, 1, "1"),),
    )
    assert lab.store.attempt(charge) is None
    assert lab.last(ask).result is None


def test_namesakes_whose_names_start_alike_keep_their_attempts(lab: Lab) -> None:
    lab.running("a")
    lab.running(f"a/{birth_of('a')}/0:0")
    mine, other = lab.step("a"), lab.step(f"a/{birth_of('a')}/0:0")
    lab.store.put_result(PutResult(mine, 1, "1"), lab.now)
    lab.store.put_result(PutResult(other, 1, "1"), lab.now)
    lab.save("a", pass_number=1, at_stage="{}", drop_before=1)
    assert lab.store.attempt(mine) is None
    assert lab.last(other).result == "1"


def test_channels_are_written_as_they_are_now(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", channels=(ChannelRow(0, "decisions", 2, 1, True, False),))
    assert lab.store.channels("a")[0] == (0, "decisions", 2, 1, True, False)


def test_waits_that_still_stand_are_left_and_the_others_replaced(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", waits=(after(lab.now + 5), receive_case(1)))
    lab.save("a", "waiting", waits=(after(lab.now + 9), receive_case(1)))
    life = lab.store.life("a")
    assert life is not None
    seen = [(wait.case, wait.kind, wait.at) for wait in life.waits]
    assert seen == [(0, "after", lab.now + 9), (1, "receive", None)]


def receive_case(case: int) -> WaitRow:
    return WaitRow("0", case, "receive", channel=0)


def test_a_state_that_could_not_be_read_stays_at_its_stage(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", stage="month", pass_number=3)
    lab.save("a", "stopped", stage=None, pass_number=-1, stopped_by="it does not thaw")
    row = lab.row("a")
    assert (row.stage, row.pass_number, row.stopped_by) == ("month", 3, "it does not thaw")


def test_an_end_keeps_its_result_and_lets_everything_go(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", waits=(receive(),))
    lab.save("a", "done", result='"ok"', keep=500)
    row = lab.row("a")
    assert (row.result, row.keep_until, row.lease_owner) == ('"ok"', lab.now + 500, None)
    assert lab.due() == []
    assert lab.store.lease("a", ME, lab.now, lab.now + LEASE) is None
    ended = lab.store.ended("a", birth_of("a"))
    assert ended is not None
    assert (ended.status, ended.result, ended.at) == ("done", '"ok"', lab.now)
