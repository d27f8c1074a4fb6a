"""W0105: `after` in a wait that a loop repeats: each round it starts again.

So it is only where another case of the wait leads to the next round, in the same function. A length
that is computed anew each round, or is a variable, may well be what is left of a deadline.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, warning
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.rules.context import Context, nodes
from qoqi.compiler.rules.dataflow import Analysis, walk
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts

Loop = ast.WhileStmt | ast.ForStmt
Arms = frozenset[ast.WaitArm]
NAMES = ("due", "deadline", "limit")


class Rounds(Analysis[Arms]):
    """Carries the arms taken in this round; `again` has those that reached the next, per loop."""

    def __init__(self) -> None:
        self.again: dict[ast.Node, set[ast.WaitArm]] = {}

    def join(self, left: Arms, right: Arms) -> Arms:
        return left | right

    def enter_arm(self, wait: ast.WaitExpr, arm: ast.WaitArm, state: Arms) -> Arms:
        return state | {arm}

    def loop_head(self, loop: Loop, state: Arms) -> Arms:
        inside = {node for node in nodes(loop.body) if isinstance(node, ast.WaitArm)}
        return state - inside

    def back_edge(self, loop: Loop, state: Arms) -> None:
        self.again.setdefault(loop, set()).update(state)


def check_after(ctx: Context) -> Iterator[Diagnostic]:
    lengths = {
        name
        for name, tree in ctx.trees.items()
        if any(isinstance(node, ast.AfterCase) for node in tree)
    }
    for body, block, facts in ctx.bodies():
        loops = list(_waits(block, None)) if body.module in lengths else []
        if not loops:
            continue
        analysis = Rounds()
        walk(analysis, facts, block, frozenset())
        for loop, wait in loops:
            again = analysis.again.get(loop, set()) & set(wait.arms)
            for arm in wait.arms:
                case = arm.case
                if not isinstance(case, ast.AfterCase) or not again - {arm}:
                    continue
                if _fixed(facts, case.delay):
                    yield _restarts(ctx, body.module, block, loop, arm, case)


def _waits(node: ast.Node, loop: Loop | None) -> Iterator[tuple[Loop, ast.WaitExpr]]:
    """Waits with the nearest loop around them."""
    for child in ast.children(node):
        if isinstance(child, ast.LambdaExpr):
            continue
        if isinstance(child, ast.WaitExpr) and loop is not None:
            yield loop, child
        yield from _waits(child, child if isinstance(child, ast.WhileStmt | ast.ForStmt) else loop)


def _fixed(facts: Facts, delay: ast.Expr) -> bool:
    """Whether a length is the same in each round."""
    for node in nodes(delay):
        if isinstance(node, ast.Call):
            return False
        symbol = facts.uses.get(node)
        if isinstance(symbol, LocalSymbol) and symbol.mutable:
            return False
    return True


def _restarts(
    ctx: Context,
    module: str,
    block: ast.Block,
    loop: Loop,
    arm: ast.WaitArm,
    case: ast.AfterCase,
) -> Diagnostic:
    delay = ctx.text(module, case.delay.span)
    message = f"`after {delay}` starts again in each round of the loop, so it may never be over"
    notes = ["Keep a deadline from before the loop, and wait with `case at`."]
    fixes: list[Fix] = []
    taken = {node.name for node in nodes(block) if isinstance(node, ast.Ident | ast.Name)}
    name = next((each for each in NAMES if each not in taken), None)
    carries = any(isinstance(node, ast.StageStmt) for node in nodes(loop))
    alone = not _line_before(ctx, module, loop)
    if name is not None and not carries and alone:
        indent = ctx.indent(module, loop.span.start)
        text = f"let {name} = flow.now() + {delay}\n{indent}"
        edits = (
            ctx.edit(module, Span(loop.span.start, loop.span.start), text),
            Edit(ctx.path(module), case.span, f"at {name}"),
        )
        fixes.append(Fix("Keep a deadline", edits))
    span = Span(arm.span.start, case.span.end)
    return warning("W0105", ctx.path(module), span, message, notes=notes, fixes=fixes)


def _line_before(ctx: Context, module: str, loop: Loop) -> str:
    """What stands before a loop on its line."""
    text = ctx.sources[module].text
    return text[text.rfind("\n", 0, loop.span.start) + 1 : loop.span.start].strip()
