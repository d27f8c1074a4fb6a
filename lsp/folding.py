"""What can be folded, and what a selection grows to: both from the syntax alone."""

from __future__ import annotations

from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import Parsed
from qoqi.compiler.syntax.tokens import CLOSERS, OPENERS
from qoqi.compiler.syntax.walk import node_at
from qoqi.lsp.text import Text
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Fold:
    """Lines from 0, the last inside; `kind` is `comment`, `imports` or empty."""

    first: int
    last: int
    kind: str = ""


def folds(parsed: Parsed, text: Text) -> list[Fold]:
    found: dict[int, Fold] = {}

    def add(start: int, end: int, kind: str = "", *, short: int = 0) -> None:
        first, last = text.line_of(start), text.line_of(end) - short
        if last > first:
            known = found.get(first)
            if known is None or known.last < last:
                found[first] = Fold(first, last, kind)

    opened: list[int] = []
    for token in parsed.tokens:
        if token.kind in OPENERS:
            opened.append(token.start)
        elif token.kind in CLOSERS and opened:
            add(opened.pop(), token.start, short=1)
    imports = [item for item in parsed.module.items if isinstance(item, ast.ImportDecl)]
    if len(imports) > 1:
        add(imports[0].span.start, imports[-1].span.end, "imports")
    for first, last in _comments(parsed, text):
        add(first, last, "comment")
    return [found[line] for line in sorted(found)]


def _comments(parsed: Parsed, text: Text) -> list[tuple[int, int]]:
    """Runs of comment lines."""
    runs: list[list[int]] = []
    for trivia in parsed.trivia:
        if trivia.kind not in ("comment", "doc", "module doc"):
            continue
        line = text.line_of(trivia.start)
        if text.value[text.starts[line] : trivia.start].strip():
            continue
        end = trivia.start + len(trivia.text.rstrip())
        if runs and runs[-1][2] + 1 == line:
            runs[-1][1:] = [end, line]
        else:
            runs.append([trivia.start, end, line])
    return [(start, end) for start, end, _ in runs]


def selections(parsed: Parsed, offset: int) -> list[Span]:
    """What a selection at a cursor grows to, the smallest first, each larger than the last."""
    text = parsed.file.text
    found: list[Span] = []
    for node in reversed(node_at(parsed.module, offset)):
        spans = [node.span]
        if isinstance(node, ast.Block) and text[node.span.start : node.span.start + 1] == "{":
            inner = Span(node.span.start + 1, node.span.end - 1)
            spans = [inner, node.span]
        for span in spans:
            if span.start <= offset <= span.end and (not found or _larger(span, found[-1])):
                found.append(span)
    return found


def _larger(one: Span, other: Span) -> bool:
    return one != other and one.start <= other.start and one.end >= other.end
