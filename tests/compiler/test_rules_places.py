"""What may be done where: F0001, F0002, F0003, F0011, F0012, F0015.

«…» is the span that is marked.
"""

from __future__ import annotations

import pytest

from tests.compiler.rules_check import by_code, judge

STEPS = """
import std.env
import std.http
import std.time
extern step ask(who: String) -> Int on "mail"
fn say<T>(value: T) { print("said") }
step fetch(url: String) -> Int { return http.get(url).status }
"""


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("F0001", "flow F(u: String) { run { let r = «http.get(u)»\nsay(r.text) } }"),
        ("F0001", 'flow F(u: String) { run { say("\\(u) \\(«env.require("X")»)") } }'),
        (
            "F0001",
            (
                "flow F(u: String) { run { say(text(u)) } }\n"
                "fn text(u: String) -> String { return «http.get(u)».text }"
            ),
        ),
        ("F0001", "flow F(u: List<String>) { run { task.map(u, fn(x) => «http.get(x)».status) } }"),
        (
            "F0001",
            (
                "flow F(u: List<String>) { run { say(u.map(look)) }\n"
                "fn look(x: String) -> Int { return «http.get(x)».status } }"
            ),
        ),
        (
            "F0001",
            (
                "flow F(u: String) { run { let look = fn(x: String) => «http.get(x)».status\n"
                "say(look(u)) } }"
            ),
        ),
        ("F0001", "flow F(u: String) { run { let now = «time.now()»\nsay(u)\nsay(now) } }"),
        ("F0001", "flow F(u: String) { run { say(«flow.key()»)\nsay(u) } }"),
        ("F0001", "flow F(u: String) { var n = «time.now()»\nrun { say(u)\nsay(n) } }"),
        (
            "F0001",
            ("flow F(u: String) { run { say(u) }\nview v -> Int { return «http.get(u)».status } }"),
        ),
        (
            "F0001",
            (
                "flow F(u: String) { run { say(twice(fn() => «http.get(u)».status)) } }\n"
                "fn twice(f: fn() -> Int) -> Int { return f() + f() }"
            ),
        ),
        (
            "F0001",
            (
                "flow F(u: String) { view age -> Time { return time.now() }\n"
                "run { say(u)\nsay(«age()») } }"
            ),
        ),
        ("F0003", "step s(x: Int) -> Int { «flow.sleep(1h)»\nreturn x }"),
        (
            "F0003",
            (
                "step s(x: Int) -> Int { return wave(x) }\n"
                "fn wave(x: Int) -> Int { «flow.sleep(1h)»\nreturn x }"
            ),
        ),
        ("F0003", "step s(x: Int) -> Time { say(x)\nreturn «flow.now()» }"),
        (
            "F0003",
            "flow F(u: String) { run { say(u) }\nview v -> String { return «flow.id()» } }",
        ),
        ("F0003", "flow F(u: String) { run { say(u) }\nview v -> Int { return «ask(u)» } }"),
        ("F0003", 'flow F(u: String) { var n = «ask("a")»\nrun { say(u)\nsay(n) } }'),
        ("F0003", "flow F(u: List<String>) { run { say(u.sortBy(fn(x) => «ask(x)»)) } }"),
        ("F0003", "flow F(u: List<String>) { run { say(u.sortBy(«ask»)) } }"),
        (
            "F0003",
            (
                "flow F(u: List<String>) { run { say(order(u, fn(x) => «ask(x)»)) } }\n"
                "fn order(u: List<String>, by: fn(String) -> Int) -> List<String> { return "
                "u.sortBy(by) }"
            ),
        ),
        (
            "F0003",
            (
                "flow F(u: String) { channel c: Int\nvar due = flow.now()\n"
                "run { wait match { case when «ask(u)» > 0: say(due)\n"
                "case let x = c.receive(): say(x) } } }"
            ),
        ),
        ("F0003", "flow F(u: String, at: Time = «flow.now()») { run { say(u)\nsay(at) } }"),
        ("F0012", 'step s(x: Int) -> Int { return «ask("a")» + x }'),
        ("F0012", "step s(x: List<String>) -> List<Int> { return x.map(«ask») }"),
        (
            "F0012",
            (
                "step s(x: Int) -> Int { return more(x) }\n"
                'fn more(x: Int) -> Int { return «ask("a")» + x }'
            ),
        ),
        ("F0002", 'extern step s(f: «fn(Int) -> Int») on "a"'),
        ("F0002", 'extern step s(x: Int) -> «Task<Int>» on "a"'),
        ("F0002", 'struct S { f: fn(Int) -> Int }\nextern step s(x: «List<S>») on "a"'),
        ("F0002", "flow F(f: «fn(Int) -> Int») { run { say(f(1)) } }"),
        (
            "F0002",
            (
                "flow F(u: String) { channel c: «Task<Int>»\nrun { say(u)\n"
                "say(c.receive().join().isOk()) } }"
            ),
        ),
        ("F0002", "flow F(u: String) { var «t» = fn(x: Int) => x\nrun { say(u)\nsay(t(1)) } }"),
        (
            "F0002",
            (
                "flow F(u: String) { run { let t = task.start(ask, u)\nflow.sleep(1h)\n"
                "stage s(«t»)\nsay(t.join().isOk()) } }"
            ),
        ),
        ("F0011", "flow F(u: String) { run { flow.undo(«u») } }"),
        ("F0011", "flow F(u: String) { run { flow.finally(«say(u)») } }"),
        ("F0011", 'extern step s(u: String) undo «say(u)» on "a"'),
        (
            "F0011",
            (
                "flow G(n: Int) { run { say(n) } }\n"
                "flow F(u: String) { run { let g = G.start(u, 1)\nlet _ = flow.detach(«g») } }"
            ),
        ),
        ("F0015", 'extern step s(u: String) «within 0s» on "a"'),
        ("F0015", 'extern step s(u: String) «within 366d» on "a"'),
        ("F0015", 'const long = 300d\nextern step s(u: String) «within long * 2» on "a"'),
        ("F0015", 'extern step s(u: String) «tries 0» on "a"'),
        ("F0015", 'extern step s(u: String) «tries -1» on "a"'),
        ("F0015", 'extern step s(u: String) «backoff 5m to 1s» on "a"'),
        ("F0015", 'extern step s(u: String) «limit 0 per 1m» on "a"'),
        ("F0015", 'extern step s(u: String) -> Settled<Int> «tries 3» on "a"'),
        ("F0015", "step s(u: String) «beat 30s» { say(u) }"),
        ("F0015", 'step s(u: String) «on "a"» { say(u) }'),
        (
            "F0015",
            (
                'steps within 10s «on "a"» {\nextern step a(u: String)\n'
                "step b(u: String) { say(u) }\n}"
            ),
        ),
        (
            "F0015",
            (
                'steps «tries 3» {\nextern step a(u: String) on "a"\n'
                'extern step b(u: String) -> Settled<Int> on "a"\n}'
            ),
        ),
        (
            "F0015",
            ("flow F(u: String) { channel c: Int capacity «0»\nrun { say(u)\nsay(c.receive()) } }"),
        ),
        ("F0015", "flow F(u: String) keep «-1d» { run { say(u) } }"),
    ],
)
def test_a_mistake_is_marked(code: str, body: str) -> None:
    found, expected = judge(STEPS + body)
    assert by_code(found, code) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "flow F(u: String) { run { say(fetch(u)) } }",
        "flow F(u: List<String>) { run { say(task.map(u, fetch)) } }",
        "flow F(u: List<String>) { run { say(u.map(fn(x) => ask(x))) } }",
        "flow F(u: List<String>) { run { say(u.sortBy(fn(x) => x.len())) } }",
        "flow F(u: String) { run { say(u) }\nview v -> Time { return time.now() } }",
        "flow F(u: String) { var due = flow.now() + 1d\nrun { say(u)\nsay(due) } }",
        'flow F(u: String) { run { flow.undo(drop(u)) }\n}\nextern step drop(u: String) on "a"',
        'step s(u: String) { flow.undo(drop(u)) }\nextern step drop(u: String) on "a"',
        (
            "step s(u: String) -> Int { if flow.attempt() > 3 { fail(flow.key()) }\n"
            "return look(u) }\nfn look(u: String) -> Int { return http.get(u).status }"
        ),
        (
            'extern step s(u: String) -> Result<Int, String> tries 3 for 1h else Err("no") '
            'undo drop(u) on "q-\\(u)"\nextern step drop(u: String) on "a"'
        ),
        'steps tries 3 on "a" {\nextern step a(u: String) -> Int\n}',
        (
            "flow F(u: String) keep 1s { channel c: Json capacity 1\nrun { say(u)\n"
            "say(c.receive()) } }"
        ),
        (
            "flow F(u: String) { run { say(fold([1], fn(n) => ask(u) + n)) } }\n"
            "fn fold(xs: List<Int>, f: fn(Int) -> Int) -> Int { return f(xs[0]) }"
        ),
        (
            "flow F(u: List<String>) { run { say(order(u, fn(x) => x.len())) } }\n"
            "fn order(u: List<String>, by: fn(String) -> Int) -> List<String> { return "
            "u.sortBy(by) }"
        ),
    ],
)
def test_what_is_right_is_left_alone(body: str) -> None:
    found, _ = judge(STEPS + body)
    assert [each for each in found if not each.startswith("W0107")] == []


def test_the_chain_of_calls_is_labelled() -> None:
    diagnostics = judge.diagnostics(
        STEPS
        + "flow F(u: List<String>) { run { task.map(u, first) }\n"
        + "fn first(x: String) { second(x) }\n"
        + "fn second(x: String) { say(http.get(x).text) } }"
    )
    (found,) = [each for each in diagnostics if each.code == "F0001"]
    assert found.message == "`http.get` is an effect, and `second` runs in the flow `F`"
    assert [label.text for label in found.labels] == [
        "`run` starts as a task `first` here",
        "`first` calls `second` here",
    ]


def test_an_effect_two_flows_reach_is_marked_once() -> None:
    found, _ = judge(
        STEPS
        + "flow F(u: String) { run { look(u) } }\nflow G(u: String) { run { look(u) } }\n"
        + "fn look(u: String) { say(http.get(u).text) }"
    )
    assert len(by_code(found, "F0001")) == 1
