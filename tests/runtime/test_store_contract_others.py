"""Instances that wait for, start and send to each other, on each kind of store."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qoqi.runtime.store.protocol import SendOutcome
from qoqi.vm.host import (
    ChannelRow,
    LeaseLost,
    NameTaken,
    NewInstance,
    NewMessage,
    WaitRow,
)
from tests.runtime.store_lab import (
    KEEP,
    LEASE,
    ME,
    Lab,
    birth_of,
    ending_of,
    key,
    members,
    receive,
    request,
)

# -- waiting for others ------------------------------------------------------------------------


def test_an_ending_makes_who_waits_for_it_due_and_names_its_holder(lab: Lab) -> None:
    lab.running("child")
    lab.waiting("asleep", ending_of("child"))
    lab.running("near")
    lab.save("near", waits=(ending_of("child"),))
    _, woken = lab.saved("child", "done", result="1")
    assert set(woken.owners) == {("asleep", None), ("near", ME)}
    assert lab.due() == ["asleep"]


def test_a_wait_for_one_that_is_gone_or_is_another_now_is_over_at_once(lab: Lab) -> None:
    lab.start("here")
    lab.waiting("a", ending_of("nobody"))
    lab.waiting("b", ending_of("here", birth="an earlier one"))
    lab.waiting("c", ending_of("here"))
    assert lab.due() == ["here", "a", "b"]
    gone = lab.store.ended("here", "an earlier one")
    assert gone is not None
    assert gone.status == "gone"
    assert lab.store.ended("here", birth_of("here")) is None


def left(lab: Lab, id: str) -> list[int | None]:
    life = lab.store.life(id)
    assert life is not None
    return [wait.left for wait in life.waits]


def test_all_waits_for_each_member_and_counts_those_that_had_ended(lab: Lab) -> None:
    lab.running("one")
    lab.running("two")
    lab.done("three")
    lab.waiting("a", members("one", "two", "three", "nobody", "two"))
    assert left(lab, "a") == [2]
    lab.save("one", "done", result="1")
    assert left(lab, "a") == [1]
    assert lab.due() == []
    lab.save("two", "failed", phase="finish", result="{}", enter_finish="no")
    assert lab.due() == ["a"]


def test_an_all_that_still_stands_is_never_counted_again(lab: Lab) -> None:
    lab.running("one")
    lab.running("two")
    lab.running("a")
    lab.save("a", waits=(members("one", "two"),))
    lab.save("one", "done", result="1")
    lab.save("a", waits=(members("one", "two"),))
    assert left(lab, "a") == [1]
    lab.save("a", "waiting", waits=(members("one"),))
    assert left(lab, "a") == [0]
    assert lab.due() == ["a"]


@pytest.mark.parametrize(
    ("any", "first_ends", "wakes"),
    [
        (0, "done", False),
        (0, "failed", False),
        (1, "done", False),
        (1, "failed", True),
        (2, "done", True),
        (2, "failed", True),
    ],
)
def test_which_end_of_a_member_wakes(lab: Lab, any: int, first_ends: str, wakes: bool) -> None:
    lab.running("one")
    lab.running("two")
    lab.waiting("asleep", members("one", "two", any=any))
    phase = "run" if first_ends == "done" else "finish"
    lab.save("one", first_ends, phase=phase, result="1")
    assert (lab.due() == ["asleep"]) is wakes
    # The same for one that begins to wait when that member has ended already.
    lab.waiting("after", members("one", "two", any=any))
    assert ("after" in lab.due()) is wakes


def test_a_wait_that_is_gone_holds_no_member(lab: Lab) -> None:
    lab.done("one", keep=0)
    lab.running("a")
    lab.save("a", waits=(members("one", any=1),))
    assert lab.store.sweep(lab.now, KEEP) == 0
    lab.save("a", waits=())
    assert lab.store.sweep(lab.now, KEEP) == 1


# -- children ----------------------------------------------------------------------------------


def new_instance(id: str, parent: str | None) -> NewInstance:
    return NewInstance(id, "Order", "[1]", parent)


def test_a_save_starts_children_that_are_due_at_once(lab: Lab) -> None:
    lab.running("a")
    _, woken = lab.saved(
        "a",
        starts=(new_instance("child", "a"),),
        children=(request("child", "a"),),
    )
    assert woken.owners == (("child", None),)
    assert lab.due() == ["child"]
    assert lab.store.children("a") == (("child", birth_of("child")),)


def test_a_save_that_would_start_under_a_taken_name_writes_nothing(lab: Lab) -> None:
    lab.start("child", flow="Audit")
    lab.running("a")
    before = lab.tables()
    with pytest.raises(NameTaken, match="child"):
        lab.save(
            "a",
            starts=(new_instance("other", "a"), new_instance("child", "a")),
            children=(request("other", "a"), request("child", "a", birth="new")),
        )
    assert lab.tables() == before


def test_entering_finish_cancels_the_children_that_live_and_were_not_told(lab: Lab) -> None:
    lab.running("a")
    lab.start("asleep", "a")
    lab.running("held", "a")
    lab.start("told", "a")
    lab.cancel("told", "an earlier reason")
    lab.done("over", parent="a")
    lab.start("stranger")
    _, woken = lab.saved(
        "a", phase="finish", result='{"Err":"no"}', enter_finish="it returned an Err"
    )
    assert set(woken.cancels) == {("asleep", None), ("held", ME)}
    cancel = json.loads(lab.row("held").cancel or "")
    assert cancel["reason"] == "its parent ended: it returned an Err"
    assert cancel["now"] is False
    assert json.loads(lab.row("told").cancel or "")["reason"] == "an earlier reason"
    assert lab.row("over").cancel is None
    assert lab.row("stranger").cancel is None


def test_a_stopped_child_is_due_for_its_parents_cancellation(lab: Lab) -> None:
    lab.running("a")
    lab.running("child", "a")
    lab.save("child", "stopped", stopped_by="a mistake")
    assert lab.due() == []
    lab.save("a", phase="finish", result="{}", enter_finish="cancelled")
    assert lab.due() == ["child"]


# -- messages ----------------------------------------------------------------------------------


def test_a_message_wakes_who_waits_for_it_and_nobody_else(lab: Lab) -> None:
    lab.waiting("a", receive(0))
    lab.waiting("sends", WaitRow("0", 0, "send", channel=0))
    lab.waiting("elsewhere", receive(1))
    for name in ("a", "sends", "elsewhere"):
        assert lab.send(name).outcome == SendOutcome.DELIVERED
    assert lab.due() == ["a"]


def test_a_message_that_came_before_the_wait_makes_it_due(lab: Lab) -> None:
    lab.running("a")
    lab.send("a")
    lab.save("a", "waiting", waits=(receive(),))
    assert lab.due() == ["a"]


def test_a_send_names_the_holder_to_tell(lab: Lab) -> None:
    lab.running("a")
    assert lab.send("a").owner == ME


def test_a_key_is_one_message_however_often_it_is_sent(lab: Lab) -> None:
    lab.running("a")
    first = lab.send("a", "1", "evt-9")
    again = lab.send("a", "1", "evt-9")
    assert (again.outcome, again.seq) == (SendOutcome.ALREADY, first.seq)
    assert len(lab.store.messages("a")) == 1
    lab.send("a")
    lab.send("a")
    assert len(lab.store.messages("a")) == 2


def test_a_channel_is_full_of_what_is_untaken_and_what_is_inside(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", channels=(ChannelRow(0, "decisions", 2, 1, False, False),))
    first = lab.send("a")
    assert lab.send("a").outcome == SendOutcome.FULL
    lab.save("a", taken=((first.seq, 0),))
    assert lab.send("a").outcome == SendOutcome.DELIVERED


def test_a_repeat_is_already_also_when_the_channel_is_full_or_the_instance_ended(
    lab: Lab,
) -> None:
    lab.running("a")
    lab.send("a", "1", "evt-1")
    lab.send("a", "1", "evt-2")
    assert lab.send("a", "1", "evt-1").outcome == SendOutcome.ALREADY
    lab.save("a", "done", result="1")
    assert lab.send("a", "1", "evt-2").outcome == SendOutcome.ALREADY
    assert lab.send("a", "1", "evt-3").outcome == SendOutcome.ENDED


def test_a_send_to_who_is_not_there(lab: Lab) -> None:
    lab.start("a")
    assert lab.send("b").outcome == SendOutcome.NO_INSTANCE
    assert lab.send("b", birth="old").outcome == SendOutcome.ENDED
    assert lab.send("a", birth="old").outcome == SendOutcome.ENDED
    assert lab.send("a", birth=birth_of("a")).outcome == SendOutcome.DELIVERED
    for name in ("inside", "nothing"):
        sent = lab.store.send("a", name, None, "1", None, lab.now)
        assert sent.outcome == SendOutcome.NO_CHANNEL


def test_a_closed_channel_takes_no_more(lab: Lab) -> None:
    lab.running("a")
    lab.save("a", channels=(ChannelRow(0, "decisions", 2, 0, True, False),))
    assert lab.send("a").outcome == SendOutcome.ENDED


def test_a_taken_message_is_taken_once_in_its_pass(lab: Lab) -> None:
    lab.running("a")
    first, second = lab.send("a", '"x"'), lab.send("a", '"y"')
    lab.save("a", pass_number=1, taken=((first.seq, 0),))
    assert [message.seq for message in lab.store.messages("a")] == [second.seq]
    life = lab.store.life("a")
    assert life is not None
    assert [(m.taken, m.taken_pass) for m in life.messages] == [(lab.now, 0), (None, None)]


def new_message(to: str, **changes: Any) -> NewMessage:
    fields: dict[str, Any] = {
        "key": key("a", "send"),
        "to": to,
        "birth": birth_of(to),
        "channel": "decisions",
        "value": '"hello"',
        "message_key": key("a", "send"),
    }
    return NewMessage(**{**fields, **changes})


def test_instances_send_to_each_other_in_the_senders_save(lab: Lab) -> None:
    lab.running("a")
    lab.waiting("b", receive())
    saved, woken = lab.saved("a", sends=(new_message("b", asked='["b"]'),))
    assert saved.sent[0].outcome == SendOutcome.DELIVERED
    assert woken.owners == (("b", None),)
    assert lab.due() == ["b"]
    kept = json.loads(lab.last(key("a", "send")).result or "")
    assert kept == {"outcome": "Delivered", "seq": saved.sent[0].seq}
    again = lab.save("a", sends=(new_message("b", asked='["b"]'),))
    assert again.sent[0].outcome == SendOutcome.ALREADY
    assert json.loads(lab.last(key("a", "send")).result or "")["outcome"] == "Delivered"


def test_a_send_that_stands_in_a_lost_save_was_never_sent(lab: Lab) -> None:
    lab.running("a")
    lab.start("b")
    lab.now += LEASE
    with pytest.raises(LeaseLost):
        lab.save("a", sends=(new_message("b"),))
    assert lab.store.messages("b") == ()


# -- requests and answers ----------------------------------------------------------------------


def test_an_answer_wakes_who_asked(lab: Lab) -> None:
    lab.running("a")
    lab.running("b")
    seq = lab.save("a", sends=(new_message("b", asks=True),)).sent[0].seq
    assert seq is not None
    lab.save("a", "waiting", waits=(WaitRow("0", 0, "answer", other=f"{seq}:B/decisions"),))
    assert lab.due() == []
    assert lab.store.answer(seq) is None
    _, woken = lab.saved("b", taken=((seq, 0),), replies=((seq, '"yes"'),))
    assert woken.owners == (("a", None),)
    assert lab.due() == ["a"]
    assert lab.store.answer(seq) == ("ok", '"yes"')
    lab.save("b", replies=((seq, '"no"'),))
    assert lab.store.answer(seq) == ("ok", '"yes"')
    assert lab.store.send("b", "decisions", key("a", "send"), "1", None, lab.now).answer == '"yes"'


def test_an_end_answers_the_requests_that_nobody_answered(lab: Lab) -> None:
    lab.running("a")
    lab.running("b")
    seq = lab.save("a", sends=(new_message("b", asks=True),)).sent[0].seq
    assert seq is not None
    lab.save("a", "waiting", waits=(WaitRow("0", 0, "answer", other=str(seq)),))
    _, woken = lab.saved("b", "done", result="1")
    assert woken.owners == (("a", None),)
    assert lab.due() == ["a"]
    assert lab.store.answer(seq) == ("ended", "")
