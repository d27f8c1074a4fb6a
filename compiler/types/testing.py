"""Tests: handles, the clock, lists of attempts, `given`.

The tools of tests may be used in tests and in functions called from them; in flows and steps they
are an error (E0321). A flow's `start` gives a handle in a test, and in a function that plainly
belongs to tests: one that uses the tools itself.
"""

from __future__ import annotations

from qoqi.compiler.names.symbols import FlowSymbol, FnSymbol, ModuleSymbol, StepSymbol, Symbol
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Body, Reason, reason_at
from qoqi.compiler.types.facts import ArgSource, BuiltinTarget, Given
from qoqi.compiler.types.match_args import infer_args, match_args
from qoqi.compiler.types.members import replacements
from qoqi.compiler.types.model import (
    DURATION,
    ERROR,
    JSON,
    STRING,
    TIME,
    UNIT,
    Con,
    ErrorType,
    FlowRef,
    Tup,
    Type,
    list_of,
    option_of,
    result_of,
)
from qoqi.compiler.types.patterns import bind
from qoqi.compiler.types.shapes import (
    CANCEL_ERROR,
    CANCELLED,
    Params,
    check_start,
    result_type,
)
from qoqi.compiler.types.unify import substitute

STATUS, ATTEMPT = Con("std.test.Status"), Con("std.test.Attempt")

TOOLS = ("clock", "steps", "calls", "attempts", "times")
_TEXTS = {"waits": list_of(STRING), "undos": list_of(STRING), "steps": list_of(STRING)}


def is_testing(body: Body) -> bool:
    """Whether a flow's `start` gives a handle here."""
    owner = body.owner
    return body.testing or (
        body.flow is None and isinstance(owner, FnSymbol) and uses_tools(owner.decl)
    )


def uses_tools(decl: ast.FnDecl) -> bool:
    """Whether a function uses the tools of tests itself, or a handle in its types."""
    stack: list[ast.Node] = [decl]
    while stack:
        node = stack.pop()
        match node:
            case ast.GivenStmt():
                return True
            case ast.FieldExpr(base=ast.Name(name="clock")):
                return True
            case ast.Call(fn=ast.Name(name=name)) if name in TOOLS:
                return True
            case ast.NamedType(name=ast.Ident(name="Handle")):
                return True
            case _:
                pass
        stack.extend(ast.children(node))
    return False


def refuse_tools(body: Body, node: ast.Expr) -> None:
    """Reports a tool of tests in a flow or step."""
    if not body.tools:
        notes = []
        if body.text(node.span) == "clock.now":
            notes.append("In a flow, `flow.now()` gives the time.")
        body.error(
            "E0321",
            node.span,
            f"{body.quoted(node.span)} is a tool of tests, and this is no test",
            notes=notes,
        )


# -- free tools -----------------------------------------------------------------------------------


def call_test_tool(body: Body, call: ast.Call, name: str) -> Type:
    refuse_tools(body, call.fn)
    if name in ("steps", "attempts"):
        match_args(body, call, (), f"`{name}`", None)
        infer_args(body, call)
        target = "test.allSteps" if name == "steps" else "test.attempts"
        body.plan(call, BuiltinTarget(target), ())
        return list_of(STRING if name == "steps" else ATTEMPT)
    sources = match_args(body, call, (("step", ERROR, False),), f"`{name}`", None)
    symbol = None
    for source in sources:
        if isinstance(source, Given):
            symbol = _step_of(body, source.value)
    body.plan(call, BuiltinTarget(f"test.{name}"), tuple(sources))
    if symbol is None:
        return ERROR
    if name == "times":
        return list_of(TIME)
    params = tuple(type_ for _, type_, _ in body.program.signatures[symbol].params)
    return list_of(params[0] if len(params) == 1 else Tup(params))


def _step_of(body: Body, expr: ast.Expr) -> StepSymbol | None:
    """The step an argument names; one of a flow may be named alone."""
    path = _path(expr)
    if path is not None:
        symbol = find_target(body, path)
        if isinstance(symbol, StepSymbol):
            body.use(expr, symbol)
            body.types[expr] = UNIT
            return symbol
    body.infer(expr)
    if path is None or body.facts.uses.get(expr) is not None:
        body.error("E0301", expr.span, f"{body.quoted(expr.span)} is no step")
    return None


def _path(expr: ast.Expr) -> tuple[ast.Ident, ...] | None:
    match expr:
        case ast.Name(name=name):
            return (ast.Ident(expr.span, name),)
        case ast.FieldExpr(base=base, name=ident):
            outer = _path(base)
            return None if outer is None else (*outer, ident)
        case _:
            pass
    return None


def find_target(body: Body, path: tuple[ast.Ident, ...]) -> Symbol | None:
    """What a `given` or a tool names: `ask`, `http.post`, `Order.ask`, or a flow's only `ask`."""
    name = path[-1].name
    if len(path) == 1:
        found = body.scope.own(name)
        if found is not None:
            return found
        steps = [s for flow in body.scope.flows.values() for s in flow.steps if s.name == name]
        return steps[0] if len(steps) == 1 else None
    outer: Symbol | None = body.scope.own(path[0].name)
    for ident in path[1:]:
        if isinstance(outer, ModuleSymbol):
            outer = body.program.scopes[outer.name].public(ident.name)
        elif isinstance(outer, FlowSymbol):
            outer = body.program.flow_scope(outer).member(ident.name)
        else:
            return None
    return outer


# -- handles --------------------------------------------------------------------------------------


def start_handle(body: Body, call: ast.Call, fn: ast.FieldExpr, flow: FlowSymbol) -> Type:
    name = fn.name.name
    handle = Con("test.Handle", (FlowRef(flow.qualified),))
    sources: list[ArgSource | None]
    if name == "at":
        sources = _at_args(body, call, flow)
    else:
        params: Params = (("name", STRING, False),)
        if name == "start":
            params += body.program.signatures[flow].params
        sources = check_start(body, call, flow, params, name)
    body.plan(call, BuiltinTarget(f"test.{name}", flow=flow), tuple(sources))
    return handle


def _at_args(body: Body, call: ast.Call, flow: FlowSymbol) -> list[ArgSource | None]:
    """`F.at(name, stage: s, json)`: the json may follow the named stage."""
    params = (("name", STRING, False), ("stage", STRING, False), ("json", JSON, False))
    named = [arg for arg in call.args if arg.name is not None]
    positional = [arg for arg in call.args if arg.name is None]
    if len(positional) == 2 and [arg.name.name for arg in named if arg.name] == ["stage"]:
        order = (positional[0], named[0], positional[1])
        sources: list[ArgSource | None] = [Given(arg.value) for arg in order]
    else:
        sources = match_args(body, call, params, f"`{flow.name}.at`", None)
    for source, (_, type_, _) in zip(sources, params, strict=True):
        if isinstance(source, Given):
            body.check(source.value, type_)
    return sources


def call_handle(
    body: Body, call: ast.Call, fn: ast.FieldExpr, type_: Con, want: Type | None
) -> Type:
    name = fn.name.name
    params: Params = ()
    chosen: Type | None = None
    result: Type
    match name:
        case "result":
            result = result_of(result_type(body, type_.args[0]), CANCELLED)
        case "status" | "stage":
            text = body.wanted(want) == STRING
            result = STRING if text else STATUS if name == "status" else option_of(STRING)
            chosen = result
        case "stoppedBy":
            result = option_of(STRING)
        case "waits" | "undos" | "steps":
            result = _TEXTS[name]
        case "cancel":
            params = (("why", STRING, False),)
            result = result_of(UNIT, CANCEL_ERROR)
        case "answer":
            return _answer(body, call, fn)
        case _:
            result = UNIT
    sources = match_args(body, call, params, f"`{name}`", None)
    for source, (_, param, _) in zip(sources, params, strict=True):
        if isinstance(source, Given):
            body.check(source.value, param)
    target = BuiltinTarget(f"test.{name}", type=chosen)
    body.plan(call, target, (Given(fn.base), *sources))
    return result


def _answer(body: Body, call: ast.Call, fn: ast.FieldExpr) -> Type:
    """`it.answer(v)` takes any data: it is decoded against what `flow.stop` wants."""
    sources = match_args(body, call, (("value", ERROR, False),), "`answer`", None)
    for source in sources:
        if isinstance(source, Given):
            type_ = body.infer(source.value)
            body.demand(type_, "Data", source.value.span, "an answer")
    body.plan(call, BuiltinTarget("test.answer"), (Given(fn.base), *sources))
    return UNIT


# -- given ----------------------------------------------------------------------------------------


def check_given(body: Body, statement: ast.GivenStmt) -> None:
    """Patterns are matched with the target's parameters, answers have the type of its result."""
    if not statement.target or not all(part.name for part in statement.target):
        return
    if not body.tools:
        body.error("E0321", statement.span, "`given` belongs to tests, and this is no test")
    symbol = find_target(body, statement.target)
    if not isinstance(symbol, StepSymbol | FnSymbol):
        _unknown_target(body, statement, symbol)
        symbol = None
    params: list[tuple[str, Type]] = []
    result: Type = ERROR
    if symbol is not None:
        body.use(statement.target[-1], symbol)
        if isinstance(symbol, FnSymbol):
            body.reach(symbol)
        signature = body.program.signatures[symbol]
        mapping: dict[Type, Type] = {param: JSON for param in signature.type_params}
        params = [(name, substitute(t, mapping)) for name, t, _ in signature.params]
        result = substitute(signature.result, mapping)
    body.locals.push()
    _given_patterns(body, statement, symbol, params)
    for answer in statement.answers:
        if answer.after is not None:
            body.check(answer.after, DURATION)
        if answer.value is not None:
            want = STRING if answer.kind == "fails" else result
            if isinstance(want, ErrorType):
                body.infer(answer.value)
            else:
                body.check(answer.value, want, _result_reason(body, symbol, answer.kind))
    body.locals.pop()


def _result_reason(body: Body, symbol: StepSymbol | FnSymbol | None, kind: str) -> Reason | None:
    if symbol is None or kind == "fails":
        return None
    place = symbol.decl.result or symbol.decl.name
    path = body.program.path_of(symbol.module)
    return reason_at(path, place.span, f"what `{symbol.name}` gives")


def _given_patterns(
    body: Body,
    statement: ast.GivenStmt,
    symbol: StepSymbol | FnSymbol | None,
    params: list[tuple[str, Type]],
) -> None:
    position = 0
    seen: set[int] = set()
    for arg in statement.args or ():
        index: int | None
        if arg.name is not None and arg.name.name:
            names = [name for name, _ in params]
            index = names.index(arg.name.name) if arg.name.name in names else None
            if index is None and symbol is not None:
                body.error(
                    "E0307",
                    arg.name.span,
                    f"`{symbol.name}` has no parameter `{arg.name.name}`",
                    fixes=replacements(body, arg.name, nearest(arg.name.name, names)),
                )
        else:
            index = position
            position += 1
            if symbol is not None and index >= len(params):
                if index > len(params) or not isinstance(arg.pattern, ast.WildPattern):
                    count = len(params)
                    body.error(
                        "E0307",
                        arg.span,
                        f"`{symbol.name}` has {count} parameter{'s' * (count != 1)}",
                    )
                index = None
        if index is not None and index in seen:
            body.error("E0307", arg.span, f"the parameter `{params[index][0]}` is matched twice")
        if index is not None:
            seen.add(index)
        bind(body, arg.pattern, ERROR if index is None or symbol is None else params[index][1])


def _unknown_target(body: Body, statement: ast.GivenStmt, symbol: Symbol | None) -> None:
    if statement.target[0].name in body.scope.broken:
        return
    ident = statement.target[-1]
    shown = ".".join(part.name for part in statement.target)
    if symbol is not None:
        body.error(
            "E0201", ident.span, f"`{shown}` is no step and no function, and gives no answers"
        )
        return
    names = {step.name for step in body.scope.steps}
    names |= {s.name for flow in body.scope.flows.values() for s in flow.steps}
    outer = body.scope.own(statement.target[0].name)
    if isinstance(outer, ModuleSymbol):
        names = set(body.program.scopes[outer.name].public_names())
    body.error(
        "E0201",
        ident.span,
        f"there is no step `{shown}` here",
        fixes=replacements(body, ident, nearest(ident.name, names)),
    )
