"""Names and what stands behind a dot.

`static` reads a path that names a module, a type or a namespace of the language (`flow`, `task`,
`clock`); everything else is a value. A bare upper-case name is a variant of the enum wanted there,
else of `Option`, `Result` or `Settled`, else an error that offers the qualified form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from qoqi.compiler import foreign
from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.names.imports import import_edit, private
from qoqi.compiler.names.scope import ModuleScope, is_public
from qoqi.compiler.names.symbols import (
    BuiltinTypeSymbol,
    ChannelSymbol,
    ConstSymbol,
    EnumSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    FnSymbol,
    LocalSymbol,
    ModuleSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
    VariantSymbol,
    ViewSymbol,
)
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.builtin_names import builtin_methods
from qoqi.compiler.types.context import Body
from qoqi.compiler.types.facts import FnTarget, StepTarget, VariantTarget
from qoqi.compiler.types.model import (
    ERROR,
    Con,
    ErrorType,
    FlowRef,
    Fn,
    NeverType,
    Tup,
    Type,
    Var,
    show,
)
from qoqi.compiler.types.signatures import BUILTIN_TYPES, head_of, import_fixes, module_fixes
from qoqi.compiler.types.unify import INT_LITERAL, substitute

Static: TypeAlias = ModuleSymbol | EnumSymbol | StructSymbol | FlowSymbol | BuiltinTypeSymbol | str

NAMESPACES = ("flow", "task", "clock")
BARE_ENUMS = ("Option", "Result", "Settled")
FREE_BUILTINS = ("print", "assert", "fail", "steps", "calls", "attempts", "times")


# -- static paths ---------------------------------------------------------------------------------


def static(body: Body, expr: ast.Expr) -> Static | None:
    """What a path names, if it names no value."""
    match expr:
        case ast.Name(name=name):
            symbol = body.look_up(name)
            if symbol is None:
                if name in NAMESPACES:
                    return name
                symbol = BUILTIN_TYPES.get(name)
            return _as_static(body, expr, symbol)
        case ast.FieldExpr(base=base, name=ident):
            outer = static(body, base)
            if isinstance(outer, ModuleSymbol):
                found = body.program.scopes[outer.name].public(ident.name)
                return _as_static(body, expr, found)
        case _:
            pass
    return None


def _as_static(body: Body, expr: ast.Expr, symbol: Symbol | None) -> Static | None:
    if isinstance(
        symbol, ModuleSymbol | EnumSymbol | StructSymbol | FlowSymbol | BuiltinTypeSymbol
    ):
        body.use(expr, symbol)
        return symbol
    return None


def static_member(
    body: Body, expr: ast.FieldExpr, base: Static, receiver: Callable[[], Type | None]
) -> Symbol | None:
    """The declaration behind the dot of a module or type; reports what is not there.

    `receiver` gives what is first given to a function: it tells methods of one name apart.
    """
    ident = expr.name
    if not ident.name:
        return None
    if isinstance(base, ModuleSymbol):
        return _module_member(body, expr, body.program.scopes[base.name], receiver)
    if isinstance(base, str):
        body.error("E0220", expr.span, f"`{base}.{ident.name}` is no value")
        return None
    if isinstance(base, EnumSymbol):
        variant = body.program.variants[base.qualified].get(ident.name)
        if variant is not None:
            body.use(expr, variant)
            return variant
    owned = find_owned(body, base, ident.name)
    if owned is not None:
        body.use(expr, owned)
        return owned
    names = [name for (head, name) in _owned_names(body) if head == _head(base)]
    what = "function"
    if isinstance(base, EnumSymbol):
        names += body.program.variants[base.qualified]
        what = "variant" if ident.name[:1].isupper() else "function"
    fixes = replacements(body, ident, nearest(ident.name, names))
    body.error("E0302", ident.span, f"`{base.name}` has no {what} `{ident.name}`", fixes=fixes)
    return None


def _module_member(
    body: Body, expr: ast.FieldExpr, module: ModuleScope, receiver: Callable[[], Type | None]
) -> Symbol | None:
    ident = expr.name
    found = module.public(ident.name)
    if found is None:
        methods = module.method_names.get(ident.name, [])
        first = receiver() if len(methods) > 1 else None
        found = function_of_methods(body, methods, first)
    if found is None:
        fixes = replacements(body, ident, nearest(ident.name, module.public_names()))
        body.error("E0204", ident.span, f"`{module.name}` declares no `{ident.name}`", fixes=fixes)
        return None
    if module.package != body.scope.package and not is_public(found):
        body.errors += 1
        body.program.report(private(body.path, ident, found, module))
    body.use(expr, found)
    return found


def _head(base: Static) -> str:
    return str(getattr(base, "qualified", getattr(base, "name", base)))


def find_owned(body: Body, base: Static, name: str) -> FnSymbol | None:
    """A function of a type: `Int.parse`. Looked up like methods."""
    for module in _places(body, _head(base)):
        found = module.owned.get((_head(base), name))
        if found is not None and _visible(body, module, found):
            return found
    return None


def _owned_names(body: Body) -> Iterator[tuple[str, str]]:
    for module in (body.scope, body.program.prelude()):
        if module is not None:
            yield from module.owned


# -- methods --------------------------------------------------------------------------------------


def _places(body: Body, head: str) -> Iterator[ModuleScope]:
    """Where a method of a type is looked for, in order: its module, here, imports, the prelude."""
    program = body.program
    declared = program.structs.get(head) or program.enums.get(head)
    seen: set[str] = set()
    if declared is not None:
        seen.add(declared.module)
        yield program.scopes[declared.module]
    if body.scope.name not in seen:
        seen.add(body.scope.name)
        yield body.scope
    for name in body.scope.imported:
        if name not in seen and name in program.scopes:
            seen.add(name)
            yield program.scopes[name]
    prelude = program.prelude()
    if prelude is not None and prelude.name not in seen:
        yield prelude


def _visible(body: Body, module: ModuleScope, symbol: FnSymbol) -> bool:
    return module.package == body.scope.package or symbol.decl.public


def find_method(body: Body, head: str, ident: ast.Ident) -> FnSymbol | None:
    """The method of a type; E0213 where two imports have one."""
    for key in (head, "*"):
        found: list[FnSymbol] = []
        for module in _places(body, head):
            here = [
                m for m in module.methods.get((key, ident.name), ()) if _visible(body, module, m)
            ]
            if not here:
                continue
            if module.name not in body.scope.imported:
                if not found:
                    return here[0]
                break
            found.append(here[0])
        if len(found) > 1:
            _ambiguous(body, ident, found)
        if found:
            return found[0]
    return None


def _ambiguous(body: Body, ident: ast.Ident, found: list[FnSymbol]) -> None:
    modules = [symbol.module for symbol in found]
    body.error(
        "E0213",
        ident.span,
        f"`{ident.name}` is a method in {' and in '.join(f'`{m}`' for m in modules)}",
        labels=[
            Label(body.program.path_of(symbol.module), symbol.decl.name.span, "one of them")
            for symbol in found
        ],
        notes=[
            "Call the one you mean as a function: "
            + " or ".join(f"`{m.rsplit('.', 1)[-1]}.{ident.name}(…)`" for m in modules)
            + "."
        ],
    )


def method_names(body: Body, head: str) -> set[str]:
    names: set[str] = set()
    for module in _places(body, head):
        for (key, name), symbols in module.methods.items():
            if key in (head, "*") and any(_visible(body, module, s) for s in symbols):
                names.add(name)
    return names


def receiver_head(body: Body, type_: Type) -> str | None:
    """The head of a receiver's type; a literal's own type is meant."""
    type_ = body.resolve(type_)
    if isinstance(type_, Var):
        kind = body.u.kind(type_)
        if kind is None:
            return None
        return "Int" if kind == INT_LITERAL else "Decimal"
    return head_of(type_)


def function_of_methods(
    body: Body, methods: Sequence[FnSymbol], receiver: Type | None
) -> FnSymbol | None:
    """A method meant like a function, by its name: told by the head of what it is given first."""
    if len(methods) > 1 and receiver is not None:
        head = receiver_head(body, receiver)
        for method in methods:
            own = body.program.signatures[method].params[0][1]
            if head is not None and receiver_head(body, own) == head:
                return method
    return methods[0] if methods else None


def first_param(body: Body, want: Type | None) -> Type | None:
    """What a wanted function is given first."""
    wanted = body.wanted(want)
    return wanted.params[0] if isinstance(wanted, Fn) and wanted.params else None


# -- names ----------------------------------------------------------------------------------------


def infer_name(body: Body, expr: ast.Name, want: Type | None) -> Type:
    name = expr.name
    if not name:
        return ERROR
    if name[:1].isupper():
        return _upper_name(body, expr, want)
    symbol = body.look_up(name)
    if symbol is None:
        symbol = function_of_methods(body, body.scope.methods_named(name), first_param(body, want))
    if symbol is None:
        if name in NAMESPACES or name in FREE_BUILTINS:
            body.error("E0220", expr.span, f"`{name}` is part of the language and no value")
        else:
            unknown_name(body, expr)
        return ERROR
    body.use(expr, symbol)
    return symbol_value(body, expr, symbol, want)


def symbol_value(body: Body, expr: ast.Expr, symbol: Symbol, want: Type | None) -> Type:
    """The type of a declaration used as a value."""
    program = body.program
    match symbol:
        case LocalSymbol():
            body.capture(symbol)
            return body.local_types[symbol]
        case FlowSlotSymbol():
            if body.slots_seen is not None and symbol.index >= body.slots_seen:
                body.error(
                    "E0215",
                    expr.span,
                    f"the field `{symbol.name}` has no value here yet",
                    labels=[Label(body.path, symbol.decl.name.span, "it is declared below")],
                    notes=["An initial value sees parameters and the fields above it."],
                )
            return program.declared.get(symbol, ERROR)
        case ChannelSymbol():
            return channel_type(body, symbol)
        case ConstSymbol():
            return program.constants(program, symbol) if program.constants else ERROR
        case FnSymbol() | StepSymbol() | VariantSymbol():
            return function_value(body, expr, symbol, want)
        case ViewSymbol():
            edit = Edit(body.path, expr.span, f"{body.text(expr.span)}()")
            body.error(
                "E0220",
                expr.span,
                f"the view `{symbol.name}` is read by a call",
                fixes=[Fix("Call it", (edit,))],
            )
        case ModuleSymbol():
            body.error(
                "E0220",
                expr.span,
                f"`{symbol.name}` is a module and no value",
                notes=[f"Use what it declares: `{symbol.name.rsplit('.', 1)[-1]}.name`."],
            )
        case StructSymbol():
            body.error(
                "E0220",
                expr.span,
                f"`{symbol.name}` is a struct and no value",
                notes=[f"Make one with its fields in braces: `{symbol.name} {{ … }}`."],
            )
        case FlowSymbol():
            body.error(
                "E0220",
                expr.span,
                f"`{symbol.name}` is a flow and no value",
                notes=[f'Start an instance: `{symbol.name}.start("name", …)`.'],
            )
        case EnumSymbol() | BuiltinTypeSymbol():
            body.error("E0220", expr.span, f"`{symbol.name}` is a type and no value")
    return ERROR


def channel_type(body: Body, symbol: ChannelSymbol) -> Type:
    item = body.program.declared.get(symbol, ERROR)
    answer = body.program.answers.get(symbol)
    return Con("Channel", (item if answer is None else Con("Request", (item, answer)),))


def function_value(
    body: Body, expr: ast.Expr, symbol: FnSymbol | StepSymbol | VariantSymbol, want: Type | None
) -> Type:
    """A function, step or variant as a value; a unit variant is a value itself."""
    signature = body.program.signatures.get(symbol)
    if signature is None:
        return ERROR
    mapping, type_args = body.instantiate(signature.type_params, expr.span, body.quoted(expr.span))
    result = substitute(signature.result, mapping)
    wanted = body.wanted(want)
    if isinstance(symbol, VariantSymbol) and symbol.decl.params is None:
        if isinstance(wanted, Con):
            body.u.unify(result, wanted)
        body.value(expr, VariantTarget(symbol))
        return result
    if isinstance(symbol, FnSymbol):
        body.value(expr, FnTarget(symbol, type_args))
    elif isinstance(symbol, StepSymbol):
        body.value(expr, StepTarget(symbol))
    else:
        body.value(expr, VariantTarget(symbol))
    return Fn(tuple(substitute(t, mapping) for _, t, _ in signature.params), result)


def _upper_name(body: Body, expr: ast.Name, want: Type | None) -> Type:
    variant = bare_variant(body, expr.name, want)
    if variant is not None:
        body.use(expr, variant)
        return function_value(body, expr, variant, want)
    symbol = body.look_up(expr.name) or BUILTIN_TYPES.get(expr.name)
    if symbol is not None and not _wants_enum(body, want):
        return symbol_value(body, expr, symbol, want)
    no_variant(body, expr, expr.name, want)
    return ERROR


def bare_variant(body: Body, name: str, want: Type | None) -> VariantSymbol | None:
    """A variant by its bare name: of the enum wanted, else of the prelude's three."""
    program = body.program
    wanted = body.wanted(want)
    if isinstance(wanted, Fn):
        wanted = body.resolve(wanted.result)
    if isinstance(wanted, Con) and wanted.name in program.enums:
        found = program.variants[wanted.name].get(name)
        if found is not None:
            return found
    for enum in BARE_ENUMS:
        found = program.variants.get(enum, {}).get(name)
        if found is not None:
            return found
    return None


def _wants_enum(body: Body, want: Type | None) -> bool:
    wanted = body.wanted(want)
    return isinstance(wanted, Con) and wanted.name in body.program.enums


def no_variant(body: Body, node: ast.Node, name: str, want: Type | None) -> None:
    """Reports an upper-case name that is no variant of what is wanted here."""
    program = body.program
    if name in body.scope.broken or isinstance(body.wanted(want), ErrorType):
        body.errors += 1
        return
    if name in body.type_params:
        body.error("E0220", node.span, f"`{name}` is a type parameter and no value")
        return
    wanted = body.wanted(want)
    if isinstance(wanted, Fn):
        wanted = body.resolve(wanted.result)
    owners = enums_with(body, name)
    if isinstance(wanted, Con) and wanted.name in program.enums:
        own = program.variants[wanted.name]
        fixes = [
            Fix(f"Change to `{near}`", (Edit(body.path, node.span, near),))
            for near in nearest(name, own)
        ]
        fixes += _wraps(body, node, name, wanted)
        place = program.enums[wanted.name].decl.name
        path = program.path_of(program.enums[wanted.name].module)
        body.error(
            "E0302",
            node.span,
            f"`{show(wanted)}` has no variant `{name}`",
            labels=[Label(path, place.span, "its variants are declared here")]
            if wanted.name not in BARE_ENUMS
            else [],
            notes=[f"`{owners[0]}.{name}` is a variant of another enum."] if owners else [],
            fixes=fixes,
        )
        return
    if owners:
        fixes = [
            Fix(f"Write `{owner}.{name}`", (Edit(body.path, node.span, f"{owner}.{name}"),))
            for owner in owners[:3]
        ]
        body.error(
            "E0306",
            node.span,
            f"nothing says here which enum `{name}` is a variant of",
            notes=["A bare variant is looked up in the enum that is expected in its place."],
            fixes=fixes,
            # Of several patterns for a value without a type one is enough.
            once=wanted if isinstance(wanted, Var) else None,
        )
        return
    names = {v for enum in BARE_ENUMS for v in program.variants.get(enum, ())}
    names |= {n for n in (*body.scope.names, *body.scope.imports) if n[:1].isupper()}
    for symbol in body.scope.names.values():
        if isinstance(symbol, EnumSymbol):
            names |= {f"{symbol.name}.{v}" for v in program.variants[symbol.qualified]}
    fixes = [
        Fix(f"Change to `{near}`", (Edit(body.path, node.span, near),))
        for near in nearest(name, names)
    ]
    if name in foreign.NAMES:
        fixes = [
            Fix(
                f"Change to `{foreign.NAMES[name]}`",
                (Edit(body.path, node.span, foreign.NAMES[name]),),
            )
        ]
    body.error("E0201", node.span, f"there is no `{name}` here", fixes=fixes)


def _wraps(body: Body, node: ast.Node, name: str, wanted: Con) -> list[Fix]:
    """`Some(Paid)` where an option of the enum is wanted, and so on."""
    cases = {"Option": ("Some",), "Result": ("Ok", "Err"), "Settled": ("Known",)}
    fixes: list[Fix] = []
    for wrapper, inner in zip(cases.get(wanted.name, ()), wanted.args, strict=False):
        inner = body.resolve(inner)
        if isinstance(inner, Con) and name in body.program.variants.get(inner.name, {}):
            text = body.text(node.span)
            edit = Edit(body.path, node.span, f"{wrapper}({text})")
            fixes.append(Fix(f"Wrap it in `{wrapper}`", (edit,)))
    return fixes


def enums_with(body: Body, name: str) -> list[str]:
    """How enums that have such a variant are written here."""
    program, found = body.program, []
    for enum in program.enums.values():
        if name not in program.variants[enum.qualified]:
            continue
        visible = body.look_up(enum.name)
        if visible is enum:
            found.append(enum.name)
            continue
        for bound, symbol in body.scope.imports.items():
            if isinstance(symbol, ModuleSymbol) and symbol.name == enum.module:
                found.append(f"{bound}.{enum.name}")
    return sorted(found, key=lambda shown: (shown.rsplit(".", 1)[-1] in BARE_ENUMS, shown))


def unknown_name(body: Body, expr: ast.Name) -> None:
    name = expr.name
    if name in body.scope.broken:
        body.errors += 1
        return
    ident = ast.Ident(expr.span, name)
    known = {n for n in body.locals.names()}
    if body.flow is not None:
        known |= set(body.flow.names)
    known |= set(body.scope.names) | set(body.scope.imports)
    prelude = body.program.prelude()
    if prelude is not None:
        known |= set(prelude.names)
    known |= set(FREE_BUILTINS) | set(NAMESPACES)
    fixes = import_fixes(body.program, body.scope, ident, _is_value)
    fixes += module_fixes(body.program, body.scope, name)
    meant = foreign.NAMES.get(name)
    near = [meant] if meant else nearest(name, {n for n in known if n[:1].islower()})
    fixes += replacements(body, ident, near)
    notes = ["Only a method has a `self`: its first parameter."] if name == "self" else []
    body.error("E0201", expr.span, f"there is no `{name}` here", notes=notes, fixes=fixes[:3])


def _is_value(symbol: Symbol) -> bool:
    return isinstance(symbol, FnSymbol | StepSymbol | ConstSymbol)


def replacements(body: Body, ident: ast.Ident, names: Iterable[str]) -> list[Fix]:
    return [Fix(f"Change to `{n}`", (Edit(body.path, ident.span, n),)) for n in names]


# -- fields ---------------------------------------------------------------------------------------


def infer_field(body: Body, expr: ast.FieldExpr, want: Type | None) -> Type:
    base = static(body, expr.base)
    if base is not None:
        symbol = static_member(body, expr, base, lambda: first_param(body, want))
        return ERROR if symbol is None else symbol_value(body, expr, symbol, want)
    return field_type(body, expr, body.infer(expr.base))


def field_type(body: Body, expr: ast.FieldExpr, base: Type) -> Type:
    """The type of a field of a value; reports where there is none."""
    ident = expr.name
    type_ = body.resolve(base)
    if isinstance(type_, ErrorType | NeverType) or not ident.name:
        return ERROR
    found = find_field(body, expr, type_)
    if found is not None:
        return found
    if isinstance(type_, Var) and body.u.kind(type_) is None:
        unknown_receiver(body, expr)
        return ERROR
    no_member(body, expr, type_)
    return ERROR


def find_field(body: Body, expr: ast.FieldExpr, type_: Type) -> Type | None:
    """A struct's field, a request's value, a channel or view of an instance; None without."""
    program, name = body.program, expr.name.name
    if not isinstance(type_, Con):
        return None
    struct = program.structs.get(type_.name)
    if struct is not None:
        for index, (field_name, field) in enumerate(program.struct_fields.get(struct, ())):
            if field_name == name:
                body.facts.fields[expr] = index
                body.use(expr.name, struct)
                mapping: dict[Type, Type] = dict(
                    zip(program.params[struct], type_.args, strict=False)
                )
                return substitute(field, mapping)
        return None
    if type_.name == "Request" and name == "value":
        body.facts.fields[expr] = 0
        return type_.args[0]
    if type_.name in ("Instance", "test.Handle"):
        match type_.args:
            case (FlowRef(flow_name),):
                flow = program.flow_scope(program.flows[flow_name])
                member = flow.member(name)
                if isinstance(member, ChannelSymbol):
                    body.use(expr, member)
                    return Con("Outbox", (FlowRef(flow_name), channel_type(body, member)))
                if isinstance(member, ViewSymbol) and type_.name == "test.Handle":
                    body.use(expr, member)
                    return program.declared.get(member, ERROR)
            case _:
                pass
    return None


def unknown_receiver(body: Body, expr: ast.FieldExpr) -> None:
    shown = body.quoted(expr.base.span)
    body.error(
        "E0311",
        expr.base.span,
        f"nothing says the type of {shown}, so `.{expr.name.name}` cannot be found",
        notes=["Give the variable or the closure's parameter a type: `fn(x: Int) => …`."],
    )


def no_member(body: Body, expr: ast.FieldExpr, type_: Type, *, called: bool = False) -> None:
    """Reports a field or method that a type does not have."""
    program, ident = body.program, expr.name
    shown_type = body.u.shown(type_)
    head = receiver_head(body, type_) or ""
    methods = method_names(body, head) | set(builtin_methods(shown_type))
    fields: list[str] = []
    labels: list[Label] = []
    if isinstance(type_, Con) and type_.name in program.structs:
        struct = program.structs[type_.name]
        fields = [n for n, _ in program.struct_fields[struct]]
        path = program.path_of(struct.module)
        labels.append(Label(path, struct.decl.name.span, f"`{struct.name}` is declared here"))
    elif isinstance(type_, Con) and type_.name in ("Instance", "test.Handle"):
        match type_.args:
            case (FlowRef(flow_name),):
                flow = program.flow_scope(program.flows[flow_name])
                fields = [c.name for c in flow.channels]
                if type_.name == "test.Handle":
                    fields += [v.name for v in flow.views]
            case _:
                pass
    fixes: list[Fix] = []
    if not called and ident.name in methods:
        edit = Edit(body.path, ident.span, f"{ident.name}()")
        fixes.append(Fix("Call it", (edit,)))
        message = f"`{ident.name}` is a method of `{show(shown_type)}`, and is called"
        body.error("E0302", ident.span, message, fixes=fixes)
        return
    what = "method" if called else "field"
    notes: list[str] = []
    match type_:
        case Con("Option", (inner,)):
            notes.append(
                f"It may be `None`: take the `{show(body.u.shown(inner))}` out first, with "
                "`match`, `if let`, `?` or `??`."
            )
        case Con("Result", _):
            notes.append("It may be an `Err`: take the value out first, with `match` or `?`.")
        case Con("Settled", _):
            notes.append("It may be `Unknown`: take the value out first, with `match`.")
        case _:
            pass
    if called:
        fixes += _imports_of_method(body, head, ident.name)
    meant = [each for each in foreign.METHODS.get(ident.name, ()) if each in methods]
    if meant and not called:
        fixes += replacements(body, ident, [f"{each}()" for each in meant])
    else:
        fixes += replacements(body, ident, meant or nearest(ident.name, [*fields, *methods]))
    if not called and isinstance(type_, Con) and type_.name in ("Instance",):
        notes.append("Of an instance, channels can be sent to: `it.channel.send(x)`.")
    body.error(
        "E0302",
        ident.span,
        f"`{show(shown_type)}` has no {what} `{ident.name}`",
        labels=labels,
        notes=notes,
        fixes=fixes,
    )


def _imports_of_method(body: Body, head: str, name: str) -> list[Fix]:
    """Imports of modules that declare a method of this type."""
    fixes: list[Fix] = []
    package = body.scope.package
    for module in sorted(body.program.scopes.values(), key=lambda module: module.name):
        methods = module.methods.get((head, name), ())
        if any(_visible(body, module, method) for method in methods):
            shown = module.name.removeprefix(f"{package}.") if package else module.name
            edit = import_edit(body.scope, f"import {shown}")
            fixes.append(Fix(f"Import `{shown}`", (edit,)))
    return fixes


def infer_tuple_index(body: Body, expr: ast.TupleIndexExpr, want: Type | None) -> Type:
    type_ = body.resolve(body.infer(expr.base))
    if isinstance(type_, ErrorType | NeverType):
        return ERROR
    if isinstance(type_, Tup):
        if expr.index < len(type_.items):
            return type_.items[expr.index]
        body.error("E0302", expr.span, f"`{show(body.u.shown(type_))}` has no item {expr.index}")
        return ERROR
    body.error("E0302", expr.span, f"`{show(body.u.shown(type_))}` is no tuple")
    return ERROR
