"""The colours that are inferred, and the call graph they come from."""

from __future__ import annotations

import pytest

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.types.call_graph import is_library
from qoqi.compiler.types.checker import check
from qoqi.compiler.types.collect_calls import builtin_kind
from qoqi.compiler.types.colours import infer
from qoqi.compiler.types.facts import Colour

STEPS = """
import std.env
import std.http
import std.time
import std.text
extern step ask(who: String) -> Int on "mail"
fn twice(f: fn() -> Int) -> Int { return f() + f() }
"""


def colours(body: str) -> dict[str, Colour]:
    """The colour of each function by name, of `run` and of closures as `closure1`, `closure2`, …"""
    parsed = parse(SourceFile("m.flow", "m", STEPS + body))
    assert parsed.diagnostics == ()
    checked, found = check({"m": parsed})
    assert [each.message for each in found] == []
    infer(checked)
    named: dict[str, Colour] = {}
    closures = 0
    ordered = sorted(checked.facts["m"].colours.items(), key=lambda each: each[0].span)
    for node, colour in ordered:
        if isinstance(node, ast.LambdaExpr):
            closures += 1
            named[f"closure{closures}"] = colour
        elif isinstance(node, ast.FnDecl | ast.StepDecl | ast.ViewDecl):
            named[node.name.name] = colour
        else:
            named["run"] = colour
    return named


@pytest.mark.parametrize(
    ("function", "colour"),
    [
        ("fn f(u: String) -> Int { return u.len() }", Colour.PURE),
        ('fn f(u: String) { print(u)\nassert(u == "a")\nfail(u) }', Colour.PURE),
        ("fn f(u: String) -> Bool { return text.matches(u, u) }", Colour.PURE),
        ("fn f(u: String) -> String { return u.toJson().decode() }", Colour.PURE),
        ("fn f(u: String) -> Int { return http.get(u).status }", Colour.WORLD),
        ("fn f(u: String) -> String { return env.require(u) }", Colour.WORLD),
        ("fn f() -> Time { return time.now() }", Colour.WORLD),
        ("fn f() -> String { return flow.key() }", Colour.WORLD),
        ("fn f() { flow.retry() }", Colour.WORLD),
        ("fn f() { flow.sleep(1h) }", Colour.FLOW),
        ("fn f() -> Time { return flow.now() }", Colour.FLOW),
        ("fn f(u: String) -> Int { return ask(u) }", Colour.FLOW),
        ("fn f(u: List<String>) -> List<Int> { return task.map(u, ask) }", Colour.FLOW),
        ("fn f(u: List<String>) -> List<Int> { return u.map(ask) }", Colour.FLOW),
        ("fn f(u: String) { flow.undo(ask(u)) }", Colour.FLOW),
        (
            ("fn f(u: String) -> Int { return g(u) }\nfn g(u: String) -> Int { return ask(u) }"),
            Colour.FLOW,
        ),
        (
            "fn f(n: Int) { g(n) }\nfn g(n: Int) { if n > 0 { f(n - 1) }\nflow.sleep(1s) }",
            Colour.FLOW,
        ),
        ("fn f(n: Int) -> Int { return twice(fn() => n) }", Colour.PURE),
        ("fn f(u: String) -> Int { return twice(fn() => ask(u)) }", Colour.FLOW),
        ("fn f(u: String) -> Int { return twice(fn() => http.get(u).status) }", Colour.WORLD),
        ("fn f(g: fn() -> Int) -> Int { return twice(g) }", Colour.PURE),
        ("fn f(u: String) -> Int { let g = fn() => ask(u)\nreturn g() }", Colour.FLOW),
        (
            "fn f(u: String) -> Int { let g = fn() => ask(u)\nreturn count(g) }\n"
            "fn count(g: fn() -> Int) -> Int { return 1 }",
            Colour.FLOW,
        ),
    ],
)
def test_the_colour_of_a_function(function: str, colour: Colour) -> None:
    assert colours(function)["f"] is colour


def test_a_function_value_colours_who_gives_it_not_who_calls_it() -> None:
    found = colours(
        "fn pureUse() -> Int { return twice(fn() => 1) }\n"
        "fn flowUse(u: String) -> Int { return twice(fn() => ask(u)) }\n"
    )
    assert found["twice"] is Colour.PURE
    assert found["pureUse"] is Colour.PURE
    assert found["flowUse"] is Colour.FLOW
    assert [found["closure1"], found["closure2"]] == [Colour.PURE, Colour.FLOW]


def test_run_views_and_steps_have_colours() -> None:
    found = colours(
        "step look(u: String) -> Int { return http.get(u).status }\n"
        "flow F(u: String) { view v -> Int { return u.len() }\nrun { look(u) } }"
    )
    assert found["look"] is Colour.WORLD
    assert found["v"] is Colour.PURE
    assert found["run"] is Colour.FLOW


def test_builtins_have_kinds() -> None:
    assert builtin_kind("print") is None
    assert builtin_kind("test.start") is None
    assert builtin_kind("channel.poll") is not None
    assert builtin_kind("request.answer") is not None


def test_the_library_is_known_by_its_name() -> None:
    assert is_library("std.http")
    assert is_library("std.prelude")
    assert not is_library("standard")
    assert not is_library("claims")
