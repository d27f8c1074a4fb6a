"""Collects the declarations of a module as symbols.

Nothing is resolved here: types and bodies are read later, so that declarations may be cyclic and in
any order. A second declaration of a name is reported (E0206) and still gets a symbol of its own, so
that its body is checked; lookups find the first. Names that must be unique in a flow's channels,
fields, views and steps are a rule of flows (F0009), not of names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from qoqi.compiler.diagnostics import Diagnostic, Label, error
from qoqi.compiler.names.scope import FlowScope, ModuleScope
from qoqi.compiler.names.symbols import (
    ChannelSymbol,
    ConstSymbol,
    EnumSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    FnSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
    ViewSymbol,
    self_head,
)
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast

PRELUDE = "std.prelude"


def collect(
    name: str, path: str, package: str, text: str, tree: ast.Module
) -> tuple[ModuleScope, list[Diagnostic]]:
    """The scope of a module, its imports not yet followed."""
    scope = ModuleScope(name, path, package, text, tree)
    found: list[Diagnostic] = []
    for item in tree.items:
        match item:
            case ast.ConstDecl():
                const = ConstSymbol(item.name.name, qualify(name, item.name.name), name, item)
                _declare(scope, const, item.name, found)
            case ast.StructDecl():
                struct = StructSymbol(item.name.name, qualify(name, item.name.name), name, item)
                _declare(scope, struct, item.name, found)
                _unique((f.name for f in item.fields), "field", path, found)
                _unique((p.name for p in item.type_params), "type parameter", path, found)
            case ast.EnumDecl():
                enum = EnumSymbol(item.name.name, qualify(name, item.name.name), name, item)
                _declare(scope, enum, item.name, found)
                _unique((v.name for v in item.variants), "variant", path, found)
                _unique((p.name for p in item.type_params), "type parameter", path, found)
                for variant in item.variants:
                    _unique((p.name for p in variant.params or ()), "field", path, found)
            case ast.FnDecl():
                _function(scope, item, found)
            case ast.StepDecl():
                _step(scope, item, (), found)
            case ast.StepsGroup():
                for index, step in enumerate(item.steps):
                    _step(scope, step, _clauses_for(item, index), found)
            case ast.FlowDecl():
                _flow(scope, item, found)
            case ast.ImportDecl() | ast.TestDecl() | ast.GivenStmt() | ast.ErrorItem():
                pass
    return scope, found


def qualify(module: str, name: str) -> str:
    """`module.name`; of the prelude, the bare name."""
    return name if module == PRELUDE else f"{module}.{name}"


def declaration_ident(symbol: Symbol) -> ast.Ident | None:
    """The name in a symbol's declaration."""
    ident = getattr(getattr(symbol, "decl", None), "name", None)
    return ident if isinstance(ident, ast.Ident) else None


def _function(scope: ModuleScope, decl: ast.FnDecl, found: list[Diagnostic]) -> None:
    _unique((p.name for p in decl.params), "parameter", scope.path, found)
    _unique((p.name for p in decl.type_params), "type parameter", scope.path, found)
    name = decl.name.name
    if decl.owner is not None:
        full = qualify(scope.name, f"{decl.owner.name}.{name}")
        scope.functions.append(FnSymbol(name, full, scope.name, decl))
        return
    if decl.params and decl.params[0].name.name == "self":
        full = qualify(scope.name, f"{self_head(decl)}.{name}")
        method = FnSymbol(name, full, scope.name, decl)
        scope.functions.append(method)
        scope.method_names.setdefault(name, []).append(method)
        return
    symbol = FnSymbol(name, qualify(scope.name, name), scope.name, decl)
    scope.functions.append(symbol)
    _declare(scope, symbol, decl.name, found)


def _step(
    scope: ModuleScope,
    decl: ast.StepDecl,
    group: tuple[ast.StepClause, ...],
    found: list[Diagnostic],
) -> None:
    name = decl.name.name
    symbol = StepSymbol(name, qualify(scope.name, name), scope.name, decl, group)
    scope.steps.append(symbol)
    _unique((p.name for p in decl.params), "parameter", scope.path, found)
    _declare(scope, symbol, decl.name, found)


def _flow(scope: ModuleScope, decl: ast.FlowDecl, found: list[Diagnostic]) -> None:
    name = decl.name.name
    flow = FlowSymbol(name, qualify(scope.name, name), scope.name, decl)
    _declare(scope, flow, decl.name, found)
    inner = FlowScope(flow)
    scope.flows.setdefault(flow.qualified, inner)
    _unique((p.name for p in decl.params), "parameter", scope.path, found)
    for param in decl.params:
        slot = FlowSlotSymbol(param.name.name, flow, len(inner.slots), True, param)
        inner.slots.append(slot)
        inner.names.setdefault(slot.name, slot)
    for member in decl.members:
        _member(scope, inner, member, found)


def _member(
    scope: ModuleScope, inner: FlowScope, member: ast.Member, found: list[Diagnostic]
) -> None:
    flow = inner.symbol
    symbol: Symbol
    match member:
        case ast.FieldDecl():
            symbol = FlowSlotSymbol(member.name.name, flow, len(inner.slots), False, member)
            inner.slots.append(symbol)
        case ast.ChannelDecl():
            symbol = ChannelSymbol(member.name.name, flow, len(inner.channels), member)
            inner.channels.append(symbol)
        case ast.ViewDecl():
            symbol = ViewSymbol(member.name.name, flow, len(inner.views), member)
            inner.views.append(symbol)
        case ast.FnDecl():
            name = member.name.name
            symbol = FnSymbol(name, f"{flow.qualified}.{name}", scope.name, member, flow)
            inner.functions.append(symbol)
            _unique((p.name for p in member.params), "parameter", scope.path, found)
            _unique((p.name for p in member.type_params), "type parameter", scope.path, found)
        case ast.ConstDecl():
            name = member.name.name
            symbol = ConstSymbol(name, f"{flow.qualified}.{name}", scope.name, member, flow)
            inner.consts.append(symbol)
        case ast.StepDecl():
            _flow_step(scope, inner, member, (), found)
            return
        case ast.StepsGroup():
            for index, step in enumerate(member.steps):
                _flow_step(scope, inner, step, _clauses_for(member, index), found)
            return
        case ast.RunDecl() | ast.MigrateDecl() | ast.ErrorItem():
            return
    _enter(scope, inner, symbol, member.name, found)


def _flow_step(
    scope: ModuleScope,
    inner: FlowScope,
    decl: ast.StepDecl,
    group: tuple[ast.StepClause, ...],
    found: list[Diagnostic],
) -> None:
    flow, name = inner.symbol, decl.name.name
    step = StepSymbol(name, f"{flow.qualified}.{name}", scope.name, decl, group, flow)
    inner.steps.append(step)
    _unique((p.name for p in decl.params), "parameter", scope.path, found)
    _enter(scope, inner, step, decl.name, found)


def _enter(
    scope: ModuleScope,
    inner: FlowScope,
    symbol: Symbol,
    ident: ast.Ident,
    found: list[Diagnostic],
) -> None:
    """A member's name. Two channels, fields, views or steps of one name are F0009's to report."""
    first = inner.names.setdefault(ident.name, symbol)
    if first is symbol or not ident.name or (_is_state(first) and _is_state(symbol)):
        return
    found.append(_twice(ident, first, "member", scope.path))


def _is_state(symbol: Symbol) -> bool:
    if isinstance(symbol, FlowSlotSymbol):
        return not symbol.parameter
    return isinstance(symbol, ChannelSymbol | ViewSymbol | StepSymbol)


def _clauses_for(group: ast.StepsGroup, index: int) -> tuple[ast.StepClause, ...]:
    """A group's clauses for one of its steps. Each step has its own nodes: facts are kept per node,
    and a clause may mean another parameter in each step. The first step has those of the source."""
    if index == 0:
        return group.clauses
    return tuple(_copy(clause) for clause in group.clauses)


NodeT = TypeVar("NodeT", bound=ast.Node)


def _copy(node: NodeT) -> NodeT:
    values = [_copy_value(getattr(node, name)) for name in ast.field_names(node)]
    return type(node)(*values)


def _copy_value(value: Any) -> Any:
    if isinstance(value, ast.Node):
        return _copy(value)
    if isinstance(value, tuple) and not isinstance(value, Span):
        return tuple(_copy_value(item) for item in value)
    return value


def _declare(scope: ModuleScope, symbol: Symbol, ident: ast.Ident, found: list[Diagnostic]) -> None:
    if not ident.name:
        return
    first = scope.names.get(ident.name)
    if first is not None:
        found.append(_twice(ident, first, "declaration", scope.path))
        return
    scope.names[ident.name] = symbol


def _twice(ident: ast.Ident, first: Symbol, what: str, path: str) -> Diagnostic:
    place = declaration_ident(first)
    labels = [Label(path, place.span, "it is declared here first")] if place is not None else []
    return error(
        "E0206",
        path,
        ident.span,
        f"a second {what} is named `{ident.name}`",
        labels=labels,
        notes=["Give one of the two another name."],
    )


def _unique(idents: Iterable[ast.Ident], what: str, path: str, found: list[Diagnostic]) -> None:
    seen: dict[str, Span] = {}
    for ident in idents:
        if not ident.name:
            continue
        if ident.name in seen:
            found.append(
                error(
                    "E0206",
                    path,
                    ident.span,
                    f"a second {what} is named `{ident.name}`",
                    labels=[Label(path, seen[ident.name], "it is declared here first")],
                    notes=["Give one of the two another name."],
                )
            )
        seen.setdefault(ident.name, ident.span)
