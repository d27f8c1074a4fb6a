"""F0008, as far as it needs no flow.lock: on every path a migration becomes a stage.

That it is pure is checked with the other places (F0001, F0003); that its parameters and what it
carries over fit the locked version is checked when a package is built.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from qoqi.compiler.diagnostics import Diagnostic, Fix, error
from qoqi.compiler.rules.context import INDENT, Context, nodes, plural
from qoqi.compiler.rules.dataflow import Analysis, walk
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts


class Paths(Analysis[bool]):
    """Only whether a path leads somewhere."""

    def join(self, left: bool, right: bool) -> bool:
        return True


def check_become(ctx: Context) -> Iterator[Diagnostic]:
    for flow, facts in ctx.flows():
        for member in flow.decl.members:
            if isinstance(member, ast.MigrateDecl):
                yield from _migration(ctx, flow.module, facts, flow.decl, member)


def _migration(
    ctx: Context,
    module: str,
    facts: Facts,
    flow: ast.FlowDecl,
    decl: ast.MigrateDecl,
) -> Iterator[Diagnostic]:
    names = list(dict.fromkeys(stage.name.name for stage in ctx.stages(flow)))
    file = ctx.path(module)
    for node in nodes(decl.body):
        if isinstance(node, ast.BecomeStmt):
            yield from _target(ctx, module, flow, node, names)
    exits = walk(Paths(), facts, decl.body, True)
    if exits.end is None and all(isinstance(node, ast.BecomeStmt) for node in exits.leaves):
        return
    end = Span(decl.body.span.end - 1, decl.body.span.end)
    message = f"a path through the migration `{decl.name.name}` ends without `become`"
    notes = ["Write `become` and a stage of this version on every path."]
    fixes: list[Fix] = []
    target = decl.name.name if decl.name.name in names else next(iter(names), None)
    if target is not None and exits.end is not None:
        fixes.append(_add(ctx, module, decl, target))
    yield error("F0008", file, end, message, notes=notes, fixes=fixes)


def _add(ctx: Context, module: str, decl: ast.MigrateDecl, target: str) -> Fix:
    statements = decl.body.statements
    at = statements[-1].span.end if statements else decl.body.span.start + 1
    indent = ctx.indent(module, decl.span.start)
    text = f"\n{indent}{INDENT}become {target}"
    if "\n" not in ctx.text(module, Span(at, decl.body.span.end)):
        text += f"\n{indent}"
    return ctx.insert(f"Add `become {target}`", module, at, text)


def _target(
    ctx: Context,
    module: str,
    flow: ast.FlowDecl,
    node: ast.BecomeStmt,
    names: list[str],
) -> Iterator[Diagnostic]:
    name = node.stage.name
    file = ctx.path(module)
    if name not in names:
        message = f"this version of `{flow.name.name}` has no stage `{name}`"
        notes = [f"Its stages are {plural(names)}."] if names else ["It has no stage at all."]
        near = get_close_matches(name, names, 1, 0.5) or (names if len(names) == 1 else [])
        fixes = [ctx.replace(f"Become `{each}`", module, node.stage.span, each) for each in near]
        yield error("F0008", file, node.stage.span, message, notes=notes, fixes=fixes)
