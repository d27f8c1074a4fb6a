"""`if`, `match`, `wait match` and closures.

As a value each arm's last expression is checked against what is wanted of the whole, or against the
first arm that gives something. Thrown away (`DISCARD`) the arms may give anything.
"""

from __future__ import annotations

from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import DISCARD, Body, Frame, Reason
from qoqi.compiler.types.mismatch import report_mismatch
from qoqi.compiler.types.model import (
    BOOL,
    DURATION,
    ERROR,
    NEVER,
    TIME,
    UNIT,
    Con,
    ErrorType,
    Fn,
    NeverType,
    Type,
    Var,
    option_of,
    show,
)
from qoqi.compiler.types.patterns import bind, demand_irrefutable
from qoqi.compiler.types.statements import (
    block_value,
    condition,
    demand_return,
    read_type,
    run_block,
)


class _Arms:
    """The common type of arms: what is wanted, or what the first arm gives."""

    __slots__ = ("body", "common", "discard", "first", "never")

    def __init__(self, body: Body, want: Type | None) -> None:
        self.body = body
        self.discard = want is DISCARD
        self.common: Type | None = None if self.discard else want
        self.first: ast.Node | None = None
        self.never = True

    def add(self, block: ast.Block) -> None:
        body = self.body
        if self.discard:
            self.never = run_block(body, block) and self.never
            return
        reason = body.reason
        found, node = block_value(body, block, self.common)
        body.reason = reason
        found = body.resolve(found)
        if isinstance(found, NeverType):
            return
        self.never = False
        self.settle(found, node)

    def settle(self, found: Type, node: ast.Node) -> None:
        body = self.body
        if self.common is None:
            if not isinstance(found, ErrorType):
                self.common = found
                self.first = node
            return
        if isinstance(found, ErrorType) or body.u.unify(found, self.common):
            return
        before = body.reason
        if self.first is not None and body.reason is None:
            body.reason = body.because(self.first.span, "the first arm gives this")
        report_mismatch(body, node, found, self.common)
        body.reason = before

    def result(self) -> Type:
        if self.never:
            return NEVER
        if self.discard:
            return UNIT
        return ERROR if self.common is None else self.common


def infer_if(body: Body, expr: ast.IfExpr, want: Type | None) -> Type:
    arms = _Arms(body, want)
    at: ast.IfExpr = expr
    while True:
        body.locals.push()
        reason, body.reason = body.reason, None
        condition(body, at.condition)
        body.reason = reason
        arms.add(at.then)
        body.locals.pop()
        otherwise = at.otherwise
        if isinstance(otherwise, ast.IfExpr):
            at = otherwise
            body.types[at] = UNIT
            continue
        break
    if otherwise is not None:
        arms.add(otherwise)
        return arms.result()
    if arms.discard:
        return UNIT
    arms.never = False
    wanted = body.wanted(arms.common)
    if wanted is None or isinstance(wanted, ErrorType) or body.u.unify(UNIT, wanted):
        return UNIT
    body.error(
        "E0301",
        expr.span,
        f"expected `{show(body.u.shown(wanted))}`, and this `if` gives nothing where it is false",
        labels=[body.reason()] if body.reason is not None else [],
        notes=["Say what it gives then: add an `else`."],
    )
    return ERROR


def infer_match(body: Body, expr: ast.MatchExpr, want: Type | None) -> Type:
    reason, body.reason = body.reason, None
    subject = body.infer(expr.subject)
    if not isinstance(body.resolve(subject), Var):
        subject = body.u.settle(subject)
    body.reason = reason
    arms = _Arms(body, want)
    for arm in expr.arms:
        body.locals.push()
        before, body.reason = body.reason, None
        bind(body, arm.pattern, subject)
        if arm.guard is not None:
            body.check(arm.guard, BOOL)
        body.reason = before
        arms.add(arm.body)
        body.locals.pop()
    if not expr.arms:
        arms.never = False
        return UNIT if arms.discard else ERROR
    return arms.result()


# -- waits ----------------------------------------------------------------------------------------


def infer_wait(body: Body, expr: ast.WaitExpr, want: Type | None) -> Type:
    arms = _Arms(body, want)
    for arm in expr.arms:
        body.locals.push()
        before, body.reason = body.reason, None
        _wait_case(body, arm.case, arm.guard)
        body.reason = before
        arms.add(arm.body)
        body.locals.pop()
    if not expr.arms:
        arms.never = False
        return UNIT if arms.discard else ERROR
    return arms.result()


def _wait_case(body: Body, case: ast.WaitCase, guard: ast.Expr | None) -> None:
    """A case's guard does not see the names of its pattern: it is asked before anything happens."""
    if guard is not None:
        body.check(guard, BOOL)
    match case:
        case ast.AfterCase(delay=delay):
            _optional(body, delay, DURATION)
        case ast.AtCase(time=time):
            _optional(body, time, TIME)
        case ast.WhenCase(condition=test):
            body.check(test, BOOL)
        case ast.ReceiveCase(pattern=pattern, value=value):
            type_ = _waited(body, value)
            if pattern is not None:
                bind(body, pattern, type_)
                demand_irrefutable(
                    body,
                    pattern,
                    "what was received would be lost",
                    "Bind a name, and use `match` in the case.",
                )


def _optional(body: Body, expr: ast.Expr, type_: Type) -> None:
    """A length or time of a wait; `None` never happens."""
    found = body.infer(expr, type_)
    resolved = body.resolve(found)
    if isinstance(resolved, Con) and resolved.name == "Option":
        body.fit(expr, found, option_of(type_))
    else:
        body.fit(expr, found, type_)


def _waited(body: Body, value: ast.Expr) -> Type:
    inner = value
    while isinstance(inner, ast.ParenExpr):
        inner = inner.inner
    if isinstance(inner, ast.Call):
        type_, heard = body.infer_waited(value, inner)
        if heard or isinstance(body.resolve(type_), ErrorType):
            return type_
    else:
        type_ = body.infer(value)
        if isinstance(body.resolve(type_), ErrorType):
            return type_
    body.error(
        "E0317",
        value.span,
        "a case waits for something, and this is over at once",
        notes=[
            "A case waits for `receive`, `send`, `wait`, `join`, `task.all`, `task.settle`, "
            "`task.first`, `flow.cancelled()`, `after`, `at` or `when`."
        ],
    )
    return type_


# -- closures -------------------------------------------------------------------------------------


def infer_lambda(body: Body, expr: ast.LambdaExpr, want: Type | None) -> Type:
    wanted = body.wanted(want)
    hints: tuple[Type, ...] = ()
    result: Type | None = None
    if isinstance(wanted, Fn) and len(wanted.params) == len(expr.params):
        hints, result = wanted.params, wanted.result
    params: list[Type] = []
    body.locals.depth += 1
    body.locals.push()
    for index, param in enumerate(expr.params):
        if param.type is not None:
            type_ = read_type(body, param.type)
            if hints:
                body.u.unify(type_, hints[index])
        elif hints:
            type_ = hints[index]
        else:
            type_ = body.u.fresh(param.span, "this parameter")
        params.append(type_)
        _param(body, param, type_)
    reason: Reason | None = None
    if expr.result is not None:
        result = read_type(body, expr.result)
        reason = body.because(expr.result.span, "what the closure gives")
    elif result is None:
        result = body.u.fresh(_head(expr), "what this closure gives")
    frame = Frame(result, reason)
    body.frames.append(frame)
    outer_waiting, body.waiting = body.waiting, None
    outer_statement = body.statement
    _lambda_body(body, expr, result, reason)
    body.statement = outer_statement
    body.waiting = outer_waiting
    body.frames.pop()
    body.locals.pop()
    body.locals.depth -= 1
    body.facts.captures[expr] = tuple(frame.captures)
    return Fn(tuple(params), result)


def _head(expr: ast.LambdaExpr) -> Span:
    return Span(expr.span.start, expr.body.span.start)


def _param(body: Body, param: ast.LambdaParam, type_: Type) -> None:
    bind(body, param.pattern, type_, "param")
    local = body.facts.bindings.get(param.pattern)
    if local is not None:
        body.facts.bindings[param] = local
    demand_irrefutable(
        body,
        param.pattern,
        "a call with another value would be lost",
        "Bind a name, and use `match` in the closure.",
    )


def _lambda_body(body: Body, expr: ast.LambdaExpr, result: Type, reason: Reason | None) -> None:
    if not isinstance(expr.body, ast.Block):
        if reason is not None:
            body.check(expr.body, result, reason)
        else:
            body.check(expr.body, result)
        return
    diverges = run_block(body, expr.body)
    resolved = body.resolve(result)
    if diverges:
        if isinstance(resolved, Var):
            body.u.never(resolved)
    else:
        demand_return(body, expr.body, result, reason)
