"""Rewrites: fill in a record, write out cases, write a type, turn a call into a step."""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.names.symbols import FnSymbol, LocalSymbol
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.walk import node_at, walk
from qoqi.compiler.types.facts import Colour, StructPlan
from qoqi.compiler.types.mismatch import sample
from qoqi.compiler.types.model import ErrorType, Fn, NeverType, Tup
from qoqi.lsp.changes import (
    INDENT,
    REWRITE,
    Action,
    At,
    around,
    free_name,
    touches,
)
from qoqi.lsp.spelling import spelled


def fill_record(at: At, selected: Span) -> Iterator[Action]:
    """Writes every field of a struct that is not there, also those with a default."""
    literal = around(at, selected, ast.StructExpr)
    if literal is None or literal.base is not None:
        return
    plan = at.facts.structs.get(literal)
    if not isinstance(plan, StructPlan):
        return
    given = {init.name.name for init in literal.fields}
    types = at.snapshot.checked.struct_fields.get(plan.symbol, ())
    texts = {
        field.name.name: at.snapshot.sources[plan.symbol.module].text[
            field.default.span.start : field.default.span.end
        ]
        for field in plan.symbol.decl.fields
        if field.default is not None
    }
    missing = [
        f"{name}: {texts.get(name) or sample(type_)}" for name, type_ in types if name not in given
    ]
    if not missing:
        return
    inside = at.slice(literal.span)
    brace = literal.span.start + inside.find("{")
    if literal.fields:
        last = literal.fields[-1].span.end
        comma = "" if at.text[last : literal.span.end].lstrip().startswith(",") else ","
        edit = at.edit(last, last, f"{comma} {', '.join(missing)}")
    else:
        edit = at.edit(brace + 1, literal.span.end - 1, f" {', '.join(missing)} ")
    yield Action("Fill in all fields", REWRITE, (edit,))


def write_arms(at: At, selected: Span) -> Iterator[Action]:
    """Writes out the variants that the last arm, `case _`, stands for."""
    node = around(at, selected, ast.MatchExpr)
    if node is None or not node.arms or not isinstance(node.arms[-1].pattern, ast.WildPattern):
        return
    type_ = at.facts.types.get(node.subject)
    name = getattr(type_, "name", "")
    variants = at.snapshot.program.variants.get(name)
    last = node.arms[-1]
    if variants is None or last.guard is not None:
        return
    covered: set[str] = set()
    for arm in node.arms[:-1]:
        if arm.guard is None:
            covered |= {p.path[-1].name for p in _alternatives(arm.pattern)}
    missing = [
        variant.name
        + (f"({', '.join('_' for _ in params)})" if (params := variant.decl.params) else "")
        for variant in variants.values()
        if variant.name not in covered
    ]
    if not missing:
        return
    span = last.pattern.span
    yield Action(
        "Write out the cases of `_`", REWRITE, (at.edit(span.start, span.end, " | ".join(missing)),)
    )


def _alternatives(pattern: ast.Pattern) -> Iterator[ast.VariantPattern]:
    if isinstance(pattern, ast.OrPattern):
        for each in pattern.alternatives:
            yield from _alternatives(each)
    elif isinstance(pattern, ast.VariantPattern) and (
        not pattern.args
        or all(isinstance(arg.pattern, ast.BindPattern | ast.WildPattern) for arg in pattern.args)
    ):
        yield pattern


def add_type(at: At, selected: Span) -> Iterator[Action]:
    """Writes the type that a variable has."""
    statement = around(at, selected, ast.LetStmt)
    if statement is None or statement.type is not None:
        return
    pattern = statement.pattern
    if not isinstance(pattern, ast.BindPattern) or not touches(pattern.span, selected):
        return
    type_ = at.facts.types.get(pattern) or at.facts.types.get(statement.value)
    text = spelled(at.snapshot, at.module, type_) if type_ is not None else None
    if text is None:
        return
    edit = at.edit(pattern.span.end, pattern.span.end, f": {text}")
    yield Action(f"Write the type `{text}`", REWRITE, (edit,))


def call_to_step(at: At, selected: Span) -> Iterator[Action]:
    """Moves a call of what only steps may do into a step of its own."""
    call = around(at, selected, ast.Call)
    if call is None:
        return
    path = node_at(at.tree, call.span.start)
    flow = next((node for node in path if isinstance(node, ast.FlowDecl)), None)
    inside = any(isinstance(node, ast.StepDecl | ast.ViewDecl | ast.MigrateDecl) for node in path)
    if flow is None or inside or not _is_worldly(at, call):
        return
    type_ = at.facts.types.get(call)
    if type_ is None or isinstance(type_, ErrorType | Fn):
        return
    params: dict[str, str] = {}
    for node in walk(call):
        symbol = at.facts.uses.get(node)
        if isinstance(symbol, LocalSymbol) or getattr(symbol, "parameter", None) is not None:
            assert symbol is not None
            known = at.facts.types.get(node)
            text = spelled(at.snapshot, at.module, known) if known is not None else None
            if text is None:
                return
            params.setdefault(symbol.name, text)
    name = free_name(at, _word_of(call))
    written = ", ".join(f"{param}: {shown}" for param, shown in params.items())
    answer = spelled(at.snapshot, at.module, type_)
    if answer is None and not isinstance(type_, NeverType):
        return
    result = "" if type_ == Tup() or answer is None else f" -> {answer}"
    back = "return " if result else ""
    body = f"{INDENT}{back}{at.slice(call.span)}\n"
    step = f"step {name}({written}){result} within 1m {{\n{body}}}\n\n"
    start = _doc_start(at, flow.span.start)
    edits = (
        at.edit(start, start, step),
        at.edit(call.span.start, call.span.end, f"{name}({', '.join(params)})"),
    )
    yield Action(f"Turn the call into the step `{name}`", REWRITE, edits)


def _is_worldly(at: At, call: ast.Call) -> bool:
    """Whether a call has effects, as `http.get`."""
    plan = at.facts.calls.get(call)
    symbol = getattr(plan.target, "symbol", None) if plan is not None else None
    if not isinstance(symbol, FnSymbol):
        return False
    colours = at.snapshot.checked.facts[symbol.module].colours
    return symbol.native == "world" or colours.get(symbol.decl) is Colour.WORLD


def _word_of(call: ast.Call) -> str:
    match call.fn:
        case ast.FieldExpr(base=ast.Name(name=base), name=ident):
            return f"{base}{ident.name[:1].upper()}{ident.name[1:]}"
        case ast.Name(name=name):
            return f"{name}Step"
        case _:
            return "act"


def _doc_start(at: At, offset: int) -> int:
    """Where a declaration begins with the comments above it."""
    start = at.line_start(offset)
    while start > 0:
        before = at.line_start(start - 1)
        if not at.text[before:start].lstrip().startswith("//"):
            break
        start = before
    return start
