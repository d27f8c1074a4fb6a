"""F0016: a wait that nothing can end.

All its cases receive from `inside` channels, and no code of the package sends to them. A channel
that is used in any other way than by its own calls may be sent to by whoever has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Label, error
from qoqi.compiler.names.symbols import ChannelSymbol
from qoqi.compiler.rules.context import Context, bare, builtin, cases, nodes, plural
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts


def check_endless_wait(ctx: Context) -> Iterator[Diagnostic]:
    if not any(
        isinstance(node, ast.ChannelDecl) and node.inside
        for tree in ctx.trees.values()
        for node in tree
    ):
        return
    fed = {channel for name, _, facts in ctx.modules() for channel in _fed(facts, ctx.trees[name])}
    for name, _, facts in ctx.modules():
        listed = cases(ctx.trees[name])
        for node in ctx.trees[name]:
            if isinstance(node, ast.WaitExpr) and node.arms:
                yield from _wait(ctx, name, facts, fed, node)
            elif isinstance(node, ast.Call) and node not in listed:
                channel = _dead(facts, node, fed)
                if channel is not None:
                    yield _endless(ctx, name, node.span, [channel])


def _fed(facts: Facts, tree: tuple[ast.Node, ...]) -> Iterator[ChannelSymbol]:
    """Channels that are sent to, or handed to somebody who may."""
    receivers: set[ast.Node] = set()
    for node in tree:
        target = builtin(facts, node)
        if target is not None and target.channel is not None and isinstance(node, ast.Call):
            if target.name in ("channel.send", "instance.send", "instance.ask"):
                yield target.channel
            if isinstance(node.fn, ast.FieldExpr):
                receivers.update(nodes(node.fn))
    for node in tree:
        symbol = facts.uses.get(node)
        if isinstance(symbol, ChannelSymbol) and node not in receivers:
            yield symbol


def _dead(facts: Facts, node: ast.Expr, fed: set[ChannelSymbol]) -> ChannelSymbol | None:
    """The channel of a receive that never gets anything."""
    target = builtin(facts, bare(node))
    if target is None or target.name != "channel.receive" or target.channel is None:
        return None
    channel = target.channel
    return channel if channel.decl.inside and channel not in fed else None


def _wait(
    ctx: Context, module: str, facts: Facts, fed: set[ChannelSymbol], node: ast.WaitExpr
) -> Iterator[Diagnostic]:
    dead: list[ChannelSymbol] = []
    for arm in node.arms:
        if not isinstance(arm.case, ast.ReceiveCase):
            return
        channel = _dead(facts, arm.case.value, fed)
        if channel is None:
            return
        dead.append(channel)
    yield _endless(ctx, module, node.head, list(dict.fromkeys(dead)))


def _endless(ctx: Context, module: str, span: Span, channels: list[ChannelSymbol]) -> Diagnostic:
    names = plural([channel.name for channel in channels])
    message = f"this wait can never end: only the flow may send to {names}, and it never does"
    labels = [
        Label(ctx.path(channel.flow.module), channel.decl.name.span, "an `inside` channel")
        for channel in channels
    ]
    notes = ["Send to it from a task, take `inside` away, or add a case for a time."]
    return error("F0016", ctx.path(module), span, message, labels=labels, notes=notes)
