"""Waits: F0006, F0014, F0016, W0102, W0105."""

from __future__ import annotations

import pytest

from tests.compiler.rules_check import by_code, judge

HEAR = "case let why = flow.cancelled(): say(why)"


def in_flow(body: str, members: str = "") -> str:
    head = 'extern step ask(who: String) -> Int on "mail"\nfn say<T>(value: T) { print("said") }\n'
    return (
        f"{head}flow F(u: String) {{\nchannel c: String\nchannel inner: String inside\n"
        f"channel q: Int answers Bool\n{members}\nrun {{\n{body}\nsay(u)\n}}\n}}"
    )


LISTENING = f"wait match {{\ncase let x = c.receive(): say(x)\n{HEAR}\n}}\n"


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ("«wait match» { case let x = c.receive(): say(x)\ncase after 1h: say(u) }", ""),
        ("say(«c.receive()»)", ""),
        ("«flow.sleep(1h)»", ""),
        ("«flow.sleepUntil(flow.now())»", ""),
        ("let t = task.start(ask, u)\nlet _ = «t.join()»", ""),
        ("helper()", "fn helper() { say(«c.receive()») }"),
        ("first()", "fn first() { second() }\nfn second() { say(«c.receive()») }"),
        ("[1].map(fn(x) { say(«c.receive()»)\nreturn x })", ""),
        ("let wait1 = fn() => «c.receive()»\nsay(wait1())", ""),
    ],
)
def test_a_listening_flow_hears_at_every_wait(body: str, members: str) -> None:
    found, expected = judge(in_flow(LISTENING + body, members))
    assert by_code(found, "F0006") == [expected]


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ("task.map([u], fn(x) { flow.sleep(1h)\nreturn x })", ""),
        ("task.map([u], helper)", "fn helper(x: String) -> String { return c.receive() }"),
        ("let t = task.start(helper)\nt.cancel()", "fn helper() { flow.sleep(1h) }"),
        ("say(c.poll())", ""),
        ('c.send("x")', ""),
        ("ask(u)", ""),
        ("let f = fn() => c.receive()\ntask.start(f)", ""),
        ("say(u)", "fn unused() { flow.sleep(1h) }"),
    ],
)
def test_what_need_not_hear(body: str, members: str) -> None:
    found, _ = judge(in_flow(LISTENING + body, members))
    assert by_code(found, "F0006") == []


def test_a_flow_without_the_case_waits_as_it_likes() -> None:
    found, _ = judge(in_flow("say(c.receive())\nflow.sleep(1h)"))
    assert by_code(found, "F0006") == []


def test_a_public_function_may_be_called_from_another_package() -> None:
    body = (
        "fn hear(u: String) { wait match { case after 1h: say(u)\n"
        "case let y = flow.cancelled(): say(y) } }"
    )
    assert by_code(judge(in_flow("say(1)") + "\npub " + body)[0], "F0014") == []
    assert len(by_code(judge(in_flow("say(1)") + "\n" + body)[0], "F0014")) == 1


def test_a_case_in_a_task_makes_no_listener() -> None:
    helper = f"fn helper() {{ wait match {{ case after 1h: say(u)\n{HEAR} }} }}"
    found, _ = judge(in_flow("task.start(helper)\nsay(c.receive())", helper))
    assert by_code(found, "F0006") == []
    assert by_code(found, "F0014") != []


@pytest.mark.parametrize(
    ("body", "members"),
    [
        (
            "task.start(h)",
            (
                "fn h() { wait match { case after 1h: say(u)\n"
                "case let y = «flow.cancelled()»: say(y) } }"
            ),
        ),
        (
            (
                "task.map([1], fn(x) { wait match { case after 1h: say(u)\n"
                "case let y = «flow.cancelled()»: say(y) }\nreturn x })"
            ),
            "",
        ),
        (
            "say(1)",
            (
                "fn h() { wait match { case after 1h: say(u)\n"
                "case let y = «flow.cancelled()»: say(y) } }"
            ),
        ),
    ],
)
def test_a_cancellation_is_heard_in_run_only(body: str, members: str) -> None:
    found, expected = judge(in_flow(body, members))
    assert by_code(found, "F0014") == [expected]


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ("say(«inner.receive()»)", ""),
        ("«wait match» { case let x = inner.receive(): say(x) }", ""),
        ("helper()", "fn helper() { say(«inner.receive()») }"),
    ],
)
def test_a_wait_nothing_can_end(body: str, members: str) -> None:
    found, expected = judge(in_flow(body, members))
    assert by_code(found, "F0016") == [expected]


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ("task.start(feed)\nsay(inner.receive())", 'fn feed() { inner.send("x") }'),
        ("wait match { case let x = inner.receive(): say(x)\ncase after 1h: say(u) }", ""),
        (
            (
                "wait match { case let x = inner.receive(): say(x)\n"
                "case let y = c.receive(): say(y) }"
            ),
            "",
        ),
        ("say(inner.poll())", ""),
    ],
)
def test_a_wait_that_can_end(body: str, members: str) -> None:
    found, _ = judge(in_flow(body, members))
    assert by_code(found, "F0016") == []


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ("let «r» = q.receive()\nsay(r.value)", ""),
        ("let «r» = q.receive()\nif r.value == 1 { r.answer(true) }", ""),
        ("let «r» = q.receive()\nif r.value == 1 { return }\nr.answer(true)", ""),
        (
            ("wait match { case let «r» = q.receive(): say(r.value)\ncase after 1h: say(u) }"),
            "",
        ),
        ("while true { stage s\nlet «r» = q.receive()\nif r.value == 1 { r.answer(true) } }", ""),
        ("while let Some(«r») = q.poll() { say(r.value) }", ""),
        ("let «_» = q.receive()", ""),
        ("«q.receive()»", ""),
        (
            "let «r» = q.receive()\nmatch r.value {\ncase 1: r.answer(true)\ncase _: say(u)\n}",
            "",
        ),
    ],
)
def test_a_request_is_answered_on_every_path(body: str, members: str) -> None:
    found, expected = judge(in_flow(body, members))
    assert by_code(found, "W0102") == [expected]


@pytest.mark.parametrize(
    ("body", "members"),
    [
        ("let r = q.receive()\nr.answer(r.value == 1)", ""),
        ("let r = q.receive()\nif r.value == 1 { r.answer(true) } else { r.answer(false) }", ""),
        ('let r = q.receive()\nif r.value == 1 { fail("no") }\nr.answer(true)', ""),
        ("let r = q.receive()\nhelper(r)", "fn helper(r: Request<Int, Bool>) { r.answer(true) }"),
        ("let r = q.receive()\ndefer { r.answer(true) }\nsay(r.value)", ""),
        ("while let Some(r) = q.poll() { r.answer(true) }", ""),
        ("let r = q.receive()\nlet f = fn() { r.answer(true) }\nf()", ""),
    ],
)
def test_a_request_that_is_answered(body: str, members: str) -> None:
    found, _ = judge(in_flow(body, members))
    assert by_code(found, "W0102") == []


@pytest.mark.parametrize(
    "body",
    [
        (
            "while true { stage s\nwait match { case let x = c.receive(): say(x)\n"
            "«case after 1h»: return } }"
        ),
        (
            "while true { stage s\n"
            "wait match { case let x = c.receive(): if x == u { continue }\nreturn\n"
            "«case after 1h»: return } }"
        ),
        (
            "for i in 0..3 { wait match { case let x = c.receive(): say(x)\n"
            "«case after 1h»: say(i) } }"
        ),
        (
            "let d = 1h\nwhile true { stage s(d)\n"
            "wait match { case let x = c.receive(): say(x)\n«case after d»: return } }"
        ),
    ],
)
def test_a_length_that_starts_again(body: str) -> None:
    found, expected = judge(in_flow(body))
    assert by_code(found, "W0105") == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "wait match { case let x = c.receive(): say(x)\ncase after 1h: return }",
        (
            "while true { stage s\nwait match { case let x = c.receive(): say(x)\n"
            "return\ncase after 1h: say(u) } }"
        ),
        (
            "while true { stage s\nwait match { case let x = c.receive(): say(x)\nbreak\n"
            "case after 1h: say(u) } }"
        ),
        (
            "let due = flow.now() + 1d\nwhile true { stage s(due)\n"
            "wait match { case let x = c.receive(): say(x)\n"
            "case after due - flow.now(): return } }"
        ),
        (
            "var d = 1h\nwhile true { stage s(d)\n"
            "wait match { case let x = c.receive(): say(x)\ncase after d: d = d * 2 } }"
        ),
        (
            "while true { stage s\nfor i in 0..3 { say(i)\n"
            "wait match { case let x = c.receive(): say(x)\nbreak\n"
            "case after 1h: say(u) } } }"
        ),
    ],
)
def test_a_length_that_does_not(body: str) -> None:
    found, _ = judge(in_flow(body))
    assert by_code(found, "W0105") == []
