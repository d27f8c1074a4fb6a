"""The nodes of types and patterns: the part of `ast` that is used through it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from qoqi.compiler.frozen import frozen
from qoqi.compiler.syntax.node import Node

if TYPE_CHECKING:
    from qoqi.compiler.syntax.ast import Literal


@frozen
class Ident(Node):
    """A name where it is written; `name` is empty where recovery put one in."""

    name: str


# -- types ------------------------------------------------------------------------------------


@frozen
class NamedType(Node):
    """`Claim`, `http.Response`, `List<T>`: an optional module, a name, arguments."""

    module: Ident | None
    name: Ident
    args: tuple[TypeNode, ...]


@frozen
class OptionType(Node):
    inner: TypeNode


@frozen
class TupleType(Node):
    """`(A, B)`; no items is the unit type `()`."""

    items: tuple[TypeNode, ...]


@frozen
class FnType(Node):
    params: tuple[TypeNode, ...]
    result: TypeNode


TypeNode: TypeAlias = NamedType | OptionType | TupleType | FnType


# -- patterns ---------------------------------------------------------------------------------


@frozen
class WildPattern(Node):
    """`_`"""


@frozen
class BindPattern(Node):
    name: Ident


@frozen
class LiteralPattern(Node):
    """A literal; `-3` is an `IntLit` with a negative value."""

    value: Literal


@frozen
class RangePattern(Node):
    low: Literal
    high: Literal
    inclusive: bool


@frozen
class PatternArg(Node):
    """A positional (`name` is None) or named part of a variant pattern."""

    name: Ident | None
    pattern: Pattern


@frozen
class VariantPattern(Node):
    """`None`, `Approved(by)`, `Json.Object(m)`, `a.Colour.Red`, `Rejected(_, ..)`.

    `path` is the dotted name from the left; the last is the variant. `args` is None without
    parentheses; `rest` says that `..` was written.
    """

    path: tuple[Ident, ...]
    args: tuple[PatternArg, ...] | None
    rest: bool


@frozen
class FieldPattern(Node):
    """`index: 2`, or `index` alone, which binds (`pattern` is None)."""

    name: Ident
    pattern: Pattern | None


@frozen
class StructPattern(Node):
    """`Cancelled { reason }`, `Chunk { index: 2, .. }`."""

    path: tuple[Ident, ...]
    fields: tuple[FieldPattern, ...]
    rest: bool


@frozen
class TuplePattern(Node):
    items: tuple[Pattern, ...]


@frozen
class RestPattern(Node):
    """`..` or `..rest`, in a list pattern only."""

    name: Ident | None


@frozen
class ListPattern(Node):
    items: tuple[Pattern | RestPattern, ...]


@frozen
class OrPattern(Node):
    """`P | Q`: every alternative binds the same names."""

    alternatives: tuple[Pattern, ...]


@frozen
class ErrorPattern(Node):
    pass


Pattern: TypeAlias = (
    WildPattern
    | BindPattern
    | LiteralPattern
    | RangePattern
    | VariantPattern
    | StructPattern
    | TuplePattern
    | ListPattern
    | OrPattern
    | ErrorPattern
)
