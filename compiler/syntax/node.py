"""The base of all nodes of the syntax tree, and the way from a node to those below it."""

from __future__ import annotations

from functools import cache
from inspect import get_annotations
from typing import TypeVar

from qoqi.compiler.frozen import Frozen
from qoqi.compiler.source import Span

# Fields of these types hold no nodes, so a walk does not look into them.
_PLAIN = frozenset({"Span", "str", "str | None", "bool", "int", "Decimal"})


class Node(Frozen):
    """A piece of the tree and the place where it is written."""

    span: Span


NodeT = TypeVar("NodeT", bound=Node)


def moved(node: NodeT, span: Span) -> NodeT:
    """A node that is the same but for its place; what is below it stays where it is."""
    return type(node)(span, *(getattr(node, name) for name in field_names(node)[1:]))


def field_names(node: Node) -> tuple[str, ...]:
    """The fields of a node, in the order in which its class takes them."""
    names: tuple[str, ...] = type(node).__match_args__
    return names


def children(node: Node) -> list[Node]:
    """The nodes directly below one, in the order of the source."""
    found: list[Node] = []
    for name in _below(type(node)):
        value = getattr(node, name)
        if value is None:
            continue
        if isinstance(value, Node):
            found.append(value)
        elif type(value) is tuple:
            _gather(value, found)
    return found


def _gather(values: tuple[object, ...], found: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif type(value) is tuple:
            _gather(value, found)


@cache
def _below(kind: type[Node]) -> tuple[str, ...]:
    """The fields of a class that may hold nodes."""
    written: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        written |= get_annotations(base)
    return tuple(name for name in kind.__match_args__ if written[name] not in _PLAIN)
