"""E0305: the arms of a `match` leave values out. W0109: an arm never matches.

Patterns that must always match (`let`, `for`, closures, wait cases: E0313) are the checker's.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, error, warning
from qoqi.compiler.rules.context import INDENT, Context, plural
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.exhaustive import Row, Seen, Unresolved, form, missing
from qoqi.compiler.types.facts import Facts
from qoqi.compiler.types.model import ErrorType, NeverType

MOST_NAMED = 3


def check_patterns(ctx: Context) -> Iterator[Diagnostic]:
    for name, _, facts in ctx.modules():
        for node in ctx.trees[name]:
            if isinstance(node, ast.MatchExpr):
                yield from _match(ctx, name, facts, node)


def _match(ctx: Context, module: str, facts: Facts, node: ast.MatchExpr) -> Iterator[Diagnostic]:
    if isinstance(facts.types.get(node.subject), ErrorType | NeverType):
        return
    rows: list[Row] = []
    guarded: list[Row] = []
    seen = Seen()
    for index, arm in enumerate(node.arms):
        patterns = _alternatives(arm.pattern)
        try:
            forms: list[Row] = [(form(facts, each),) for each in patterns]
        except Unresolved:
            return
        dead = []
        before = seen if arm.guard is None else seen.copy()
        for each, row in zip(patterns, forms, strict=True):
            if before.takes(row):
                dead.append(each)
            before.add(row)
        yield from _unreachable(ctx, module, node, index, dead)
        (rows if arm.guard is None else guarded).extend(forms)
    left = missing(rows, guarded)
    if left:
        yield _uncovered(ctx, module, node, left, bool(guarded))


def _alternatives(pattern: ast.Pattern) -> tuple[ast.Pattern, ...]:
    return pattern.alternatives if isinstance(pattern, ast.OrPattern) else (pattern,)


def _uncovered(
    ctx: Context, module: str, node: ast.MatchExpr, names: list[str], guarded: bool
) -> Diagnostic:
    notes = ["Add an arm for each, or `case _` for all that is left."]
    if guarded:
        notes.append("An arm with a guard covers nothing: its guard may be false.")
    fixes = []
    if node.arms:
        last = node.arms[-1]
        indent = ctx.indent(module, last.span.start)
        if ctx.indent(module, node.span.start) == indent and "\n" not in ctx.text(
            module, Span(node.head.end, last.span.start)
        ):
            indent += INDENT
        arms = "".join(f'\n{indent}case {name}: fail("not handled")' for name in names)
        fixes.append(ctx.insert("Add the missing arms", module, _end(node, last), arms))
    shown = plural(names)
    if len(names) > MOST_NAMED:
        shown = f"{plural(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    message = f"this `match` does not cover {shown}"
    return error("E0305", ctx.path(module), node.head, message, notes=notes, fixes=fixes)


def _end(node: ast.MatchExpr, arm: ast.MatchArm) -> int:
    """Where the text of the last arm ends."""
    return min(arm.span.end, node.span.end - 1)


def _unreachable(
    ctx: Context, module: str, node: ast.MatchExpr, index: int, dead: list[ast.Pattern]
) -> Iterator[Diagnostic]:
    arm = node.arms[index]
    patterns = _alternatives(arm.pattern)
    file = ctx.path(module)
    if len(dead) == len(patterns):
        message = "this arm never matches: the arms before it take all its values"
        fixes = []
        if index > 0:
            fixes = [ctx.remove("Remove the arm", module, Span(arm.span.start, _end(node, arm)))]
        yield warning("W0109", file, arm.pattern.span, message, fixes=fixes)
        return
    for pattern in dead:
        place = patterns.index(pattern)
        message = "this alternative never matches: those before it take all its values"
        span = Span(patterns[place - 1].span.end, pattern.span.end)
        if place == 0:
            span = Span(pattern.span.start, patterns[1].span.start)
        fix = ctx.replace("Remove the alternative", module, span, "")
        yield warning("W0109", file, pattern.span, message, fixes=[fix])
