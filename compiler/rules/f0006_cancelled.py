"""F0006 and F0014: a flow that listens for its cancellation hears it at every wait of `run`.

A flow listens if `run` reaches, by calls, a `wait match` with a case for `flow.cancelled()`. Then
each `wait match` so reached has one, and no bare wait is so reached. A task hears nothing, so the
case may not stand where only a task comes.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Fix, Label, error
from qoqi.compiler.names.symbols import FlowSymbol
from qoqi.compiler.rules.context import (
    INDENT,
    WAITS,
    Context,
    bare,
    builtin_name,
    own_nodes,
    run_of,
)
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.call_graph import Body, Hop
from qoqi.compiler.types.facts import Facts
from qoqi.vm.dataclass import dataclass

HEAR = "case let why = flow.cancelled(): flow.giveUp(why)"


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait and how `run` comes to it; `hears` is its cancelled case."""

    node: ast.WaitExpr | ast.Call
    hears: ast.Call | None
    body: Body
    chain: tuple[Hop, ...]


def check_cancelled(ctx: Context) -> Iterator[Diagnostic]:
    heard: set[ast.Node] = set()
    marked: set[ast.Node] = set()
    for flow, facts in ctx.flows():
        waits = list(_waits(ctx, flow, facts))
        listening = [wait for wait in waits if wait.hears is not None]
        heard.update(wait.hears for wait in listening if wait.hears is not None)
        if not listening:
            continue
        for wait in waits:
            if wait.hears is None and wait.node not in marked:
                marked.add(wait.node)
                yield _deaf(ctx, flow, wait, listening[0])
    yield from _unheard(ctx, heard)


def _waits(ctx: Context, flow: FlowSymbol, facts: Facts) -> Iterator[Wait]:
    run = run_of(flow.decl)
    if run is None or run not in ctx.graph.bodies:
        return
    for body, chain in ctx.graph.reach(ctx.graph.bodies[run], tasks=False):
        facts = ctx.checked.facts[body.module]
        for wait in body.waits:
            yield Wait(wait, _cancelled_case(facts, wait), body, chain)
        for call in body.alone:
            if builtin_name(facts, call) in WAITS:
                yield Wait(call, None, body, chain)


def _cancelled_case(facts: Facts, node: ast.WaitExpr) -> ast.Call | None:
    for arm in node.arms:
        if isinstance(arm.case, ast.ReceiveCase):
            value = bare(arm.case.value)
            if isinstance(value, ast.Call) and builtin_name(facts, value) == "flow.cancelled":
                return value
    return None


def _deaf(ctx: Context, flow: FlowSymbol, wait: Wait, listening: Wait) -> Diagnostic:
    module = wait.body.module
    file = ctx.path(module)
    assert listening.hears is not None
    label = Label(ctx.path(listening.body.module), listening.hears.span, "it listens here")
    labels = [label, *ctx.chain(wait.chain)]
    start = f"`{flow.name}` listens for its cancellation, and"
    if isinstance(wait.node, ast.WaitExpr):
        message = f"{start} this `wait match` has no case for it"
        notes = ["Add a case for `flow.cancelled()`; `flow.giveUp(why)` ends like an unheard one."]
        fixes = _add_case(ctx, module, wait.node)
        return error(
            "F0006", file, wait.node.head, message, labels=labels, notes=notes, fixes=fixes
        )
    message = f"{start} would not hear it in this wait"
    notes = ["Write a `wait match` with a case for `flow.cancelled()`."]
    fixes = _as_match(ctx, wait)
    return error("F0006", file, wait.node.span, message, labels=labels, notes=notes, fixes=fixes)


def _add_case(ctx: Context, module: str, node: ast.WaitExpr) -> list[Fix]:
    if not node.arms:
        return []
    last = node.arms[-1]
    indent = ctx.indent(module, last.span.start)
    if "\n" not in ctx.text(module, Span(node.span.start, node.arms[0].span.start)):
        indent += INDENT
    at = min(last.span.end, node.span.end - 1)
    return [ctx.insert("Add a case that gives up", module, at, f"\n{indent}{HEAR}")]


def _as_match(ctx: Context, wait: Wait) -> list[Fix]:
    """The wait as a `wait match`, where it is all of a statement's value."""
    call, module = wait.node, wait.body.module
    assert isinstance(call, ast.Call)
    facts = ctx.checked.facts[module]
    values = {
        bare(node.value)
        for node in own_nodes(wait.body.node)
        if isinstance(node, ast.LetStmt | ast.ExprStmt | ast.ReturnStmt | ast.AssignStmt)
        and node.value is not None
    }
    name = builtin_name(facts, call)
    if call not in values or name == "instance.ask":
        return []
    words = {"flow.sleep": "after", "flow.sleepUntil": "at", "flow.until": "when"}
    if name in words and call.args:
        case = f"{words[name]} {ctx.text(module, call.args[0].value.span)}: ()"
    else:
        case = f"let value = {ctx.text(module, call.span)}: value"
    indent = ctx.indent(module, call.span.start)
    inner = f"\n{indent}{INDENT}"
    text = f"wait match {{{inner}case {case}{inner}{HEAR}\n{indent}}}"
    return [ctx.replace("Write a `wait match`", module, call.span, text)]


def _unheard(ctx: Context, heard: set[ast.Node]) -> Iterator[Diagnostic]:
    called = {
        name
        for name, _, facts in ctx.modules()
        if any(builtin_name(facts, call) == "flow.cancelled" for call in facts.calls)
    }
    if not called:
        return
    tasks, exported = _task_names(ctx), _exported(ctx)
    for body in ctx.graph.bodies.values():
        if body.module not in called:
            continue
        facts = ctx.checked.facts[body.module]
        listed = [call for wait in body.waits if (call := _cancelled_case(facts, wait))]
        alone = [call for call in body.alone if builtin_name(facts, call) == "flow.cancelled"]
        for call in (*listed, *alone):
            if call in heard or (call in listed and body.node in exported):
                continue
            chain, name = tasks.get(body.node, ((), ""))
            notes = ["Wait for it in `run`, or in a function that `run` calls."]
            if name:
                who = body.name if isinstance(body.node, ast.LambdaExpr) else f"`{body.name}`"
                message = f"{who} runs in a task of `{name}`, and a task hears no cancellation"
                notes.append("`run` can cancel the task when it hears of it.")
            elif call in listed:
                message = "`flow.cancelled()` stands in a `wait match` that no `run` reaches"
            else:
                message = "`flow.cancelled()` is not a case of a `wait match`"
            file = ctx.path(body.module)
            labels = ctx.chain(chain)
            yield error("F0014", file, call.span, message, labels=labels, notes=notes)


def _exported(ctx: Context) -> set[ast.Node]:
    """Bodies that the `run` of another package may reach."""
    return {
        body.node
        for root in ctx.graph.bodies.values()
        if isinstance(root.node, ast.FnDecl) and root.node.public and root.module in ctx.trees
        for body, _ in ctx.graph.reach(root, tasks=False)
    }


def _task_names(ctx: Context) -> dict[ast.Node, tuple[tuple[Hop, ...], str]]:
    """The bodies that run in tasks, each with the way there and the flow."""
    found: dict[ast.Node, tuple[tuple[Hop, ...], str]] = {}
    for flow, _ in ctx.flows():
        run = run_of(flow.decl)
        if run is None or run not in ctx.graph.bodies:
            continue
        root = ctx.graph.bodies[run]
        direct = {body.node for body, _ in ctx.graph.reach(root, tasks=False)}
        for body, chain in ctx.graph.reach(root, tasks=True):
            if body.node not in direct:
                found.setdefault(body.node, (chain, flow.name))
    return found
