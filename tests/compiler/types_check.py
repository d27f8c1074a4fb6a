"""Checks a text as one module, names and types only, and says what was found where.

In a test's text «…» marks the span that a diagnostic is expected at; the marks are taken out before
the text is read. `others` are more modules of the same package, by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from qoqi.compiler.diagnostics import Diagnostic, Fix
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.types.checker import check
from qoqi.compiler.types.facts import Checked

PATH = "m.flow"


def analyse(
    text: str,
    others: Mapping[str, str] | None = None,
    packages: Mapping[str, str] | None = None,
) -> tuple[Checked, list[Diagnostic]]:
    """The facts of module `m`, and its diagnostics; the text must parse."""
    texts = {"m": text, **(others or {})}
    parsed = {name: parse(SourceFile(f"{name}.flow", name, t)) for name, t in texts.items()}
    for file in parsed.values():
        assert [d.message for d in file.diagnostics] == []
    return check(parsed, packages)


def problems(text: str, others: Mapping[str, str] | None = None) -> list[str]:
    """`CODE message` of each diagnostic."""
    return [f"{d.code} {d.message}" for d in analyse(text, others)[1]]


def marked(text: str, others: Mapping[str, str] | None = None) -> list[tuple[str, bool]]:
    """The code of each diagnostic, and whether it is exactly at the mark."""
    start = text.index("«")
    end = text.index("»") - 1
    text = text.replace("«", "").replace("»", "")
    found = analyse(text, others)[1]
    return [(d.code, tuple(d.span) == (start, end)) for d in found]


def the_one(text: str, others: Mapping[str, str] | None = None) -> Diagnostic:
    """The only diagnostic of a text."""
    found = analyse(text, others)[1]
    assert len(found) == 1, [f"{d.code} {d.message}" for d in found]
    return found[0]


def applied(text: str, fix: Fix) -> str:
    """A text after a fix."""
    for edit in sorted(fix.edits, key=lambda edit: edit.span, reverse=True):
        assert edit.file == PATH
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    return text


def fixed(text: str, title: str, others: Mapping[str, str] | None = None) -> str:
    """A text after the fix of that title; the fix must leave nothing to report."""
    diagnostic = the_one(text, others)
    fix = next(fix for fix in diagnostic.fixes if fix.title == title)
    result = applied(text, fix)
    assert problems(result, others) == []
    return result
