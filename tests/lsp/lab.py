"""A package in memory, and what the language server's modules say of it.

In a text `$0` is the cursor, `$1` and `$2` the ends of a selection; they are taken out. The text is
module `m`; `others` are more modules of its package, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from qoqi.compiler.diagnostics import Edit
from qoqi.compiler.incremental import Snapshot, recheck
from qoqi.compiler.project.load import Package
from qoqi.compiler.source import SourceFile, Span
from qoqi.lsp import completion
from qoqi.lsp.items import Item

FOLDER = "/p"
MODULE = "m"


def package(texts: Mapping[str, str]) -> Package:
    sources = tuple(
        SourceFile(f"{FOLDER}/{name.replace('.', '/')}.flow", name, text)
        for name, text in sorted(texts.items())
    )
    return Package("p", FOLDER, sources, (), dict.fromkeys(texts, ""))


@dataclass(frozen=True, slots=True)
class Lab:
    """`text` is without its cursor, which is at `offset`; `selected` is what was marked."""

    text: str
    offset: int
    selected: Span
    snapshot: Snapshot

    @property
    def path(self) -> str:
        return f"{FOLDER}/{MODULE}.flow"

    def of(self, span: Span) -> str:
        return self.text[span.start : span.end]

    def after(self, edits: Iterable[Edit]) -> str:
        """The text of the module after edits to it."""
        return changed(self.text, self.path, edits)


def lab(text: str, others: Mapping[str, str] | None = None) -> Lab:
    marks: dict[str, int] = {}
    while True:
        found = sorted((text.find(mark), mark) for mark in ("$0", "$1", "$2") if mark in text)
        if not found:
            break
        at, mark = found[0]
        marks[mark] = at
        text = text[:at] + text[at + 2 :]
    offset = marks.get("$0", 0)
    selected = Span(marks.get("$1", offset), marks.get("$2", offset))
    return Lab(text, offset, selected, recheck(package({MODULE: text, **(others or {})})))


def changed(text: str, path: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
        if edit.file == path:
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def completed(good: str, broken: str, others: Mapping[str, str] | None = None) -> list[Item]:
    """What is offered at `$0` of a text, when the last text that was checked is another one."""
    snapshot = recheck(package({MODULE: good, **(others or {})}))
    at = broken.index("$0")
    text = broken.replace("$0", "")
    found = completion.complete(snapshot, f"{FOLDER}/{MODULE}.flow", MODULE, text, at)
    return list(found.items)


def labels(items: Iterable[Item]) -> list[str]:
    return [item.label for item in items]
