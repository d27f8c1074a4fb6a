"""W0103: a `Result`, `Settled` or `Instance` that nobody looks at.

An expression whose value is not wanted: a statement, also as the last of a block or arm whose own
value is not wanted. Tests are left alone, where a refused send fails by itself; so is the answer of
`cancel`, since an instance that has ended needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, warning
from qoqi.compiler.rules.context import Context, bare, builtin_name
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts, FnTarget, StepTarget
from qoqi.compiler.types.model import Con, show

KEPT = frozenset({"Result", "Settled", "Instance"})


def check_thrown_away(ctx: Context) -> Iterator[Diagnostic]:
    for name, module, facts in ctx.modules():
        for item in module.items:
            if isinstance(item, ast.TestDecl):
                continue
            for value in _unwanted(item, False):
                type_ = facts.types.get(value)
                if builtin_name(facts, bare(value)) == "instance.cancel":
                    continue
                if isinstance(type_, Con) and type_.name in KEPT:
                    yield _thrown(ctx, name, facts, value, show(type_))


def _unwanted(node: ast.Node, wanted: bool) -> Iterator[ast.Expr]:
    """Expressions whose value goes nowhere. `wanted`: the value of the node itself is used."""
    match node:
        case ast.Block(statements=statements):
            for index, statement in enumerate(statements):
                last = index == len(statements) - 1
                yield from _unwanted(statement, wanted and last)
        case ast.ExprStmt(value=value):
            if wanted or not isinstance(bare(value), ast.IfExpr | ast.MatchExpr | ast.WaitExpr):
                if not wanted:
                    yield value
                yield from _unwanted(value, True)
            else:
                yield from _unwanted(bare(value), False)
        case ast.IfExpr(condition=condition, then=then, otherwise=otherwise):
            yield from _unwanted(condition, True)
            yield from _unwanted(then, wanted)
            if otherwise is not None:
                yield from _unwanted(otherwise, wanted)
        case ast.MatchExpr(subject=subject, arms=arms):
            yield from _unwanted(subject, True)
            for arm in arms:
                if arm.guard is not None:
                    yield from _unwanted(arm.guard, True)
                yield from _unwanted(arm.body, wanted)
        case ast.WaitExpr(arms=waits):
            for wait in waits:
                yield from _unwanted(wait.case, True)
                if wait.guard is not None:
                    yield from _unwanted(wait.guard, True)
                yield from _unwanted(wait.body, wanted)
        case ast.LambdaExpr(body=body):
            yield from _unwanted(body, True)
        case ast.WhileStmt(condition=head, body=block) | ast.ForStmt(iterable=head, body=block):
            yield from _unwanted(head, True)
            yield from _unwanted(block, False)
        case ast.LetStmt(value=value, otherwise=block):
            yield from _unwanted(value, True)
            if block is not None:
                yield from _unwanted(block, False)
        case ast.DeferStmt() | ast.FnDecl() | ast.StepDecl() | ast.RunDecl() | ast.MigrateDecl():
            for child in ast.children(node):
                yield from _unwanted(child, False)
        case _:
            for child in ast.children(node):
                yield from _unwanted(child, True)


def _thrown(ctx: Context, module: str, facts: Facts, value: ast.Expr, type_: str) -> Diagnostic:
    call = bare(value)
    plan = facts.calls.get(call) if isinstance(call, ast.Call) else None
    what = "this"
    if plan is not None and isinstance(plan.target, FnTarget | StepTarget):
        what = f"the answer of `{plan.target.symbol.name}`"
    message = f"{what} is a `{type_}` and is thrown away"
    notes = ["Use `?`, `match` it, or write `let _ = …` where it does not matter."]
    fix = ctx.insert("Throw it away on purpose", module, value.span.start, "let _ = ")
    return warning("W0103", ctx.path(module), value.span, message, notes=notes, fixes=[fix])
