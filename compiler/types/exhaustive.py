"""Exhaustiveness and reachability of the arms of a `match`, by Maranget's usefulness.

A pattern is first brought into a small form: a constructor with parts, any value, or alternatives.
Whether constructors are complete can be read from them (an enum's variants, the two Bools, the one
constructor of a tuple or struct, the lengths of a list), so no type is asked for; numbers, texts
and times are never complete without a wildcard. A pattern the checker could not resolve makes the
whole `match` unjudged: that mistake was reported already.

- `missing` gives example values that no row covers, as a user would write the pattern.
- `useful` says whether a row matches anything the rows before it do not.

Guards: an arm with one covers nothing, but can be unreachable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from qoqi.compiler.names.symbols import StructSymbol, VariantSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts, StructMatch, VariantMatch
from qoqi.vm.dataclass import dataclass

MOST_MISSING = 40
BOOLS = (("true", True), ("false", False))


@dataclass(frozen=True, slots=True)
class Variant:
    symbol: VariantSymbol
    arity: int


@dataclass(frozen=True, slots=True)
class Struct:
    symbol: StructSymbol
    arity: int


@dataclass(frozen=True, slots=True)
class Tuple:
    arity: int


@dataclass(frozen=True, slots=True)
class Boolean:
    value: bool


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal, or a range of them: `high` is None for a literal."""

    kind: str
    low: object
    high: object | None = None
    inclusive: bool = False


@dataclass(frozen=True, slots=True)
class Length:
    """A list of so many elements; an open one stands for all longer lists as well.

    `last` is how many of its elements patterns count from the end.
    """

    count: int
    open: bool = False
    last: int = 0


Constructor: TypeAlias = Variant | Struct | Tuple | Boolean | Constant | Length


@dataclass(frozen=True, slots=True)
class Any:
    pass


@dataclass(frozen=True, slots=True)
class Built:
    constructor: Constructor
    parts: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """A list pattern: what it begins with, and ends with if it has a rest."""

    first: tuple[Form, ...]
    last: tuple[Form, ...]
    rest: bool


@dataclass(frozen=True, slots=True)
class Either:
    alternatives: tuple[Form, ...]


Form: TypeAlias = Any | Built | Listed | Either
Row: TypeAlias = tuple[Form, ...]

ANY = Any()


class Unresolved(Exception):
    """A pattern that has no meaning; it was reported where it was resolved."""


# -- from the tree --------------------------------------------------------------------------------


def form(facts: Facts, pattern: ast.Pattern) -> Form:
    """The small form of a pattern; raises `Unresolved`."""
    match facts.matches.get(pattern):
        case VariantMatch(symbol, fields):
            parts = tuple(form(facts, each) if each is not None else ANY for each in fields)
            return Built(Variant(symbol, len(fields)), parts)
        case StructMatch(symbol, chosen):
            found: list[Form] = [ANY] * len(symbol.decl.fields)
            for index, part in chosen:
                if isinstance(part, ast.Node):
                    found[index] = form(facts, part)
            return Built(Struct(symbol, len(found)), tuple(found))
        case None:
            return _plain(facts, pattern)


def _plain(facts: Facts, pattern: ast.Pattern) -> Form:
    match pattern:
        case ast.WildPattern() | ast.BindPattern():
            return ANY
        case ast.LiteralPattern(value=ast.BoolLit(value=value)):
            return Built(Boolean(value), ())
        case ast.LiteralPattern(value=literal):
            return Built(Constant(_kind(literal), _value(literal)), ())
        case ast.RangePattern(low=low, high=high, inclusive=inclusive):
            return Built(Constant(_kind(low), _value(low), _value(high), inclusive), ())
        case ast.TuplePattern(items=items):
            return Built(Tuple(len(items)), tuple(form(facts, item) for item in items))
        case ast.ListPattern(items=items):
            return _listed(facts, items)
        case ast.OrPattern(alternatives=alternatives):
            return Either(tuple(form(facts, each) for each in alternatives))
        case ast.VariantPattern() | ast.StructPattern() | ast.ErrorPattern():
            raise Unresolved


def _listed(facts: Facts, items: tuple[ast.Pattern | ast.RestPattern, ...]) -> Form:
    first: list[Form] = []
    last: list[Form] = []
    rest = False
    for item in items:
        if isinstance(item, ast.RestPattern):
            rest = True
        else:
            (last if rest else first).append(form(facts, item))
    return Listed(tuple(first), tuple(last), rest)


def _kind(literal: ast.Literal) -> str:
    """Numbers are one kind: `1` and `1.0` match the same Decimal."""
    if isinstance(literal, ast.IntLit | ast.DecimalLit):
        return "number"
    return type(literal).__name__


def _value(literal: ast.Literal) -> object:
    match literal:
        case ast.StringLit(parts=parts):
            return "".join(part for part in parts if isinstance(part, str))
        case ast.DurationLit(millis=value) | ast.TimeLit(millis=value) | ast.DateLit(days=value):
            return value
        case _:
            return literal.value


# -- the matrix -----------------------------------------------------------------------------------


def missing(rows: Sequence[Row], guarded: Sequence[Row] = ()) -> list[str]:
    """Patterns of values that no row covers, at most `MOST_MISSING`.

    `guarded` are rows that cover nothing. Where no other row says what there is to cover, they do.
    """
    found = [witness[0] for witness in _missing([list(row) for row in rows], 1)]
    if found != ["_"]:
        return found
    heads = [split[0] for row in guarded for split in _split(list(row))]
    built = [head.constructor for head in heads if isinstance(head, Built)]
    match built[:1]:
        case [Variant(symbol=symbol)]:
            return [_blank(decl) for decl in symbol.enum.decl.variants]
        case [Boolean()]:
            return [name for name, _ in BOOLS]
        case _:
            return found


def _missing(rows: list[list[Form]], width: int) -> Iterator[list[str]]:
    if width == 0:
        if not rows:
            yield []
        return
    rows = [split for row in rows for split in _split(row)]
    constructors = _column(rows)
    heads = _by_head(rows)
    count = 0
    for constructor in constructors:
        if isinstance(constructor, Constant):
            continue  # never complete: the default rows decide
        arity = _arity(constructor)
        apart = heads.get(constructor, rows)
        for witness in _missing(_specialised(apart, constructor), arity + width - 1):
            yield [_show(constructor, witness[:arity]), *witness[arity:]]
            count += 1
            if count == MOST_MISSING:
                return
    absent = _absent(constructors)
    if absent is None:
        return
    defaults = [row[1:] for row in rows if isinstance(row[0], Any)]
    for witness in _missing(defaults, width - 1):
        for name in absent:
            yield [name, *witness]
            count += 1
            if count == MOST_MISSING:
                return


def _by_head(rows: list[list[Form]]) -> dict[Constructor, list[list[Form]]]:
    """The rows that a constructor at their head leaves, for those that match themselves only."""
    any_ = [row for row in rows if isinstance(row[0], Any)]
    found: dict[Constructor, list[list[Form]]] = {}
    for row in rows:
        head = row[0]
        if isinstance(head, Built):
            found.setdefault(head.constructor, list(any_)).append(row)
    return found


class Seen:
    """The rows of a `match` so far, for `useful`; each has one column.

    Hundreds of arms that are literals or variants without parts are looked up, not compared.
    """

    def __init__(self) -> None:
        self._leaves: set[Constructor] = set()
        self._others: list[Row] = []
        self._rows: list[Row] = []

    def takes(self, row: Row) -> bool:
        """Whether these rows match all that a further one would."""
        leaf = _leaf(row[0])
        if leaf is None:
            return not useful(self._rows, row)
        return leaf in self._leaves or not useful(self._others, row)

    def add(self, row: Row) -> None:
        self._rows.append(row)
        leaf = _leaf(row[0])
        if leaf is None:
            self._others.append(row)
        else:
            self._leaves.add(leaf)

    def copy(self) -> Seen:
        other = Seen()
        other._leaves = set(self._leaves)
        other._others = list(self._others)
        other._rows = list(self._rows)
        return other


def _leaf(head: Form) -> Constructor | None:
    """The constructor of a pattern that one value fits."""
    if not isinstance(head, Built) or head.parts:
        return None
    one = head.constructor
    return None if isinstance(one, Constant) and one.high is not None else one


def useful(rows: Sequence[Row], row: Row) -> bool:
    """Whether a row matches a value that none of `rows` does."""
    return _useful([list(each) for each in rows], list(row))


def _useful(rows: list[list[Form]], row: list[Form]) -> bool:
    if not row:
        return not rows
    head = row[0]
    if isinstance(head, Either):
        return any(_useful(rows, [each, *row[1:]]) for each in head.alternatives)
    rows = [split for each in rows for split in _split(each)]
    constructors = _column([*rows, row])
    if isinstance(head, Any):
        if _absent(constructors) is not None:
            return _useful([each[1:] for each in rows if isinstance(each[0], Any)], row[1:])
        mine = constructors
    elif isinstance(head, Built):
        mine = [head.constructor]
    else:
        mine = [each for each in constructors if _parts(head, each) is not None]
    return any(_useful(_specialised(rows, each), _specialised([row], each)[0]) for each in mine)


def _split(row: list[Form]) -> Iterator[list[Form]]:
    """Alternatives at the head of a row become rows of their own."""
    head = row[0]
    if isinstance(head, Either):
        for alternative in head.alternatives:
            yield from _split([alternative, *row[1:]])
    else:
        yield row


def _column(rows: list[list[Form]]) -> list[Constructor]:
    """The constructors to look at in the first column, each once, in order."""
    heads = [row[0] for row in rows]
    lists = [head for head in heads if isinstance(head, Listed)]
    if lists:
        last = max(len(head.last) for head in lists)
        open_ = [len(head.first) + last for head in lists if head.rest]
        exact = [len(head.first) + 1 for head in lists if not head.rest]
        most = max(last, *open_, *exact)
        return [*map(Length, range(most)), Length(most, True, last)]
    return list(dict.fromkeys(head.constructor for head in heads if isinstance(head, Built)))


def _absent(constructors: list[Constructor]) -> list[str] | None:
    """What the constructors of a column leave out, as patterns; None if nothing."""
    if not constructors:
        return ["_"]
    first = constructors[0]
    if isinstance(first, Variant):
        present = {each.symbol.index for each in constructors if isinstance(each, Variant)}
        variants = first.symbol.enum.decl.variants
        absent = [_blank(decl) for index, decl in enumerate(variants) if index not in present]
        return absent or None
    if isinstance(first, Boolean):
        values = {each.value for each in constructors if isinstance(each, Boolean)}
        return [name for name, value in BOOLS if value not in values] or None
    return ["_"] if isinstance(first, Constant) else None


def _arity(constructor: Constructor) -> int:
    match constructor:
        case Variant(arity=arity) | Struct(arity=arity) | Tuple(arity=arity):
            return arity
        case Length(count=count):
            return count
        case Boolean() | Constant():
            return 0


def _specialised(rows: list[list[Form]], constructor: Constructor) -> list[list[Form]]:
    found: list[list[Form]] = []
    for row in rows:
        for split in _split(row):
            parts = _parts(split[0], constructor)
            if parts is not None:
                found.append([*parts, *split[1:]])
    return found


def _parts(head: Form, constructor: Constructor) -> list[Form] | None:
    """The parts of a head where the value has this constructor; None if it does not match."""
    match head, constructor:
        case Any(), _:
            return list[Form]([ANY] * _arity(constructor))
        case Built(Constant() as own, _), Constant():
            return [] if _covers(own, constructor) else None
        case Built(own, parts), _:
            return list(parts) if own == constructor else None
        case Listed(first, last, rest), Length(count):
            given = len(first) + len(last)
            if given > count or (given < count and not rest):
                return None
            return [*first, *([ANY] * (count - given)), *last]
        case _:
            return None


def _covers(own: Constant, other: Constant) -> bool:
    """Whether every value of `other` is one of `own`."""
    if own == other:
        return True
    if own.high is None or own.kind != other.kind:
        return False
    high = other.low if other.high is None else other.high
    # Literals of one kind are ordered, which their type here does not say.
    if own.low > other.low:  # type: ignore[operator]
        return False
    if own.inclusive or (other.high is not None and not other.inclusive):
        return bool(high <= own.high)  # type: ignore[operator]
    return bool(high < own.high)  # type: ignore[operator]


# -- words ----------------------------------------------------------------------------------------


def _variant(name: str, parts: list[str]) -> str:
    return f"{name}({', '.join(parts)})" if parts else name


def _blank(decl: ast.VariantDecl) -> str:
    return _variant(decl.name.name, ["_"] * len(decl.params or ()))


def _show(constructor: Constructor, parts: list[str]) -> str:
    match constructor:
        case Variant(symbol=symbol):
            return _variant(symbol.name, parts)
        case Struct(symbol=symbol):
            named = [
                f"{field.name.name}: {part}"
                for field, part in zip(symbol.decl.fields, parts, strict=True)
                if part != "_"
            ]
            rest = [".."] if len(named) < len(parts) else []
            return f"{symbol.name} {{ {', '.join([*named, *rest])} }}"
        case Tuple():
            return f"({', '.join(parts)})"
        case Boolean(value):
            return "true" if value else "false"
        case Length(count, open_, last):
            gap = [".."] if open_ else []
            return f"[{', '.join([*parts[: count - last], *gap, *parts[count - last :]])}]"
        case Constant():
            return "_"
