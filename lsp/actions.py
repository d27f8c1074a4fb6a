"""Code actions: the fixes of diagnostics, and changes that need no diagnostic.

A fix comes from the compiler as edits and is offered as it is. Whatever is made here is tried
before it is offered: the package with the edits must have no diagnostic it did not have before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from qoqi.compiler.diagnostics import Diagnostic, Edit
from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.lsp.changes import (
    EXTRACT,
    FIX_ALL,
    INLINE,
    ORGANIZE,
    QUICKFIX,
    REWRITE,
    Action,
    At,
)
from qoqi.lsp.rewrites import add_type, call_to_step, fill_record, write_arms
from qoqi.lsp.variables import extract_variable, inline_variable


def actions(
    snapshot: Snapshot,
    diagnostics: Iterable[Diagnostic],
    module: str,
    selected: Span,
    only: Sequence[str] = (),
) -> list[Action]:
    """What is offered for a selection, or at a cursor."""

    def wanted(kind: str) -> bool:
        return not only or any(kind == each or kind.startswith(f"{each}.") for each in only)

    found: list[Action] = []
    known = list(diagnostics)
    if wanted(QUICKFIX):
        found += fixes(known, selected)
    tree = snapshot.checked.modules.get(module)
    facts = snapshot.checked.facts.get(module)
    if tree is None or facts is None or module not in snapshot.parsed:
        return found
    at = At(snapshot, module, tree, facts)
    makers = {
        REWRITE: (fill_record, call_to_step, add_type, write_arms),
        EXTRACT: (extract_variable,),
        INLINE: (inline_variable,),
    }
    for kind, makes in makers.items():
        if wanted(kind):
            for make in makes:
                found += [each for each in make(at, selected) if at.harmless(each.edits)]
    if wanted(ORGANIZE):
        found += sort_imports(at)
    if wanted(FIX_ALL):
        found += fix_all(at, known)
    return found


# -- fixes ---------------------------------------------------------------------------------------


def fixes(diagnostics: Iterable[Diagnostic], selected: Span) -> list[Action]:
    """The fixes of what is wrong in a selection."""
    found: list[Action] = []
    for each in diagnostics:
        if each.span.start <= selected.end and each.span.end >= selected.start:
            alone = len(each.fixes) == 1
            found += [Action(fix.title, QUICKFIX, fix.edits, each, alone) for fix in each.fixes]
    return found


def fix_all(at: At, diagnostics: Sequence[Diagnostic]) -> list[Action]:
    """One action with the fix of every diagnostic that has just one, as far as they go together."""
    chosen: list[Edit] = []
    count = 0
    for each in diagnostics:
        if len(each.fixes) != 1:
            continue
        edits = each.fixes[0].edits
        if any(edit.file != at.file.path for edit in edits):
            continue
        if any(_overlap(edit.span, other.span) for edit in edits for other in chosen):
            continue
        if at.harmless([*chosen, *edits]):
            chosen += edits
            count += 1
    if not count:
        return []
    title = "Fix all problems that have one fix" if count > 1 else "Fix the problem"
    return [Action(title, FIX_ALL, tuple(chosen))]


def _overlap(one: Span, other: Span) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start


# -- imports -------------------------------------------------------------------------------------


def sort_imports(at: At) -> list[Action]:
    """Imports in one block: the library's first, each by its path, none twice."""
    imports = [item for item in at.tree.items if isinstance(item, ast.ImportDecl)]
    if len(imports) < 2:
        return []
    between = (at.text[a.span.end : b.span.start] for a, b in pairwise(imports))
    if any(text.strip() for text in between):
        return []
    lines = dict.fromkeys(at.slice(item.span).strip() for item in sorted(imports, key=_import_key))
    start, end = imports[0].span.start, imports[-1].span.end
    text = "\n".join(lines)
    if text == at.text[start:end]:
        return []
    return [Action("Sort the imports", ORGANIZE, (at.edit(start, end, text),))]


def _import_key(item: ast.ImportDecl) -> tuple[bool, list[str]]:
    path = [part.name for part in item.path]
    return path[0] != "std", path
