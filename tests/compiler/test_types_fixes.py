"""Fixes: what they are, and that the text they make is right."""

from __future__ import annotations

import pytest

from tests.compiler.types_check import analyse, fixed, the_one

FIXES = [
    (
        "fn f(count: Int) -> Int { return cuont }",
        "Change to `count`",
        "fn f(count: Int) -> Int { return count }",
    ),
    (
        "fn f(u: String) -> Int { return http.get(u).status }",
        "Import `std.http`",
        "import std.http\n\nfn f(u: String) -> Int { return http.get(u).status }",
    ),
    (
        "import std.env\nfn f(x: Response) -> Int { return x.status }",
        "Import `std.http` and write `http.Response`",
        "import std.env\nimport std.http\nfn f(x: http.Response) -> Int { return x.status }",
    ),
    (
        "enum A { B }\nfn f() -> A { let x = B\n return x }",
        "Write `A.B`",
        "enum A { B }\nfn f() -> A { let x = A.B\n return x }",
    ),
    (
        "fn f() -> Int { let n = 1\n n += 1\n return n }",
        "Declare it with `var`",
        "fn f() -> Int { var n = 1\n n += 1\n return n }",
    ),
    (
        "fn f(n: Int) -> Int {\n    n += 1\n    return n\n}",
        "Copy it into a variable: `var n = n`",
        "fn f(n: Int) -> Int {\n    var n = n\n    n += 1\n    return n\n}",
    ),
    (
        "struct S { n: Int }\nfn add(self: S) { self.n += 1 }",
        "Declare the method with `var self`",
        "struct S { n: Int }\nfn add(var self: S) { self.n += 1 }",
    ),
    (
        "struct S { n: Int }\nfn f(xs: List<S>) -> List<S> {\n"
        "    var ys = xs\n    for y in ys { y.n = 1 }\n    return ys\n}",
        "Iterate `ys.enumerate()` and assign `ys[index]`",
        "struct S { n: Int }\nfn f(xs: List<S>) -> List<S> {\n"
        "    var ys = xs\n    for (index, y) in ys.enumerate() { ys[index].n = 1 }\n"
        "    return ys\n}",
    ),
    (
        "flow F(n: Int) -> Int { run { let a = n\n stage s(a, n)\n return a } }",
        "Leave it out",
        "flow F(n: Int) -> Int { run { let a = n\n stage s(a)\n return a } }",
    ),
    (
        "flow F(n: Int) -> Int { run { stage s(n)\n return n } }",
        "Leave it out",
        "flow F(n: Int) -> Int { run { stage s\n return n } }",
    ),
    (
        "struct S { a: Int, b: String }\nfn f() -> S { return S { a: 1 } }",
        "Add the missing field",
        'struct S { a: Int, b: String }\nfn f() -> S { return S { a: 1, b: "" } }',
    ),
    (
        "struct S { a: Int, b: Bool }\nfn f() -> S { return S {} }",
        "Add the missing fields",
        "struct S { a: Int, b: Bool }\nfn f() -> S { return S { a: 0, b: false } }",
    ),
    (
        "struct S { a: Int, b: Bool }\nfn f() -> S {\n    return S {\n        a: 1\n    }\n}",
        "Add the missing field",
        "struct S { a: Int, b: Bool }\nfn f() -> S {\n"
        "    return S {\n        a: 1\n        b: false\n    }\n}",
    ),
    (
        "fn g(a: Int, b: Int) {}\nfn f() { g(1) }",
        "Give `b: Int`",
        "fn g(a: Int, b: Int) {}\nfn f() { g(1, b: 0) }",
    ),
    (
        "fn g(a: Int) {}\nfn f() { g(1, 2) }",
        "Leave out what is too much",
        "fn g(a: Int) {}\nfn f() { g(1) }",
    ),
    (
        "fn f(n: Int) -> Int? { return n }",
        "Wrap it in `Some`",
        "fn f(n: Int) -> Int? { return Some(n) }",
    ),
    (
        "fn f(n: Int?) -> Int { return n }",
        "Give a default with `??`",
        "fn f(n: Int?) -> Int { return n ?? 0 }",
    ),
    (
        "fn f(n: Int) -> Result<Int, String> { return n }",
        "Wrap it in `Ok`",
        "fn f(n: Int) -> Result<Int, String> { return Ok(n) }",
    ),
    (
        "fn f(n: Int) -> String { return n + 1 }",
        "Turn it into text",
        'fn f(n: Int) -> String { return "\\(n + 1)" }',
    ),
    (
        "fn f(n: Int) -> Decimal { return n + 1 }",
        "Convert it to `Decimal`",
        "fn f(n: Int) -> Decimal { return (n + 1).toDecimal() }",
    ),
    (
        "fn f(s: List<Int>) -> Set<Int> { return s }",
        "Make it a set",
        "fn f(s: List<Int>) -> Set<Int> { return s.toSet() }",
    ),
    (
        'fn f(s: String) -> String { return "a" + s }',
        "Join them in a text",
        'fn f(s: String) -> String { return "a\\(s)" }',
    ),
    (
        "fn f(a: List<Int>) -> List<Int> { return a + a }",
        "Use `.concat`",
        "fn f(a: List<Int>) -> List<Int> { return a.concat(a) }",
    ),
    (
        "fn f(n: Int, d: Duration) -> Duration { return n * d }",
        "Put the duration first",
        "fn f(n: Int, d: Duration) -> Duration { return d * n }",
    ),
    (
        "fn f(a: Int?) -> Result<Int, String> { return Ok(a?) }",
        "Turn `None` into an `Err` with `.okOr`",
        'fn f(a: Int?) -> Result<Int, String> { return Ok(a.okOr("missing")?) }',
    ),
    (
        "fn f(n: Int) -> Int { if n > 1 { return 1 }\n n }",
        "Return it",
        "fn f(n: Int) -> Int { if n > 1 { return 1 }\n return n }",
    ),
    (
        "struct S { a: Int }\nfn f() -> S { return S(1) }",
        "Write a struct literal",
        "struct S { a: Int }\nfn f() -> S { return S { a: 1 } }",
    ),
    (
        "enum E { A(n: Int) }\nfn f(e: E) -> Bool { return match e { case A: true } }",
        "Match any value",
        "enum E { A(n: Int) }\nfn f(e: E) -> Bool { return match e { case A(_): true } }",
    ),
    (
        "struct S { a: Int, b: Int }\nfn f(s: S) -> Int { let S { a } = s\n return a }",
        "Add `..`",
        "struct S { a: Int, b: Int }\nfn f(s: S) -> Int { let S { a, .. } = s\n return a }",
    ),
    (
        "fn f(s: String) { for c in s { print(c) } }",
        "Go through its characters",
        "fn f(s: String) { for c in s.chars() { print(c) } }",
    ),
    (
        "flow F(n: Int) -> Int { run { return n } }\nfn f(x: F) -> Int { return 1 }",
        "Take an instance",
        "flow F(n: Int) -> Int { run { return n } }\nfn f(x: Instance<F>) -> Int { return 1 }",
    ),
    (
        "flow F(n: Int) -> Int {\n view v -> Int { return n }\n run { return v }\n}",
        "Call it",
        "flow F(n: Int) -> Int {\n view v -> Int { return n }\n run { return v() }\n}",
    ),
]


@pytest.mark.parametrize(("text", "title", "after"), FIXES)
def test_a_fix_makes_the_text_right(text: str, title: str, after: str) -> None:
    assert fixed(text, title) == after


def test_a_method_of_a_module_that_is_not_imported() -> None:
    others = {
        "a": "struct S { n: Int }\n",
        "b": "import a\nfn twice(self: a.S) -> Int { return 2 }\n",
    }
    text = "import a\nfn f(s: a.S) -> Int { return s.twice() }"
    assert fixed(text, "Import `b`", others) == (
        "import a\nimport b\nfn f(s: a.S) -> Int { return s.twice() }"
    )


def test_an_import_goes_below_the_module_s_text_and_above_the_first_declaration_s() -> None:
    text = "//! About it.\n\n/// Asks.\nfn f(u: String) -> Int { return http.get(u).status }"
    assert fixed(text, "Import `std.http`").startswith(
        "//! About it.\n\nimport std.http\n\n/// Asks.\nfn f"
    )


def test_an_import_of_another_module_of_the_package() -> None:
    others = {"hours": "pub struct Schedule { zone: String }\n"}
    text = "struct Ticket { schedule: Schedule }"
    assert fixed(text, "Import `hours` and write `hours.Schedule`", others) == (
        "import hours\n\nstruct Ticket { schedule: hours.Schedule }"
    )


def test_at_most_three_names_are_offered() -> None:
    text = "fn f(ab1: Int, ab2: Int, ab3: Int, ab4: Int) -> Int { return ab5 }"
    titles = [fix.title for fix in the_one(text).fixes]
    assert titles == ["Change to `ab1`", "Change to `ab2`", "Change to `ab3`"]


def test_labels_point_at_declarations() -> None:
    text = "fn g(amount: Decimal) {}\nfn f(n: Int) { g(n) }"
    (label,) = the_one(text).labels
    assert (text[slice(*label.span)], label.text) == (
        "amount: Decimal",
        "the parameter `amount` of `g`",
    )


def test_two_types_of_one_name_are_told_apart_by_their_modules() -> None:
    others = {"a": "struct S { n: Int }\n"}
    text = "import a\nstruct S { n: Int }\nfn f(s: a.S) -> S { return s }"
    assert the_one(text, others).message == "expected `m.S`, found `a.S`"


def test_what_another_package_keeps_to_itself() -> None:
    others = {"money.rates": "struct Rate { n: Int }\npub struct Open { n: Int }\n"}
    text = "import money.rates\nfn f(a: rates.Open, b: rates.Rate) -> Int { return 1 }"
    found = analyse(text, others, {"money.rates": "money"})[1]
    assert [(d.code, text[slice(*d.span)]) for d in found] == [("E0205", "Rate")]
