"""Colours: what a function may do, inferred through its calls.

A body has the kinds of its own operations and of all bodies it reaches. The standard library is a
black box: a call into it is one operation of the kind its body has, so that diagnostics mark the
user's call and no chain leads into the library. Only those of its functions that are called have
bodies. So is a view, which is checked by itself and may read the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

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


def infer(
    checked: Checked, before: CallGraph | None = None, again: Collection[str] | None = None
) -> CallGraph:
    """Builds the call graph and writes the colours of all bodies into the facts.

    With the graph `before`, only the bodies of the modules in `again` are built, and the others are
    taken over as they are. Those must not reach any in `again` but pure ones.
    """
    names = set(checked.modules) if again is None else set(again)
    graph, new = _build(checked, before, names)
    for node in new:
        if isinstance(node, COLOURED):
            module = graph.bodies[node].module
            checked.facts[module].colours[node] = _colour(node, graph.kinds[node])
    return graph


def _build(
    checked: Checked, before: CallGraph | None, names: set[str]
) -> tuple[CallGraph, list[ast.Node]]:
    """The graph, and the nodes of those of its bodies that are new."""
    graph = CallGraph()
    if before is not None:
        graph.bodies = {
            node: body for node, body in before.bodies.items() if body.module not in names
        }
        graph.kinds = {node: before.kinds[node] for node in graph.bodies}
        graph.roots = [root for root in before.roots if root.body.module not in names]
        graph.parameters = {
            node: names_ for node, names_ in before.parameters.items() if node in graph.bodies
        }
    old = set(graph.bodies)
    flows = {flow.decl: flow for flow in checked.flows}
    steps = {symbol.decl: symbol for symbol in checked.signatures if isinstance(symbol, StepSymbol)}
    for name, module in checked.modules.items():
        if name in names and not is_library(name) and name not in checked.too_deep:
            Declarations(graph, checked.facts[name], name, flows, steps).module(module)
    while graph.called:
        symbol = graph.called.pop()
        if symbol.decl not in graph.bodies:
            facts = checked.facts[symbol.module]
            Declarations(graph, facts, symbol.module, flows, steps).function(symbol.decl, None)
    new = [node for node in graph.bodies if node not in old]
    _close(graph, new)
    _opaque_operations(graph, new)
    _close(graph, new)
    return graph, new


def _colour(node: ast.Node, kinds: frozenset[Kind]) -> Colour:
    if isinstance(node, ast.FnDecl) and node.native is not None:
        return Colour(node.native)
    if kinds & {Kind.FLOW, Kind.NOW, Kind.STEP}:
        return Colour.FLOW
    if kinds & {Kind.EFFECT, Kind.STEP_ONLY, Kind.CLOCK}:
        return Colour.WORLD
    return Colour.FLOW if kinds else Colour.PURE


def _close(graph: CallGraph, new: Iterable[ast.Node]) -> None:
    """The kinds of each new body and of all it reaches, by a worklist over callers."""
    callers: dict[ast.Node, list[ast.Node]] = {}
    kinds = graph.kinds
    work: deque[ast.Node] = deque()
    for node in new:
        body = graph.bodies[node]
        own = frozenset(operation.kind for operation in body.operations)
        kinds[node] = kinds.get(node, frozenset()) | own
        for edge in body.edges:
            callers.setdefault(edge.target, []).append(node)
    work.extend(callers)
    while work:
        node = work.popleft()
        reached = kinds.get(node)
        if not reached:
            continue
        for caller in callers.get(node, ()):
            if not reached <= kinds[caller]:
                kinds[caller] |= reached
                work.append(caller)


def _opaque_operations(graph: CallGraph, new: Iterable[ast.Node]) -> None:
    """Calls into the library, and of views that read the clock, become operations of the caller."""
    for body in [graph.bodies[node] for node in new]:
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
