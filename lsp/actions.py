"""Code actions: the fixes of diagnostics, and changes that need no diagnostic.

A fix comes from the compiler as edits and is offered as it is. Whatever is made here is tried
before it is offered: the package with the edits must have no diagnostic it did not have before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeAlias

from qoqi.compiler.diagnostics import Diagnostic, Edit
from qoqi.compiler.incremental import Snapshot, Watch
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

Edits: TypeAlias = tuple[Edit, ...]


def actions(
    snapshot: Snapshot,
    diagnostics: Iterable[Diagnostic],
    module: str,
    selected: Span,
    only: Sequence[str] = (),
    watch: Watch | None = None,
    *,
    later: bool = False,
) -> list[Action]:
    """What is offered for a selection, or at a cursor.

    What is made here is tried in checks with a `watch`. To find the fixes that go together takes
    many: the action that does all of them is made if it is asked for by its kind, or else has no
    edits yet where they may come `later`.
    """

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
    at = At(snapshot, module, tree, facts, watch or Watch())
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
    if wanted(FIX_ALL) and (only or later):
        found += fix_all(at, known, later=not only)
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


def fix_all(at: At, diagnostics: Sequence[Diagnostic], *, later: bool = False) -> list[Action]:
    """One action with the fix of every diagnostic that has just one, as far as they go together."""
    candidates = [
        each.fixes[0].edits
        for each in diagnostics
        if len(each.fixes) == 1 and all(edit.file == at.file.path for edit in each.fixes[0].edits)
    ]
    title = "Fix all problems that have one fix" if len(candidates) > 1 else "Fix the problem"
    action = Action(title, FIX_ALL, (), later=True)
    if later and candidates:
        return [action]
    chosen = _together(at, [], candidates)
    if not chosen:
        return []
    title = title if len(chosen) > 1 else "Fix the problem"
    edits = tuple(edit for each in chosen for edit in each)
    return [replace(action, title=title, edits=edits, later=False)]


def _together(at: At, chosen: list[Edits], candidates: list[Edits]) -> list[Edits]:
    """Those chosen, and of the candidates, in their order, all that do no harm beside them.

    They are tried all at once, and in halves where that does harm: most of them do none.
    """
    apart: list[Edits] = []
    for each in candidates:
        others = [edit.span for edits in (*chosen, *apart) for edit in edits]
        if not any(_overlap(edit.span, other) for edit in each for other in others):
            apart.append(each)
    if not apart:
        return chosen
    if at.harmless([edit for edits in (*chosen, *apart) for edit in edits]):
        return [*chosen, *apart]
    if len(apart) == 1:
        return chosen
    middle = len(apart) // 2
    return _together(at, _together(at, chosen, apart[:middle]), apart[middle:])


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
