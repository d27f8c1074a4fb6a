"""Texts made to hurt: they end in a diagnostic, soon, and no tree is too deep for recursion."""

from __future__ import annotations

import time

import pytest

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.lexer import MAX_DEPTH, MAX_WEIGHT
from qoqi.compiler.syntax.parser import Parsed, parse

N = 10_000
LET = "fn f() {\n  let x = %s\n}\n"
DEEP = {
    "parentheses": LET % ("(" * N + ")" * N),
    "left open": LET % ("(" * N),
    "lists": LET % ("[" * N + "]" * N),
    "blocks": "fn f() {\n" + "if a {\n" * N + "}\n" * N + "}",
    "flows": "flow A() {\n" * N,
    "minus": LET % ("-" * N + "1"),
    "not": LET % ("!" * N + "a"),
    "plus": LET % ("1" + "+1" * N),
    "coalesce": LET % ("a" + " ?? a" * N),
    "else if": "fn f() {\n" + "if a { } else " * N + "{ }\n}",
    "fields": LET % ("a" + ".b" * N),
    "calls": LET % ("a" + "()" * N),
    "try": LET % ("a" + "? " * N),
    "interpolations": LET % ('"\\(' * N + "a" + ')"' * N),
    "types": "fn f(a: " + "List<" * N + "Int" + ">" * N + ") {}",
    "options": "fn f(a: Int" + "?" * N + ") {}",
    "function types": "fn f(a: " + "fn() -> " * N + "Int) {}",
    "closures": LET % ("fn(a) => " * N + "1"),
    "matches": LET % ("match " * N + "x" + " {}" * N),
    "conditions": LET % ("if " * N + "x" + " {}" * N),
    "patterns": "fn f() { let " + "A(" * N + "x" + ")" * N + " = 1 }",
}
LONG = {
    "alternatives": "fn f() { match x { case " + "A | " * N + "B: 1 } }",
    "arms": "fn f() { match x {" + "case A: 1\n" * N + "} }",
    "statements": "fn f() {\n" + "x += 1\n" * N + "}",
    "arguments": LET % ("f(" + "a, " * N + ")"),
    "answers": "given f() => a" + " then b" * N,
}
BROKEN = {
    "closers": "})]" * N,
    "quotes": '"' * 2 * N,
    "open text": '"""' * (N + 1) + "\\(" * N,
    "cases": "case\n" * N,
    "comments": "a\n" + "//\n" * 5 * N + ".b",
    "unknown": "§ " * N,
    "semicolons": "a;" * N,
    "words": "let let let\n" * N,
    "conflicts": "<<<<<<< a\n" * N,
    "enums": "enum fn a " * N,
    "zeros": "\0" * N,
    "nothing but names": "a b\n" * N,
}


def read(text: str) -> Parsed:
    return parse(SourceFile("a.flow", "a", text))


def depth(module: ast.Module) -> int:
    deepest = 0
    stack: list[tuple[ast.Node, int]] = [(module, 1)]
    while stack:
        node, at = stack.pop()
        deepest = max(deepest, at)
        stack.extend((child, at + 1) for child in ast.children(node))
    return deepest


@pytest.mark.parametrize("name", DEEP)
def test_what_is_too_deep_is_reported_once_and_cut_off(name: str) -> None:
    parsed = read(DEEP[name])
    codes = [problem.code for problem in parsed.diagnostics]
    assert codes.count("E0107") == 1
    assert {*codes} <= {"E0107", "E0122"}
    assert depth(parsed.module) <= MAX_WEIGHT + 4 * MAX_DEPTH


@pytest.mark.parametrize("name", LONG)
def test_what_is_only_long_is_read(name: str) -> None:
    parsed = read(LONG[name])
    assert parsed.diagnostics == ()
    assert depth(parsed.module) < 20


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_all_over_ends_soon(name: str) -> None:
    start = time.process_time()
    parsed = read(BROKEN[name])
    assert 1 <= len(parsed.diagnostics) <= 202
    assert time.process_time() - start < 2


def test_what_is_deep_but_not_too_deep_is_read() -> None:
    for text in (
        LET % ("(" * (MAX_DEPTH - 1) + "1" + ")" * (MAX_DEPTH - 1)),
        LET % ("1" + "+1" * (MAX_WEIGHT - 10)),
        "fn f() {\n" + "if a && b {\n" * 150 + "}\n" * 150 + "}",
    ):
        assert read(text).diagnostics == ()
