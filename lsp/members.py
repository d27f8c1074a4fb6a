"""What comes behind a dot: of a module, a type, a word of the language, a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.imports import import_edit
from qoqi.compiler.names.symbols import (
    EnumSymbol,
    FlowSymbol,
    FnSymbol,
    ModuleSymbol,
    StepSymbol,
    Symbol,
)
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.builtin_names import builtin_methods
from qoqi.compiler.types.builtins import CLOCK_NAMES, FLOW_NAMES, TASK_NAMES
from qoqi.compiler.types.context import Body
from qoqi.compiler.types.facts import FnSignature
from qoqi.compiler.types.members import (
    find_method,
    method_names,
    receiver_head,
)
from qoqi.compiler.types.model import ERROR, Con, ErrorType, FlowRef, Fn, NeverType, Tup, Type, show
from qoqi.lsp import builtins
from qoqi.lsp.items import Item, fit, item_of, method_of, public_symbols
from qoqi.lsp.probe import Seen


def members(seen: Seen) -> Iterator[Item]:
    body, base = seen.body, seen.base
    if isinstance(base, str):
        yield from _namespace(base, body)
    elif isinstance(base, ModuleSymbol):
        scope = body.program.scopes.get(base.name)
        for symbol in public_symbols(scope, body.scope) if scope is not None else ():
            yield item_of(body.program, symbol, 3, seen.want)
    elif base is not None:
        yield from _of_type(seen, base)
    elif seen.base_type is not None:
        yield from _of_value(seen, seen.base_type)


def _namespace(name: str, body: Body) -> Iterator[Item]:
    names = {"flow": FLOW_NAMES, "task": TASK_NAMES, "clock": CLOCK_NAMES}.get(name, ())
    in_step = isinstance(body.owner, StepSymbol)
    for word in names:
        full = f"{name}.{word}"
        rank = 0 if name != "flow" or in_step == (full in builtins.WORLDLY) else 3
        empty = builtins.signature(full).startswith(f"{full}()")
        yield Item(
            word,
            "Function",
            builtins.signature(full),
            f"{word}()" if empty else f"{word}($1)",
            not empty,
            rank,
            ("word", full),
        )


def _of_type(seen: Seen, base: Symbol) -> Iterator[Item]:
    body = seen.body
    program = body.program
    if isinstance(base, EnumSymbol):
        for variant in program.variants.get(base.qualified, {}).values():
            yield item_of(program, variant, 0, seen.want)
    if isinstance(base, FlowSymbol):
        signature = program.signatures.get(base, FnSignature((), (), ERROR))
        params = ", ".join(f"{name}: {show(type_)}" for name, type_, _ in signature.params)
        start = f'start("${{1:name}}"{", $2" if params else ""})'
        yield Item(
            "start",
            "Method",
            f"start(name: String, {params})",
            start,
            True,
            0,
            ("word", "instance.start"),
        )
        yield Item(
            "find", "Method", "find(name: String)", 'find("$1")', True, 1, ("word", "instance.find")
        )
    head = str(getattr(base, "qualified", base.name))
    declared = getattr(base, "module", None)
    places = [body.scope, program.prelude(), program.scopes.get(declared) if declared else None]
    for scope in places:
        for (owner, _), symbol in (scope.owned if scope is not None else {}).items():
            if owner == head:
                yield item_of(program, symbol, 1, seen.want)


def _of_value(seen: Seen, type_: Type) -> Iterator[Item]:
    body = seen.body
    program = body.program
    if isinstance(type_, ErrorType | NeverType):
        return
    if isinstance(type_, Con):
        yield from _fields_of(seen, type_)
    if isinstance(type_, Tup):
        for index, item in enumerate(type_.items):
            yield Item(str(index), "Field", show(item), rank=fit(item, seen.want, 1))
    shown = body.u.shown(type_)
    for name in builtin_methods(shown):
        owner = {"Outbox": "instance", "test.Handle": "instance"}.get(
            shown.name if isinstance(shown, Con) else "", _lower(shown)
        )
        yield Item(
            name, "Method", f"{name}(…)", f"{name}($1)", True, 0, ("word", f"{owner}.{name}")
        )
    head = receiver_head(body, type_) or ""
    for name in sorted(method_names(body, head)):
        method = find_method(body, head, ast.Ident(Span(0, 0), name))
        if method is not None:
            rank = 1 if method.decl.params[0].type and _head_is(method, type_) else 2
            yield method_of(program, method, rank, seen.want)
    if not isinstance(type_, Fn):
        yield Item(
            "toJson", "Method", "toJson() -> Json", "toJson()", False, 3, ("word", "data.toJson")
        )
    if type_ == Con("Json"):
        for name in ("decode", "tryDecode"):
            yield Item(name, "Method", f"{name}()", f"{name}()", False, 0, ("word", f"data.{name}"))


def _lower(type_: Type) -> str:
    return type_.name.lower() if isinstance(type_, Con) else ""


def _head_is(method: FnSymbol, type_: Type) -> bool:
    return isinstance(type_, Con) and method.module == type_.name.rpartition(".")[0]


def _fields_of(seen: Seen, type_: Con) -> Iterator[Item]:
    program = seen.body.program
    struct = program.structs.get(type_.name)
    if struct is not None:
        for name, field in program.struct_fields.get(struct, ()):
            yield Item(
                name,
                "Field",
                show(field),
                name,
                False,
                fit(field, seen.want, 1),
                ("field", struct.qualified, name),
            )
    if type_.name == "Request":
        yield Item("value", "Field", show(type_.args[0]), rank=0)
    match type_:
        case Con("Instance" | "test.Handle", (FlowRef(name),)):
            flow = program.flow_scope(program.flows[name])
            for channel in flow.channels:
                yield item_of(program, channel, 1, None)
            if type_.name == "test.Handle":
                for view in flow.views:
                    yield replace(item_of(program, view, 1, None), insert=view.name, snippet=False)
        case _:
            pass


def members_of_unimported(
    snapshot: Snapshot, seen: Seen, node: ast.FieldExpr | None
) -> Iterator[Item]:
    """`time.` where no `time` is known: what the module of that name has, with its import."""
    if seen.base is not None or node is None or not isinstance(node.base, ast.Name):
        return
    name = node.base.name
    if seen.body.look_up(name) is not None:
        return
    own = snapshot.program.scopes.get(seen.body.scope.name)
    for scope in snapshot.program.scopes.values():
        if scope.name.rsplit(".", 1)[-1] == name and own is not None and scope is not own:
            edit = import_edit(own, f"import {scope.name}")
            for symbol in public_symbols(scope, seen.body.scope):
                item = item_of(snapshot.program, symbol, 5, seen.want)
                yield replace(item, edits=(edit,), detail=f"{item.detail}   import {scope.name}")
