"""The words of syntax errors: what was expected and what was found, as the user writes them."""

from __future__ import annotations

from qoqi.compiler.syntax.tokens import (
    CLAUSE_WORDS,
    END,
    NAME,
    NL,
    STRING,
    STRING_END,
    STRING_MIDDLE,
    STRING_START,
    TYPE,
    Token,
)

# What one kind is called; a group is called by the first of its kinds that only it has.
_NAMES = {
    NAME: "a name",
    TYPE: "a type's name",
    NL: "the end of the line",
    END: "the end of the file",
    STRING: "a text",
    STRING_END: "the end of the text",
    "INT": "a number",
    "EQUAL": "`=`",
    "RANGE": "`..`",
    "STRUCT_OPEN": "`{`",
    "LAMBDA": "`fn`",
    "COLOUR": "`fn`",
}
_GROUPS: tuple[tuple[str, str, frozenset[str]], ...] = (
    (
        "import",
        "a declaration",
        frozenset(
            [
                "pub",
                "import",
                "const",
                "struct",
                "enum",
                "fn",
                "native",
                "extern",
                "step",
                "steps",
                "flow",
                "test",
                "given",
            ]
        ),
    ),
    (
        "channel",
        "a member of the flow",
        frozenset(
            [
                "channel",
                "var",
                "view",
                "run",
                "migrate",
                "fn",
                "extern",
                "pub",
                "step",
                "steps",
                "const",
            ]
        ),
    ),
    (
        "while",
        "a statement",
        frozenset(
            [
                "let",
                "var",
                "while",
                "for",
                "return",
                "break",
                "continue",
                "defer",
                "stage",
                "become",
                "given",
            ]
        ),
    ),
    (
        "!",
        "an expression",
        frozenset(
            [
                "!",
                "-",
                "(",
                "[",
                "if",
                "match",
                "wait",
                "true",
                "false",
                "LAMBDA",
                "NAME",
                "TYPE",
                "INT",
                "DECIMAL",
                "DURATION",
                "DATE",
                "TIME",
                "STRING",
                "STRING_START",
            ]
        ),
    ),
    (
        "_",
        "a pattern",
        frozenset(
            [
                "_",
                "-",
                "(",
                "[",
                "true",
                "false",
                "NAME",
                "TYPE",
                "INT",
                "DECIMAL",
                "DURATION",
                "DATE",
                "TIME",
                "STRING",
                "STRING_START",
            ]
        ),
    ),
    ("LAMBDA", "a type", frozenset(["LAMBDA", "TYPE", "NAME", "("])),
    ("within", "a clause", frozenset(CLAUSE_WORDS)),
)
# What may follow any operand says nothing about what is wrong, as long as anything else does.
_OPERATORS = frozenset(
    [
        "&&",
        "||",
        "??",
        "COMPARE",
        "TIMES",
        "RANGE",
        "+",
        "-",
        "<",
        ">",
        "in",
        "not",
        ".",
        "?",
        "(",
        "[",
        "STRUCT_OPEN",
        "ASSIGN_OP",
        "=",
        "|",
    ]
)
_FOREIGN = {
    "elif": "`elif` is written `else if`",
    "elsif": "`elsif` is written `else if`",
    "class": "there are no classes: a `struct` has fields, a function whose first parameter is"
    " `self` is a method",
    "interface": "there are no interfaces",
    "trait": "there are no traits",
    "try": "there are no exceptions: a function answers a `Result`, `e?` hands its `Err` on",
    "throw": 'there are no exceptions: return `Err(…)`, or `fail("…")` for a mistake',
    "raise": 'there are no exceptions: return `Err(…)`, or `fail("…")` for a mistake',
    "loop": "a loop without an end is `while true { … }`",
    "do": "a loop is `while`, `for`, or `while true` with a `break`",
    "new": "a struct is made by `Name { … }`, without `new`",
    "mut": "a variable that changes is `var`",
    "type": "a type is declared by `struct` or `enum`",
    "use": "modules are used by `import`",
    "using": "modules are used by `import`",
    "public": "visible to other packages is `pub`",
    "is": "equality is `==`; an enum is taken apart by `match`",
    "default": "what no other case covers is `case _:`",
}


def quoted(token: Token) -> str:
    """A token as it is written, shortened."""
    text = token.text.split("\n", 1)[0]
    if len(text) > 24:
        text = text[:24] + "…"
    return f"`{text}`" if text and text.isprintable() else "this"


def found(token: Token) -> str:
    if token.kind in (NL, END, STRING_END) or not token.text:
        return _NAMES.get(token.kind, "this")
    return quoted(token)


def name(kind: str) -> str:
    return _NAMES.get(kind, f"`{kind}`")


def expected(kinds: set[str], token: Token) -> str:
    """`expected `)` or `,`, found `x``"""
    left = {kind for kind in kinds if not kind.startswith("ERROR")}
    if "&&" in left and len(left - _OPERATORS) > 0:
        left -= _OPERATORS
    parts: list[str] = []
    for mark, group_name, group in _GROUPS:
        if mark in left and (mark != "LAMBDA" or TYPE in left):
            parts.append(group_name)
            left -= group
    if len(parts) + len(left) > 1:
        left -= {END, NL} if "a declaration" in parts else {END}
    order = [")", "]", "}", "{", ":", ",", "=", "=>", "->", "in", NL, END]
    rest = sorted(left, key=lambda kind: (order.index(kind) if kind in order else 99, kind))
    parts += dict.fromkeys(name(kind) for kind in rest)
    if len(parts) > 4:
        parts = [*parts[:3], "something else"] if not _words(parts) else parts[:4]
    listed = parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " or " + parts[-1]
    return f"expected {listed}, found {found(token)}"


def _words(parts: list[str]) -> bool:
    return all(not part.startswith("`") for part in parts[:3])


def replaced(token: Token, meant: str) -> str:
    if meant == "&&":
        return "comparisons do not chain: join two of them with `&&`"
    if meant == "COMPARE":
        return "`=` gives a variable a value: two values are compared by `==`"
    if meant == ":" and token.text == "=":
        return "a name and its value are joined by `:` here"
    if meant == ":":
        return f"a case ends in `:`, not in `{token.text}`"
    if meant == "->":
        return "the type of the result stands after `->`"
    if meant == ",":
        return "a `,` separates these"
    return f"`{token.text}` is written `{meant}` here"


def dropped(token: Token, tokens: list[Token], at: int) -> str:
    if token.kind == NL:
        if at < len(tokens) and tokens[at].kind == "{":
            return "`{` stands on the line of what it belongs to"
        return "the line cannot end here"
    if token.kind in (")", "]", "}"):
        return f"`{token.text}` closes nothing"
    return f"{found(token)} cannot stand here"


def drop_title(token: Token) -> str:
    return "join the lines" if token.kind == NL else f"remove {found(token)}"


def type_arguments(tokens: list[Token], at: int) -> tuple[str, ...]:
    """`Queue<Int, String> {}`: read as comparisons."""
    index = at if tokens[at].kind in (">", ",") else -1
    while index > 0 and tokens[index - 1].kind in (TYPE, ","):
        index -= 1
    if index < 2 or tokens[index - 1].kind != "<" or tokens[index - 2].kind != TYPE:
        return ()
    return ("a value has no type arguments: say the type of its variable, `let x: T<A> = T { … }`",)


def notes(token: Token, before: Token | None) -> tuple[str, ...]:
    """What a user of another language may have meant."""
    for each in (before, token):
        if each is not None and each.kind in (NAME, STRING_MIDDLE) and each.text in _FOREIGN:
            return (_FOREIGN[each.text],)
    if before is None:
        return ()
    if before.kind == "?" and token.kind not in (NL, END):
        return ("there is no `? :`: write `if c { a } else { b }`",)
    if before.kind == NL and token.kind in ("+", "-", "<", ">", "RANGE", "in"):
        return (f"a line goes on where it ends in an operator: move {quoted(token)} up",)
    if token.kind == STRING_START or token.kind == STRING:
        return ('texts are joined by interpolation: `"\\(a)\\(b)"`',)
    return ()
