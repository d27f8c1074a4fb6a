"""Formatting: the layout of `qoqi fmt`, as the few edits that lead to it.

Only lines that differ are replaced, so that cursors and marks elsewhere stay where they are. A text
with syntax errors has no layout, and stays.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from qoqi.compiler.diagnostics import Edit, Severity
from qoqi.compiler.source import Span
from qoqi.compiler.syntax.parser import Parsed
from qoqi.compiler.syntax.printer import format as layout


def formatted(parsed: Parsed) -> str | None:
    """The whole text in its layout; None where it has none."""
    if any(each.severity is Severity.ERROR for each in parsed.diagnostics):
        return None
    return layout(parsed)


def edits(parsed: Parsed, within: Span | None = None) -> list[Edit]:
    """The edits to the layout; with a range, those that touch its lines."""
    after = formatted(parsed)
    before = parsed.file.text
    if after is None or after == before:
        return []
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    found: list[Edit] = []
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        span = Span(starts[a], starts[b])
        if within is None or (span.start <= within.end and span.end >= within.start):
            found.append(Edit(parsed.file.path, span, "".join(new[c:d])))
    return found
