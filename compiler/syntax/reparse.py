"""Parsing a text again after an edit, in the time of the declarations it touches.

    parsed = reparse(before, file)      the same as `parse(file)`

Declarations are what a text consists of. The lexer can begin at one if nothing was open before it
(`Parsed.clean`), and so can the parser. So, of the declarations of the text before:

    first                 that before those before the edit
    …                     those that the edit touches, with the one before and the one after them
    rest, and one more    those after them
    …                     all others

From `first` up to the end of the one after `rest` the new text is read as if it were all there is.
If that begins with `first` and ends with `rest` and the next, as they were, then what follows is
read as it was too: lexer and parser came to it in the same state, and look ahead no further. The
trees of `first` and what stands before stay, those from `rest` on are copied to their new places.

Whatever is not as simple as that is parsed as a whole: a repair or an open bracket that reaches
past its declaration, a declaration not at the margin, a merge conflict, too many mistakes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, sort
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.lexer import MAX_CHARACTERS, lex_from
from qoqi.compiler.syntax.node import shifted
from qoqi.compiler.syntax.parser import Parsed, parse, read
from qoqi.compiler.syntax.tokens import ITEM_WORDS, Token, Trivia
from qoqi.vm.dataclass import dataclass

PieceT = TypeVar("PieceT", bound=Token | Trivia)

# With more mistakes than this, what is said of one part may depend on the others.
MOST_DIAGNOSTICS = 50
# How many declarations around the touched ones are read: to be replaced, and to be compared.
AROUND, COMPARED = 1, 2


@dataclass(frozen=True, slots=True)
class _Part:
    """What is read again: declarations `first` up to `rest`, which stand at `start` and `old_end`
    in the text before, `end` in the new one; and the text up to `cut`. Where there is no rest, it
    is all up to the end (`whole`)."""

    first: int
    rest: int
    whole: bool
    start: int
    old_end: int
    end: int
    cut: int


def reparse(before: Parsed, file: SourceFile) -> Parsed:
    """Reads a module, of which another text was read before."""
    try:
        return _reparse(before, file) or parse(file)
    except RecursionError:
        return parse(file)


def _reparse(before: Parsed, file: SourceFile) -> Parsed | None:
    part = _part(before, file)
    if part is None:
        return None
    lexed = lex_from(SourceFile(file.path, file.module, file.text[: part.cut]), part.start)
    if not lexed.complete:
        return None
    whole = part.whole
    if not whole and part.end not in lexed.clean:
        return None
    tree, repaired, found = read(file, lexed)
    items = tree.items
    by = part.end - part.old_end
    if any(not whole and place >= part.end for place in repaired):
        return None
    if part.first:
        known = before.module.items[part.first]
        inside = repaired and repaired[0] <= known.span.end
        if inside or not items or not _same(items[0], known, 0):
            return None
        items = (known, *items[1:])  # its documentation stands before what was read
    if not whole:
        after = before.module.items[part.rest : part.rest + COMPARED]
        if len(items) < len(after) or not all(
            _same(item, known, by) for item, known in zip(items[-len(after) :], after, strict=True)
        ):
            return None
        items = items[: -len(after)]
    kept = _kept(before.diagnostics, part)
    if kept is None:
        return None
    found = [*kept, *(each for each in found if whole or each.span.start < part.end)]
    if len(found) > MOST_DIAGNOSTICS:
        return None
    doc = before.module.doc if part.first else tree.doc
    rest = tuple(shifted(item, by) for item in before.module.items[part.rest :])
    module = ast.Module(
        Span(0, len(file.text)), doc, (*before.module.items[: part.first], *items, *rest)
    )
    return Parsed(
        file,
        module,
        _joined(before.tokens, lexed.tokens, part, Token),
        _joined(before.trivia, lexed.trivia, part, Trivia),
        tuple(sort(found)),
        frozenset(
            [
                *(at for at in before.clean if at <= part.start),
                *(at for at in lexed.clean if whole or at < part.end),
                *(at + by for at in before.clean if not whole and at >= part.old_end),
            ]
        ),
        tuple(place for place in repaired if whole or place < part.end),
        whole=True,
    )


def _part(before: Parsed, file: SourceFile) -> _Part | None:
    """What is to be read again; None if that is not sure to be enough."""
    old, new = before.file.text, file.text
    items = before.module.items
    if not before.whole or len(before.diagnostics) > MOST_DIAGNOSTICS:
        return None
    if len(new) > MAX_CHARACTERS or len(items) < 2 * (AROUND + COMPARED):
        return None
    start, old_end = _differing(old, new)
    by = len(new) - len(old)
    starts = [item.span.start for item in items]
    touched = bisect_left(starts, start) - 1
    first = max(touched - AROUND - 1, 0)
    rest = bisect_left(starts, old_end + 1) + AROUND
    if rest + COMPARED >= len(items):
        rest = len(items)
    begin = starts[first] if first else 0
    end, cut = len(old), len(new)
    if rest < len(items):
        end = starts[rest]
        if rest + COMPARED < len(items):
            cut = starts[rest + COMPARED] + by
    bounds = [begin] * (first > 0) + starts[rest : rest + COMPARED + 1]
    if any(not _bounds(before, at) for at in bounds):
        return None
    if any(not begin <= place < end for place in before.repaired):
        return None
    # The module's documentation may stand anywhere.
    if first and (old.find("//!", begin) >= 0 or new.find("//!", begin) >= 0):
        return None
    if rest < len(items) and old.find("//!", end) >= 0:
        return None
    return _Part(first, rest, rest == len(items), begin, end, end + by, cut)


def _differing(old: str, new: str) -> tuple[int, int]:
    """Where two texts begin to differ, and where in the old one they are the same again."""
    start = _common(old, new, min(len(old), len(new)))
    most = min(len(old), len(new)) - start
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old[len(old) - middle :] == new[len(new) - middle :]:
            low = middle
        else:
            high = middle - 1
    return start, len(old) - low


def _common(old: str, new: str, most: int) -> int:
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if old.startswith(new[low:middle], low):
            low = middle
        else:
            high = middle - 1
    return low


def _bounds(before: Parsed, at: int) -> bool:
    """Whether lexer, parser and repairs all begin anew at a declaration."""
    if at not in before.clean or before.file.text[at - 1] != "\n":
        return False
    token = before.tokens[bisect_left(before.tokens, at, key=_start)]
    return token.start == at and token.kind in ITEM_WORDS


def _start(piece: Token | Trivia) -> int:
    return piece.start


def _same(item: ast.Item, known: ast.Item, by: int) -> bool:
    return type(item) is type(known) and item.span == (known.span.start + by, known.span.end + by)


def _joined(
    before: tuple[PieceT, ...], read_: list[PieceT], part: _Part, kind: type[PieceT]
) -> tuple[PieceT, ...]:
    """Tokens or trivia: those before the part, of the part, and after it at their new places."""
    by = part.end - part.old_end
    head: tuple[PieceT, ...] = before[: bisect_left(before, part.start, key=_start)]
    tail: tuple[PieceT, ...] = before[bisect_left(before, part.old_end, key=_start) :]
    inside: list[PieceT] = (
        read_ if part.whole else read_[: bisect_left(read_, part.end, key=_start)]
    )
    if by:
        # Half of what making a named tuple costs is its own `__new__`.
        new: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        moved = [new(kind, (word, text, start + by, end + by)) for word, text, start, end in tail]
        tail = tuple(moved)
    return (*head, *inside, *tail)


def _kept(diagnostics: Iterable[Diagnostic], part: _Part) -> list[Diagnostic] | None:
    """Diagnostics of what is not read again, at their new places; None if one belongs to both."""
    found: list[Diagnostic] = []
    for each in diagnostics:
        sides = {_side(span, part) for span in _spans(each)}
        if len(sides) > 1:
            return None
        side = sides.pop()
        if side < 0:
            found.append(each)
        elif side > 0:
            found.append(_moved(each, part.end - part.old_end))
    return found


def _side(span: Span, part: _Part) -> int:
    if span.start < part.start:
        return -1
    return 1 if span.start >= part.old_end and not part.whole else 0


def _spans(diagnostic: Diagnostic) -> Iterator[Span]:
    yield diagnostic.span
    for label in diagnostic.labels:
        yield label.span
    for fix in diagnostic.fixes:
        for edit in fix.edits:
            yield edit.span


def _moved(diagnostic: Diagnostic, by: int) -> Diagnostic:
    def place(span: Span) -> Span:
        return Span(span.start + by, span.end + by)

    return replace(
        diagnostic,
        span=place(diagnostic.span),
        labels=tuple(Label(each.file, place(each.span), each.text) for each in diagnostic.labels),
        fixes=tuple(
            Fix(
                fix.title, tuple(Edit(each.file, place(each.span), each.text) for each in fix.edits)
            )
            for fix in diagnostic.fixes
        ),
    )
