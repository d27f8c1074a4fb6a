"""Stages, migrations and fields: F0004, F0005, F0008, F0009, E0218, W0101, W0104."""

from __future__ import annotations

import pytest

from tests.compiler.rules_check import by_code, judge

HEAD = """extern step ask(who: String) -> Int on "mail"
fn say<T>(value: T) { print("said") }
"""


def in_run(body: str, members: str = "") -> str:
    return f"{HEAD}flow F(u: String) {{\nchannel c: String\n{members}\nrun {{\n{body}\n}}\n}}"


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("F0004", "for i in 0..3 { «stage s(i)» }"),
        ("F0004", "for i in 0..3 { while true { «stage s(i)»\nbreak } }"),
        ("F0004", "let f = fn() { «stage s» }\nf()"),
        ("F0004", "defer { «stage s» }\nsay(u)"),
        ("F0004", "let n = if u == u { «stage s»\n1 } else { 2 }\nsay(n)"),
        ("F0004", "say(match u {\ncase _:\n«stage s»\n1\n})"),
        ("F0005", "let n = ask(u)\nstage s\nsay(«n»)"),
        ("F0005", "let n = ask(u)\nlet m = ask(u)\nstage s(m)\nsay(m + «n»)"),
        ("F0005", "let n = ask(u)\nif n == 1 { stage s }\nsay(«n»)"),
        ("F0005", "var n = 0\nwhile «n» < 3 { stage s\nlet _ = c.receive() }"),
        (
            "F0005",
            (
                "let n = ask(u)\nwhile true { stage s\n"
                "wait match { case let _ = c.receive(): say(«n»)\ncase after 1h: return } }"
            ),
        ),
        ("F0005", 'let n = ask(u)\nstage s\nsay("\\(«n»)")'),
        ("F0005", "let n = ask(u)\nstage s\nsay([1].map(fn(x) => x + «n»))"),
        ("F0005", "let n = ask(u)\nstage s\nstage t(«n»)"),
        ("F0005", "var n = 0\nstage s\n«n» = 1"),
        ("F0005", "let n = ask(u)\ndefer { say(«n») }\nstage s\nlet _ = c.receive()"),
        ("F0009", "stage s\nlet a = c.receive()\nstage «s»\nsay(u)"),
        ("W0101", "«while true» { flow.sleep(1h) }"),
        (
            "W0101",
            (
                "«while true» { wait match { case let x = c.receive(): if x == u { return }\n"
                "case after 1h: return } }"
            ),
        ),
        # A task that lives on where the loop begins would make a stage in it vain (W0104); one
        # that is cancelled before does not.
        (
            "W0101",
            "let t = task.start(forever)\nt.cancel()\n«while true» { let _ = c.receive() }",
        ),
        ("W0101", "while true { stage s\n«while true» { if c.receive() == u { break } } }"),
        ("W0104", "let t = task.start(ask, u)\n«stage s»\nlet _ = c.receive()"),
        ("W0104", "task.start(ask, u)\nif u == u { «stage s» }\nlet _ = c.receive()"),
        (
            "W0104",
            (
                "task.start(forever)\nlet _ = c.receive()\nwhile true { «stage s»\n"
                "let _ = c.receive() }"
            ),
        ),
    ],
)
def test_a_mistake_is_marked(code: str, body: str) -> None:
    members = "fn forever() { while true { flow.sleep(1h) } }" if "forever" in body else ""
    found, expected = judge(in_run(body, members))
    assert by_code(found, code) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "stage s\nsay(u)",
        "if u == u { stage s } else { stage t }",
        "match u {\ncase _: stage s\n}",
        "wait match { case let x = c.receive(): say(x)\nstage s\ncase after 1h: return }",
        "let n = ask(u)\nstage s(n)\nsay(n)",
        "stage s\nlet n = ask(u)\nsay(n)",
        "while true { stage s\nlet n = ask(u)\nif n == 1 { return } }",
        "var n = 0\nwhile n < 3 { stage s(n)\nn += ask(u) }",
        "var n = 0\nwhile n < 3 { if n == 1 { stage s(n) }\nn += ask(u) }",
        "let n = ask(u)\nif n == 1 { stage s\nreturn }\nsay(n)",
        "while true { stage s\nif c.receive() == u { return } }",
        "for i in 0..3 { say(i)\nflow.sleep(1h) }",
        "let t = task.start(ask, u)\nlet _ = t.join()\nstage s\nsay(u)",
        "let t = task.start(ask, u)\nt.cancel()\nstage s\nsay(u)",
        "let t = task.start(ask, u)\nflow.sleep(1h)\nstage s\nsay(u)",
        "if u == u { task.start(ask, u) }\nstage s\nsay(u)",
        "while true { stage s\nlet _ = c.receive()\ntask.start(ask, u) }",
    ],
)
def test_what_is_right_is_left_alone(body: str) -> None:
    found, _ = judge(in_run(body))
    assert [each for each in found if each.split()[0] not in ("W0106", "W0103")] == []


def test_a_loop_needs_no_stage_that_would_be_vain() -> None:
    members = "fn forever() { while true { flow.sleep(1h) } }"
    found, _ = judge(in_run("task.start(forever)\nwhile true { say(c.receive()) }", members))
    assert found == []


def test_a_variable_that_a_stage_does_not_carry_is_told_once() -> None:
    body = "let n = ask(u)\nlet m = ask(u)\nstage s\nsay(«n»)\nsay(n + m)\nsay(m)"
    found, expected = judge(in_run(body))
    assert len(by_code(found, "F0005")) == 2
    assert by_code(found, "F0005")[0] == expected


@pytest.mark.parametrize(
    ("members", "body"),
    [
        ("var «n»: Int", "say(c.receive())\nn = 1\nsay(n)"),
        ("var «n»: Int", "if u == u { n = 1 }\nlet _ = c.receive()\nsay(u)"),
        ("var «n»: Int", "say(n)\nn = 1"),
        ("var «n»: Int", "say(u)"),
        ("var «n»: Int", "if u == u { return }\nn = 1\nsay(n)"),
        ("var «n»: Int", "while u == u { n = 1 }\nlet _ = c.receive()\nsay(n)"),
        ("var «n»: Int\nfn begin() { let _ = c.receive()\nn = 1 }", "begin()\nsay(n)"),
        (
            "var «n»: Int\nfn begin() { if u == u { n = 1 } }",
            "begin()\nlet _ = c.receive()\nsay(n)",
        ),
        ("var «n»: Int", "n += 1"),
        ("var «n»: Int", "stage s\nn = 1"),
    ],
)
def test_a_field_needs_its_value_early(members: str, body: str) -> None:
    found, expected = judge(in_run(body, members))
    assert by_code(found, "E0218") == [expected]


@pytest.mark.parametrize(
    ("members", "body"),
    [
        ("var n: Int", "n = ask(u)\nlet _ = c.receive()\nsay(n)"),
        ("var n: Int", "if u == u { n = 1 } else { n = 2 }\nlet _ = c.receive()\nsay(n)"),
        ("var n: Int\nfn begin() { n = 1 }", "begin()\nlet _ = c.receive()\nsay(n)"),
        ("var n: Int\nfn begin() { n = 1\nlet _ = c.receive() }", "begin()\nsay(n)"),
        ("var n: Int", 'if u == u { fail("no") }\nn = 1\nsay(n)'),
        ("var n: Int", "while true { if u == u { n = 1\nbreak } }\nsay(n)"),
        ("var n = 1", "say(c.receive())\nsay(n)"),
    ],
)
def test_a_field_that_has_its_value_in_time(members: str, body: str) -> None:
    found, _ = judge(in_run(body, members))
    assert by_code(found, "E0218") == []


@pytest.mark.parametrize(
    "migration",
    [
        "migrate a(n: Int) { say(n) «}»",
        "migrate a(n: Int) { if n == 1 { become s } «}»",
        "migrate a(n: Int) { if n == 1 { return }\nbecome s «}»",
        "migrate a(n: Int) { match n {\ncase 1: become s\ncase _: say(n)\n} «}»",
        "migrate a(n: Int) { say(n)\nbecome «t» }",
    ],
)
def test_a_migration_becomes_a_stage(migration: str) -> None:
    found, expected = judge(in_run("stage s\nsay(u)", migration))
    assert by_code(found, "F0008")[:1] == [expected]


@pytest.mark.parametrize(
    "migration",
    [
        "migrate a(n: Int) { say(n)\nbecome s }",
        "migrate a(n: Int) { if n == 1 { become s }\nbecome s(v: n) }",
        'migrate a(n: Int) { match n {\ncase 1: become s\ncase _: fail("no")\n} }',
        'migrate a(n: Int) { say(n)\nbecome s(u: "x") }',
    ],
)
def test_a_migration_that_is_right(migration: str) -> None:
    found, _ = judge(in_run("stage s\nsay(u)", f"var v = 1\n{migration}"))
    assert by_code(found, "F0008") == []


@pytest.mark.parametrize(
    "members",
    [
        "channel «c»: Int",
        "var «c» = 1",
        "view «c» -> Int { return 1 }",
        'extern step «c»() on "a"',
        "migrate a(n: Int) { say(n)\nbecome s }\nmigrate «a»(n: Int) { say(n)\nbecome s }",
    ],
)
def test_a_name_is_given_once(members: str) -> None:
    found, expected = judge(in_run("stage s\nsay(u)", members))
    assert by_code(found, "F0009") == [expected]


def test_a_stage_and_a_channel_may_have_one_name() -> None:
    found, _ = judge(in_run("stage c\nsay(c.receive())\nsay(u)"))
    assert found == []
