"""Checks a text as one module with the rules, and says what was found where.

In a test's text «…» marks the span that a diagnostic is expected at; the marks are taken out before
the text is read. Every fix of what is found is tried, too.
"""

from __future__ import annotations

from collections import Counter

from qoqi.compiler.diagnostics import Diagnostic, Fix, Severity, sort
from qoqi.compiler.rules.registry import run_rules
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.types.checker import check

PATH = "m.flow"


class Judge:
    """`judge(text)` gives what the rules found and the place that was marked, both as text."""

    def __call__(self, text: str) -> tuple[list[str], str]:
        expected = ""
        if "«" in text:
            start = text.index("«")
            end = text.index("»") - 1
            text = text.replace("«", "").replace("»", "")
            expected = place(text, start, end)
        diagnostics = self.diagnostics(text)
        for diagnostic in diagnostics:
            for fix in diagnostic.fixes:
                self.must_help(text, diagnostic, fix)
                # What a stage cannot carry, or a later stage does not, is the next mistake.
                assert self.breaks(text, fix) <= {"F0002", "F0005"}, self.applied(text, fix)
        found = [f"{each.code} {place(text, *each.span)}" for each in diagnostics]
        return found, expected

    def diagnostics(self, text: str) -> list[Diagnostic]:
        """What the rules find in a text that parses and whose types are right."""
        file = SourceFile(PATH, "m", text)
        parsed = parse(file)
        assert [each.message for each in parsed.diagnostics] == [], text
        checked, found = check({"m": parsed})
        wrong = [f"{each.code} {each.message}" for each in found if each.severity is Severity.ERROR]
        assert wrong == [], f"{wrong}\n{text}"
        return run_rules(checked, {"m": parsed})

    def syntax(self, text: str) -> list[str]:
        return [each.message for each in parse(SourceFile(PATH, "m", text)).diagnostics]

    def everything(self, text: str) -> list[Diagnostic]:
        """What parser, checker and rules find in any text."""
        parsed = parse(SourceFile(PATH, "m", text))
        if parsed.diagnostics:
            return list(parsed.diagnostics)
        checked, found = check({"m": parsed})
        return sort([*found, *run_rules(checked, {"m": parsed})])

    def must_help(self, text: str, diagnostic: Diagnostic, fix: Fix) -> None:
        """A fix, applied, leaves a text that parses and lacks the diagnostic."""
        fixed = self.applied(text, fix)
        assert self.syntax(fixed) == [], f"{fix.title}\n{fixed}"
        key = (diagnostic.code, diagnostic.message)
        before = Counter((each.code, each.message) for each in self.everything(text))
        after = Counter((each.code, each.message) for each in self.everything(fixed))
        assert after[key] < before[key], f"{fix.title}\n{fixed}"

    def breaks(self, text: str, fix: Fix) -> set[str]:
        """The codes of errors that a fix brings."""
        fixed = self.everything(self.applied(text, fix))
        known = {each.code for each in self.everything(text)}
        return {each.code for each in fixed if each.severity is Severity.ERROR} - known

    def applied(self, text: str, fix: Fix) -> str:
        for edit in sorted(fix.edits, key=lambda each: each.span, reverse=True):
            assert edit.file == PATH
            text = text[: edit.span.start] + edit.text + text[edit.span.end :]
        return text


judge = Judge()


def place(text: str, start: int, end: int) -> str:
    return f"{text[start:end]!r} at {start}"


def by_code(found: list[str], code: str) -> list[str]:
    """The places of a code."""
    return [each.removeprefix(f"{code} ") for each in found if each.startswith(f"{code} ")]
