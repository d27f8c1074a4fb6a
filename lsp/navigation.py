"""From a name to others: definition, type definition, references, highlights, rename, calls.

All of it is over the occurrences of a key (`names`). A rename is refused, with the reason, where
the new name is no name, is taken, or would mean something else at one of the places: the package is
checked with the edits made, and has to mean what it meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from qoqi.compiler.diagnostics import Edit
from qoqi.compiler.incremental import Snapshot, Watch, recheck
from qoqi.compiler.names.symbols import FlowSymbol, FnSymbol, StepSymbol, ViewSymbol
from qoqi.compiler.project.load import Package
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.tokens import RESERVED
from qoqi.compiler.syntax.walk import node_at
from qoqi.compiler.types.facts import BuiltinTarget, Facts, FnTarget, StepTarget, ViewTarget
from qoqi.compiler.types.model import Con, FlowRef, Fn, Tup, Type
from qoqi.lsp.names import (
    Declared,
    Key,
    Occurrence,
    all_occurrences,
    current,
    key_of,
    nodes_of,
    occurrence_at,
    occurrences,
    written,
)
from qoqi.vm.dataclass import dataclass

_LOWER = re.compile(r"[a-z_][A-Za-z0-9_]*")
_UPPER = re.compile(r"[A-Z][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Place:
    path: str
    span: Span
    whole: Span


def definition(snapshot: Snapshot, module: str, offset: int) -> Place | None:
    found = occurrence_at(snapshot, module, offset)
    place = current(snapshot, found.key) if found is not None else None
    return _place(place) if place is not None else None


def _place(declared: Declared) -> Place:
    return Place(declared.path, declared.span, declared.node.span)


def type_definition(snapshot: Snapshot, module: str, offset: int) -> Place | None:
    """Where the type of what is under the cursor is declared."""
    tree = snapshot.checked.modules.get(module)
    facts = snapshot.checked.facts.get(module)
    if tree is None or facts is None:
        return None
    for node in reversed(node_at(tree, offset)):
        type_ = facts.types.get(node)
        if type_ is None and node in facts.bindings:
            type_ = facts.types.get(node)
        if type_ is not None:
            for name in _declared_in(type_):
                place = current(snapshot, ("type", name))
                if place is not None:
                    return _place(place)
    found = occurrence_at(snapshot, module, offset)
    if found is not None and found.symbol is not None:
        type_ = snapshot.checked.declared.get(found.symbol)
        for name in _declared_in(type_) if type_ is not None else ():
            place = current(snapshot, ("type", name))
            if place is not None:
                return _place(place)
    return None


def _declared_in(type_: Type) -> Iterator[str]:
    """The declared types a type is made of, those outside in the library last."""
    match type_:
        case Con(name=name, args=args):
            if name in ("Option", "List", "Set", "Result", "Settled", "Task", "Request", "Map"):
                for arg in args:
                    yield from _declared_in(arg)
            yield name
            for arg in args:
                yield from _declared_in(arg)
        case FlowRef(name=name):
            yield name
        case Tup(items=items):
            for item in items:
                yield from _declared_in(item)
        case Fn(result=result):
            yield from _declared_in(result)
        case _:
            pass


def references(
    snapshot: Snapshot, module: str, offset: int, *, declaration: bool
) -> list[tuple[str, Span]]:
    found = occurrence_at(snapshot, module, offset)
    if found is None:
        return []
    places = [
        (snapshot.sources[name].path, each.span)
        for name, here in all_occurrences(snapshot, found.key).items()
        for each in here
        if declaration or not each.declares
    ]
    return sorted(set(places))


def highlights(snapshot: Snapshot, module: str, offset: int) -> list[tuple[Span, bool]]:
    """The same name in this file; true where it is declared or assigned."""
    found = occurrence_at(snapshot, module, offset)
    if found is None:
        return []
    written_at = {
        _target(node).span
        for node in nodes_of(snapshot, module)
        if isinstance(node, ast.AssignStmt)
    }
    return [
        (each.span, each.declares or each.span in written_at)
        for each in occurrences(snapshot, module)
        if each.key == found.key
    ]


def _target(node: ast.AssignStmt) -> ast.Node:
    target: ast.Node = node.target
    while isinstance(target, ast.FieldExpr | ast.IndexExpr):
        target = target.name if isinstance(target, ast.FieldExpr) else target.base
    return target


# -- rename --------------------------------------------------------------------------------------


class Refused(Exception):
    """A rename that is not done; its text says why."""


def prepare_rename(snapshot: Snapshot, module: str, offset: int) -> tuple[Span, str]:
    """The name that would be renamed."""
    found = _renamed(snapshot, module, offset)
    text = snapshot.sources[module].text
    return found.span, text[found.span.start : found.span.end]


def _renamed(snapshot: Snapshot, module: str, offset: int) -> Occurrence:
    found = occurrence_at(snapshot, module, offset)
    if found is None:
        raise Refused("There is no name here.")
    if found.key[0] in ("module", "builtin"):
        raise Refused("A module is named by its file, and types of the language have their names.")
    place = current(snapshot, found.key)
    if place is None or place.module not in snapshot.parsed:
        raise Refused("This is declared in the standard library.")
    if snapshot.package.packages.get(place.module):
        raise Refused("This is declared in another package.")
    text = snapshot.sources[place.module].text[place.span.start : place.span.end]
    if text in ("self", "it"):
        raise Refused(f"`{text}` has its name from the language.")
    return found


def rename(
    snapshot: Snapshot, module: str, offset: int, name: str, watch: Watch | None = None
) -> list[Edit]:
    """The edits of a rename, tried in a check with a watch; raises `Refused`."""
    found = _renamed(snapshot, module, offset)
    old = written(snapshot, found.key) or ""
    if name == old:
        return []
    upper = old[:1].isupper()
    if not (_UPPER if upper else _LOWER).fullmatch(name):
        kind = "an upper-case" if upper else "a lower-case"
        raise Refused(f"`{name}` is no name for this: it begins with {kind} letter.")
    if name in RESERVED:
        raise Refused(f"`{name}` is a word of the language.")
    edits = _edits(snapshot, found.key, name)
    _must_mean_the_same(snapshot, old, name, edits, watch)
    return edits


def _edits(snapshot: Snapshot, key: Key, name: str) -> list[Edit]:
    edits: list[Edit] = []
    for module, here in all_occurrences(snapshot, key).items():
        path = snapshot.sources[module].path
        text = snapshot.sources[module].text
        for each in here:
            old = text[each.span.start : each.span.end]
            # `Claim { id }` is a field and a variable of one name; from now on they have two.
            if each.short:
                new = f"{name}: {old}" if key[0] == "field" else f"{old}: {name}"
            else:
                new = name
            edits.append(Edit(path, each.span, new))
    unique = {(edit.file, edit.span): edit for edit in edits}
    return [unique[place] for place in sorted(unique)]


def apply(text: str, edits: list[Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def _must_mean_the_same(
    snapshot: Snapshot, old: str, name: str, edits: list[Edit], watch: Watch | None
) -> None:
    """Checks the package with the edits made: same diagnostics, and every name as before."""
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        by_file.setdefault(edit.file, []).append(edit)
    sources = tuple(
        SourceFile(s.path, s.module, apply(s.text, by_file[s.path])) if s.path in by_file else s
        for s in snapshot.package.sources
    )
    old_package = snapshot.package
    package = Package(
        old_package.name,
        old_package.root,
        sources,
        old_package.diagnostics,
        old_package.packages,
        old_package.manifest,
    )
    after = recheck(package, snapshot, watch)
    before_codes = sorted((each.file, each.code) for each in snapshot.diagnostics)
    after_codes = sorted((each.file, each.code) for each in after.diagnostics)
    if before_codes != after_codes:
        fresh = next(
            (each for each in after.diagnostics if (each.file, each.code) not in before_codes), None
        )
        why = f": {fresh.message}" if fresh is not None else ""
        raise Refused(f"`{old}` cannot be named `{name}`{why}.")
    modules = [s.module for s in snapshot.package.sources if s.path in by_file]
    modules = sorted({*modules, *after.again})
    if _meanings(snapshot, modules) != _meanings(after, modules):
        raise Refused(f"`{name}` would then mean something else where `{old}` is used.")


def _meanings(snapshot: Snapshot, modules: list[str]) -> list[int]:
    """Which names mean the same: for each, the number of the first that means what it does.

    What is renamed is declared in one of the modules, so a name that means it by mistake, or does
    not any more, changes these numbers.
    """
    first: dict[Key, int] = {}
    found: list[int] = []
    for module in modules:
        here = occurrences(snapshot, module)
        here.sort(key=lambda each: (each.span, each.key[0] != "field"))
        for each in here:
            found.append(first.setdefault(each.key, len(first)))
    return found


# -- calls ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallItem:
    """A flow, function, step or view that calls and is called."""

    key: Key
    name: str
    kind: str
    path: str
    span: Span
    whole: Span


def call_item(snapshot: Snapshot, module: str, offset: int) -> CallItem | None:
    found = occurrence_at(snapshot, module, offset)
    if found is None:
        return None
    return _call_item(snapshot, found.key)


def _call_item(snapshot: Snapshot, key: Key) -> CallItem | None:
    kinds = {"fn": "Function", "step": "Event", "view": "Method", "type": "Class"}
    place = current(snapshot, key)
    if place is None or key[0] not in kinds:
        return None
    if key[0] == "type" and not isinstance(place.node, ast.FlowDecl):
        return None
    name = snapshot.sources[place.module].text[place.span.start : place.span.end]
    return CallItem(key, name, kinds[key[0]], place.path, place.span, place.node.span)


def outgoing(snapshot: Snapshot, key: Key) -> list[tuple[CallItem, list[Span]]]:
    """What a declaration calls, and where."""
    place = current(snapshot, key)
    facts = snapshot.checked.facts.get(place.module) if place is not None else None
    if place is None or facts is None:
        return []
    found: dict[Key, list[Span]] = {}
    whole = place.node.span
    inner = _members(place.node)
    for span, called in _calls(facts):
        inside = whole.start <= span.start < whole.end
        if inside and not any(each.start <= span.start < each.end for each in inner):
            found.setdefault(called, []).append(span)
    items = ((_call_item(snapshot, called), spans) for called, spans in found.items())
    return [(item, sorted(spans)) for item, spans in items if item is not None]


def incoming(snapshot: Snapshot, key: Key) -> list[tuple[CallItem, list[Span]]]:
    """What calls a declaration, and where."""
    found: dict[Key, list[Span]] = {}
    for module in snapshot.parsed:
        facts = snapshot.checked.facts[module]
        for span, called in _calls(facts):
            if called == key:
                owner = _owner(snapshot, module, span.start)
                if owner is not None:
                    found.setdefault(owner, []).append(span)
    items = ((_call_item(snapshot, owner), spans) for owner, spans in found.items())
    return [(item, sorted(spans)) for item, spans in items if item is not None]


def _members(node: ast.Node) -> list[Span]:
    """What of a flow calls in its own name."""
    if not isinstance(node, ast.FlowDecl):
        return []
    kinds = (ast.FnDecl, ast.StepDecl, ast.ViewDecl, ast.MigrateDecl)
    return [member.span for member in node.members if isinstance(member, kinds)]


def _calls(facts: Facts) -> Iterator[tuple[Span, Key]]:
    """Calls of declarations: the span of the name, and whom they call."""
    for call, plan in facts.calls.items():
        span = call.fn.name.span if isinstance(call.fn, ast.FieldExpr) else call.fn.span
        match plan.target:
            case FnTarget(symbol=symbol) | StepTarget(symbol=symbol) | ViewTarget(symbol=symbol):
                yield span, key_of(symbol, facts.module)
            case BuiltinTarget(name="instance.start" | "test.start", flow=FlowSymbol() as flow):
                yield span, key_of(flow, facts.module)
            case _:
                pass
    for node, target in facts.values.items():
        if isinstance(target, FnTarget | StepTarget):
            span = node.name.span if isinstance(node, ast.FieldExpr) else node.span
            yield span, key_of(target.symbol, facts.module)


def _owner(snapshot: Snapshot, module: str, offset: int) -> Key | None:
    """The declaration that the code at an offset belongs to."""
    scope = snapshot.program.scopes[module]
    for flow in scope.flows.values():
        members: list[FnSymbol | StepSymbol | ViewSymbol] = [
            *flow.functions,
            *flow.steps,
            *flow.views,
        ]
        for member in members:
            if member.decl.span.start <= offset < member.decl.span.end:
                return key_of(member, module)
        if flow.symbol.decl.span.start <= offset < flow.symbol.decl.span.end:
            return key_of(flow.symbol, module)
    declared: list[FnSymbol | StepSymbol] = [*scope.functions, *scope.steps]
    for symbol in declared:
        if symbol.decl.span.start <= offset < symbol.decl.span.end:
            return key_of(symbol, module)
    return None
