"""The parser: tokens to an abstract syntax tree, for any text.

An LALR(1) machine over the tables of `flow.lark`, driven here so that nodes are built as rules are
reduced and so that an error can be repaired and the parse go on. Three stacks grow together:
states, values, and the offset at which each value starts. A rule that only renames one value costs
one look-up and touches nothing else.

`parse` never raises for any text. It gives a module and the diagnostics of the lexer, the parser
and the builder together, in the order of the source.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from qoqi.compiler.diagnostics import Diagnostic, sort
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.build_declarations import DECLARATION_NODES, DECLARATIONS
from qoqi.compiler.syntax.build_expressions import EXPRESSION_NODES, EXPRESSIONS
from qoqi.compiler.syntax.builder import Builder
from qoqi.compiler.syntax.lexer import Lexed, lex
from qoqi.compiler.syntax.recovery import Recovery
from qoqi.compiler.syntax.tables import CALL, FIRST, MORE, RENAME, Tables, load
from qoqi.compiler.syntax.tokens import END, Token, Trivia
from qoqi.vm.dataclass import dataclass

BUILD = DECLARATIONS | EXPRESSIONS
NODES = DECLARATION_NODES | EXPRESSION_NODES
# What a rule of the tables that calls the builder does if its node takes the values as they are.
NODE = CALL + 1


@dataclass(frozen=True, slots=True)
class Parsed:
    """One file as it was read. `tokens` and `trivia` together are its text.

    For `reparse`: `clean` are the starts of tokens before which nothing is open, `repaired` where
    repairs were made, and `whole` says that all of the text was read.
    """

    file: SourceFile
    module: ast.Module
    tokens: tuple[Token, ...]
    trivia: tuple[Trivia, ...]
    diagnostics: tuple[Diagnostic, ...]
    clean: frozenset[int]
    repaired: tuple[int, ...]
    whole: bool


def parse(file: SourceFile) -> Parsed:
    """Reads a module. What cannot be read is in `diagnostics`, the rest in `module`."""
    lexed = lex(file)
    module, repaired, found = read(file, lexed)
    return Parsed(
        file,
        ast.Module(Span(0, len(file.text)), module.doc, module.items),
        tuple(lexed.tokens),
        tuple(lexed.trivia),
        tuple(sort(found)) if found else (),
        lexed.clean,
        repaired,
        lexed.complete,
    )


def read(file: SourceFile, lexed: Lexed) -> tuple[ast.Module, tuple[int, ...], list[Diagnostic]]:
    """The tree of tokens of a file, where they were repaired, and what was found in all of it."""
    builder = Builder(file.path, lexed.docs, lexed.module_doc)
    tables = load()
    recovery = Recovery(file, lexed, tables)
    module = _run(lexed, builder, tables, recovery)
    built = [
        problem
        for whole, problem in builder.diagnostics
        if not any(whole.start <= place <= whole.end for place in recovery.places)
    ]
    found = [*lexed.diagnostics, *recovery.diagnostics, *built]
    return module, tuple(sorted(recovery.places)), found


def parse_expression(text: str) -> tuple[ast.Expr, tuple[Diagnostic, ...]]:
    """One expression, for tools and tests; spans count from its own start."""
    head = "const it = "
    parsed = parse(SourceFile("expression", "expression", head + text))
    items = parsed.module.items
    if len(items) == 1 and isinstance(items[0], ast.ConstDecl):
        return items[0].value, parsed.diagnostics
    return ast.ErrorExpr(Span(0, len(text))), parsed.diagnostics


@lru_cache(maxsize=1)
def _actions(
    tables: Tables,
) -> list[tuple[int, str, int, tuple[int, ...] | None, Callable[..., Any]]]:
    """The rules as the loop reads them: with what is called in place of its name."""
    rules: list[tuple[int, str, int, tuple[int, ...] | None, Callable[..., Any]]] = []
    for size, symbol, action, name, picks in tables.rules:
        call: Callable[..., Any] = NODES.get(name) or BUILD.get(name) or tuple
        then = NODE if action == CALL and name in NODES else action
        rules.append((size, symbol, then, picks, call))
    return rules


def _run(lexed: Lexed, builder: Builder, tables: Tables, recovery: Recovery) -> ast.Module:
    rows = tables.rows
    rules = _actions(tables)
    last = lexed.tokens[-1].end if lexed.tokens else 0
    tokens = [*lexed.tokens, Token(END, "", last, last)]
    # Half of what making a named tuple costs is its own `__new__`.
    new: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    states = [tables.start]
    values: list[Any] = []
    starts: list[int] = []
    row = rows[tables.start]
    end = 0
    at = 0
    while True:
        token = tokens[at]
        kind = token[0]
        while True:
            action = row.get(kind)
            if action is None:
                recovery.repair(states, values, starts, tokens, at)
                row = rows[states[-1]]
                token = tokens[at]
                kind = token[0]
                continue
            if action >= 0:
                break
            size, symbol, then, picks, call = rules[~action]
            if then == RENAME and size == 1:
                state = rows[states[-2]][symbol]
                states[-1] = state
                row = rows[state]
                continue
            if size:
                start = starts[-size]
                taken = values[-size:]
                del values[-size:]
                del starts[-size:]
                del states[-size:]
            else:
                start = end
                taken = []
            value: Any
            if picks is not None:
                taken = [taken[i] if i >= 0 else None for i in picks]
            if then == CALL:
                value = call(builder, new(Span, (start, end)), *taken)
            elif then == NODE:
                value = call(new(Span, (start, end)), *taken)
            elif then == MORE:
                value = taken[0]
                value.append(taken[1])
            elif then == FIRST:
                value = taken
            else:
                value = taken[0] if taken else None
            values.append(value)
            starts.append(start)
            state = rows[states[-1]][symbol]
            states.append(state)
            row = rows[state]
        if kind == END:
            module: ast.Module = values[-1]
            return module
        states.append(action)
        values.append(token)
        starts.append(token[2])
        end = token[3]
        row = rows[action]
        at += 1
