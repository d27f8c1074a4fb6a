"""Lints about any code, and E0305: W0103, W0106 to W0110."""

from __future__ import annotations

import pytest

from tests.compiler.rules_check import by_code, judge

HEAD = """
fn say<T>(value: T) { print("said") }
enum Act { Sign(token: String), View, Drop(why: String) }
fn load(n: Int) -> Result<Int, String> { return if n == 0 { Err("none") } else { Ok(n) } }
"""


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("E0305", "fn f(a: Act) { «match a» {\ncase Sign(t): say(t)\ncase View: say(1)\n} }"),
        (
            "E0305",
            (
                "fn f(a: Act) { «match a» {\ncase Sign(t) if t == t: say(t)\n"
                "case View | Drop(_): say(1)\n} }"
            ),
        ),
        ("E0305", "fn f(n: Int) -> Int { return «match n + 1» {\ncase 1: 2\n} }"),
        (
            "E0305",
            (
                "fn f(a: Act?) -> Int { return «match (a, 1)» {\ncase (Some(View), _): 2\n"
                "case (None, _): 3\n} }"
            ),
        ),
        ("W0103", "fn f(n: Int) { «load(n)» }"),
        ("W0103", "fn f(n: Int) { if n == 1 { «load(n)» } }"),
        ("W0103", "fn f(n: Int) { match n {\ncase 1: «load(n)»\ncase _: say(n)\n} }"),
        ("W0103", "fn f(n: Int) { for i in 0..n { «load(i)» } }"),
        ("W0103", "fn f(n: Int) { defer { «load(n)» }\nsay(n) }"),
        ("W0106", "fn f(n: Int) { let «x» = n }"),
        ("W0106", "fn f(n: Int) { var «x» = n\nx = 2 }"),
        ("W0106", "fn f(a: Act) { match a {\ncase Sign(«t»): say(1)\ncase _: say(2)\n} }"),
        ("W0106", "fn f(n: Int) { for «i» in 0..n { say(n) } }"),
        ("W0106", "fn f(n: List<Int>) { say(n.map(fn(«x») => 1)) }"),
        ("W0106", "fn f(n: List<Int>) { if let [first, ..«rest»] = n { say(first) } }"),
        ("W0107", "«import std.text»"),
        (
            "W0107",
            (
                "import std.text\n«import std.time»\n"
                'fn f(s: String) -> Bool { return text.matches(s, "a") }'
            ),
        ),
        ("W0108", "fn f(n: Int) -> Int { return n\n«say(n)» }"),
        ("W0108", 'fn f(n: Int) { fail("no")\n«say(n)»\nsay(n) }'),
        ("W0108", "fn f(n: Int) { while true { say(n) }\n«say(n)» }"),
        ("W0108", "fn f(n: Int) { for i in 0..n { if i == 1 { break\n«say(i)» } } }"),
        ("W0108", "fn f(n: List<Int>) { say(n.map(fn(x) { return x\n«say(1)» })) }"),
        ("W0109", "fn f(a: Act) { match a {\ncase _: say(1)\ncase «View»: say(2)\n} }"),
        (
            "W0109",
            (
                "fn f(a: Act) { match a {\ncase View: say(1)\n"
                "case Sign(_) | «View»: say(2)\ncase _: say(3)\n} }"
            ),
        ),
        (
            "W0109",
            (
                "fn f(n: Int) { match n {\ncase 1 | 2 | 3: say(1)\n"
                "case «2» if n == n: say(2)\ncase _: say(3)\n} }"
            ),
        ),
        (
            "W0110",
            "fn f(n: Int) -> Int { var x = n\nif n == 1 { let «x» = 2\nsay(x) }\nreturn x }",
        ),
    ],
)
def test_a_mistake_is_marked(code: str, body: str) -> None:
    found, expected = judge(HEAD + body)
    assert by_code(found, code) == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "fn f(n: Int) -> Result<Int, String> { let x = load(n)?\nreturn Ok(x) }",
        "fn f(n: Int) { let _ = load(n) }",
        "fn f(n: Int) -> Result<Int, String> { return if n == 1 { load(n) } else { load(2) } }",
        (
            "fn f(n: Int) -> Result<Int, String> { let x = match n {\ncase 1: load(n)\n"
            "case _: load(2)\n}\nreturn x }"
        ),
        "fn f(n: List<Int>) -> List<Result<Int, String>> { return n.map(fn(x) => load(x)) }",
        "fn f(n: List<Int>) -> List<Result<Int, String>> { return n.map(load) }",
        'test "t" { load(1) }',
        "fn f(a: Act) { match a {\ncase Sign(t) | Drop(t): say(t)\ncase View: say(1)\n} }",
        "fn f(n: Int) { let _x = n }",
        "struct P { x: Int }\nfn f(n: Int) -> P { let x = n\nreturn P { x } }",
        "fn f(n: Int) -> Int { var x = n\nif n == 1 { x = 2 }\nreturn x }",
        "fn f(n: Int) -> Int { let x = n\nif n == 1 { let x = 2\nsay(x) }\nreturn x }",
        "fn f(n: Int) -> Int { let x = n\nlet x = x + 1\nreturn x }",
        "fn f(n: Int) -> Int { while true { if n == 1 { return 2 } } }",
        'import std.text\nfn f(s: String) -> Bool { return text.matches(s, "a") }',
        (
            "import std.time\nfn f(d: time.Weekday) -> Int { return match d {\n"
            "case Monday: 1\ncase _: 2\n} }"
        ),
        "pub import std.text",
        "fn f(b: Bool) -> Int { return match b {\ncase true: 1\ncase false: 2\n} }",
        (
            "fn f(n: List<Int>) -> Int { return match n {\ncase []: 0\ncase [x]: x\n"
            "case [x, .., y]: x + y\n} }"
        ),
        (
            "fn f(r: Result<Int?, String>) -> Int { return match r {\ncase Ok(Some(n)): n\n"
            "case Ok(None): 0\ncase Err(_): 1\n} }"
        ),
    ],
)
def test_what_is_right_is_left_alone(body: str) -> None:
    found, _ = judge(HEAD + body)
    assert found == []


def test_missing_values_are_named_with_their_fix() -> None:
    text = HEAD + "fn f(a: Act) {\n    match a {\n        case View: say(1)\n    }\n}\n"
    (found,) = judge.diagnostics(text)
    assert found.message == "this `match` does not cover `Sign(_)` and `Drop(_)`"
    (fix,) = found.fixes
    assert judge.applied(text, fix) == text.replace(
        "case View: say(1)\n",
        'case View: say(1)\n        case Sign(_): fail("not handled")\n'
        '        case Drop(_): fail("not handled")\n',
    )
