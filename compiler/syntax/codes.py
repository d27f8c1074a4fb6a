"""The codes of syntax errors and their titles."""

from __future__ import annotations

SYNTAX_CODES: dict[str, str] = {
    "E0101": "a text is not closed",
    "E0102": "a character is not part of the language",
    "E0103": "an escape is not known",
    "E0104": "a number is not written as numbers are",
    "E0105": "a duration is not written as durations are",
    "E0106": "a date or time is not written as they are",
    "E0107": "nested too deeply",
    "E0108": "a file is too large",
    "E0109": "a merge conflict is not resolved",
    "E0110": "something else was expected",
    "E0111": "something is missing",
    "E0112": "something is too much",
    "E0113": "a reserved word used as a name",
    "E0114": "a name starts with the wrong case",
    "E0115": "spelled as in another language",
    "E0116": "`=` where a comparison is meant",
    "E0117": "a variable without a value",
    "E0118": "comparisons in a chain",
    "E0119": "a clause is written twice",
    "E0120": "a step's body, missing or too much",
    "E0121": "`..` where it cannot stand",
    "E0122": "an option of an option",
    "E0123": "a struct literal without a type's name",
    "E0124": "a plain text is needed",
    "E0125": "a flow without parameters in parentheses",
    "E0126": "too many syntax errors",
}
