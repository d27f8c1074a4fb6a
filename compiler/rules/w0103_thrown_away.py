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
# Nodes that use the values of all that is directly below them: the most of a tree.
_PLAIN = frozenset(
    {ast.Name, ast.Ident, ast.IntLit, ast.NamedType, ast.BindPattern, ast.Call, ast.Arg}
    | {ast.FieldExpr, ast.BinaryExpr, ast.StringLit, ast.ReturnStmt, ast.AssignStmt}
    | {ast.ParamDecl, ast.FieldDecl, ast.StageStmt, ast.VariantPattern}
)


def check_thrown_away(ctx: Context) -> Iterator[Diagnostic]:
    for name, module, facts in ctx.modules():
        for item in module.items:
            if isinstance(item, ast.TestDecl):
                continue
            unwanted: list[ast.Expr] = []
            _look(item, False, unwanted)
            for value in unwanted:
                type_ = facts.types.get(value)
                if builtin_name(facts, bare(value)) == "instance.cancel":
                    continue
                if isinstance(type_, Con) and type_.name in KEPT:
                    yield _thrown(ctx, name, facts, value, show(type_))


def _look(node: ast.Node, wanted: bool, found: list[ast.Expr]) -> None:
    """Finds expressions whose value goes nowhere. `wanted`: the value of the node is used."""
    if type(node) in _PLAIN:
        for child in ast.children(node):
            _look(child, True, found)
        return
    match node:
        case ast.Block(statements=statements):
            for statement in statements:
                _look(statement, wanted and statement is statements[-1], found)
        case ast.ExprStmt(value=value):
            if wanted or not isinstance(bare(value), ast.IfExpr | ast.MatchExpr | ast.WaitExpr):
                if not wanted:
                    found.append(value)
                _look(value, True, found)
            else:
                _look(bare(value), False, found)
        case ast.IfExpr(condition=condition, then=then, otherwise=otherwise):
            _look(condition, True, found)
            _look(then, wanted, found)
            if otherwise is not None:
                _look(otherwise, wanted, found)
        case ast.MatchExpr(subject=subject, arms=arms):
            _look(subject, True, found)
            for arm in arms:
                if arm.guard is not None:
                    _look(arm.guard, True, found)
                _look(arm.body, wanted, found)
        case ast.WaitExpr(arms=waits):
            for wait in waits:
                _look(wait.case, True, found)
                if wait.guard is not None:
                    _look(wait.guard, True, found)
                _look(wait.body, wanted, found)
        case ast.LambdaExpr(body=body):
            _look(body, True, found)
        case ast.WhileStmt(condition=head, body=block) | ast.ForStmt(iterable=head, body=block):
            _look(head, True, found)
            _look(block, False, found)
        case ast.LetStmt(value=value, otherwise=block):
            _look(value, True, found)
            if block is not None:
                _look(block, False, found)
        case ast.DeferStmt() | ast.FnDecl() | ast.StepDecl() | ast.RunDecl() | ast.MigrateDecl():
            for child in ast.children(node):
                _look(child, False, found)
        case _:
            for child in ast.children(node):
                _look(child, True, found)


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
