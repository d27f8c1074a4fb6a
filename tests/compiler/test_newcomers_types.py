"""Mistakes in names and types: one mistake, one message that helps."""

from __future__ import annotations

import pytest

from qoqi.compiler import api
from qoqi.compiler.foreign import METHODS, NAMES, TYPES
from tests.compiler.fuzzing import OneFile
from tests.compiler.newcomers import Row, name, one_message

MISTAKES: list[Row] = [
    (
        "fn f(claim: Claim) -> Int {\nreturn «clam».cents\n}\n",
        "E0201",
        "there is no `clam` here",
        "Change to `claim`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "«notify»(claim)\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "E0201",
        "there is no `notify` here",
        "",
    ),
    (
        "fn f() -> Int {\nreturn «self».x\n}\n",
        "E0201",
        "there is no `self` here",
        "Only a method has a `self`: its first parameter.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        '«println»("x")\n'
        'return "x"\n'
        " }\n"
        "}\n",
        "E0201",
        "there is no `println` here",
        "Change to `print`",
    ),
    (
        "fn f() -> Int {\nreturn «null»\n}\n",
        "E0201",
        "there is no `null` here",
        "Change to `None`",
    ),
    (
        'step s() -> Int { return «http».get("x").status }\n',
        "E0201",
        "there is no `http` here",
        "Import `std.http`",
    ),
    (
        "fn f(x: «int») {}\n",
        "E0114",
        "`int`: a type, variant or flow starts with an upper-case letter",
        "write `Int`",
    ),
    (
        "import «billing.invoices»\nfn f() {}\n",
        "E0203",
        "there is no module `billing.invoices`",
        "A module is named by its path: `billing/invoice.flow` is `billing.invoice`.",
    ),
    (
        "import «std.htpp»\nfn f() {}\n",
        "E0203",
        "there is no module `std.htpp`",
        "Import `std.http`",
    ),
    (
        'import std.json.{parse, «prase»}\nfn f() -> Json { return parse("") }\n',
        "E0204",
        "`std.json` declares no `prase`",
        "Change to `parse`",
    ),
    (
        "fn «pay»() {}\n",
        "E0206",
        "a second declaration is named `pay`",
        "Give one of the two another name.",
    ),
    (
        "fn g(a: Int, «a»: Int) {}\n",
        "E0206",
        "a second parameter is named `a`",
        "Give one of the two another name.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "let «decisions» = 1\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "E0208",
        "`decisions` would hide the channel `decisions` of this flow",
        "Give the variable another name.",
    ),
    (
        "fn f() -> Int {\nvar n = 0\n[1].map(fn(x) { «n» += x\nreturn x })\nreturn n\n}\n",
        "E0214",
        "`n` is captured by this closure, which has a copy of it",
        "Give the new value as the closure's result, or keep it in a field of the flow.",
    ),
    (
        "fn f(claim: Claim) -> Int {\n«claim.cents» = 3\nreturn 1\n}\n",
        "E0216",
        "`claim` is a parameter, and cannot be assigned",
        "Copy it into a variable: `var claim = claim`",
    ),
    (
        "fn f() -> Int {\nlet a = 1\n«a» = 2\nreturn a\n}\n",
        "E0216",
        "`a` is bound with `let`, and cannot be assigned",
        "Declare it with `var`",
    ),
    (
        "fn f() -> Int {\nfor x in [1] { «x» += 1 }\nreturn 1\n}\n",
        "E0216",
        "`x` is a loop variable, and cannot be assigned",
        "Copy it into a variable: `var x = x`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "«claim.cents» = 1\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "E0216",
        "`claim` is a parameter of the flow, and cannot be assigned",
        "Copy it into a variable: `var claim = claim`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "while true {\n"
        "stage s(«claim»)\n"
        "let d = decisions.receive()\n"
        'return "\\(d)" }\n'
        " }\n"
        "}\n",
        "E0217",
        "`claim` is a parameter, and every stage carries those",
        "Leave it out",
    ),
    (
        "fn f() -> Int {\n«break»\nreturn 1\n}\n",
        "E0219",
        "`break` stands in no loop",
        "A closure and a `defer` begin anew: the loop around them cannot be left from",
    ),
    (
        'fn f() -> Int {\nreturn «"a"»\n}\n',
        "E0301",
        'expected `Int`, found "a", which is `String`',
        "",
    ),
    (
        "fn f() -> Int {\nif «1» { return 1 }\nreturn 2\n}\n",
        "E0301",
        "expected `Bool`, found 1, which is `Int`",
        "",
    ),
    (
        'fn f() -> Int {\nlet x = if true { 1 } else { «"a"» }\nreturn x\n}\n',
        "E0301",
        'expected `Int`, found "a", which is `String`',
        "",
    ),
    (
        "fn f(xs: List<Int>) -> Int {\nreturn «xs.first()»\n}\n",
        "E0301",
        "expected `Int`, found `Int?`",
        "Give a default with `??`",
    ),
    (
        "fn f() -> Int {\nreturn «1.5»\n}\n",
        "E0301",
        "expected `Int`, found 1.5, which is `Decimal`",
        "Drop the decimals",
    ),
    (
        'fn f() -> Int {\nlet a = [1, «"a"»]\nreturn a.len()\n}\n',
        "E0301",
        'expected `Int`, found "a", which is `String`',
        "All have one type. For JSON of several say so: `let body: Json = …`.",
    ),
    (
        'fn f() -> Int {\nlet a = ["a": 1, "b": «"c"»]\nreturn a.len()\n}\n',
        "E0301",
        'expected `Int`, found "c", which is `String`',
        "All have one type. For JSON of several say so: `let body: Json = …`.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "ask(«claim»)\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "E0301",
        "expected `String`, found `Claim`",
        "Turn it into text",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "return «pay(claim)»\n"
        " }\n"
        "}\n",
        "E0301",
        "expected `String`, found `Result<String, String>`",
        "Return the error with `?`",
    ),
    (
        "fn f(claim: Claim) -> Int {\nreturn claim.«total»()\n}\n",
        "E0302",
        "`Claim` has no method `total`",
        "",
    ),
    (
        "fn f(claim: Claim) -> Int {\nreturn claim.«cent»\n}\n",
        "E0302",
        "`Claim` has no field `cent`",
        "Change to `cents`",
    ),
    (
        "fn f(d: Decision) -> String {\nreturn d.«by»\n}\n",
        "E0302",
        "`Decision` has no field `by`",
        "",
    ),
    (
        "fn f(d: Decision) -> Int {\n"
        "match d { case «Aproved»(_): return 1\n"
        "case _: return 2 }\n"
        "}\n",
        "E0302",
        "`Decision` has no variant `Aproved`",
        "Change to `Approved`",
    ),
    (
        'fn f() -> Claim {\nreturn «Claim { id: "a" }»\n}\n',
        "E0303",
        "`cents` of `Claim` is missing",
        "Add the missing field",
    ),
    (
        'fn f() -> Claim {\nreturn Claim { id: "a", cents: 1, «amount»: 3 }\n}\n',
        "E0304",
        "`Claim` has no field `amount`",
        "",
    ),
    (
        'fn f() -> Decision {\nreturn «Approved { by: "x" }»\n}\n',
        "E0304",
        "`Approved` is a variant, and variants are built like calls",
        "Use parentheses",
    ),
    (
        'fn f() -> Int {\nlet d = «Approved»("x")\nreturn 1\n}\n',
        "E0306",
        "nothing says here which enum `Approved` is a variant of",
        "Write `Decision.Approved`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "«ask()»\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "E0307",
        "`who: String` of `ask` is missing",
        "Give `who: String`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'ask("a", «"b"»)\n'
        'return "x"\n'
        " }\n"
        "}\n",
        "E0307",
        "`ask` takes 1 argument, found 2",
        "Leave out what is too much",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'ask(«whom»: "a")\n'
        'return "x"\n'
        " }\n"
        "}\n",
        "E0307",
        "`ask` has no parameter `whom`",
        "Change to `who`",
    ),
    (
        'fn f() -> Claim {\nreturn «Claim»("a", 1)\n}\n',
        "E0308",
        "`Claim` is a struct: it is built with its fields in braces",
        "Write a struct literal",
    ),
    (
        "fn f() -> Int {\nlet x = 3\nreturn «x»(1)\n}\n",
        "E0308",
        "`x` is a variable of type `Int`, and no function",
        "",
    ),
    (
        'fn f() -> String {\nreturn "a" + «"b"»\n}\n',
        "E0309",
        "`+` does not take `String` and `String`",
        "Join them in a text",
    ),
    (
        "fn f(xs: List<Int>) -> Int {\nreturn xs.first() + «1»\n}\n",
        "E0309",
        "`+` does not take `Int?` and `Int`",
        "It may be `None`: take the `Int` out first, with `match`, `if let`, `?` or `??`.",
    ),
    (
        'fn f() -> Int {\nif "a" < «3» { return 1 }\nreturn 2\n}\n',
        "E0301",
        "expected `String`, found 3, which is `Int`",
        "Turn it into text",
    ),
    (
        "fn f(a: Float, b: Decimal) -> Decimal {\nreturn a * 1.0 + «b»\n}\n",
        "E0309",
        "`+` does not take `Float` and `Decimal`",
        "Convert the right side",
    ),
    (
        "fn f(claim: Claim) -> Int {\nreturn pay(claim)«?».len()\n}\n",
        "E0310",
        "`?` would return an `Err` of `String`, and the function gives `Int`",
        "Use `match`, or let the function give a `Result`.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "let r = pay(claim)«?»\n"
        "return r\n"
        " }\n"
        "}\n",
        "E0310",
        "`?` would return an `Err` of `String`, and the function gives `String`",
        "Use `match`, or let the function give a `Result`.",
    ),
    (
        "fn f() -> Int {\nlet xs = «[]»\nreturn 1\n}\n",
        "E0311",
        "nothing says the type of the items of this list",
        "Give the variable a type: `let name: List<String> = …`.",
    ),
    (
        "fn f() -> Int {\nlet x = «None»\nreturn 1\n}\n",
        "E0311",
        "nothing says the type of `None`",
        "Give the variable a type: `let name: List<String> = …`.",
    ),
    (
        "fn f() -> Int {\nlet f = fn(x) => «x».len()\nreturn 1\n}\n",
        "E0311",
        "nothing says the type of `x`, so `.len` cannot be found",
        "Give the variable or the closure's parameter a type: `fn(x: Int) => …`.",
    ),
    (
        'fn f() -> Int {\nmatch 3 { case «"a"»: return 1\ncase _: return 2 }\n}\n',
        "E0301",
        'expected `Int`, found "a", which is `String`',
        "",
    ),
    (
        "fn f(d: Decision) -> Int {\nlet «Approved(by)» = d\nreturn 1\n}\n",
        "E0313",
        "this pattern may not match, and the value would be lost",
        "Say what happens then: `let P = e else { … }`, or use `match`.",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "wait match { case let «Approved(by)» = decisions.receive(): return by }\n"
        " }\n"
        "}\n",
        "E0313",
        "this pattern may not match, and what was received would be lost",
        "Bind a name, and use `match` in the case.",
    ),
    (
        "fn f() -> Int {\nif true { return 1 }\n«}»\n",
        "E0315",
        "this path ends without `return`, and an `Int` is wanted",
        "",
    ),
    (
        "fn f(d: Decision) -> Int {\n"
        'match d { case Approved(_): print("x")\n'
        "case Rejected(..): return 2 }\n"
        "«}»\n",
        "E0315",
        "this path ends without `return`, and an `Int` is wanted",
        "",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'wait match { case let x = «pay(claim)»: return "x" }\n'
        " }\n"
        "}\n",
        "E0317",
        "a case waits for something, and this is over at once",
        "A case waits for `receive`, `send`, `wait`, `join`, `task.all`, `task.settle`,",
    ),
    (
        "fn f() -> Int {\nfor x in «3» { }\nreturn 1\n}\n",
        "E0318",
        "`Int` cannot be iterated",
        "Lists, sets, maps and ranges of `Int` can be iterated.",
    ),
    (
        "fn f(xs: List<Int>) -> Int {\n"
        'let Some(x) = xs.first() else «{ print("a") }»\n'
        "return x\n"
        "}\n",
        "E0319",
        "this `else` goes on, and the pattern's names would have no values",
        "End it with `return`, `break`, `continue` or `fail(…)`.",
    ),
    (
        "fn f(x: Int«??») -> Int {\nreturn 1\n}\n",
        "E0122",
        "an option of an option cannot be told from an option",
        "write one `?`",
    ),
    (
        "fn f(x: Int) -> Int {\nif x «=» 3 { return 1 }\nreturn 2\n}\n",
        "E0116",
        "`=` gives a variable a value: two values are compared by `==`",
        "write `==`",
    ),
    (
        "fn f() -> String {\nreturn «'a'»\n}\n",
        "E0115",
        "`'a'` is written `\"a\"` here",
        'write `"a"`',
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "let r = «await» pay(claim)\n"
        'return "x"\n'
        " }\n"
        "}\n",
        "E0115",
        "there is no `await`: a function that waits is called as any other",
        "remove `await`",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        'decisions.send(«"x"»)\n'
        'return "x"\n'
        " }\n"
        "}\n",
        "E0301",
        'expected `Decision`, found "x", which is `String`',
        "",
    ),
    (
        "flow A(claim: Claim) -> String {\n"
        " channel decisions: Decision\n"
        "\n"
        " run {\n"
        "let d = decisions.receive(«1»)\n"
        'return "\\(d)"\n'
        " }\n"
        "}\n",
        "E0307",
        "`receive` takes no arguments, found 1",
        "Leave out what is too much",
    ),
    (
        "flow «B» { run { } }\n",
        "E0125",
        "the flow `B` has no parameters in parentheses",
        "add `()`",
    ),
]


@pytest.mark.parametrize("row", MISTAKES, ids=name)
def test_one_mistake_is_one_message(row: Row) -> None:
    one_message(row)


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        ("fn f(x: Array<Int>, y: Dict<String, Integer>) { }\n", ["List", "Map", "Int"]),
        ("fn f(xs: List<Int>) -> Int { return xs.length() }\n", ["len"]),
        ("fn f(xs: List<Int>) -> Int { return xs.size }\n", ["len()"]),
        (
            "fn f(xs: List<Int>) -> List<Int> {\n    var ys = xs\n    ys.push(1)\n    return ys\n}\n",
            ["append"],
        ),
        ("fn f(s: String) -> String { return s.toUpperCase() }\n", ["upper"]),
        ('fn f(m: Map<String, Int>) -> Bool { return m.containsKey("a") }\n', ["contains"]),
        ("fn f() -> Int? { return null }\n", ["None"]),
        ("fn f() -> Bool { return True }\n", ["true"]),
        ('fn f() { panic("x") }\n', ["fail"]),
        ("fn f(t: DateTime, d: Boolean) { }\n", ["Time", "Bool"]),
    ],
)
def test_names_of_other_languages_are_understood(text: str, fixes: list[str]) -> None:
    found = api.check(".", OneFile(text)).diagnostics
    titles = [fix.title for each in found for fix in each.fixes]
    assert titles == [f"Change to `{name}`" for name in fixes]


def test_no_name_of_another_language_is_one_of_this() -> None:
    known = {symbol for text in (TYPES, NAMES) for symbol in text}
    text = "".join(f"fn f{n}(x: {name}) {{ }}\n" for n, name in enumerate(TYPES))
    found = api.check(".", OneFile(text)).diagnostics
    assert [each.code for each in found] == ["E0202"] * len(TYPES)
    assert known.isdisjoint(METHODS) or known & set(METHODS) <= {"some"}
