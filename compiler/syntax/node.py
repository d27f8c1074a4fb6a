"""The base of all nodes of the syntax tree, and the way from a node to those below it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import get_annotations
from operator import attrgetter
from typing import Any, TypeVar

from qoqi.compiler.frozen import Frozen, frozen
from qoqi.compiler.source import Span

# Fields of these types hold no nodes, so a walk does not look into them.
_PLAIN = frozenset({"Span", "str", "str | None", "bool", "int", "Decimal"})


@frozen
class Node(Frozen):
    """A piece of the tree and the place where it is written."""

    span: Span


NodeT = TypeVar("NodeT", bound=Node)


def moved(node: NodeT, span: Span) -> NodeT:
    """A node that is the same but for its place; what is below it stays where it is."""
    return type(node)(span, *(getattr(node, name) for name in field_names(node)[1:]))


def shifted(node: NodeT, by: int) -> NodeT:
    """A node and all below it, as they are when the text before them is `by` longer."""
    return _shift[type(node)](node, by) if by else node


def field_names(node: Node) -> tuple[str, ...]:
    """The fields of a node, in the order in which its class takes them."""
    names: tuple[str, ...] = type(node).__match_args__
    return names


def children(node: Node) -> list[Node]:
    """The nodes directly below one, in the order of the source."""
    found: list[Node] = []
    for value in _below[type(node)](node):
        if type(value) is tuple:
            _gather(value, found)
        elif isinstance(value, Node):
            found.append(value)
    return found


def _gather(values: tuple[object, ...], found: list[Node]) -> None:
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif type(value) is tuple:
            _gather(value, found)


class _Shifters(dict[type[Node], Callable[[Any, int], Any]]):
    """What copies the nodes of a class to another place; made at its first node."""

    def __missing__(self, kind: type[Node]) -> Callable[[Any, int], Any]:
        written = _written(kind)
        values: list[str] = []
        for name in kind.__match_args__:
            if written[name] == "Span":
                values.append(f"span(node.{name}, by)")
            elif written[name] in _PLAIN:
                values.append(f"node.{name}")
            else:
                values.append(f"value(node.{name}, by)")
        scope: dict[str, Any] = {"kind": kind, "span": _shifted_span, "value": _shifted_value}
        exec(f"def shift(node, by): return kind({', '.join(values)})", scope)
        self[kind] = scope["shift"]
        return self[kind]


_shift = _Shifters()


def _shifted_span(span: Span, by: int) -> Span:
    return Span(span[0] + by, span[1] + by)


def _shifted_value(value: Any, by: int) -> Any:
    if value is None or type(value) is str:
        return value
    if type(value) is tuple:
        return tuple([_shifted_value(each, by) for each in value])
    return _shift[type(value)](value, by)


def _written(kind: type[Node]) -> dict[str, str]:
    """The types of a class's fields as they are written."""
    written: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        written |= get_annotations(base)
    return written


class _Readers(dict[type[Node], Callable[[Node], tuple[object, ...]]]):
    """What reads the fields of a class that may hold nodes; made at its first node."""

    def __missing__(self, kind: type[Node]) -> Callable[[Node], tuple[object, ...]]:
        written = _written(kind)
        names = [name for name in kind.__match_args__ if written[name] not in _PLAIN]
        get = attrgetter(*names) if names else None
        if get is None:
            self[kind] = lambda _: ()
        else:
            self[kind] = get if len(names) > 1 else lambda node: (get(node),)
        return self[kind]


_below = _Readers()
