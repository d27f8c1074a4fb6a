"""Expressions: operators, literals, names, constructors, closures.

Conditions become jumps (`branch`) wherever what is wanted is a way to go on and not a `Bool`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.emit import calls, constants, functions, matching, natives, terms, tests
from qoqi.compiler.emit.code import Label
from qoqi.compiler.names.symbols import (
    ChannelSymbol,
    ConstSymbol,
    FlowSlotSymbol,
    LocalSymbol,
    VariantSymbol,
    ViewSymbol,
)
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.model import JSON, UNIT, Con
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

OPERATORS = {
    "+": Op.ADD,
    "-": Op.SUB,
    "*": Op.MUL,
    "/": Op.DIV,
    "%": Op.MOD,
    "==": Op.EQ,
    "!=": Op.NE,
    "<": Op.LT,
    "<=": Op.LE,
    ">": Op.GT,
    ">=": Op.GE,
}


def value(fn: FunctionEmitter, node: ast.Expr) -> None:
    """Leaves the value of an expression on the stack."""
    _value(fn, node)
    if fn.facts.coerce.get(node) == "json" and not isinstance(node, ast.ListExpr | ast.MapExpr):
        natives.to_json(fn)


def effect(fn: FunctionEmitter, node: ast.Expr) -> None:
    """Evaluates an expression for what it does."""
    match node:
        case ast.ParenExpr(inner=inner):
            effect(fn, inner)
        case ast.IfExpr() | ast.MatchExpr() | ast.WaitExpr():
            matching.choose(fn, node, wanted=False)
        case ast.Call() if (target := tests.sends(fn, node)) is not None:
            tests.call(fn, node, target, fn.facts.calls[node], used=False)
            fn.code.emit(Op.POP)
        case _:
            value(fn, node)
            fn.code.emit(Op.POP)


def branch(fn: FunctionEmitter, node: ast.Expr, label: Label, when: bool) -> None:
    """Goes to `label` if the condition is `when`, on otherwise."""
    code = fn.code
    match node:
        case ast.ParenExpr(inner=inner):
            branch(fn, inner, label, when)
        case ast.BoolLit(value=known):
            if known == when:
                code.jump(Op.JUMP, label)
        case ast.UnaryExpr(op="!", operand=operand):
            branch(fn, operand, label, not when)
        case ast.BinaryExpr(op="&&" | "||" as op, left=left, right=right):
            if (op == "||") == when:
                branch(fn, left, label, when)
                branch(fn, right, label, when)
            else:
                past = Label()
                branch(fn, left, past, not when)
                branch(fn, right, label, when)
                code.mark(past)
        case _:
            value(fn, node)
            code.jump(Op.JUMP_IF_TRUE if when else Op.JUMP_IF_FALSE, label)


def _value(fn: FunctionEmitter, node: ast.Expr) -> None:
    code = fn.code
    match node:
        case (
            ast.IntLit()
            | ast.DecimalLit()
            | ast.DurationLit()
            | ast.DateLit()
            | ast.TimeLit()
            | ast.BoolLit()
        ):
            constants.push(fn, node, fn.type_of(node))
        case ast.StringLit():
            _text(fn, node)
        case ast.Name() | ast.FieldExpr():
            _name(fn, node)
        case ast.ParenExpr(inner=inner):
            value(fn, inner)
        case ast.Call():
            calls.call(fn, node)
            fn.never(node)
        case ast.ListExpr(items=items):
            _items(fn, items)
            as_set = fn.type_of(node) != JSON and _head(fn, node) == "Set"
            code.emit(Op.SET if as_set else Op.LIST, len(items), pops=len(items))
            if fn.type_of(node) == JSON:
                _json_variant(fn, "Array")
        case ast.MapExpr(entries=entries):
            for key, item in entries:
                value(fn, key)
                value(fn, item)
            code.emit(Op.MAP, len(entries), pops=2 * len(entries))
            if fn.type_of(node) == JSON:
                _json_variant(fn, "Object")
        case ast.TupleExpr(items=()):
            code.emit(Op.UNIT)
        case ast.TupleExpr(items=items):
            _items(fn, items)
            code.emit(Op.TUPLE, len(items), pops=len(items))
        case ast.StructExpr():
            _struct(fn, node)
        case ast.TupleIndexExpr(base=base, index=index):
            value(fn, base)
            code.emit(Op.GET_ITEM, index)
        case ast.IndexExpr(base=base, index=at):
            value(fn, base)
            value(fn, at)
            fn.at(node)
            code.emit(Op.INDEX)
        case ast.TryExpr():
            _try(fn, node)
        case ast.UnaryExpr(op="-", operand=ast.IntLit() | ast.DecimalLit() as literal):
            constants.push_negative(fn, literal, fn.type_of(node))
        case ast.UnaryExpr(op=op, operand=operand):
            value(fn, operand)
            code.emit(Op.NEG if op == "-" else Op.NOT)
        case ast.BinaryExpr():
            _binary(fn, node)
        case ast.RangeExpr(low=low, high=high, inclusive=inclusive):
            value(fn, low)
            value(fn, high)
            code.emit(Op.RANGE_INCLUSIVE if inclusive else Op.RANGE)
        case ast.LambdaExpr():
            captured = fn.facts.captures[node]
            for symbol in captured:
                code.emit(Op.LOAD, fn.slot(symbol))
            number = functions.of_lambda(fn, node)
            closure = fn.tables.closure(number, len(captured))
            code.emit(Op.CLOSURE, closure, pops=len(captured))
        case ast.IfExpr() | ast.MatchExpr() | ast.WaitExpr():
            wanted = fn.type_of(node) != UNIT
            matching.choose(fn, node, wanted=wanted)
            if not wanted:
                code.emit(Op.UNIT)
        case ast.ErrorExpr():
            raise AssertionError("a module with errors is not emitted")


def _items(fn: FunctionEmitter, items: tuple[ast.Expr, ...]) -> None:
    for item in items:
        value(fn, item)


def _head(fn: FunctionEmitter, node: ast.Expr) -> str:
    type_ = fn.type_of(node)
    return type_.name if isinstance(type_, Con) else ""


def _json_variant(fn: FunctionEmitter, variant: str) -> None:
    fn.code.emit(Op.VARIANT, terms.prelude_variant(fn.tables, "Json", variant), pops=1)


def _text(fn: FunctionEmitter, node: ast.StringLit) -> None:
    if all(isinstance(part, str) for part in node.parts):
        constants.push(fn, node, fn.type_of(node))
        return
    for part in node.parts:
        if isinstance(part, str):
            fn.code.emit(Op.CONST, fn.tables.constant(part))
        else:
            value(fn, part)
    fn.code.emit(Op.CONCAT, len(node.parts), pops=len(node.parts))


def _name(fn: FunctionEmitter, node: ast.Name | ast.FieldExpr) -> None:
    """A name on its own, a member of a module, or a field of a struct."""
    code = fn.code
    if isinstance(node, ast.FieldExpr) and node in fn.facts.fields:
        value(fn, node.base)
        if _head(fn, node.base) == "Request":
            code.emit(Op.NATIVE, fn.tables.native(natives.REQUEST_VALUE, 1), pops=1)
        else:
            code.emit(Op.GET_FIELD, fn.facts.fields[node])
        return
    if node in fn.facts.values:
        functions.push_value(fn, node)
        return
    match fn.facts.uses.get(node):
        case LocalSymbol() as symbol:
            code.emit(Op.LOAD, fn.slot(symbol))
        case FlowSlotSymbol(index=index):
            code.emit(Op.LOAD_FLOW, index)
        case ConstSymbol() as symbol:
            functions.push_constant(fn, symbol)
        case VariantSymbol() as symbol:
            code.emit(Op.VARIANT, terms.variant_index(fn.tables, symbol), pops=0)
        case ChannelSymbol(name=name):
            code.emit(Op.INT, fn.tables.channels[name])
        case ViewSymbol() as symbol if isinstance(node, ast.FieldExpr):
            tests.view(fn, node, symbol)
        case symbol:
            raise AssertionError(f"a name that is no value: {symbol}")


def _struct(fn: FunctionEmitter, node: ast.StructExpr) -> None:
    """A literal in the order of the declaration; a copy is its base with fields replaced."""
    plan = fn.facts.structs[node]
    index = terms.struct_index(fn.tables, plan.symbol)
    if node.base is None:
        count = calls.arguments(fn, plan.fields)
        fn.code.emit(Op.STRUCT, index, pops=count)
        return
    value(fn, node.base)
    changed = [(at, source) for at, source in enumerate(plan.fields) if source is not None]
    for at, source in sorted(changed, key=lambda pair: pair[1].value.span):
        calls.argument(fn, source)
        fn.code.emit(Op.UPDATE_FIELD, at)


def _try(fn: FunctionEmitter, node: ast.TryExpr) -> None:
    code = fn.code
    value(fn, node.inner)
    enum, good = ("Option", "Some") if _head(fn, node.inner) == "Option" else ("Result", "Ok")
    goes_on = Label()
    code.emit(Op.DUP)
    code.emit(Op.IS_VARIANT, terms.prelude_variant(fn.tables, enum, good))
    code.jump(Op.JUMP_IF_TRUE, goes_on)
    fn.return_top()
    code.mark(goes_on)
    code.emit(Op.GET_PAYLOAD, 0)


def _binary(fn: FunctionEmitter, node: ast.BinaryExpr) -> None:
    code = fn.code
    match node.op:
        case "&&" | "||":
            decided, end = Label(), Label()
            when = node.op == "||"
            branch(fn, node.left, decided, when)
            value(fn, node.right)
            code.jump(Op.JUMP, end)
            code.mark(decided)
            code.emit(Op.TRUE if when else Op.FALSE)
            code.mark(end)
        case "??":
            _otherwise(fn, node)
        case "in" | "not-in":
            value(fn, node.left)
            value(fn, node.right)
            code.emit(Op.IN)
            if node.op == "not-in":
                code.emit(Op.NOT)
        case op:
            value(fn, node.left)
            value(fn, node.right)
            fn.at(node)
            code.emit(OPERATORS[op])


def _otherwise(fn: FunctionEmitter, node: ast.BinaryExpr) -> None:
    """`a ?? b`: what is in `a`, else `b`; `a` itself, where `b` is optional too."""
    code = fn.code
    value(fn, node.left)
    missing, end = Label(), Label()
    code.emit(Op.DUP)
    code.emit(Op.IS_VARIANT, terms.prelude_variant(fn.tables, "Option", "Some"))
    code.jump(Op.JUMP_IF_FALSE, missing)
    if fn.type_of(node) != fn.type_of(node.left):
        code.emit(Op.GET_PAYLOAD, 0)
    code.jump(Op.JUMP, end)
    code.mark(missing)
    code.emit(Op.POP)
    value(fn, node.right)
    code.mark(end)
