"""Calls: whom a call means, its arguments, its plan.

`f(x)` calls a function, step, view, variant or function value; `x.f(y)` a field that holds a
function, a builtin method, or the method `f` of the type of `x`; `Type.f(x)` a function of a type,
`module.f(x)` a module's. What no signature of flow can say (channels, instances, tasks, `flow.…`,
the tools of tests) is in `builtins` and `testing`.

Arguments are checked in the order they are written, closures after the others, so that a closure's
parameters are known. A parameter whose type is a type parameter alone and that is left out takes
its default as if it were written in the call: the default has the type the call gives it.
"""

from __future__ import annotations

from collections.abc import Sequence

from qoqi.compiler.diagnostics import Edit, Fix, Label
from qoqi.compiler.names.symbols import (
    BuiltinTypeSymbol,
    EnumSymbol,
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
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.builtin_names import builtin_methods
from qoqi.compiler.types.builtins import (
    call_builtin_method,
    call_flow_start,
    call_free_builtin,
    call_namespace,
)
from qoqi.compiler.types.context import Body, Reason
from qoqi.compiler.types.facts import (
    ArgSource,
    BuiltinTarget,
    Default,
    FnSignature,
    FnTarget,
    Given,
    StepTarget,
    Target,
    ValueTarget,
    VariantTarget,
    ViewTarget,
)
from qoqi.compiler.types.match_args import infer_args, match_args, missing_arguments
from qoqi.compiler.types.members import (
    FREE_BUILTINS,
    Static,
    bare_variant,
    find_field,
    find_method,
    find_owned,
    function_of_methods,
    infer_name,
    no_member,
    receiver_head,
    static,
    static_member,
    symbol_value,
    unknown_name,
    unknown_receiver,
)
from qoqi.compiler.types.model import (
    ERROR,
    JSON,
    STRING,
    Con,
    ErrorType,
    Fn,
    NeverType,
    Param,
    Type,
    Var,
    result_of,
    show,
)
from qoqi.compiler.types.places import demand_place
from qoqi.compiler.types.unify import substitute


def infer_call(body: Body, call: ast.Call, want: Type | None) -> Type:
    before, body.reason = body.reason, None
    type_ = _call(body, call, want)
    body.reason = before
    return type_


def _call(body: Body, call: ast.Call, want: Type | None) -> Type:
    fn = call.fn
    while isinstance(fn, ast.ParenExpr):
        fn = fn.inner
    match fn:
        case ast.Name():
            return _call_name(body, call, fn, want)
        case ast.FieldExpr(base=ast.Name(name=name)) if name in body.type_params:
            return _call_type_param(body, call, fn, name)
        case ast.FieldExpr():
            base = static(body, fn.base)
            if base is not None:
                return _call_static(body, call, fn, base, want)
            return _call_method(body, call, fn, want)
        case _:
            pass
    return _call_value(body, call, body.infer(call.fn))


def _call_type_param(body: Body, call: ast.Call, fn: ast.FieldExpr, name: str) -> Type:
    """`T.decode(json)`: what T stands for is not known in the function."""
    infer_args(body, call)
    body.error(
        "E0320",
        fn.span,
        f"`{name}` is a type parameter, and has no functions",
        notes=["`json.decode()` reads what is wanted of it, a type parameter too."],
    )
    return body.type_params[name]


# -- f(x) -----------------------------------------------------------------------------------------


def _call_name(body: Body, call: ast.Call, fn: ast.Name, want: Type | None) -> Type:
    name = fn.name
    if not name:
        infer_args(body, call)
        return ERROR
    if name[:1].isupper():
        return _call_upper(body, call, fn, want)
    symbol = body.look_up(name)
    if symbol is None:
        methods = body.scope.methods_named(name)
        if methods:
            return _call_as_function(body, call, fn, methods, want)
        if name in FREE_BUILTINS:
            return call_free_builtin(body, call, name, want)
        unknown_name(body, fn)
        infer_args(body, call)
        return ERROR
    body.use(fn, symbol)
    if isinstance(symbol, FnSymbol | StepSymbol | ViewSymbol):
        return call_symbol(body, call, symbol, want)
    type_ = symbol_value(body, fn, symbol, None)
    body.types[fn] = type_
    resolved = body.resolve(type_)
    if isinstance(symbol, LocalSymbol) and not isinstance(resolved, Fn | Var | ErrorType):
        return _hidden_function(body, call, fn, symbol, resolved)
    return _call_value(body, call, type_)


def _call_as_function(
    body: Body, call: ast.Call, fn: ast.Name, methods: Sequence[FnSymbol], want: Type | None
) -> Type:
    """A method called like a function: told by the head of its first argument's type."""
    several = len(methods) > 1 and bool(call.args)
    receiver = body.infer(call.args[0].value) if several else None
    chosen = function_of_methods(body, methods, receiver) or methods[0]
    body.use(fn, chosen)
    return call_symbol(body, call, chosen, want)


def _hidden_function(
    body: Body, call: ast.Call, fn: ast.Name, local: LocalSymbol, type_: Type
) -> Type:
    infer_args(body, call)
    outer: Symbol | None = body.flow.member(fn.name) if body.flow is not None else None
    outer = outer or body.scope.own(fn.name)
    labels = [Label(body.path, local.span, "the variable")]
    notes = []
    if isinstance(outer, FnSymbol | StepSymbol | ViewSymbol):
        path = body.program.path_of(body.scope.name)
        labels.append(Label(path, outer.decl.name.span, "the variable hides this"))
        notes.append("Give the variable another name.")
    body.error(
        "E0308",
        fn.span,
        f"`{fn.name}` is a variable of type `{show(body.u.shown(type_))}`, and no function",
        labels=labels,
        notes=notes,
    )
    return ERROR


def _call_upper(body: Body, call: ast.Call, fn: ast.Name, want: Type | None) -> Type:
    variant = bare_variant(body, fn.name, want)
    if variant is not None:
        body.use(fn, variant)
        return _call_variant(body, call, variant, want)
    symbol = body.look_up(fn.name)
    wanted = body.wanted(want)
    is_enum = isinstance(wanted, Con) and wanted.name in body.program.enums
    if isinstance(symbol, StructSymbol) and not is_enum:
        infer_args(body, call)
        return _struct_called(body, call, symbol)
    if isinstance(symbol, FlowSymbol) and not is_enum:
        infer_args(body, call)
        body.error(
            "E0308",
            fn.span,
            f"`{symbol.name}` is a flow, and a flow is started",
            notes=[f'Start an instance with a name: `{symbol.name}.start("name", …)`.'],
        )
        return ERROR
    infer_name(body, fn, want)
    infer_args(body, call)
    return ERROR


def _struct_called(body: Body, call: ast.Call, symbol: StructSymbol) -> Type:
    fields = symbol.decl.fields
    fixes = []
    if len(call.args) <= len(fields):
        parts = [
            f"{(arg.name or field.name).name}: {body.text(arg.value.span)}"
            for arg, field in zip(call.args, fields, strict=False)
        ]
        text = f"{body.text(call.fn.span)} {{ {', '.join(parts)} }}"
        fixes.append(Fix("Write a struct literal", (Edit(body.path, call.span, text),)))
    body.error(
        "E0308",
        call.fn.span,
        f"`{symbol.name}` is a struct: it is built with its fields in braces",
        fixes=fixes,
    )
    return ERROR


def _call_value(body: Body, call: ast.Call, type_: Type) -> Type:
    """A call of a function value: positional arguments only."""
    resolved = body.resolve(type_)
    if isinstance(resolved, Var) and body.u.kind(resolved) is None:
        params = tuple(body.infer(arg.value) for arg in call.args)
        result = body.u.fresh(call.span, "what this call gives")
        body.u.unify(resolved, Fn(params, result))
        sources = tuple(Given(arg.value) for arg in call.args)
        body.plan(call, ValueTarget(call.fn), sources)
        return result
    if not isinstance(resolved, Fn):
        infer_args(body, call)
        if not isinstance(resolved, ErrorType | NeverType):
            shown = show(body.u.shown(resolved))
            what = body.quoted(call.fn.span)
            body.error("E0308", call.fn.span, f"{what} is `{shown}`, and no function")
        return ERROR
    params_ = tuple((f"argument {i + 1}", p, False) for i, p in enumerate(resolved.params))
    for arg in call.args:
        if arg.name is not None:
            body.error("E0307", arg.name.span, "a function value has no named parameters")
    if len(call.args) != len(params_):
        infer_args(body, call)
        missing_arguments(body, call, params_, len(call.args))
        return resolved.result
    for arg, (_, param, _) in zip(call.args, params_, strict=True):
        body.check(arg.value, param)
    body.plan(call, ValueTarget(call.fn), tuple(Given(arg.value) for arg in call.args))
    return resolved.result


# -- module.f(x), Type.f(x), Enum.Variant(x), Flow.start(x) ---------------------------------------


def _call_static(
    body: Body, call: ast.Call, fn: ast.FieldExpr, base: Static, want: Type | None
) -> Type:
    name = fn.name.name
    if isinstance(base, str):
        return call_namespace(body, call, fn, base, want)
    if isinstance(base, FlowSymbol):
        return call_flow_start(body, call, fn, base)
    is_type = isinstance(base, StructSymbol | EnumSymbol | BuiltinTypeSymbol)
    if is_type and name in ("decode", "tryDecode") and find_owned(body, base, name) is None:
        return _decode_as(body, call, base, name, want)
    first = call.args[0].value if call.args else None
    symbol = static_member(body, fn, base, lambda: body.infer(first) if first is not None else None)
    if symbol is None:
        infer_args(body, call)
        return ERROR
    if isinstance(symbol, VariantSymbol):
        return _call_variant(body, call, symbol, want)
    if isinstance(symbol, FnSymbol | StepSymbol):
        return call_symbol(body, call, symbol, want)
    if isinstance(base, ModuleSymbol) and isinstance(symbol, StructSymbol):
        infer_args(body, call)
        return _struct_called(body, call, symbol)
    type_ = symbol_value(body, fn, symbol, None)
    body.types[fn] = type_
    return _call_value(body, call, type_)


def _decode_as(body: Body, call: ast.Call, base: Symbol, name: str, want: Type | None) -> Type:
    """`Claim.decode(json)`"""
    if isinstance(base, BuiltinTypeSymbol):
        args = tuple(body.u.fresh(call.span, "what is decoded") for _ in range(base.arity))
        type_: Type = Con(base.name, args)
    else:
        params = body.program.params.get(base, ())
        fresh = tuple(body.u.fresh(call.span, "what is decoded") for _ in params)
        type_ = Con(base.qualified, fresh)  # type: ignore[union-attr]
    result = type_ if name == "decode" else result_of(type_, STRING)
    if want is not None:
        body.u.unify(result, want)
    sources = match_args(body, call, (("json", JSON, False),), f"`{base.name}.{name}`", None)
    for source in sources:
        if isinstance(source, Given):
            body.check(source.value, JSON)
    body.demand(type_, "Data", call.fn.span, "what is decoded")
    body.plan(call, BuiltinTarget(f"data.{name}", type=type_), tuple(sources))
    return result


# -- x.f(y) ---------------------------------------------------------------------------------------


def _call_method(body: Body, call: ast.Call, fn: ast.FieldExpr, want: Type | None) -> Type:
    receiver = fn.base
    type_ = body.resolve(body.infer(receiver))
    name = fn.name.name
    if isinstance(type_, ErrorType | NeverType) or not name:
        infer_args(body, call)
        return ERROR
    head = receiver_head(body, type_)
    if head is None:
        unknown_receiver(body, fn)
        infer_args(body, call)
        return ERROR
    if name in builtin_methods(type_):
        return call_builtin_method(body, call, fn, type_, want)
    field = find_field(body, fn, type_) if isinstance(type_, Con) else None
    if field is not None and isinstance(body.resolve(field), Fn):
        body.types[fn] = field
        return _call_value(body, call, field)
    method = find_method(body, head, fn.name)
    if method is not None:
        body.use(fn, method)
        return call_symbol(body, call, method, want, receiver=(receiver, type_))
    if name == "toJson":
        return _to_json(body, call, receiver, type_)
    if name in ("decode", "tryDecode") and type_ == JSON:
        return _decode(body, call, receiver, name, want)
    infer_args(body, call)
    if field is not None:
        body.error(
            "E0308",
            fn.name.span,
            f"the field `{name}` is `{show(body.u.shown(field))}`, and no function",
            fixes=[
                Fix(
                    "Read the field",
                    (Edit(body.path, Span(fn.span.end, call.span.end), ""),),
                )
            ],
        )
        return ERROR
    no_member(body, fn, type_, called=True)
    return ERROR


def _to_json(body: Body, call: ast.Call, receiver: ast.Expr, type_: Type) -> Type:
    match_args(body, call, (), "`toJson`", None)
    infer_args(body, call)
    body.demand(type_, "Data", receiver.span, "what is turned into `Json`")
    body.plan(call, BuiltinTarget("data.toJson"), (Given(receiver),))
    return JSON


def _decode(body: Body, call: ast.Call, receiver: ast.Expr, name: str, want: Type | None) -> Type:
    """`json.decode()` gives the type that is wanted of it."""
    match_args(body, call, (), f"`{name}`", None)
    infer_args(body, call)
    type_: Type = body.u.fresh(call.span, "what is decoded")
    result = type_ if name == "decode" else result_of(type_, STRING)
    if want is not None:
        body.u.unify(result, want)
    body.demand(type_, "Data", call.span, "what is decoded")
    body.plan(call, BuiltinTarget(f"data.{name}", type=type_), (Given(receiver),))
    return result


# -- declared functions ---------------------------------------------------------------------------


def _call_variant(body: Body, call: ast.Call, symbol: VariantSymbol, want: Type | None) -> Type:
    signature = body.program.signatures.get(symbol)
    if signature is None:
        infer_args(body, call)
        return ERROR
    if symbol.decl.params is None:
        infer_args(body, call)
        at = Span(call.fn.span.end, call.span.end)
        body.error(
            "E0307",
            call.span,
            f"`{symbol.name}` has no fields, and takes no arguments",
            fixes=[Fix("Leave out the parentheses", (Edit(body.path, at, ""),))],
        )
        return signature.result if not signature.type_params else ERROR
    return _call_signature(body, call, symbol, signature, want, None)


def call_symbol(
    body: Body,
    call: ast.Call,
    symbol: FnSymbol | StepSymbol | ViewSymbol,
    want: Type | None,
    receiver: tuple[ast.Expr, Type] | None = None,
) -> Type:
    program = body.program
    if isinstance(symbol, ViewSymbol):
        match_args(body, call, (), f"the view `{symbol.name}`", None)
        infer_args(body, call)
        body.plan(call, ViewTarget(symbol), ())
        return program.declared.get(symbol, ERROR)
    signature = program.signatures.get(symbol)
    if signature is None:
        infer_args(body, call)
        return ERROR
    return _call_signature(body, call, symbol, signature, want, receiver)


def _call_signature(
    body: Body,
    call: ast.Call,
    symbol: FnSymbol | StepSymbol | VariantSymbol,
    signature: FnSignature,
    want: Type | None,
    receiver: tuple[ast.Expr, Type] | None,
) -> Type:
    shown = f"`{symbol.name}`"
    mapping, type_args = body.instantiate(signature.type_params, _name_span(call), shown)
    params = [(name, substitute(t, mapping), d) for name, t, d in signature.params]
    result = substitute(signature.result, mapping)
    sources: list[ArgSource | None] = []
    rest = params
    if receiver is not None:
        _take_receiver(body, symbol, params[0][1], receiver)
        sources.append(Given(receiver[0]))
        rest = params[1:]
    wanted = body.wanted(want)
    if wanted is not None and mapping and not isinstance(wanted, ErrorType | NeverType):
        body.u.unify(result, wanted)
    offset = len(params) - len(rest)
    given = match_args(body, call, tuple(rest), shown, _declaration(body, symbol))
    _check_args(body, symbol, rest, given, offset)
    if receiver is None and isinstance(symbol, FnSymbol) and symbol.mutates_self and given:
        first = given[0]
        if isinstance(first, Given):
            demand_place(body, first.value, "changed")
    sources += given
    for index, source in enumerate(sources):
        if source is None:
            sources[index] = _default(body, symbol, signature, mapping, index, call)
    target: Target
    if isinstance(symbol, FnSymbol):
        target = FnTarget(symbol, type_args)
    elif isinstance(symbol, StepSymbol):
        target = StepTarget(symbol)
    else:
        target = VariantTarget(symbol)
    body.plan(call, target, tuple(sources))
    return result


def _name_span(call: ast.Call) -> Span:
    fn = call.fn
    return fn.name.span if isinstance(fn, ast.FieldExpr) else fn.span


def _take_receiver(
    body: Body,
    symbol: FnSymbol | StepSymbol | VariantSymbol,
    param: Type,
    receiver: tuple[ast.Expr, Type],
) -> None:
    node, type_ = receiver
    if not body.u.unify(type_, param):
        body.error(
            "E0301",
            node.span,
            f"`{symbol.name}` is a method of `{show(body.u.shown(param))}`, and this is "
            f"`{show(body.u.shown(type_))}`",
            labels=[_declaration(body, symbol)],
        )
    if isinstance(symbol, FnSymbol) and symbol.mutates_self:
        demand_place(body, node, "changed")


def _declaration(body: Body, symbol: FnSymbol | StepSymbol | VariantSymbol) -> Label:
    path = body.program.path_of(_module_of(symbol))
    return Label(path, symbol.decl.name.span, f"`{symbol.name}` is declared here")


def _module_of(symbol: FnSymbol | StepSymbol | VariantSymbol) -> str:
    return symbol.enum.module if isinstance(symbol, VariantSymbol) else symbol.module


def _params_of(symbol: FnSymbol | StepSymbol | VariantSymbol) -> tuple[ast.ParamDecl, ...]:
    return symbol.decl.params or ()


def _check_args(
    body: Body,
    symbol: FnSymbol | StepSymbol | VariantSymbol,
    params: Sequence[tuple[str, Type, bool]],
    given: Sequence[ArgSource | None],
    offset: int,
) -> None:
    """Closures come last: what they take is known then."""
    for late in (False, True):
        for index, (source, (_, type_, _)) in enumerate(zip(given, params, strict=True)):
            if isinstance(source, Given) and _is_closure(source.value) == late:
                body.check(source.value, type_, _param_reason(body, symbol, index + offset))


def _is_closure(expr: ast.Expr) -> bool:
    while isinstance(expr, ast.ParenExpr):
        expr = expr.inner
    return isinstance(expr, ast.LambdaExpr)


def _param_reason(body: Body, symbol: FnSymbol | StepSymbol | VariantSymbol, index: int) -> Reason:
    def label() -> Label:
        module = _module_of(symbol)
        param = _params_of(symbol)[index]
        what = "field" if isinstance(symbol, VariantSymbol) else "parameter"
        text = f"the {what} `{param.name.name}` of `{symbol.name}`"
        return Label(body.program.path_of(module), param.span, text)

    return label


def _default(
    body: Body,
    symbol: FnSymbol | StepSymbol | VariantSymbol,
    signature: FnSignature,
    mapping: dict[Type, Type],
    index: int,
    call: ast.Call,
) -> ArgSource | None:
    """The default of an argument left out."""
    value = _params_of(symbol)[index].default
    if value is None:
        return None
    declared = signature.params[index][1]
    if isinstance(declared, Param):
        end = Span(call.span.end, call.span.end)
        copy = ast.moved(value, end)
        body.u.unify(mapping[declared], body.infer(copy, mapping[declared]))
        return Given(copy)
    return Default(value, _module_of(symbol))
