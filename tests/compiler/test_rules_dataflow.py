"""The walk over the tree, seen through an analysis of the names that may have been called."""

from __future__ import annotations

import pytest

from qoqi.compiler.rules.dataflow import Analysis, Exits, walk
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.types.facts import Facts
from qoqi.compiler.types.model import NEVER

Calls = frozenset[str]


class Must(Analysis[Calls]):
    """The functions that were called on every path."""

    def join(self, left: Calls, right: Calls) -> Calls:
        return left & right

    def visit(self, node: ast.Node, state: Calls) -> Calls:
        if isinstance(node, ast.Call) and isinstance(node.fn, ast.Name):
            return state | {node.fn.name}
        return state


class May(Must):
    """The functions that were called on some path."""

    def join(self, left: Calls, right: Calls) -> Calls:
        return left | right


def run(analysis: Analysis[Calls], body: str) -> Exits[Calls]:
    parsed = parse(SourceFile("m.flow", "m", f"fn f() {{\n{body}\n}}"))
    assert parsed.diagnostics == ()
    function = parsed.module.items[0]
    assert isinstance(function, ast.FnDecl)
    assert function.body is not None
    facts = Facts("m")
    stack: list[ast.Node] = [function]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Call) and isinstance(node.fn, ast.Name) and node.fn.name == "fail":
            facts.types[node] = NEVER
        stack.extend(ast.children(node))
    return walk(analysis, facts, function.body, frozenset())


def end(analysis: Analysis[Calls], body: str) -> str | None:
    found = run(analysis, body).end
    return None if found is None else "".join(sorted(found))


@pytest.mark.parametrize(
    ("body", "must", "may"),
    [
        ("a()\nb()", "ab", "ab"),
        ("if a() { b() } else { c() }\nd()", "ad", "abcd"),
        ("if x { b() }", "", "b"),
        ("let y = a() && b()", "a", "ab"),
        ("let y = a() ?? b()", "a", "ab"),
        ("if x { return }\na()", "a", "a"),
        ("if x { a()\nreturn }", "", ""),
        ("if x { fail() } else { a() }", "a", "a"),
        ("while a() { b() }", "a", "ab"),
        ("while true { a()\nif x { break }\nb() }", "a", "ab"),
        ("for i in a() { b() }", "a", "ab"),
        ("for i in xs { if x { continue }\na() }", "", "a"),
        ("match a() {\ncase 1: b()\ncase _: b()\n}", "ab", "ab"),
        ("match x {\ncase 1 if a(): b()\ncase _: c()\n}", "", "abc"),
        ("wait match {\ncase let y = r(a()): b()\ncase after c(): b()\n}", "abc", "abc"),
        ("let Some(y) = a() else { b()\nreturn }\nc()", "ac", "ac"),
        ("if let Some(y) = a() && b() { c() }", "a", "abc"),
        ("defer { a() }\nb()", "ab", "ab"),
        ("if x { defer { a() } }\nb()", "b", "ab"),
        ("let y = a()?\nb()", "ab", "ab"),
        ("let g = fn(y) => a()", "", ""),
        ("x[a()] = b()", "ab", "ab"),
        ('let s = "\\(a())"', "a", "a"),
        ("let c = C { ..a(), n: b() }", "ab", "ab"),
    ],
)
def test_paths(body: str, must: str, may: str) -> None:
    assert (end(Must(), body), end(May(), body)) == (must, may)


@pytest.mark.parametrize(
    "body",
    [
        "return",
        "fail()",
        "while true { a() }",
        "if x { return } else { fail() }",
        "match x {\ncase _: return\n}",
        "while true { while true { break } }",
    ],
)
def test_no_path_leads_past(body: str) -> None:
    assert run(Must(), f"{body}\na()").end is None


def test_a_defer_runs_at_every_way_out() -> None:
    exits = run(Must(), "defer { a() }\nif x { b()\nreturn }\nlet y = c()?\nd()")
    assert exits.end == frozenset("acd")
    assert sorted("".join(sorted(each)) for each in exits.leaves.values()) == ["ab", "ac"]


def test_break_runs_the_defers_of_the_loop_only() -> None:
    assert end(Must(), "defer { a() }\nwhile true { defer { b() }\nbreak }\nreturn") is None
    exits = run(Must(), "defer { a() }\nwhile true { defer { b() }\nbreak }\nc()\nreturn")
    assert list(exits.leaves.values()) == [frozenset("abc")]


def test_statements_no_path_reaches_are_not_reached() -> None:
    parsed = run(Must(), "a()\nreturn\nb()")
    assert len(parsed.reached) == 2
