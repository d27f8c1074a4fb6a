"""F0017: a flow without `run`, or with two.

A flow whose text could not be read in full may have its `run` there, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Label, error
from qoqi.compiler.rules.context import Context
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast


def check_run(ctx: Context) -> Iterator[Diagnostic]:
    for flow, _ in ctx.flows():
        file, name = ctx.path(flow.module), flow.decl.name
        members = flow.decl.members
        runs = [_word(member) for member in members if isinstance(member, ast.RunDecl)]
        whole = ctx.text(flow.module, flow.decl.span).endswith("}")
        broken = any(isinstance(member, ast.ErrorItem) for member in members)
        if not runs and whole and not broken:
            message = f"the flow `{name.name}` has no `run`"
            note = "Add `run { … }`: it is what an instance of the flow does."
            yield error("F0017", file, name.span, message, notes=[note])
        for again in runs[1:]:
            message = f"the flow `{name.name}` has a second `run`"
            note = "Move it into the first, or into a function that the first calls."
            label = Label(file, runs[0], "the first")
            yield error("F0017", file, again, message, labels=[label], notes=[note])


def _word(run: ast.RunDecl) -> Span:
    return Span(run.span.start, run.span.start + len("run"))
