"""Operators, indexing, `?` and `??`.

Numbers do not mix, except that Decimal and Int give Decimal. The other side of an operator gives a
literal its type. A chain `a + b + c` is walked in a loop, since sources may have long ones.
"""

from __future__ import annotations

from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import MOST_NESTED, Body, Reason
from qoqi.compiler.types.model import (
    BOOL,
    DECIMAL,
    DURATION,
    ERROR,
    FLOAT,
    INT,
    STRING,
    TIME,
    Con,
    ErrorType,
    NeverType,
    Param,
    Type,
    Var,
    list_of,
    option_of,
    result_of,
    show,
)
from qoqi.compiler.types.unify import DECIMAL_LITERAL

ARITHMETIC = ("+", "-", "*", "/", "%")
ORDER = ("<", "<=", ">", ">=")
NUMBERS = (INT, DECIMAL, FLOAT)

_TABLE: dict[tuple[str, str, str], Type] = {
    ("+", "Time", "Duration"): TIME,
    ("-", "Time", "Duration"): TIME,
    ("-", "Time", "Time"): DURATION,
    ("-", "Date", "Date"): INT,
    ("+", "Duration", "Duration"): DURATION,
    ("-", "Duration", "Duration"): DURATION,
    ("*", "Duration", "Int"): DURATION,
    ("*", "Duration", "Decimal"): DURATION,
    ("/", "Duration", "Int"): DURATION,
    ("/", "Duration", "Duration"): DECIMAL,
}


def infer_binary(body: Body, expr: ast.BinaryExpr, want: Type | None) -> Type:
    if expr.op == "??":
        return _coalesce(body, expr, want)
    spine = [expr]
    while isinstance(spine[-1].left, ast.BinaryExpr) and spine[-1].left.op != "??":
        spine.append(spine[-1].left)
    # What comes after the checker goes down a spine by recursion, with less for each level.
    deeper = (len(spine) - 1) // 2
    if body.depth + deeper >= MOST_NESTED:
        body.too_deep(expr.span, "Give parts of it names, with `let`.")
        return ERROR
    before, body.reason = body.reason, None
    body.depth += deeper
    left: Type | None = None
    for node in reversed(spine):
        left = _apply(body, node, left)
        body.types[node] = left
    body.depth -= deeper
    body.reason = before
    return ERROR if left is None else left


def _apply(body: Body, node: ast.BinaryExpr, left: Type | None) -> Type:
    """One operator; `left` is None where the left side is not inferred yet."""
    op = node.op
    if op in ("&&", "||"):
        before = body.errors
        if left is None:
            body.check(node.left, BOOL)
        else:
            body.fit(node.left, left, BOOL)
        body.check(node.right, BOOL)
        return BOOL if body.errors == before else ERROR
    if op in ("==", "!="):
        return _equality(body, node, left)
    if op in ("in", "not-in", "not in"):
        return _membership(body, node, left)
    if op in ORDER:
        if left is None:
            left = body.infer(node.left)
        body.check(node.right, left, _other_side(body, node.left))
        body.demand(left, "Ordered", node.left.span, f"what `{op}` compares")
        return BOOL
    if left is None:
        left = body.infer(node.left)
    right = body.infer(node.right)
    return arithmetic(body, op, left, right, node.left, node.right)


def _other_side(body: Body, node: ast.Expr) -> Reason:
    return body.because(node.span, "the other side")


def _equality(body: Body, node: ast.BinaryExpr, left: Type | None) -> Type:
    if left is None and _needs_other(body, node.left) and not _needs_other(body, node.right):
        right = body.infer(node.right)
        body.check(node.left, right, _other_side(body, node.right))
        body.demand(right, "Data", node.right.span, f"what `{node.op}` compares")
        return BOOL
    if left is None:
        hint = STRING if isinstance(node.right, ast.StringLit) else None
        left = (
            body.infer(node.left, hint) if hint and _is_call(node.left) else body.infer(node.left)
        )
    body.check(node.right, left, _other_side(body, node.left))
    body.demand(left, "Data", node.left.span, f"what `{node.op}` compares")
    return BOOL


def _is_call(expr: ast.Expr) -> bool:
    """Whether text on the other side may tell a call what to give: `it.status() == "waiting"`."""
    return isinstance(expr, ast.Call) and isinstance(expr.fn, ast.FieldExpr) and not expr.args


def _needs_other(body: Body, expr: ast.Expr) -> bool:
    """Whether the other side says more about the type: a bare variant or a literal of parts."""
    match expr:
        case ast.ParenExpr(inner=inner):
            return _needs_other(body, inner)
        case ast.ListExpr() | ast.MapExpr():
            return True
        case ast.IntLit() | ast.DecimalLit():
            return True
        case ast.Name(name=name):
            return name[:1].isupper()
        case ast.Call(fn=ast.Name(name=name)):
            return name[:1].isupper()
        case _:
            pass
    return False


def _membership(body: Body, node: ast.BinaryExpr, left: Type | None) -> Type:
    if left is None and _needs_other(body, node.left):
        container = body.infer(node.right)
        item = _item_of(body, node.right, container)
        if item is None:
            body.infer(node.left)
        else:
            body.check(node.left, item, _other_side(body, node.right))
        return BOOL
    if left is None:
        left = body.infer(node.left)
    inner: ast.Expr = node.right
    while isinstance(inner, ast.ParenExpr):
        inner = inner.inner
    if isinstance(inner, ast.ListExpr):
        body.check(node.right, list_of(left))
    elif isinstance(inner, ast.RangeExpr):
        body.check(node.right, Con("Range", (left,)))
    else:
        item = _item_of(body, node.right, body.infer(node.right))
        if item is not None:
            body.fit(node.left, left, item)
    body.demand(left, "Data", node.left.span, "what is looked for")
    return BOOL


def _item_of(body: Body, node: ast.Expr, type_: Type) -> Type | None:
    """What `in` looks for: items of lists, sets and ranges, keys of maps."""
    type_ = body.resolve(type_)
    match type_:
        case Con("List" | "Set" | "Range", (item,)):
            return item
        case Con("Map", (key, _)):
            return key
        case ErrorType() | NeverType():
            return None
        case _:
            pass
    notes = ["`in` looks into lists, sets, ranges and the keys of maps."]
    if type_ == STRING:
        notes = ["Of text, ask `.contains`."]
    shown = show(body.u.shown(type_))
    body.error("E0309", node.span, f"`in` cannot look into `{shown}`", notes=notes)
    return None


def _coalesce(body: Body, expr: ast.BinaryExpr, want: Type | None) -> Type:
    hint = None if want is None else option_of(want)
    found = body.infer(expr.left, hint)
    left = body.resolve(found)
    if isinstance(left, Var) and body.u.kind(left) is None:
        item: Type = body.u.fresh()
        body.u.unify(left, option_of(item))
        left = body.resolve(left)
    match left:
        case Con("Option", (item,)):
            right = body.infer(expr.right, item)
            resolved = body.resolve(right)
            if isinstance(resolved, NeverType):
                return item
            body.fit(expr.right, right, item)
            return item
        case ErrorType() | NeverType():
            body.infer(expr.right, want)
            return ERROR if want is None else want
        case _:
            pass
    body.infer(expr.right, left)
    fixes, notes = [], ["`??` gives a default for `None`."]
    match left:
        case Con("Result", _):
            edit = Edit(body.path, Span(expr.left.span.end, expr.left.span.end), ".ok()")
            fixes.append(Fix("Drop the error with `.ok()`", (edit,)))
        case _:
            edit = Edit(body.path, Span(expr.left.span.end, expr.right.span.end), "")
            fixes.append(Fix("Leave out the default", (edit,)))
    body.error(
        "E0309",
        expr.left.span,
        f"`{show(body.u.shown(left))}` is never `None`",
        notes=notes,
        fixes=fixes,
    )
    return left


def arithmetic(
    body: Body, op: str, left: Type, right: Type, left_node: ast.Expr, right_node: ast.Expr
) -> Type:
    """The type of `left op right`."""
    u = body.u
    left, right = u.resolve(left), u.resolve(right)
    if isinstance(left, ErrorType | NeverType) or isinstance(right, ErrorType | NeverType):
        return ERROR
    known = _literals(body, op, left, right)
    if known is not None:
        return known
    if isinstance(left, Param) and left == right and left.bound == "Number" and op != "%":
        return left
    left, right = u.settle(left), u.settle(right)
    if isinstance(left, Con) and isinstance(right, Con):
        if left in NUMBERS and right in NUMBERS:
            if left == right:
                return left
            if FLOAT not in (left, right):
                return DECIMAL
        found = _TABLE.get((op, left.name, right.name))
        if found is not None:
            return found
    if (isinstance(left, Var) or isinstance(right, Var)) and u.unify(left, right):
        body.demand(left, "Number", left_node.span, f"what `{op}` takes")
        return left
    _no_operator(body, op, left, right, left_node, right_node)
    return ERROR


def _literals(body: Body, op: str, left: Type, right: Type) -> Type | None:
    """Where a side is a literal not used at a type yet, it takes the other side's."""
    u = body.u
    left_kind, right_kind = u.kind(left), u.kind(right)
    if left_kind is None and right_kind is None:
        return None
    if left_kind is not None and right_kind is not None:
        u.unify(left, right)
        return u.resolve(left)
    literal, other = (left, right) if left_kind is not None else (right, left)
    if isinstance(other, Var):
        u.unify(other, literal)
        return u.resolve(literal)
    if other in NUMBERS:
        if u.unify(literal, other):
            return other
        if u.kind(literal) == DECIMAL_LITERAL and other == INT:
            u.unify(literal, DECIMAL)
            return DECIMAL
    return None


def _no_operator(
    body: Body, op: str, left: Type, right: Type, left_node: ast.Expr, right_node: ast.Expr
) -> None:
    shown_left, shown_right = show(body.u.shown(left)), show(body.u.shown(right))
    notes: list[str] = []
    fixes: list[Fix] = []
    span = Span(left_node.span.start, right_node.span.end)
    a, b = body.text(left_node.span), body.text(right_node.span)
    if STRING in (left, right) and op == "+":
        notes.append("Texts are joined by interpolation.")
        parts = "".join(_in_text(node, text) for node, text in ((left_node, a), (right_node, b)))
        fixes.append(Fix("Join them in a text", (Edit(body.path, span, f'"{parts}"'),)))
    match left, right:
        case Con("List"), Con("List") if op == "+":
            fixes.append(Fix("Use `.concat`", (Edit(body.path, span, f"{a}.concat({b})"),)))
        case (Con("Option", (inner,)), _) | (_, Con("Option", (inner,))):
            notes.append(
                f"It may be `None`: take the `{show(body.u.shown(inner))}` out first, with "
                "`match`, `if let`, `?` or `??`."
            )
        case (Con("Duration" | "Time"), Con("Int")) | (Con("Int"), Con("Duration")) if op in "+-":
            notes.append("A duration has a unit: `30s`, or `1s * n`.")
        case Con("Int" | "Decimal"), Con("Duration") if op == "*":
            fixes.append(Fix("Put the duration first", (Edit(body.path, span, f"{b} * {a}"),)))
        case Con("Date"), _ if op in "+-":
            notes.append("Days are added with `.addDays(n)`.")
        case Con("Duration"), Con("Time") if op == "+":
            fixes.append(Fix("Put the time first", (Edit(body.path, span, f"{b} + {a}"),)))
        case Con("Float"), Con("Int" | "Decimal"):
            edit = Edit(body.path, right_node.span, f"({b}).toFloat()")
            fixes.append(Fix("Convert the right side", (edit,)))
        case Con("Int" | "Decimal"), Con("Float"):
            edit = Edit(body.path, left_node.span, f"({a}).toFloat()")
            fixes.append(Fix("Convert the left side", (edit,)))
        case _:
            pass
    if isinstance(left, Param) or isinstance(right, Param):
        notes.append("A type parameter has operators only if it is a `Number`: `<T: Number>`.")
    body.error(
        "E0309",
        right_node.span,
        f"`{op}` does not take `{shown_left}` and `{shown_right}`",
        labels=[Label(body.path, left_node.span, f"this is `{shown_left}`")],
        notes=notes,
        fixes=fixes,
    )


def _in_text(node: ast.Expr, text: str) -> str:
    if isinstance(node, ast.StringLit) and text.startswith('"') and not text.startswith('"""'):
        return text[1:-1]
    return f"\\({text})"


def infer_unary(body: Body, expr: ast.UnaryExpr, want: Type | None) -> Type:
    if expr.op == "!":
        body.check(expr.operand, BOOL)
        return BOOL
    type_ = body.resolve(body.infer(expr.operand, want))
    if body.u.kind(type_) is not None or isinstance(type_, ErrorType | NeverType):
        return type_
    if type_ in (INT, DECIMAL, FLOAT, DURATION) or (
        isinstance(type_, Param) and type_.bound == "Number"
    ):
        return type_
    if isinstance(type_, Var):
        body.demand(type_, "Number", expr.operand.span, "what `-` takes")
        return type_
    body.error("E0309", expr.operand.span, f"`-` does not take `{show(body.u.shown(type_))}`")
    return ERROR


def infer_index(body: Body, expr: ast.IndexExpr, want: Type | None) -> Type:
    type_ = body.resolve(body.infer(expr.base))
    match type_:
        case Con("List", (item,)):
            body.check(expr.index, INT)
            return item
        case Con("Map", (key, value)):
            body.check(expr.index, key)
            return value
        case _:
            pass
    body.infer(expr.index)
    if isinstance(type_, ErrorType | NeverType):
        return ERROR
    shown = show(body.u.shown(type_))
    notes = ["Lists are indexed by `Int`, maps by their keys."]
    if type_ == STRING:
        notes = ["Of text, use `.take`, `.drop` or `.chars()`."]
    elif isinstance(type_, Con) and type_.name == "Json":
        notes = ['Of `Json`, use `.get("name")`, `.item(0)` or `.at("rows[3].name")`.']
    elif isinstance(type_, Var):
        body.error("E0311", expr.base.span, "nothing says the type of what is indexed", notes=notes)
        return ERROR
    body.error("E0318", expr.base.span, f"`{shown}` cannot be indexed", notes=notes)
    return ERROR


def infer_try(body: Body, expr: ast.TryExpr, want: Type | None) -> Type:
    """`e?`: the value inside, or a return of the `Err` or `None` from the function around."""
    mark = Span(expr.span.end - 1, expr.span.end)
    frame = body.frames[-1] if body.frames else None
    outer = body.resolve(frame.result) if frame is not None else ERROR
    item: Type = want if want is not None else body.u.fresh()
    hint: Type | None = None
    match outer:
        case Con("Result", (_, err)):
            hint = result_of(item, err)
        case Con("Option", _):
            hint = option_of(item)
        case _:
            pass
    found = body.resolve(body.infer(expr.inner, hint))
    match found:
        case Con("Result", (ok, err)):
            _try_result(body, mark, outer, err)
            return ok
        case Con("Option", (inner,)):
            _try_option(body, mark, outer, expr)
            return inner
        case ErrorType() | NeverType():
            return ERROR
        case _:
            pass
    body.error(
        "E0310",
        mark,
        f"`?` takes a `Result` or an option, and this is `{show(body.u.shown(found))}`",
        labels=[Label(body.path, expr.inner.span, "this")],
        fixes=[Fix("Leave out `?`", (Edit(body.path, mark, ""),))],
    )
    return found


def _try_result(body: Body, mark: Span, outer: Type, err: Type) -> None:
    shown = show(body.u.shown(err))
    match outer:
        case ErrorType():
            return
        case Var():
            body.u.unify(outer, result_of(body.u.fresh(), err))
            return
        case Con("Result", (_, outer_err)):
            if body.u.unify(err, outer_err):
                return
            wanted = show(body.u.shown(outer_err))
            body.error(
                "E0310",
                mark,
                f"`?` would return an `Err` of `{shown}`, and the function's is of `{wanted}`",
                labels=_result_label(body),
                notes=["Convert it before, with `.mapErr(fn(error) => …)?`."],
            )
            return
        case _:
            pass
    body.error(
        "E0310",
        mark,
        f"`?` would return an `Err` of `{shown}`, and the function gives "
        f"`{show(body.u.shown(outer))}`",
        labels=_result_label(body),
        notes=["Use `match`, or let the function give a `Result`."],
    )


def _try_option(body: Body, mark: Span, outer: Type, expr: ast.TryExpr) -> None:
    match outer:
        case ErrorType():
            return
        case Var():
            body.u.unify(outer, option_of(body.u.fresh()))
            return
        case Con("Option", _):
            return
        case _:
            pass
    fixes = []
    notes = ["Use `match`, `if let` or `??`."]
    match outer:
        case Con("Result", _):
            at = expr.inner.span.end
            edit = Edit(body.path, Span(at, at), '.okOr("missing")')
            fixes.append(Fix("Turn `None` into an `Err` with `.okOr`", (edit,)))
        case _:
            pass
    body.error(
        "E0310",
        mark,
        f"`?` would return `None`, and the function gives `{show(body.u.shown(outer))}`",
        labels=_result_label(body),
        notes=notes,
        fixes=fixes,
    )


def _result_label(body: Body) -> list[Label]:
    frame = body.frames[-1] if body.frames else None
    return [frame.reason()] if frame is not None and frame.reason is not None else []
