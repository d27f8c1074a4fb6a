"""F0001, F0003, F0012: what may not be done here.

Effects belong to steps (F0001), waits, tasks and starts to flow code (F0003), and a step calls no
step (F0012). The call graph says what stands where; each call is marked once, with its chain.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Fix, error
from qoqi.compiler.rules.context import Context
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.call_graph import Kind, Place, Violation

REPLAYED = frozenset({Place.FLOW, Place.MIGRATION, Place.FIELD})
EFFECTS = frozenset({Kind.EFFECT, Kind.STEP_ONLY, Kind.CLOCK})


def check_places(ctx: Context) -> Iterator[Diagnostic]:
    marked: set[tuple[str, Span]] = set()
    for violation in ctx.graph.violations(ctx.roots()):
        operation = violation.operation
        key = (operation.module, operation.node.span)
        if operation.module not in ctx.sources or key in marked:
            continue
        marked.add(key)
        yield _diagnostic(ctx, violation)


def _diagnostic(ctx: Context, violation: Violation) -> Diagnostic:
    operation, root = violation.operation, violation.root
    name = _called(ctx, violation)
    where = _where(violation)
    notes: list[str] = []
    fixes: list[Fix] = []
    if operation.kind in EFFECTS and root.place is not Place.NATIVE:
        code = "F0001"
        if operation.kind is Kind.CLOCK:
            message = f"`{name}` reads the clock, and {where}"
            if root.place in REPLAYED and operation.name == "now":
                notes.append("Use `flow.now()`, which is the same on every replay.")
                fixes.append(_replace(ctx, violation, "flow.now()"))
        elif operation.kind is Kind.STEP_ONLY:
            message = f"`{name}` belongs to an attempt of a step, and {where}"
            notes.append("Call it in the body of a step.")
        else:
            message = f"`{name}` is an effect, and {where}"
            notes.append("Put it in a step, and call the step.")
    elif operation.kind is Kind.STEP and root.place is Place.STEP:
        code = "F0012"
        message = f"`{name}` is a step, and {where}"
        notes.append("Call one after the other from the flow, or share a function.")
    else:
        code = "F0003"
        what = "a step" if operation.kind is Kind.STEP else "a flow operation"
        if operation.kind in EFFECTS:
            what = "an effect"
        message = f"`{name}` is {what}, and {where}"
        notes.extend(_flow_notes(violation))
        if operation.kind is Kind.NOW and root.place in (Place.STEP, Place.VIEW):
            clock = _clock(ctx, operation.module)
            if clock is not None:
                fixes.append(_replace(ctx, violation, f"{clock}.now()"))
    return error(
        code,
        ctx.path(operation.module),
        operation.node.span,
        message,
        labels=ctx.chain(violation.chain),
        notes=notes,
        fixes=fixes,
    )


def _called(ctx: Context, violation: Violation) -> str:
    """The operation in the user's words: `http.get`, not the name of its declaration."""
    node = violation.operation.node
    name = node.fn if isinstance(node, ast.Call) else node
    text = ctx.text(violation.operation.module, name.span)
    return text if len(text) <= 40 and "\n" not in text else violation.operation.name


def _where(violation: Violation) -> str:
    root = violation.root
    if root.place is Place.NATIVE:
        return f"`{root.name}` takes pure functions only"
    if root.place is Place.PURE:
        return f"{root.name} is pure"
    if not violation.chain:
        return f"this is {root.place.value} `{root.name}`"
    last = violation.chain[-1].edge.target
    name = f"`{last.name.name}`" if isinstance(last, ast.FnDecl) else "this closure"
    return f"{name} runs in {root.place.value} `{root.name}`"


def _flow_notes(violation: Violation) -> Iterator[str]:
    match violation.root.place:
        case Place.STEP:
            yield (
                "Do it in the flow, before or after the step is called; "
                "`flow.retry(after: …)` tries the step again later."
            )
        case Place.VIEW:
            yield "A view reads parameters and fields; keep the value in a field."
        case Place.MIGRATION:
            yield "A migration computes only; do it in `run`, after the stage it becomes."
        case Place.NATIVE:
            yield "Do it before, with `task.map` or a loop, and give the results."
        case _:
            yield "Do it in `run`, and keep the value in a variable or field."


def _replace(ctx: Context, violation: Violation, text: str) -> Fix:
    operation = violation.operation
    return ctx.replace(f"Use `{text}`", operation.module, operation.node.span, text)


def _clock(ctx: Context, module: str) -> str | None:
    """The name under which a module knows `std.time`."""
    for item in ctx.checked.modules[module].items:
        if not isinstance(item, ast.ImportDecl) or item.names is not None:
            continue
        if [part.name for part in item.path] == ["std", "time"]:
            return item.alias.name if item.alias else "time"
    return None
