"""Sweeping, versions, tokens, listings, on each kind of store."""

from __future__ import annotations

from qoqi.runtime.model import Standing, Status, VersionRow
from qoqi.runtime.store.protocol import Filter, SendOutcome
from tests.runtime.store_lab import (
    KEEP,
    ME,
    Lab,
    ending_of,
    members,
)

# -- sweeping ----------------------------------------------------------------------------------


def test_a_sweep_takes_all_rows_of_what_nothing_has(lab: Lab) -> None:
    lab.running("a")
    lab.step("a")
    lab.send("a")
    lab.save("a", "done", result="1", keep=10)
    assert lab.store.sweep(lab.now + 9, KEEP) == 0
    assert lab.store.sweep(lab.now + 10, KEEP) == 1
    assert all(rows == [] for rows in lab.tables().values())


def test_a_sweep_leaves_what_is_waited_for_or_has_living_children(lab: Lab) -> None:
    lab.done("waited", keep=0)
    lab.done("member", keep=0)
    lab.running("parent")
    lab.start("child", "parent")
    lab.save("parent", "done", result="1", keep=0)
    lab.running("w1")
    lab.save("w1", waits=(ending_of("waited"),))
    lab.running("w2")
    lab.save("w2", waits=(members("member", any=2),))
    assert lab.store.sweep(lab.now, KEEP) == 0
    lab.save("w1")
    lab.save("w2")
    lab.take("child")
    lab.save("child", "done", result="1", keep=5)
    assert lab.store.sweep(lab.now, KEEP) == 3
    assert lab.store.instance("child") is not None


def test_taken_messages_go_after_keep_unless_a_resume_would_untake_them(lab: Lab) -> None:
    lab.running("a")
    first, second = lab.send("a"), lab.send("a", sender_key="k")
    lab.save("a", pass_number=1, at_stage="{}", drop_before=1, taken=((first.seq, 0),))
    lab.save("a", taken=((second.seq, 1),))
    lab.store.sweep(lab.now + 99, 100)
    assert len(lab.tables()["messages"]) == 2
    lab.store.sweep(lab.now + 100, 100)
    assert [row[0] for row in lab.tables()["messages"]] == [second.seq]
    assert lab.send("a", sender_key="k").outcome == SendOutcome.ALREADY


def test_numbers_of_messages_are_never_used_again(lab: Lab) -> None:
    lab.running("a")
    first = lab.send("a").seq
    lab.save("a", "done", result="1", keep=0)
    lab.store.sweep(lab.now, 0)
    lab.start("b")
    second = lab.send("b").seq
    assert first is not None
    assert second is not None
    assert second > first


# -- versions, daemons, tokens -----------------------------------------------------------------


def test_a_deploy_that_is_behind_is_refused(lab: Lab) -> None:
    def deploy(hash: str, previous: str | None) -> str:
        return lab.store.put_version(VersionRow(hash, "Order", previous, b"x", b"", lab.now))

    assert deploy("v2", "v1") == "new"  # the first this store sees
    assert deploy("v3", "v2") == "new"
    assert deploy("v2", "v1") == "known"
    assert deploy("v2b", "v1") == "behind"
    assert lab.store.newest("Order") == "v3"
    assert [version.hash for version in lab.store.versions("Order")] == ["v2", "v3"]
    assert lab.store.version("v2b") is None
    found = lab.store.version("v2")
    assert found is not None
    assert found.bytecode == b"x"
    assert lab.store.newest("Refund") is None


def test_pins_and_where_instances_stand(lab: Lab) -> None:
    lab.store.pin("Order", "v1", True)
    lab.store.pin("Order", "v1", True)
    assert lab.store.pins() == {("Order", "v1")}
    lab.store.pin("Order", "v1", False)
    assert lab.store.pins() == frozenset()
    lab.start("a")
    lab.running("b")
    lab.save("b", stage="month")
    lab.done("c")
    assert lab.store.standing() == (
        Standing("Order", "v1", None, "waiting", "run", 1),
        Standing("Order", "v1", "month", "running", "run", 1),
    )
    assert lab.store.counts() == {"waiting": 1, "running": 1, "done": 1}


def test_heartbeats_are_kept_for_a_day(lab: Lab) -> None:
    lab.store.alive(ME, lab.now)
    lab.store.alive(ME, lab.now + 10)
    assert [(row.incarnation, row.alive_until) for row in lab.store.daemons()] == [
        (ME, lab.now + 10)
    ]
    lab.store.sweep(lab.now + 10 + 86_399_999, KEEP)
    assert len(lab.store.daemons()) == 1
    lab.store.sweep(lab.now + 10 + 86_400_000, KEEP)
    assert lab.store.daemons() == ()


def test_tokens(lab: Lab) -> None:
    lab.store.put_token("h1", "admin", "ana", lab.now)
    lab.store.put_token("h2", "read", "ana", lab.now)
    assert lab.store.tokens() == (("h2", "read", "ana"),)
    assert lab.store.drop_token("ana")
    assert not lab.store.drop_token("ana")


def test_a_listing_is_filtered_and_paged_by_name(lab: Lab) -> None:
    for name in ("a_1", "ab1", "b"):
        lab.start(name)
    lab.stopped("c", stopped_by="out of 100% luck", phase="run")
    find = lab.store.instances
    assert [row.id for row in find(Filter(limit=2))] == ["a_1", "ab1"]
    assert [row.id for row in find(Filter(after="ab1"))] == ["b", "c"]
    assert [row.id for row in find(Filter(status=Status.STOPPED))] == ["c"]
    assert [row.id for row in find(Filter(text="a_"))] == ["a_1"]
    assert [row.id for row in find(Filter(text="100%"))] == ["c"]
    assert [row.id for row in find(Filter(flow="Order", version="v1", phase="run"))] == [
        "a_1",
        "ab1",
        "b",
        "c",
    ]
    assert find(Filter(stage="month")) == ()
    assert find(Filter(since=lab.now + 1)) == ()


def test_a_life_is_everything_about_one(lab: Lab) -> None:
    lab.running("a")
    lab.step("a")
    lab.send("a")
    lab.start("child", "a")
    life = lab.store.life("a")
    assert life is not None
    assert life.row == lab.row("a")
    assert [one.step for one in life.attempts] == ["charge"]
    assert [one.value for one in life.messages] == ["1"]
    assert [one.id for one in life.children] == ["child"]
    assert [one.kind for one in life.ledger] == ["started", "message"]
    assert lab.store.life("nobody") is None
