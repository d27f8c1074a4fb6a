"""Patterns: tests that jump away where a value does not fit, then the names it binds.

The value stands in a slot and each part is loaded from there anew, by its way (`Spot`): parts are
small and tests stop early. Names are bound after all tests, except those of `P | Q`, which are
bound by the alternative that fitted; its alternatives share one slot per name.

Where the checker proved that a pattern fits (a `let`, a parameter, the last arm of a `match`),
`fail` is None: no test is written but those that tell alternatives with names apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qoqi.compiler.emit import constants, natives, terms
from qoqi.compiler.emit.code import Label
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import StructMatch, VariantMatch
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.dataclass import dataclass

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter


@dataclass(frozen=True, slots=True)
class Item:
    """The n-th item of a list; from the end, where `n` is negative."""

    n: int


@dataclass(frozen=True, slots=True)
class Rest:
    """A list without its first and its last items."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a value is: in a slot, then the parts that lead to it."""

    slot: int
    way: tuple[tuple[Op, int] | Item | Rest, ...] = ()

    def part(self, op: Op, index: int) -> Spot:
        return Spot(self.slot, (*self.way, (op, index)))

    def of_list(self, step: Item | Rest) -> Spot:
        return Spot(self.slot, (*self.way, step))


def bind_top(fn: FunctionEmitter, pattern: ast.Pattern) -> None:
    """Binds the value on top of the stack to a pattern that fits it, and takes it off."""
    code = fn.code
    match pattern:
        case ast.BindPattern() if pattern not in fn.facts.matches:
            code.emit(Op.STORE, fn.slot(fn.facts.bindings[pattern]))
        case _ if not _binds(fn, pattern):
            code.emit(Op.POP)
        case _:
            kept = code.temporary()
            code.emit(Op.STORE, kept)
            fit(fn, pattern, Spot(kept), None)
            code.release(kept)


def fit(fn: FunctionEmitter, pattern: ast.Pattern, spot: Spot, fail: Label | None) -> None:
    """Goes to `fail` if the value does not fit; else binds the pattern's names."""
    _tests(fn, pattern, spot, fail)
    _bind(fn, pattern, spot)


def _tests(fn: FunctionEmitter, pattern: ast.Pattern, spot: Spot, fail: Label | None) -> None:
    code = fn.code
    found = fn.facts.matches.get(pattern)
    if isinstance(found, VariantMatch):
        if fail is not None and len(found.symbol.enum.decl.variants) > 1:
            _load(fn, spot)
            code.emit(Op.IS_VARIANT, terms.variant_index(fn.tables, found.symbol))
            code.jump(Op.JUMP_IF_FALSE, fail)
        for part, at in _parts(fn, pattern, spot):
            _tests(fn, part, at, fail)
        return
    match pattern:
        case ast.LiteralPattern(value=ast.BoolLit(value=wanted)) if fail is not None:
            _load(fn, spot)
            code.jump(Op.JUMP_IF_FALSE if wanted else Op.JUMP_IF_TRUE, fail)
        case ast.LiteralPattern(value=literal) if fail is not None:
            _load(fn, spot)
            constants.push(fn, literal, fn.type_of(pattern))
            code.emit(Op.EQ)
            code.jump(Op.JUMP_IF_FALSE, fail)
        case ast.RangePattern(low=low, high=high, inclusive=inclusive) if fail is not None:
            _load(fn, spot)
            constants.push(fn, low, fn.type_of(pattern))
            code.emit(Op.GE)
            code.jump(Op.JUMP_IF_FALSE, fail)
            _load(fn, spot)
            constants.push(fn, high, fn.type_of(pattern))
            code.emit(Op.LE if inclusive else Op.LT)
            code.jump(Op.JUMP_IF_FALSE, fail)
        case ast.ListPattern(items=items) if fail is not None:
            open_ended = any(isinstance(item, ast.RestPattern) for item in items)
            if len(items) > open_ended or not open_ended:
                _load(fn, spot)
                code.emit(Op.NATIVE, fn.tables.native(natives.LIST_LEN, 1), pops=1)
                code.emit(Op.INT, len(items) - open_ended)
                code.emit(Op.GE if open_ended else Op.EQ)
                code.jump(Op.JUMP_IF_FALSE, fail)
        case ast.OrPattern(alternatives=alternatives):
            _alternatives(fn, alternatives, spot, fail)
            return
        case _:
            pass
    for part, at in _parts(fn, pattern, spot):
        _tests(fn, part, at, fail)


def _alternatives(
    fn: FunctionEmitter, alternatives: tuple[ast.Pattern, ...], spot: Spot, fail: Label | None
) -> None:
    binding = _binds(fn, alternatives[0])
    if fail is None and not binding:
        return
    fits = Label()
    slots: dict[str, int] = {}
    for index, alternative in enumerate(alternatives):
        for symbol in _names(fn, alternative):
            fn.locals[symbol] = slots.setdefault(symbol.name, fn.slot(symbol))
        if index == len(alternatives) - 1:
            fit(fn, alternative, spot, fail)
        else:
            other = Label()
            fit(fn, alternative, spot, other)
            fn.code.jump(Op.JUMP, fits)
            fn.code.mark(other)
    fn.code.mark(fits)


def _bind(fn: FunctionEmitter, pattern: ast.Pattern, spot: Spot) -> None:
    if isinstance(pattern, ast.OrPattern):
        return
    if isinstance(pattern, ast.BindPattern) and pattern not in fn.facts.matches:
        _store(fn, fn.facts.bindings[pattern], spot)
        return
    match pattern:
        case ast.StructPattern() if isinstance(found := fn.facts.matches[pattern], StructMatch):
            for index, inner in found.fields:
                if isinstance(inner, LocalSymbol):
                    _store(fn, inner, spot.part(Op.GET_FIELD, index))
        case ast.ListPattern(items=items):
            for at, item in enumerate(items):
                if isinstance(item, ast.RestPattern) and item.name is not None:
                    rest = Rest(at, len(items) - at - 1)
                    _store(fn, fn.facts.bindings[item.name], spot.of_list(rest))
        case _:
            pass
    for part, at_spot in _parts(fn, pattern, spot):
        _bind(fn, part, at_spot)


def _store(fn: FunctionEmitter, symbol: LocalSymbol, spot: Spot) -> None:
    _load(fn, spot)
    fn.code.emit(Op.STORE, fn.slot(symbol))


def _parts(
    fn: FunctionEmitter, pattern: ast.Pattern, spot: Spot
) -> Iterator[tuple[ast.Pattern, Spot]]:
    """The patterns inside one, and where what they are matched with is."""
    match fn.facts.matches.get(pattern):
        case VariantMatch(fields=fields):
            for index, part in enumerate(fields):
                if part is not None:
                    yield part, spot.part(Op.GET_PAYLOAD, index)
            return
        case StructMatch(fields=parts):
            for index, inner in parts:
                if not isinstance(inner, LocalSymbol):
                    yield inner, spot.part(Op.GET_FIELD, index)
            return
        case None:
            pass
    match pattern:
        case ast.TuplePattern(items=items):
            for index, part in enumerate(items):
                yield part, spot.part(Op.GET_ITEM, index)
        case ast.ListPattern(items=list_items):
            after_rest = False
            for index, item in enumerate(list_items):
                if isinstance(item, ast.RestPattern):
                    after_rest = True
                else:
                    yield item, spot.of_list(Item(index - len(list_items) * after_rest))
        case ast.OrPattern(alternatives=alternatives):
            for alternative in alternatives:
                yield alternative, spot
        case _:
            pass


def _names(fn: FunctionEmitter, pattern: ast.Pattern) -> list[LocalSymbol]:
    """The locals a pattern binds, in order."""
    found = fn.facts.matches.get(pattern)
    names: list[LocalSymbol] = []
    if isinstance(found, StructMatch):
        names += [inner for _, inner in found.fields if isinstance(inner, LocalSymbol)]
    if isinstance(pattern, ast.BindPattern) and found is None:
        names.append(fn.facts.bindings[pattern])
    if isinstance(pattern, ast.ListPattern):
        names += [
            fn.facts.bindings[item.name]
            for item in pattern.items
            if isinstance(item, ast.RestPattern) and item.name is not None
        ]
    for part, _ in _parts(fn, pattern, Spot(0)):
        names += _names(fn, part)
    return names


def _binds(fn: FunctionEmitter, pattern: ast.Pattern) -> bool:
    return bool(_names(fn, pattern))


def _load(fn: FunctionEmitter, spot: Spot) -> None:
    code = fn.code
    code.emit(Op.LOAD, spot.slot)
    for step in spot.way:
        match step:
            case Item(n) if n >= 0:
                code.emit(Op.INT, n)
                code.emit(Op.INDEX)
            case Item(n):
                code.emit(Op.DUP)
                code.emit(Op.NATIVE, fn.tables.native(natives.LIST_LEN, 1), pops=1)
                code.emit(Op.INT, n)
                code.emit(Op.ADD)
                code.emit(Op.INDEX)
            case Rest(first, last):
                natives.without_ends(fn, first, last)
            case (op, index):
                code.emit(op, index)
