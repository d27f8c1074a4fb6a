"""A text that was edited, read again: the same as reading all of it."""

from __future__ import annotations

import random

import pytest

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import reparse as module
from qoqi.compiler.syntax.node import Node, field_names
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.compiler.syntax.reparse import reparse
from qoqi.compiler.syntax.walk import walk

TEXT = """\
//! Orders.

import std.http

/// One position.
struct Item {
    id: String
    cents: Int = 1
}

enum Kind { Small, Large(size: Int) }

const limit = 10 * (2 + 3)

fn total(self: Item) -> Int {
    let text = "a \\(self.id) b"
    return self.cents * limit // half of it
}

/// Sends a text.
extern step send(to: String) -> Bool within 1m tries 3

step pay(item: Item) -> Result<String, String> within 1m {
    if item.cents < 0 { return Err("negative") }
    return Ok(item.id)
}

fn each(items: List<Item>) -> List<Int> {
    return items.map(fn(it) => it.total())
}

/// Sells one.
flow Sale(item: Item) -> Int {
    channel kinds: Kind

    run {
        stage selling
        wait match {
            case let kind = kinds.receive(): return each([item]).len()
            case after 2d: return 0
        }
    }
}

fn last() -> Int { return 1 }

const text = \"\"\"
    fn no() { }
    \"\"\"

test "it sells" {
    given pay(_) => Ok("r")
    assert(last() == 1)
}

fn end() -> Int { return 2 }
"""
INSERTS = [
    *("x", " ", "\n", "\n\n", "{", "}", "(", ")", '"', "\\(", "\r\n", "\t", "\u2028", "\ud800"),
    *("// c\n", "/// d\n", "//! m\n", "fn g() { }\n", "}\nfn h() {\n", "<<<<<<< a\n", "\x00"),
    *(">>>>>>> b\n", "extern step s()\n", "=", "let q = 1\n", '#"', "match x {\n", "fn ", "😀"),
]


def read(text: str) -> Parsed:
    return parse(SourceFile("m.flow", "m", text))


def same(one: object, other: object) -> bool:
    if isinstance(one, Node):
        return type(one) is type(other) and all(
            same(getattr(one, name), getattr(other, name)) for name in field_names(one)
        )
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def assert_same(one: Parsed, other: Parsed) -> None:
    assert one.tokens == other.tokens
    assert one.trivia == other.trivia
    assert one.diagnostics == other.diagnostics
    assert same(one.module, other.module)
    assert (one.clean, one.repaired, one.whole) == (other.clean, other.repaired, other.whole)


def edited(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    match chance.randrange(4):
        case 0:
            return text[:at] + text[at + chance.randint(1, 40) :]
        case 1:
            return text[:at] + text[at:].partition("\n")[2]
        case 2:
            start = chance.randrange(len(text))
            return text[:at] + text[start : start + chance.randint(1, 200)] + text[at:]
        case _:
            return text[:at] + chance.choice(INSERTS) + text[at:]


@pytest.mark.parametrize("seed", range(10))
def test_what_is_read_after_edits_is_what_a_whole_parse_reads(seed: int) -> None:
    chance = random.Random(seed)
    start = TEXT.replace("\n", "\r\n") if seed % 4 == 3 else TEXT
    text, parsed = start, read(start)
    for _ in range(40):
        text = start if chance.random() < 0.3 else edited(text, chance)
        parsed = reparse(parsed, SourceFile("m.flow", "m", text))

        assert_same(parsed, read(text))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("it.total()", "it.total().abs()"),
        ("return 1", "return ("),
        ("Sends a text.", "Sends\n/// two."),
        ("cents: Int", "cents Int"),
    ],
)
def test_an_edit_reads_only_the_declarations_around_it(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: SourceFile) -> Parsed:
        raise AssertionError("all of the text is read")

    text = TEXT.replace(old, new)
    expected = read(text)
    before = read(TEXT)
    monkeypatch.setattr(module, "parse", refuse)

    parsed = reparse(before, SourceFile("m.flow", "m", text))

    assert_same(parsed, expected)


def test_a_bracket_left_open_is_read_with_all_that_follows() -> None:
    text = TEXT.replace("fn last() -> Int {", "fn last() -> Int { {")

    assert_same(reparse(read(TEXT), SourceFile("m.flow", "m", text)), read(text))


def test_the_sample_has_no_mistake() -> None:
    assert read(TEXT).diagnostics == ()


def test_no_node_stands_in_a_tree_twice() -> None:
    """Else its copies would be two nodes, with facts of their own."""
    found = list(walk(read(TEXT).module))

    assert len(found) == len({id(node) for node in found})
