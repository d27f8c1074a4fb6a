"""Declarations and types as an editor shows them: one line of flow, and the documentation."""

from __future__ import annotations

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import FnSignature
from qoqi.compiler.types.model import Tup, Type, show


def signature_text(name: str, signature: FnSignature) -> str:
    """`charge(order: Order, tries: Int = …) -> Receipt`."""
    params = ", ".join(parameter_text(param) for param in signature.params)
    result = "" if signature.result == Tup() else f" -> {show(signature.result)}"
    return f"{name}({params}){result}"


def parameter_text(param: tuple[str, Type, bool]) -> str:
    name, type_, optional = param
    if name == "self":
        return f"self: {show(type_)}"
    return f"{name}: {show(type_)}{' = …' if optional else ''}"


def header(snapshot: Snapshot, module: str, node: ast.Node) -> str:
    """A declaration as it is written, up to its body."""
    source = snapshot.sources.get(module)
    if source is None:
        return ""
    text = source.text
    end = node.span.end
    match node:
        case ast.FnDecl(body=ast.Block() as body) | ast.StepDecl(body=ast.Block() as body):
            end = body.span.start
        case ast.ViewDecl(body=body) | ast.MigrateDecl(body=body):
            end = body.span.start
        case ast.FlowDecl(members=members):
            inside = members[0].span.start if members else end
            brace = text.rfind("{", node.span.start, inside)
            end = brace if brace >= 0 else inside
        case ast.StructDecl(fields=fields) if len(fields) > 6:
            end = fields[5].span.end
            return f"{_one_line(text[node.span.start : end])}, … }}"
        case ast.EnumDecl(variants=variants) if len(variants) > 6:
            end = variants[5].span.end
            return f"{_one_line(text[node.span.start : end])}, … }}"
        case _:
            pass
    return _one_line(text[node.span.start : end])


def _one_line(text: str) -> str:
    """The lines of a declaration as one, without its comments."""
    lines = [line.split("//", 1)[0].strip() for line in text.splitlines()]
    kept = [line for line in lines if line]
    if not kept:
        return ""
    out = kept[0]
    for line in kept[1:]:
        out += f" {line}" if out[-1] in ",{(" or line[:1] in ")}" else f", {line}"
    return out.rstrip(" {,") if out.endswith("{") else out


def doc_of(snapshot: Snapshot, module: str, node: ast.Node) -> str:
    """The documentation of a declaration; a group's step and a field have their own."""
    if isinstance(node, ast.Module):
        return node.doc
    doc = getattr(node, "doc", "")
    return doc if isinstance(doc, str) else ""


def duration(millis: int) -> str:
    """`1h30m`, as it is written in flow."""
    parts = []
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        count, millis = divmod(millis, size)
        if count:
            parts.append(f"{count}{unit}")
    if millis or not parts:
        parts.append(f"{millis}ms")
    return "".join(parts)


def text_of(snapshot: Snapshot, module: str, span: Span) -> str:
    return snapshot.sources[module].text[span.start : span.end]
