"""Types as they are written in one module: by the names that it declares or imports.

A struct of another module that is imported whole is written with that module's name
(`http.Response`); one whose name the module does not have, or has for something else, cannot be
written there, nor can a type that has no notation.
"""

from __future__ import annotations

from collections.abc import Iterable

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.scope import ModuleScope
from qoqi.compiler.names.symbols import ModuleSymbol
from qoqi.compiler.types.model import Con, FlowRef, Fn, Param, Tup, Type


def spelled(snapshot: Snapshot, module: str, type_: Type) -> str | None:
    """A type as `module` can write it; None if it cannot."""
    return _spelled(snapshot.program.scopes[module], type_)


def _spelled(scope: ModuleScope, type_: Type) -> str | None:
    match type_:
        case Con("Option", (inner,)):
            text = _spelled(scope, inner)
            # `T??` and `fn() -> T?` would be other types.
            plain = not isinstance(inner, Fn) and not (text or "").endswith("?")
            return f"{text}?" if text is not None and plain else None
        case Con(name, args):
            short, items = _named(scope, name), _all(scope, args)
            if short is None or items is None:
                return None
            return f"{short}<{', '.join(items)}>" if items else short
        case Tup(each):
            items = _all(scope, each)
            return f"({', '.join(items)})" if items is not None else None
        case Fn(params, result):
            items, back = _all(scope, params), _spelled(scope, result)
            return f"fn({', '.join(items)}) -> {back}" if items is not None and back else None
        case Param(name=name):
            return name
        case FlowRef(name):
            return _named(scope, name)
        case _:
            return None


def _all(scope: ModuleScope, types: Iterable[Type]) -> list[str] | None:
    found = [_spelled(scope, each) for each in types]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def _named(scope: ModuleScope, qualified: str) -> str | None:
    """The name of a struct, enum or flow; one of the language or its prelude has no module."""
    module, _, short = qualified.rpartition(".")
    if not module:
        own = scope.own(short)
        return short if own is None or getattr(own, "qualified", "") == qualified else None
    for bound, symbol in [*scope.names.items(), *scope.imports.items()]:
        if getattr(symbol, "qualified", "") == qualified:
            return bound
    for bound, symbol in scope.imports.items():
        if isinstance(symbol, ModuleSymbol) and symbol.name == module:
            return f"{bound}.{short}"
    return None
