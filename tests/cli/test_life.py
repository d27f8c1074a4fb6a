"""An instance's life in words: each kind of ledger row, late answers beside what was given."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from qoqi.runtime.api import wire
from qoqi.runtime.cli import history, life

KEY = "expense:4411/k7f2aaaa/3:0:charge#1"
HASH = "0123456789abcdef"
AT = 1_796_050_800_000  # 2026-11-30T15:00Z


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def row(kind: str, actor: str | None = None, /, **detail: object) -> wire.LedgerItem:
    return wire.LedgerItem(1, "expense:4411", AT, kind, detail, actor)


@pytest.mark.parametrize(
    ("kind", "detail", "said"),
    [
        ("started", {"flow": "a.B", "version": HASH}, "started as a.B, version 0123456789ab"),
        ("taken over", {"from": "shop/1a2b"}, "taken over from shop/1a2b, whose lease ran out"),
        ("left", {"steps": [[KEY, 1], [KEY, 2]]}, "charge#1, charge#1 (attempt 2) left"),
        ("answered", {"key": KEY, "attempt": 2}, "charge#1 (attempt 2) answered"),
        ("answered", {"key": KEY, "attempt": 1, "word": "failed"}, "charge#1 failed"),
        (
            "network",
            {"key": KEY, "attempt": 1, "why": "no connection to bank: Connection refused"},
            "charge#1 got no connection to bank: Connection refused",
        ),
        (
            "given up",
            {"key": KEY, "attempt": 1, "word": "timeout", "delay": 0},
            "charge#1 gave no answer before its limit",
        ),
        (
            "given up",
            {"key": KEY, "attempt": 3, "word": "lost", "delay": 9},
            "charge#1 (attempt 3) got no answer from the network",
        ),
        (
            "late",
            {"key": KEY, "attempt": 1, "result": '{"Ok":1}'},
            'charge#1 answered too late: {"Ok":1}',
        ),
        (
            "message",
            {"channel": "decisions", "seq": 1, "key": "k"},
            "a message came to decisions with key k",
        ),
        ("message", {"channel": "decisions", "seq": 1, "key": None}, "a message came to decisions"),
        ("stage", {"name": "asking", "pass_number": 3}, "reached stage asking"),
        ("print", {"text": "hello", "task": "0"}, "said: hello"),
        ("cancel", {"reason": "why", "now": True}, "a cancellation was asked for, now: why"),
        ("cancelled", {"reason": "why"}, "is cancelled: why"),
        ("finishing", {"undos": ["release", "close"]}, "ends; to undo: release, close"),
        ("finishing", {"undos": []}, "ends; to undo: nothing"),
        ("undone", {"step": "release", "key": KEY}, "undone: release"),
        ("done", {"result": {"Paid": 1}}, 'done: {"Paid":1}'),
        ("failed", {"result": {"reason": "why"}}, 'failed: {"reason":"why"}'),
        ("stopped", {"code": "R0001", "message": "no"}, "stopped, R0001: no"),
        ("ended", {"status": "failed", "why": "x"}, "ended as failed: x"),
        (
            "task_failed",
            {"task": "0/f#1", "code": "R0001", "message": "no"},
            "task 0/f#1 failed, R0001: no",
        ),
        ("turn_failed", {"times": 2}, "the daemon failed to run it (2); it is taken up again"),
        ("large_state", {"bytes": 1_200_000}, "its state is large: 1,200,000 bytes"),
    ],
)  # fmt: skip
def test_each_kind_has_its_sentence(kind: str, detail: dict[str, object], said: str) -> None:
    assert history.line(row(kind, **detail)) == f"2026-11-30 15:00:00  {said}"


def test_what_is_not_known_is_shown_with_its_details() -> None:
    assert history.line(row("moved", "ana", to=[1])).endswith('moved {"to":[1]} (by ana)')
    assert history.line(row("left", steps="odd")).endswith('left {"steps":"odd"}')
    assert history.line(row("odd")).endswith("  odd")
    assert history.line(row("paused", "ana"), named=True).endswith(
        "  expense:4411: paused (by ana)"
    )


def test_keys_are_short() -> None:
    assert history.short_key(KEY) == "charge#1"
    assert history.short_key("a:b/c/k7f2/0:0/retry#2:charge#1") == "0/retry#2:charge#1"
    assert history.short_key("odd") == "odd"


VIEW = wire.LifeView(
    instance=wire.InstanceView(
        name="expense:4411",
        birth="k7f2aaaa",
        flow="a.Approval",
        version="0123456789abcdef",
        parent="batch",
        status="stopped",
        phase="finish",
        paused=False,
        stage="paying",
        since=AT,
        created=AT,
        stopped_by="release could not undo",
        error_code="R0013",
        cancel=None,
        held_by=None,
    ),
    args={"claim": 1},
    result={"reason": "withdrawn"},
    calls=(wire.CallItem("pay", "a.flow", 12), wire.CallItem("run", "", 0)),
    variables=(wire.VariableView("claim", "parameter", {"id": "\x1b[2J"}),),
    waits=(
        wire.WaitItem("0", 0, "receive", "decisions", None, None, None),
        wire.WaitItem("0/t#1", 1, "after", None, None, None, AT),
        wire.WaitItem("0", 2, "all", None, None, 3, None),
    ),
    attempts=(
        wire.AttemptItem(
            KEY, 1, "charge", ["inv-1"], "timeout", None, {"Known": "r1"}, None, True,
            "shop/1a2b", AT, AT, AT, AT,
        ),
        wire.AttemptItem(
            KEY, 2, "charge", [], "open", None, None, None, False, "shop/1a2b", AT, None, AT,
            None,
        ),
        wire.AttemptItem(
            KEY.replace("charge", "pay"), 1, "pay", [], "failed", None, None, "R0001: no", False,
            None, AT, AT, AT, None,
        ),
        wire.AttemptItem(
            KEY.replace("charge", "wait"), 1, "", [], "answer", 1, None, None, False, None, AT, AT,
            None, AT,
        ),
    ),
    undos=(
        wire.UndoItem(1, "release", ["r1"], False),
        wire.UndoItem(2, "close", ["c1"], True),
    ),
    messages=(wire.MessageItem(7, "decisions", "click-77", "Withdrawn", AT),),
    children=(),
    ledger=(),
    note=None,
)  # fmt: skip


def lines(view: wire.LifeView) -> list[str]:
    return [text for _, text in life.life(view)]


def test_a_late_answer_stands_beside_what_was_given() -> None:
    shown = lines(VIEW)
    at = shown.index('  charge#1 ["inv-1"]')
    assert shown[at + 1] == "    gave no answer before its limit, 2026-11-30 15:00:00"
    assert shown[at + 2] == '    came late, after the flow was given Unknown: {"Known":"r1"}'
    plain = replace(VIEW, attempts=(replace(VIEW.attempts[0], settled=False, given=None),))
    assert any("came late, after it was given up: " in text for text in lines(plain))


def test_a_life_has_all_of_it_in_order() -> None:
    shown = lines(VIEW)
    assert shown[0] == "expense:4411: paying, stopped"
    for part in (
        "  phase     finish, stopped since 2026-11-30 15:00:00",
        "  parent    batch",
        "  stopped   R0013: release could not undo",
        "            at pay (a.flow:12)",
        "            at run",
        '  result    {"reason":"withdrawn"}',
        "  a message on decisions",
        "  task 0/t#1: the time 2026-11-30 15:00:00",
        "  the end of 3 instances",
        "    failed, R0001: no, 2026-11-30 15:00:00",
        '  decisions: "Withdrawn", 2026-11-30 15:00:00, key click-77',
    ):
        assert part in shown
    undos = shown.index("undos, the next to run first")
    assert shown[undos + 1 : undos + 3] == ['  close ["c1"] (finally)', '  release ["r1"]']
    assert not any("wait#1" in text for text in shown), "what a wait gave is in the history"
    assert "\x1b" not in "".join(shown)


def test_a_long_value_is_cut_with_its_length() -> None:
    assert life.value("x" * 5_000).endswith("… (5,002 characters)")


def test_a_paused_instance_says_so() -> None:
    paused = replace(VIEW.instance, paused=True, stage=None, status="waiting")
    assert life.position(paused) == "expense:4411: start, waiting, paused"
