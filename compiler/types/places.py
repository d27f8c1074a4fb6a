"""Places: what can be assigned, or be the receiver of a method with `var self`.

A place is a `var` or a field of the flow, then any number of `.field`, `.0` and `[index]`. Loop
variables, parameters, pattern names and `let` are none (E0216), and a variable that a closure
captured cannot be assigned there, since the closure has a copy (E0214).
"""

from __future__ import annotations

from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.names.symbols import ConstSymbol, FlowSlotSymbol, LocalSymbol, Symbol
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Body
from qoqi.compiler.types.model import Con, ErrorType


def demand_place(body: Body, target: ast.Expr, verb: str) -> None:
    """Reports `target` unless it is a place. `verb` says what is done to it."""
    root = target
    while True:
        match root:
            case ast.FieldExpr(base=base) | ast.IndexExpr(base=base):
                root = base
            case ast.TupleIndexExpr(base=base) | ast.ParenExpr(inner=base):
                root = base
            case _:
                break
    if isinstance(root, ast.ErrorExpr) or isinstance(
        body.resolve(body.types.get(root, ErrorType())), ErrorType
    ):
        return
    if not isinstance(root, ast.Name):
        body.error(
            "E0216",
            target.span,
            f"this is no place, and cannot be {verb}",
            notes=["Keep the value in a `var` first."],
            fixes=[_in_var(body, target, root)] if verb == "changed" else [],
        )
        return
    symbol = body.facts.uses.get(root)
    if isinstance(symbol, LocalSymbol):
        _local(body, target, root, symbol, verb)
    elif isinstance(symbol, FlowSlotSymbol):
        if symbol.parameter:
            _refuse(
                body,
                target,
                root.name,
                "a parameter of the flow",
                symbol.decl.name.span,
                verb,
                ["State that `run`, its functions and tasks share is kept in fields of the flow."],
                _copy_first(body, root.name),
            )
    elif isinstance(symbol, ConstSymbol):
        path = body.program.path_of(symbol.module)
        body.error(
            "E0216",
            target.span,
            f"`{root.name}` is a constant, and cannot be {verb}",
            labels=[Label(path, symbol.decl.name.span, "the constant")],
            fixes=_copy_first(body, root.name),
        )
    elif symbol is not None:
        body.error("E0216", target.span, f"`{root.name}` is no variable, and cannot be {verb}")
    _through(body, target, verb)


def _through(body: Body, target: ast.Expr, verb: str) -> None:
    """Only fields of structs lie on the way, not a channel of an instance or a request's value."""
    at = target
    while isinstance(at, ast.FieldExpr | ast.IndexExpr | ast.TupleIndexExpr | ast.ParenExpr):
        if isinstance(at, ast.FieldExpr):
            base = body.resolve(body.types.get(at.base, ErrorType()))
            if isinstance(base, Con) and base.name in ("Request", "Instance", "test.Handle"):
                body.error("E0216", target.span, f"this is no place, and cannot be {verb}")
                return
        at = at.inner if isinstance(at, ast.ParenExpr) else at.base


def _local(body: Body, target: ast.Expr, root: ast.Name, symbol: LocalSymbol, verb: str) -> None:
    if symbol.mutable:
        if body.locals.depth_of(symbol) < body.locals.depth:
            body.error(
                "E0214",
                target.span,
                f"`{root.name}` is captured by this closure, which has a copy of it",
                labels=[Label(body.path, symbol.span, "declared outside the closure")],
                notes=[
                    "Give the new value as the closure's result, or keep it in a field of the flow."
                ],
            )
        return
    decl = body.local_decls.get(symbol)
    if symbol.kind == "let" and isinstance(decl, ast.LetStmt):
        start = decl.span.start
        fixes = []
        if body.text(Span(start, start + 3)) == "let":
            fixes = [
                Fix("Declare it with `var`", (Edit(body.path, Span(start, start + 3), "var"),))
            ]
        _refuse(body, target, root.name, "bound with `let`", symbol.span, verb, [], fixes)
        return
    if symbol.kind == "loop" and isinstance(decl, ast.ForStmt):
        _loop_variable(body, target, root, symbol, decl, verb)
        return
    if symbol.kind == "param" and root.name == "self" and isinstance(decl, ast.ParamDecl):
        edit = Edit(body.path, Span(decl.span.start, decl.span.start), "var ")
        fixes = [Fix("Declare the method with `var self`", (edit,))]
        _refuse(body, target, "self", "read only here", symbol.span, verb, [], fixes)
        return
    what = {"param": "a parameter", "it": "the step's answer"}.get(
        symbol.kind, "bound by a pattern"
    )
    _refuse(body, target, root.name, what, symbol.span, verb, [], _copy_first(body, root.name))


def _refuse(
    body: Body,
    target: ast.Expr,
    name: str,
    what: str,
    declared: Span,
    verb: str,
    notes: list[str],
    fixes: list[Fix],
) -> None:
    body.error(
        "E0216",
        target.span,
        f"`{name}` is {what}, and cannot be {verb}",
        labels=[Label(body.path, declared, f"`{name}` is declared here")],
        notes=notes,
        fixes=fixes,
        once=declared,
    )


def _loop_variable(
    body: Body,
    target: ast.Expr,
    root: ast.Name,
    symbol: LocalSymbol,
    loop: ast.ForStmt,
    verb: str,
) -> None:
    """A loop variable is a copy; where a place is iterated, its item can be assigned by index."""
    fixes: list[Fix] = []
    notes = ["A loop variable is a copy of the item."]
    iterated = body.resolve(body.types.get(loop.iterable, ErrorType()))
    is_list = isinstance(iterated, Con) and iterated.name == "List"
    if is_list and isinstance(loop.pattern, ast.BindPattern) and _is_place(body, loop.iterable):
        text = body.text(loop.iterable.span)
        notes.append(f"Assign the item itself: `{text}[index]`.")
        fixes.append(
            Fix(
                f"Iterate `{text}.enumerate()` and assign `{text}[index]`",
                (
                    Edit(body.path, loop.pattern.span, f"(index, {root.name})"),
                    Edit(body.path, loop.iterable.span, f"{text}.enumerate()"),
                    Edit(body.path, root.span, f"{text}[index]"),
                ),
            )
        )
    else:
        fixes = _copy_first(body, root.name)
    _refuse(body, target, root.name, "a loop variable", symbol.span, verb, notes, fixes)


def _is_place(body: Body, expr: ast.Expr) -> bool:
    while isinstance(expr, ast.FieldExpr | ast.IndexExpr):
        expr = expr.base
    if not isinstance(expr, ast.Name):
        return False
    symbol: Symbol | None = body.facts.uses.get(expr)
    if isinstance(symbol, LocalSymbol):
        return symbol.mutable
    return isinstance(symbol, FlowSlotSymbol) and not symbol.parameter


def _copy_first(body: Body, name: str) -> list[Fix]:
    """`var x = x` before the statement: a variable of the same name that can be changed."""
    if body.statement is None or name == "self":
        return []
    at = body.statement.span.start
    line = body.scope.text.rfind("\n", 0, at) + 1
    before = body.scope.text[line:at]
    if before.strip():
        before = before[: len(before) - len(before.lstrip())] + "    "
    edit = Edit(body.path, Span(at, at), f"var {name} = {name}\n{before}")
    return [Fix(f"Copy it into a variable: `var {name} = {name}`", (edit,))]


def _in_var(body: Body, target: ast.Expr, root: ast.Expr) -> Fix:
    at = body.statement.span.start if body.statement is not None else target.span.start
    line = body.scope.text.rfind("\n", 0, at) + 1
    indent = body.scope.text[line:at]
    indent = indent if not indent.strip() else " "
    edits = (
        Edit(body.path, Span(at, at), f"var value = {body.text(root.span)}\n{indent}"),
        Edit(body.path, root.span, "value"),
    )
    return Fix("Keep it in a `var` first", edits)
