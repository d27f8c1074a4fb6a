"""Migrations: from the variables of a stage of the previous version to a stage of this one.

A migration is a function over the old values it names. `become` returns the new stage's name and
a map of what it gives; what is not given is carried over by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.emit import functions
from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.names.symbols import EnumSymbol, FlowSymbol, StructSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Facts
from qoqi.compiler.types.model import Con, FlowRef, Fn, Tup, Type, option_of
from qoqi.vm.bytecode.chunk import FieldDef, Function, FunctionDebug, MigrationDef
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter


def become(fn: FunctionEmitter, node: ast.BecomeStmt) -> None:
    code, tables = fn.code, fn.tables
    code.emit(Op.CONST, tables.constant(node.stage.name))
    for argument in node.args:
        name = argument.name.name if argument.name is not None else _own_name(argument.value)
        code.emit(Op.CONST, tables.constant(name))
        fn.value(argument.value)
    code.emit(Op.MAP, len(node.args), pops=2 * len(node.args))
    code.emit(Op.TUPLE, 2, pops=2)
    fn.return_top()


def _own_name(value: ast.Expr) -> str:
    """`become billing(plan)` gives the variable of that name."""
    assert isinstance(value, ast.Name)
    return value.name


def describe(outer: FunctionEmitter, decl: ast.MigrateDecl) -> MigrationDef:
    tables = outer.tables

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = outer.new(outer.module, f"migrate {decl.name.name}")
        inner.at(decl)
        functions.parameters(inner, decl.params)
        inner.block(decl.body)
        inner.code.emit(
            Op.FAIL, tables.constant(f"the migration of {decl.name.name} became no stage")
        )
        return inner.finished(len(decl.params))

    params = tuple(
        FieldDef(
            parameter.name.name,
            parameter.name.name,
            outer.term(_written(outer.facts, parameter.type)),
            tables.default(parameter.default, outer.module),
        )
        for parameter in decl.params
    )
    return MigrationDef(decl.name.name, params, tables.function(decl, job))


def _written(facts: Facts, node: ast.TypeNode) -> Type:
    """The type a node says: a migration has no signature, its names are in the facts."""
    match node:
        case ast.OptionType(inner=inner):
            return option_of(_written(facts, inner))
        case ast.TupleType(items=(item,)):
            return _written(facts, item)
        case ast.TupleType(items=items):
            return Tup(tuple(_written(facts, item) for item in items))
        case ast.FnType(params=params, result=result):
            return Fn(tuple(_written(facts, each) for each in params), _written(facts, result))
        case ast.NamedType(name=name, args=args):
            arguments = tuple(_written(facts, each) for each in args)
            match facts.uses[name]:
                case StructSymbol(qualified=qualified) | EnumSymbol(qualified=qualified):
                    return Con(qualified, arguments)
                case FlowSymbol(qualified=qualified):
                    return FlowRef(qualified)
                case _:
                    return Con(name.name, arguments)
