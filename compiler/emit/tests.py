"""The tests of a module as a chunk of their own: `test` blocks, `given`s, and the tools of tests.

A test runs in a machine beside the flows it starts. Nothing is shared between the two but data, so
a tool is an operation that the test runner answers (`qoqi.runtime.testing`):

    test.start (flow, name, args tuple)            -> a handle: an instance without a birth
    test.find (flow, name)   test.at (flow, name, stage, json)
    test.send test.ask (handle, channel, value, key if written, TERM)
    test.view (handle, view, TERM)
    test.calls test.times (step, TERM)
    test.send! test.ask!                           the same, the answer unused
    test.NAME (arguments…, TERM)                   every other tool, as `types.builtins` lists them
    test.given (kind, target, file, matcher, answers, TERM of the parameters, runs)

TERM is the type of what the tool gives: the runner reads JSON into it. A `given`'s matcher is a
closure over the target's parameters that tells whether they fit; its answers are a list of
(kind, delay or (), closure over the parameters or ()), kind being `value`, `fails` or `never`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from qoqi.compiler.emit import calls, generics, natives, patterns, steps
from qoqi.compiler.emit.code import Label
from qoqi.compiler.emit.patterns import Spot
from qoqi.compiler.names.symbols import (
    FnSymbol,
    LocalSymbol,
    StepSymbol,
    ViewSymbol,
    native_name,
)
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import ArgSource, BuiltinTarget, CallPlan, Given
from qoqi.compiler.types.model import JSON, STRING, Tup, Type
from qoqi.compiler.types.unify import substitute
from qoqi.vm.bytecode.chunk import Chunk, Debug, Function, FunctionDebug
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.dataclass import dataclass

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter
    from qoqi.compiler.emit.tables import Job, Tables

COMPARED = {"==": Op.EQ, "!=": Op.NE, "<": Op.LT, "<=": Op.LE, ">": Op.GT, ">=": Op.GE}


@dataclass(frozen=True, slots=True)
class EmittedTest:
    title: str
    function: int
    line: int


@dataclass(frozen=True, slots=True)
class EmittedTests:
    """`givens` is a function that says the module's own `given`s, run before each test."""

    module: str
    file: str
    chunk: Chunk
    debug: Debug
    tests: tuple[EmittedTest, ...]
    givens: int


def has_tests(module: ast.Module) -> bool:
    return any(isinstance(item, ast.TestDecl) for item in module.items)


def emit(outer: FunctionEmitter, module: ast.Module) -> EmittedTests:
    """The tests of the module `outer` stands in."""
    tables = outer.tables
    givens = tables.function("givens", lambda tables: _givens(outer, module))
    numbered = [
        (item, tables.function(item, _job(outer, item)))
        for item in module.items
        if isinstance(item, ast.TestDecl)
    ]
    tables.run_jobs(lambda tables, symbol: steps.describe(outer, symbol))
    chunk = Chunk(
        flow=f"{outer.module}.tests",
        types=tuple(tables.types),
        variants=tables.variants,
        terms=tables.terms,
        constants=tables.constants,
        functions=tuple(tables.functions),
        closures=tables.closures,
        natives=tables.natives,
        operations=tables.operations,
        flow_slots=(),
        result=("Tuple",),
        channels=(),
        stages=(),
        steps=tuple(tables.steps),
        migrations=(),
        views=(),
        run=givens,
        fields_init=givens,
        listens=False,
    )
    tests = tuple(
        EmittedTest(title(item), number, tables.line(outer.module, item.span.start))
        for item, number in numbered
    )
    path = tables.path(outer.module)
    return EmittedTests(outer.module, path, chunk, Debug(tuple(tables.debug)), tests, givens)


def title(test: ast.TestDecl) -> str:
    return "".join(part for part in test.title.parts if isinstance(part, str))


def _givens(outer: FunctionEmitter, module: ast.Module) -> tuple[Function, FunctionDebug]:
    inner = outer.new(outer.module, "givens")
    for item in module.items:
        if isinstance(item, ast.GivenStmt):
            inner.at(item)
            given(inner, item)
    inner.code.emit(Op.UNIT)
    inner.return_top()
    return inner.finished(0)


def _job(outer: FunctionEmitter, test: ast.TestDecl) -> Job:
    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(outer.module, "test")
        inner.at(test)
        inner.body(test.body, unit=True)
        return inner.finished(0)

    return job


# -- tools -------------------------------------------------------------------------------------


def call(
    fn: FunctionEmitter,
    node: ast.Call,
    target: BuiltinTarget,
    plan: CallPlan,
    *,
    used: bool = True,
) -> None:
    """Leaves what a tool gives on the stack. A refused send that is not `used` fails the test."""
    code, tables = fn.code, fn.tables
    name, args = target.name, plan.args
    count = 0
    match name:
        case "test.start" | "test.find" | "test.at":
            assert target.flow is not None
            code.emit(Op.CONST, tables.constant(target.flow.qualified))
            if name == "test.start":
                instance, *rest = args
                _argument(fn, instance)
                given_args = calls.arguments(fn, rest)
                code.emit(Op.TUPLE, given_args, pops=given_args)
                count = 3
            else:
                count = 1 + calls.arguments(fn, args)
            _operation(fn, name, count)
            return
        case "test.send" | "test.ask":
            assert target.channel is not None
            handle, value, *key = args
            _argument(fn, handle)
            code.emit(Op.CONST, tables.constant(target.channel.name))
            _argument(fn, value)
            count = 3 + calls.arguments(fn, key)
        case "test.calls" | "test.times":
            source = args[0]
            assert isinstance(source, Given)
            symbol = fn.facts.uses[source.value]
            assert isinstance(symbol, StepSymbol)
            code.emit(Op.CONST, tables.constant(symbol.qualified))
            count = 1
        case _:
            count = calls.arguments(fn, args)
    code.emit(Op.TERM, tables.term(fn.term(fn.type_of(node))))
    _operation(fn, name if used else f"{name}!", count + 1)


def sends(fn: FunctionEmitter, node: ast.Call) -> BuiltinTarget | None:
    """The target of a call that sends to a handle."""
    target = fn.facts.calls[node].target
    if isinstance(target, BuiltinTarget) and target.name in ("test.send", "test.ask"):
        return target
    return None


def view(fn: FunctionEmitter, node: ast.FieldExpr, symbol: ViewSymbol) -> None:
    """`it.tally`: what the view gives now."""
    fn.value(node.base)
    fn.code.emit(Op.CONST, fn.tables.constant(symbol.name))
    fn.code.emit(Op.TERM, fn.tables.term(fn.term(fn.type_of(node))))
    _operation(fn, "test.view", 3)


def _argument(fn: FunctionEmitter, source: ArgSource | None) -> None:
    assert source is not None
    calls.argument(fn, source)


def _operation(fn: FunctionEmitter, name: str, count: int) -> None:
    fn.code.emit(Op.OPERATION, fn.tables.operation(name, count), pops=count)


def check(fn: FunctionEmitter, condition: ast.Expr, message: ast.Expr | None) -> None:
    """`assert` in a test: a comparison that is false shows both sides."""
    code, tables = fn.code, fn.tables
    while isinstance(condition, ast.ParenExpr):
        condition = condition.inner
    holds = Label()
    written = tables.text(fn.module, condition.span)
    if isinstance(condition, ast.BinaryExpr) and condition.op in COMPARED:
        left, right = code.temporary(), code.temporary()
        fn.value(condition.left)
        code.emit(Op.STORE, left)
        fn.value(condition.right)
        code.emit(Op.STORE, right)
        code.emit(Op.LOAD, left)
        code.emit(Op.LOAD, right)
        code.emit(COMPARED[condition.op])
        code.jump(Op.JUMP_IF_TRUE, holds)
        code.emit(Op.CONST, tables.constant(f"{written} is false\n  left:  "))
        _shown(fn, left)
        code.emit(Op.CONST, tables.constant("\n  right: "))
        _shown(fn, right)
        parts = 4
        if message is not None:
            code.emit(Op.CONST, tables.constant("\n  "))
            fn.value(message)
            parts = 6
        code.emit(Op.CONCAT, parts, pops=parts)
    else:
        left = right = -1
        fn.branch(condition, holds, True)
        code.emit(Op.CONST, tables.constant(f"{written} is false"))
        if message is not None:
            code.emit(Op.CONST, tables.constant("\n  "))
            fn.value(message)
            code.emit(Op.CONCAT, 3, pops=3)
    code.emit(Op.NATIVE, tables.native(natives.FAIL, 1), pops=1)
    code.emit(Op.POP)
    code.mark(holds)
    if left >= 0:
        code.release(left, right)
    code.emit(Op.UNIT)


def _shown(fn: FunctionEmitter, slot: int) -> None:
    """Leaves the value of a slot on the stack, as it is written in a source."""
    fn.code.emit(Op.LOAD, slot)
    fn.code.emit(Op.NATIVE, fn.tables.native(natives.SHOW, 1), pops=1)


# -- given -------------------------------------------------------------------------------------


def given(fn: FunctionEmitter, statement: ast.GivenStmt) -> None:
    """Says to the runner what a step or function answers from here on."""
    code, tables = fn.code, fn.tables
    symbol = fn.facts.uses[statement.target[-1]]
    assert isinstance(symbol, StepSymbol | FnSymbol)
    signature = tables.checked.signatures[symbol]
    mapping: dict[Type, Type] = {param: JSON for param in signature.type_params}
    params = [(name, substitute(type_, mapping)) for name, type_, _ in signature.params]
    matched = _matched(statement, [name for name, _ in params])
    if isinstance(symbol, StepSymbol):
        kind, name, file = "step", symbol.qualified, ""
    elif symbol.native is not None:
        kind, name, file = "native", native_name(symbol), ""
    else:
        kind, name, file = "fn", symbol.name, tables.path(symbol.module)
    for text in (kind, name, file):
        code.emit(Op.CONST, tables.constant(text))
    _closure(fn, statement, ("matcher", statement), params, matched, None, STRING)
    for number, answer in enumerate(statement.answers):
        code.emit(Op.CONST, tables.constant(answer.kind))
        if answer.after is None:
            code.emit(Op.UNIT)
        else:
            fn.value(answer.after)
        if answer.value is None:
            code.emit(Op.UNIT)
        else:
            want = STRING if answer.kind == "fails" else signature.result
            key = ("answer", statement, number)
            _closure(fn, statement, key, params, matched, answer.value, want)
        code.emit(Op.TUPLE, 3, pops=3)
    code.emit(Op.LIST, len(statement.answers), pops=len(statement.answers))
    term = fn.term(Tup(tuple(type_ for _, type_ in params)))
    code.emit(Op.TERM, tables.term(term))
    code.emit(Op.TRUE if statement.runs else Op.FALSE)
    _operation(fn, "test.given", 7)
    code.emit(Op.POP)


def _matched(statement: ast.GivenStmt, names: list[str]) -> list[tuple[int, ast.Pattern]]:
    """Which parameter each pattern of a `given` is for."""
    found = []
    position = 0
    for arg in statement.args or ():
        if arg.name is not None:
            index = names.index(arg.name.name)
        else:
            index = position
            position += 1
        if index < len(names):
            found.append((index, arg.pattern))
    return found


def _closure(
    fn: FunctionEmitter,
    statement: ast.GivenStmt,
    key: object,
    params: list[tuple[str, Type]],
    matched: list[tuple[int, ast.Pattern]],
    value: ast.Expr | None,
    want: Type,
) -> None:
    """A closure over the parameters: whether they fit, or the value with the patterns' names."""
    bound = set(_bound(fn, (pattern for _, pattern in matched)))
    captured = () if value is None else generics.free_locals(fn.facts, value)
    captured = tuple(symbol for symbol in captured if symbol not in bound)

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = fn.new(fn.module, "given", fn.types)
        inner.at(statement if value is None else value)
        for symbol in captured:
            inner.parameter(symbol.name, symbol)
        slots = [inner.code.slot(name) for name, _ in params]
        fails = Label()
        for index, pattern in matched:
            patterns.fit(inner, pattern, Spot(slots[index]), fails if value is None else None)
        if value is not None:
            inner.result(value)
        else:
            inner.code.emit(Op.TRUE)
            inner.return_top()
            inner.code.mark(fails)
            if inner.code.reachable:
                inner.code.emit(Op.FALSE)
                inner.return_top()
        return inner.finished(len(captured) + len(params))

    for symbol in captured:
        fn.code.emit(Op.LOAD, fn.slot(symbol))
    number = fn.tables.function(key, job)
    fn.code.emit(Op.CLOSURE, fn.tables.closure(number, len(captured)), pops=len(captured))


def _bound(fn: FunctionEmitter, matched: Iterable[ast.Pattern]) -> list[LocalSymbol]:
    return [
        fn.facts.bindings[node]
        for pattern in matched
        for node in generics.nodes(pattern)
        if node in fn.facts.bindings
    ]
