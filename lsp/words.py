"""Keywords where they may stand, and snippets for what is made of several.

A place is one of: the level of declarations, the level of a flow's members, a statement, a value, a
case of a `wait match` or a `match`, the header of a step, a channel or a flow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from qoqi.compiler.syntax import ast
from qoqi.lsp.items import Item
from qoqi.lsp.probe import MARKS, Probe

_CASE = re.compile(r"\bcase\s+\w*\Z")
_HEADER = re.compile(r"^\s*(?:pub\s+)?(?:extern\s+)?steps?\b[^{]*\Z|^\s*channel\b[^{]*:[^{]*\Z")

_STAGE = re.compile(r"(?:^|\n)[ \t]*stage[ \t]+\w*\Z")
_GIVEN = re.compile(r"(?:^|\n)[ \t]*given[ \t]+(?:(\w+)\.)?\w*\Z")
_ANSWER = re.compile(r"(?:^|\n)[ \t]*given[ \t]+[\w.]+(?:\([^\n]*\))?[ \t]+\w*\Z")

TOP: dict[str, str] = {
    "import": "import ${1:std.http}",
    "const": "const ${1:name} = $2",
    "struct": "struct ${1:Name} { ${2:id: String} }",
    "enum": "enum ${1:Name} { ${2:One, Two} }",
    "fn": "fn ${1:name}($2)${3: -> Int} {\n    $0\n}",
    "step": "step ${1:name}($2)${3: -> String} within ${4:1m} {\n    $0\n}",
    "extern step": "extern step ${1:name}($2)${3: -> String} within ${4:2h}",
    "steps": "steps within ${1:30s} {\n    $0\n}",
    "flow": "flow ${1:Name}($2)${3: -> String} {\n    run {\n        $0\n    }\n}",
    "test": 'test "${1:what it shows}" {\n    $0\n}',
    "given": "given ${1:step}(_) => $0",
    "pub": "pub ",
}
MEMBER: dict[str, str] = {
    "channel": "channel ${1:name}: ${2:String}",
    "var": "var ${1:name}: ${2:Int} = ${3:0}",
    "view": "view ${1:name} -> ${2:Int} {\n    $0\n}",
    "run": "run {\n    $0\n}",
    "fn": TOP["fn"],
    "step": TOP["step"],
    "extern step": TOP["extern step"],
    "const": TOP["const"],
    "migrate": "migrate ${1:stage}($2) {\n    become ${3:stage}($4)\n}",
}
STATEMENT: dict[str, str] = {
    "let": "let ${1:name} = $0",
    "var": "var ${1:name} = $0",
    "if": "if ${1:condition} {\n    $0\n}",
    "if let": "if let ${1:Some(x)} = ${2:value} {\n    $0\n}",
    "for": "for ${1:item} in ${2:list} {\n    $0\n}",
    "while": "while ${1:true} {\n    $0\n}",
    "match": "match ${1:value} {\n    case $0\n}",
    "return": "return $0",
    "defer": "defer {\n    $0\n}",
}
IN_FLOW: dict[str, str] = {
    "wait match": "wait match {\n    case let ${1:x} = ${2:channel}.receive(): $0\n"
    "    case after ${3:1d}: ${4:return}\n}",
    "stage": "stage ${1:name}($2)",
}
LOOP = ("break", "continue")
WAIT_CASE: dict[str, str] = {
    "let": "let ${1:x} = ${2:channel}.receive(): $0",
    "after": "after ${1:1h}: $0",
    "at": "at ${1:deadline}: $0",
    "when": "when ${1:condition}: $0",
    "let why = flow.cancelled()": "let why = flow.cancelled(): ${0:return flow.giveUp(why)}",
}
CLAUSES: dict[str, str] = {
    "within": "within ${1:1m}",
    "tries": "tries ${1:5}",
    "tries forever": "tries forever",
    "backoff": "backoff ${1:1s} to ${2:5m}",
    "undo": "undo ${1:step}(it)",
    "limit": "limit ${1:10} per ${2:1m}",
    "on": 'on "${1:queue}"',
    "beat": "beat ${1:30s}",
    "capacity": "capacity ${1:16}",
    "answers": "answers ${1:String}",
    "inside": "inside",
}
STEP_ONLY = ("within", "tries", "tries forever", "backoff", "undo", "limit", "on", "beat")
CHANNEL_ONLY = ("capacity", "answers", "inside")


ANSWER: dict[str, str] = {
    "=>": "=> $0",
    "=> fails": "=> fails",
    "=> never": "=> never",
    "after": "after ${1:1m} => $0",
    "runs": "runs",
}
NOT_PUBLIC = ("pub", "test", "given")


def names_a_stage(prefix: str) -> bool:
    """Whether the word at a cursor is the name of a new stage."""
    return _STAGE.search(prefix) is not None


def given_target(prefix: str) -> str | None:
    """What stands before the dot of the step that a `given` names at a cursor; None elsewhere."""
    found = _GIVEN.search(prefix)
    return None if found is None else found[1] or ""


def gives_an_answer(prefix: str) -> bool:
    """Whether what a `given` says stands before a cursor, and its answer comes next."""
    return _ANSWER.search(prefix) is not None


def answers() -> Iterator[Item]:
    yield from _made(ANSWER, 0)


def _made(words: dict[str, str], rank: int, kind: str = "Snippet") -> Iterator[Item]:
    for word, text in words.items():
        yield Item(word, kind if "$" in text else "Keyword", "", text, "$" in text, rank)


def pattern_words(prefix: str) -> Iterator[Item]:
    """What may follow `case` beside a pattern."""
    line = prefix[prefix.rfind("\n") + 1 :]
    if _CASE.search(line) and _in_wait(prefix):
        yield from _made(WAIT_CASE, 0)
    else:
        yield from _made({"_": "_", "let": "let "}, 6)


def at(found: Probe, text: str) -> Iterator[Item]:
    """The words that may stand at a cursor where a name may."""
    path = found.path
    line = found.prefix[found.prefix.rfind("\n") + 1 :]
    if _CASE.search(line):
        if any(isinstance(node, ast.WaitExpr) for node in path) or _in_wait(found.prefix):
            yield from _made(WAIT_CASE, 0)
        return
    flow = next((node for node in path if isinstance(node, ast.FlowDecl)), None)
    block = any(isinstance(node, ast.Block | ast.RunDecl) for node in path)
    if _HEADER.search(line) and not block:
        clauses = CHANNEL_ONLY if "channel" in line else STEP_ONLY
        yield from _made({word: CLAUSES[word] for word in clauses}, 0)
        return
    if not block:
        if flow is not None and found.at < flow.span.end:
            yield from _made(MEMBER, 0)
        elif not line.strip() or line == line.lstrip():
            public = line.startswith("pub ")
            words = {w: t for w, t in TOP.items() if not (public and w in NOT_PUBLIC)}
            yield from _made(words, 0)
        return
    if _starts_statement(path, line):
        yield from _made(STATEMENT, 6)
        if not any(isinstance(node, ast.StepDecl) for node in path):
            yield from _made(IN_FLOW, 6 if flow is None else 5)
        if any(isinstance(node, ast.WhileStmt | ast.ForStmt) for node in path):
            yield from _made({word: word for word in LOOP}, 6)
        if any(isinstance(node, ast.TestDecl) for node in path):
            yield from _made({"given": TOP["given"]}, 5)
        if any(isinstance(node, ast.MigrateDecl) for node in path):
            yield from _made({"become": "become ${1:stage}($2)"}, 0)
        if any(isinstance(node, ast.MatchExpr | ast.WaitExpr) for node in path):
            yield from _made({"case": "case $0"}, 5)
    else:
        values = {word: STATEMENT[word] for word in ("if", "match")}
        yield from _made({**values, "true": "true", "false": "false", "fn": "fn($1) => $0"}, 6)


def _starts_statement(path: tuple[ast.Node, ...], line: str) -> bool:
    return not line.strip() or any(
        isinstance(node, ast.ExprStmt)
        and isinstance(node.value, ast.Name)
        and node.value.name in MARKS
        for node in path
    )


def _in_wait(prefix: str) -> bool:
    """Whether the innermost open brace before a cursor is that of a `wait match`."""
    depth = 0
    for index in range(len(prefix) - 1, -1, -1):
        char = prefix[index]
        if char == "}":
            depth += 1
        elif char == "{":
            if not depth:
                return bool(re.search(r"wait\s+match\s*\Z", prefix[:index]))
            depth -= 1
    return False
