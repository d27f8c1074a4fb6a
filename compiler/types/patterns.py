"""Patterns: what they match, what they bind, and whether they always match.

A bare variant is looked up in the enum that is matched. Whether the arms of a `match` cover every
value is asked by the rules (E0305); here is asked only whether one pattern alone always matches, as
`let`, `for`, closures and wait cases need it (E0313).
"""

from __future__ import annotations

from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.names.symbols import (
    EnumSymbol,
    LocalSymbol,
    StructSymbol,
    VariantSymbol,
)
from qoqi.compiler.source import Span
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Body
from qoqi.compiler.types.facts import StructMatch, VariantMatch
from qoqi.compiler.types.literals import resolve_path
from qoqi.compiler.types.members import bare_variant, no_variant, replacements
from qoqi.compiler.types.model import (
    ERROR,
    Con,
    ErrorType,
    NeverType,
    Tup,
    Type,
    Var,
    list_of,
    show,
)
from qoqi.compiler.types.unify import substitute


def bind(body: Body, pattern: ast.Pattern, type_: Type, kind: str = "pattern") -> None:
    """Checks a pattern against the type it matches, and declares its names."""
    names: dict[str, LocalSymbol] = {}
    _bind(body, pattern, type_, kind, names, None)


def _bind(
    body: Body,
    pattern: ast.Pattern,
    type_: Type,
    kind: str,
    names: dict[str, LocalSymbol],
    shared: dict[str, LocalSymbol] | None,
) -> None:
    """`names` are those bound so far in this pattern; `shared` those of the first alternative."""
    body.types[pattern] = type_
    match pattern:
        case ast.WildPattern() | ast.ErrorPattern():
            pass
        case ast.BindPattern(name=ident):
            _name(body, pattern, ident, type_, kind, names, shared)
        case ast.LiteralPattern(value=value):
            body.check(value, type_, body.because(pattern.span, "the pattern"))
        case ast.RangePattern(low=low, high=high):
            body.check(low, type_)
            body.check(high, type_)
            body.demand(type_, "Ordered", pattern.span, "what a range is matched with")
        case ast.VariantPattern():
            _variant(body, pattern, type_, kind, names, shared)
        case ast.StructPattern():
            _struct(body, pattern, type_, kind, names, shared)
        case ast.TuplePattern():
            _tuple(body, pattern, type_, kind, names, shared)
        case ast.ListPattern():
            _list(body, pattern, type_, kind, names, shared)
        case ast.OrPattern():
            _alternatives(body, pattern, type_, kind, names, shared)


def _name(
    body: Body,
    node: ast.Node,
    ident: ast.Ident,
    type_: Type,
    kind: str,
    names: dict[str, LocalSymbol],
    shared: dict[str, LocalSymbol] | None,
) -> None:
    if ident.name in names:
        body.error(
            "E0209",
            ident.span,
            f"`{ident.name}` is bound twice in this pattern",
            labels=[Label(body.path, names[ident.name].span, "here first")],
            notes=["To compare two parts, bind two names and add `if a == b`."],
        )
        return
    first = shared.get(ident.name) if shared is not None else None
    if first is not None:
        body.facts.bindings[node] = first
        names[ident.name] = first
        if not body.u.unify(body.local_types[first], type_):
            body.error(
                "E0210",
                ident.span,
                f"`{ident.name}` is `{show(body.u.shown(type_))}` here and "
                f"`{show(body.u.shown(body.local_types[first]))}` in the first alternative",
                labels=[Label(body.path, first.span, "the first alternative")],
            )
        return
    symbol = body.declare(node, ident, type_, kind)
    if ident.name:
        names[ident.name] = symbol


def _alternatives(
    body: Body,
    pattern: ast.OrPattern,
    type_: Type,
    kind: str,
    names: dict[str, LocalSymbol],
    shared: dict[str, LocalSymbol] | None,
) -> None:
    first: dict[str, LocalSymbol] | None = None
    for alternative in pattern.alternatives:
        own: dict[str, LocalSymbol] = {}
        _bind(body, alternative, type_, kind, own, first if first is not None else shared)
        if first is None:
            first = own
            continue
        different = sorted(set(own) ^ set(first))
        if different and not _has_error(pattern):
            listed = ", ".join(f"`{name}`" for name in different)
            body.error(
                "E0210",
                alternative.span,
                f"this alternative and the first do not bind the same names: {listed}",
                labels=[Label(body.path, pattern.alternatives[0].span, "the first alternative")],
            )
    for name, symbol in (first or {}).items():
        if name in names:
            body.error("E0209", symbol.span, f"`{name}` is bound twice in this pattern")
        names[name] = symbol


def _has_error(pattern: ast.Node) -> bool:
    if isinstance(pattern, ast.ErrorPattern):
        return True
    return any(_has_error(child) for child in ast.children(pattern))


# -- variants -------------------------------------------------------------------------------------


def _variant(
    body: Body,
    pattern: ast.VariantPattern,
    type_: Type,
    kind: str,
    names: dict[str, LocalSymbol],
    shared: dict[str, LocalSymbol] | None,
) -> None:
    symbol = _variant_symbol(body, pattern, type_)
    if symbol is None:
        for arg in pattern.args or ():
            _bind(body, arg.pattern, ERROR, kind, names, shared)
        return
    body.use(pattern.path[-1], symbol)
    signature = body.program.signatures[symbol]
    mapping: dict[Type, Type] = {param: body.u.fresh() for param in signature.type_params}
    own = substitute(signature.result, mapping)
    if not body.u.unify(own, type_):
        _cannot_match(body, pattern, own, type_)
    fields = [(name, substitute(t, mapping)) for name, t, _ in signature.params]
    parts: list[ast.Pattern | None] = [None] * len(fields)
    _variant_args(body, pattern, symbol, fields, parts)
    body.facts.matches[pattern] = VariantMatch(symbol, tuple(parts))
    for part, (_, field) in zip(parts, fields, strict=True):
        if part is not None:
            _bind(body, part, field, kind, names, shared)


def _variant_args(
    body: Body,
    pattern: ast.VariantPattern,
    symbol: VariantSymbol,
    fields: list[tuple[str, Type]],
    parts: list[ast.Pattern | None],
) -> None:
    places = {name: index for index, (name, _) in enumerate(fields)}
    declared = _declared(body, symbol)
    if pattern.args is None and not pattern.rest:
        if fields:
            at = pattern.span.end
            wild = ", ".join("_" for _ in fields)
            body.error(
                "E0312",
                pattern.span,
                f"`{symbol.name}` has {_count(len(fields), 'field')}, and the pattern names none",
                labels=declared,
                fixes=[
                    Fix("Match any value", (Edit(body.path, Span(at, at), f"({wild})"),)),
                ],
            )
        return
    named = False
    position = 0
    for arg in pattern.args or ():
        if arg.name is not None and arg.name.name:
            named = True
            index = places.get(arg.name.name)
            if index is None:
                body.error(
                    "E0312",
                    arg.name.span,
                    f"`{symbol.name}` has no field `{arg.name.name}`",
                    labels=declared,
                    fixes=replacements(body, arg.name, nearest(arg.name.name, places)),
                )
                continue
            body.use(arg.name, symbol)
        else:
            index = position
            position += 1
            if index >= len(fields):
                continue
        if parts[index] is not None:
            body.error("E0312", arg.span, f"the field `{fields[index][0]}` is matched twice")
            continue
        parts[index] = arg.pattern
    count = len(pattern.args or ())
    if position > len(fields) or (not named and not pattern.rest and position < len(fields)):
        fixes = []
        if position < len(fields):
            at = pattern.span.end - 1
            more = ", ".join("_" for _ in range(len(fields) - position))
            more = f", {more}" if count else more
            fixes = [Fix("Match the others with `_`", (Edit(body.path, Span(at, at), more),))]
        body.error(
            "E0312",
            pattern.span,
            f"`{symbol.name}` has {_count(len(fields), 'field')}, and the pattern names {position}",
            labels=declared,
            notes=["A pattern names all fields, or ends in `..`."],
            fixes=fixes,
        )


def _declared(body: Body, symbol: VariantSymbol) -> list[Label]:
    path = body.program.path_of(symbol.enum.module)
    return [Label(path, symbol.decl.span, f"`{symbol.name}` is declared here")]


def _count(count: int, noun: str) -> str:
    return f"no {noun}s" if count == 0 else f"{count} {noun}{'s' * (count > 1)}"


def _variant_symbol(body: Body, pattern: ast.VariantPattern, type_: Type) -> VariantSymbol | None:
    path = pattern.path
    if not path or not all(part.name for part in path):
        return None
    name = path[-1]
    if len(path) == 1:
        found = bare_variant(body, name.name, type_)
        wanted = body.resolve(type_)
        if found is not None:
            owner = wanted.name if isinstance(wanted, Con) else found.enum.qualified
            if owner != found.enum.qualified and owner in body.program.enums:
                no_variant(body, name, name.name, type_)
                return None
            return found
        symbol = body.look_up(name.name)
        if isinstance(symbol, StructSymbol):
            _braces_wanted(body, pattern, symbol)
            return None
        if isinstance(wanted, ErrorType | NeverType):
            return None
        named = isinstance(wanted, Con) and wanted.name in body.program.enums
        if not named and not isinstance(wanted, Var):
            body.error(
                "E0312",
                pattern.span,
                f"`{show(body.u.shown(wanted))}` is no enum, and `{name.name}` cannot match it",
                once=wanted,
            )
            return None
        no_variant(body, name, name.name, type_)
        return None
    return _qualified_variant(body, path)


def _qualified_variant(body: Body, path: tuple[ast.Ident, ...]) -> VariantSymbol | None:
    outer = _enum_of(body, path[:-1])
    if outer is None:
        return None
    name = path[-1]
    found = body.program.variants[outer.qualified].get(name.name)
    if found is None:
        variants = body.program.variants[outer.qualified]
        body.error(
            "E0302",
            name.span,
            f"`{outer.name}` has no variant `{name.name}`",
            fixes=replacements(body, name, nearest(name.name, variants)),
        )
    return found


def _enum_of(body: Body, path: tuple[ast.Ident, ...]) -> EnumSymbol | None:
    symbol = resolve_path(body, path)
    if symbol is None or isinstance(symbol, EnumSymbol):
        return symbol
    *_, last = path
    body.error("E0312", last.span, f"`{last.name}` is no enum, and has no variants")
    return None


def _braces_wanted(body: Body, pattern: ast.VariantPattern, symbol: StructSymbol) -> None:
    fixes = [Fix("Match the struct", (Edit(body.path, pattern.span, f"{symbol.name} {{ .. }}"),))]
    body.error(
        "E0312",
        pattern.span,
        f"`{symbol.name}` is a struct: its pattern has its fields in braces",
        fixes=fixes,
    )


def _cannot_match(body: Body, pattern: ast.Pattern, own: Type, type_: Type) -> None:
    shown = show(body.u.shown(type_))
    notes: list[str] = []
    match body.resolve(type_):
        case Con("Option", _):
            notes.append("It may be `None`: match `Some(…)` around it.")
        case Con("Result", _):
            notes.append("Match `Ok(…)` or `Err(…)` around it.")
        case Con("Settled", _):
            notes.append("It may be `Unknown`: match `Known(…)` around it.")
        case _:
            pass
    body.error(
        "E0312",
        pattern.span,
        f"this pattern matches `{show(body.u.shown(own))}`, and the value is `{shown}`",
        notes=notes,
    )


# -- structs, tuples, lists -----------------------------------------------------------------------


def _struct(
    body: Body,
    pattern: ast.StructPattern,
    type_: Type,
    kind: str,
    names: dict[str, LocalSymbol],
    shared: dict[str, LocalSymbol] | None,
) -> None:
    symbol = None
    if pattern.path and all(part.name for part in pattern.path):
        symbol = resolve_path(body, pattern.path)
        if symbol is not None and not isinstance(symbol, StructSymbol):
            body.error("E0312", pattern.path[-1].span, f"`{symbol.name}` is no struct")
    if not isinstance(symbol, StructSymbol):
        for field in pattern.fields:
            if field.pattern is not None:
                _bind(body, field.pattern, ERROR, kind, names, shared)
            else:
                _name(body, field, field.name, ERROR, kind, names, shared)
        return
    program = body.program
    mapping: dict[Type, Type] = {param: body.u.fresh() for param in program.params[symbol]}
    own = Con(symbol.qualified, tuple(mapping.values()))
    if not body.u.unify(own, type_):
        _cannot_match(body, pattern, own, type_)
    declared = program.struct_fields[symbol]
    places = {name: index for index, (name, _) in enumerate(declared)}
    found: list[tuple[int, ast.Pattern | LocalSymbol]] = []
    seen: set[int] = set()
    path = program.path_of(symbol.module)
    label = Label(path, symbol.decl.name.span, f"`{symbol.name}` is declared here")
    for field in pattern.fields:
        index = places.get(field.name.name)
        field_type = ERROR if index is None else substitute(declared[index][1], mapping)
        if index is None and field.name.name:
            body.error(
                "E0312",
                field.name.span,
                f"`{symbol.name}` has no field `{field.name.name}`",
                labels=[label],
                fixes=replacements(body, field.name, nearest(field.name.name, places)),
            )
        if index is not None:
            if index in seen:
                body.error("E0312", field.span, f"`{field.name.name}` is matched twice")
            seen.add(index)
            body.use(field.name, symbol)
        if field.pattern is not None:
            _bind(body, field.pattern, field_type, kind, names, shared)
            if index is not None:
                found.append((index, field.pattern))
            continue
        _name(body, field, field.name, field_type, kind, names, shared)
        local = body.facts.bindings.get(field)
        if index is not None and local is not None:
            found.append((index, local))
    body.facts.matches[pattern] = StructMatch(symbol, tuple(found))
    left = [name for name, index in places.items() if index not in seen]
    if left and not pattern.rest:
        before = body.text(pattern.span)[:-1].rstrip()
        at = pattern.span.start + len(before)
        rest = " .." if before.endswith(("{", ",")) else ", .."
        body.error(
            "E0312",
            pattern.span,
            f"the pattern leaves out {', '.join(f'`{name}`' for name in left)}",
            labels=[label],
            notes=["A struct pattern names all fields, or ends in `..`."],
            fixes=[Fix("Add `..`", (Edit(body.path, Span(at, at), rest),))],
        )


def _tuple(
    body: Body,
    pattern: ast.TuplePattern,
    type_: Type,
    kind: str,
    names: dict[str, LocalSymbol],
    shared: dict[str, LocalSymbol] | None,
) -> None:
    wanted = body.resolve(type_)
    if isinstance(wanted, Var):
        fresh = Tup(tuple(body.u.fresh() for _ in pattern.items))
        body.u.unify(wanted, fresh)
        wanted = fresh
    if isinstance(wanted, Tup) and len(wanted.items) == len(pattern.items):
        for item, item_type in zip(pattern.items, wanted.items, strict=True):
            _bind(body, item, item_type, kind, names, shared)
        return
    for item in pattern.items:
        _bind(body, item, ERROR, kind, names, shared)
    if isinstance(wanted, ErrorType | NeverType):
        return
    shown = show(body.u.shown(wanted))
    if isinstance(wanted, Tup):
        body.error(
            "E0312",
            pattern.span,
            f"this pattern has {len(pattern.items)} items, and `{shown}` has {len(wanted.items)}",
        )
    else:
        body.error(
            "E0312", pattern.span, f"this pattern matches a tuple, and the value is `{shown}`"
        )


def _list(
    body: Body,
    pattern: ast.ListPattern,
    type_: Type,
    kind: str,
    names: dict[str, LocalSymbol],
    shared: dict[str, LocalSymbol] | None,
) -> None:
    element: Type = body.u.fresh()
    own = list_of(element)
    if not body.u.unify(own, type_):
        _cannot_match(body, pattern, list_of(body.u.fresh()), type_)
        element = ERROR
    rests = 0
    for item in pattern.items:
        if not isinstance(item, ast.RestPattern):
            _bind(body, item, element, kind, names, shared)
            continue
        rests += 1
        if rests > 1:
            body.error("E0312", item.span, "a list pattern has one `..` at most")
        if item.name is not None:
            _name(body, item.name, item.name, list_of(element), kind, names, shared)


# -- irrefutable patterns -------------------------------------------------------------------------


def always_matches(body: Body, pattern: ast.Pattern) -> bool:
    """Whether a pattern that was bound matches every value of its type."""
    match pattern:
        case ast.WildPattern() | ast.BindPattern() | ast.ErrorPattern():
            return True
        case ast.TuplePattern(items=items):
            return all(always_matches(body, item) for item in items)
        case ast.StructPattern(fields=fields):
            return all(f.pattern is None or always_matches(body, f.pattern) for f in fields)
        case ast.VariantPattern():
            found = body.facts.matches.get(pattern)
            if found is None:
                return True
            alone = len(found.symbol.enum.decl.variants) == 1  # type: ignore[union-attr]
            return alone and all(always_matches(body, arg.pattern) for arg in pattern.args or ())
        case ast.OrPattern(alternatives=alternatives):
            return any(always_matches(body, one) for one in alternatives)
        case ast.ListPattern(items=items):
            return len(items) == 1 and isinstance(items[0], ast.RestPattern)
        case _:
            pass
    return False


def demand_irrefutable(body: Body, pattern: ast.Pattern, where: str, note: str) -> None:
    if not always_matches(body, pattern):
        body.error("E0313", pattern.span, f"this pattern may not match, and {where}", notes=[note])
