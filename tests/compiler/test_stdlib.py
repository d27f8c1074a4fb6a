"""The standard library: it checks, every declaration is documented, the machine has its natives."""

from __future__ import annotations

from inspect import signature

import pytest

from qoqi import stdlib
from qoqi.compiler.names.symbols import FnSymbol, native_name
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.checker import check_library, standard_library
from qoqi.compiler.types.model import Tup
from qoqi.vm.natives import MUTATING, PURE, TYPED

PROGRAM = standard_library().program
FUNCTIONS = [f for scope in PROGRAM.scopes.values() for f in scope.functions]
NATIVES = [f for f in FUNCTIONS if f.native == "pure"]

# What vm/effects.py lists for the bodies of steps.
OPERATIONS = {
    "http.request",
    "env.get",
    "random.int",
    "random.uuid",
    "log.write",
    "time.now",
    "file.read",
    "file.write",
}

# What a user finds without an import.
METHODS = {
    "List": "len isEmpty append concat insert remove map filter flatMap fold find any all count "
    "sum min max sorted sortBy groupBy zip enumerate chunks take drop takeLast first last reversed "
    "contains indexOf join toSet unique partition indexWhere filterMap collect",
    "Map": "get keys values entries contains remove len isEmpty merge mapValues filter",
    "Set": "add remove contains union intersect minus len isEmpty sorted",
    "String": "len isEmpty lower upper trim split lines chars contains startsWith endsWith replace "
    "indexOf take drop padLeft padRight repeat reversed",
    "Int": "toDecimal toFloat abs clamp",
    "Decimal": "round floor ceil abs pow format",
    "Option": "map okOr isSome isNone",
    "Result": "map mapErr isOk ok err",
    "Json": "get item at",
    "Range": "toList",
    "Duration": "millis seconds minutes hours days",
    "Date": "addDays addMonths weekday at",
}
OWNED = {"Int.parse", "Decimal.parse", "Float.parse", "Date.of", "Date.parse"}
MODULES = {
    "http": "get post put patch delete request Response json",
    "time": "parse tryParse format now Weekday cron",
    "cron": "next",
    "text": "matches groups replaceAll urlEncode urlDecode base64Encode base64Decode",
    "math": "sqrt",
    "random": "int uuid",
    "crypto": "sha256 hmac",
    "env": "get require",
    "log": "write",
    "file": "read write",
    "json": "parse tryParse",
}


def test_it_checks_without_a_diagnostic() -> None:
    assert [f"{d.file} {d.code} {d.message}" for d in check_library()] == []


@pytest.mark.parametrize("source", stdlib.sources(), ids=lambda source: source.module)
def test_every_public_declaration_is_documented(source: SourceFile) -> None:
    tree = PROGRAM.scopes[source.module].tree
    assert tree.doc
    bare = [
        item.name.name
        for item in tree.items
        if isinstance(item, ast.FnDecl | ast.StructDecl | ast.EnumDecl | ast.ConstDecl)
        and item.public
        and not item.doc
    ]
    assert bare == []


@pytest.mark.parametrize("native", NATIVES, ids=lambda f: f.qualified)
def test_the_machine_has_each_native_with_its_parameters(native: FnSymbol) -> None:
    name, count = native_name(native), len(native.decl.params)
    if native.mutates_self:
        assert name in MUTATING
        taken, given = MUTATING[name], count + 1
    elif name in TYPED:
        taken, given = TYPED[name], count + 1
    else:
        assert name in PURE
        taken, given = PURE[name], count
    try:
        parameters = signature(taken).parameters.values()
    except ValueError:  # of the interpreter's own, such as str.lower
        return
    needed = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters)
    most = 255 if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(parameters)
    assert needed <= given <= most


def test_effects_are_the_operations_of_steps() -> None:
    found = {native_name(f) for f in FUNCTIONS if f.native == "world"}
    assert found == OPERATIONS
    assert [f for f in FUNCTIONS if f.native == "flow"] == []


@pytest.mark.parametrize("head", METHODS)
def test_every_method_the_language_names_is_there(head: str) -> None:
    prelude = PROGRAM.scopes["std.prelude"]
    there = {name for (of, name), fs in prelude.methods.items() if of == head and fs[0].decl.public}
    assert set(METHODS[head].split()) - there == set()


def test_functions_of_types() -> None:
    prelude = PROGRAM.scopes["std.prelude"]
    assert {f"{head}.{name}" for head, name in prelude.owned} >= OWNED


@pytest.mark.parametrize("module", MODULES)
def test_every_function_of_a_module_is_there(module: str) -> None:
    scope = PROGRAM.scopes[f"std.{module}"]
    there = set(scope.public_names()) | set(scope.method_names)
    assert set(MODULES[module].split()) - there == set()


def test_methods_that_change_their_receiver() -> None:
    found = {native_name(f) for f in FUNCTIONS if f.mutates_self}
    assert found == {
        "List.append",
        "List.insert",
        "List.remove",
        "Map.remove",
        "Set.add",
        "Set.remove",
    }


def test_qualified_names_are_unique() -> None:
    names = [f.qualified for f in FUNCTIONS]
    assert len(names) == len(set(names))
    unit = [f for f in NATIVES if PROGRAM.signatures[f].result == Tup()]
    assert {f.name for f in unit} == {"append", "insert"}
