"""The codes of names and types with their titles. A page of each stands in `rules/docs`.

E0305 (arms that do not cover every value) and E0218 (a field without a value at the first wait) are
found by the rules; all others here by the resolver, the checker and the package loader.
"""

from __future__ import annotations

TYPE_CODES: dict[str, str] = {
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
