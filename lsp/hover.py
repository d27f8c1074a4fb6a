"""What an editor shows of the name or expression under the cursor: Markdown, and its span.

A declaration is shown as it is written, with its documentation. To that comes what the words do not
say: of a step its limit and tries, of a call whether it may wait, of a stage its shape and what
flow.lock has in its place. On a diagnostic's span, nothing more: the editor shows the diagnostic.
"""

from __future__ import annotations

from bisect import bisect_right

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.symbols import StepSymbol
from qoqi.compiler.project.lockfile import LockedFlow
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.tokens import Token
from qoqi.compiler.syntax.walk import node_at
from qoqi.compiler.types.facts import BuiltinTarget, Colour, Facts, StepTarget
from qoqi.compiler.types.model import ErrorType, show
from qoqi.lsp import builtins, keywords
from qoqi.lsp.names import Declared, Key, current, occurrence_at
from qoqi.lsp.versions import Locked
from qoqi.lsp.wording import doc_of, header, text_of
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Hover:
    span: Span
    markdown: str


def hover(snapshot: Snapshot, locked: Locked, module: str, offset: int) -> Hover | None:
    tree = snapshot.checked.modules.get(module)
    facts = snapshot.checked.facts.get(module)
    if tree is None or facts is None:
        return None
    path = node_at(tree, offset)
    stage = next((node for node in reversed(path) if isinstance(node, ast.StageStmt)), None)
    if stage is not None and stage.name.span.start <= offset <= stage.name.span.end:
        flow = next((node for node in path if isinstance(node, ast.FlowDecl)), None)
        if flow is not None:
            return _stage(snapshot, locked, module, flow, stage)
    found = occurrence_at(snapshot, module, offset)
    call = _called(path, offset)
    if found is not None:
        return Hover(found.span, _named(snapshot, facts, found.key, module, call, found.span))
    if call is not None and (word := _word(facts, call)) is not None:
        span = call.fn.name.span if isinstance(call.fn, ast.FieldExpr) else call.fn.span
        return Hover(
            span,
            _paragraphs(
                _code(builtins.signature(word)), builtins.DOCS.get(word, ""), _waits(facts, call)
            ),
        )
    keyword = _keyword(snapshot, module, offset)
    if keyword is not None:
        return Hover(keyword.span, keywords.DOCS[keyword.text])
    for node in reversed(path):
        type_ = facts.types.get(node)
        if type_ is not None and not isinstance(type_, ErrorType):
            return Hover(node.span, _code(show(type_)))
    return None


def _keyword(snapshot: Snapshot, module: str, offset: int) -> Token | None:
    """The word of the language under the cursor, if there is something to be said of it."""
    tokens = snapshot.parsed[module].tokens if module in snapshot.parsed else ()
    at = bisect_right(tokens, offset, key=lambda token: token.start) - 1
    token = tokens[at] if at >= 0 else None
    if token is None or token.kind != token.text or offset > token.end:
        return None
    return token if token.text in keywords.DOCS else None


def _called(path: tuple[ast.Node, ...], offset: int) -> ast.Call | None:
    """The call whose name is under the cursor."""
    for node in reversed(path):
        if isinstance(node, ast.Call):
            name = node.fn.name.span if isinstance(node.fn, ast.FieldExpr) else node.fn.span
            return node if name.start <= offset <= name.end else None
    return None


def _word(facts: Facts, call: ast.Call) -> str | None:
    """The word of the language that a call is of, as `builtins` has it."""
    plan = facts.calls.get(call)
    if plan is None or not isinstance(plan.target, BuiltinTarget):
        return None
    name = plan.target.name
    if name.startswith("test."):
        name = name.removeprefix("test.")
        return name if name in builtins.DOCS else f"instance.{name}"
    return name


def _named(
    snapshot: Snapshot, facts: Facts, key: Key, module: str, call: ast.Call | None, span: Span
) -> str:
    place = current(snapshot, key)
    if place is None:
        return _code(f"type {key[-1]}")
    waits = _waits(facts, call) if call is not None else ""
    if key[0] == "local":
        return _paragraphs(_code(_variable(snapshot, place, span)), "", waits)
    if key[0] == "module":
        return _paragraphs(_code(f"module {key[1]}"), doc_of(snapshot, place.module, place.node))
    shown = header(snapshot, place.module, place.node)
    if key[0] in ("field", "part", "slot"):
        shown = f"{key[-2].rsplit('.', 1)[-1]}.{shown}" if key[0] != "part" else shown
    elif key[0] == "variant":
        shown = f"{key[1].rsplit('.', 1)[-1]}.{shown}"
    elif key[0] == "const":
        type_ = next((each for s, each in snapshot.checked.declared.items() if _is(s, key)), None)
        shown = f"{shown}   // {show(type_)}" if type_ is not None and ":" not in shown else shown
    parts = [_code(shown), doc_of(snapshot, place.module, place.node)]
    if key[0] == "step":
        parts.append(_limits(snapshot, key))
    if key[0] == "fn":
        parts.append(_colour(snapshot, place))
    return _paragraphs(*parts, waits)


def _is(symbol: object, key: Key) -> bool:
    return getattr(symbol, "qualified", None) == key[1]


def _variable(snapshot: Snapshot, place: Declared, span: Span) -> str:
    facts = snapshot.checked.facts[place.module]
    symbol = facts.bindings.get(place.node)
    type_ = facts.types.get(place.node)
    if type_ is None:
        for node, used in facts.uses.items():
            if used is symbol and node in facts.types:
                type_ = facts.types[node]
                break
    if type_ is None and isinstance(place.node, ast.ParamDecl):
        return f"{text_of(snapshot, place.module, place.node.span)}"
    name = text_of(snapshot, place.module, place.span)
    kind = symbol.kind if symbol is not None else "let"
    word = {"param": "parameter", "var": "var", "loop": "for", "it": "undo"}.get(kind, "let")
    return f"{word} {name}: {show(type_)}" if type_ is not None else f"{word} {name}"


def _limits(snapshot: Snapshot, key: Key) -> str:
    """What the clauses of a step come to, those of its group and the defaults among them."""
    symbol = next(
        (s for s in snapshot.checked.signatures if isinstance(s, StepSymbol) and _is(s, key)), None
    )
    if symbol is None:
        return ""
    source = snapshot.sources.get(symbol.module)
    if source is None:
        return ""
    own = {type(clause): clause for clause in symbol.group}
    own |= {type(clause): clause for clause in symbol.decl.clauses}
    lines = ["limit of one try: 1m, unless written"] if ast.WithinClause not in own else []
    lines += [source.text[c.span.start : c.span.end].strip() for c in own.values()]
    if ast.TriesClause not in own:
        lines.append("tries: 1, then it stops for a person" if symbol.decl.extern else "")
    return "\n".join(f"- {line}" for line in lines if line)


def _colour(snapshot: Snapshot, place: Declared) -> str:
    colour = snapshot.checked.facts[place.module].colours.get(place.node)
    return {
        Colour.PURE: "*pure*: it only computes.",
        Colour.WORLD: "*world*: it has effects, so only steps call it.",
        Colour.FLOW: "*flow*: it waits or calls steps, so only flows call it.",
        None: "",
    }[colour]


def _waits(facts: Facts, call: ast.Call) -> str:
    plan = facts.calls.get(call)
    match plan.target if plan is not None else None:
        case StepTarget():
            return "**a step**: the flow goes on when its answer is kept."
        case BuiltinTarget(name=name) if may_wait(name):
            return "**may wait**: the instance is kept meanwhile."
        case _:
            return ""


WAITING = frozenset(
    {
        "channel.receive",
        "channel.send",
        "instance.wait",
        "instance.ask",
        "task.join",
        "task.map",
        "task.all",
        "task.settle",
        "task.first",
        "flow.sleep",
        "flow.sleepUntil",
        "flow.until",
        "flow.stop",
    }
)


def may_wait(name: str) -> bool:
    """Whether a builtin may leave the instance waiting."""
    return name in WAITING


def _stage(
    snapshot: Snapshot, locked: Locked, module: str, flow: ast.FlowDecl, stage: ast.StageStmt
) -> Hover:
    facts = snapshot.checked.facts[module]
    shape = []
    for variable in stage.variables:
        symbol = facts.uses.get(variable)
        type_ = None
        for node, bound in facts.bindings.items():
            if bound is symbol:
                type_ = facts.types.get(node)
        if type_ is None:
            type_ = next(
                (facts.types[n] for n, s in facts.uses.items() if s is symbol and n in facts.types),
                None,
            )
        shape.append(f"{variable.name}: {show(type_) if type_ is not None else '_'}")
    text = _code(f"stage {stage.name.name}({', '.join(shape)})")
    name = next(
        (each.qualified for each in snapshot.checked.flows if each.decl is flow), flow.name.name
    )
    return Hover(stage.name.span, _paragraphs(text, "", _against(locked.flow(name), stage)))


def _against(flow: LockedFlow, stage: ast.StageStmt) -> str:
    """What flow.lock has for a stage."""
    base = flow.base
    if base is None:
        return "No version of this flow is deployed yet."
    known = next((each for each in base.stages if each.name == stage.name.name), None)
    if known is None:
        return f"New: version `{base.hash[:8]}`, the one deployed, has no such stage."
    shape = ", ".join(str(part) for part in known.variables)
    return f"In version `{base.hash[:8]}`, the one deployed: `{known.name}({shape})`."


def _code(text: str) -> str:
    return f"```flow\n{text}\n```"


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
