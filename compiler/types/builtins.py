"""Calls that are part of the language: channels, instances, tasks, `flow.…`, `task.…`, tests.

Their plans have a `BuiltinTarget`; `facts` lists the names used in flows. In tests there are also

    test.start (`flow`; name, then the flow's parameters) -> Handle
    test.find (`flow`; name) -> Handle        test.at (`flow`; name, stage, json) -> Handle
    test.result test.waits test.undos test.steps test.stoppedBy (handle)
    test.status test.stage (handle; `type` is String where text is wanted, else Status, String?)
    test.cancel (handle, why)   test.pause test.resume test.end (handle)
    test.answer (handle, value)
    test.send test.ask (`channel`; handle, value, key or missing)
    test.allSteps test.attempts ()            test.calls test.times (step: a name, see `uses`)
    test.clock.now ()   test.clock.advance (duration)   test.clock.set (time)

A view of a handle (`it.tally`) is no call: its FieldExpr has the ViewSymbol in `uses`, and a base
of type `test.Handle`. A request's `.value` is field 0.

`flow.undo`, `flow.finally` and `flow.detach` have the call itself as their argument, which has a
plan of its own. `flow.until(cond)` asks its argument again whenever a field changed.
"""

from __future__ import annotations

from qoqi.compiler.diagnostics import Edit, Fix
from qoqi.compiler.names.symbols import ChannelSymbol, FlowSymbol
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Body
from qoqi.compiler.types.facts import BuiltinTarget, Given
from qoqi.compiler.types.match_args import infer_args, match_args
from qoqi.compiler.types.members import replacements
from qoqi.compiler.types.model import (
    BOOL,
    DURATION,
    ERROR,
    INT,
    NEVER,
    STRING,
    TIME,
    UNIT,
    Con,
    ErrorType,
    Fn,
    NeverType,
    Tup,
    Type,
    instance_of,
    list_of,
    option_of,
    result_of,
    show,
)
from qoqi.compiler.types.shapes import (
    CANCEL_ERROR,
    CANCELLED,
    FAILURE,
    SEND_ERROR,
    SENT,
    Shape,
    call_shape,
    check_start,
    result_type,
    waits,
)
from qoqi.compiler.types.testing import (
    call_handle,
    call_test_tool,
    is_testing,
    refuse_tools,
    start_handle,
)

_WHY = (("why", STRING, False),)

FLOW: dict[str, Shape] = {
    "now": Shape((), TIME),
    "id": Shape((), STRING),
    "birth": Shape((), STRING),
    "version": Shape((), STRING),
    "uuid": Shape((), STRING),
    "random": Shape((("range", Con("Range", (INT,)), False),), INT),
    "sleep": Shape((("duration", DURATION, False),), UNIT),
    "sleepUntil": Shape((("time", TIME, False),), UNIT),
    "until": Shape((("condition", BOOL, False),), UNIT),
    "cancelled": Shape((), STRING),
    "giveUp": Shape(_WHY, NEVER),
    "refuse": Shape(_WHY, UNIT),
    "accept": Shape((), UNIT),
    "commit": Shape((), UNIT),
    "unwind": Shape((), UNIT),
    "key": Shape((), STRING),
    "attempt": Shape((), INT),
    "working": Shape((), BOOL),
    "retry": Shape((("after", DURATION, True),), NEVER),
}
FLOW_NAMES = (*FLOW, "self", "stop", "undo", "finally", "detach")
TASK_NAMES = ("start", "map", "all", "settle", "first")
CLOCK_NAMES = ("now", "advance", "set")

FREE: dict[str, Shape] = {
    "fail": Shape((("message", STRING, False),), NEVER),
    "assert": Shape((("condition", BOOL, False), ("message", STRING, True)), UNIT),
}


# -- print, assert, fail; flow.…, task.…, clock.… -------------------------------------------------


def call_free_builtin(body: Body, call: ast.Call, name: str, want: Type | None) -> Type:
    if name == "print":
        return _print(body, call)
    shape = FREE.get(name)
    if shape is not None:
        return call_shape(body, call, shape, BuiltinTarget(name), f"`{name}`")
    return call_test_tool(body, call, name)


def _print(body: Body, call: ast.Call) -> Type:
    """`print(x)` takes what a text can: any data."""
    sources = match_args(body, call, (("value", ERROR, False),), "`print`", None)
    for source in sources:
        if isinstance(source, Given):
            type_ = body.infer(source.value)
            body.demand(type_, "Data", source.value.span, "what is printed")
    body.plan(call, BuiltinTarget("print"), tuple(sources))
    return UNIT


def call_namespace(
    body: Body, call: ast.Call, fn: ast.FieldExpr, namespace: str, want: Type | None
) -> Type:
    name = fn.name.name
    if namespace == "clock":
        return _call_clock(body, call, fn)
    if namespace == "task":
        return _call_task(body, call, fn)
    shape = FLOW.get(name)
    if shape is not None:
        if name in ("sleep", "sleepUntil", "until", "cancelled"):
            if name == "cancelled" and body.waiting is call and body.owner is not None:
                body.program.hearing.add(body.owner)
            waits(body, call)
        return call_shape(body, call, shape, BuiltinTarget(f"flow.{name}"), f"`flow.{name}`")
    match name:
        case "self":
            match_args(body, call, (), "`flow.self`", None)
            infer_args(body, call)
            body.plan(call, BuiltinTarget("flow.self"), ())
            if body.flow is not None:
                return instance_of(body.flow.symbol.qualified)
            body.error(
                "E0220",
                call.span,
                "`flow.self()` is the instance of a flow, and this stands in none",
                notes=["Call it in the flow and pass the instance on."],
            )
            return ERROR
        case "stop":
            return _stop(body, call, want)
        case "undo" | "finally" | "detach":
            return _quoted(body, call, name)
        case _:
            pass
    _unknown(body, call, fn, "flow", FLOW_NAMES)
    return ERROR


def _unknown(
    body: Body, call: ast.Call, fn: ast.FieldExpr, namespace: str, names: tuple[str, ...]
) -> None:
    infer_args(body, call)
    ident = fn.name
    if ident.name:
        body.error(
            "E0302",
            ident.span,
            f"there is no `{namespace}.{ident.name}`",
            fixes=replacements(body, ident, nearest(ident.name, names)),
        )


def _stop(body: Body, call: ast.Call, want: Type | None) -> Type:
    """`flow.stop(question)` gives what is wanted of it, `()` if nothing is."""
    sources = match_args(body, call, (("question", STRING, False),), "`flow.stop`", None)
    for source in sources:
        if isinstance(source, Given):
            body.check(source.value, STRING)
    wanted = body.wanted(want)
    type_: Type = UNIT
    if wanted is not None and not isinstance(wanted, ErrorType | NeverType):
        type_ = wanted
        body.demand(type_, "Data", call.span, "what a person answers")
    body.plan(call, BuiltinTarget("flow.stop", type=type_), tuple(sources))
    return type_


def _quoted(body: Body, call: ast.Call, name: str) -> Type:
    """`flow.undo(s(x))`: the argument is a call to be made later, or a start without parent."""
    sources = match_args(body, call, (("call", ERROR, False),), f"`flow.{name}`", None)
    type_: Type = ERROR
    for source in sources:
        if isinstance(source, Given):
            type_ = body.infer(source.value)
    body.plan(call, BuiltinTarget(f"flow.{name}"), tuple(sources))
    return type_ if name == "detach" else UNIT


def _call_clock(body: Body, call: ast.Call, fn: ast.FieldExpr) -> Type:
    refuse_tools(body, fn)
    name = fn.name.name
    shapes = {
        "now": Shape((), TIME),
        "advance": Shape((("duration", DURATION, False),), UNIT),
        "set": Shape((("time", TIME, False),), UNIT),
    }
    if name not in shapes:
        _unknown(body, call, fn, "clock", CLOCK_NAMES)
        return ERROR
    return call_shape(
        body, call, shapes[name], BuiltinTarget(f"test.clock.{name}"), f"`clock.{name}`"
    )


# -- tasks ----------------------------------------------------------------------------------------


def _call_task(body: Body, call: ast.Call, fn: ast.FieldExpr) -> Type:
    match fn.name.name:
        case "start":
            return _task_start(body, call)
        case "map":
            return _task_map(body, call)
        case "all" | "settle" | "first" as name:
            return _task_instances(body, call, name)
        case _:
            pass
    _unknown(body, call, fn, "task", TASK_NAMES)
    return ERROR


def _task_start(body: Body, call: ast.Call) -> Type:
    """`task.start(f, args…)`: the arguments are those of `f`."""
    if not call.args:
        body.error("E0307", call.span, "`task.start` takes a function and its arguments")
        return ERROR
    function = call.args[0].value
    found = body.resolve(body.infer(function, None))
    sources = tuple(Given(arg.value) for arg in call.args)
    for arg in call.args:
        if arg.name is not None:
            body.error("E0307", arg.name.span, "the arguments of `task.start` are positional")
    if not isinstance(found, Fn):
        infer_args(body, call)
        if not isinstance(found, ErrorType):
            body.error(
                "E0301",
                function.span,
                f"expected a function, found `{show(body.u.shown(found))}`",
                notes=_call_made(function),
            )
        return ERROR
    given = call.args[1:]
    if len(given) != len(found.params):
        infer_args(body, call)
        types = ", ".join(show(body.u.shown(t)) for t in found.params)
        body.error(
            "E0307",
            call.span,
            f"{body.quoted(function.span)} takes {len(found.params)} "
            f"argument{'s' * (len(found.params) != 1)} ({types}), found {len(given)}",
        )
        return Con("Task", (found.result,))
    for arg, type_ in zip(given, found.params, strict=True):
        body.check(arg.value, type_)
    body.plan(call, BuiltinTarget("task.start"), sources)
    return Con("Task", (found.result,))


def _call_made(function: ast.Expr) -> list[str]:
    if isinstance(function, ast.Call):
        return ["This calls the function already. Name it, and give its arguments after it."]
    return []


def _task_map(body: Body, call: ast.Call) -> Type:
    item: Type = body.u.fresh(call.span, "the items of this list")
    result: Type = body.u.fresh(call.span, "what the tasks give")
    params = (
        ("list", list_of(item), False),
        ("function", Fn((item,), result), False),
        ("limit", INT, True),
    )
    return call_shape(
        body, call, Shape(params, list_of(result)), BuiltinTarget("task.map"), "`task.map`"
    )


def _task_instances(body: Body, call: ast.Call, name: str) -> Type:
    """`task.all`, `task.settle`, `task.first`: of instances of one flow."""
    waits(body, call)
    flow: Type = body.u.fresh(call.span, "the flow of these instances")
    params = (("instances", list_of(Con("Instance", (flow,))), False),)
    call_shape(body, call, Shape(params, UNIT), BuiltinTarget(f"task.{name}"), f"`task.{name}`")
    answer = result_type(body, body.resolve(flow))
    if name == "all":
        return result_of(list_of(answer), CANCELLED)
    one = result_of(answer, CANCELLED)
    return list_of(one) if name == "settle" else Tup((INT, one))


# -- flows ----------------------------------------------------------------------------------------


def call_flow_start(body: Body, call: ast.Call, fn: ast.FieldExpr, flow: FlowSymbol) -> Type:
    """`Shipment.start(name, …)`, `.find(name)`, and in tests `.at(name, stage: …, json)`."""
    name = fn.name.name
    testing = is_testing(body)
    if name not in ("start", "find", "at"):
        _unknown_of_flow(body, call, fn, flow)
        return ERROR
    if testing or name == "at":
        if not testing:
            refuse_tools(body, fn)
        return start_handle(body, call, fn, flow)
    signature = body.program.signatures[flow]
    params = (
        (("name", STRING, False), *signature.params)
        if name == "start"
        else (("name", STRING, False),)
    )
    instance = instance_of(flow.qualified)
    result = instance if name == "start" else option_of(instance)
    sources = check_start(body, call, flow, params, name)
    body.plan(call, BuiltinTarget(f"instance.{name}", flow=flow), tuple(sources))
    return result


def _unknown_of_flow(body: Body, call: ast.Call, fn: ast.FieldExpr, flow: FlowSymbol) -> None:
    infer_args(body, call)
    ident = fn.name
    if not ident.name:
        return
    inner = body.program.flow_scope(flow)
    notes = []
    if isinstance(inner.member(ident.name), ChannelSymbol):
        notes.append(f"A channel belongs to an instance: `{flow.name}.find(name)` gives it.")
    body.error(
        "E0302",
        ident.span,
        f"the flow `{flow.name}` has no function `{ident.name}`",
        notes=[*notes, "A flow has `start` and `find`."],
        fixes=replacements(body, ident, nearest(ident.name, ("start", "find", "at"))),
    )


# -- methods --------------------------------------------------------------------------------------


def call_builtin_method(
    body: Body, call: ast.Call, fn: ast.FieldExpr, type_: Type, want: Type | None
) -> Type:
    assert isinstance(type_, Con)
    name = fn.name.name
    match type_.name:
        case "Channel":
            return _channel(body, call, fn, type_)
        case "Outbox":
            return _outbox(body, call, fn, type_)
        case "Instance":
            if name == "wait":
                waits(body, call)
                shape = Shape((), result_of(result_type(body, type_.args[0]), CANCELLED))
            else:
                shape = Shape(_WHY, result_of(UNIT, CANCEL_ERROR))
            target = BuiltinTarget(f"instance.{name}")
            return call_shape(body, call, shape, target, f"`{name}`", fn.base)
        case "Task":
            if name == "join":
                waits(body, call)
            result = result_of(type_.args[0], FAILURE) if name == "join" else UNIT
            target = BuiltinTarget(f"task.{name}")
            return call_shape(body, call, Shape((), result), target, f"`{name}`", fn.base)
        case "Request":
            shape = Shape((("value", type_.args[1], False),), UNIT)
            return call_shape(
                body, call, shape, BuiltinTarget("request.answer"), "`answer`", fn.base
            )
        case _:
            pass
    return call_handle(body, call, fn, type_, want)


def _channel(body: Body, call: ast.Call, fn: ast.FieldExpr, type_: Con) -> Type:
    """A channel of this flow. Where it is no channel's name, the channel is the first argument."""
    name, item = fn.name.name, body.resolve(type_.args[0])
    symbol = body.facts.uses.get(fn.base)
    channel = symbol if isinstance(symbol, ChannelSymbol) else None
    target = BuiltinTarget(f"channel.{name}", channel=channel)
    receiver = fn.base if channel is None else None
    match name:
        case "receive":
            waits(body, call)
            shape = Shape((), item)
        case "poll":
            shape = Shape((), option_of(item))
        case "close":
            shape = Shape((), UNIT)
        case _:
            waits(body, call)
            if isinstance(item, Con) and item.name == "Request":
                body.error(
                    "E0302",
                    fn.name.span,
                    "a channel that is answered cannot be sent to from its own flow",
                    notes=["Another flow asks: `instance.channel.ask(x)`."],
                )
                infer_args(body, call)
                return ERROR
            shape = Shape((("value", item, False),), UNIT)
    return call_shape(body, call, shape, target, f"`{name}`", receiver)


def _outbox(body: Body, call: ast.Call, fn: ast.FieldExpr, type_: Con) -> Type:
    """A channel of an instance: `inst.updates.send(x, key: k)`."""
    name = fn.name.name
    outlet = fn.base
    symbol = body.facts.uses.get(outlet)
    item: Type = ERROR
    answer: Type | None = None
    match body.resolve(type_.args[1]):
        case Con("Channel", (Con("Request", (value, reply)),)):
            item, answer = value, reply
        case Con("Channel", (value,)):
            item = value
        case _:
            pass
    if not isinstance(outlet, ast.FieldExpr) or not isinstance(symbol, ChannelSymbol):
        infer_args(body, call)
        body.error("E0302", fn.name.span, "a channel of an instance is written `instance.channel`")
        return ERROR
    if name == "ask" and answer is None:
        infer_args(body, call)
        body.error(
            "E0302",
            fn.name.span,
            f"the channel `{symbol.name}` gives no answers",
            fixes=[Fix("Send to it", (Edit(body.path, fn.name.span, "send"),))],
        )
        return ERROR
    on_handle = False
    match body.resolve(body.types.get(outlet.base, ERROR)):
        case Con("test.Handle"):
            on_handle = True
        case _:
            pass
    if name == "ask":
        waits(body, call)
        result = result_of(answer or ERROR, SEND_ERROR)
    else:
        result = result_of(SENT, SEND_ERROR)
    shape = Shape((("value", item, False), ("key", STRING, True)), result)
    prefix = "test" if on_handle else "instance"
    target = BuiltinTarget(f"{prefix}.{name}", channel=symbol)
    return call_shape(body, call, shape, target, f"`{name}`", outlet.base)
