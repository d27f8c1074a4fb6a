"""Types as they are written, and the signatures of declarations.

`TypeReader` turns a type node into a type: it knows the module's names and the type parameters in
scope. Signatures are read before any body; what they demand of types (keys of maps have an order)
is looked at when all declarations are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field

from qoqi.compiler import foreign
from qoqi.compiler.diagnostics import Edit, Fix, Label, error
from qoqi.compiler.names.imports import import_edit, private
from qoqi.compiler.names.resolver import declaration_ident
from qoqi.compiler.names.scope import ModuleScope, is_public
from qoqi.compiler.names.symbols import (
    BuiltinTypeSymbol,
    EnumSymbol,
    FlowSymbol,
    FnSymbol,
    ModuleSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
    VariantSymbol,
)
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.bounds import BOUNDS, satisfies
from qoqi.compiler.types.context import Program
from qoqi.compiler.types.facts import FnSignature
from qoqi.compiler.types.model import (
    ERROR,
    NEVER,
    UNIT,
    Con,
    FlowRef,
    Fn,
    Param,
    Tup,
    Type,
    option_of,
    show,
)
from qoqi.vm.dataclass import dataclass

BUILTIN_TYPES: dict[str, BuiltinTypeSymbol] = {
    name: BuiltinTypeSymbol(name, arity)
    for name, arity in {
        "Bool": 0,
        "Int": 0,
        "Decimal": 0,
        "Float": 0,
        "String": 0,
        "Bytes": 0,
        "Duration": 0,
        "Time": 0,
        "Date": 0,
        "Never": 0,
        "List": 1,
        "Set": 1,
        "Range": 1,
        "Map": 2,
        "Channel": 1,
        "Task": 1,
        "Request": 2,
        "Instance": 1,
        "Handle": 1,
    }.items()
}

_KEYED = {"Set": 0, "Map": 0}


@dataclass(slots=True)
class TypeReader:
    """Reads type nodes of one module; `params` are the type parameters in scope."""

    program: Program
    scope: ModuleScope
    params: Mapping[str, Param] = field(default_factory=dict)
    demands: list[tuple[ModuleScope, ast.Node, Type, str]] = field(default_factory=list)

    def read(self, node: ast.TypeNode) -> Type:
        match node:
            case ast.NamedType():
                return self._named(node)
            case ast.OptionType():
                return self._option(node, self.read(node.inner))
            case ast.TupleType(items=items):
                if len(items) == 1:
                    return self.read(items[0])
                return Tup(tuple(self.read(item) for item in items))
            case ast.FnType():
                return Fn(tuple(self.read(p) for p in node.params), self.read(node.result))
        return ERROR

    def optional(self, node: ast.TypeNode | None) -> Type:
        return UNIT if node is None else self.read(node)

    def _named(self, node: ast.NamedType) -> Type:
        name = node.name.name
        if not name:
            return ERROR
        if node.module is None and name in self.params:
            return self.params[name]
        symbol = self.find(node.module, node.name)
        if symbol is None:
            for arg in node.args:
                self.read(arg)
            return ERROR
        self.program.facts[self.scope.name].uses[node.name] = symbol
        match symbol:
            case BuiltinTypeSymbol(name="Instance" | "Handle"):
                return self._instance(node, symbol)
            case BuiltinTypeSymbol(arity=arity):
                return self._apply(node, name, arity)
            case StructSymbol() | EnumSymbol():
                return self._apply(node, symbol.qualified, len(symbol.decl.type_params))
            case FlowSymbol():
                text = self.scope.text[node.span.start : node.span.end]
                self._error(
                    "E0316",
                    node,
                    f"`{name}` is a flow, and a flow is no type",
                    [f"A started instance of it is an `Instance<{name}>`."],
                    [Fix("Take an instance", (self._edit(node, f"Instance<{text}>"),))],
                )
            case _:
                pass
        return ERROR

    def _option(self, node: ast.TypeNode, inner: Type) -> Type:
        if isinstance(inner, Con) and inner.name == "Option":
            self._error("E0316", node, "an option of an option cannot be told from one", [])
            return inner
        return option_of(inner)

    def _apply(self, node: ast.NamedType, name: str, arity: int) -> Type:
        args = tuple(self.read(arg) for arg in node.args)
        if len(args) != arity:
            shown = node.name.name
            wanted = (
                "no type arguments" if arity == 0 else f"{arity} type argument{'s' * (arity > 1)}"
            )
            self._error("E0316", node, f"`{shown}` takes {wanted}, found {len(args)}", [])
            return Con(name, (*args, *[ERROR] * arity)[:arity])
        if name == "Never":
            return NEVER
        if name == "Option":
            return self._option(node, args[0])
        if name in _KEYED:
            what = "a key of a map" if name == "Map" else "an item of a set"
            self.demands.append((self.scope, node.args[0], args[0], what))
        return Con(name, args)

    def _instance(self, node: ast.NamedType, symbol: BuiltinTypeSymbol) -> Type:
        name = "test.Handle" if symbol.name == "Handle" else "Instance"
        arg = node.args[0] if len(node.args) == 1 else None
        if not isinstance(arg, ast.NamedType) or arg.args:
            self._error(
                "E0316", node, f"`{symbol.name}` names one flow: `{symbol.name}<Order>`", []
            )
            return ERROR
        flow = self.find(arg.module, arg.name)
        if flow is None:
            return ERROR
        self.program.facts[self.scope.name].uses[arg.name] = flow
        if not isinstance(flow, FlowSymbol):
            self._error(
                "E0316", arg, f"`{arg.name.name}` is no flow, and only flows are started", []
            )
            return ERROR
        return Con(name, (FlowRef(flow.qualified),))

    def find(self, module: ast.Ident | None, ident: ast.Ident) -> Symbol | None:
        """The type or flow a name stands for; reports E0202 where there is none."""
        name = ident.name
        program, scope = self.program, self.scope
        if module is None:
            found = scope.own(name)
            prelude = program.prelude()
            if found is None and prelude is not None:
                found = prelude.names.get(name)
            if found is None:
                found = BUILTIN_TYPES.get(name)
            if found is None and name not in scope.broken:
                self._unknown(ident)
            elif found is not None and not is_type(found):
                self._error("E0202", ident, f"`{name}` is no type", [])
                return None
            return found
        target = scope.imports.get(module.name)
        if module.name in scope.broken:
            return None
        if not isinstance(target, ModuleSymbol):
            fixes = module_fixes(program, scope, module.name)
            near = nearest(module.name, scope.imports)
            fixes += [Fix(f"Change to `{name}`", (self._edit(module, name),)) for name in near]
            message = f"no module `{module.name}` is imported here"
            self._error("E0202", module, message, [], fixes)
            return None
        program.facts[scope.name].uses[module] = target
        other = program.scopes[target.name]
        found = other.public(name)
        if found is None or not is_type(found):
            near = nearest(name, [n for n in other.public_names() if n[:1].isupper()])
            fixes = [Fix(f"Change to `{n}`", (self._edit(ident, n),)) for n in near]
            self._error("E0204", ident, f"`{other.name}` declares no type `{name}`", [], fixes)
            return None
        if other.package != scope.package and not is_public(found):
            program.report(private(scope.path, ident, found, other))
        return found

    def _unknown(self, ident: ast.Ident) -> None:
        name, scope = ident.name, self.scope
        fixes = import_fixes(self.program, scope, ident, is_type)
        prelude = self.program.prelude()
        known = [n for n in (*scope.names, *scope.imports, *self.params) if n[:1].isupper()]
        known += BUILTIN_TYPES
        if prelude is not None:
            known += [n for n in prelude.names if n[:1].isupper()]
        meant = foreign.TYPES.get(name)
        near = [meant] if meant is not None else nearest(name, known)
        fixes += [Fix(f"Change to `{n}`", (self._edit(ident, n),)) for n in near]
        notes: list[str] = []
        if len(name) == 1 and not fixes:
            notes = [f"A type parameter is declared: `fn name<{name}>(…)`, `struct Name<{name}>`."]
        self._error("E0202", ident, f"there is no type `{name}` here", notes, fixes)

    def _edit(self, node: ast.Node, text: str) -> Edit:
        return Edit(self.scope.path, node.span, text)

    def _error(
        self,
        code: str,
        node: ast.Node,
        message: str,
        notes: Iterable[str],
        fixes: Iterable[Fix] = (),
    ) -> None:
        self.program.report(
            error(code, self.scope.path, node.span, message, notes=notes, fixes=fixes)
        )


def is_type(symbol: Symbol) -> bool:
    return isinstance(symbol, StructSymbol | EnumSymbol | FlowSymbol | BuiltinTypeSymbol)


def import_fixes(
    program: Program, scope: ModuleScope, ident: ast.Ident, fits: Callable[[Symbol], bool]
) -> list[Fix]:
    """Imports that would bring an unknown name, from modules that declare it."""
    fixes: list[Fix] = []
    for other in program.scopes.values():
        symbol = other.names.get(ident.name)
        if symbol is None or other.name in (scope.name, "std.prelude"):
            continue
        if other.package != scope.package and not is_public(symbol):
            continue
        if not fits(symbol):
            continue
        shown = other.name.removeprefix(f"{scope.package}.") if scope.package else other.name
        last = shown.rsplit(".", 1)[-1]
        if other.name in scope.imported and last in scope.imports:
            edits = (Edit(scope.path, ident.span, f"{last}.{ident.name}"),)
            fixes.append(Fix(f"Write `{last}.{ident.name}`", edits))
            continue
        both = (
            import_edit(scope, f"import {shown}"),
            Edit(scope.path, ident.span, f"{last}.{ident.name}"),
        )
        fixes.append(Fix(f"Import `{shown}` and write `{last}.{ident.name}`", both))
    return sorted(fixes, key=lambda fix: fix.title)[:3]


def module_fixes(program: Program, scope: ModuleScope, name: str) -> list[Fix]:
    """Imports of the modules a name may mean: `http.get` without `import std.http`."""
    fixes: list[Fix] = []
    for module in sorted(program.scopes):
        if module.rsplit(".", 1)[-1] == name and module != scope.name:
            shown = module.removeprefix(f"{scope.package}.") if scope.package else module
            fixes.append(Fix(f"Import `{shown}`", (import_edit(scope, f"import {shown}"),)))
    return fixes


def read_type_params(
    program: Program, scope: ModuleScope, owner: str, nodes: Iterable[ast.TypeParam]
) -> dict[str, Param]:
    """The type parameters of a declaration, by name."""
    params: dict[str, Param] = {}
    for node in nodes:
        bound = node.bound.name if node.bound is not None else None
        if node.bound is not None and bound and bound not in BOUNDS:
            near = nearest(bound, BOUNDS)
            program.report(
                error(
                    "E0202",
                    scope.path,
                    node.bound.span,
                    f"`{bound}` is no bound of a type parameter",
                    notes=["The bounds are `Data`, `Ordered` and `Number`."],
                    fixes=[
                        Fix(f"Change to `{n}`", (Edit(scope.path, node.bound.span, n),))
                        for n in near
                    ],
                )
            )
            bound = None
        params.setdefault(node.name.name, Param(node.name.name, owner, bound or None))
    return params


def read_types(program: Program, scope: ModuleScope, demands: list[Demand]) -> None:
    """Structs and enums of a module: the types of their fields."""
    for symbol in scope.names.values():
        if isinstance(symbol, StructSymbol):
            params = read_type_params(program, scope, symbol.qualified, symbol.decl.type_params)
            program.params[symbol] = tuple(params.values())
            reader = TypeReader(program, scope, params, demands)
            fields = tuple((f.name.name, reader.read(f.type)) for f in symbol.decl.fields)
            program.struct_fields[symbol] = fields
        elif isinstance(symbol, EnumSymbol):
            _read_enum(program, scope, symbol, demands)


def declare_types(program: Program, scope: ModuleScope) -> None:
    """Enters a module's structs, enums and flows in the tables, before any type is read."""
    for symbol in scope.names.values():
        match symbol:
            case StructSymbol():
                program.structs[symbol.qualified] = symbol
            case EnumSymbol():
                program.enums[symbol.qualified] = symbol
                variants: dict[str, VariantSymbol] = {}
                for index, variant in enumerate(symbol.decl.variants):
                    name = variant.name.name
                    variants.setdefault(name, VariantSymbol(name, symbol, index))
                program.variants[symbol.qualified] = variants
            case FlowSymbol():
                program.flows[symbol.qualified] = symbol
            case _:
                pass


def _read_enum(
    program: Program, scope: ModuleScope, symbol: EnumSymbol, demands: list[Demand]
) -> None:
    params = read_type_params(program, scope, symbol.qualified, symbol.decl.type_params)
    program.params[symbol] = tuple(params.values())
    reader = TypeReader(program, scope, params, demands)
    result = Con(symbol.qualified, tuple(params.values()))
    for variant in program.variants[symbol.qualified].values():
        fields = tuple(_param(reader, p) for p in variant.decl.params or ())
        program.signatures[variant] = FnSignature(tuple(params.values()), fields, result)


def _param(reader: TypeReader, decl: ast.ParamDecl) -> tuple[str, Type, bool]:
    return decl.name.name, reader.read(decl.type), decl.default is not None


def read_functions(program: Program, scope: ModuleScope, demands: list[Demand]) -> None:
    """Signatures of a module's functions, steps and flows; the tables of methods."""
    for function in scope.functions:
        _read_function(program, scope, function, demands)
        _enter_method(program, scope, function)
    for step in scope.steps:
        _read_step(program, scope, step, demands)
    for inner in scope.flows.values():
        flow = inner.symbol
        reader = TypeReader(program, scope, {}, demands)
        params = tuple(_param(reader, p) for p in flow.decl.params)
        result = reader.optional(flow.decl.result)
        program.signatures[flow] = FnSignature((), params, result)
        for slot, (_, type_, _) in zip(inner.slots, params, strict=False):
            program.declared[slot] = type_
        for channel in inner.channels:
            program.declared[channel] = reader.read(channel.decl.type)
            if channel.decl.answers is not None:
                program.answers[channel] = reader.read(channel.decl.answers)
        for view in inner.views:
            program.declared[view] = reader.read(view.decl.result)
        for function in inner.functions:
            _read_function(program, scope, function, demands)
        for step in inner.steps:
            _read_step(program, scope, step, demands)


def _read_function(
    program: Program, scope: ModuleScope, symbol: FnSymbol, demands: list[Demand]
) -> None:
    decl = symbol.decl
    if decl.native is not None and scope.package != "std":
        program.report(
            error(
                "E0221",
                scope.path,
                decl.name.span,
                f"`{symbol.name}` is declared `native`, and only the standard library has natives",
                notes=["Give it a body, or make it an `extern step`."],
            )
        )
    params = read_type_params(program, scope, symbol.qualified, decl.type_params)
    reader = TypeReader(program, scope, params, demands)
    program.signatures[symbol] = FnSignature(
        tuple(params.values()),
        tuple(_param(reader, p) for p in decl.params),
        reader.optional(decl.result),
    )


def _read_step(
    program: Program, scope: ModuleScope, symbol: StepSymbol, demands: list[Demand]
) -> None:
    reader = TypeReader(program, scope, {}, demands)
    decl = symbol.decl
    program.signatures[symbol] = FnSignature(
        (), tuple(_param(reader, p) for p in decl.params), reader.optional(decl.result)
    )


def _enter_method(program: Program, scope: ModuleScope, symbol: FnSymbol) -> None:
    decl = symbol.decl
    if decl.owner is not None:
        reader = TypeReader(program, scope)
        owner = reader.find(None, decl.owner)
        if owner is None:
            return
        name = owner.name if isinstance(owner, BuiltinTypeSymbol) else _qualified(owner)
        scope.owned.setdefault((name, symbol.name), symbol)
        return
    if not symbol.is_method:
        return
    head = head_of(program.signatures[symbol].params[0][1])
    if head is None:
        return
    others = scope.methods.setdefault((head, symbol.name), [])
    others.append(symbol)
    if len(others) > 1:
        first = declaration_ident(others[0])
        labels = [Label(scope.path, first.span, "the first is here")] if first is not None else []
        shown = show(program.signatures[symbol].params[0][1])
        program.report(
            error(
                "E0213",
                scope.path,
                decl.name.span,
                f"a second method `{symbol.name}` of `{shown}`",
                labels=labels,
                notes=["Methods are told apart by the head type of `self` and their name."],
            )
        )


def _qualified(symbol: Symbol) -> str:
    return str(getattr(symbol, "qualified", symbol.name))


def head_of(type_: Type) -> str | None:
    """By what a method of a type is known; `*` for a method of every type."""
    match type_:
        case Con(name=name):
            return name
        case Tup():
            return "Tuple"
        case Fn():
            return "Fn"
        case Param():
            return "*"
        case _:
            pass
    return None


Demand = tuple[ModuleScope, ast.Node, Type, str]


def check_demands(program: Program, demands: list[Demand]) -> None:
    """Keys of maps and items of sets are ordered data."""
    for scope, node, type_, what in demands:
        if not satisfies(program, type_, "Ordered"):
            notes = [
                "Numbers, strings, durations, times, dates, enums without fields, instances and "
                "tuples of them have an order."
            ]
            if isinstance(type_, Param):
                notes = [f"Say that it has one: `<{type_.name}: Ordered>`."]
            program.report(
                error(
                    "E0314",
                    scope.path,
                    node.span,
                    f"{what} has an order, and `{show(type_)}` has none",
                    notes=notes,
                )
            )
