"""The outline of a file, and the declarations of a package by name."""

from __future__ import annotations

from collections.abc import Iterator

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.walk import walk
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Outline:
    """`kind` is a word of the protocol's `SymbolKind`."""

    name: str
    kind: str
    detail: str
    whole: Span
    name_span: Span
    children: tuple[Outline, ...] = ()


def outline(module: ast.Module, text: str) -> tuple[Outline, ...]:
    """The declarations of a file as a tree. It needs the syntax only."""
    return tuple(each for item in module.items for each in _of(item, text))


def _of(node: ast.Node, text: str) -> Iterator[Outline]:
    match node:
        case ast.ConstDecl():
            yield _one(node, node.name, "Constant", "")
        case ast.StructDecl():
            fields = tuple(_one(f, f.name, "Field", _text(text, f.type)) for f in node.fields)
            yield _one(node, node.name, "Struct", "", fields)
        case ast.EnumDecl():
            variants = tuple(_one(v, v.name, "EnumMember", "") for v in node.variants)
            yield _one(node, node.name, "Enum", "", variants)
        case ast.FnDecl():
            detail = _signature(text, node.params, node.result)
            yield _one(node, node.name, "Function", detail)
        case ast.StepDecl():
            kind = "extern step" if node.extern else "step"
            detail = f"{kind} {_signature(text, node.params, node.result)}"
            yield _one(node, node.name, "Event", detail)
        case ast.StepsGroup():
            for step in node.steps:
                yield from _of(step, text)
        case ast.FlowDecl():
            members = tuple(each for member in node.members for each in _of(member, text))
            detail = f"flow {_signature(text, node.params, node.result)}"
            yield _one(node, node.name, "Class", detail, members)
        case ast.ChannelDecl():
            yield _one(node, node.name, "Interface", f"channel {_text(text, node.type)}")
        case ast.FieldDecl():
            yield _one(node, node.name, "Property", _text(text, node.type))
        case ast.ViewDecl():
            yield _one(node, node.name, "Method", f"view -> {_text(text, node.result)}")
        case ast.RunDecl():
            stages = tuple(
                _one(stage, stage.name, "Key", "stage")
                for stage in walk(node)
                if isinstance(stage, ast.StageStmt)
            )
            name = ast.Ident(Span(node.span.start, node.span.start + 3), "run")
            yield _one(node, name, "Constructor", "", stages)
        case ast.MigrateDecl():
            yield _one(node, node.name, "Operator", "migrate")
        case ast.TestDecl():
            title = text[node.title.span.start + 1 : node.title.span.end - 1]
            name = ast.Ident(node.title.span, title or "test")
            yield _one(node, name, "Function", "test")
        case _:
            pass


def _one(
    node: ast.Node, name: ast.Ident, kind: str, detail: str, children: tuple[Outline, ...] = ()
) -> Outline:
    span = name.span if node.span.start <= name.span.start <= node.span.end else node.span
    return Outline(name.name or "?", kind, detail, node.span.join(span), span, children)


def _text(text: str, node: ast.Node | None) -> str:
    return "" if node is None else " ".join(text[node.span.start : node.span.end].split())


def _signature(text: str, params: tuple[ast.ParamDecl, ...], result: ast.TypeNode | None) -> str:
    inside = ", ".join(_text(text, param) for param in params)
    return f"({inside})" + (f" -> {_text(text, result)}" if result is not None else "")


@dataclass(frozen=True, slots=True)
class Found:
    name: str
    kind: str
    container: str
    path: str
    span: Span


MOST = 500


def search(snapshot: Snapshot, query: str) -> list[Found]:
    """Declarations of a package whose names have the letters of the query, in order."""
    wanted = query.lower()
    found: list[Found] = []
    for module, parsed in snapshot.parsed.items():
        for each in outline(parsed.module, parsed.file.text):
            _collect(each, module, parsed.file.path, wanted, found)
    found.sort(key=lambda each: (not each.name.lower().startswith(wanted), each.name, each.path))
    return found[:MOST]


def _collect(each: Outline, container: str, path: str, wanted: str, found: list[Found]) -> None:
    at = 0
    lower = each.name.lower()
    for char in wanted:
        at = lower.find(char, at) + 1
        if not at:
            break
    else:
        found.append(Found(each.name, each.kind, container, path, each.name_span))
    for child in each.children:
        _collect(child, f"{container}.{each.name}", path, wanted, found)
