"""Trees: the samples as text, and what single constructs mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.dump import dump
from qoqi.compiler.syntax.parser import Parsed, parse, parse_expression
from qoqi.compiler.syntax.walk import walk

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.flow"))


def read(text: str) -> Parsed:
    return parse(SourceFile("a.flow", "a", text))


def expr(text: str) -> str:
    value, problems = parse_expression(text)
    assert problems == ()
    return dump(value)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples(path: Path, snapshot: SnapshotAssertion) -> None:
    parsed = read(path.read_text(encoding="utf-8"))
    assert parsed.diagnostics == ()
    assert dump(parsed.module) == snapshot


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_line_ending_changes_no_tree(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert dump(read(text.replace("\n", "\r\n")).module) == dump(read(text).module)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_node_lies_within_its_parent_and_after_its_neighbour(path: Path) -> None:
    parsed = read(path.read_text(encoding="utf-8"))
    for node in walk(parsed.module):
        at = node.span.start
        for child in ast.children(node):
            assert at <= child.span.start <= child.span.end <= node.span.end, (node, child)
            at = child.span.end


def test_no_construct_of_the_language_is_missing_from_the_samples() -> None:
    seen = {type(node) for path in SAMPLES for node in walk(read(path.read_text("utf-8")).module)}
    missing = {
        name
        for name, kind in vars(ast).items()
        if isinstance(kind, type)
        and issubclass(kind, ast.Node)
        and kind is not ast.Node
        and not name.startswith("Error")
        and kind not in seen
    }
    assert missing == set()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a - b - c", "(BinaryExpr op=- (BinaryExpr op=- (Name a) (Name b)) (Name c))"),
        ("a ?? b ?? c", "(BinaryExpr op=?? (Name a) (BinaryExpr op=?? (Name b) (Name c)))"),
        ("a + b * c", "(BinaryExpr op=+ (Name a) (BinaryExpr op=* (Name b) (Name c)))"),
        ("a || b && c", "(BinaryExpr op=|| (Name a) (BinaryExpr op=&& (Name b) (Name c)))"),
        ("-a.b", "(UnaryExpr op=- operand=(FieldExpr base=(Name a) b))"),
        ("!a == b", "(BinaryExpr op=== (UnaryExpr op=! operand=(Name a)) (Name b))"),
        (
            "a not in 0..b + 1",
            "(BinaryExpr op=not-in (Name a) (RangeExpr low=(IntLit value=0)"
            " high=(BinaryExpr op=+ (Name b) (IntLit value=1))))",
        ),
        ("(a)", "(ParenExpr (Name a))"),
        ("()", "(TupleExpr)"),
        ("[:]", "(MapExpr)"),
        ("a.0.1", "(TupleIndexExpr base=(TupleIndexExpr base=(Name a) index=0) index=1)"),
        ("a.B { c }", "(StructExpr path=[a B] fields=[(FieldInit c)])"),
        ("a?.b", "(FieldExpr base=(TryExpr (Name a)) b)"),
        ("a\n  .b", "(FieldExpr base=(Name a) b)"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    assert " ".join(expr(text).split()) == expected


def test_the_guard_of_if_let_starts_at_its_first_and() -> None:
    value, _ = parse_expression("if let P = a && b && c { }")
    assert isinstance(value, ast.IfExpr)
    condition = value.condition
    assert condition.guard is not None
    assert dump(condition.value) == "(Name a)"
    assert dump(condition.guard) == "(BinaryExpr op=&& (Name b) (Name c))"


def test_heads() -> None:
    text = (
        "fn f() {\n  while a < b { }\n  match c.d { case _: e }\n"
        "  wait match { case after f: g }\n}"
    )
    heads = [
        text[node.head.start : node.head.end]
        for node in walk(read(text).module)
        if isinstance(node, ast.WhileStmt | ast.MatchExpr | ast.WaitExpr)
    ]
    assert heads == ["while a < b", "match c.d", "wait match"]


def test_spans_of_cases() -> None:
    text = "fn f() {\n  wait match {\n    case let d = e.g() if h: i\n    case after j:\n  }\n}"
    arms = [node for node in walk(read(text).module) if isinstance(node, ast.WaitArm)]
    cases = [text[arm.case.span.start : arm.case.span.end] for arm in arms]
    assert cases == ["let d = e.g()", "after j"]
    assert text[arms[0].span.start :].startswith("case let")


def test_documentation() -> None:
    parsed = read(
        "//! M\n\n/// S\npub struct S {\n  /// f\n  f: Int\n}\n/// E\nenum E {\n/// V\nV\n}"
    )
    struct, enum = parsed.module.items
    assert parsed.module.doc == "M"
    assert isinstance(struct, ast.StructDecl)
    assert isinstance(enum, ast.EnumDecl)
    assert (struct.doc, struct.fields[0].doc, enum.doc, enum.variants[0].doc) == (
        "S",
        "f",
        "E",
        "V",
    )


def test_an_else_belongs_to_the_nearest_if() -> None:
    parsed = read("fn f() {\n  let a = if b { c } else { d }\n}")
    assert parsed.diagnostics == ()
    (let,) = [node for node in walk(parsed.module) if isinstance(node, ast.LetStmt)]
    assert let.otherwise is None


def test_an_empty_file_is_a_module() -> None:
    for text in ("", "\n", "// a\n", "\ufeff"):
        parsed = read(text)
        assert parsed.module.items == ()
        assert parsed.diagnostics == ()
