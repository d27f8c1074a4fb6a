"""What every rule is given, and how it finds its way: declarations, nodes, text.

A rule is a function `(Context) -> Iterator[Diagnostic]`. It looks at the user's modules only
(`modules`), reads the checker's facts and the call graph, and keeps nothing between runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TypeAlias

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label
from qoqi.compiler.names.symbols import FlowSlotSymbol, FlowSymbol, LocalSymbol, StepSymbol
from qoqi.compiler.rules.data_types import DataTypes, data_types
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.call_graph import Body, CallGraph, Hop, Root, is_library
from qoqi.compiler.types.collect_calls import short_names
from qoqi.compiler.types.facts import BuiltinTarget, Checked, Facts, Given
from qoqi.vm.dataclass import dataclass

INDENT = "    "

WAITS = frozenset(
    {
        "channel.receive",
        "instance.ask",
        "instance.wait",
        "task.join",
        "task.first",
        "flow.sleep",
        "flow.sleepUntil",
        "flow.until",
    }
)
"""Bare calls that wait for something a cancellation would have to interrupt."""

LONG_CALLS = WAITS | {"task.map", "task.all", "task.settle", "channel.send"}
"""Calls during which other things may happen to the instance."""


@dataclass(slots=True)
class Whole:
    """What is looked up in a whole package, made once however many of its modules are judged.

    All but `data` is by module. `given` are the functions that are given where only a pure one may
    be.
    """

    data: DataTypes
    flows: dict[str, list[FlowSymbol]] = field(default_factory=dict[str, list[FlowSymbol]])
    steps: dict[str, list[StepSymbol]] = field(default_factory=dict[str, list[StepSymbol]])
    bodies: dict[str, list[Body]] = field(default_factory=dict[str, list[Body]])
    roots: dict[str, list[Root]] = field(default_factory=dict[str, list[Root]])
    given: dict[str, list[Root]] = field(default_factory=dict[str, list[Root]])


def whole(checked: Checked, graph: CallGraph) -> Whole:
    found = Whole(data_types(checked))
    for flow in checked.flows:
        found.flows.setdefault(flow.module, []).append(flow)
    for symbol in checked.signatures:
        if isinstance(symbol, StepSymbol):
            found.steps.setdefault(symbol.module, []).append(symbol)
    for body in graph.bodies.values():
        found.bodies.setdefault(body.module, []).append(body)
    for root in graph.roots:
        found.roots.setdefault(root.body.module, []).append(root)
    for root in graph.pure_arguments():
        found.given.setdefault(root.body.module, []).append(root)
    return found


@dataclass(frozen=True, slots=True)
class Context:
    """`trees` has the nodes of each of the user's modules, flat and in the order of the source, the
    modules by name; `known_runs` those of each `run` that was asked for."""

    checked: Checked
    sources: Mapping[str, SourceFile]
    graph: CallGraph
    whole: Whole
    trees: Mapping[str, tuple[ast.Node, ...]]
    known_runs: dict[ast.RunDecl, tuple[ast.Node, ...]] = field(
        default_factory=dict[ast.RunDecl, tuple[ast.Node, ...]]
    )

    @property
    def data(self) -> DataTypes:
        return self.whole.data

    def modules(self) -> Iterator[tuple[str, ast.Module, Facts]]:
        """The user's modules that have a source, with their facts."""
        for name in self.trees:
            yield name, self.checked.modules[name], self.checked.facts[name]

    def flows(self) -> Iterator[tuple[FlowSymbol, Facts]]:
        for name in self.trees:
            for flow in self.whole.flows.get(name, ()):
                yield flow, self.checked.facts[name]

    def roots(self) -> Iterator[Root]:
        """Where code of the user's modules begins to run, functions that are given last."""
        for group in (self.whole.roots, self.whole.given):
            for name in self.trees:
                yield from group.get(name, ())

    def run_nodes(self, run: ast.RunDecl) -> tuple[ast.Node, ...]:
        found = self.known_runs.get(run)
        if found is None:
            found = self.known_runs[run] = tuple(nodes(run))
        return found

    def stages(self, flow: ast.FlowDecl) -> list[ast.StageStmt]:
        run = run_of(flow)
        tree = self.run_nodes(run) if run is not None else ()
        return [node for node in tree if isinstance(node, ast.StageStmt)]

    def bodies(self) -> Iterator[tuple[Body, ast.Block, Facts]]:
        """The bodies of the user's modules that are blocks of statements."""
        for name in self.trees:
            for body in self.whole.bodies.get(name, ()):
                node = body.node
                block = node if isinstance(node, ast.Block) else getattr(node, "body", None)
                if isinstance(block, ast.Block):
                    yield body, block, self.checked.facts[name]

    def steps(self) -> Iterator[StepSymbol]:
        """The steps of the user's modules; facts of a group's clauses are those of `group`."""
        for name in self.trees:
            yield from self.whole.steps.get(name, ())

    def path(self, module: str) -> str:
        return self.sources[module].path

    def text(self, module: str, span: Span) -> str:
        return self.sources[module].text[span.start : span.end]

    def indent(self, module: str, offset: int) -> str:
        """The white space that begins the line of an offset."""
        text = self.sources[module].text
        line = text[text.rfind("\n", 0, offset) + 1 : offset]
        return line[: len(line) - len(line.lstrip())]

    def edit(self, module: str, span: Span, text: str) -> Edit:
        return Edit(self.path(module), span, text)

    def insert(self, title: str, module: str, offset: int, text: str) -> Fix:
        return Fix(title, (self.edit(module, Span(offset, offset), text),))

    def replace(self, title: str, module: str, span: Span, text: str) -> Fix:
        return Fix(title, (self.edit(module, span, text),))

    def remove(self, title: str, module: str, span: Span) -> Fix:
        """Takes a span out together with the white space before it."""
        before = self.sources[module].text[: span.start]
        return self.replace(title, module, Span(len(before.rstrip()), span.end), "")

    def chain(self, hops: tuple[Hop, ...]) -> list[Label]:
        """One label for each call that leads somewhere."""
        labels: list[Label] = []
        for hop in hops:
            target = self.graph.bodies[hop.edge.target]
            callee = target.name if isinstance(target.node, ast.LambdaExpr) else f"`{target.name}`"
            text = f"`{hop.body.name}` {hop.edge.via.value} {callee} here"
            if isinstance(hop.body.node, ast.LambdaExpr):
                text = f"{hop.body.name} {hop.edge.via.value} {callee} here"
            labels.append(Label(self.path(hop.body.module), hop.edge.node.span, text))
        return labels


Rule: TypeAlias = Callable[[Context], Iterator[Diagnostic]]


def context(checked: Checked, sources: Mapping[str, SourceFile], graph: CallGraph) -> Context:
    trees = {
        name: tuple(nodes(module))
        for name, module in sorted(checked.modules.items())
        if name in sources and not is_library(name) and name not in checked.too_deep
    }
    return Context(checked, sources, graph, whole(checked, graph), trees)


def nodes(root: ast.Node) -> Iterator[ast.Node]:
    """A node and all below it, in the order of the source."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        below = ast.children(node)
        if below:
            below.reverse()
            stack += below


def own_nodes(root: ast.Node) -> Iterator[ast.Node]:
    """As `nodes`, without what stands in closures: they are bodies of their own."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        below = [each for each in ast.children(node) if not isinstance(each, ast.LambdaExpr)]
        stack.extend(reversed(below))


def names(facts: Facts, root: ast.Node) -> Iterator[ast.Name]:
    """Every use of a name, those among them that a struct literal's `id` alone stands for."""
    for node in nodes(root):
        if isinstance(node, ast.Name):
            yield node
        elif isinstance(node, ast.StructExpr):
            yield from short_names(facts, node)


def run_of(decl: ast.FlowDecl) -> ast.RunDecl | None:
    return next((each for each in decl.members if isinstance(each, ast.RunDecl)), None)


def steps_of(
    members: tuple[ast.Item, ...] | tuple[ast.Member, ...],
) -> Iterator[tuple[ast.StepDecl, tuple[ast.StepClause, ...]]]:
    """Steps with the clauses of the group around them."""
    for member in members:
        if isinstance(member, ast.StepDecl):
            yield member, ()
        elif isinstance(member, ast.StepsGroup):
            for step in member.steps:
                yield step, member.clauses


def bare(expr: ast.Expr) -> ast.Expr:
    """An expression without the parentheses around it."""
    while isinstance(expr, ast.ParenExpr):
        expr = expr.inner
    return expr


def builtin(facts: Facts, node: ast.Node | None) -> BuiltinTarget | None:
    """What a node calls, if it is a call of a builtin."""
    if not isinstance(node, ast.Call) or (plan := facts.calls.get(node)) is None:
        return None
    return plan.target if isinstance(plan.target, BuiltinTarget) else None


def builtin_name(facts: Facts, node: ast.Node | None) -> str:
    target = builtin(facts, node)
    return target.name if target is not None else ""


def argument(facts: Facts, call: ast.Call, index: int) -> ast.Expr | None:
    """An argument of a call as it was written, by its place in the plan."""
    plan = facts.calls.get(call)
    if plan is None or index >= len(plan.args):
        return None
    source = plan.args[index]
    return bare(source.value) if isinstance(source, Given) else None


def local(facts: Facts, node: ast.Node | None) -> LocalSymbol | None:
    """The local variable a node uses."""
    symbol = facts.uses.get(node) if node is not None else None
    return symbol if isinstance(symbol, LocalSymbol) else None


def slot(facts: Facts, node: ast.Node) -> FlowSlotSymbol | None:
    symbol = facts.uses.get(node)
    return symbol if isinstance(symbol, FlowSlotSymbol) else None


def bound_names(facts: Facts, pattern: ast.Node) -> Iterator[tuple[ast.Node, LocalSymbol]]:
    """The locals a pattern binds, each with the node it is recorded under."""
    for node in nodes(pattern):
        symbol = facts.bindings.get(node)
        if symbol is not None:
            yield node, symbol


def cases(tree: Iterable[ast.Node]) -> set[ast.Node]:
    """Calls that are cases of a `wait match`, not waits of their own."""
    return {bare(node.value) for node in tree if isinstance(node, ast.ReceiveCase)}


def stage_text(variables: list[str]) -> str:
    """What follows a stage's name: the variables it carries."""
    return f"({', '.join(variables)})" if variables else ""


def stage_list(ctx: Context, module: str, stage: ast.StageStmt, names: list[str]) -> Edit:
    """Writes another list of variables behind a stage's name."""
    span = Span(stage.name.span.end, max(stage.span.end, stage.name.span.end))
    return ctx.edit(module, span, stage_text(names))


def plural(items: list[str]) -> str:
    """`a`, `a` and `b`, `a`, `b` and `c`; each in backticks."""
    quoted = [f"`{item}`" for item in items]
    if len(quoted) < 2:
        return "".join(quoted)
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"
