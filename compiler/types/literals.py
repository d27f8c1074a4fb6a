"""Literals: numbers, texts, lists, maps, tuples, struct literals, ranges.

What is wanted decides where a literal could be of several types: an Int literal is a Decimal or
Float, a list literal a Set, a list or map literal Json. The elements of a Json literal are any
data; `coerce` notes where that happens ("json", "set").
"""

from __future__ import annotations

from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.names.symbols import EnumSymbol, StructSymbol, Symbol
from qoqi.compiler.source import Span
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import MOST_TYPE_PARTS, Body, Reason, reason_at
from qoqi.compiler.types.facts import ArgSource, Default, Given, StructPlan
from qoqi.compiler.types.members import replacements
from qoqi.compiler.types.mismatch import FIRST_ITEM, FIRST_VALUE, sample
from qoqi.compiler.types.model import (
    BOOL,
    DATE,
    DECIMAL,
    DURATION,
    ERROR,
    FLOAT,
    INT,
    JSON,
    STRING,
    TIME,
    Con,
    Tup,
    Type,
    list_of,
    map_of,
)
from qoqi.compiler.types.signatures import TypeReader
from qoqi.compiler.types.unify import DECIMAL_LITERAL, INT_LITERAL, substitute, weight


def infer_int(body: Body, expr: ast.IntLit, want: Type | None) -> Type:
    wanted = body.wanted(want)
    if wanted in (INT, DECIMAL, FLOAT):
        return wanted
    return body.u.literal(INT_LITERAL)


def infer_decimal(body: Body, expr: ast.DecimalLit, want: Type | None) -> Type:
    wanted = body.wanted(want)
    if wanted in (DECIMAL, FLOAT):
        return wanted
    return body.u.literal(DECIMAL_LITERAL)


def infer_duration(body: Body, expr: ast.DurationLit, want: Type | None) -> Type:
    return DURATION


def infer_date(body: Body, expr: ast.DateLit, want: Type | None) -> Type:
    return DATE


def infer_time(body: Body, expr: ast.TimeLit, want: Type | None) -> Type:
    return TIME


def infer_bool(body: Body, expr: ast.BoolLit, want: Type | None) -> Type:
    return BOOL


def infer_string(body: Body, expr: ast.StringLit, want: Type | None) -> Type:
    for part in expr.parts:
        if not isinstance(part, str):
            type_ = body.infer(part)
            body.demand(type_, "Data", part.span, "what is put into a text")
    return STRING


def infer_list(body: Body, expr: ast.ListExpr, want: Type | None) -> Type:
    wanted = body.wanted(want)
    if wanted == JSON:
        body.facts.coerce[expr] = "json"
        for item in expr.items:
            _json_element(body, item)
        return JSON
    if isinstance(wanted, Con) and wanted.name in ("List", "Set"):
        element = wanted.args[0]
        before, body.reason = body.reason, None
        for item in expr.items:
            body.check(item, element)
        body.reason = before
        if wanted.name == "Set":
            body.facts.coerce[expr] = "set"
        return wanted
    element = body.u.fresh(expr.span, "the items of this list")
    for index, item in enumerate(expr.items):
        why = body.because(expr.items[0].span, FIRST_ITEM) if index else None
        body.check(item, element, why)
    return list_of(element)


def infer_map(body: Body, expr: ast.MapExpr, want: Type | None) -> Type:
    wanted = body.wanted(want)
    if wanted == JSON:
        body.facts.coerce[expr] = "json"
        for key, value in expr.entries:
            body.check(key, STRING)
            _json_element(body, value)
        return JSON
    if isinstance(wanted, Con) and wanted.name == "Map":
        key_type, value_type = wanted.args
    else:
        key_type = body.u.fresh(expr.span, "the keys of this map")
        value_type = body.u.fresh(expr.span, "the values of this map")
        if expr.entries:
            body.demand(key_type, "Ordered", expr.entries[0][0].span, "a key of a map")
    before, body.reason = body.reason, None
    first = expr.entries[0] if expr.entries else None
    for key, value in expr.entries:
        if first is not None and key is not first[0] and not isinstance(wanted, Con):
            body.check(key, key_type, body.because(first[0].span, "the first key"))
            body.check(value, value_type, body.because(first[1].span, FIRST_VALUE))
        else:
            body.check(key, key_type)
            body.check(value, value_type)
    body.reason = before
    return map_of(key_type, value_type)


def _json_element(body: Body, expr: ast.Expr) -> None:
    """An element of a Json literal: Json itself, or data taken as Json."""
    inner = expr
    while isinstance(inner, ast.ParenExpr):
        inner = inner.inner
    if isinstance(inner, ast.ListExpr | ast.MapExpr):
        body.check(expr, JSON)
        return
    type_ = body.infer(expr)
    match body.resolve(type_):
        case Con("Option", (item,)):
            inner_type = body.resolve(item)
            if not isinstance(inner_type, Con) and body.u.kind(inner_type) is None:
                body.u.unify(inner_type, JSON)
        case _:
            pass
    if body.resolve(type_) != JSON:
        body.facts.coerce[expr] = "json"
        body.demand(type_, "Data", expr.span, "an element of `Json`")


def infer_tuple(body: Body, expr: ast.TupleExpr, want: Type | None) -> Type:
    wanted = body.wanted(want)
    before, body.reason = body.reason, None
    if isinstance(wanted, Tup) and len(wanted.items) == len(expr.items):
        for item, type_ in zip(expr.items, wanted.items, strict=True):
            body.check(item, type_)
        body.reason = before
        return wanted
    items = tuple(body.infer(item) for item in expr.items)
    body.reason = before
    type_ = Tup(items)
    if weight(body.u.shown(type_) if len(items) < 3 else type_, MOST_TYPE_PARTS) > MOST_TYPE_PARTS:
        body.error("E0322", expr.span, "the type of this tuple is too large")
        return ERROR
    return type_


def infer_paren(body: Body, expr: ast.ParenExpr, want: Type | None) -> Type:
    if want is None:
        return body.infer(expr.inner)
    return body.infer(expr.inner, want)


def infer_range(body: Body, expr: ast.RangeExpr, want: Type | None) -> Type:
    wanted = body.wanted(want)
    hint = wanted.args[0] if isinstance(wanted, Con) and wanted.name == "Range" else None
    low = body.infer(expr.low, hint)
    body.check(expr.high, low, body.because(expr.low.span, "the range begins here"))
    body.demand(low, "Ordered", expr.low.span, "the bound of a range")
    return Con("Range", (low,))


# -- structs --------------------------------------------------------------------------------------


def resolve_path(body: Body, path: tuple[ast.Ident, ...]) -> Symbol | None:
    """The type a dotted path names; reports where there is none."""
    *outer, last = path
    reader = TypeReader(body.program, body.scope, body.type_params)
    before = len(body.program.diagnostics)
    symbol = reader.find(outer[0] if outer else None, last)
    body.errors += len(body.program.diagnostics) - before
    if symbol is not None:
        body.use(last, symbol)
    return symbol


def infer_struct(body: Body, expr: ast.StructExpr, want: Type | None) -> Type:
    struct = _struct_of(body, expr, want)
    if struct is None:
        _infer_parts(body, expr)
        return ERROR
    program, decl = body.program, struct.decl
    mapping, type_args = body.instantiate(
        program.params[struct], expr.span, f"this `{struct.name}`"
    )
    type_ = Con(struct.qualified, type_args)
    wanted = body.wanted(want)
    if isinstance(wanted, Con) and wanted.name == struct.qualified:
        body.u.unify(type_, wanted)
    types = [(name, substitute(t, mapping)) for name, t in program.struct_fields[struct]]
    sources: list[ArgSource | None] = [None] * len(types)
    places = {name: index for index, (name, _) in enumerate(types)}
    seen: dict[str, ast.Ident] = {}
    misspelt: set[str] = set()
    for init in expr.fields:
        value = init.value if init.value is not None else ast.Name(init.name.span, init.name.name)
        index = places.get(init.name.name)
        if index is None:
            body.infer(value)
            near = _no_field(body, struct, init.name, [name for name, _ in types])
            misspelt.update(near)
            continue
        body.use(init.name, struct)
        if init.name.name in seen:
            body.error(
                "E0304",
                init.name.span,
                f"the field `{init.name.name}` is given twice",
                labels=[Label(body.path, seen[init.name.name].span, "here first")],
            )
        seen[init.name.name] = init.name
        body.check(value, types[index][1], _field_reason(body, struct, index))
        sources[index] = Given(value)
    if expr.base is not None:
        body.check(expr.base, type_)
    else:
        _fill_in(body, expr, struct, types, sources, misspelt)
    body.facts.structs[expr] = StructPlan(struct, tuple(sources))
    assert len(decl.fields) == len(types)
    return type_


def _field_reason(body: Body, struct: StructSymbol, index: int) -> Reason:
    place = struct.decl.fields[index]
    path = body.program.path_of(struct.module)
    return reason_at(path, place.span, f"the field `{place.name.name}`")


def _fill_in(
    body: Body,
    expr: ast.StructExpr,
    struct: StructSymbol,
    types: list[tuple[str, Type]],
    sources: list[ArgSource | None],
    misspelt: set[str],
) -> None:
    """Fields left out: their default, `None` for an option, else E0303.

    One that a misspelt name is near to was not left out.
    """
    missing: list[int] = []
    for index, (_, type_) in enumerate(types):
        if sources[index] is not None:
            continue
        default = struct.decl.fields[index].default
        resolved = body.resolve(type_)
        if default is not None:
            sources[index] = Default(default, struct.module)
        elif isinstance(resolved, Con) and resolved.name == "Option":
            none = ast.Name(Span(expr.span.end, expr.span.end), "None")
            body.check(none, type_)
            sources[index] = Given(none)
        elif types[index][0] not in misspelt:
            missing.append(index)
    if not missing:
        return
    names = [f"`{types[index][0]}`" for index in missing]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    verb = "is" if len(names) == 1 else "are"
    path = body.program.path_of(struct.module)
    labels = [
        Label(path, struct.decl.fields[index].span, "it has no default") for index in missing[:3]
    ]
    body.error(
        "E0303",
        expr.span,
        f"{listed} of `{struct.name}` {verb} missing",
        labels=labels,
        fixes=_add_fields(body, expr, [types[index] for index in missing]),
    )


def _add_fields(body: Body, expr: ast.StructExpr, missing: list[tuple[str, Type]]) -> list[Fix]:
    text = body.text(expr.span)
    if not text.endswith("}"):
        return []
    added = [f"{name}: {sample(body.u.shown(type_))}" for name, type_ in missing]
    title = "Add the missing field" if len(missing) == 1 else "Add the missing fields"
    brace = expr.span.end - 1
    inside = text[text.find("{") + 1 : -1]
    if not inside.strip():
        at = expr.span.start + text.find("{") + 1
        return [Fix(title, (Edit(body.path, Span(at, brace), f" {', '.join(added)} "),))]
    end = expr.span.start + len(text[:-1].rstrip())
    if "\n" in inside:
        last_line = inside.rstrip().rsplit("\n", 1)[-1]
        indent = last_line[: len(last_line) - len(last_line.lstrip())]
        comma = "" if text[:-1].rstrip().endswith(",") or "," not in inside else ","
        lines = "".join(f"\n{indent}{field}" for field in added)
        return [Fix(title, (Edit(body.path, Span(end, end), f"{comma}{lines}"),))]
    comma = "" if text[:-1].rstrip().endswith(",") else ","
    return [Fix(title, (Edit(body.path, Span(end, end), f"{comma} {', '.join(added)}"),))]


def _no_field(body: Body, struct: StructSymbol, ident: ast.Ident, names: list[str]) -> list[str]:
    """Reports a name that is no field; gives the fields it may have been meant for."""
    if not ident.name:
        return []
    near = list(nearest(ident.name, names))
    path = body.program.path_of(struct.module)
    body.error(
        "E0304",
        ident.span,
        f"`{struct.name}` has no field `{ident.name}`",
        labels=[Label(path, struct.decl.name.span, f"`{struct.name}` is declared here")],
        fixes=replacements(body, ident, near),
    )
    return near


def _struct_of(body: Body, expr: ast.StructExpr, want: Type | None) -> StructSymbol | None:
    path = expr.path
    if not path or not all(part.name for part in path):
        return None
    variant = _variant_name(body, path, want)
    if variant is not None:
        text = body.text(expr.span)
        inside = text[text.find("{") + 1 : -1].strip()
        shown = text[: text.find("{")].rstrip()
        body.error(
            "E0304",
            expr.span,
            f"`{path[-1].name}` is a variant, and variants are built like calls",
            fixes=[Fix("Use parentheses", (Edit(body.path, expr.span, f"{shown}({inside})"),))],
        )
        return None
    symbol = resolve_path(body, path)
    if symbol is None:
        return None
    if isinstance(symbol, StructSymbol):
        return symbol
    body.error("E0304", path[-1].span, f"`{symbol.name}` is no struct, and has no fields to give")
    return None


def _variant_name(body: Body, path: tuple[ast.Ident, ...], want: Type | None) -> str | None:
    """Whether braces were written after a variant."""
    name = path[-1].name
    if len(path) > 1:
        outer = body.look_up(path[-2].name)
        if isinstance(outer, EnumSymbol) and name in body.program.variants[outer.qualified]:
            return name
        return None
    if isinstance(body.look_up(name), StructSymbol):
        return None
    wanted = body.wanted(want)
    if isinstance(wanted, Con) and name in body.program.variants.get(wanted.name, {}):
        return name
    return None


def _infer_parts(body: Body, expr: ast.StructExpr) -> None:
    """The values of a literal of an unknown struct: names in them are still resolved."""
    if expr.base is not None:
        body.infer(expr.base)
    for init in expr.fields:
        if init.value is not None:
            body.infer(init.value)
