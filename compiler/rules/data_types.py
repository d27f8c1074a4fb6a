"""Which types are data, that is, have a form in JSON.

Functions, channels, tasks, requests and ranges are not; nor is a declared type with a part that is
not. What an argument of a generic type must be is asked of the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qoqi.compiler.names.symbols import LocalSymbol, VariantSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Checked, Facts
from qoqi.compiler.types.model import Con, Fn, Tup, Type
from qoqi.vm.dataclass import dataclass

NOT_DATA = frozenset({"Channel", "Task", "Request", "Range", "Outbox", "test.Handle"})


@dataclass(frozen=True, slots=True)
class DataTypes:
    """`others` are the names of the types that are not data."""

    others: frozenset[str]

    def has(self, type_: Type) -> bool:
        """Whether a type is data. What was reported already counts as data."""
        match type_:
            case Fn():
                return False
            case Tup(items):
                return all(map(self.has, items))
            case Con(name, args):
                return name not in self.others and all(map(self.has, args))
            case _:
                return True


def data_types(checked: Checked) -> DataTypes:
    """Adds declared types to those that are not data until no more has such a part."""
    parts = dict(_parts(checked))
    known = DataTypes(NOT_DATA)
    while True:
        more = frozenset(
            name
            for name, types in parts.items()
            if name not in known.others and not all(map(known.has, types))
        )
        if not more:
            return known
        known = DataTypes(known.others | more)


def _parts(checked: Checked) -> Iterator[tuple[str, list[Type]]]:
    for struct, fields in checked.struct_fields.items():
        yield struct.qualified, [type_ for _, type_ in fields]
    variants: dict[str, list[Type]] = {}
    for symbol, signature in checked.signatures.items():
        if isinstance(symbol, VariantSymbol):
            types = variants.setdefault(symbol.enum.qualified, [])
            types.extend(type_ for _, type_, _ in signature.params)
    yield from variants.items()


def variable_types(facts: Facts, tree: Iterable[ast.Node]) -> dict[LocalSymbol, Type]:
    """The types of the locals that the patterns among some nodes bind."""
    found: dict[LocalSymbol, Type] = {}
    for node in tree:
        symbol = facts.bindings.get(node)
        type_ = facts.types.get(node)
        if symbol is not None and type_ is not None:
            found[symbol] = type_
    return found
