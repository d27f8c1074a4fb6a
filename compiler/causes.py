"""First causes: what follows from a mistake that is said already is not said.

A declaration with a syntax error that lost part of it (a word that could not stand there, an open
text, a reserved word as a name) has a tree that its author did not write: what the checker and the
rules say of it, or of its fields and variants elsewhere, follows from the one mistake. So for such
declarations syntax speaks alone. An error that was repaired exactly (a missing `,`, `=` for `==`)
loses nothing, and hides nothing. An open text takes the brackets that follow it on its line along:
that they are missing is not said.

A lint of a declaration waits until there are no errors in it: what is not used, thrown away or
never reached may be so because of them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence

from qoqi.compiler.codes import SYNTAX
from qoqi.compiler.diagnostics import Diagnostic, Severity
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import Parsed

_LOSING = frozenset(["E0101", "E0110", "E0113", "E0120"])
_UNKNOWN = frozenset(["E0201", "E0202", "E0204"])
_WORD = re.compile(r"[A-Za-z_]\w*")

# The declaration that a place in a file belongs to: what stands between two, to the one before.
_Find = Callable[[str, Span], tuple[str, int] | None]


def first_causes(found: Sequence[Diagnostic], parsed: Mapping[str, Parsed]) -> Sequence[Diagnostic]:
    """The diagnostics of a package without those that follow from others of them."""
    if not any(each.severity is Severity.ERROR for each in found):
        return found
    find = _declarations(parsed)
    broken: set[tuple[str, int] | None] = set()
    unclosed: set[tuple[str, int] | None] = set()
    wrong: set[tuple[str, int] | None] = set()
    for each in found:
        place = find(each.file, each.span)
        if each.code in _LOSING:
            broken.add(place)
        if each.code == "E0101":
            unclosed.add(place)
        if each.severity is Severity.ERROR:
            wrong.add(place)
    lost = _lost_words(parsed)
    misnamed = {(each.file, each.span) for each in found if each.code == "E0114"}

    def follows(each: Diagnostic) -> bool:
        own = find(each.file, each.span)
        if each.code in SYNTAX:
            return each.code == "E0111" and own in unclosed
        if each.severity is not Severity.ERROR:
            return own is not None and own in wrong
        if (each.file, each.span) in misnamed:
            return True
        places = [own, *(find(label.file, label.span) for label in each.labels)]
        if any(place is not None and place in broken for place in places):
            return True
        return each.code in _UNKNOWN and any(f"`{name}`" in each.message for name in lost)

    return [each for each in found if not follows(each)]


def _declarations(parsed: Mapping[str, Parsed]) -> _Find:
    modules = {each.file.path: each.module for each in parsed.values()}
    starts: dict[str, list[int]] = {}

    def find(file: str, span: Span) -> tuple[str, int] | None:
        if file not in starts:
            items = modules[file].items if file in modules else ()
            starts[file] = [item.span.start for item in items]
        if not starts[file]:
            return None
        return file, max(bisect_right(starts[file], span.start) - 1, 0)

    return find


def _lost_words(parsed: Mapping[str, Parsed]) -> set[str]:
    """The words of declarations of which nothing could be read: one may be what is missed."""
    return {
        word
        for each in parsed.values()
        for item in each.module.items
        if isinstance(item, ast.ErrorItem)
        for word in _WORD.findall(each.file.text[item.span.start : item.span.end])
    }
