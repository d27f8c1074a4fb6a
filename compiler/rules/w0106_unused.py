"""W0106, W0107, W0110: variables and imports nobody uses, and a `var` hidden by a second one.

Parameters are a contract and are left alone; so are what begins with `_` and the name of an
instance that a test starts. Alternatives of a pattern bind one variable together. An assignment
alone is no use.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias, cast, get_args

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, warning
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.rules.context import Context, nodes
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts
from qoqi.compiler.types.model import Con

Binding: TypeAlias = (
    ast.LetStmt | ast.ForStmt | ast.MatchArm | ast.LambdaParam | ast.Condition | ast.ReceiveCase
)
_BINDING = get_args(Binding)


def check_unused_variables(ctx: Context) -> Iterator[Diagnostic]:
    for name, _, facts in ctx.modules():
        tree = ctx.trees[name]
        used: set[LocalSymbol] = set()
        assigned: set[LocalSymbol] = set()
        written: set[ast.Node] = set()
        for node in tree:
            if isinstance(node, ast.AssignStmt) and isinstance(node.target, ast.Name):
                written.add(node.target)
        for node, symbol in facts.uses.items():
            if isinstance(symbol, LocalSymbol):
                (assigned if node in written else used).add(symbol)
        for captured in facts.captures.values():
            used.update(captured)
        for node in tree:
            if isinstance(node, _BINDING):
                yield from _patterns(ctx, name, facts, cast(Binding, node), used, assigned)


def _patterns(
    ctx: Context,
    module: str,
    facts: Facts,
    node: Binding,
    used: set[LocalSymbol],
    assigned: set[LocalSymbol],
) -> Iterator[Diagnostic]:
    """The names of one whole pattern, where a node has one."""
    pattern = node.pattern
    if pattern is None:
        return
    names: dict[str, list[tuple[ast.Node, LocalSymbol]]] = {}
    for part in nodes(pattern):
        symbol = facts.bindings.get(part)
        if symbol is not None:
            names.setdefault(symbol.name, []).append((part, symbol))
    for name, bound in names.items():
        if name.startswith("_") or any(symbol in used for _, symbol in bound):
            continue
        match facts.types.get(bound[0][0]):
            case Con("test.Handle"):
                continue
            case _:
                pass
        written = any(symbol in assigned for _, symbol in bound)
        message = f"`{name}` is not used"
        if written:
            message = f"`{name}` is assigned and never read"
        edits = () if written else tuple(_blank(ctx, module, node, part) for part, _ in bound)
        fixes = [Fix("Write `_`", edits)] if edits else []
        place = bound[0][0]
        span = place.name.span if isinstance(place, ast.FieldPattern) else place.span
        yield warning("W0106", ctx.path(module), span, message, fixes=fixes)


def _blank(ctx: Context, module: str, whole: ast.Node, part: ast.Node) -> Edit:
    if isinstance(part, ast.FieldPattern):
        return ctx.edit(module, part.span, f"{part.name.name}: _")
    if isinstance(whole, ast.LetStmt) and whole.mutable and part is whole.pattern:
        return ctx.edit(module, Span(whole.span.start, part.span.end), "let _")
    rest = ctx.sources[module].text[: part.span.start].endswith("..")
    return ctx.edit(module, part.span, "" if rest else "_")


def check_unused_imports(ctx: Context) -> Iterator[Diagnostic]:
    for name, module, _ in ctx.modules():
        imports = [item for item in module.items if isinstance(item, ast.ImportDecl)]
        if not imports:
            continue
        own = {node for item in imports for node in nodes(item)}
        mentioned = {
            node.name
            for node in ctx.trees[name]
            if isinstance(node, ast.Ident | ast.Name) and node not in own
        }
        for item in imports:
            if not item.public:
                yield from _import(ctx, name, item, mentioned)


def _import(
    ctx: Context, module: str, item: ast.ImportDecl, mentioned: set[str]
) -> Iterator[Diagnostic]:
    file = ctx.path(module)
    if item.names is None:
        name = item.alias or item.path[-1]
        if name.name not in mentioned:
            message = f"the module `{name.name}` is imported and not used"
            yield warning(
                "W0107", file, item.span, message, fixes=[_without_line(ctx, module, item)]
            )
        return
    unused = [each for each in item.names if each.name not in mentioned]
    for each in unused:
        left = [other.name for other in item.names if other is not each]
        fix = _without_line(ctx, module, item)
        if left:
            span = Span(item.names[0].span.start, item.names[-1].span.end)
            fix = ctx.replace("Remove the name", module, span, ", ".join(left))
        message = f"`{each.name}` is imported and not used"
        yield warning("W0107", file, each.span, message, fixes=[fix])


def _without_line(ctx: Context, module: str, item: ast.ImportDecl) -> Fix:
    text = ctx.sources[module].text
    end = item.span.end
    end += 1 if text[end : end + 1] == "\n" else 0
    return ctx.replace("Remove the import", module, Span(item.span.start, end), "")


def check_hidden(ctx: Context) -> Iterator[Diagnostic]:
    for name, module, _ in ctx.modules():
        lets = [
            (node.span.start, node.pattern.name.name, node.mutable)
            for node in ctx.trees[name]
            if isinstance(node, ast.LetStmt) and isinstance(node.pattern, ast.BindPattern)
        ]
        starts = [start for start, _, _ in lets]
        for item in module.items:
            own = lets[bisect_left(starts, item.span.start) : bisect_left(starts, item.span.end)]
            bound = Counter(each for _, each, _ in own)
            if any(mutable and bound[each] > 1 for _, each, mutable in own):
                yield from _hidden(ctx, name, item, {})


def _hidden(
    ctx: Context,
    module: str,
    node: ast.Node,
    outer: dict[str, ast.LetStmt],
) -> Iterator[Diagnostic]:
    """`outer` has the `var`s of the blocks around: a `let` of that name was to assign it."""
    if not isinstance(node, ast.Block):
        for child in ast.children(node):
            yield from _hidden(ctx, module, child, outer)
        return
    own = dict(outer)
    for statement in node.statements:
        yield from _hidden(ctx, module, statement, own)
        if isinstance(statement, ast.LetStmt) and isinstance(statement.pattern, ast.BindPattern):
            name = statement.pattern.name.name
            if name in outer:
                yield _hides(ctx, module, statement, statement.pattern, outer[name])
            if statement.mutable:
                own[name] = statement
            else:
                own.pop(name, None)


def _hides(
    ctx: Context,
    module: str,
    statement: ast.LetStmt,
    pattern: ast.BindPattern,
    first: ast.LetStmt,
) -> Diagnostic:
    name, file = pattern.name.name, ctx.path(module)
    message = f"this `{name}` hides the variable `{name}` of the block around, which stays as it is"
    notes = [f"Assign it with `{name} = …`, or give this one another name."]
    label = Label(file, first.pattern.span, "the variable")
    head = Span(statement.span.start, statement.value.span.start)
    fix = ctx.replace(f"Assign `{name}`", module, head, f"{name} = ")
    return warning("W0110", file, pattern.span, message, labels=[label], notes=notes, fixes=[fix])
