"""F0004: a stage stands where the program can be entered again.

At a stage nothing but its variables is alive. So it is a statement of `run`, at its top or inside
`if`, `while`, `match` and `wait match` that are statements themselves: a `for` would lose its place
in the list, a function its caller, and a value being computed its parts.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Label, error
from qoqi.compiler.rules.context import Context
from qoqi.compiler.syntax import ast


def check_stage_places(ctx: Context) -> Iterator[Diagnostic]:
    for name, module, _ in ctx.modules():
        allowed: set[ast.Node] = set()
        stages: set[ast.Node] = set()
        for node in ctx.trees[name]:
            if isinstance(node, ast.RunDecl):
                allowed.update(stage_statements(node.body))
            elif isinstance(node, ast.StageStmt):
                stages.add(node)
        if stages <= allowed:
            continue
        for parents in _with_parents(module, ()):
            if isinstance(parents[-1], ast.StageStmt) and parents[-1] not in allowed:
                yield _misplaced(ctx, name, parents)


def stage_statements(block: ast.Block) -> Iterator[ast.Stmt]:
    """Statements of a block that have nothing half done around them."""
    for statement in block.statements:
        yield statement
        match statement:
            case ast.WhileStmt(body=body):
                yield from stage_statements(body)
            case ast.ExprStmt(value=value):
                yield from _arms(value)
            case _:
                continue


def _arms(value: ast.Expr) -> Iterator[ast.Stmt]:
    match value:
        case ast.IfExpr(then=then, otherwise=otherwise):
            yield from stage_statements(then)
            if isinstance(otherwise, ast.Block):
                yield from stage_statements(otherwise)
            elif otherwise is not None:
                yield from _arms(otherwise)
        case ast.MatchExpr(arms=arms):
            for arm in arms:
                yield from stage_statements(arm.body)
        case ast.WaitExpr(arms=waits):
            for wait in waits:
                yield from stage_statements(wait.body)
        case _:
            return


def _with_parents(node: ast.Node, parents: tuple[ast.Node, ...]) -> Iterator[tuple[ast.Node, ...]]:
    path = (*parents, node)
    yield path
    for child in ast.children(node):
        yield from _with_parents(child, path)


def _misplaced(ctx: Context, module: str, parents: tuple[ast.Node, ...]) -> Diagnostic:
    stage = parents[-1]
    assert isinstance(stage, ast.StageStmt)
    name, file = stage.name.name, ctx.path(module)
    for parent in reversed(parents[:-1]):
        match parent:
            case ast.ForStmt(head=head):
                message = f"the stage `{name}` stands in a `for`, whose place would be lost"
                note = "Use a `while` over an index, and let the stage carry the index."
                label = Label(file, head, "this loop cannot be entered in the middle")
                return error("F0004", file, stage.span, message, labels=[label], notes=[note])
            case ast.LambdaExpr():
                message = f"the stage `{name}` stands in a closure, which cannot be entered again"
                break
            case ast.DeferStmt():
                message = f"the stage `{name}` stands in a `defer`, which runs on the way out"
                break
            case ast.FnDecl(name=owner):
                message = (
                    f"the stage `{name}` stands in the function `{owner.name}`, "
                    "whose caller would be lost"
                )
                break
            case ast.StepDecl() | ast.ViewDecl() | ast.MigrateDecl() | ast.TestDecl():
                message = f"the stage `{name}` does not stand in `run`"
                break
            case _:
                continue
    else:
        message = f"the stage `{name}` stands in a value that is still being computed"
        note = "Compute the value in arms that assign a variable, and let the stage stand alone."
        return error("F0004", file, stage.span, message, notes=[note])
    note = "Move it into `run`, as a statement of its own."
    return error("F0004", file, stage.span, message, notes=[note])
