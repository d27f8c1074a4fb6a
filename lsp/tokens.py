"""Semantic tokens: what each name is, for colours that a grammar of words cannot give.

Keywords, literals and comments are left to the editor's grammar; names are told here, with what is
special about them: `waits` and `step` of calls, `mutable` of variables, `library` of what is not
the user's. A token is five numbers in the protocol: lines and columns relative to the one before.
"""

from __future__ import annotations

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.symbols import FnSymbol, LocalSymbol
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import BuiltinTarget, StepTarget
from qoqi.lsp.hover import may_wait
from qoqi.lsp.names import Occurrence, occurrences
from qoqi.lsp.text import Encoding, Text

TYPES = (
    "namespace",
    "class",
    "enum",
    "struct",
    "typeParameter",
    "parameter",
    "variable",
    "property",
    "enumMember",
    "event",
    "function",
    "method",
    "type",
)
MODIFIERS = ("declaration", "readonly", "mutable", "waits", "step", "defaultLibrary")

_OF_KEY = {
    "module": "namespace",
    "fn": "function",
    "step": "function",
    "const": "variable",
    "type": "struct",
    "variant": "enumMember",
    "slot": "property",
    "channel": "event",
    "view": "method",
    "field": "property",
    "part": "parameter",
    "local": "variable",
    "builtin": "type",
}


def tokens(
    snapshot: Snapshot, module: str, text: Text, encoding: Encoding, within: Span | None = None
) -> list[int]:
    """The tokens of a file, or of a part of it, as the protocol packs them."""
    facts = snapshot.checked.facts.get(module)
    if facts is None:
        return []
    marks = _calls(snapshot, module)
    data: list[int] = []
    line = column = 0
    last = Span(-1, -1)
    for each in occurrences(snapshot, module):
        span = each.span
        if span.start < last.end or "\n" in text.value[span.start : span.end]:
            continue
        if within is not None and not (within.start <= span.start and span.end <= within.end):
            continue
        last = span
        (at_line, at_column), (_, end_column) = text.range(span, encoding)
        kind, modifiers = _kind(snapshot, each)
        modifiers |= marks.get(span, set())
        data += [
            at_line - line,
            at_column - column if at_line == line else at_column,
            end_column - at_column,
            TYPES.index(kind),
            sum(1 << MODIFIERS.index(modifier) for modifier in modifiers),
        ]
        line, column = at_line, at_column
    return data


def _kind(snapshot: Snapshot, each: Occurrence) -> tuple[str, set[str]]:
    kind = _OF_KEY[each.key[0]]
    modifiers: set[str] = {"declaration"} if each.declares else set()
    symbol = each.symbol
    if each.key[0] == "type":
        name = each.key[1]
        kind = "enum" if name in snapshot.checked.enums else kind
        kind = "class" if name in snapshot.program.flows else kind
    elif each.key[0] == "const":
        modifiers.add("readonly")
    elif each.key[0] == "step":
        modifiers.add("step")
    elif isinstance(symbol, LocalSymbol):
        kind = "parameter" if symbol.kind == "param" else kind
        modifiers.add("mutable" if symbol.mutable else "readonly")
    elif isinstance(symbol, FnSymbol):
        kind = "method" if symbol.is_method else kind
        if symbol.module.startswith("std."):
            modifiers.add("defaultLibrary")
    return kind, modifiers


def _calls(snapshot: Snapshot, module: str) -> dict[Span, set[str]]:
    """Names of calls that leave the flow waiting, by the span of the name."""
    found: dict[Span, set[str]] = {}
    for call, plan in snapshot.checked.facts[module].calls.items():
        span = call.fn.name.span if isinstance(call.fn, ast.FieldExpr) else call.fn.span
        match plan.target:
            case StepTarget():
                found[span] = {"step"}
            case BuiltinTarget(name=name) if may_wait(name):
                found[span] = {"waits"}
            case _:
                pass
    return found
