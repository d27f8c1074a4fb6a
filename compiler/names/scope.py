"""Scopes: which names a module, a flow and a block know.

A module's scope has its own declarations and what its imports bring. Upper-case names are types and
flows, lower-case ones values and modules, so one table holds both. Methods are not names: they are
found by the head of their receiver's type (`ModuleScope.methods`), functions of a type likewise
(`owned`). A flow's scope lies inside its module's; `Locals` inside both, block by block.

A lookup goes outwards: blocks, the flow's members, the module's declarations, its imports, the
prelude. A module's own names and imports hide the prelude's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from qoqi.compiler.names.symbols import (
    ChannelSymbol,
    ConstSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    FnSymbol,
    LocalSymbol,
    StepSymbol,
    Symbol,
    ViewSymbol,
)
from qoqi.compiler.syntax import ast
from qoqi.vm.dataclass import dataclass


@dataclass(slots=True)
class FlowScope:
    """What a flow declares, in order. `names` has the first declaration of each name."""

    symbol: FlowSymbol
    names: dict[str, Symbol] = field(default_factory=dict)
    slots: list[FlowSlotSymbol] = field(default_factory=list)
    channels: list[ChannelSymbol] = field(default_factory=list)
    views: list[ViewSymbol] = field(default_factory=list)
    functions: list[FnSymbol] = field(default_factory=list)
    steps: list[StepSymbol] = field(default_factory=list)
    consts: list[ConstSymbol] = field(default_factory=list)

    def member(self, name: str) -> Symbol | None:
        return self.names.get(name)


@dataclass(slots=True)
class ModuleScope:
    """One module's names.

    `names` are its declarations, `imports` what imports bind (`import_methods` the methods among
    it, several to a name), `exports` what `pub import` passes on, `imported` the modules whose
    methods can be called here. `functions` lists every function of the module, methods among
    them. `broken` are names of imports that found nothing: that is reported once, not at each use.
    """

    name: str
    path: str
    package: str
    text: str
    tree: ast.Module
    names: dict[str, Symbol] = field(default_factory=dict)
    functions: list[FnSymbol] = field(default_factory=list)
    steps: list[StepSymbol] = field(default_factory=list)
    flows: dict[str, FlowScope] = field(default_factory=dict)
    methods: dict[tuple[str, str], list[FnSymbol]] = field(default_factory=dict)
    method_names: dict[str, list[FnSymbol]] = field(default_factory=dict)
    owned: dict[tuple[str, str], FnSymbol] = field(default_factory=dict)
    imports: dict[str, Symbol] = field(default_factory=dict)
    import_methods: dict[str, list[FnSymbol]] = field(default_factory=dict)
    import_spans: dict[str, ast.Ident] = field(default_factory=dict)
    exports: dict[str, Symbol] = field(default_factory=dict)
    imported: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def own(self, name: str) -> Symbol | None:
        return self.names.get(name) or self.imports.get(name)

    def methods_named(self, name: str) -> list[FnSymbol]:
        """The methods that can be called, or given, by their bare name like other functions."""
        return self.method_names.get(name) or self.import_methods.get(name, [])

    def public(self, name: str) -> Symbol | None:
        """What another module finds here under that name."""
        return self.names.get(name) or self.exports.get(name)

    def public_names(self) -> Iterator[str]:
        yield from self.names
        yield from self.exports


class Locals:
    """The variables of one body, block by block, and in which closure each was declared."""

    __slots__ = ("_blocks", "_depths", "depth")

    def __init__(self) -> None:
        self._blocks: list[dict[str, LocalSymbol]] = [{}]
        self._depths: dict[LocalSymbol, int] = {}
        self.depth = 0

    def push(self) -> None:
        self._blocks.append({})

    def pop(self) -> None:
        self._blocks.pop()

    def add(self, symbol: LocalSymbol) -> None:
        self._blocks[-1][symbol.name] = symbol
        self._depths[symbol] = self.depth

    def find(self, name: str) -> LocalSymbol | None:
        for block in reversed(self._blocks):
            if name in block:
                return block[name]
        return None

    def depth_of(self, symbol: LocalSymbol) -> int:
        return self._depths[symbol]

    def names(self) -> Iterator[str]:
        for block in self._blocks:
            yield from block


def is_public(symbol: Symbol) -> bool:
    """Whether other packages see a declaration."""
    decl = getattr(symbol, "decl", None)
    return bool(getattr(decl, "public", True))
