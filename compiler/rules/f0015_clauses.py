"""F0015: clauses of steps, channels and flows that make no sense.

Lengths of time are above zero and at most 365 days, counts above zero; a `Settled` step has no
`tries` (it is not run again); `on` and `beat` are for the supervisors of extern steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Fix, error
from qoqi.compiler.names.symbols import StepSymbol
from qoqi.compiler.rules.context import Context
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.constants import Length, evaluate
from qoqi.compiler.types.model import Con

YEAR = 365 * 24 * 3_600_000

NAMES: dict[type[ast.Node], str] = {
    ast.WithinClause: "within",
    ast.TriesClause: "tries",
    ast.BackoffClause: "backoff",
    ast.UndoClause: "undo",
    ast.OnClause: "on",
    ast.BeatClause: "beat",
    ast.LimitClause: "limit",
}


def check_clauses(ctx: Context) -> Iterator[Diagnostic]:
    marked: set[tuple[str, Span]] = set()
    for step in ctx.steps():
        own = {type(clause) for clause in step.decl.clauses}
        group = [clause for clause in step.group if type(clause) not in own]
        for clause in (*step.decl.clauses, *group):
            place = (step.module, clause.span)
            for found in (*_lengths(ctx, step.module, clause), *_misplaced(ctx, step, clause)):
                if place not in marked:  # a clause of a group is said to be wrong once
                    marked.add(place)
                    yield found
    for name, module, _ in ctx.modules():
        for item in module.items:
            if isinstance(item, ast.FlowDecl):
                yield from _flow(ctx, name, item)


def _flow(ctx: Context, module: str, flow: ast.FlowDecl) -> Iterator[Diagnostic]:
    for member in flow.members:
        if isinstance(member, ast.ChannelDecl) and member.capacity is not None:
            yield from _capacity(ctx, module, member, member.capacity)
    if flow.keep is None:
        return
    match evaluate(ctx.checked, module, flow.keep):
        case Length(millis) if millis < 0:
            message = "`keep` says how long an ended instance stays: not below 0"
            yield error("F0015", ctx.path(module), flow.keep.span, message)
        case _:
            return


def _misplaced(ctx: Context, step: StepSymbol, clause: ast.StepClause) -> Iterator[Diagnostic]:
    name, owner, module = NAMES[type(clause)], step.name, step.module
    result = ctx.checked.signatures[step].result
    if isinstance(clause, ast.OnClause | ast.BeatClause) and not step.decl.extern:
        what = "names supervisors" if name == "on" else "renews the lease of a supervisor"
        message = f"`{name}` {what}, and the step `{owner}` has a body"
        note = "Leave it out, or make the step `extern` and do it in a routine."
        yield _clause_error(ctx, module, clause, message, note)
    elif (
        isinstance(clause, ast.TriesClause) and isinstance(result, Con) and result.name == "Settled"
    ):
        message = f"the step `{owner}` gives `Settled`, and is not tried again"
        note = "Leave `tries` out, and ask what became of it where the answer is `Unknown`."
        yield _clause_error(ctx, module, clause, message, note)


def _lengths(ctx: Context, module: str, clause: ast.StepClause) -> Iterator[Diagnostic]:
    match clause:
        case ast.WithinClause(limit=limit):
            yield from _length(ctx, module, clause, limit, "the limit of an attempt")
        case ast.BeatClause(interval=interval):
            yield from _length(ctx, module, clause, interval, "the time between two beats")
        case ast.BackoffClause(first=first, most=most):
            yield from _length(ctx, module, clause, first, "the delay between tries")
            if most is not None:
                yield from _length(ctx, module, clause, most, "the longest delay between tries")
                yield from _order(ctx, module, clause, first, most)
        case ast.LimitClause(count=count, per=per):
            message = "`limit` lets at least 1 attempt leave"
            yield from _count(ctx, module, clause, count, message)
            if per is not None:
                yield from _length(ctx, module, clause, per, "the time a limit counts over")
        case ast.TriesClause(count=number, duration=duration):
            if number is not None:
                message = "`tries` is at least 1, and with none the step would never run"
                yield from _count(ctx, module, clause, number, message)
            if duration is not None:
                yield from _length(ctx, module, clause, duration, "the time over all tries")
        case ast.UndoClause() | ast.OnClause():
            return


def _order(
    ctx: Context, module: str, clause: ast.StepClause, first: ast.Expr, most: ast.Expr
) -> Iterator[Diagnostic]:
    match evaluate(ctx.checked, module, first), evaluate(ctx.checked, module, most):
        case Length(low), Length(high) if high < low:
            message = "`backoff` grows from the first length to the second, which is shorter"
            shown = f"backoff {ctx.text(module, most.span)} to {ctx.text(module, first.span)}"
            fix = ctx.replace(f"Write `{shown}`", module, clause.span, shown)
            yield error("F0015", ctx.path(module), clause.span, message, fixes=[fix])
        case _:
            return


def _length(
    ctx: Context, module: str, clause: ast.StepClause, expr: ast.Expr, what: str
) -> Iterator[Diagnostic]:
    match evaluate(ctx.checked, module, expr):
        case Length(millis) if millis <= 0:
            message = f"{what} is above 0, and at most 365 days"
            yield _clause_error(ctx, module, clause, message, "Give a length of time above 0.")
        case Length(millis) if millis > YEAR:
            message = f"{what} is above 0, and at most 365 days"
            fix = ctx.replace("Write `365d`", module, expr.span, "365d")
            yield error("F0015", ctx.path(module), clause.span, message, fixes=[fix])
        case _:
            return


def _count(
    ctx: Context, module: str, clause: ast.StepClause, expr: ast.Expr, message: str
) -> Iterator[Diagnostic]:
    match evaluate(ctx.checked, module, expr):
        case int(number) if number <= 0:
            note = "Leave the clause out, or give a number above 0."
            yield _clause_error(ctx, module, clause, message, note)
        case _:
            return


def _capacity(
    ctx: Context, module: str, channel: ast.ChannelDecl, expr: ast.Expr
) -> Iterator[Diagnostic]:
    match evaluate(ctx.checked, module, expr):
        case int(number) if number <= 0:
            message = f"the channel `{channel.name.name}` would have room for nothing"
            fix = ctx.replace("Write `1`", module, expr.span, "1")
            yield error("F0015", ctx.path(module), expr.span, message, fixes=[fix])
        case _:
            return


def _clause_error(
    ctx: Context, module: str, clause: ast.StepClause, message: str, note: str
) -> Diagnostic:
    name = NAMES[type(clause)]
    fixes: list[Fix] = [ctx.remove(f"Remove `{name}`", module, clause.span)]
    return error("F0015", ctx.path(module), clause.span, message, notes=[note], fixes=fixes)
