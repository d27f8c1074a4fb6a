"""Giving an expression a name, and taking one away again, where the program computes the same."""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.walk import node_at, walk
from qoqi.compiler.types.model import ErrorType, NeverType, Tup
from qoqi.lsp.changes import (
    EXTRACT,
    INDENT,
    INLINE,
    Action,
    At,
    around,
    free_name,
    touches,
)


def extract_variable(at: At, selected: Span) -> Iterator[Action]:
    """Gives the selected expression a name, in the statement before."""
    text = at.slice(selected)
    if not text.strip():
        return
    start = selected.start + len(text) - len(text.lstrip())
    end = selected.end - (len(text) - len(text.rstrip()))
    path = node_at(at.tree, start)
    chosen = None
    for node in path:
        if node.span == Span(start, end) and node in at.facts.types:
            chosen = node
    if chosen is None:
        chosen = _exact(at, Span(start, end))
    if chosen is None or not isinstance(chosen, ast.Expr):
        return
    type_ = at.facts.types.get(chosen)
    if type_ is None or isinstance(type_, ErrorType | NeverType) or type_ == Tup():
        return
    statement = _statement_of(at, chosen)
    if statement is None:
        return
    name = free_name(at, _name_for(chosen))
    indent = at.indent(statement.span.start)
    first = not at.text[at.line_start(statement.span.start) : statement.span.start].strip()
    code = at.slice(chosen.span)
    if first:
        before = f"let {name} = {code}\n{indent}"
    else:
        inner = indent + INDENT
        before = f"\n{inner}let {name} = {code}\n{inner}"
    edits = (
        at.edit(statement.span.start, statement.span.start, before),
        at.edit(chosen.span.start, chosen.span.end, name),
    )
    yield Action(f"Give it the name `{name}`", EXTRACT, edits)


def _exact(at: At, span: Span) -> ast.Expr | None:
    for node in walk(at.tree):
        if node.span == span and isinstance(node, ast.Expr) and node in at.facts.types:
            return node
    return None


def _statement_of(at: At, chosen: ast.Node) -> ast.Node | None:
    """The statement that an expression is evaluated in, always and once, before all else."""
    parents = _parents(at.tree, chosen)
    for index, node in enumerate(parents):
        inner = parents[index - 1] if index else chosen
        match node:
            case ast.Block():
                return inner
            case ast.LambdaExpr() | ast.WaitArm() | ast.ReceiveCase() | ast.AfterCase():
                return None
            case ast.AtCase() | ast.WhenCase() | ast.MatchArm() | ast.WhileStmt():
                return None
            case ast.BinaryExpr(op="&&" | "||" | "??", right=right) if right is inner:
                return None
            case ast.Condition(guard=guard) if guard is inner:
                return None
            case ast.IfExpr(otherwise=ast.IfExpr() as other) if other is inner:
                return None
            case _:
                pass
    return None


def _parents(root: ast.Node, wanted: ast.Node) -> list[ast.Node]:
    """The nodes around one, the nearest first."""
    path: list[ast.Node] = []
    node = root
    while node is not wanted:
        path.append(node)
        inside = [
            child
            for child in ast.children(node)
            if child.span.start <= wanted.span.start and wanted.span.end <= child.span.end
        ]
        if not inside:
            return []
        node = next((child for child in inside if child is wanted), inside[0])
    return path[::-1]


def _name_for(expr: ast.Expr) -> str:
    match expr:
        case ast.FieldExpr(name=ident) | ast.Call(fn=ast.FieldExpr(name=ident)):
            name = ident.name
        case ast.Call(fn=ast.Name(name=called)) | ast.StructExpr(path=(*_, ast.Ident(name=called))):
            name = called
        case _:
            name = "value"
    return name[:1].lower() + name[1:] or "value"


def inline_variable(at: At, selected: Span) -> Iterator[Action]:
    """Puts a variable's value where the variable is used, if that computes the same."""
    statement = around(at, selected, ast.LetStmt)
    if statement is None or statement.mutable or statement.otherwise is not None:
        return
    pattern = statement.pattern
    if not isinstance(pattern, ast.BindPattern) or not touches(pattern.span, selected):
        return
    symbol = at.facts.bindings.get(pattern)
    uses = [node for node, used in at.facts.uses.items() if used is symbol and node.span.end]
    if not uses or any(not isinstance(node, ast.Name) for node in uses):
        return
    if any(at.facts.uses.get(node) is symbol for node in _short_fields(at)):
        return
    pure = all(not isinstance(node, ast.Call) for node in walk(statement.value))
    fixed = all(
        not getattr(at.facts.uses.get(node), "mutable", False)
        and getattr(at.facts.uses.get(node), "parameter", True)
        for node in walk(statement.value)
    )
    if not (pure and fixed):
        return
    value = at.slice(statement.value.span)
    if not isinstance(statement.value, ast.Name | ast.FieldExpr | ast.Call | ast.StructExpr):
        value = value if _is_atom(statement.value) else f"({value})"
    end = statement.span.end
    while end < len(at.text) and at.text[end] in " \t":
        end += 1
    start = statement.span.start
    if at.text[end : end + 1] == "\n" and not at.text[at.line_start(start) : start].strip():
        start, end = at.line_start(start), end + 1
    edits = [at.edit(start, end, "")]
    edits += [at.edit(node.span.start, node.span.end, value) for node in uses]
    yield Action(f"Inline `{at.slice(pattern.span)}`", INLINE, tuple(edits))


def _short_fields(at: At) -> Iterator[ast.Node]:
    """Names that stand for a field and a variable at once have no node in the tree."""
    in_tree = set(walk(at.tree))
    return (node for node in at.facts.uses if isinstance(node, ast.Name) and node not in in_tree)


def _is_atom(expr: ast.Expr) -> bool:
    return not isinstance(
        expr,
        ast.BinaryExpr
        | ast.UnaryExpr
        | ast.RangeExpr
        | ast.IfExpr
        | ast.MatchExpr
        | ast.LambdaExpr,
    )
