"""`if`, `match` and conditions with patterns: one arm of several, with or without a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.emit import patterns, waits
from qoqi.compiler.emit.code import Label
from qoqi.compiler.emit.patterns import Spot
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.model import Con
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

_SMALL = frozenset(
    {"Bool", "Int", "Decimal", "Float", "String", "Duration", "Time", "Date", "Instance"}
)


def choose(
    fn: FunctionEmitter, node: ast.IfExpr | ast.MatchExpr | ast.WaitExpr, *, wanted: bool
) -> None:
    """`wanted` says whether each arm leaves its value."""
    match node:
        case ast.IfExpr():
            _if(fn, node, wanted)
        case ast.MatchExpr():
            _match(fn, node, wanted)
        case ast.WaitExpr():
            waits.wait_match(fn, node, wanted=wanted)


def arm(fn: FunctionEmitter, body: ast.Block, wanted: bool, end: Label) -> None:
    if wanted:
        fn.block_value(body)
    else:
        fn.block(body)
    fn.code.jump(Op.JUMP, end)


def condition(fn: FunctionEmitter, node: ast.Condition, otherwise: Label) -> None:
    """Goes to `otherwise` if the condition does not hold; else its pattern is bound."""
    if node.pattern is None:
        fn.branch(node.value, otherwise, False)
        return
    subject = _subject(fn, node.value)
    patterns.fit(fn, node.pattern, Spot(subject), otherwise)
    if node.guard is not None:
        fn.branch(node.guard, otherwise, False)
    _drop_subject(fn, node.value, subject)
    _free_subject(fn, node.value, subject)


def _if(fn: FunctionEmitter, node: ast.IfExpr, wanted: bool) -> None:
    code = fn.code
    otherwise, end = Label(), Label()
    condition(fn, node.condition, otherwise)
    if node.otherwise is None:
        fn.block(node.then)
        code.mark(otherwise)
        return
    arm(fn, node.then, wanted, end)
    code.mark(otherwise)
    match node.otherwise:
        case ast.IfExpr() as chained:
            fn.at(chained)
            _if(fn, chained, wanted)
        case block:
            arm(fn, block, wanted, end)
    code.mark(end)


def _match(fn: FunctionEmitter, node: ast.MatchExpr, wanted: bool) -> None:
    """Arms in order. The checker proved that the last one fits what the others left."""
    code = fn.code
    subject = _subject(fn, node.subject)
    end = Label()
    for index, choice in enumerate(node.arms):
        fn.at(choice)
        last = index == len(node.arms) - 1 and choice.guard is None
        other = None if last else Label()
        patterns.fit(fn, choice.pattern, Spot(subject), other)
        if choice.guard is not None and other is not None:
            fn.branch(choice.guard, other, False)
        _drop_subject(fn, node.subject, subject)
        arm(fn, choice.body, wanted, end)
        if other is not None:
            code.mark(other)
    code.emit(Op.FAIL, fn.tables.constant("no arm of the match fits"))
    code.mark(end)
    _free_subject(fn, node.subject, subject)


def _subject(fn: FunctionEmitter, node: ast.Expr) -> int:
    """The slot that has what is matched: a local's own, or a temporary."""
    symbol = fn.facts.uses.get(node)
    if isinstance(symbol, LocalSymbol):
        return fn.slot(symbol)
    fn.value(node)
    slot = fn.code.temporary()
    fn.code.emit(Op.STORE, slot)
    return slot


def _drop_subject(fn: FunctionEmitter, node: ast.Expr, slot: int) -> None:
    """Empties a temporary that may hold something large, now that its parts are bound."""
    if isinstance(fn.facts.uses.get(node), LocalSymbol):
        return
    type_ = fn.type_of(node)
    if not (isinstance(type_, Con) and type_.name in _SMALL):
        fn.code.emit(Op.CLEAR, slot)


def _free_subject(fn: FunctionEmitter, node: ast.Expr, slot: int) -> None:
    if not isinstance(fn.facts.uses.get(node), LocalSymbol):
        fn.code.free(slot)
