"""What each name of a module stands for, and where that is declared.

A `Key` says what a name means and stays the same from one check to the next, where symbols do not:
`("fn", "billing.total")`, `("field", "billing.Invoice", "cents")`, `("local", "billing", "210")` by
the offset of its declaration. All names with one key are occurrences of one thing: references,
highlights and renames are the lists of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.symbols import (
    BuiltinTypeSymbol,
    ChannelSymbol,
    ConstSymbol,
    EnumSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    FnSymbol,
    LocalSymbol,
    ModuleSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
    VariantSymbol,
    ViewSymbol,
)
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.walk import walk
from qoqi.compiler.types.facts import (
    BuiltinTarget,
    CallPlan,
    Facts,
    FnTarget,
    StepTarget,
    StructMatch,
    VariantMatch,
    VariantTarget,
)
from qoqi.vm.dataclass import dataclass

Key: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name where it is written. `symbol` is None for fields and parameters without one."""

    span: Span
    key: Key
    symbol: Symbol | None
    declares: bool = False
    short: bool = False
    """Of a field in `Claim { id }` or a pattern `Claim { id }`: the name is two things at once."""


@dataclass(frozen=True, slots=True)
class Declared:
    """Where something is declared: its name, and the node around it."""

    module: str
    path: str
    span: Span
    node: ast.Node


def module_at(snapshot: Snapshot, path: str) -> str | None:
    """The module that a file is."""
    for name, source in snapshot.sources.items():
        if source.path == path:
            return name
    return None


def key_of(symbol: Symbol, module: str) -> Key:
    match symbol:
        case FnSymbol():
            return "fn", symbol.qualified
        case StepSymbol():
            return "step", symbol.qualified
        case ConstSymbol():
            return "const", symbol.qualified
        case StructSymbol() | EnumSymbol() | FlowSymbol():
            return "type", symbol.qualified
        case VariantSymbol():
            return "variant", symbol.enum.qualified, symbol.name
        case FlowSlotSymbol():
            return "slot", symbol.flow.qualified, symbol.name
        case ChannelSymbol():
            return "channel", symbol.flow.qualified, symbol.name
        case ViewSymbol():
            return "view", symbol.flow.qualified, symbol.name
        case ModuleSymbol():
            return "module", symbol.name
        case LocalSymbol():
            return "local", module, str(symbol.span.start)
        case BuiltinTypeSymbol():
            return "builtin", symbol.name


def occurrences(snapshot: Snapshot, module: str) -> list[Occurrence]:
    """Every name of a module that stands for something, in the order of the source."""
    facts = snapshot.checked.facts.get(module)
    tree = snapshot.checked.modules.get(module)
    if facts is None or tree is None:
        return []
    found = [Occurrence(d.span, key, None, True) for key, d in declarations(snapshot, module)]
    short = {init.name.span for plan in facts.structs for init in plan.fields if init.value is None}
    for node, symbol in facts.uses.items():
        span = _name_span(node)
        if isinstance(symbol, StructSymbol) and isinstance(node, ast.Ident) and span in short:
            found.append(Occurrence(span, _field(symbol, node.name), None, short=True))
        elif isinstance(symbol, StructSymbol) and _is_field(node, symbol):
            assert isinstance(node, ast.Ident)
            found.append(Occurrence(span, _field(symbol, node.name), None))
        elif span.end > span.start:
            shown = span in short and isinstance(symbol, LocalSymbol | FlowSlotSymbol)
            found.append(Occurrence(span, key_of(symbol, module), symbol, short=shown))
    found += _bound(facts, module, tree)
    found += _named_arguments(snapshot, facts)
    found += _named_patterns(snapshot, facts)
    unique = {(each.span, each.key): each for each in found if each.span.end > each.span.start}
    return sorted(unique.values(), key=lambda each: (each.span, not each.declares))


def _is_field(node: ast.Node, symbol: StructSymbol) -> bool:
    """A use of a struct by a lower-case name is one of its fields."""
    return isinstance(node, ast.Ident) and node.name[:1].islower() | node.name.startswith("_")


def _field(symbol: StructSymbol, name: str) -> Key:
    return "field", symbol.qualified, name


def _name_span(node: ast.Node) -> Span:
    return node.name.span if isinstance(node, ast.FieldExpr) else node.span


def _bound(facts: Facts, module: str, tree: ast.Module) -> Iterator[Occurrence]:
    """Where variables are declared; parameters of flows are slots, and declared as such."""
    slots = {
        param for item in tree.items if isinstance(item, ast.FlowDecl) for param in item.params
    }
    for node, symbol in facts.bindings.items():
        if node in slots:
            continue
        yield Occurrence(symbol.span, key_of(symbol, module), symbol, True)


def _named_arguments(snapshot: Snapshot, facts: Facts) -> Iterator[Occurrence]:
    for call, plan in facts.calls.items():
        for arg in call.args:
            if arg.name is not None:
                key = parameter_key(snapshot, plan, arg.name.name)
                if key is not None:
                    yield Occurrence(arg.name.span, key, None)


def parameter_key(snapshot: Snapshot, plan: CallPlan, name: str) -> Key | None:
    """The parameter a named argument is for."""
    match plan.target:
        case FnTarget(symbol=FnSymbol() as symbol) | StepTarget(symbol=StepSymbol() as symbol):
            node = current(snapshot, key_of(symbol, symbol.module))
            params = getattr(node.node, "params", ()) if node is not None else ()
            for param in params:
                if param.name.name == name:
                    return "local", symbol.module, str(param.name.span.start)
        case VariantTarget(symbol=symbol):
            return "part", symbol.enum.qualified, symbol.name, name
        case BuiltinTarget(flow=FlowSymbol() as flow):
            return "slot", flow.qualified, name
        case _:
            pass
    return None


def _named_patterns(snapshot: Snapshot, facts: Facts) -> Iterator[Occurrence]:
    for node, match in facts.matches.items():
        if isinstance(node, ast.StructPattern) and isinstance(match, StructMatch):
            for field in node.fields:
                key = _field(match.symbol, field.name.name)
                yield Occurrence(field.name.span, key, None, short=field.pattern is None)
        elif isinstance(node, ast.VariantPattern) and isinstance(match, VariantMatch):
            for arg in node.args or ():
                if arg.name is not None:
                    symbol = match.symbol
                    key = ("part", symbol.enum.qualified, symbol.name, arg.name.name)
                    yield Occurrence(arg.name.span, key, None)


# -- declarations --------------------------------------------------------------------------------


def declarations(snapshot: Snapshot, module: str) -> Iterator[tuple[Key, Declared]]:
    """What a module declares, members, fields and variants included; variables are not."""
    scope = snapshot.program.scopes.get(module)
    if scope is None:
        return
    path = scope.path

    def at(ident: ast.Ident, node: ast.Node) -> Declared:
        return Declared(module, path, ident.span, node)

    symbols: list[FnSymbol | StepSymbol] = [*scope.functions, *scope.steps]
    for flow in scope.flows.values():
        symbols += [*flow.functions, *flow.steps]
        for slot in flow.slots:
            yield key_of(slot, module), at(slot.decl.name, slot.decl)
        for channel in flow.channels:
            yield key_of(channel, module), at(channel.decl.name, channel.decl)
        for view in flow.views:
            yield key_of(view, module), at(view.decl.name, view.decl)
        for const in flow.consts:
            yield key_of(const, module), at(const.decl.name, const.decl)
    for each in symbols:
        yield key_of(each, module), at(each.decl.name, each.decl)
    for symbol in scope.names.values():
        match symbol:
            case ConstSymbol() | FlowSymbol():
                yield key_of(symbol, module), at(symbol.decl.name, symbol.decl)
            case StructSymbol():
                yield key_of(symbol, module), at(symbol.decl.name, symbol.decl)
                for field in symbol.decl.fields:
                    yield _field(symbol, field.name.name), at(field.name, field)
            case EnumSymbol():
                yield key_of(symbol, module), at(symbol.decl.name, symbol.decl)
                for variant in symbol.decl.variants:
                    name = variant.name.name
                    yield ("variant", symbol.qualified, name), at(variant.name, variant)
                    for param in variant.params or ():
                        part = ("part", symbol.qualified, name, param.name.name)
                        yield part, at(param.name, param)
            case _:
                pass


def current(snapshot: Snapshot, key: Key) -> Declared | None:
    """Where something is declared now."""
    match key:
        case ("builtin", _):
            return None
        case ("module", name):
            source = snapshot.sources.get(name)
            tree = snapshot.checked.modules.get(name)
            if source is None or tree is None:
                return None
            return Declared(name, source.path, Span(0, 0), tree)
        case ("local", module, start):
            scope = snapshot.program.scopes.get(module)
            facts = snapshot.checked.facts.get(module)
            if scope is None or facts is None:
                return None
            for node, symbol in facts.bindings.items():
                if symbol.span.start == int(start):
                    return Declared(module, scope.path, symbol.span, node)
            return None
        case _:
            pass
    for module in _owners(snapshot, key[1]):
        for known, place in declarations(snapshot, module):
            if known == key:
                return place
    return None


def _owners(snapshot: Snapshot, qualified: str) -> Iterator[str]:
    """The modules that may declare a qualified name, the longest first."""
    parts = qualified.split(".")
    for count in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:count])
        if name in snapshot.program.scopes:
            yield name
    yield "std.prelude"


def occurrence_at(snapshot: Snapshot, module: str, offset: int) -> Occurrence | None:
    """The name at a cursor; at the end of a name counts as at it."""
    best: Occurrence | None = None
    for each in occurrences(snapshot, module):
        if each.span.start <= offset < each.span.end:
            if best is None or not each.declares or best.span.end == offset:
                best = each if best is None or best.span.end == offset or best.short else best
        elif offset == each.span.end and best is None:
            best = each
    return best


def all_occurrences(snapshot: Snapshot, key: Key) -> dict[str, list[Occurrence]]:
    """Every occurrence of something in the package, by module. The library is not searched."""
    name = written(snapshot, key)
    found: dict[str, list[Occurrence]] = {}
    for module, parsed in snapshot.parsed.items():
        if name is not None and name not in parsed.file.text:
            continue
        here = [each for each in occurrences(snapshot, module) if each.key == key]
        if here:
            found[module] = here
    return found


def written(snapshot: Snapshot, key: Key) -> str | None:
    """The name as it is written at its declaration; None where it goes by several."""
    if key[0] in ("module",):
        return None
    if key[0] == "local":
        place = current(snapshot, key)
        if place is None:
            return None
        text = snapshot.sources[place.module].text
        return text[place.span.start : place.span.end]
    return key[-1].rsplit(".", 1)[-1]


def nodes_of(snapshot: Snapshot, module: str) -> Iterator[ast.Node]:
    tree = snapshot.checked.modules.get(module)
    return walk(tree) if tree is not None else iter(())
