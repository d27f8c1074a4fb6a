"""Colours: what a function may do, inferred through its calls.

A body has the kinds of its own operations and of all bodies it reaches. The standard library is a
black box: a call into it is one operation of the kind its body has, so that diagnostics mark the
user's call and no chain leads into the library. Only those of its functions that are called have
bodies. So is a view, which is checked by itself and may read the clock.
"""

from __future__ import annotations

from collections import deque

from qoqi.compiler.names.symbols import StepSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.call_graph import (
    ALLOWED,
    CallGraph,
    Kind,
    Operation,
    Place,
    is_library,
    is_opaque,
)
from qoqi.compiler.types.collect_calls import Declarations
from qoqi.compiler.types.facts import Checked, Colour

COLOURED = (ast.FnDecl, ast.StepDecl, ast.LambdaExpr, ast.RunDecl, ast.ViewDecl)


def infer(checked: Checked) -> CallGraph:
    """Builds the call graph and writes the colours of all bodies into the facts."""
    graph = build(checked)
    for node, body in graph.bodies.items():
        if isinstance(node, COLOURED):
            checked.facts[body.module].colours[node] = _colour(node, graph.kinds[node])
    return graph


def build(checked: Checked) -> CallGraph:
    graph = CallGraph()
    flows = {flow.decl: flow for flow in checked.flows}
    steps = {symbol.decl: symbol for symbol in checked.signatures if isinstance(symbol, StepSymbol)}
    for name, module in checked.modules.items():
        if not is_library(name):
            Declarations(graph, checked.facts[name], name, flows, steps).module(module)
    while graph.called:
        symbol = graph.called.pop()
        if symbol.decl not in graph.bodies:
            facts = checked.facts[symbol.module]
            Declarations(graph, facts, symbol.module, flows, steps).function(symbol.decl, None)
    _close(graph)
    _opaque_operations(graph)
    _close(graph)
    return graph


def _colour(node: ast.Node, kinds: frozenset[Kind]) -> Colour:
    if isinstance(node, ast.FnDecl) and node.native is not None:
        return Colour(node.native)
    if kinds & {Kind.FLOW, Kind.NOW, Kind.STEP}:
        return Colour.FLOW
    if kinds & {Kind.EFFECT, Kind.STEP_ONLY, Kind.CLOCK}:
        return Colour.WORLD
    return Colour.FLOW if kinds else Colour.PURE


def _close(graph: CallGraph) -> None:
    """The kinds of each body and of all it reaches, by a worklist over callers."""
    callers: dict[ast.Node, list[ast.Node]] = {}
    kinds = {
        node: frozenset(operation.kind for operation in body.operations)
        for node, body in graph.bodies.items()
    }
    for node, body in graph.bodies.items():
        for edge in body.edges:
            callers.setdefault(edge.target, []).append(node)
    work = deque(graph.bodies)
    while work:
        node = work.popleft()
        for caller in callers.get(node, ()):
            joined = kinds[caller] | kinds[node]
            if joined != kinds[caller]:
                kinds[caller] = joined
                work.append(caller)
    graph.kinds = kinds


def _opaque_operations(graph: CallGraph) -> None:
    """Calls into the library, and of views that read the clock, become operations of the caller."""
    for body in graph.bodies.values():
        if is_library(body.module):
            continue
        for edge in body.edges:
            target = graph.bodies.get(edge.target)
            if target is None or not is_opaque(target):
                continue
            kinds = graph.kinds[edge.target]
            if isinstance(target.node, ast.ViewDecl):
                kinds &= ALLOWED[Place.VIEW]
            for kind in Kind:
                if kind in kinds:
                    body.operations.append(Operation(kind, target.name, edge.node, body.module))
                    break
