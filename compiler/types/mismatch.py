"""The wording of E0301: a value of another type than is wanted.

The message says what was expected, then what was found. Notes and fixes know the common ways from
one type to the other.
"""

from __future__ import annotations

from qoqi.compiler.diagnostics import Edit, Fix
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Body
from qoqi.compiler.types.model import (
    DECIMAL,
    FLOAT,
    INT,
    JSON,
    STRING,
    UNIT,
    Con,
    FlowRef,
    Fn,
    Tup,
    Type,
    Var,
    show,
)

# Why an element of a literal has to be of some type.
FIRST_ITEM = "the first item"
FIRST_VALUE = "the first value"


def report_mismatch(body: Body, expr: ast.Node, found: Type, want: Type) -> None:
    u = body.u
    found, want = u.shown(found), u.shown(want)
    shown_want, shown_found = show(want), show(found)
    if shown_want == shown_found:
        shown_want, shown_found = _full(want), _full(found)
    message = f"expected `{shown_want}`, found `{shown_found}`"
    written = body.text(expr.span)
    literal = isinstance(expr, ast.StringLit | ast.IntLit | ast.DecimalLit)
    if literal and len(written) < 30 and "\n" not in written:
        message = f"expected `{shown_want}`, found {written}, which is `{shown_found}`"
    labels = [body.reason()] if body.reason is not None else []
    notes: list[str] = []
    fixes: list[Fix] = []
    if labels and labels[0].text in (FIRST_ITEM, FIRST_VALUE):
        notes.append("All have one type. For JSON of several say so: `let body: Json = …`.")
    _help(body, expr, found, want, notes, fixes)
    body.error("E0301", expr.span, message, labels=labels, notes=notes, fixes=fixes)


def _help(
    body: Body, expr: ast.Node, found: Type, want: Type, notes: list[str], fixes: list[Fix]
) -> None:
    text = body.text(expr.span)

    def replace(title: str, new: str) -> None:
        fixes.append(Fix(title, (Edit(body.path, expr.span, new),)))

    called = f"({text})" if _is_loose(expr) else text
    match want, found:
        case Con("Option", (inner,)), _ if _same(inner, found):
            replace("Wrap it in `Some`", f"Some({text})")
        case _, Con("Option", (inner,)) if _same(inner, want):
            notes.append("It may be `None`: use `match`, `if let`, `?`, or `??` with a default.")
            if not isinstance(expr, ast.Block):
                replace("Give a default with `??`", f"{called} ?? {sample(want)}")
        case Con("Result", (ok, _)), _ if _same(ok, found):
            replace("Wrap it in `Ok`", f"Ok({text})")
        case Con("Result", (_, err)), _ if _same(err, found):
            replace("Wrap it in `Err`", f"Err({text})")
        case _, Con("Result", (ok, _)) if _same(ok, want):
            notes.append("It may be an `Err`: use `match`, `if let`, or `?`.")
            replace("Return the error with `?`", f"{called}?")
        case _, Con("Settled", (inner,)) if _same(inner, want):
            notes.append("It may be `Unknown`: use `match`.")
        case Con("Settled", (inner,)), _ if _same(inner, found):
            replace("Wrap it in `Known`", f"Known({text})")
        case _, Con("Request", (inner, _)) if _same(inner, want):
            replace("Take the request's value", f"{called}.value")
        case _ if want == DECIMAL and found == INT:
            replace("Convert it to `Decimal`", f"{called}.toDecimal()")
        case _ if want == FLOAT and found in (INT, DECIMAL):
            notes.append("`Float` is inexact, so it never mixes by itself.")
            replace("Convert it to `Float`", f"{called}.toFloat()")
        case _ if want == INT and found == DECIMAL:
            replace("Drop the decimals", f"{called}.toInt()")
        case _ if want == JSON:
            replace("Turn it into `Json`", f"{called}.toJson()")
        case _ if found == JSON:
            replace("Decode it", f"{called}.decode()")
        case _ if want == STRING and found != UNIT and not isinstance(found, Fn | Var):
            if isinstance(expr, ast.StringLit):
                return
            replace("Turn it into text", f'"\\({text})"')
        case Con("Set", (a,)), Con("List", (b,)) if _same(a, b):
            replace("Make it a set", f"{called}.toSet()")
        case Con("List", (a,)), Con("Set", (b,)) if _same(a, b):
            replace("Make it a list", f"{called}.sorted()")
        case Con("List", (a,)), Con("Range", (b,)) if _same(a, b):
            replace("Make it a list", f"({text}).toList()")
        case Con("List", (a,)), _ if _same(a, found):
            replace("Make it a list of one", f"[{text}]")
        case Fn((), result), _ if _same(result, found):
            replace("Make it a closure", f"fn() => {text}")
        case _, Fn(params, result) if _same(result, want) and isinstance(expr, ast.Name):
            if params:
                notes.append(f"`{text}` is a function: call it with {len(params)} arguments.")
            else:
                replace("Call it", f"{text}()")
        case Con("Duration"), _ if found == INT and isinstance(expr, ast.IntLit):
            notes.append("A duration has a unit: `30s`, `15m`, `2h`, `7d`.")
        case Con("Bool"), Con("Option", _):
            replace("Ask whether there is a value", f"{called}.isSome()")
        case Con("Bool"), Con("Result", _):
            replace("Ask whether it went well", f"{called}.isOk()")
        case _:
            pass
    if found == UNIT and not notes and not fixes:
        notes.append("What gives nothing gives `()`.")


def _is_loose(expr: ast.Node) -> bool:
    """Whether something that binds tighter needs parentheses around it."""
    return isinstance(
        expr,
        ast.BinaryExpr
        | ast.UnaryExpr
        | ast.RangeExpr
        | ast.LambdaExpr
        | ast.IfExpr
        | ast.MatchExpr
        | ast.WaitExpr,
    )


def _same(a: Type, b: Type) -> bool:
    return a == b or isinstance(a, Var) or isinstance(b, Var)


def _full(type_: Type) -> str:
    """With the modules of declared types, where their short names are the same."""
    match type_:
        case Con("Option", (inner,)):
            return f"{_full(inner)}?"
        case Con(name, args):
            return f"{name}<{', '.join(map(_full, args))}>" if args else name
        case Tup(items):
            return f"({', '.join(map(_full, items))})"
        case Fn(params, result):
            return f"fn({', '.join(map(_full, params))}) -> {_full(result)}"
        case FlowRef(name):
            return name
        case _:
            pass
    return show(type_)


def sample(type_: Type) -> str:
    """A value of a type to begin with, as text."""
    match type_:
        case Con("Int"):
            return "0"
        case Con("Decimal"):
            return "0.00"
        case Con("Float"):
            return "0.0"
        case Con("String"):
            return '""'
        case Con("Bool"):
            return "false"
        case Con("Duration"):
            return "0s"
        case Con("List" | "Set"):
            return "[]"
        case Con("Map" | "Json"):
            return "[:]"
        case Con("Option"):
            return "None"
        case Tup(()):
            return "()"
        case _:
            pass
    return 'fail("not written yet")'


def insertion(body: Body, offset: int, text: str) -> Edit:
    return Edit(body.path, Span(offset, offset), text)
