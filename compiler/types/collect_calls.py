"""Collects the bodies of the call graph from a module's declarations.

- A closure or a function used as a value counts where it is written: `xs.map(charge)` is an edge to
  `charge`. So a function that calls a function it was given takes the colour of what is given at
  each call, and its own colour does not depend on its parameters. A closure bound by `let` counts
  where the name is used.
- What `task.start` and `task.map` are given is a `TASK` edge: it is flow code, but `run` does not
  wait in it.
- The argument of `flow.undo` and `flow.finally` is a call that is made later: only what it is given
  is evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.names.symbols import FlowSymbol, FnSymbol, LocalSymbol, StepSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.call_graph import (
    Body,
    CallGraph,
    Edge,
    Handed,
    Kind,
    Operation,
    Place,
    Root,
    Via,
    is_library,
)
from qoqi.compiler.types.facts import (
    BuiltinTarget,
    CallPlan,
    Facts,
    FnTarget,
    Given,
    StepTarget,
    Target,
    ValueTarget,
    ViewTarget,
)

STEP_ONLY = frozenset({"flow.key", "flow.attempt", "flow.working", "flow.retry"})
NEUTRAL = frozenset({"print", "assert", "fail", "data.toJson", "data.decode", "data.tryDecode"})
TASK_FUNCTION = {"task.start": 0, "task.map": 1}
"""The place of the function among the arguments."""
NOT_CALLED = frozenset({"flow.undo", "flow.finally"})
"""Builtins whose argument is a call that is made later."""


class Declarations:
    """Finds the bodies and roots of one module."""

    def __init__(
        self,
        graph: CallGraph,
        facts: Facts,
        module: str,
        flows: dict[ast.FlowDecl, FlowSymbol],
        steps: dict[ast.StepDecl, StepSymbol],
    ) -> None:
        self.graph = graph
        self.facts = facts
        self.name = module
        self.flows = flows
        self.steps = steps

    def module(self, module: ast.Module) -> None:
        for item in module.items:
            match item:
                case ast.FnDecl():
                    self.function(item, None)
                case ast.StepDecl():
                    self.step(item, None)
                case ast.StepsGroup(steps=steps):
                    for step in steps:
                        self.step(step, None)
                case ast.ConstDecl(name=name, value=value):
                    self.root(value, Place.PURE, f"the constant `{name.name}`", None)
                case ast.StructDecl(fields=members):
                    for member in members:
                        self.default(member.default, member.name.name, None)
                case ast.EnumDecl(variants=variants):
                    for variant in variants:
                        for param in variant.params or ():
                            self.default(param.default, param.name.name, None)
                case ast.FlowDecl():
                    self.flow(item)
                case ast.TestDecl(body=block):
                    # Tests may use everything; the closures in them are bodies nobody judges.
                    self.body(block, "the test", None)
                case ast.GivenStmt():
                    self.body(item, "the given", None)
                case _:
                    continue

    def flow(self, decl: ast.FlowDecl) -> None:
        flow = self.flows.get(decl)
        for param in decl.params:
            self.default(param.default, param.name.name, flow)
        for member in decl.members:
            match member:
                case ast.FnDecl():
                    self.function(member, flow)
                case ast.StepDecl():
                    self.step(member, flow)
                case ast.StepsGroup(steps=steps):
                    for step in steps:
                        self.step(step, flow)
                case ast.RunDecl():
                    self.add(Root(self.body(member, "run", flow), Place.FLOW, decl.name.name))
                case ast.ViewDecl(name=name):
                    self.add(Root(self.body(member, name.name, flow), Place.VIEW, name.name))
                case ast.MigrateDecl(name=name):
                    self.add(Root(self.body(member, name.name, flow), Place.MIGRATION, name.name))
                case ast.FieldDecl(name=name, value=value) if value is not None:
                    self.root(value, Place.FIELD, name.name, flow)
                case ast.ConstDecl(name=name, value=value):
                    self.root(value, Place.PURE, f"the constant `{name.name}`", flow)
                case _:
                    continue

    def add(self, root: Root) -> None:
        if not is_library(self.name):
            self.graph.roots.append(root)

    def root(self, node: ast.Expr, place: Place, name: str, flow: FlowSymbol | None) -> None:
        self.add(Root(self.body(node, name, flow), place, name))

    def default(self, value: ast.Expr | None, name: str, flow: FlowSymbol | None) -> None:
        if value is not None:
            self.root(value, Place.PURE, f"the default of `{name}`", flow)

    def function(self, decl: ast.FnDecl, flow: FlowSymbol | None) -> None:
        for param in decl.params:
            self.default(param.default, param.name.name, flow)
        self.body(decl, decl.name.name, flow)
        locals_ = [self.facts.bindings.get(param) for param in decl.params]
        if None not in locals_:
            self.graph.parameters[decl] = tuple(each for each in locals_ if each is not None)

    def step(self, decl: ast.StepDecl, flow: FlowSymbol | None) -> None:
        for param in decl.params:
            self.default(param.default, param.name.name, flow)
        symbol = self.steps.get(decl)
        group = symbol.group if symbol is not None else ()
        self.clauses((*decl.clauses, *group), f"`{decl.name.name}`", flow)
        if decl.body is not None:
            self.add(Root(self.body(decl, decl.name.name, flow), Place.STEP, decl.name.name))

    def clauses(
        self, clauses: tuple[ast.StepClause, ...], owner: str, flow: FlowSymbol | None
    ) -> None:
        for clause in clauses:
            if isinstance(clause, ast.UndoClause):
                continue  # its call is made later; F0011 says what it may be
            for child in ast.children(clause):
                self.root(_expr(child), Place.PURE, f"a clause of {owner}", flow)

    def body(self, node: ast.Node, name: str, flow: FlowSymbol | None) -> Body:
        body = Body(node, self.name, name, flow)
        self.graph.bodies[node] = body
        collector = _Collector(self, body, {})
        match node:
            case ast.FnDecl(native=native) if native is not None and native != "pure":
                kind = Kind.EFFECT if native == "world" else Kind.FLOW
                if self.name == "std.time" and name == "now":
                    kind = Kind.CLOCK
                body.operations.append(Operation(kind, name, node, self.name))
            case ast.FnDecl(body=block) | ast.StepDecl(body=block):
                if block is not None:
                    collector.visit(block)
            case ast.RunDecl(body=block) | ast.ViewDecl(body=block) | ast.MigrateDecl(body=block):
                collector.visit(block)
            case _:
                collector.visit(node)
        return body


def _expr(node: ast.Node) -> ast.Expr:
    assert not isinstance(node, ast.Ident)
    return node  # type: ignore[return-value]  # the children of a clause are expressions


class _Collector:
    """Collects the operations and edges of one body; closures become bodies of their own."""

    def __init__(
        self, declarations: Declarations, body: Body, functions: dict[LocalSymbol, ast.Expr]
    ) -> None:
        self.declarations = declarations
        self.facts = declarations.facts
        self.body = body
        self.cases: set[ast.Expr] = set()
        self.functions = functions
        """Locals that `let` binds to a closure or function: they count where they are used."""

    def visit(self, node: ast.Node) -> None:
        match node:
            case ast.LambdaExpr():
                self.closure(node)
                self.edge(node, node, Via.GIVEN)
            case ast.LetStmt(mutable=False, pattern=ast.BindPattern() as pattern, value=value) if (
                self.bind_function(pattern, value)
            ):
                return
            case ast.Call():
                self.call(node)
            case ast.Name() | ast.FieldExpr() if node in self.facts.values:
                self.value(node, self.facts.values[node], Via.GIVEN)
            case ast.Name() if (function := self.bound(node)) is not None:
                self.use(function, node, Via.GIVEN)
            case ast.WhenCase(condition=condition):
                self.condition(condition)
            case ast.ReceiveCase(value=value):
                self.cases.add(_bare(value))
                self.visit(value)
            case ast.WaitExpr(arms=arms):
                self.body.waits.append(node)
                for arm in arms:
                    self.visit(arm)
            case ast.StructExpr():
                for child in (*ast.children(node), *short_names(self.facts, node)):
                    self.visit(child)
            case _:
                for child in ast.children(node):
                    self.visit(child)

    def condition(self, condition: ast.Expr) -> None:
        """What is looked at again whenever a field changed: pure."""
        self.declarations.root(condition, Place.PURE, "the condition of a wait", self.body.flow)

    def closure(self, node: ast.LambdaExpr) -> None:
        body = Body(node, self.body.module, "a closure", self.body.flow)
        self.declarations.graph.bodies[node] = body
        _Collector(self.declarations, body, self.functions).visit(node.body)

    def bind_function(self, pattern: ast.BindPattern, value: ast.Expr) -> bool:
        function = _bare(value)
        local = self.facts.bindings.get(pattern)
        if local is None:
            return False
        if isinstance(function, ast.LambdaExpr):
            self.closure(function)
        elif function not in self.facts.values:
            return False
        self.functions[local] = function
        return True

    def bound(self, node: ast.Node) -> ast.Expr | None:
        symbol = self.facts.uses.get(node)
        return self.functions.get(symbol) if isinstance(symbol, LocalSymbol) else None

    def use(self, function: ast.Expr, node: ast.Node, via: Via) -> None:
        """An edge to a function value, or the operation it is."""
        if isinstance(function, ast.LambdaExpr):
            self.edge(function, node, via)
        elif function in self.facts.values:
            self.value(node, self.facts.values[function], via)

    def value(self, node: ast.Node, target: Target, via: Via) -> None:
        match target:
            case FnTarget(symbol):
                self.function(symbol, node, via)
            case StepTarget(symbol):
                self.operation(Kind.STEP, symbol.name, node)
            case BuiltinTarget(name=name) if (kind := builtin_kind(name)) is not None:
                self.operation(kind, name, node)
            case _:
                return

    def edge(self, target: ast.Node, node: ast.Node, via: Via) -> None:
        self.body.edges.append(Edge(target, node, via))

    def function(self, symbol: FnSymbol, node: ast.Node, via: Via) -> None:
        self.edge(symbol.decl, node, via)
        if is_library(symbol.module):
            self.declarations.graph.called.append(symbol)

    def operation(self, kind: Kind, name: str, node: ast.Node) -> None:
        self.body.operations.append(Operation(kind, name, node, self.body.module))

    def call(self, call: ast.Call) -> None:
        plan = self.facts.calls.get(call)
        if isinstance(call.fn, ast.FieldExpr):
            self.visit(call.fn.base)
        elif not isinstance(call.fn, ast.Name):
            self.visit(call.fn)
        if plan is None:
            for arg in call.args:
                self.visit(arg.value)
            return
        match plan.target:
            case FnTarget(symbol):
                self.function(symbol, call, Via.CALL)
                self.hand(call, plan, symbol)
            case StepTarget(symbol):
                self.operation(Kind.STEP, symbol.name, call)
            case ViewTarget(symbol):
                self.edge(symbol.decl, call, Via.CALL)
            case ValueTarget(callee):
                function = self.bound(_bare(callee))
                if function is not None:
                    self.use(function, call, Via.CALL)
            case BuiltinTarget(name=name):
                self.builtin(call, plan, name)
                return
            case _:
                pass
        for arg in call.args:
            self.visit(arg.value)

    def builtin(self, call: ast.Call, plan: CallPlan, name: str) -> None:
        kind = builtin_kind(name)
        if kind is not None:
            self.operation(kind, name, call)
        if call not in self.cases:
            self.body.alone.append(call)
        place = TASK_FUNCTION.get(name)
        source = plan.args[place] if place is not None and place < len(plan.args) else None
        started = source.value if isinstance(source, Given) else None
        for arg in call.args:
            if arg.value is started:
                self.task(arg.value)
            elif name == "flow.until":
                self.condition(arg.value)
            elif name in NOT_CALLED and isinstance(_bare(arg.value), ast.Call):
                later = _bare(arg.value)
                assert isinstance(later, ast.Call)
                if isinstance(later.fn, ast.FieldExpr):
                    self.visit(later.fn.base)
                for inner in later.args:
                    self.visit(inner.value)
            else:
                self.visit(arg.value)

    def task(self, value: ast.Expr) -> None:
        function = _bare(value)
        if isinstance(function, ast.LambdaExpr):
            self.closure(function)
            self.edge(function, function, Via.TASK)
        elif (known := self.bound(function)) is not None:
            self.use(known, function, Via.TASK)
        elif function in self.facts.values:
            self.value(function, self.facts.values[function], Via.TASK)
        else:
            self.visit(function)

    def hand(self, call: ast.Call, plan: CallPlan, callee: FnSymbol) -> None:
        """Notes the arguments that are functions, for natives that take pure ones."""
        for index, source in enumerate(plan.args):
            if not isinstance(source, Given):
                continue
            value = _bare(source.value)
            symbol = self.facts.uses.get(value)
            known = self.bound(value) or value
            body: ast.Node | None = None
            operation: Operation | None = None
            parameter: LocalSymbol | None = None
            if isinstance(known, ast.LambdaExpr):
                body = known
            elif known in self.facts.values:
                target = self.facts.values[known]
                if isinstance(target, FnTarget):
                    body = target.symbol.decl
                elif isinstance(target, StepTarget):
                    name = target.symbol.name
                    operation = Operation(Kind.STEP, name, value, self.body.module)
            elif isinstance(symbol, LocalSymbol):
                parameter = symbol
            if body or operation or parameter:
                self.body.handed.append(Handed(callee, index, call, body, operation, parameter))


def short_names(facts: Facts, node: ast.StructExpr) -> Iterator[ast.Name]:
    """The names that stand for the fields of a struct literal that have no value: `Claim { id }`.

    The checker makes them; they are in the literal's plan and not in the tree.
    """
    plan = facts.structs.get(node)
    short = {init.name.span for init in node.fields if init.value is None}
    for source in plan.fields if plan is not None else ():
        name = source.value if isinstance(source, Given) else None
        if isinstance(name, ast.Name) and name.span in short:
            yield name


def builtin_kind(name: str) -> Kind | None:
    """The kind of a builtin; None for what may stand anywhere."""
    if name in NEUTRAL:
        return None
    if name in STEP_ONLY:
        return Kind.STEP_ONLY
    if name == "flow.now":
        return Kind.NOW
    if name == "flow.undo":
        return Kind.UNDO
    if name.split(".", 1)[0] in ("channel", "instance", "task", "flow", "request"):
        return Kind.FLOW
    return None


def _bare(expr: ast.Expr) -> ast.Expr:
    """An expression without the parentheses around it."""
    while isinstance(expr, ast.ParenExpr):
        expr = expr.inner
    return expr
