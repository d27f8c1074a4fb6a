"""The call graph: what runs where, and what it does there.

There is one *body* for everything that runs: functions, steps, `run`, views, migrations, closures,
and the expressions in declarations. A body has *operations* (an effect, a wait, a step call) and
*edges* to other bodies. `collect_calls` builds it, `colours` closes it.

A *place* is where a body begins to run (`run`, a step, a view, …) and allows some kinds of
operations. `violations` walks from each place and gives every operation that may not be there, with
the shortest chain of calls to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import Enum

from qoqi.compiler.frozen import Frozen, frozen
from qoqi.compiler.names.symbols import FlowSymbol, FnSymbol, LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.vm.dataclass import dataclass


class Kind(Enum):
    """What an operation is, as far as it matters where it stands."""

    EFFECT = "effect"
    STEP_ONLY = "step only"  # flow.key, flow.attempt, flow.working, flow.retry
    CLOCK = "clock"  # time.now
    FLOW = "flow operation"
    NOW = "flow.now"
    STEP = "step call"
    UNDO = "flow.undo"


class Via(Enum):
    CALL = "calls"
    GIVEN = "gives"
    TASK = "starts as a task"


class Place(Enum):
    """Where code begins to run; the value is how a message says it."""

    FLOW = "the flow"
    STEP = "the step"
    VIEW = "the view"
    MIGRATION = "the migration"
    FIELD = "the field"
    PURE = "a pure expression"
    NATIVE = "a pure function"


ALLOWED: dict[Place, frozenset[Kind]] = {
    Place.FLOW: frozenset({Kind.FLOW, Kind.NOW, Kind.STEP, Kind.UNDO}),
    Place.STEP: frozenset({Kind.EFFECT, Kind.STEP_ONLY, Kind.CLOCK, Kind.UNDO}),
    Place.VIEW: frozenset({Kind.CLOCK}),
    Place.MIGRATION: frozenset({Kind.NOW}),
    Place.FIELD: frozenset({Kind.NOW}),
    Place.PURE: frozenset(),
    Place.NATIVE: frozenset(),
}

TAKE_PURE = frozenset({"List.sortBy"})
"""Functions of the library that take pure functions as natives do, whatever they are made of."""


@frozen
class Operation(Frozen):
    """`node` is the call, or the step where it is used as a value."""

    kind: Kind
    name: str
    node: ast.Node
    module: str


@frozen
class Edge(Frozen):
    target: ast.Node
    node: ast.Node
    via: Via


@frozen
class Handed(Frozen):
    """A function value as an argument: what it is, or the parameter it came in by."""

    callee: FnSymbol
    index: int
    call: ast.Node
    body: ast.Node | None
    operation: Operation | None
    parameter: LocalSymbol | None


@dataclass(slots=True, eq=False)
class Body:
    node: ast.Node
    module: str
    name: str
    flow: FlowSymbol | None
    operations: list[Operation] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    handed: list[Handed] = field(default_factory=list)
    waits: list[ast.WaitExpr] = field(default_factory=list)
    alone: list[ast.Call] = field(default_factory=list)
    """Calls of builtins that are not the case of a `wait match`."""


@frozen
class Root(Frozen):
    body: Body
    place: Place
    name: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One call of a chain: `body` contains `edge`."""

    body: Body
    edge: Edge


@dataclass(frozen=True, slots=True)
class Violation:
    operation: Operation
    root: Root
    chain: tuple[Hop, ...]


@dataclass(slots=True)
class CallGraph:
    bodies: dict[ast.Node, Body] = field(default_factory=dict)
    roots: list[Root] = field(default_factory=list)
    kinds: dict[ast.Node, frozenset[Kind]] = field(default_factory=dict)
    parameters: dict[ast.Node, tuple[LocalSymbol, ...]] = field(default_factory=dict)
    called: list[FnSymbol] = field(default_factory=list)
    """Functions of the library that are called, and whose bodies are still to be looked at."""

    def reach(self, root: Body, *, tasks: bool) -> Iterator[tuple[Body, tuple[Hop, ...]]]:
        """Every body that runs when `root` does, nearest first, each once with its chain.

        Without `tasks`, only what runs in the same task. The library is not entered.
        """
        seen = {root.node}
        queue: deque[tuple[Body, tuple[Hop, ...]]] = deque([(root, ())])
        while queue:
            body, chain = queue.popleft()
            yield body, chain
            for edge in body.edges:
                target = self.bodies.get(edge.target)
                if target is None or edge.target in seen or is_opaque(target):
                    continue
                if edge.via is Via.TASK and not tasks:
                    continue
                seen.add(edge.target)
                queue.append((target, (*chain, Hop(body, edge))))

    def violations(self, roots: Iterable[Root]) -> list[Violation]:
        """Operations that may not be where they are, each once for each place that is wrong."""
        found: dict[tuple[ast.Node, Place], Violation] = {}
        for root in roots:
            allowed = ALLOWED[root.place]
            for body, chain in self.reach(root.body, tasks=True):
                for operation in body.operations:
                    if operation.kind not in allowed:
                        key = (operation.node, root.place)
                        found.setdefault(key, Violation(operation, root, chain))
        return list(found.values())

    def pure_arguments(self) -> Iterator[Root]:
        """Functions given where only a pure one may be: natives, and what hands on to them."""
        required: set[tuple[ast.Node, int]] = set()
        handed = [(body, each) for body in self.bodies.values() for each in body.handed]
        owners = {
            symbol: (body.node, index)
            for body in self.bodies.values()
            for index, symbol in enumerate(self.parameters.get(body.node, ()))
        }
        changed = True
        while changed:
            changed = False
            for _, each in handed:
                if not _takes_pure(each.callee) and (each.callee.decl, each.index) not in required:
                    continue
                owner = owners.get(each.parameter) if each.parameter else None
                if owner is not None and owner not in required:
                    required.add(owner)
                    changed = True
        for body, each in handed:
            if is_library(body.module):
                continue
            if not _takes_pure(each.callee) and (each.callee.decl, each.index) not in required:
                continue
            if each.operation is not None:
                alone = Body(each.call, body.module, body.name, body.flow, [each.operation])
                yield Root(alone, Place.NATIVE, each.callee.name)
            elif each.body is not None and each.body in self.bodies:
                yield Root(self.bodies[each.body], Place.NATIVE, each.callee.name)


def is_library(module: str) -> bool:
    """Whether a module is part of the language: the prelude, or one of `std`."""
    return module in ("", "prelude") or module.split(".", 1)[0] == "std"


def _takes_pure(symbol: FnSymbol) -> bool:
    """Whether a function may be given pure functions only."""
    return symbol.native is not None or symbol.qualified in TAKE_PURE


def is_opaque(body: Body) -> bool:
    """Whether a call of a body is one operation, and no way into it."""
    return is_library(body.module) or isinstance(body.node, ast.ViewDecl)
