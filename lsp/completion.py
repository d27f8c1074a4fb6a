"""Completion: what may stand at a cursor, sorted by how well it fits.

The declaration at the cursor is checked as it stands (`probe`); what the checker knows there is
turned into items (`items`), the best first.

Items have no documentation: `document` finds it when the editor shows one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.imports import import_edit
from qoqi.compiler.names.symbols import (
    ConstSymbol,
    EnumSymbol,
    FlowSymbol,
    FnSymbol,
    ModuleSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
    VariantSymbol,
)
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.context import Program
from qoqi.compiler.types.members import (
    BARE_ENUMS,
    FREE_BUILTINS,
)
from qoqi.compiler.types.model import ERROR, Con, ErrorType, Type, show
from qoqi.compiler.types.signatures import BUILTIN_TYPES
from qoqi.compiler.types.testing import is_testing
from qoqi.lsp import builtins, words
from qoqi.lsp.items import Item, fit, item_of, public_symbols
from qoqi.lsp.members import members, members_of_unimported
from qoqi.lsp.names import Key, current, key_of
from qoqi.lsp.probe import MARKS, Probe, Seen, probe
from qoqi.lsp.wording import doc_of, header
from qoqi.vm.dataclass import dataclass

ENOUGH = 400

NodeT = TypeVar("NodeT", bound=ast.Node)


@dataclass(frozen=True, slots=True)
class Completion:
    """`span` is the word that an item takes the place of."""

    span: Span
    items: tuple[Item, ...]


def complete(
    snapshot: Snapshot | None, path: str, module: str, text: str, offset: int
) -> Completion:
    found = probe(snapshot, path, module, text, offset)
    if in_text_or_comment(found):
        return Completion(found.word, ())
    items = list(_items(snapshot, found, text))
    best: dict[tuple[str, str], Item] = {}
    for item in items:
        known = best.get((item.label, item.kind))
        if known is None or item.rank < known.rank:
            best[item.label, item.kind] = item
    typed = text[found.word.start : offset].lower()
    kept = [item for item in best.values() if _matches(item.label, typed)]
    kept.sort(key=lambda item: (item.rank, not item.label.lower().startswith(typed), item.label))
    return Completion(found.word, tuple(kept[:ENOUGH]))


def _matches(label: str, typed: str) -> bool:
    """Whether the letters typed appear in a label, in their order."""
    at = 0
    lower = label.lower()
    for char in typed:
        at = lower.find(char, at) + 1
        if not at:
            return False
    return True


def in_text_or_comment(found: Probe) -> bool:
    """Whether the cursor is in a string or a comment, where nothing is completed."""
    at = found.at
    for trivia in found.parsed.trivia:
        if trivia.start < at < trivia.end or (trivia.start < at and trivia.end == at + 10):
            return trivia.kind in ("comment", "doc", "module doc")
    return any(
        token.kind.startswith("STRING") and token.start < at < token.end
        for token in found.parsed.tokens
    )


def _items(snapshot: Snapshot | None, found: Probe, text: str) -> Iterator[Item]:
    seen = found.seen
    path = found.path
    if words.names_a_stage(found.prefix):
        return
    if (target := words.given_target(found.prefix)) is not None:
        yield from _replaced(snapshot, found, target)
        return
    if words.gives_an_answer(found.prefix):
        yield from words.answers()
        return
    if (imported := _inside(path, ast.ImportDecl)) is not None:
        if snapshot is not None:
            yield from _imports(snapshot, found, imported)
        return
    if seen is not None and seen.member:
        yield from members(seen)
        if snapshot is not None and isinstance(path[-1], ast.Ident):
            yield from members_of_unimported(snapshot, seen, _inside(path, ast.FieldExpr))
        return
    if _in_pattern(path):
        yield from _patterns(found)
        if path and isinstance(path[-1], ast.Ident):
            yield from words.pattern_words(found.prefix)
        return
    if _in_type(path):
        yield from _types(found)
        return
    struct = _struct_at(found)
    if struct is not None:
        yield from _fields(found, *struct)
        return
    if (stage := _inside(path, ast.StageStmt)) is not None and path[-1] in stage.variables:
        yield from _stage_variables(found, snapshot)
        return
    if (become := _inside(path, ast.BecomeStmt)) is not None and path[-1] is become.stage:
        yield from _stages(found)
        return
    if seen is not None:
        yield from _named_arguments(found, seen)
        yield from _values(seen)
        if snapshot is not None and len(text[found.word.start : found.word.end]) >= 2:
            yield from _importable(snapshot, seen, text[found.word.start : found.word.end])
    yield from words.at(found, text)


def _inside(path: Iterable[ast.Node], kind: type[NodeT]) -> NodeT | None:
    for node in reversed(tuple(path)):
        if isinstance(node, kind):
            return node
    return None


# -- values --------------------------------------------------------------------------------------


def _values(seen: Seen) -> Iterator[Item]:
    body = seen.body
    program, want = body.program, seen.want
    for name, type_ in seen.locals.items():
        rank = 1 if want is None else 2
        yield Item(name, "Variable", show(type_), name, False, fit(type_, want, rank))
    if body.flow is not None:
        for symbol in body.flow.names.values():
            yield item_of(program, symbol, 2, want)
    for name, symbol in {**body.scope.imports, **body.scope.names}.items():
        if not isinstance(symbol, ModuleSymbol):
            yield item_of(program, symbol, 3, want)
        else:
            detail = f"module {symbol.name}"
            yield Item(name, "Module", detail, name, False, 3, ("module", symbol.name))
    prelude = program.prelude()
    for symbol in prelude.names.values() if prelude is not None else ():
        if isinstance(symbol, FnSymbol | ConstSymbol):
            yield item_of(program, symbol, 4, want)
    yield from _variants(program, want)
    if not isinstance(body.owner, StepSymbol):
        yield Item("task", "Module", "tasks of this instance", "task", False, 4)
    yield Item("flow", "Module", "this instance", "flow", False, 4)
    for word in FREE_BUILTINS:
        tool = word not in ("print", "assert", "fail")
        if not tool or is_testing(body):
            insert = f"{word}()" if word in ("steps", "attempts") else f"{word}($1)"
            detail = builtins.signature(word)
            yield Item(word, "Function", detail, insert, "$" in insert, 4, ("word", word))
    if is_testing(body):
        yield Item("clock", "Module", "the time of the test", "clock", False, 4)
    for name in BUILTIN_TYPES:
        if any(owner == name for owner, _ in (prelude.owned if prelude is not None else ())):
            yield Item(name, "Class", "type", name, False, 5, ("builtin", name))


def _variants(program: Program, want: Type | None) -> Iterator[Item]:
    """Bare variants: of the enum that is wanted here, and of those everybody knows."""
    wanted = want.name if isinstance(want, Con) else None
    if wanted in program.enums:
        for variant in program.variants[wanted].values():
            yield replace(item_of(program, variant, 0, None), rank=0)
    for enum in BARE_ENUMS:
        if enum != wanted:
            for variant in program.variants.get(enum, {}).values():
                yield item_of(program, variant, 4, None)


def _importable(snapshot: Snapshot, seen: Seen, typed: str) -> Iterator[Item]:
    """Declarations of other modules, with the import that is missing."""
    here = seen.body.scope
    own = snapshot.program.scopes.get(here.name)
    for scope in snapshot.program.scopes.values():
        if scope.name == here.name or scope.name == "std.prelude" or scope.name in here.imported:
            continue
        shown = scope.name
        if here.package:
            shown = shown.removeprefix(f"{here.package}.")
        last = shown.rsplit(".", 1)[-1]
        edits = (import_edit(own, f"import {shown}"),) if own is not None else ()
        if _matches(last, typed.lower()):
            detail = f"import {shown}"
            yield Item(last, "Module", detail, last, False, 5, ("module", scope.name), edits)
        for symbol in public_symbols(scope, here):
            if isinstance(symbol, ModuleSymbol) or not _matches(symbol.name, typed.lower()):
                continue
            item = item_of(snapshot.program, symbol, 5, None)
            yield replace(
                item,
                label=f"{last}.{symbol.name}",
                insert=f"{last}.{item.insert}",
                detail=f"{item.detail}   import {shown}",
                edits=edits,
                rank=5,
            )


# -- other places --------------------------------------------------------------------------------


def _in_pattern(path: tuple[ast.Node, ...]) -> bool:
    inside = False
    for node in reversed(path):
        if isinstance(node, ast.BindPattern | ast.VariantPattern | ast.StructPattern):
            inside = True
        elif isinstance(node, ast.MatchArm | ast.ReceiveCase | ast.LetStmt | ast.Condition):
            return inside
        elif isinstance(node, ast.Block):
            return False
    return False


def _in_type(path: tuple[ast.Node, ...]) -> bool:
    return any(isinstance(node, ast.NamedType | ast.TypeParam) for node in path[-3:])


def _patterns(found: Probe) -> Iterator[Item]:
    """Variants of what is matched, with names for their parts."""
    facts, program = found.facts, found.program
    if facts is None or program is None:
        return
    types = [facts.types.get(node) for node in reversed(found.path)]
    type_ = next((each for each in types[:3] if each is not None), None)
    match_ = _inside(found.path, ast.MatchExpr)
    if type_ is None or isinstance(type_, ErrorType):
        type_ = facts.types.get(match_.subject) if match_ is not None else None
    if not isinstance(type_, Con):
        return
    covered = _covered(match_, facts) if match_ is not None else set()
    for name, variant in program.variants.get(type_.name, {}).items():
        params = [param.name.name for param in variant.decl.params or ()]
        holes = ", ".join(f"${{{index}:{param}}}" for index, param in enumerate(params, 1))
        insert = f"{name}({holes})" if params else name
        rank = 3 if name in covered else 0
        detail = f"{name}({', '.join(params)})" if params else show(type_)
        yield Item(name, "EnumMember", detail, insert, bool(params), rank, key_of(variant, ""))
    struct = program.structs.get(type_.name)
    if struct is not None:
        yield Item(struct.name, "Struct", show(type_), f"{struct.name} {{ $1, .. }}", True, 0)
    if type_.name == "Bool":
        yield Item("true", "Keyword", rank=0)
        yield Item("false", "Keyword", rank=0)


def _covered(node: ast.MatchExpr, facts: object) -> set[str]:
    names: set[str] = set()
    for arm in node.arms:
        if arm.guard is None and isinstance(arm.pattern, ast.VariantPattern):
            names.add(arm.pattern.path[-1].name)
    return names


def _types(found: Probe) -> Iterator[Item]:
    program, scope = found.program, found.scope
    for name, builtin in BUILTIN_TYPES.items():
        if name == "Handle" and _inside(found.path, ast.FlowDecl) is not None:
            continue
        arguments = ", ".join(f"${index + 1}" for index in range(builtin.arity))
        insert = f"{name}<{arguments}>" if arguments else name
        yield Item(name, "Class", "type", insert, bool(arguments), 4, ("builtin", name))
    if program is None or scope is None:
        return
    prelude = program.prelude()
    for symbol in {**(prelude.names if prelude is not None else {})}.values():
        if isinstance(symbol, StructSymbol | EnumSymbol):
            yield item_of(program, symbol, 4, None)
    for bound, symbol in {**scope.imports, **scope.names}.items():
        if isinstance(symbol, StructSymbol | EnumSymbol):
            yield item_of(program, symbol, 1, None)
        elif isinstance(symbol, FlowSymbol):
            yield replace(item_of(program, symbol, 2, None), kind="Class")
        elif isinstance(symbol, ModuleSymbol):
            item = item_of(program, symbol, 3, None)
            yield replace(item, label=bound, insert=bound, detail=symbol.name)
    for param in _type_params(found.path):
        yield Item(param, "TypeParameter", "type parameter", param, False, 0)


def _type_params(path: tuple[ast.Node, ...]) -> list[str]:
    for node in path:
        if isinstance(node, ast.FnDecl | ast.StructDecl | ast.EnumDecl):
            return [param.name.name for param in node.type_params]
    return []


def _struct_at(found: Probe) -> tuple[StructSymbol, set[str]] | None:
    """The struct whose field is written at the cursor, and the fields that are there."""
    literal = _inside(found.path, ast.StructExpr)
    if literal is None or found.facts is None or found.program is None:
        return None
    inside = found.path[found.path.index(literal) + 1 :]
    if not inside or not isinstance(inside[0], ast.FieldInit):
        return None
    if inside[0].value is not None and inside[-1] is not inside[0].name:
        return None
    symbol = found.facts.uses.get(literal.path[-1])
    if not isinstance(symbol, StructSymbol):
        return None
    given = {init.name.name for init in literal.fields if init.name.name not in MARKS}
    return symbol, given


def _fields(found: Probe, struct: StructSymbol, given: set[str]) -> Iterator[Item]:
    assert found.program is not None
    for name, type_ in found.program.struct_fields.get(struct, ()):
        if name not in given:
            yield Item(
                name,
                "Field",
                show(type_),
                f"{name}: $1",
                True,
                0,
                ("field", struct.qualified, name),
            )


def _named_arguments(found: Probe, seen: Seen) -> Iterator[Item]:
    """`name:` of the parameters that no argument is given for, and that can still be named."""
    call = _inside(found.path, ast.Call)
    if call is None or found.facts is None or found.program is None:
        return
    arg = next((arg for arg in call.args if arg in found.path), None)
    if arg is None or arg.name is not None or not isinstance(arg.value, ast.Name):
        return
    symbol = found.facts.uses.get(call.fn)
    if not isinstance(symbol, FnSymbol | StepSymbol | VariantSymbol):
        return
    signature = found.program.signatures.get(symbol)
    if signature is None:
        return
    params = signature.params
    if isinstance(call.fn, ast.FieldExpr) and isinstance(symbol, FnSymbol) and symbol.is_method:
        params = params[1:]
    given = {each.name.name for each in call.args if each.name is not None}
    positional = call.args.index(arg)
    for index, (name, type_, _) in enumerate(params):
        if index >= positional and name not in given and name != "self":
            yield Item(f"{name}:", "Field", show(type_), f"{name}: $1", True, 1)


def _stage_variables(found: Probe, snapshot: Snapshot | None) -> Iterator[Item]:
    """Variables that live at a stage: those its `run` bound above."""
    facts = found.facts
    run = _inside(found.path, ast.RunDecl)
    if facts is None or run is None:
        return
    for node, symbol in facts.bindings.items():
        if run.span.start <= symbol.span.start < found.at and symbol.name not in MARKS:
            type_ = facts.types.get(node, ERROR)
            yield Item(symbol.name, "Variable", show(type_), symbol.name, False, 0)


def _replaced(snapshot: Snapshot | None, found: Probe, base: str) -> Iterator[Item]:
    """What a `given` of a test may stand for: steps, and what only steps may call."""
    scope = found.scope
    if snapshot is None or scope is None:
        return
    program = snapshot.program
    here: Mapping[str, Symbol] = {**scope.imports, **scope.names}
    if base:
        named = scope.own(base)
        here = {}
        if isinstance(named, ModuleSymbol) and named.name in program.scopes:
            here = program.scopes[named.name].names
        elif isinstance(named, FlowSymbol) and named.module in program.scopes:
            flow = program.scopes[named.module].flows.get(named.qualified)
            here = {step.name: step for step in flow.steps} if flow is not None else {}
    acting = any(isinstance(each, FnSymbol) and each.native == "world" for each in here.values())
    for name, symbol in here.items():
        acts = isinstance(symbol, FnSymbol) and acting and symbol.native in (None, "world")
        if isinstance(symbol, StepSymbol) or (acts and base):
            item = item_of(program, symbol, 0, None)
            signature = program.signatures.get(symbol)
            holes = ", ".join("_" for _ in signature.params) if signature is not None else ""
            yield replace(item, insert=f"{name}({holes}) => $0", snippet=True)
        elif isinstance(symbol, ModuleSymbol | FlowSymbol) and not base:
            yield replace(item_of(program, symbol, 2, None), label=name, insert=name)


def _stages(found: Probe) -> Iterator[Item]:
    flow = _inside(found.path, ast.FlowDecl)
    if flow is None:
        return
    from qoqi.compiler.rules.context import nodes, run_of

    run = run_of(flow)
    stages = [each for each in nodes(run) if isinstance(each, ast.StageStmt)] if run else []
    for stage in stages:
        names = [variable.name for variable in stage.variables]
        holes = ", ".join(f"{name}: ${index}" for index, name in enumerate(names, 1))
        insert = f"{stage.name.name}({holes})" if names else stage.name.name
        yield Item(stage.name.name, "Field", "stage", insert, bool(names), 0)


def _imports(snapshot: Snapshot, found: Probe, node: ast.ImportDecl) -> Iterator[Item]:
    program = snapshot.program
    here = found.parsed.file.module
    package = snapshot.package.packages.get(here, "")
    if node.names is not None and found.path[-1] in node.names:
        dotted = ".".join(part.name for part in node.path)
        scope = program.scopes.get(f"{package}.{dotted}" if package else dotted)
        scope = scope or program.scopes.get(dotted)
        own = program.scopes.get(here)
        if scope is not None and own is not None:
            for symbol in public_symbols(scope, own):
                item = item_of(program, symbol, 0, None)
                yield replace(item, insert=symbol.name, snippet=False)
        return
    line = found.prefix[found.prefix.rfind("\n") + 1 :]
    before = line.split("import", 1)[-1].strip()
    for name in sorted(program.scopes):
        shown = name.removeprefix(f"{package}.") if package else name
        if name in (here, "std.prelude") or not shown.startswith(before):
            continue
        rest = shown[len(before) :].split(".", 1)[0]
        whole = before + rest
        kind = "Module" if whole in program.scopes else "Folder"
        yield Item(rest, kind, whole, rest, False, 0, ("module", whole))


def document(snapshot: Snapshot, key: Key) -> tuple[str, str]:
    """The declaration and the documentation of an item, for when it is shown."""
    if key[0] == "word":
        return builtins.signature(key[1]), builtins.DOCS.get(key[1], "")
    place = current(snapshot, key)
    if place is None:
        return "", ""
    return header(snapshot, place.module, place.node), doc_of(snapshot, place.module, place.node)
