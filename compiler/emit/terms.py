"""Types as the chunk writes them: terms, and the definitions of the structs and enums they name.

A declared type gets its number when a term or an instruction first reaches it; its definition,
which may name itself and others, is written afterwards. Inside a definition a type parameter is
its position; in code there are none, since a function that needs its types at run time is emitted
once per set of them (`generics`).
"""

from __future__ import annotations

from collections.abc import Mapping

from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.names.symbols import EnumSymbol, StructSymbol, VariantSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.model import Con, FlowRef, Fn, NeverType, Param, Tup, Type
from qoqi.vm.bytecode.chunk import FieldDef, Term, TypeDef, VariantDef

_NONE: Mapping[Type, Term] = {}


def term(tables: Tables, type_: Type, params: Mapping[Type, Term] = _NONE) -> Term:
    """The term of a type; `params` says what each type parameter in scope becomes."""
    match type_:
        case Param():
            return params[type_]
        case Tup(items):
            return ("Tuple", *(term(tables, item, params) for item in items))
        case Fn(arguments, result):
            return (
                "Fn",
                tuple(term(tables, argument, params) for argument in arguments),
                term(tables, result, params),
            )
        case NeverType():
            return "Never"
        case Con("Instance", (FlowRef(flow),)):
            return ("Instance", flow)
        case Con(name, arguments):
            terms = tuple(term(tables, argument, params) for argument in arguments)
            checked = tables.checked
            if name in checked.structs:
                return ("struct", struct_index(tables, checked.structs[name]), *terms)
            if name in checked.enums:
                return ("enum", enum_index(tables, checked.enums[name]), *terms)
            return (name, *terms) if terms else name
        case _:
            raise AssertionError(f"a type without a term: {type_}")


def reach(tables: Tables, type_: Type) -> None:
    """Puts the declared types in `type_` into the chunk: a native or the runtime will make them."""
    match type_:
        case Tup(items):
            for item in items:
                reach(tables, item)
        case Con(name, arguments):
            if name in tables.checked.structs:
                struct_index(tables, tables.checked.structs[name])
            elif name in tables.checked.enums:
                enum_index(tables, tables.checked.enums[name])
            for argument in arguments:
                reach(tables, argument)
        case _:
            pass


def struct_index(tables: Tables, symbol: StructSymbol) -> int:
    return tables.type(symbol.qualified, lambda tables: _struct(tables, symbol))


def enum_index(tables: Tables, symbol: EnumSymbol) -> int:
    return tables.type(symbol.qualified, lambda tables: _enum(tables, symbol))


def variant_index(tables: Tables, symbol: VariantSymbol) -> int:
    return tables.variant(enum_index(tables, symbol.enum), symbol.index)


def prelude_variant(tables: Tables, enum: str, variant: str) -> int:
    """`Option.Some`, `Result.Ok` and their like, by name."""
    symbol = tables.checked.enums[enum]
    names = [declared.name.name for declared in symbol.decl.variants]
    return tables.variant(enum_index(tables, symbol), names.index(variant))


def _struct(tables: Tables, symbol: StructSymbol) -> TypeDef:
    own = tables.checked.struct_fields[symbol]
    params = _positions(symbol.decl.type_params, [type_ for _, type_ in own])
    fields = tuple(
        FieldDef(
            name,
            declared.json_name or name,
            term(tables, type_, params),
            tables.default(declared.default, symbol.module),
        )
        for (name, type_), declared in zip(own, symbol.decl.fields, strict=True)
    )
    return TypeDef(symbol.qualified, len(symbol.decl.type_params), fields, None)


def _enum(tables: Tables, symbol: EnumSymbol) -> TypeDef:
    variants: list[VariantDef] = []
    for index, declared in enumerate(symbol.decl.variants):
        name = declared.name.name
        fields: tuple[FieldDef, ...] = ()
        if declared.params:
            variant = tables.variant_symbols[symbol.qualified, index]
            signature = tables.checked.signatures[variant]
            types = [type_ for _, type_, _ in signature.params]
            params = _positions(symbol.decl.type_params, types)
            fields = tuple(
                FieldDef(
                    parameter.name.name,
                    parameter.name.name,
                    term(tables, type_, params),
                    tables.default(parameter.default, symbol.module),
                )
                for parameter, type_ in zip(declared.params, types, strict=True)
            )
        variants.append(VariantDef(name, declared.json_name or name, fields))
    return TypeDef(symbol.qualified, len(symbol.decl.type_params), None, tuple(variants))


def _positions(declared: tuple[ast.TypeParam, ...], types: list[Type]) -> dict[Type, Term]:
    """What stands for each type parameter: its position among those declared."""
    names = [parameter.name.name for parameter in declared]
    found: dict[Type, Term] = {}
    for type_ in types:
        for param in parameters_in(type_):
            found[param] = ("param", names.index(param.name))
    return found


def parameters_in(type_: Type) -> list[Param]:
    """The type parameters a type mentions, in order."""
    match type_:
        case Param():
            return [type_]
        case Tup(items) | Con(_, items):
            return [param for item in items for param in parameters_in(item)]
        case Fn(arguments, result):
            parts = (*arguments, result)
            return [param for item in parts for param in parameters_in(item)]
        case _:
            return []


def substituted(type_: Type, types: Mapping[Type, Type]) -> Type:
    """The type with its parameters replaced."""
    match type_:
        case Param():
            return types.get(type_, type_)
        case Tup(items):
            return Tup(tuple(substituted(item, types) for item in items))
        case Con(name, items):
            return Con(name, tuple(substituted(item, types) for item in items))
        case Fn(arguments, result):
            return Fn(
                tuple(substituted(item, types) for item in arguments), substituted(result, types)
            )
        case _:
            return type_
