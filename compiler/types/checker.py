"""Checks a package: names, then types of declarations, then bodies.

    checked, diagnostics = check({parsed.file.module: parsed, …}, packages)

`packages` says which package each module belongs to ("" where it is left out): a package sees what
others declare with `pub`. Nothing here raises for any tree the parser gives; a tree with errors in
it is checked as far as it makes sense, and what a reported mistake leads to is not reported again.

The standard library is parsed and declared once per process (`standard_library`). The bodies of
its functions are checked only when a program needs them: a call puts the function on a list, and
before `check` ends all listed bodies, and those they call, have their facts. So the emitter finds
facts for every function that it can reach, and a program that uses ten functions pays for ten.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import field
from functools import cache
from typing import Any

from qoqi import stdlib
from qoqi.compiler.diagnostics import Diagnostic, sort
from qoqi.compiler.names.imports import follow
from qoqi.compiler.names.resolver import collect
from qoqi.compiler.names.symbols import (
    BuiltinTypeSymbol,
    ChannelSymbol,
    ConstSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    FnSymbol,
    LocalSymbol,
    ModuleSymbol,
    Symbol,
    VariantSymbol,
    ViewSymbol,
)
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.compiler.types.context import Program
from qoqi.compiler.types.declarations import (
    check_enum,
    check_function,
    check_module,
    check_struct,
    constant_type,
)
from qoqi.compiler.types.facts import Checked, Facts
from qoqi.compiler.types.signatures import (
    Demand,
    check_demands,
    declare_types,
    read_functions,
    read_types,
)
from qoqi.vm.dataclass import dataclass

STD = "std"


@dataclass(frozen=True, slots=True)
class Library:
    """The declared standard library; `done` are the functions whose bodies have facts."""

    program: Program
    done: set[FnSymbol] = field(default_factory=set)


@cache
def standard_library() -> Library:
    parsed = {source.module: parse(source) for source in stdlib.sources()}
    program = Program(constants=constant_type)
    for file in parsed.values():
        program.diagnostics += file.diagnostics
    _declare(program, parsed, dict.fromkeys(parsed, STD))
    for scope in program.scopes.values():
        for struct in program.structs.values():
            if struct.module == scope.name:
                check_struct(program, scope, struct)
        for enum in program.enums.values():
            if enum.module == scope.name:
                check_enum(program, scope, enum)
        for symbol in scope.names.values():
            if isinstance(symbol, ConstSymbol):
                constant_type(program, symbol)
    return Library(program)


def check(
    modules: Mapping[str, Parsed], packages: Mapping[str, str] | None = None
) -> tuple[Checked, list[Diagnostic]]:
    """The facts of a package, and what is wrong with its names and types."""
    program = check_program(modules, packages or {})
    return summary(program, modules), sort(program.diagnostics)


def check_program(
    modules: Mapping[str, Parsed],
    packages: Mapping[str, str],
    before: Program | None = None,
    *,
    only: Collection[str] | None = None,
    poll: Callable[[], None] | None = None,
) -> Program:
    """A program with these modules checked, and what was found in them.

    With the program `before`, only these modules are checked, and take the place of those of the
    same name. All others stay as they were, and what they know of these is what it was then. With
    `only`, the bodies of these are looked at, and of the other modules what they declare.
    """
    library = standard_library()
    program = _fork(library.program) if before is None else _without(before, set(modules))
    program.poll = poll
    for name in _declare(program, modules, packages):
        if only is None or name in only:
            check_module(program, program.scopes[name])
    _check_reached(program, library)
    program.poll = None
    return program


def summary(program: Program, names: Iterable[str]) -> Checked:
    """What the checker hands on; `names` are the modules whose flows are listed."""
    scopes = [program.scopes[name] for name in sorted(names)]
    flows = tuple(flow.symbol for scope in scopes for flow in scope.flows.values())
    return Checked(
        modules={name: scope.tree for name, scope in program.scopes.items()},
        facts=program.facts,
        signatures=program.signatures,
        declared=program.declared,
        answers=program.answers,
        struct_fields=program.struct_fields,
        structs=program.structs,
        enums=program.enums,
        flows=flows,
        listens=frozenset(flow.qualified for flow in flows if _hears(program, flow)),
        too_deep=frozenset(program.too_deep),
    )


def check_library() -> list[Diagnostic]:
    """What is wrong with the standard library, all bodies included: for its own tests."""
    library = standard_library()
    program = _fork(library.program)
    program.diagnostics += library.program.diagnostics
    for scope in library.program.scopes.values():
        check_module(program, scope)
    return sort(program.diagnostics)


def _fork(base: Program) -> Program:
    """A program with the library in it. Facts of the library are shared, tables copied."""
    return Program(
        scopes=dict(base.scopes),
        facts=dict(base.facts),
        signatures=dict(base.signatures),
        declared=dict(base.declared),
        answers=dict(base.answers),
        struct_fields=dict(base.struct_fields),
        structs=dict(base.structs),
        enums=dict(base.enums),
        flows=dict(base.flows),
        params=dict(base.params),
        variants=dict(base.variants),
        constants=constant_type,
    )


def _without(before: Program, names: set[str]) -> Program:
    """A copy of a program, without what it knows of some modules."""
    program = _fork(before)
    program.calls = dict(before.calls)
    program.too_deep = before.too_deep - names
    program.hearing = {symbol for symbol in before.hearing if module_of(symbol) not in names}
    program.stages = {
        key: found for key, found in before.stages.items() if key[0].module not in names
    }
    tables: list[dict[Any, Any]] = [
        program.signatures,
        program.declared,
        program.params,
        program.calls,
        program.answers,
        program.struct_fields,
    ]
    for table in tables:
        for symbol in [each for each in table if module_of(each) in names]:
            del table[symbol]
    for name in [n for n, struct in program.structs.items() if struct.module in names]:
        del program.structs[name]
    for name in [n for n, enum in program.enums.items() if enum.module in names]:
        del program.enums[name]
        del program.variants[name]
    for name in [n for n, flow in program.flows.items() if flow.module in names]:
        del program.flows[name]
    return program


def module_of(symbol: Symbol) -> str | None:
    """The module that declares a symbol; None for what no module does."""
    match symbol:
        case VariantSymbol(enum=enum):
            return enum.module
        case FlowSlotSymbol(flow=flow) | ChannelSymbol(flow=flow) | ViewSymbol(flow=flow):
            return flow.module
        case ModuleSymbol(name=name):
            return name
        case LocalSymbol() | BuiltinTypeSymbol():
            return None
        case _:
            return symbol.module


def _declare(
    program: Program, modules: Mapping[str, Parsed], packages: Mapping[str, str]
) -> list[str]:
    """Enters modules in a program: names, imports, types, signatures."""
    names = sorted(modules)
    for name in names:
        parsed = modules[name]
        file = parsed.file
        package = packages.get(name, "")
        scope, found = collect(name, file.path, package, file.text, parsed.module)
        program.scopes[name] = scope
        program.facts[name] = Facts(name)
        program.diagnostics += found
        declare_types(program, scope)
    for name in names:
        found = follow(program.scopes[name], program.scopes, program.facts[name].uses)
        program.diagnostics += found
    demands: list[Demand] = []
    for name in names:
        read_types(program, program.scopes[name], demands)
    for name in names:
        read_functions(program, program.scopes[name], demands)
    check_demands(program, demands)
    return names


def _check_reached(program: Program, library: Library) -> None:
    """The bodies of library functions that the program needs, and those they need."""
    waiting = list(program.bodies)
    seen = set(waiting)
    while waiting:
        symbol = waiting.pop()
        if symbol in library.done:
            continue
        check_function(program, program.scopes[symbol.module], symbol)
        library.done.add(symbol)
        for reached in program.bodies:
            if reached not in seen:
                seen.add(reached)
                waiting.append(reached)


def _hears(program: Program, flow: FlowSymbol) -> bool:
    """Whether `run`, or what it calls, has a case for `flow.cancelled()`."""
    waiting: list[Symbol] = [flow]
    seen: set[Symbol] = {flow}
    while waiting:
        symbol = waiting.pop()
        if symbol in program.hearing:
            return True
        for called in program.calls.get(symbol, ()):
            if called not in seen:
                seen.add(called)
                waiting.append(called)
    return False
