"""Exhaustiveness and reachability, on patterns resolved by name alone."""

from __future__ import annotations

import pytest

from qoqi.compiler.names.symbols import EnumSymbol, StructSymbol, VariantSymbol
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.types.exhaustive import MOST_MISSING, Unresolved, form, missing, useful
from qoqi.compiler.types.facts import Facts, StructMatch, VariantMatch

DECLARATIONS = """
enum Option { Some(value: Int), None }
enum Result { Ok(value: Int), Err(error: Int) }
enum Act { Sign(token: String), Decline(token: String, why: String), View }
struct Chunk { index: Int, last: Bool }
"""


def rows(*patterns: str) -> tuple[list[tuple[ast.Pattern, Facts]], Facts]:
    arms = "\n".join(f"case {pattern}: 1" for pattern in patterns)
    text = f"{DECLARATIONS}\nfn f(x: Int) -> Int {{ return match x {{\n{arms}\n}} }}"
    parsed = parse(SourceFile("m.flow", "m", text))
    assert parsed.diagnostics == ()
    facts = Facts("m")
    variants: dict[str, VariantSymbol] = {}
    structs: dict[str, StructSymbol] = {}
    found: list[ast.Pattern] = []
    for item in parsed.module.items:
        if isinstance(item, ast.EnumDecl):
            enum = EnumSymbol(item.name.name, item.name.name, "m", item)
            for index, decl in enumerate(item.variants):
                variants[decl.name.name] = VariantSymbol(decl.name.name, enum, index)
        elif isinstance(item, ast.StructDecl):
            structs[item.name.name] = StructSymbol(item.name.name, item.name.name, "m", item)
    stack: list[ast.Node] = [parsed.module]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.MatchArm):
            found.insert(0, node.pattern)
        if isinstance(node, ast.VariantPattern) and node.path[-1].name in variants:
            symbol = variants[node.path[-1].name]
            parts: list[ast.Pattern | None] = [arg.pattern for arg in node.args or ()]
            parts += [None] * (len(symbol.decl.params or ()) - len(parts))
            facts.matches[node] = VariantMatch(symbol, tuple(parts))
        elif isinstance(node, ast.StructPattern):
            struct = structs[node.path[-1].name]
            names = [each.name.name for each in struct.decl.fields]
            facts.matches[node] = StructMatch(
                struct,
                tuple(
                    (names.index(each.name.name), each.pattern)
                    for each in node.fields
                    if each.pattern is not None
                ),
            )
        stack.extend(ast.children(node))
    found.sort(key=lambda pattern: pattern.span)
    return [(pattern, facts) for pattern in found], facts


def uncovered(*patterns: str) -> list[str]:
    arms, facts = rows(*patterns)
    return missing([(form(facts, each),) for each, _ in arms])


def dead(*patterns: str) -> list[int]:
    """The places of the arms that never match."""
    arms, facts = rows(*patterns)
    forms = [(form(facts, each),) for each, _ in arms]
    return [at for at, row in enumerate(forms) if not useful(forms[:at], row)]


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        (["_"], []),
        (["x"], []),
        (["true"], ["false"]),
        (["true", "false"], []),
        (["Sign(_)", "View"], ["Decline(_, _)"]),
        (["Sign(_)"], ["Decline(_, _)", "View"]),
        (["Sign(_) | View", "Decline(_, ..)"], []),
        (["Ok(Some(_))", "Err(_)"], ["Ok(None)"]),
        (["Ok(Some(_)) | Err(_)", "Ok(None)"], []),
        (["Some(1)", "None"], ["Some(_)"]),
        (["1", "2"], ["_"]),
        (["1..5", "_"], []),
        (['"a"', "other"], []),
        (["(Some(_), _)", "(_, None)"], ["(None, Some(_))"]),
        (["(true, true)", "(false, _)"], ["(true, false)"]),
        (["[]", "[_]"], ["[_, _, ..]"]),
        (["[]", "[_, ..]"], []),
        (["[.., true]", "[]"], ["[.., false]"]),
        (["[true, ..]", "[.., true]"], ["[]", "[false]", "[false, .., false]"]),
        (["[a, ..]"], ["[]"]),
        (["Chunk { index: 2, .. }"], ["Chunk { .. }"]),
        (["Chunk { last: true, .. }"], ["Chunk { last: false, .. }"]),
        (["Chunk { index, last }"], []),
        ([], ["_"]),
    ],
)
def test_what_is_not_covered_is_named(patterns: list[str], left: list[str]) -> None:
    assert (uncovered(*patterns) if patterns else missing([])) == left


def test_there_is_an_end_to_naming() -> None:
    wide = ", ".join(["Sign(_)"] * 30)
    assert len(uncovered(f"({wide})")) == MOST_MISSING


def test_arms_with_a_guard_say_what_there_is_to_cover() -> None:
    arms, facts = rows("Sign(_)", "View")
    guarded = [(form(facts, each),) for each, _ in arms]
    assert missing([], guarded) == ["Sign(_)", "Decline(_, _)", "View"]
    assert missing(guarded, guarded) == ["Decline(_, _)"]


@pytest.mark.parametrize(
    ("patterns", "never"),
    [
        (["_", "true"], [1]),
        (["true", "false", "_"], [2]),
        (["Sign(_)", "Sign(_)", "_"], [1]),
        (["Sign(_)", 'Sign("a")', "_"], [1]),
        (['Sign("a")', "Sign(_)", "_"], []),
        (["1..10", "5", "_"], [1]),
        (["1..10", "10", "_"], []),
        (["1..=10", "10", "_"], [1]),
        (["1..10", "3..=9", "_"], [1]),
        (["1..10", "3..12", "_"], []),
        (["[_, ..]", "[_, _]", "[]"], [1]),
        (["[_, _]", "[_, ..]", "[]"], []),
        (["(Some(_), _)", "(None, true)", "(_, _)", "(None, false)"], [3]),
        (["Ok(_)", "Err(_)", "_"], [2]),
        (["Chunk { last: true, .. }", "Chunk { index: 1, last: true }", "_"], [1]),
    ],
)
def test_arms_that_never_match_are_found(patterns: list[str], never: list[int]) -> None:
    assert dead(*patterns) == never


def test_a_pattern_that_means_nothing_is_not_judged() -> None:
    arms, facts = rows("Nonsense(_)")
    with pytest.raises(Unresolved):
        form(facts, arms[0][0])
