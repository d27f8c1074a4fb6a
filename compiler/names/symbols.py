"""Symbols: what a name can stand for.

A symbol is made once per declaration and compares by identity. The resolver makes them, the checker
fills in nothing (types of declarations live in `types.signatures`), the emitter and the language
server read them. `name` is what the user wrote; `qualified` is `module.name` (`module.Flow.name`
for a member of a flow), the prelude's without module.
"""

from __future__ import annotations

from typing import TypeAlias

from qoqi.compiler.frozen import Frozen, frozen
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast


@frozen
class ModuleSymbol(Frozen):
    name: str
    path: str


@frozen
class FnSymbol(Frozen):
    """A function; `flow` is the flow it is a member of. `native` as in the declaration."""

    name: str
    qualified: str
    module: str
    decl: ast.FnDecl
    flow: FlowSymbol | None = None

    @property
    def native(self) -> str | None:
        return self.decl.native

    @property
    def is_method(self) -> bool:
        return bool(self.decl.params) and self.decl.params[0].name.name == "self"

    @property
    def mutates_self(self) -> bool:
        return self.is_method and self.decl.params[0].mutable


@frozen
class StepSymbol(Frozen):
    """A step; `group` has the clauses of the `steps` group around it."""

    name: str
    qualified: str
    module: str
    decl: ast.StepDecl
    group: tuple[ast.StepClause, ...] = ()
    flow: FlowSymbol | None = None


@frozen
class ConstSymbol(Frozen):
    name: str
    qualified: str
    module: str
    decl: ast.ConstDecl
    flow: FlowSymbol | None = None


@frozen
class StructSymbol(Frozen):
    name: str
    qualified: str
    module: str
    decl: ast.StructDecl


@frozen
class EnumSymbol(Frozen):
    name: str
    qualified: str
    module: str
    decl: ast.EnumDecl


@frozen
class VariantSymbol(Frozen):
    name: str
    enum: EnumSymbol
    index: int

    @property
    def decl(self) -> ast.VariantDecl:
        return self.enum.decl.variants[self.index]


@frozen
class FlowSymbol(Frozen):
    name: str
    qualified: str
    module: str
    decl: ast.FlowDecl


@frozen
class FlowSlotSymbol(Frozen):
    """A parameter (`parameter` true) or field of a flow; `index` counts parameters, then fields."""

    name: str
    flow: FlowSymbol
    index: int
    parameter: bool
    decl: ast.ParamDecl | ast.FieldDecl


@frozen
class ChannelSymbol(Frozen):
    name: str
    flow: FlowSymbol
    index: int
    decl: ast.ChannelDecl


@frozen
class ViewSymbol(Frozen):
    name: str
    flow: FlowSymbol
    index: int
    decl: ast.ViewDecl


@frozen
class LocalSymbol(Frozen):
    """A local variable, parameter or pattern name; `mutable` if declared with `var`."""

    name: str
    span: Span
    mutable: bool
    kind: str  # let, var, param, pattern, loop, it


@frozen
class BuiltinTypeSymbol(Frozen):
    """`Int`, `List`, `Instance`, …: a type of the language itself, with its number of arguments."""

    name: str
    arity: int


Symbol: TypeAlias = (
    ModuleSymbol
    | FnSymbol
    | StepSymbol
    | ConstSymbol
    | StructSymbol
    | EnumSymbol
    | VariantSymbol
    | FlowSymbol
    | FlowSlotSymbol
    | ChannelSymbol
    | ViewSymbol
    | LocalSymbol
    | BuiltinTypeSymbol
)


def native_name(symbol: FnSymbol) -> str:
    """The name of a native function in the machine's table, or of the operation it asks for.

    `Type.fn` for a method by its `self` and for a function of a type, else `module.fn` with the
    last part of the module's name: `List.append`, `Int.parse`, `text.matches`, `http.request`. The
    prelude's functions have their bare names.
    """
    if symbol.decl.owner is not None:
        return f"{symbol.decl.owner.name}.{symbol.name}"
    if symbol.is_method:
        return f"{self_head(symbol.decl)}.{symbol.name}"
    if symbol.module == "std.prelude":
        return symbol.name
    return f"{symbol.module.rsplit('.', 1)[-1]}.{symbol.name}"


def self_head(decl: ast.FnDecl) -> str:
    """The type a method's `self` is written with, without arguments."""
    match decl.params[0].type:
        case ast.NamedType(name=name):
            return name.name
        case ast.OptionType():
            return "Option"
        case ast.TupleType():
            return "Tuple"
        case ast.FnType():
            return "Fn"
