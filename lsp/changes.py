"""What code actions are made of: an action, and the file it is in.

Whatever an action changes is tried first: `At.harmless` checks the package with the edits made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import TypeVar

from qoqi.compiler.diagnostics import Diagnostic, Edit
from qoqi.compiler.incremental import Snapshot, Watch, recheck
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.walk import node_at
from qoqi.compiler.types.facts import Facts
from qoqi.lsp.navigation import apply
from qoqi.vm.dataclass import dataclass

INDENT = "    "

NodeT = TypeVar("NodeT", bound=ast.Node)

QUICKFIX = "quickfix"
FIX_ALL = "source.fixAll"
ORGANIZE = "source.organizeImports"
EXTRACT = "refactor.extract"
INLINE = "refactor.inline"
REWRITE = "refactor.rewrite"
KINDS = (QUICKFIX, EXTRACT, INLINE, REWRITE, ORGANIZE, FIX_ALL)


@dataclass(frozen=True, slots=True)
class Action:
    """`diagnostic` is the one that a quick fix removes; `preferred` marks the only one there is.

    The edits of an action that is for `later` are made once it is chosen.
    """

    title: str
    kind: str
    edits: tuple[Edit, ...]
    diagnostic: Diagnostic | None = None
    preferred: bool = False
    later: bool = False


@dataclass(frozen=True, slots=True)
class At:
    """The file an action is in; `watch` is that of the checks that try it."""

    snapshot: Snapshot
    module: str
    tree: ast.Module
    facts: Facts
    watch: Watch = field(default_factory=Watch)

    @property
    def file(self) -> SourceFile:
        return self.snapshot.sources[self.module]

    @property
    def text(self) -> str:
        return self.file.text

    def edit(self, start: int, end: int, text: str) -> Edit:
        return Edit(self.file.path, Span(start, end), text)

    def slice(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def indent(self, offset: int) -> str:
        line = self.text[self.line_start(offset) : offset]
        return line[: len(line) - len(line.lstrip())]

    def after(self, edits: Sequence[Edit]) -> Snapshot:
        """The package with these edits made."""
        by_file: dict[str, list[Edit]] = {}
        for edit in edits:
            by_file.setdefault(edit.file, []).append(edit)
        package = self.snapshot.package
        sources = tuple(
            replace(each, text=apply(each.text, by_file[each.path]))
            if each.path in by_file
            else each
            for each in package.sources
        )
        return recheck(replace(package, sources=sources), self.snapshot, self.watch)

    def harmless(self, edits: Sequence[Edit]) -> bool:
        """Whether there is no diagnostic after these edits that was not there before."""
        before = _counts(self.snapshot.diagnostics)
        after = _counts(self.after(edits).diagnostics)
        return all(count <= before.get(code, 0) for code, count in after.items())


def _counts(diagnostics: Iterable[Diagnostic]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in diagnostics:
        found[each.code] = found.get(each.code, 0) + 1
    return found


def free_name(at: At, wanted: str) -> str:
    """A name that nothing in the file has."""
    taken = {token.text for token in at.snapshot.parsed[at.module].tokens}
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}{number}", number + 1
    return name


def around(at: At, selected: Span, kind: type[NodeT]) -> NodeT | None:
    for node in reversed(node_at(at.tree, selected.start)):
        if isinstance(node, kind) and node.span.end >= selected.end:
            return node
    return None


def touches(span: Span, selected: Span) -> bool:
    return span.start <= selected.end and selected.start <= span.end
