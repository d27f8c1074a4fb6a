"""Inlay hints: types that are inferred, and what a call does to the flow that makes it.

A variable without a written type shows the one it has, unless its value says it: a literal, a
struct, a variant. A call of a step shows `step`, one that may wait `waits`; in `undo release(it)`
nothing is called yet. In a call of three or more literals the parameters' names are shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import (
    BuiltinTarget,
    Facts,
    FnTarget,
    Given,
    StepTarget,
    VariantTarget,
)
from qoqi.compiler.types.model import ErrorType, Tup, show
from qoqi.lsp.hover import may_wait
from qoqi.lsp.names import nodes_of
from qoqi.lsp.spelling import spelled
from qoqi.vm.dataclass import dataclass

LONG = 40
_PLAIN = (
    ast.IntLit,
    ast.DecimalLit,
    ast.DurationLit,
    ast.DateLit,
    ast.TimeLit,
    ast.BoolLit,
    ast.StringLit,
)


@dataclass(frozen=True, slots=True)
class Hint:
    """`text` is shown at `at`; `written` is what to write there for it, if that can be."""

    at: int
    text: str
    tooltip: str
    is_type: bool
    before: bool = False
    written: str | None = None


def hints(snapshot: Snapshot, module: str, within: Span) -> list[Hint]:
    facts = snapshot.checked.facts.get(module)
    if facts is None:
        return []
    nodes = list(nodes_of(snapshot, module))
    undoing = {id(node.call) for node in nodes if isinstance(node, ast.UndoClause)}
    place = _Place(snapshot, module, facts)
    found = [
        hint
        for node in nodes
        for hint in _of(place, node, undoing)
        if within.start <= hint.at <= within.end
    ]
    return sorted(found, key=lambda hint: hint.at)


@dataclass(frozen=True, slots=True)
class _Place:
    snapshot: Snapshot
    module: str
    facts: Facts


def _of(place: _Place, node: ast.Node, undoing: set[int]) -> Iterator[Hint]:
    match node:
        case ast.LetStmt(pattern=ast.BindPattern(), type=None) if not _obvious(node.value):
            yield from _type(place, node.pattern, node.value)
        case ast.ForStmt(pattern=pattern):
            yield from _type(place, pattern, None)
        case ast.LambdaParam(pattern=pattern, type=None):
            yield from _type(place, pattern, None)
        case ast.ReceiveCase(pattern=ast.BindPattern() as pattern):
            yield from _type(place, pattern, node.value)
        case ast.FieldDecl(type=None) if node.value is not None and not _obvious(node.value):
            yield from _type(place, node.name, node.value)
        case ast.Call():
            if id(node) not in undoing:
                yield from _effect(place.facts, node)
            yield from _parameters(place.facts, node)
        case _:
            pass


def _obvious(value: ast.Expr) -> bool:
    match value:
        case ast.StructExpr():
            return True
        case ast.Call(fn=ast.Name(name=name)) | ast.Name(name=name):
            return name[:1].isupper()
        case ast.Call(fn=ast.FieldExpr(name=ident)):
            return ident.name[:1].isupper()
        case _:
            return isinstance(value, _PLAIN)


def _type(place: _Place, at: ast.Node, value: ast.Expr | None) -> Iterator[Hint]:
    if not isinstance(at, ast.BindPattern | ast.Ident):
        return
    type_ = place.facts.types.get(at)
    if type_ is None and value is not None:
        type_ = place.facts.types.get(value)
    if type_ is None or isinstance(type_, ErrorType) or type_ == Tup():
        return
    written = spelled(place.snapshot, place.module, type_)
    text = written or show(type_)
    if len(text) > LONG or "_" in text:
        return
    edit = f": {written}" if written is not None else None
    yield Hint(at.span.end, f": {text}", "the type it has", True, written=edit)


def _effect(facts: Facts, call: ast.Call) -> Iterator[Hint]:
    plan = facts.calls.get(call)
    if plan is None:
        return
    at = call.span.end
    match plan.target:
        case StepTarget():
            yield Hint(at, "step", "The flow goes on when the answer is kept.", False)
        case BuiltinTarget(name=name) if may_wait(name):
            yield Hint(at, "waits", "The instance may wait here, for days.", False)
        case _:
            pass


def _parameters(facts: Facts, call: ast.Call) -> Iterator[Hint]:
    plan = facts.calls.get(call)
    if plan is None:
        return
    match plan.target:
        case FnTarget(symbol=symbol) | StepTarget(symbol=symbol) | VariantTarget(symbol=symbol):
            params = symbol.decl.params or ()
        case _:
            return
    unnamed = [arg for arg in call.args if arg.name is None and isinstance(arg.value, _PLAIN)]
    if len(unnamed) < 2 or len(call.args) < 2:
        return
    for param, source in zip(params, plan.args, strict=False):
        if isinstance(source, Given) and any(arg.value is source.value for arg in unnamed):
            yield Hint(source.value.span.start, f"{param.name.name}:", "the parameter", False, True)
