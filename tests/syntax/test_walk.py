"""Finding nodes by place."""

from __future__ import annotations

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.syntax.walk import declaration_at, node_at, walk

TEXT = """flow F(a: Int) {
    fn g(b: Int) -> Int { return a + b }
}

const c = F
"""
MODULE = parse(SourceFile("a.flow", "a", TEXT)).module


def kinds(offset: int) -> list[str]:
    return [type(node).__name__ for node in node_at(MODULE, offset)]


def test_the_path_to_a_name() -> None:
    path = kinds(TEXT.index("a + b"))
    assert path == ["Module", "FlowDecl", "FnDecl", "Block", "ReturnStmt", "BinaryExpr", "Name"]


def test_a_cursor_after_a_name_is_at_the_name() -> None:
    end = TEXT.index("b }") + 1
    node = node_at(MODULE, end)[-1]
    assert isinstance(node, ast.Name)
    assert node.name == "b"


def test_space_between_declarations_is_of_the_module() -> None:
    assert kinds(TEXT.index("\n\nconst") + 1) == ["Module"]


def test_the_innermost_declaration() -> None:
    inner = declaration_at(MODULE, TEXT.index("a + b"))
    outer = declaration_at(MODULE, TEXT.index("F("))
    assert isinstance(inner, ast.FnDecl)
    assert isinstance(outer, ast.FlowDecl)
    assert declaration_at(MODULE, TEXT.index("\n\nconst") + 1) is None


def test_a_walk_goes_from_left_to_right() -> None:
    names = [node.name for node in walk(MODULE) if isinstance(node, ast.Ident)]
    assert names == ["F", "a", "Int", "g", "b", "Int", "Int", "c"]
