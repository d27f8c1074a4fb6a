"""Signature help: the parameters of the call around the cursor, and which of them is written."""

from __future__ import annotations

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.symbols import (
    FlowSymbol,
    FnSymbol,
    StepSymbol,
    Symbol,
    VariantSymbol,
)
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import BuiltinTarget, FnSignature
from qoqi.compiler.types.members import static
from qoqi.compiler.types.model import STRING, Fn, show
from qoqi.lsp import builtins
from qoqi.lsp.probe import Probe, probe
from qoqi.lsp.wording import parameter_text, signature_text
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Signature:
    """`parameters` are the pieces of `label` that an editor makes bold, one at a time."""

    label: str
    parameters: tuple[str, ...]
    active: int
    documentation: str = ""


def signature_help(
    snapshot: Snapshot | None, path: str, module: str, text: str, offset: int
) -> Signature | None:
    found = probe(snapshot, path, module, text, offset)
    call = _call_at(found)
    if call is None:
        return None
    active, named = _active(call, found)
    signature = _signature(found, call)
    if signature is None:
        return None
    label, params, doc = signature
    if named is not None:
        names = [param.split(":", 1)[0] for param in params]
        active = names.index(named) if named in names else active
    return Signature(label, params, min(active, max(0, len(params) - 1)), doc)


def _call_at(found: Probe) -> ast.Call | None:
    """The innermost call with the cursor in its arguments."""
    for node in reversed(found.path):
        if isinstance(node, ast.Call) and node.fn.span.end < found.at + 1 <= node.span.end:
            return node
        if isinstance(node, ast.LambdaExpr | ast.Block):
            return None
    return None


def _active(call: ast.Call, found: Probe) -> tuple[int, str | None]:
    for index, arg in enumerate(call.args):
        if arg.span.start <= found.at <= arg.span.end:
            return index, arg.name.name if arg.name is not None else None
    return len(call.args), None


def _signature(found: Probe, call: ast.Call) -> tuple[str, tuple[str, ...], str] | None:
    facts, program = found.facts, found.program
    if facts is None or program is None:
        return None
    symbol = facts.uses.get(call.fn)
    if isinstance(symbol, FnSymbol | StepSymbol | VariantSymbol):
        known = program.signatures.get(symbol)
        if known is None:
            return None
        method = isinstance(symbol, FnSymbol) and symbol.is_method
        if method and isinstance(call.fn, ast.FieldExpr):
            known = FnSignature(known.type_params, known.params[1:], known.result)
        return _shown(symbol.name, known, _doc(symbol))
    flow = _started(found, call)
    if flow is not None and flow in program.signatures:
        known = program.signatures[flow]
        params = (("name", STRING, False), *known.params)
        return _shown("start", FnSignature((), params, known.result), flow.decl.doc)
    plan = facts.calls.get(call)
    word = plan.target.name if plan and isinstance(plan.target, BuiltinTarget) else _word(call)
    if word is not None and word in builtins.DOCS:
        label = builtins.signature(word)
        inner = label[label.find("(") + 1 : label.rfind(")")]
        params_ = tuple(part.strip() for part in inner.split(",") if part.strip())
        return label, params_, builtins.DOCS[word]
    type_ = facts.types.get(call.fn)
    if isinstance(type_, Fn):
        shown = tuple(show(param) for param in type_.params)
        return show(type_), shown, ""
    return None


def _word(call: ast.Call) -> str | None:
    match call.fn:
        case ast.Name(name=name):
            return name
        case ast.FieldExpr(base=ast.Name(name=base), name=ident):
            return f"{base}.{ident.name}"
        case _:
            return None


def _started(found: Probe, call: ast.Call) -> FlowSymbol | None:
    if not isinstance(call.fn, ast.FieldExpr) or call.fn.name.name != "start":
        return None
    body = found.calls.get(call)
    base = static(body, call.fn.base) if body is not None else None
    return base if isinstance(base, FlowSymbol) else None


def _shown(name: str, signature: FnSignature, doc: str) -> tuple[str, tuple[str, ...], str]:
    params = tuple(parameter_text(param) for param in signature.params)
    return signature_text(name, signature), params, doc


def _doc(symbol: Symbol) -> str:
    doc = getattr(getattr(symbol, "decl", None), "doc", "")
    return doc if isinstance(doc, str) else ""
