"""A tree as text, for tests and for people: one expression in parentheses per node.

A name is written as it is, a text in quotes, another value as `field=value`. What is absent, false
or empty is left out. A node that fits on a line stands on one.
"""

from __future__ import annotations

from typing import Any

from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.walk import walk

_WIDTH = 96


def dump(node: ast.Node) -> str:
    """The text of a tree. Children are written before their parents, without recursion."""
    written: dict[int, str] = {}
    for each in reversed(list(walk(node))):
        written[id(each)] = _write(each, written)
    return written[id(node)]


def _write(node: ast.Node, written: dict[int, str]) -> str:
    if isinstance(node, ast.Ident):
        return node.name or "<missing>"
    if isinstance(node, ast.Name):
        return f"(Name {node.name})"
    parts: list[str] = []
    for name in ast.field_names(node):
        value = getattr(node, name)
        if isinstance(value, Span) or value is None or value is False or value in ("", ()):
            continue
        if isinstance(value, ast.Node):
            text = written[id(value)]
            plain = name in (
                "name",
                "value",
                "body",
                "inner",
                "pattern",
                "fn",
                "left",
                "right",
            )
            parts.append(text if plain else f"{name}={text}")
        elif isinstance(value, tuple):
            parts.append(f"{name}={_tuple(value, written)}")
        else:
            parts.append(f"{name}={value if name == 'op' else repr(value)}")
    return _group(f"({type(node).__name__}", parts, ")", " " if parts else "")


def _item(value: object, written: dict[int, str]) -> str:
    if isinstance(value, ast.Node):
        return written[id(value)]
    if isinstance(value, tuple):
        return _tuple(value, written)
    return repr(value)


def _tuple(values: tuple[Any, ...], written: dict[int, str]) -> str:
    return _group("[", [_item(value, written) for value in values], "]")


def _group(head: str, parts: list[str], tail: str, gap: str = "") -> str:
    line = head + gap + " ".join(parts) + tail
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    inner = "\n".join(parts).replace("\n", "\n  ")
    return f"{head}\n  {inner}{tail}"
