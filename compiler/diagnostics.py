"""Diagnostics are values: a code, a place, one sentence, labels, notes and fixes.

Nothing here draws. `runtime.cli.render` shows a diagnostic in a terminal, `to_json` in a pipe and
`lsp.convert` in an editor; all three read this one value and add no facts of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from qoqi.compiler.source import LineIndex, Span
from qoqi.vm.dataclass import dataclass


class Severity(IntEnum):
    """Numbered as the Language Server Protocol numbers them."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


@dataclass(frozen=True, slots=True)
class Label:
    """A second place that explains the first. `file` is a path as in `SourceFile.path`."""

    file: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    file: str
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that remove the diagnostic, applied together; `title` is an imperative."""

    title: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. `message` is one line that stands alone; `notes` say what to do about it."""

    code: str
    severity: Severity
    file: str
    span: Span
    message: str
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    fixes: tuple[Fix, ...] = ()


def error(
    code: str,
    file: str,
    span: Span,
    message: str,
    *,
    labels: Iterable[Label] = (),
    notes: Iterable[str] = (),
    fixes: Iterable[Fix] = (),
) -> Diagnostic:
    """An error; `warning` builds the same with less weight."""
    return Diagnostic(
        code, Severity.ERROR, file, span, message, tuple(labels), tuple(notes), tuple(fixes)
    )


def warning(
    code: str,
    file: str,
    span: Span,
    message: str,
    *,
    labels: Iterable[Label] = (),
    notes: Iterable[str] = (),
    fixes: Iterable[Fix] = (),
) -> Diagnostic:
    return Diagnostic(
        code, Severity.WARNING, file, span, message, tuple(labels), tuple(notes), tuple(fixes)
    )


def sort(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """By file, place and code, without exact repeats: output is the same on every machine."""
    unique = {(d.file, d.span, d.code, d.message): d for d in diagnostics}
    return sorted(unique.values(), key=lambda d: (d.file, d.span, d.code, d.message))


def to_json(diagnostic: Diagnostic, indexes: Mapping[str, LineIndex]) -> dict[str, object]:
    """The form of `qoqi check --format json`: positions 1-based, columns in code points."""

    def place(file: str, span: Span) -> dict[str, dict[str, int]]:
        index = indexes[file]
        (line, column), (end_line, end_column) = (
            index.position(span.start),
            index.position(span.end),
        )
        return {
            "start": {"line": line, "column": column},
            "end": {"line": end_line, "column": end_column},
        }

    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity.name.lower(),
        "message": diagnostic.message,
        "file": diagnostic.file,
        "span": place(diagnostic.file, diagnostic.span),
        "labels": [
            {"file": label.file, "span": place(label.file, label.span), "text": label.text}
            for label in diagnostic.labels
        ],
        "notes": list(diagnostic.notes),
        "fixes": [
            {
                "title": fix.title,
                "edits": [
                    {"file": edit.file, "span": place(edit.file, edit.span), "text": edit.text}
                    for edit in fix.edits
                ],
            }
            for fix in diagnostic.fixes
        ],
    }
