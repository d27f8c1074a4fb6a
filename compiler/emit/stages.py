"""Stages: where run can be entered again with its named variables and nothing else.

A stage's entry is the instruction after `STAGE`; the rules (F0004) keep stages where nothing but
locals is alive, so the stack is empty there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qoqi.compiler.emit.terms import parameters_in, substituted
from qoqi.compiler.names.symbols import LocalSymbol, StructSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Checked, Facts, StructMatch
from qoqi.compiler.types.model import Con, Type
from qoqi.vm.bytecode.chunk import StageDef, Term
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter


def stage(fn: FunctionEmitter, node: ast.StageStmt) -> None:
    code, tables = fn.code, fn.tables
    if not code.reachable:
        return
    assert code.depth == 0, "a stage inside an expression"
    variables: list[tuple[str, int, Term]] = []
    for name in node.variables:
        symbol = fn.facts.uses[name]
        assert isinstance(symbol, LocalSymbol)
        type_ = next(_types_of(tables.checked, fn.facts, symbol))
        variables.append((name.name, fn.slot(symbol), fn.term(type_)))
    code.emit(Op.STAGE, len(tables.stages))
    entry = len(code.instructions)
    tables.stages.append(StageDef(node.name.name, entry, tuple(variables)))


def _types_of(checked: Checked, facts: Facts, symbol: LocalSymbol) -> Iterator[Type]:
    """The type of a local, from wherever the facts say it: its pattern, a use, what is around."""
    for node, bound in facts.bindings.items():
        if bound is symbol and node in facts.types:
            yield facts.types[node]
    for node, used in facts.uses.items():
        if used is symbol and node in facts.types:
            yield facts.types[node]
    for node, match in facts.matches.items():
        if isinstance(match, StructMatch):
            for index, inner in match.fields:
                if inner is symbol:
                    yield _field_type(checked, match.symbol, facts.types[node], index)
    for node, type_ in facts.types.items():
        if isinstance(node, ast.ListPattern):
            for item in node.items:
                name = item.name if isinstance(item, ast.RestPattern) else None
                if name is not None and facts.bindings.get(name) is symbol:
                    yield type_


def _field_type(checked: Checked, struct: StructSymbol, of: Type, index: int) -> Type:
    assert isinstance(of, Con)
    type_ = checked.struct_fields[struct][index][1]
    names = [parameter.name.name for parameter in struct.decl.type_params]
    arguments = dict(zip(names, of.args, strict=True))
    return substituted(type_, {each: arguments[each.name] for each in parameters_in(type_)})
