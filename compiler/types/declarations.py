"""The bodies of declarations: functions, steps, flows, constants, defaults, tests.

A flow's fields are checked first and in order, since members see their types, and its migrations
last, since they give values to the stages of `run`. A constant is checked when it is first needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from qoqi.compiler.diagnostics import error
from qoqi.compiler.names.scope import FlowScope, ModuleScope
from qoqi.compiler.names.symbols import (
    ConstSymbol,
    EnumSymbol,
    FlowSlotSymbol,
    FnSymbol,
    LocalSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
)
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.builtin_names import METHODS
from qoqi.compiler.types.context import Body, Program, Reason, reason_at
from qoqi.compiler.types.infer import new_body
from qoqi.compiler.types.model import (
    DURATION,
    ERROR,
    INT,
    STRING,
    UNIT,
    Con,
    NeverType,
    Param,
    Type,
)
from qoqi.compiler.types.signatures import Demand, TypeReader, check_demands
from qoqi.compiler.types.statements import function_body
from qoqi.compiler.types.testing import check_given

MOST_CONSTANTS = 40


def check_module(program: Program, scope: ModuleScope) -> None:
    """Every body of a module."""
    for symbol in scope.names.values():
        match symbol:
            case ConstSymbol():
                constant_type(program, symbol)
            case StructSymbol():
                check_struct(program, scope, symbol)
            case EnumSymbol():
                check_enum(program, scope, symbol)
            case _:
                pass
    poll = program.poll or _go_on
    for function in scope.functions:
        poll()
        check_function(program, scope, function)
    for step in scope.steps:
        poll()
        check_step(program, scope, step, None)
    for flow in scope.flows.values():
        poll()
        check_flow(program, scope, flow)
    for item in scope.tree.items:
        if isinstance(item, ast.TestDecl):
            poll()
            body = new_body(program, scope, result=UNIT, testing=True)
            function_body(body, item.body, UNIT, None)
            body.finish()
        elif isinstance(item, ast.GivenStmt):
            body = new_body(program, scope, testing=True)
            check_given(body, item)
            body.finish()


def _go_on() -> None:
    """Nobody wants a check to end early."""


# -- constants and defaults -----------------------------------------------------------------------


def constant_type(program: Program, symbol: Symbol) -> Type:
    """The type of a constant, checking it at its first use; E0207 where it needs itself."""
    assert isinstance(symbol, ConstSymbol)
    known = program.declared.get(symbol)
    if known is not None:
        return known
    scope = program.scopes[symbol.module]
    under_way = program.under_way
    if symbol in under_way:
        names = [s.name for s in under_way[under_way.index(symbol) :]]
        program.report(
            error(
                "E0207",
                scope.path,
                symbol.decl.name.span,
                f"the constant `{symbol.name}` needs its own value"
                + (f", by {', '.join(f'`{n}`' for n in names[1:])}" if names[1:] else ""),
                notes=["A constant is evaluated at build, from others that do not need it."],
            )
        )
        return ERROR
    if len(under_way) >= MOST_CONSTANTS:
        program.report(
            error("E0322", scope.path, symbol.decl.span, "too many constants need one another")
        )
        return ERROR
    under_way.append(symbol)
    flow = program.flow_scope(symbol.flow) if symbol.flow is not None else None
    body = new_body(program, scope, flow=flow)
    decl = symbol.decl
    type_ = _initial(body, decl.value, decl.type)
    under_way.pop()
    type_ = program.declared.setdefault(symbol, body.u.zonk(type_))
    body.finish()
    return type_


def _initial(body: Body, value: ast.Expr, node: ast.TypeNode | None) -> Type:
    """The type of a constant or field: the one written, or that of its value."""
    if node is None:
        found = body.u.settle(body.infer(value))
        return ERROR if isinstance(found, NeverType) else found
    demands: list[Demand] = []
    type_ = TypeReader(body.program, body.scope, body.type_params, demands).read(node)
    check_demands(body.program, demands)
    body.check(value, type_, body.because(node.span, "the type it has"))
    return type_


def check_struct(program: Program, scope: ModuleScope, symbol: StructSymbol) -> None:
    types = program.struct_fields[symbol]
    params = {param.name: param for param in program.params[symbol]}
    for decl, (_, type_) in zip(symbol.decl.fields, types, strict=True):
        if decl.default is not None:
            body = new_body(program, scope, type_params=params)
            why = body.because(decl.type.span, "the type of the field")
            body.check(decl.default, type_, why)
            body.finish()


def check_enum(program: Program, scope: ModuleScope, symbol: EnumSymbol) -> None:
    params = {param.name: param for param in program.params[symbol]}
    for variant in program.variants[symbol.qualified].values():
        types = [type_ for _, type_, _ in program.signatures[variant].params]
        _defaults(program, scope, variant.decl.params or (), types, params)


_LITERALS = (
    ast.IntLit,
    ast.DecimalLit,
    ast.StringLit,
    ast.BoolLit,
    ast.DurationLit,
    ast.TupleExpr,
    ast.ListExpr,
    ast.MapExpr,
)


def _defaults(
    program: Program,
    scope: ModuleScope,
    params: Iterable[ast.ParamDecl],
    types: Iterable[Type],
    type_params: dict[str, Param],
    flow: FlowScope | None = None,
) -> None:
    """Defaults see the module, not the other parameters."""
    for decl, type_ in zip(params, types, strict=False):
        if decl.default is None:
            continue
        body = new_body(program, scope, type_params=type_params, flow=flow)
        if isinstance(type_, Param):
            body.infer(decl.default)
            if not isinstance(decl.default, _LITERALS):
                body.error(
                    "E0301",
                    decl.default.span,
                    f"the default of a `{type_.name}` is a literal, whose type each call gives",
                )
        else:
            why = body.because(decl.type.span, "the type of the parameter")
            body.check(decl.default, type_, why)
        body.finish()


# -- functions and steps --------------------------------------------------------------------------


def check_function(program: Program, scope: ModuleScope, symbol: FnSymbol) -> None:
    decl = symbol.decl
    signature = program.signatures[symbol]
    flow = program.flow_scope(symbol.flow) if symbol.flow is not None else None
    params = {p.name: p for p in signature.type_params if isinstance(p, Param)}
    types = [type_ for _, type_, _ in signature.params]
    _defaults(program, scope, decl.params, types, params, flow)
    if decl.body is None:
        return
    reason = result_reason(scope, decl.result, decl.name, f"`{symbol.name}`")
    body = new_body(
        program,
        scope,
        flow=flow,
        result=signature.result,
        reason=reason,
        type_params=params,
        tools=flow is None,
        owner=symbol,
    )
    declare_params(body, decl.params, types)
    function_body(body, decl.body, signature.result, reason)
    body.finish()


def result_reason(
    scope: ModuleScope, node: ast.TypeNode | None, name: ast.Ident, shown: str
) -> Reason:
    if node is None:
        return reason_at(scope.path, name.span, f"{shown} declares no result, so it gives `()`")
    return reason_at(scope.path, node.span, f"what {shown} gives")


def declare_params(body: Body, params: Iterable[ast.ParamDecl], types: Iterable[Type]) -> None:
    for decl, type_ in zip(params, types, strict=False):
        body.declare(decl, decl.name, type_, "var self" if decl.mutable else "param")


def check_step(
    program: Program, scope: ModuleScope, symbol: StepSymbol, flow: FlowScope | None
) -> None:
    decl = symbol.decl
    signature = program.signatures[symbol]
    types = [type_ for _, type_, _ in signature.params]
    _defaults(program, scope, decl.params, types, {}, flow)
    reason = result_reason(scope, decl.result, decl.name, f"`{symbol.name}`")
    own = {type(clause) for clause in decl.clauses}
    for clause in decl.clauses:
        _clause(program, scope, flow, decl, types, signature.result, clause)
    for clause in symbol.group:
        if type(clause) not in own:
            _clause(program, scope, flow, decl, types, signature.result, clause)
    if decl.body is None:
        return
    body = new_body(
        program, scope, flow=flow, result=signature.result, reason=reason, tools=False, owner=symbol
    )
    declare_params(body, decl.params, types)
    function_body(body, decl.body, signature.result, reason)
    body.finish()


def _clause(
    program: Program,
    scope: ModuleScope,
    flow: FlowScope | None,
    decl: ast.StepDecl,
    types: list[Type],
    result: Type,
    clause: ast.StepClause,
) -> None:
    """A step's clause. What is asked per call sees the parameters, the rest constants only."""
    fixed = new_body(program, scope, tools=False)
    over = new_body(program, scope, flow=flow, tools=False)
    declare_params(over, decl.params, types)
    match clause:
        case ast.WithinClause(limit=limit):
            fixed.check(limit, DURATION)
        case ast.TriesClause(count=count, duration=duration, otherwise=otherwise):
            if count is not None:
                fixed.check(count, INT)
            if duration is not None:
                fixed.check(duration, DURATION)
            if otherwise is not None:
                reason = result_reason(scope, decl.result, decl.name, f"`{decl.name.name}`")
                over.check(otherwise, result, reason)
        case ast.BackoffClause(first=first, most=most):
            fixed.check(first, DURATION)
            if most is not None:
                fixed.check(most, DURATION)
        case ast.OnClause(queue=queue):
            over.check(queue, STRING)
        case ast.BeatClause(interval=interval):
            fixed.check(interval, DURATION)
        case ast.LimitClause(count=count, per=per):
            fixed.check(count, INT)
            if per is not None:
                fixed.check(per, DURATION)
        case ast.UndoClause(call=call):
            span = decl.result.span if decl.result is not None else decl.name.span
            it = LocalSymbol("it", span, False, "it")
            over.local_types[it] = undone_value(over, result)
            over.locals.add(it)
            over.facts.undo_it[clause] = it
            over.infer(call)
    fixed.finish()
    over.finish()


def undone_value(body: Body, result: Type) -> Type:
    """What `it` of an undo is: the value inside `Ok`, `Known` and `Some`, taken out repeatedly."""
    while True:
        result = body.resolve(result)
        if isinstance(result, Con) and result.name in ("Result", "Settled", "Option"):
            result = result.args[0]
            continue
        return result


# -- flows ----------------------------------------------------------------------------------------


def check_flow(program: Program, scope: ModuleScope, flow: FlowScope) -> None:
    decl = flow.symbol.decl
    signature = program.signatures[flow.symbol]
    types = [type_ for _, type_, _ in signature.params]
    _defaults(program, scope, decl.params, types, {})
    for param, type_ in zip(decl.params, types, strict=True):
        local = LocalSymbol(param.name.name, param.name.span, False, "param")
        program.facts[scope.name].bindings[param] = local
        program.facts[scope.name].types[param] = type_
    if decl.keep is not None:
        body = new_body(program, scope, tools=False)
        body.check(decl.keep, DURATION)
        body.finish()
    for slot in flow.slots:
        if not slot.parameter:
            _field(program, scope, flow, slot)
    for const in flow.consts:
        constant_type(program, const)
    for channel in flow.channels:
        _not_of_handles(program, scope, channel.decl.name, "channel")
        if channel.decl.capacity is not None:
            body = new_body(program, scope, tools=False)
            body.check(channel.decl.capacity, INT)
            body.finish()
    for view in flow.views:
        _not_of_handles(program, scope, view.decl.name, "view")
        result = program.declared[view]
        reason = result_reason(scope, view.decl.result, view.decl.name, f"the view `{view.name}`")
        body = new_body(program, scope, flow=flow, result=result, reason=reason, tools=False)
        function_body(body, view.decl.body, result, reason)
        body.finish()
    for function in flow.functions:
        check_function(program, scope, function)
    for step in flow.steps:
        check_step(program, scope, step, flow)
    for member in decl.members:
        if isinstance(member, ast.RunDecl):
            reason = result_reason(scope, decl.result, decl.name, f"`{decl.name.name}`")
            body = new_body(
                program,
                scope,
                flow=flow,
                result=signature.result,
                reason=reason,
                tools=False,
                owner=flow.symbol,
            )
            function_body(body, member.body, signature.result, reason)
            body.finish()
    for member in decl.members:
        if isinstance(member, ast.MigrateDecl):
            _migration(program, scope, flow, member)


def _field(program: Program, scope: ModuleScope, flow: FlowScope, slot: FlowSlotSymbol) -> None:
    decl = slot.decl
    assert isinstance(decl, ast.FieldDecl)
    body = new_body(program, scope, flow=flow, tools=False)
    body.slots_seen = slot.index
    if decl.value is not None:
        type_ = _initial(body, decl.value, decl.type)
    elif decl.type is not None:
        demands: list[Demand] = []
        type_ = TypeReader(program, scope, {}, demands).read(decl.type)
        check_demands(program, demands)
    else:
        type_ = ERROR
        body.error(
            "E0311",
            decl.name.span,
            f"nothing says the type of the field `{slot.name}`",
            notes=["Give it a type or an initial value: `var name: String`."],
        )
    program.declared[slot] = body.u.zonk(type_)
    body.finish()


def _not_of_handles(program: Program, scope: ModuleScope, ident: ast.Ident, what: str) -> None:
    if ident.name in METHODS["test.Handle"]:
        program.report(
            error(
                "E0222",
                scope.path,
                ident.span,
                f"a {what} may not be named `{ident.name}`: a test asks an instance for that",
                notes=["Tests write `it." + ident.name + "()`. Give it another name."],
            )
        )


def _migration(
    program: Program, scope: ModuleScope, flow: FlowScope, decl: ast.MigrateDecl
) -> None:
    """Its parameters have the old shape; the flow's own parameters and fields are not seen."""
    seen: set[str] = set()
    for param in decl.params:
        if param.name.name and param.name.name in seen:
            message = f"a second parameter is named `{param.name.name}`"
            program.report(error("E0206", scope.path, param.name.span, message))
        seen.add(param.name.name)
    demands: list[Demand] = []
    reader = TypeReader(program, scope, {}, demands)
    types = [reader.read(param.type) for param in decl.params]
    check_demands(program, demands)
    body = new_body(program, scope, flow=_without_slots(flow), result=UNIT, tools=False)
    for param, type_ in zip(decl.params, types, strict=True):
        body.declare(param, param.name, type_, "param")
    function_body(body, decl.body, UNIT, None)
    body.finish()


def _without_slots(flow: FlowScope) -> FlowScope:
    """The flow as a migration sees it: its constants, and its slots for `become` only.

    Its functions may read fields, which have no values yet.
    """
    names: dict[str, Symbol] = {
        name: symbol for name, symbol in flow.names.items() if isinstance(symbol, ConstSymbol)
    }
    return FlowScope(flow.symbol, names, flow.slots)
