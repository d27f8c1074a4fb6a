"""Items of a completion, as they are made of symbols.

An item's `rank` is the digit that sorts it: 0 has the wanted type or is in place here, 1 is a
variable, 2 of the flow, 3 of the module, 4 known everywhere, 5 needs an import that comes with it,
6 a keyword.
"""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.diagnostics import Edit
from qoqi.compiler.names.scope import ModuleScope, is_public
from qoqi.compiler.names.symbols import (
    BuiltinTypeSymbol,
    ChannelSymbol,
    ConstSymbol,
    EnumSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    FnSymbol,
    LocalSymbol,
    ModuleSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
    VariantSymbol,
    ViewSymbol,
)
from qoqi.compiler.types.context import Program
from qoqi.compiler.types.facts import FnSignature
from qoqi.compiler.types.model import ERROR, Con, ErrorType, NeverType, Tup, Type, show
from qoqi.lsp.names import Key, key_of
from qoqi.lsp.wording import signature_text
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """`kind` is a word of the protocol's `CompletionItemKind`; `insert` is what is written, with
    places to fill in if `snippet`. `key` leads to the documentation, `edits` are the import."""

    label: str
    kind: str
    detail: str = ""
    insert: str = ""
    snippet: bool = False
    rank: int = 3
    key: Key | None = None
    edits: tuple[Edit, ...] = ()
    module: str = ""


KINDS: dict[type, str] = {
    ConstSymbol: "Constant",
    StructSymbol: "Struct",
    EnumSymbol: "Enum",
    FlowSymbol: "Class",
    FlowSlotSymbol: "Property",
    ChannelSymbol: "Event",
    ViewSymbol: "Method",
    FnSymbol: "Function",
    StepSymbol: "Function",
    VariantSymbol: "EnumMember",
    LocalSymbol: "Variable",
    BuiltinTypeSymbol: "Class",
    ModuleSymbol: "Module",
}


def item_of(program: Program, symbol: Symbol, rank: int, want: Type | None) -> Item:
    name = symbol.name
    kind = KINDS[type(symbol)]
    key = key_of(symbol, "")
    match symbol:
        case FnSymbol() | StepSymbol() | VariantSymbol():
            signature = program.signatures.get(symbol)
            if signature is None:
                return Item(name, kind, "", name, False, rank, key)
            if isinstance(symbol, FnSymbol) and symbol.is_method:
                return method_of(program, symbol, rank, want)
            bare = isinstance(symbol, VariantSymbol) and symbol.decl.params is None
            insert = name if bare else f"{name}($1)" if signature.params else f"{name}()"
            detail = signature_text(name, signature) if not bare else show(signature.result)
            if isinstance(symbol, StepSymbol):
                detail = f"step {detail}"
            fits = fit(signature.result, want, rank)
            return Item(name, kind, detail, insert, "$" in insert, fits, key)
        case ConstSymbol() | FlowSlotSymbol():
            type_ = program.declared.get(symbol, ERROR)
            return Item(name, kind, show(type_), name, False, fit(type_, want, rank), key)
        case ViewSymbol():
            type_ = program.declared.get(symbol, ERROR)
            return Item(name, kind, f"view -> {show(type_)}", f"{name}()", False, rank, key)
        case ChannelSymbol():
            detail = f"channel of {show(program.declared.get(symbol, ERROR))}"
            return Item(name, kind, detail, name, False, rank, key)
        case StructSymbol():
            fields = program.struct_fields.get(symbol, ())
            wanted = isinstance(want, Con) and want.name == symbol.qualified
            shown = ", ".join(f"{field}: {show(type_)}" for field, type_ in fields)
            insert = f"{name} {{ $1 }}" if wanted else name
            at = 0 if wanted else rank
            return Item(name, kind, f"{name} {{ {shown} }}", insert, wanted, at, key)
        case _:
            return Item(name, kind, kind.lower(), name, False, rank, key)


def method_of(program: Program, symbol: FnSymbol, rank: int, want: Type | None) -> Item:
    signature = program.signatures[symbol]
    rest = FnSignature(signature.type_params, signature.params[1:], signature.result)
    insert = f"{symbol.name}($1)" if rest.params else f"{symbol.name}()"
    detail = signature_text(symbol.name, rest)
    fits = fit(signature.result, want, rank)
    return Item(
        symbol.name,
        "Method",
        detail,
        insert,
        bool(rest.params),
        fits,
        key_of(symbol, ""),
        module=symbol.module,
    )


def fit(type_: Type, want: Type | None, rank: int) -> int:
    """0 for what has the wanted type, as far as it is known."""
    if want is None or isinstance(want, ErrorType | NeverType) or want == Tup():
        return rank
    if type_ == want:
        return 0
    if isinstance(type_, Con) and isinstance(want, Con) and type_.name == want.name:
        return 0 if any(isinstance(arg, ErrorType) for arg in want.args) else rank
    return rank


def public_symbols(scope: ModuleScope, here: ModuleScope) -> Iterator[Symbol]:
    for name in scope.public_names():
        symbol = scope.public(name)
        if symbol is not None and (scope.package == here.package or is_public(symbol)):
            yield symbol
