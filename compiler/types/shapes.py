"""Builtins of fixed types, and what calls of flows have in common in flows and in tests."""

from __future__ import annotations

from typing import TypeAlias

from qoqi.compiler.diagnostics import Label
from qoqi.compiler.names.symbols import FlowSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Body, reason_at
from qoqi.compiler.types.facts import ArgSource, BuiltinTarget, Default, Given
from qoqi.compiler.types.match_args import match_args
from qoqi.compiler.types.model import ERROR, Con, FlowRef, Type
from qoqi.vm.dataclass import dataclass

CANCELLED, FAILURE = Con("Cancelled"), Con("Failure")
SENT, SEND_ERROR, CANCEL_ERROR = Con("Sent"), Con("SendError"), Con("CancelError")

Params: TypeAlias = tuple[tuple[str, Type, bool], ...]
"""Parameters: name, type, whether it may be left out."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A builtin of fixed type: parameters (name, type, may be left out) and result."""

    params: Params
    result: Type


def call_shape(
    body: Body,
    call: ast.Call,
    shape: Shape,
    target: BuiltinTarget,
    shown: str,
    receiver: ast.Expr | None = None,
) -> Type:
    """A builtin whose types are fixed by its shape."""
    sources = match_args(body, call, shape.params, shown, None)
    for source, (_, type_, _) in zip(sources, shape.params, strict=True):
        if isinstance(source, Given):
            body.check(source.value, type_)
    first: tuple[ArgSource | None, ...] = () if receiver is None else (Given(receiver),)
    body.plan(call, target, first + tuple(sources))
    return shape.result


def waits(body: Body, call: ast.Call) -> None:
    """Marks the call as what its case of a `wait match` waits for."""
    if body.waiting is call:
        body.waiting = None


def result_type(body: Body, flow: Type) -> Type:
    """What instances of a flow give."""
    if not isinstance(flow, FlowRef):
        return ERROR
    symbol = body.program.flows[flow.name]
    signature = body.program.signatures.get(symbol)
    return ERROR if signature is None else signature.result


def check_start(
    body: Body,
    call: ast.Call,
    flow: FlowSymbol,
    params: Params,
    name: str,
) -> list[ArgSource | None]:
    """Arguments of a start: the instance's name, then the flow's parameters with their defaults."""
    path = body.program.path_of(flow.module)
    declared = Label(path, flow.decl.name.span, f"`{flow.name}` is declared here")
    sources = match_args(body, call, params, f"`{flow.name}.{name}`", declared)
    for index, (source, (_, type_, _)) in enumerate(zip(sources, params, strict=True)):
        if isinstance(source, Given):
            why = None
            if index and name == "start":
                place = flow.decl.params[index - 1]
                why = reason_at(path, place.span, f"the parameter `{place.name.name}`")
            body.check(source.value, type_, why)
        elif index and name == "start":
            default = flow.decl.params[index - 1].default
            if default is not None:
                sources[index] = Default(default, flow.module)
    return sources
