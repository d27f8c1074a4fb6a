"""W0108: statements that no path reaches."""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, warning
from qoqi.compiler.rules.context import Context
from qoqi.compiler.rules.dataflow import walk
from qoqi.compiler.rules.f0008_become import Paths
from qoqi.compiler.source import Span


def check_unreachable(ctx: Context) -> Iterator[Diagnostic]:
    for body, block, facts in ctx.bodies():
        exits = walk(Paths(), facts, block, True)
        reached = exits.reached
        for node in exits.blocks:
            for before, statement in zip(node.statements, node.statements[1:], strict=False):
                if before in reached and statement not in reached:
                    span = Span(statement.span.start, node.statements[-1].span.end)
                    message = "this never runs: no path leads past the statement before it"
                    cut = Span(before.span.end, span.end)
                    fix = ctx.replace("Remove it", body.module, cut, "")
                    yield warning(
                        "W0108", ctx.path(body.module), statement.span, message, fixes=[fix]
                    )
