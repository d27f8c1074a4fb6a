"""What holds for the formatter whatever the layout of a program: samples, damaged in all ways."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.dump import dump
from qoqi.compiler.syntax.lexer import lex
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.compiler.syntax.printer import format as layout
from qoqi.compiler.syntax.tokens import COMMENT, DOC, NL, STRING_END, STRING_START

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted(
    [
        *(ROOT / "tests" / "syntax" / "samples").glob("*.flow"),
        *(ROOT / "stdlib").glob("*.flow"),
        *(ROOT / "examples").glob("*.flow"),
    ]
)
INSERTED = ["\n", "\n\n\n", "  ", "\t", "\n      ", " // c\n", "\n// c\n", " // c\n\n  // c\n\n"]
JOINTS = [" ", ", ", "\n"]


def read(text: str) -> Parsed:
    return parse(SourceFile("a.flow", "a", text))


def _items(path: Path) -> list[str]:
    """The items of a file, each as a text of its own."""
    parsed = read(path.read_text("utf-8"))
    assert not parsed.diagnostics
    return [parsed.file.text[item.span.start : item.span.end] for item in parsed.module.items]


ITEMS = sorted({item for path in FILES for item in _items(path) if len(item) < 2500})


def gaps(text: str) -> list[int]:
    """The places between tokens, outside of texts."""
    found: list[int] = []
    depth = 0
    for token in lex(SourceFile("a.flow", "a", text)).tokens:
        depth += token.kind == STRING_START
        if depth == 0 and token.kind != NL:
            found.append(token.start)
        depth -= token.kind == STRING_END
    return found


def same_program(text: str, wanted: str) -> bool:
    parsed = read(text)
    return not parsed.diagnostics and dump(parsed.module) == wanted


@st.composite
def programs(draw: st.DrawFn) -> str:
    """An item whose layout was changed at random, as far as it is the same program still."""
    text = draw(st.sampled_from(ITEMS))
    wanted = dump(read(text).module)
    for _ in range(draw(st.integers(0, 8))):
        place = draw(st.sampled_from(gaps(text)))
        changed = text[:place] + draw(st.sampled_from(INSERTED)) + text[place:]
        text = changed if same_program(changed, wanted) else text
    for _ in range(draw(st.integers(0, 4))):
        lines = text.split("\n")
        if len(lines) > 1:
            at = draw(st.integers(0, len(lines) - 2))
            joined = lines[at] + draw(st.sampled_from(JOINTS)) + lines[at + 1].lstrip()
            changed = "\n".join([*lines[:at], joined, *lines[at + 2 :]])
            text = changed if same_program(changed, wanted) else text
    return text


def comments(parsed: Parsed) -> list[str]:
    return [piece.text.rstrip() for piece in parsed.trivia if piece.kind in (COMMENT, DOC)]


@settings(max_examples=400, deadline=None)
@given(programs(), st.sampled_from([20, 40, 60, 80, 120]))
def test_any_layout_of_a_program_has_a_canonical_one(text: str, width: int) -> None:
    before = read(text)
    formatted = layout(before, width)
    after = read(formatted)

    assert after.diagnostics == ()
    assert dump(after.module) == dump(before.module)
    assert comments(after) == comments(before)
    assert layout(after, width) == formatted


@settings(max_examples=100, deadline=None)
@given(programs())
def test_lines_are_clean(text: str) -> None:
    formatted = layout(read(text))
    lines = formatted.split("\n")

    assert lines[-1] == ""
    assert lines[0] != ""
    if '"""' not in text:
        assert [line for line in lines if line != line.rstrip() or "\t" in line] == []
        assert "\n\n\n" not in formatted


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_samples_keep_their_meaning(path: Path) -> None:
    before = read(path.read_text("utf-8"))
    formatted = layout(before)
    after = read(formatted)

    assert dump(after.module) == dump(before.module)
    assert comments(after) == comments(before)
    assert layout(after) == formatted


@pytest.mark.parametrize(
    "text",
    [
        "fn f() { " + "if a { " * 150 + "b() " + "} " * 150 + "}",
        "const a = " + "f(" * 190 + "1" + ")" * 190,
        "const a = " + "(" * 190 + "1" + ")" * 190,
        "const a = " + "[" * 190 + "1, 2" + "]" * 190,
        "const a = " + " && ".join(["x"] * 400),
        "const a = " + " + ".join(["x"] * 400),
        "const a = x" + ".f(y)" * 200,
    ],
    ids=["blocks", "calls", "parentheses", "lists", "logical", "sum", "methods"],
)
def test_what_can_be_parsed_can_be_formatted(text: str) -> None:
    before = read(text)
    assert before.diagnostics == ()
    formatted = layout(before, 80)

    assert layout(read(formatted), 80) == formatted


EXAMPLES = re.findall(
    r"```flow\n(.*?)```", (ROOT / "docs" / "formatting.md").read_text("utf-8"), re.DOTALL
)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_page_on_formatting_shows_what_is_canonical(text: str) -> None:
    assert layout(read(text)) == text
