"""What the checker knows at a cursor, in text that need not be whole.

Completion and signature help cannot wait for a check, and their text is seldom correct. So the
declaration around the cursor is taken by itself, a name of ours is put where the cursor is, and it
is checked alone inside the last good program of its package: the rest of the module and all others
are as they were at the last check. The checker is told to call back (`Program.rules`) when it comes
to our name: it then knows what is wanted there, which variables live, and what stands before a dot.

Half a text often does not parse. Then a few ways to end it are tried (`)`, `:`, `}`, the line cut
down to what stands before the cursor), and the one with the fewest syntax errors is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.names.imports import follow
from qoqi.compiler.names.resolver import collect
from qoqi.compiler.names.scope import FlowScope, ModuleScope
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.compiler.syntax.walk import node_at
from qoqi.compiler.types.calls import infer_call
from qoqi.compiler.types.checker import check_program
from qoqi.compiler.types.context import Body, Program, Rules
from qoqi.compiler.types.declarations import check_module
from qoqi.compiler.types.facts import Facts
from qoqi.compiler.types.infer import EXPRESSIONS, RULES
from qoqi.compiler.types.match_args import infer_args
from qoqi.compiler.types.members import Static, infer_field, infer_name, static
from qoqi.compiler.types.model import ERROR, Type
from qoqi.compiler.types.signatures import (
    Demand,
    check_demands,
    declare_types,
    read_functions,
    read_types,
)
from qoqi.vm.dataclass import dataclass

MARK = "qoqiCursor"
UPPER_MARK = "QoqiCursor"
MARKS = (MARK, UPPER_MARK)

# So many characters are read at most to find a way to end a text: some thirty milliseconds.
MOST_READ = 30_000

_TOP = re.compile(
    r"^(?:pub|import|const|struct|enum|fn|extern|steps?|flow|test|given|native)\b", re.MULTILINE
)
_WORD = re.compile(r"[A-Za-z0-9_]*\Z")
_WORD_AFTER = re.compile(r"[A-Za-z0-9_]*")
_CHAIN = re.compile(r"[A-Za-z0-9_.()\[\]\"]*\.\Z")


@dataclass(slots=True)
class Seen:
    """What the checker had before it when it came to the cursor.

    `base` is what a path before a dot names, `base_type` the type of a value there; both are None
    where no dot is.
    """

    body: Body
    want: Type | None
    locals: dict[str, Type]
    member: bool = False
    base: Static | None = None
    base_type: Type | None = None


@dataclass(slots=True)
class Probe:
    """The declaration at a cursor, checked. `start` is where it stands in the text; places in
    `parsed` count from there. `at` is the cursor's place in it, at the start of our name."""

    start: int
    at: int
    word: Span
    parsed: Parsed
    scope: ModuleScope | None = None
    program: Program | None = None
    facts: Facts | None = None
    path: tuple[ast.Node, ...] = ()
    seen: Seen | None = None
    calls: dict[ast.Call, Body] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        return self.parsed.file.text[: self.at]


def word_at(text: str, offset: int) -> Span:
    """The word around a cursor; empty between others."""
    before = _WORD.search(text, max(0, offset - 200), offset)
    after = _WORD_AFTER.match(text, offset)
    start = before.start() if before is not None else offset
    return Span(start, after.end() if after is not None else offset)


def chunk_at(text: str, offset: int) -> Span:
    """The declaration around a cursor, by its words in the first column."""
    start, end = 0, len(text)
    line = text.rfind("\n", 0, offset) + 1
    for found in _TOP.finditer(text):
        if found.start() <= line:
            start = found.start()
        else:
            end = found.start()
            break
    return Span(start, end)


def endings(text: str, start: int, word: Span, end: int) -> Iterator[tuple[str, int]]:
    """Texts of a chunk with our name in it, the likely ones first, and where it is."""
    before, after = text[start : word.start], text[word.end : end]
    upper = text[word.start : word.start + 1].isupper()
    marks = (UPPER_MARK, MARK) if upper else (MARK, UPPER_MARK)
    at = len(before)
    for mark in marks:
        yield before + mark + after, at
    line = before[before.rfind("\n") + 1 :]
    opened = line.count("(") - line.count(")")
    tails = [")" * opened] if opened > 0 else []
    if opened > 0:
        tails.append(f"{')' * opened} {{}}")
    tails += [":", f"{')' * max(opened, 0)}:", " }", "\n}", ": ()", " => ()", " {}"]
    for tail in tails:
        for mark in marks:
            yield before + mark + tail + after, at
    rest = after[after.find("\n") :] if "\n" in after else ""
    for mark in marks:
        yield before + mark + ")" * max(opened, 0) + rest, at
    chain = _CHAIN.search(line)
    if chain is not None and chain.start() > 0:
        head = before[: before.rfind("\n") + 1] + chain.group()
        yield head + MARK + rest, len(head)


def probe(snapshot: Snapshot | None, path: str, module: str, text: str, offset: int) -> Probe:
    """Checks the declaration at a cursor. Without a snapshot there is only its syntax."""
    word = word_at(text, offset)
    chunk = chunk_at(text, offset)
    best: tuple[int, Parsed, int] | None = None
    read = 0
    for candidate, at in endings(text, chunk.start, word, chunk.end):
        parsed = parse(SourceFile(path, module, candidate))
        wrong = len(parsed.diagnostics)
        if best is None or wrong < best[0]:
            best = (wrong, parsed, at)
        read += len(candidate)
        line = candidate.rfind("\n", 0, at) + 1
        if read > MOST_READ or all(each.span.end < line for each in parsed.diagnostics):
            break  # what is wrong above the cursor, no way to end the text repairs
    assert best is not None
    found = Probe(chunk.start, best[2], word, best[1])
    found.path = node_at(found.parsed.module, found.at + 1)
    if snapshot is not None:
        _check(found, snapshot, path, module)
    return found


def _check(found: Probe, snapshot: Snapshot, path: str, module: str) -> None:
    """Checks the declarations of the chunk in a copy of the program, listening."""
    before = snapshot.program
    program = check_program({}, {}, before)
    known = before.scopes.get(module)
    package = known.package if known is not None else ""
    text = found.parsed.file.text
    scope, _ = collect(module, path, package, text, found.parsed.module)
    program.facts[module] = Facts(module)
    program.scopes[module] = scope
    follow(scope, program.scopes, program.facts[module].uses)
    declare_types(program, scope)
    if known is not None:
        _join(scope, known)
    demands: list[Demand] = []
    read_types(program, scope, demands)
    flows = scope.flows
    read_functions(program, scope, demands)
    check_demands(program, demands)
    if known is not None:
        _join_methods(scope, known)
        scope.flows = {**known.flows, **flows}
    program.rules = _listening(found)
    _check_bodies(program, scope, flows)
    found.scope, found.program, found.facts = scope, program, program.facts[module]


def _check_bodies(program: Program, scope: ModuleScope, flows: dict[str, FlowScope]) -> None:
    everything, scope.flows = scope.flows, flows
    try:
        # Flows of the chunk are checked; look-ups find the others as well.
        own = dict(flows)
        scope.flows = _Both(own, everything)
        check_module(program, scope)
    finally:
        scope.flows = everything


class _Both(dict[str, FlowScope]):
    """Lists some flows and finds all."""

    def __init__(self, own: dict[str, FlowScope], all_: dict[str, FlowScope]) -> None:
        super().__init__(own)
        self._all = all_

    def __missing__(self, key: str) -> FlowScope:
        return self._all[key]


def _join(scope: ModuleScope, known: ModuleScope) -> None:
    """The rest of the module is seen from the chunk as if it were imported."""
    for name, symbol in {**known.imports, **known.names}.items():
        if name not in scope.names:
            scope.imports.setdefault(name, symbol)
    scope.imported += [name for name in known.imported if name not in scope.imported]
    scope.broken |= known.broken


def _join_methods(scope: ModuleScope, known: ModuleScope) -> None:
    for key, methods in known.methods.items():
        scope.methods.setdefault(key, methods)
    for name, symbols in known.method_names.items():
        scope.method_names.setdefault(name, symbols)
    for owned, symbol in known.owned.items():
        scope.owned.setdefault(owned, symbol)


# -- listening -----------------------------------------------------------------------------------


def _listening(found: Probe) -> Rules:
    """The rules of inference, with ears at the cursor."""

    def name(body: Body, expr: ast.Name, want: Type | None) -> Type:
        if expr.name not in MARKS:
            return infer_name(body, expr, want)
        found.seen = _seen(body, want)
        return ERROR

    def member(body: Body, expr: ast.FieldExpr, want: Type | None) -> Type:
        if expr.name.name not in MARKS:
            return infer_field(body, expr, want)
        _see_member(found, body, expr, want)
        return ERROR

    def call(body: Body, expr: ast.Call, want: Type | None) -> Type:
        found.calls[expr] = body
        fn = expr.fn
        if isinstance(fn, ast.Name) and fn.name in MARKS:
            found.seen = _seen(body, want)
        elif isinstance(fn, ast.FieldExpr) and fn.name.name in MARKS:
            _see_member(found, body, fn, want)
        else:
            return infer_call(body, expr, want)
        infer_args(body, expr)
        return ERROR

    def struct(body: Body, expr: ast.StructExpr, want: Type | None) -> Type:
        if found.seen is None and expr.span.start <= found.at <= expr.span.end:
            found.seen = _seen(body, want)
        return EXPRESSIONS[ast.StructExpr](body, expr, want)

    listening: dict[type, Any] = dict(EXPRESSIONS)
    listening |= {ast.Name: name, ast.FieldExpr: member, ast.Call: call, ast.StructExpr: struct}
    return Rules(listening, RULES.report_mismatch, RULES.check_bound)


def _seen(body: Body, want: Type | None) -> Seen:
    zonk = body.u.zonk
    found: dict[str, Type] = {}
    for name in body.locals.names():
        symbol = body.locals.find(name)
        if symbol is not None and name not in MARKS and name:
            found[name] = zonk(body.local_types.get(symbol, ERROR))
    return Seen(body, None if want is None else zonk(want), found)


def _see_member(found: Probe, body: Body, expr: ast.FieldExpr, want: Type | None) -> None:
    seen = _seen(body, want)
    seen.member = True
    seen.base = static(body, expr.base)
    if seen.base is None:
        seen.base_type = body.u.zonk(body.infer(expr.base))
    found.seen = seen
