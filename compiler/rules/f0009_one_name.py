"""F0009: the channels, fields, views, steps and stages of a flow each have a name of their own.

Channels, fields, views and steps are one set of names, as they are used alike; stages are another,
and so are migrations, which are named after stages.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Diagnostic, Label, error
from qoqi.compiler.rules.context import Context, steps_of
from qoqi.compiler.syntax import ast


def check_one_name(ctx: Context) -> Iterator[Diagnostic]:
    for flow, _ in ctx.flows():
        groups = (
            list(_members(flow.decl)),
            [("stage", stage.name) for stage in ctx.stages(flow.decl)],
            [
                ("migration of", member.name)
                for member in flow.decl.members
                if isinstance(member, ast.MigrateDecl)
            ],
        )
        for group in groups:
            yield from _twice(ctx, flow.module, flow.name, group)


def _members(decl: ast.FlowDecl) -> Iterator[tuple[str, ast.Ident]]:
    found: list[tuple[str, ast.Ident]] = []
    for member in decl.members:
        match member:
            case ast.ChannelDecl(name=name):
                found.append(("channel", name))
            case ast.FieldDecl(name=name):
                found.append(("field", name))
            case ast.ViewDecl(name=name):
                found.append(("view", name))
            case _:
                continue
    found.extend(("step", step.name) for step, _ in steps_of(decl.members))
    yield from sorted(found, key=lambda each: each[1].span)


def _twice(
    ctx: Context, module: str, flow: str, names: list[tuple[str, ast.Ident]]
) -> Iterator[Diagnostic]:
    first: dict[str, tuple[str, ast.Ident]] = {}
    for kind, ident in names:
        known = first.setdefault(ident.name, (kind, ident))
        if known[1] is ident or not ident.name:
            continue
        file = ctx.path(module)
        message = f"the flow `{flow}` has a {known[0]} `{ident.name}` already"
        label = Label(file, known[1].span, "the first")
        notes = [f"Give this {kind.removesuffix(' of')} another name."]
        yield error("F0009", file, ident.span, message, labels=[label], notes=notes)
