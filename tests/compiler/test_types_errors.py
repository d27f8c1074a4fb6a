"""Every mistake in names and types is one diagnostic, with its code, at the smallest span."""

from __future__ import annotations

import pytest

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.types.checker import check
from tests.compiler.types_check import analyse, marked, problems

WRONG = [
    # names
    ("E0201", "fn f(n: Int) -> Int { return «m» }"),
    ("E0201", "fn f() -> Int { return «twice»(2) }"),
    ("E0201", "enum A { B }\nfn f() -> Int { let x = «Q»\n return 1 }"),
    ("E0202", "fn f(n: «Intt») -> Int { return 1 }"),
    ("E0202", "fn f(n: «http».Response) -> Int { return 1 }"),
    ("E0202", "fn f<T: «Dta»>(n: T) -> Int { return 1 }"),
    ("E0203", "import «billing.invoice»\nfn f() -> Int { return 1 }"),
    ("E0204", "import std.text.{«lenght»}\nfn f() -> Int { return 1 }"),
    ("E0204", "import std.text\nfn f() -> Int { return text.«lenght» }"),
    ("E0206", "struct A { x: Int }\nenum «A» { B }"),
    ("E0206", "fn f(x: Int, «x»: Int) -> Int { return x }"),
    ("E0206", "struct A { x: Int, «x»: Int }"),
    ("E0206", "enum A { B, «B» }"),
    ("E0206", "import std.text\nfn text() -> Int { return 1 }".replace("std.text", "std.«text»")),
    (
        "E0206",
        "flow F(p: Int) -> Int {\n var x = p\n run { return x }\n fn «x»() -> Int { return 1 }\n}",
    ),
    ("E0206", "flow F(p: Int) -> Int {\n var «p» = 1\n run { return p }\n}"),
    ("E0207", "const «a» = b + 1\nconst b = a + 1"),
    ("E0208", "flow F(p: Int) -> Int {\n var x = 0\n run { let «x» = p\n return x }\n}"),
    (
        "E0208",
        "flow F(p: Int) -> Int {\n channel c: Int\n run { return f(p) }\n"
        " fn f(«c»: Int) -> Int { return c }\n}",
    ),
    ("E0209", "fn f(p: (Int, Int)) -> Int { let (a, «a») = p\n return a }"),
    ("E0210", "fn f(p: Int?) -> Int { return match p { case Some(x) | «None»: 1 } }"),
    (
        "E0213",
        "struct A { x: Int }\nfn g(self: A) -> Int { return 1 }\n"
        "fn «g»(self: A) -> Int { return 2 }",
    ),
    (
        "E0214",
        "fn f(xs: List<Int>) -> Int {\n var n = 0\n xs.map(fn(x) { «n» = x\n return 1 })\n"
        " return n\n}",
    ),
    ("E0215", "flow F(p: Int) -> Int {\n var a = «b»\n var b = p\n run { return a }\n}"),
    ("E0216", "fn f(n: Int) -> Int {\n «n» = 2\n return n\n}"),
    ("E0216", "fn f() -> Int {\n let n = 1\n «n» += 2\n return n\n}"),
    ("E0216", "flow F(p: Int) -> Int {\n run { «p» = 2\n return p }\n}"),
    ("E0216", "const c = 1\nfn f() { «c» = 2 }"),
    ("E0216", "fn f(xs: List<Int>) -> Int { «xs».append(1)\n return xs.len() }"),
    ("E0216", "fn f() -> Int { «[1]».append(2)\n return 1 }"),
    ("E0216", "struct S { n: Int }\nfn bump(self: S) { «self.n» += 1 }"),
    (
        "E0216",
        "flow F(p: Int) -> Int {\n channel c: Int answers Int\n"
        " run { var r = c.receive()\n «r.value» = 1\n return p }\n}",
    ),
    ("E0217", "flow F(p: Int) -> Int {\n run { stage s(«p»)\n return p }\n}"),
    ("E0201", "flow F(p: Int) -> Int {\n run { stage s(«q»)\n return p }\n}"),
    ("E0219", "fn f() { «break» }"),
    ("E0219", "fn f(xs: List<Int>) { for x in xs { defer { «continue» } } }"),
    ("E0220", "import std.text\nfn f() -> Int { let x = «text»\n return 1 }"),
    ("E0220", "struct A { x: Int }\nfn f() -> Int { let x = «A»\n return 1 }"),
    ("E0220", "flow F(p: Int) -> Int {\n view v -> Int { return p }\n run { return «v» }\n}"),
    ("E0221", "native fn «f»(x: Int) -> Int"),
    ("E0222", "flow F(p: Int) -> Int {\n channel «steps»: Int\n run { return p }\n}"),
    # types
    ("E0301", "fn f(n: Int) -> String { return «n» }"),
    ("E0301", "fn f(n: Int) -> Int { let x: String = «n»\n return 1 }"),
    ("E0301", 'fn f(n: Int) -> Int { return if n > 1 { «"a"» } else { 2 } }'),
    ("E0301", 'fn f(n: Int) -> Int { return match n { case 1: 1\n case _: «"a"» } }'),
    ("E0301", 'fn f(n: Int) -> Int { let x = if n > 1 { 1 } else { «"a"» }\n return x }'),
    ("E0301", "fn f(n: Int) -> Int { return «if n > 1 { 1 }» }"),
    ("E0301", "fn f(n: Int) -> Int { if «n» { return 1 }\n return 2 }"),
    ("E0301", "fn f(n: Int) -> Int { while «n» { return 1 }\n return 2 }"),
    ("E0301", 'fn f(n: Int) -> Bool { return n == «"a"» }'),
    ("E0301", 'fn f(n: Int) -> Bool { return n < «"a"» }'),
    ("E0301", "fn f(n: Int) -> Bool { return n > 0 && «n» }"),
    (
        "E0301",
        'fn f(n: Int) -> Bool { return «n» in ["a"] }'.replace("«n»", "n").replace('"a"', '«"a"»'),
    ),
    ("E0301", 'fn f(n: Int?) -> Int { return n ?? «"a"» }'),
    ("E0301", 'fn f(n: Int) -> List<Int> { return [n, «"a"»] }'),
    ("E0301", 'fn f(n: Int) -> Int { let x = [n, «"a"»]\n return 1 }'),
    ("E0301", 'fn f() -> Map<String, Int> { return ["a": 1, "b": «"c"»] }'),
    ("E0301", "fn f() -> (Int, String) { return (1, «2») }"),
    ("E0301", "fn g(x: Decimal) {}\nfn f(n: Int) { g(«n») }"),
    ("E0301", 'struct A { x: Int }\nfn f() -> A { return A { x: «"a"» } }'),
    ("E0301", "fn f(xs: List<Int>) -> List<String> { return xs.map(fn(x) => «x») }"),
    ("E0301", "fn f(n: Int) { return «n» }"),
    ("E0301", "fn f() -> Int { «return» }"),
    ("E0301", 'enum A { B(n: Int) }\nfn f() -> A { return B(«"x"») }'),
    ("E0301", "step s(n: Int) -> Int within «5» { return n }"),
    ("E0301", "extern step s(n: Int) -> Int on «n»"),
    ("E0301", 'extern step s(n: Int) -> Int tries 3 else «"x"» on "q"'),
    (
        "E0301",
        "flow F(n: Int) -> Int {\n channel c: Int\n run { return wait match {\n"
        " case let x = c.receive(): x\n case after «3»: 1\n } }\n}",
    ),
    ("E0301", 'const c: Int = «"x"»'),
    ("E0301", 'fn f(n: Int = «"x"») -> Int { return n }'),
    ("E0301", 'struct A { n: Int = «"x"» }'),
    ("E0302", "fn f(n: Int) -> Int { return n.«foo» }"),
    ("E0302", "fn f(n: Int) -> Int { return n.«foo»() }"),
    ("E0302", "struct A { x: Int }\nfn f(a: A) -> Int { return a.«y» }"),
    ("E0302", "fn f(n: Int?) -> Int { return n.«abs»() }"),
    ("E0302", "fn f(xs: List<Int>) -> Int { return xs.«len» }"),
    ("E0302", "enum A { B }\nfn f() -> A { return A.«C» }"),
    ("E0302", "enum A { B }\nfn f() -> A { return «C» }"),
    ("E0302", 'fn f() -> Int { return Int.«read»("1") ?? 1 }'),
    ("E0302", "fn f(p: (Int, Int)) -> Int { return «p.2» }"),
    ("E0302", "flow F(n: Int) -> Time { run { return flow.«noww»() } }"),
    ("E0303", "struct A { x: Int, y: Int }\nfn f() -> A { return «A { x: 1 }» }"),
    ("E0304", "struct A { x: Int }\nfn f() -> A { return A { x: 1, «z»: 2 } }"),
    ("E0304", "struct A { x: Int }\nfn f() -> A { return A { x: 1, «x»: 2 } }"),
    ("E0304", "enum A { B(n: Int) }\nfn f() -> A { return «A.B { n: 1 }» }".replace("A.B", "B")),
    ("E0306", "enum A { B }\nfn f() -> Int { let x = «B»\n return 1 }"),
    ("E0306", "enum A { B(n: Int) }\nfn f() -> Int { let x = «B»(1)\n return 1 }"),
    ("E0307", "fn g(a: Int) {}\nfn f() { g(1, «2») }"),
    ("E0307", "fn g(a: Int) {}\nfn f() { «g()» }"),
    ("E0307", "fn g(a: Int) {}\nfn f() { g(1, «b»: 2) }"),
    ("E0307", "fn g(a: Int) {}\nfn f() { g(1, «a: 2») }"),
    ("E0307", "fn g(a: Int, b: Int) {}\nfn f() { g(b: 1, «2») }"),
    ("E0307", "fn f(g: fn(Int) -> Int) -> Int { return «g()» }"),
    ("E0307", "enum A { B }\nfn f() -> A { return «B()» }"),
    ("E0308", "fn f(n: Int) -> Int { return «n»(1) }"),
    ("E0308", "struct A { x: Int }\nfn f() -> A { return «A»(1) }"),
    ("E0308", "struct A { x: Int }\nfn f(a: A) -> Int { return a.«x»() }"),
    ("E0308", "flow F(n: Int) -> Int { run { return n } }\nfn f() -> Int { «F»(1)\n return 1 }"),
    ("E0309", 'fn f(n: Int) -> Int { return n + «"a"» }'),
    ("E0309", 'fn f(s: String) -> String { return s + «"a"» }'),
    ("E0309", "fn f(a: Float, b: Int) -> Float { return a * «b» }"),
    ("E0309", "fn f(a: Time, b: Time) -> Time { return a + «b» }"),
    ("E0309", "fn f(a: Time) -> Time { return a + «5» }"),
    ("E0309", "fn f(a: Date) -> Date { return a + «1d» }"),
    ("E0309", "fn f<T>(a: T, b: T) -> T { return a + «b» }"),
    ("E0309", "fn f(a: Int) -> Int { return «a» ?? 1 }"),
    ("E0309", "fn f(a: Bool) -> Bool { return -«a» }"),
    ("E0309", "fn f(a: Int, b: String) -> Bool { return a in «b» }"),
    ("E0309", "fn f() -> Int {\n var n = 1\n n += «1.5»\n return n\n}"),
    ("E0310", "fn f(a: Int?) -> Int { return a«?» }"),
    ("E0310", "fn f(a: Result<Int, String>) -> Result<Int, Int> { return Ok(a«?») }"),
    ("E0310", "fn f(a: Int) -> Int? { return Some(a«?») }"),
    ("E0310", "fn f(a: Int?) -> Result<Int, String> { return Ok(a«?») }"),
    ("E0311", "fn f() -> Int { let x = «[]»\n return x.len() }"),
    ("E0311", "fn f() -> Int { let x = «None»\n return 1 }"),
    ("E0311", "fn f() -> Int { let g = fn(«x») => 1\n return 1 }"),
    ("E0311", "fn f() -> Int { let g = fn(x) => «x».len()\n return 1 }"),
    ("E0312", "enum A { B(n: Int) }\nfn f(a: A) -> Int { return match a { case «B»: 1 } }"),
    ("E0312", "enum A { B(n: Int) }\nfn f(a: A) -> Int { return match a { case «B(x, y)»: 1 } }"),
    ("E0312", "enum A { B(n: Int) }\nfn f(a: A) -> Int { return match a { case B(«m»: x): 1 } }"),
    ("E0312", "struct A { x: Int, y: Int }\nfn f(a: A) -> Int { let «A { x }» = a\n return x }"),
    ("E0312", "struct A { x: Int }\nfn f(a: A) -> Int { let A { «z», .. } = a\n return 1 }"),
    ("E0312", "fn f(a: Int) -> Int { let «(x, y)» = a\n return x }"),
    ("E0312", "fn f(a: (Int, Int)) -> Int { let «(x, y, z)» = a\n return x }"),
    ("E0312", "fn f(a: Int) -> Int { return match a { case «Some(x)»: x\n case _: 1 } }"),
    ("E0313", "fn f(a: Int?) -> Int { let «Some(x)» = a\n return x }"),
    ("E0313", "fn f(a: List<Int?>) -> Int { for «Some(x)» in a { return x }\n return 1 }"),
    ("E0313", "fn f(a: List<Int?>) -> List<Int> { return a.map(fn(«Some(x)») => x) }"),
    (
        "E0313",
        "flow F(n: Int) -> Int {\n channel c: Int?\n run { return wait match {\n"
        " case let «Some(x)» = c.receive(): x\n } }\n}",
    ),
    ("E0314", 'fn f(g: fn() -> Int) -> String { return "\\(«g»)" }'),
    ("E0314", "fn f<T>(a: T, b: T) -> Bool { return «a» == b }"),
    ("E0314", "fn f(a: Bool, b: Bool) -> Bool { return «a» < b }"),
    ("E0314", "struct A { m: Map<«Bool», Int> }"),
    ("E0314", "fn f(xs: List<Bool>) -> List<Bool> { return xs.«sorted»() }"),
    ("E0314", "fn f(xs: List<String>) -> String { return xs.«sum»() }"),
    ("E0315", "fn f(n: Int) -> Int { if n > 1 { return 1 } «}»"),
    ("E0315", 'flow F(n: Int) -> Int { run { print("x") «}» }'),
    ("E0316", "fn f(a: «List») -> Int { return 1 }"),
    ("E0316", "fn f(a: «Int<Int>») -> Int { return 1 }"),
    ("E0316", "flow F(n: Int) -> Int { run { return n } }\nfn f(a: «F») -> Int { return 1 }"),
    ("E0316", "fn f(a: Instance<«Int»>) -> Int { return 1 }"),
    ("E0317", "flow F(n: Int) -> Int {\n run { return wait match { case let x = «n»: x } }\n}"),
    ("E0318", "fn f(n: Int) -> Int { return «n»[0] }"),
    ("E0318", "fn f(n: String) -> String { return «n»[0] }"),
    ("E0318", 'fn f(n: Int) { for x in «n» { print("a") } }'),
    ("E0318", 'fn f() { for x in «1.5..2.5» { print("a") } }'),
    ("E0319", 'fn f(n: Int?) -> Int { let Some(x) = n else «{ print("a") }»\n return x }'),
    ("E0320", "fn f<T: Data>(j: Json) -> T { return «T.decode»(j) }"),
    ("E0321", "flow F(n: Int) -> Int { run { «clock.advance»(1d)\n return n } }"),
    (
        "E0321",
        'extern step s(n: Int) -> Int on "q"\nflow F(n: Int) -> Int {\n'
        " run { return «calls»(s).len() }\n}",
    ),
]


@pytest.mark.parametrize(("code", "text"), WRONG)
def test_one_mistake_is_one_diagnostic_at_the_smallest_place(code: str, text: str) -> None:
    assert marked(text) == [(code, True)]


def test_what_a_mistake_leads_to_is_not_reported_again() -> None:
    text = """
fn f(n: Int) -> Int {
    let x = n.foo
    let y = x.bar(1) + x
    for z in y { print(z.q) }
    let list = [x, y]
    let Some(w) = list.first() else { return y }
    return match w { case Good(a): a[0].b
        case _: y }
}
"""
    assert problems(text) == ["E0302 `Int` has no field `foo`"]


@pytest.mark.parametrize(
    ("code", "text"),
    [
        # The `var` that is missing is one; so is the bound, the type, the name that was meant.
        ("E0216", "fn f() -> Int { let n = 1\n n += 1\n n += 2\n return n }"),
        ("E0314", "fn f<T>(a: T, b: T) -> Bool { return a < b && a > b }"),
        ("E0312", "enum A { B, C }\nfn f() { match () {\ncase B: f()\ncase C: f()\n} }"),
        ("E0306", "enum A { B, C }\nfn f() { let _ = fn(x) => match x {\ncase B: 1\ncase C: 2 } }"),
        ("E0304", "struct A { rounds: Int }\nfn f() -> A { return A { round: 1 } }"),
        ("E0302", "struct A { n: Int }\nfn f(x: List<A>) -> Int { return x.findIt(fn(a) => a.n) }"),
        ("E0307", "fn g(a: Int, b: Int, c: Int) {}\nfn f(c: Int, a: Int) { g(b: 1, c, a) }"),
    ],
)
def test_one_mistake_that_shows_twice_is_told_once(code: str, text: str) -> None:
    found = [f"{each.code} {each.message}" for each in analyse(text)[1]]
    assert [each.split()[0] for each in found] == [code], found


def test_a_misspelt_import_is_reported_once() -> None:
    text = "import n.{readall}\nfn f() -> Int { return readAll() }"
    others = {"n": "fn readAll() -> Int { return 1 }"}
    assert [each.code for each in analyse(text, others)[1]] == ["E0204"]


def test_a_broken_import_is_reported_once() -> None:
    text = "import a.b\nfn f(x: b.T) -> b.U { return b.g(x) }\n"
    assert problems(text) == ["E0203 there is no module `a.b`"]


def test_long_chains_are_walked() -> None:
    chain = " + ".join(["n"] * 100)
    assert problems(f"fn f(n: Int) -> Int {{ return {chain} }}") == []
    arms = " else ".join(f"if n == {i} {{ return {i} }}" for i in range(80))
    assert problems(f"fn f(n: Int) -> Int {{ {arms}\n return 0 }}") == []


def test_deep_nesting_is_e0322() -> None:
    inner = "n"
    for _ in range(95):
        inner = f"g({inner})"
    text = f"fn g(n: Int) -> Int {{ return n }}\nfn f(n: Int) -> Int {{ return {inner} }}"
    assert [p[:5] for p in problems(text)] == ["E0322"]


def test_types_that_double_are_refused_before_they_are_large() -> None:
    lines = ["let a0 = (1, 2)"] + [f"let a{i + 1} = (a{i}, a{i})" for i in range(40)]
    text = "fn f() -> Int {\n" + "\n".join(lines) + "\nreturn 1\n}"
    assert {p[:5] for p in problems(text)} == {"E0322"}


def test_two_imports_with_a_method_of_one_name_are_ambiguous() -> None:
    others = {
        "s": "struct S { n: Int }\n",
        "a": "import s\nfn size(self: s.S) -> Int { return 1 }\n",
        "b": "import s\nfn size(self: s.S) -> Int { return 2 }\n",
    }
    text = "import s\nimport a\nimport b\nfn f(x: s.S) -> Int { return x.«size»() }"
    assert marked(text, others) == [("E0213", True)]
    chosen = text.replace("x.«size»()", "a.size(x)")
    assert problems(chosen, others) == []
    own = text.replace("«size»", "size") + "\nfn size(self: s.S) -> Int { return 3 }"
    assert problems(own, others) == []


def test_the_module_of_the_type_comes_first() -> None:
    others = {"s": 'struct S { n: Int }\nfn size(self: S) -> String { return "s" }\n'}
    text = """
import s
fn size(self: s.S) -> Int { return 1 }
fn f(x: s.S) -> String { return x.size() }
"""
    assert problems(text, others) == []


SAMPLE = """
import std.http
struct S { a: Int, b: String? }
enum E { A(n: Int), B }
step s(x: S) -> Settled<Result<Int, E>> within 1m undo u(it) { return Known(Ok(x.a)) }
extern step u(n: Int) on "q\\(n)"
flow F(p: S, q: E = B) -> Result<Int, E> {
    channel c: Int answers String
    var t: Map<String, Int> = ["a": 1]
    view v -> Int { return t["a"] }
    run {
        var i = 0
        while i < 3 {
            stage one(i)
            let x = wait match {
                case let r = c.receive(): r.value
                case after 1d if i > 1: 2
            }
            t["b"] += x
            match s(S { ..p, a: x }) {
                case Known(Ok(n)) | Known(Err(A(n))): i += n
                case Known(Err(B)) | Unknown: return Err(q)
            }
        }
        return Ok([1, 2].map(fn(n) => n * i).sum()?)
    }
    migrate one(i: Int) { become one(i: i) }
}
given s(_) => Known(Ok(1)) then fails "x"
test "t" { assert(F.start("f", S { a: 1 }).result() == Ok(Ok(3))) }
"""


def test_nothing_raises_whatever_is_left_out_or_doubled() -> None:
    file = parse(SourceFile("m.flow", "m", SAMPLE))
    tokens = [token for token in file.tokens if token.end > token.start]
    assert len(tokens) > 250
    for at, token in enumerate(tokens):
        without = SAMPLE[: token.start] + SAMPLE[token.end :]
        other = tokens[(at * 7) % len(tokens)]
        swapped = SAMPLE[: token.start] + SAMPLE[other.start : other.end] + SAMPLE[token.end :]
        for text in (without, swapped):
            check({"m": parse(SourceFile("m.flow", "m", text))})
