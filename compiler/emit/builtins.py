"""Calls of what no declaration says: channels, instances, tasks, `flow.…`, JSON.

Each row says how the arguments reach the machine; names of operations and what they take are those
of `vm.effects`. What waits is in `waits`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.emit import calls, natives, terms, tests, waits
from qoqi.compiler.emit.code import Label
from qoqi.compiler.names.symbols import ChannelSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import ArgSource, BuiltinTarget, CallPlan, Given, StepTarget
from qoqi.compiler.types.model import STRING, Con, Type
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

_PLAIN = {
    "instance.cancel": "instance.cancel",
    "task.cancel": "task.cancel",
    "flow.now": "flow.now",
    "flow.id": "flow.id",
    "flow.birth": "flow.birth",
    "flow.version": "flow.version",
    "flow.self": "flow.self",
    "flow.uuid": "flow.uuid",
    "flow.random": "flow.random",
    "flow.giveUp": "flow.giveUp",
    "flow.refuse": "flow.refuse",
    "flow.accept": "flow.accept",
    "flow.commit": "flow.commit",
    "flow.unwind": "flow.unwind",
    "flow.key": "step.key",
    "flow.attempt": "step.attempt",
    "flow.working": "step.working",
    "request.answer": "request.answer",
}
"""Builtins whose arguments are those of their operation."""


def call(fn: FunctionEmitter, node: ast.Call, target: BuiltinTarget, plan: CallPlan) -> None:
    """Leaves the builtin's result on the stack."""
    code, tables = fn.code, fn.tables
    name = target.name
    fn.at(node)
    terms.reach(tables, fn.type_of(node))
    if waits.kind_of(fn, target, plan) is not None:
        waits.bare(fn, node)
        return
    match name:
        case _ if name in _PLAIN:
            operation(fn, _PLAIN[name], calls.arguments(fn, plan.args))
        case "channel.poll" | "channel.close":
            channel(fn, target, plan)
            operation(fn, name, 1)
        case "instance.start":
            _start(fn, target, plan)
            operation(fn, name, 3)
        case "instance.find":
            _flow_name(fn, target)
            calls.arguments(fn, plan.args)
            operation(fn, name, 2)
        case "instance.send":
            operation(fn, name, _message(fn, target, plan))
        case "task.start":
            closure, *rest = plan.args
            argument(fn, closure)
            count = calls.arguments(fn, rest)
            code.emit(Op.TUPLE, count, pops=count)
            operation(fn, name, 2)
        case "task.map":
            items, closure, limit = plan.args
            argument(fn, items)
            argument(fn, closure)
            if limit is None:
                code.emit(Op.INT, -1)
            else:
                argument(fn, limit)
            operation(fn, name, 3)
        case "flow.stop":
            calls.arguments(fn, plan.args)
            assert target.type is not None
            code.emit(Op.TERM, tables.term(fn.term(target.type)))
            operation(fn, name, 2)
        case "flow.undo" | "flow.finally":
            _put_off(fn, plan)
            operation(fn, name, 1)
        case "flow.detach":
            start = _inner_call(plan)
            inner = fn.facts.calls[start]
            assert isinstance(inner.target, BuiltinTarget)
            _start(fn, inner.target, inner)
            operation(fn, "instance.detach", 3)
        case "flow.retry":
            _optional(fn, plan.args[0] if plan.args else None)
            operation(fn, "step.retry", 1)
        case "data.toJson":
            calls.arguments(fn, plan.args)
            natives.to_json(fn)
        case "data.decode" | "data.tryDecode":
            calls.arguments(fn, plan.args)
            assert target.type is not None
            code.emit(Op.TERM, tables.term(fn.term(target.type)))
            code.emit(Op.NATIVE, tables.native(name, 2), pops=2)
        case "print":
            _shown(fn, plan)
            operation(fn, "flow.print", 1)
        case "fail":
            _fail(fn, plan.args[0])
        case "assert":
            _assert(fn, plan)
        case _:
            tests.call(fn, node, target, plan)


def operation(fn: FunctionEmitter, name: str, count: int) -> None:
    fn.code.emit(Op.OPERATION, fn.tables.operation(name, count), pops=count)


def argument(fn: FunctionEmitter, source: ArgSource | None) -> None:
    assert source is not None
    calls.argument(fn, source)


def channel(fn: FunctionEmitter, target: BuiltinTarget, plan: CallPlan) -> list[ArgSource | None]:
    """Leaves the number of the channel; gives the arguments that are left."""
    if target.channel is None:
        receiver, *rest = plan.args
        argument(fn, receiver)
        return rest
    fn.code.emit(Op.INT, fn.tables.channels[target.channel.name])
    return [source for source in plan.args if not _is_channel(fn, source)]


def _is_channel(fn: FunctionEmitter, source: ArgSource | None) -> bool:
    """Whether an argument is the channel itself, written as the receiver."""
    if not isinstance(source, Given):
        return False
    return isinstance(fn.facts.uses.get(source.value), ChannelSymbol)


def _flow_name(fn: FunctionEmitter, target: BuiltinTarget) -> None:
    assert target.flow is not None
    fn.code.emit(Op.CONST, fn.tables.constant(target.flow.qualified))


def _start(fn: FunctionEmitter, target: BuiltinTarget, plan: CallPlan) -> None:
    """The flow, the name, and the arguments as a tuple."""
    name, *rest = plan.args
    _flow_name(fn, target)
    argument(fn, name)
    count = calls.arguments(fn, rest)
    fn.code.emit(Op.TUPLE, count, pops=count)


def _message(fn: FunctionEmitter, target: BuiltinTarget, plan: CallPlan) -> int:
    """The instance, the channel's name, the value, and the key if one is given."""
    receiver, value, *key = plan.args
    assert target.channel is not None
    argument(fn, receiver)
    fn.code.emit(Op.CONST, fn.tables.constant(target.channel.name))
    argument(fn, value)
    return 3 + calls.arguments(fn, key)


def ask(fn: FunctionEmitter, target: BuiltinTarget, plan: CallPlan) -> None:
    """Sends a question and leaves the asking, which a wait takes."""
    channel, tables = target.channel, fn.tables
    assert channel is not None
    answers = tables.checked.answers.get(channel)
    tables.peer(channel.flow.qualified).channels[channel.name] = (
        fn.term(tables.checked.declared[channel]),
        None if answers is None else fn.term(answers),
    )
    operation(fn, "instance.ask", _message(fn, target, plan))


def _inner_call(plan: CallPlan) -> ast.Call:
    """The call that `flow.undo`, `flow.finally` and `flow.detach` are given, not evaluated."""
    source = plan.args[0]
    assert source is not None
    node = source.value
    while isinstance(node, ast.ParenExpr):
        node = node.inner
    assert isinstance(node, ast.Call)
    return node


def _put_off(fn: FunctionEmitter, plan: CallPlan) -> None:
    """An Undo: the step with its arguments, or the message to be sent."""
    inner = fn.facts.calls[_inner_call(plan)]
    code = fn.code
    match inner.target:
        case StepTarget(symbol=symbol):
            code.emit(Op.INT, fn.tables.undo_step(symbol))
            count = calls.arguments(fn, inner.args)
            code.emit(Op.TUPLE, count, pops=count)
            operation(fn, "undo.step", 2)
        case BuiltinTarget(name="instance.send") as target:
            operation(fn, "undo.send", _message(fn, target, inner))
        case target:
            raise AssertionError(f"F0011 was not reported: {target}")


def _optional(fn: FunctionEmitter, source: ArgSource | None) -> None:
    """An argument as an `Option`, `None` where it is left out."""
    code, tables = fn.code, fn.tables
    if source is None:
        code.emit(Op.VARIANT, terms.prelude_variant(tables, "Option", "None"), pops=0)
        return
    calls.argument(fn, source)
    if not (isinstance(source, Given) and _is_option(fn.type_of(source.value))):
        code.emit(Op.VARIANT, terms.prelude_variant(tables, "Option", "Some"), pops=1)


def _is_option(type_: Type) -> bool:
    return isinstance(type_, Con) and type_.name == "Option"


def _shown(fn: FunctionEmitter, plan: CallPlan) -> None:
    """The argument's text."""
    source = plan.args[0]
    argument(fn, source)
    if not (isinstance(source, Given) and fn.type_of(source.value) == STRING):
        fn.code.emit(Op.CONCAT, 1, pops=1)


def _fail(fn: FunctionEmitter, message: ArgSource | None) -> None:
    text = _plain_text(message)
    if text is not None:
        fn.code.emit(Op.FAIL, fn.tables.constant(text))
        return
    argument(fn, message)
    fn.code.emit(Op.NATIVE, fn.tables.native(natives.FAIL, 1), pops=1)


def _assert(fn: FunctionEmitter, plan: CallPlan) -> None:
    condition, *message = plan.args
    assert condition is not None
    if fn.tables.testing:
        said = message[0] if message else None
        tests.check(fn, condition.value, None if said is None else said.value)
        return
    holds = Label()
    fn.branch(condition.value, holds, True)
    if message and message[0] is not None:
        _fail(fn, message[0])
        fn.code.drop_to(holds.depth)
    else:
        fn.code.emit(Op.FAIL, fn.tables.constant("an assertion is false"))
    fn.code.mark(holds)
    fn.code.emit(Op.UNIT)


def _plain_text(source: ArgSource | None) -> str | None:
    match source:
        case Given(value=ast.StringLit(parts=())):
            return ""
        case Given(value=ast.StringLit(parts=(str() as text,))):
            return text
        case _:
            return None
