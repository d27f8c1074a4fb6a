"""Forward dataflow over the tree: what is true where, on which paths.

Programs of flow are structured, so the tree is the control-flow graph: a walk carries a state
through statements in the order they run, joins where paths meet and repeats loops until nothing
changes. `None` stands for "no path leads here".

An analysis gives `join` and reacts to nodes. Its states are immutable values with `==`, and of
finite height. A node may be visited several times with growing states, the last time with the
final one: an analysis that reports keeps its findings keyed by node and is read afterwards.

`defer` blocks are walked at each exit they run at. Closures are visited as one node, not entered.
"""

from __future__ import annotations

from dataclasses import field
from typing import Generic, TypeVar

from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.collect_calls import short_names
from qoqi.compiler.types.facts import Facts
from qoqi.compiler.types.model import NeverType
from qoqi.vm.dataclass import dataclass

S = TypeVar("S")

# Expressions with nothing below them.
_PLAIN = frozenset({ast.Name, ast.IntLit, ast.BoolLit, ast.DecimalLit, ast.DurationLit})


class Analysis(Generic[S]):
    """What a walk is for; by default it notices nothing."""

    def join(self, left: S, right: S) -> S:
        raise NotImplementedError

    def visit(self, node: ast.Node, state: S) -> S:
        """A node was reached and its operands are evaluated.

        Called for every expression and statement that is not control flow, for a `wait match` when
        it begins to wait, and for `return`.
        """
        return state

    def bind(self, pattern: ast.Pattern, value: ast.Expr | None, state: S) -> S:
        """The names of a pattern are bound; `value` is what is matched, if it is one expression."""
        return state

    def enter_arm(self, wait: ast.WaitExpr, arm: ast.WaitArm, state: S) -> S:
        """A case of a wait happened."""
        return state

    def loop_head(self, loop: ast.WhileStmt | ast.ForStmt, state: S) -> S:
        """A round of a loop begins."""
        return state

    def back_edge(self, loop: ast.WhileStmt | ast.ForStmt, state: S) -> None:
        """A round ends and another begins."""


@dataclass(slots=True)
class _Loop(Generic[S]):
    depth: int
    breaks: S | None = None
    continues: S | None = None


@dataclass(slots=True)
class Exits(Generic[S]):
    """How a body is left: its end (None if never), and each `return`, `?` and `become`.

    `reached` are the statements that some path comes to, `blocks` the blocks that were looked at.
    """

    end: S | None = None
    leaves: dict[ast.Node, S] = field(default_factory=dict)
    reached: set[ast.Node] = field(default_factory=set)
    blocks: set[ast.Block] = field(default_factory=set)


def walk(analysis: Analysis[S], facts: Facts, body: ast.Block, state: S) -> Exits[S]:
    walker = _Walker(analysis, facts)
    walker.exits.end = walker.block(body, state)
    return walker.exits


class _Walker(Generic[S]):
    def __init__(self, analysis: Analysis[S], facts: Facts) -> None:
        self.analysis = analysis
        self.facts = facts
        self.exits: Exits[S] = Exits()
        self.loops: list[_Loop[S]] = []
        self.defers: list[list[ast.Block]] = []

    def join(self, left: S | None, right: S | None) -> S | None:
        if left is None:
            return right
        return left if right is None else self.analysis.join(left, right)

    # -- statements ---------------------------------------------------------------------------

    def block(self, block: ast.Block, state: S | None) -> S | None:
        self.exits.blocks.add(block)
        self.defers.append([])
        for statement in block.statements:
            if state is None:
                break
            self.exits.reached.add(statement)
            state = self.statement(statement, state)
        state = self.unwind(len(self.defers) - 1, state)
        self.defers.pop()
        return state

    def unwind(self, depth: int, state: S | None) -> S | None:
        """Runs the `defer` blocks from here out to `depth`, the last first."""
        pending = [block for level in self.defers[depth:] for block in level]
        outer, self.defers = self.defers, []
        for block in reversed(pending):
            state = self.block(block, state)
        self.defers = outer
        return state

    def leave(self, node: ast.Node, state: S) -> None:
        end = self.unwind(0, state)
        if end is not None:
            self.exits.leaves[node] = end

    def statement(self, node: ast.Stmt, state: S) -> S | None:
        match node:
            case ast.LetStmt(pattern=pattern, value=value, otherwise=otherwise):
                after = self.expr(value, state)
                missed = self.block(otherwise, after) if otherwise else None
                if after is None:
                    return missed
                return self.join(self.analysis.bind(pattern, value, after), missed)
            case ast.AssignStmt():
                return self.assign(node, state)
            case ast.ExprStmt(value=value):
                return self.expr(value, state)
            case ast.WhileStmt(condition=condition, body=body):
                return self.loop(node, body, state, condition)
            case ast.ForStmt(iterable=iterable, body=body):
                after = self.expr(iterable, state)
                return None if after is None else self.loop(node, body, after, None)
            case ast.ReturnStmt(value=value):
                after = self.expr(value, state) if value is not None else state
                if after is not None:
                    self.leave(node, self.analysis.visit(node, after))
                return None
            case ast.BreakStmt() | ast.ContinueStmt():
                if self.loops:
                    loop = self.loops[-1]
                    end = self.unwind(loop.depth, state)
                    if isinstance(node, ast.BreakStmt):
                        loop.breaks = self.join(loop.breaks, end)
                    else:
                        loop.continues = self.join(loop.continues, end)
                return None
            case ast.DeferStmt(body=body):
                self.defers[-1].append(body)
                return state
            case ast.BecomeStmt(args=args):
                after = self.all([arg.value for arg in args], state)
                if after is not None:
                    self.leave(node, self.analysis.visit(node, after))
                return None
            case ast.StageStmt() | ast.GivenStmt() | ast.ErrorStmt():
                return self.analysis.visit(node, state)

    def assign(self, node: ast.AssignStmt, state: S) -> S | None:
        after = self.expr(node.value, state)
        if after is None:
            return None
        if node.op != "=" or not isinstance(node.target, ast.Name):
            after = self.expr(node.target, after)
        return None if after is None else self.analysis.visit(node, after)

    def loop(
        self,
        node: ast.WhileStmt | ast.ForStmt,
        body: ast.Block,
        state: S,
        condition: ast.Condition | None,
    ) -> S | None:
        entry = state
        while True:
            head = self.analysis.loop_head(node, entry)
            then: S | None
            otherwise: S | None
            if condition is not None:
                then, otherwise = self.condition(condition, head)
            else:
                assert isinstance(node, ast.ForStmt)
                then, otherwise = self.analysis.bind(node.pattern, None, head), head
            loop: _Loop[S] = _Loop(len(self.defers))
            self.loops.append(loop)
            end = self.block(body, then)
            self.loops.pop()
            back = self.join(end, loop.continues)
            if back is not None:
                self.analysis.back_edge(node, back)
            again = self.join(state, back)
            assert again is not None
            if again == entry:
                return self.join(otherwise, loop.breaks)
            entry = again

    # -- expressions --------------------------------------------------------------------------

    def all(self, nodes: list[ast.Expr], state: S) -> S | None:
        current: S | None = state
        for node in nodes:
            if current is None:
                return None
            current = self.expr(node, current)
        return current

    def condition(self, condition: ast.Condition, state: S) -> tuple[S | None, S | None]:
        """The states in which a condition holds and in which it does not."""
        after = self.expr(condition.value, state)
        if after is None:
            return None, None
        if condition.pattern is None:
            literal = condition.value
            if isinstance(literal, ast.BoolLit):
                return (after, None) if literal.value else (None, after)
            return after, after
        then: S | None = self.analysis.bind(condition.pattern, condition.value, after)
        if condition.guard is None:
            return then, after
        then = self.guard(condition.guard, then)
        return then, self.join(after, then)

    def guard(self, guard: ast.Expr | None, state: S | None) -> S | None:
        return state if guard is None or state is None else self.expr(guard, state)

    def expr(self, node: ast.Expr, state: S) -> S | None:
        if type(node) in _PLAIN:
            return self.analysis.visit(node, state)
        match node:
            case ast.BinaryExpr(op="&&" | "||" | "??", left=left, right=right):
                first = self.expr(left, state)
                if first is None:
                    return None
                joined = self.join(first, self.expr(right, first))
                return None if joined is None else self.analysis.visit(node, joined)
            case ast.IfExpr(condition=condition, then=block, otherwise=otherwise):
                holds, fails = self.condition(condition, state)
                end = self.block(block, holds)
                if otherwise is None or fails is None:
                    return self.join(end, fails)
                if isinstance(otherwise, ast.Block):
                    return self.join(end, self.block(otherwise, fails))
                return self.join(end, self.expr(otherwise, fails))
            case ast.MatchExpr():
                return self.match(node, state)
            case ast.WaitExpr():
                return self.wait(node, state)
            case ast.LambdaExpr():
                return self.analysis.visit(node, state)
            case ast.TryExpr(inner=inner):
                after = self.expr(inner, state)
                if after is None:
                    return None
                after = self.analysis.visit(node, after)
                self.leave(node, after)
                return after
            case _:
                after = self.operands(node, state)
                if after is None:
                    return None
                after = self.analysis.visit(node, after)
                never = isinstance(self.facts.types.get(node), NeverType)
                return None if never and isinstance(node, ast.Call) else after

    def operands(self, node: ast.Node, state: S) -> S | None:
        current: S | None = state
        short: dict[Span, ast.Name] = {}
        if isinstance(node, ast.StructExpr):
            short = {name.span: name for name in short_names(self.facts, node)}
        for child in ast.children(node):
            if current is None:
                return None
            match child:
                case ast.Ident() | ast.NamedType() | ast.OptionType() | ast.TupleType():
                    continue
                case ast.Arg(value=value):
                    current = self.expr(value, current)
                case ast.FieldInit(value=init):
                    name = short.get(child.name.span) if init is None else init
                    current = self.expr(name, current) if name is not None else current
                case _:
                    current = self.expr(child, current)  # type: ignore[arg-type]
        return current

    def match(self, node: ast.MatchExpr, state: S) -> S | None:
        rest = self.expr(node.subject, state)
        end: S | None = None
        for arm in node.arms:
            if rest is None:
                break
            bound: S | None = self.analysis.bind(arm.pattern, node.subject, rest)
            bound = self.guard(arm.guard, bound)
            end = self.join(end, self.block(arm.body, bound))
            if arm.guard is not None:
                rest = self.join(rest, bound)
        return end

    def wait(self, node: ast.WaitExpr, state: S) -> S | None:
        before: S | None = state
        for arm in node.arms:
            before = self.guard(arm.guard, before)
            for child in ast.children(arm.case):
                if before is None:
                    return None
                if isinstance(child, ast.Call) and isinstance(arm.case, ast.ReceiveCase):
                    before = self.operands(child, before)
                elif arm.case is not child and child is not getattr(arm.case, "pattern", None):
                    before = self.expr(child, before)  # type: ignore[arg-type]
        if before is None:
            return None
        before = self.analysis.visit(node, before)
        end: S | None = None
        for arm in node.arms:
            inside = self.analysis.enter_arm(node, arm, before)
            if isinstance(arm.case, ast.ReceiveCase) and arm.case.pattern is not None:
                inside = self.analysis.bind(arm.case.pattern, arm.case.value, inside)
            end = self.join(end, self.block(arm.body, inside))
        return end
