"""Finding nodes: by place, and all of them.

Nothing here recurses, so a tree of any depth can be walked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from qoqi.compiler.syntax import ast

Declaration: TypeAlias = (
    ast.ImportDecl
    | ast.ConstDecl
    | ast.StructDecl
    | ast.EnumDecl
    | ast.FnDecl
    | ast.StepDecl
    | ast.FlowDecl
    | ast.TestDecl
    | ast.ChannelDecl
    | ast.FieldDecl
    | ast.ViewDecl
    | ast.RunDecl
    | ast.MigrateDecl
)


def walk(node: ast.Node) -> Iterator[ast.Node]:
    """A node and all below it, each before its children, in the order of the source."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(ast.children(current))))


def node_at(module: ast.Module, offset: int) -> tuple[ast.Node, ...]:
    """The nodes around an offset, from the module to the innermost.

    Between two neighbours the one that starts there is taken; at the end of one, with nothing that
    starts there, that one: a cursor right after a name is at the name.
    """
    path: list[ast.Node] = [module]
    while True:
        touching: ast.Node | None = None
        for child in ast.children(path[-1]):
            if child.span.start <= offset <= child.span.end:
                touching = child
                if offset < child.span.end:
                    break
        if touching is None:
            return tuple(path)
        path.append(touching)


def declaration_at(module: ast.Module, offset: int) -> Declaration | None:
    """The innermost declaration around an offset: a member of a flow before the flow."""
    for node in reversed(node_at(module, offset)):
        if isinstance(node, Declaration):
            return node
    return None
