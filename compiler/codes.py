"""The catalogue: every code there is, with the title of its page in `rules/docs`.

A code is given once and never used for anything else. `E01xx` is syntax, `E02xx` names, modules and
the lock, `E03xx` types and patterns, `F00xx` the rules of flows, `W01xx` lints. `F01xx` and `R00xx`
happen at run time: the machine has their titles (`vm.codes`), and they are here beside the others.
"""

from __future__ import annotations

from typing import Final

from qoqi.vm.codes import RUNTIME_CODES

# What the lexer, the parser and the builder find.
SYNTAX: Final[dict[str, str]] = {
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

# What the package loader, the resolver and the checker find.
TYPES: Final[dict[str, str]] = {
    "E0201": "unknown name",
    "E0202": "unknown type",
    "E0203": "unknown module",
    "E0204": "a module has no such name",
    "E0205": "not public",
    "E0206": "a name declared twice",
    "E0207": "constants that need each other",
    "E0208": "a local hides a field or channel of its flow",
    "E0209": "a name bound twice in one pattern",
    "E0210": "alternatives that bind different names",
    "E0211": "a mistake in flow.toml",
    "E0212": "a source file that cannot be a module",
    "E0213": "an ambiguous method",
    "E0214": "assignment to a captured variable",
    "E0215": "a field used above its declaration",
    "E0216": "not a place",
    "E0217": "a stage that names a parameter or field",
    "E0219": "`break` or `continue` outside a loop",
    "E0220": "not a value",
    "E0221": "`native` outside the standard library",
    "E0222": "a name that handles of tests have",
    "E0301": "a value of another type",
    "E0302": "no such field, method or variant",
    "E0303": "a struct literal without all fields",
    "E0304": "a field that does not belong there",
    "E0306": "a bare variant where no enum is expected",
    "E0307": "other arguments than the parameters",
    "E0308": "a call of something that is no function",
    "E0309": "an operator that does not take these types",
    "E0310": "`?` where it cannot return",
    "E0311": "nothing says the type",
    "E0312": "a pattern that cannot match",
    "E0313": "a pattern that may not match",
    "E0314": "a type that lacks what is required of it",
    "E0315": "a path without `return`",
    "E0316": "a type written wrongly",
    "E0317": "not something to wait for",
    "E0318": "not something to index or iterate",
    "E0319": "an `else` that goes on",
    "E0320": "a type that cannot be decoded",
    "E0321": "a test tool where there is none",
    "E0322": "too deeply nested",
}

# What the rules find.
RULES: Final[dict[str, str]] = {
    "E0218": "a field without a value",
    "E0305": "arms that do not cover every value",
    "E0323": "a clause that is not a constant",
    "E0324": "a step that uses its flow's state",
    "F0001": "an effect outside a step",
    "F0002": "a type that is not data",
    "F0003": "a flow operation outside flow code",
    "F0004": "a stage that cannot be entered again",
    "F0005": "a variable the stage does not carry",
    "F0006": "a wait without the cancelled case",
    "F0008": "a migration that does not fit",
    "F0009": "two of one name in a flow",
    "F0011": "an undo of something that is not a step",
    "F0012": "a step called from a step",
    "F0014": "a cancellation nobody would hear",
    "F0015": "a clause that makes no sense",
    "F0016": "a wait that can never end",
    "F0017": "a flow without `run`, or with two",
    "W0101": "a loop that waits without a stage",
    "W0102": "a request that is not answered",
    "W0103": "an answer thrown away",
    "W0104": "a stage passed while tasks live",
    "W0105": "a length of time that starts again",
    "W0106": "a variable that is not used",
    "W0107": "an import that is not used",
    "W0108": "code that never runs",
    "W0109": "an arm that never matches",
    "W0110": "a variable hidden by another",
    "W0111": "a character that hides how a line reads",
}

# What a build finds: flow.lock, and what changed against it.
BUILD: Final[dict[str, str]] = {
    "E0230": "a merge conflict in flow.lock",
    "E0231": "a flow.lock that cannot be read",
    "E0232": "a flow.lock of another format",
    "E0233": "a flow.lock that is out of date",
    "E0234": "a build that cannot be written",
    "F0007": "a stage's shape changed without a migration",
    "F0010": "a stage that is gone",
    "F0013": "a channel removed or retyped",
    "W0120": "the step of an undo is gone",
    "W0121": "a migration that is not run",
}

CODES: Final[dict[str, str]] = {
    **SYNTAX,
    **TYPES,
    **RULES,
    **BUILD,
    **{code: entry.title for code, entry in RUNTIME_CODES.items()},
}
