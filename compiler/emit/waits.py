"""Waits: `wait match`, and calls that wait for one thing alone.

A case leaves its operands and becomes a case on the stack; the machine gives the value and the
number of what happened first. Guards are looked at in order as the wait begins: the guard, then, if
it holds, the operands; a case that is off still counts, so numbers are those of the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.emit import builtins, calls, functions, matching, patterns, terms
from qoqi.compiler.emit.code import Label
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import BuiltinTarget, CallPlan, Given
from qoqi.compiler.types.model import Con, FlowRef, Type
from qoqi.vm.bytecode.opcodes import WAIT_OPERANDS, Op, WaitKind

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

_KINDS = {
    "channel.receive": WaitKind.RECEIVE,
    "channel.send": WaitKind.SEND,
    "instance.wait": WaitKind.FLOW,
    "instance.ask": WaitKind.ANSWER,
    "task.join": WaitKind.JOIN,
    "task.all": WaitKind.ALL,
    "task.settle": WaitKind.SETTLE,
    "task.first": WaitKind.FIRST,
    "flow.sleep": WaitKind.AFTER,
    "flow.sleepUntil": WaitKind.AT,
    "flow.until": WaitKind.WHEN,
    "flow.cancelled": WaitKind.CANCELLED,
}


_OF_INSTANCES = (WaitKind.FLOW, WaitKind.ALL, WaitKind.SETTLE, WaitKind.FIRST)


def kind_of(fn: FunctionEmitter, target: BuiltinTarget, plan: CallPlan) -> WaitKind | None:
    """The kind of wait a call is; `task.all` of tasks is another than that of instances."""
    kind = _KINDS.get(target.name)
    if kind is WaitKind.ALL and isinstance(plan.args[0], Given):
        match fn.type_of(plan.args[0].value):
            case Con("List", (Con("Task"),)):
                return WaitKind.TASKS
            case _:
                pass
    return kind


def bare(fn: FunctionEmitter, node: ast.Call) -> None:
    """A wait of one case; leaves its value."""
    kind = _call_operands(fn, node)
    single(fn, kind)


def single(fn: FunctionEmitter, kind: WaitKind) -> None:
    """Waits for the one case whose operands are on the stack; leaves its value."""
    code = fn.code
    code.emit(Op.WAIT_CASE, kind, pops=WAIT_OPERANDS[kind])
    code.emit(Op.WAIT, 1, pops=1)
    code.emit(Op.POP)


def wait_match(fn: FunctionEmitter, node: ast.WaitExpr, *, wanted: bool) -> None:
    code = fn.code
    for number, arm in enumerate(node.arms):
        fn.at(arm)
        off, done = Label(), Label()
        if arm.guard is not None:
            fn.branch(arm.guard, off, False)
        kind = _operands(fn, arm.case)
        code.emit(Op.WAIT_CASE, kind + 16 * number, pops=WAIT_OPERANDS[kind])
        if arm.guard is not None:
            code.jump(Op.JUMP, done)
            code.mark(off)
            code.emit(Op.NO_CASE)
            code.mark(done)
    code.line = fn.tables.line(fn.module, node.head.start)
    code.emit(Op.WAIT, len(node.arms), pops=len(node.arms))
    starts = tuple(Label() for _ in node.arms)
    code.switch(starts)
    end = Label()
    for arm, start in zip(node.arms, starts, strict=True):
        code.mark(start)
        fn.at(arm)
        pattern = arm.case.pattern if isinstance(arm.case, ast.ReceiveCase) else None
        if pattern is None:
            code.emit(Op.POP)
        else:
            patterns.bind_top(fn, pattern)
        matching.arm(fn, arm.body, wanted, end)
    code.mark(end)


def _operands(fn: FunctionEmitter, case: ast.WaitCase) -> WaitKind:
    """Leaves the operands of a case; gives its kind."""
    match case:
        case ast.ReceiveCase(value=value):
            while isinstance(value, ast.ParenExpr):
                value = value.inner
            assert isinstance(value, ast.Call)
            terms.reach(fn.tables, fn.type_of(value))
            return _call_operands(fn, value)
        case ast.AfterCase(delay=delay):
            fn.value(delay)
            return WaitKind.AFTER
        case ast.AtCase(time=time):
            fn.value(time)
            return WaitKind.AT
        case ast.WhenCase(condition=condition):
            functions.of_condition(fn, condition)
            return WaitKind.WHEN


def _call_operands(fn: FunctionEmitter, node: ast.Call) -> WaitKind:
    plan = fn.facts.calls[node]
    assert isinstance(plan.target, BuiltinTarget)
    kind = kind_of(fn, plan.target, plan)
    assert kind is not None, f"not something to wait for: {plan.target.name}"
    match kind:
        case WaitKind.RECEIVE | WaitKind.SEND:
            calls.arguments(fn, builtins.channel(fn, plan.target, plan))
        case WaitKind.ANSWER:
            builtins.ask(fn, plan.target, plan)
        case WaitKind.WHEN:
            condition = plan.args[0]
            assert condition is not None
            functions.of_condition(fn, condition.value)
        case _:
            calls.arguments(fn, plan.args)
            for source in plan.args:
                if kind in _OF_INSTANCES and isinstance(source, Given):
                    _know_result(fn, fn.type_of(source.value))
    return kind


def _know_result(fn: FunctionEmitter, waited: Type) -> None:
    """What another flow gives is decoded by this one: its type goes into the chunk."""
    match waited:
        case Con("List", (inner,)):
            _know_result(fn, inner)
        case Con("Instance", (FlowRef(name),)):
            tables = fn.tables
            for flow in tables.checked.flows:
                if flow.qualified == name:
                    result = tables.checked.signatures[flow].result
                    tables.peer(name).result = fn.term(result)
        case _:
            pass
