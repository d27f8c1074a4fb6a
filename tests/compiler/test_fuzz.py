"""No text makes the compiler raise, hang or take more memory than the text is worth."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterable
from random import Random

import pytest

from qoqi.compiler import api
from tests.compiler.fuzzing import OneFile, corpus, edited, random_text, survive

N = 10_000
CORPUS = corpus()


def in_a_function(expression: str) -> str:
    return f"fn f() -> Int {{\n    return {expression}\n}}\n"


def in_a_flow(statements: str) -> str:
    return f"flow F() {{\n    run {{\n{statements}\n    }}\n}}\n"


def lines(of: Iterable[str]) -> str:
    return "\n".join(of)


@pytest.mark.parametrize("seed", range(40))
def test_words_in_any_order(seed: int) -> None:
    random = Random(seed)
    for _ in range(10):
        survive(random_text(random))


@pytest.mark.parametrize("seed", range(60))
def test_programs_after_random_edits(seed: int) -> None:
    random = Random(seed)
    for _ in range(8):
        survive(edited(random, random.choice(CORPUS), random.choice(CORPUS)))


def test_programs_cut_off_anywhere() -> None:
    random = Random(0)
    for text in random.sample(CORPUS, 60):
        survive(text[: random.randrange(len(text))])


DEEP = {
    "parentheses": in_a_function("(" * N + "1" + ")" * N),
    "lists": in_a_function("[" * N + "]" * N),
    "signs": in_a_function("-" * N + "1"),
    "sums": in_a_function("1" + " + 1" * N),
    "defaults": in_a_function("1" + " ?? 1" * N),
    "fields": in_a_function("x" + ".x" * N),
    "calls": in_a_function("f" + "()" * N),
    "methods": in_a_function('"a"' + ".trim()" * N),
    "indexes": in_a_function("x" + "[0]" * N),
    "closures": in_a_function("fn() => " * N + "1"),
    "interpolations": in_a_function('"\\(' * N + "1" + ')"' * N),
    "blocks": in_a_flow("if true {\n" * N + "}\n" * N),
    "loops": in_a_flow("while true {\n" * N + "}\n" * N),
    "else": in_a_flow("if true { } " + "else if true { }" * N),
    "matches": in_a_flow("match 1 { case _: " * N + "}" * N),
    "types": "fn f(x: " + "List<" * N + "Int" + ">" * N + ") {}\n",
    "functions": "fn f(x: " + "fn() -> " * N + "Int) {}\n",
    "patterns": in_a_flow("let " + "(" * N + "a" + ", b)" * N + " = 1"),
}


@pytest.mark.parametrize("name", DEEP)
def test_what_is_nested_ten_thousand_times_is_refused(name: str) -> None:
    assert set(survive(DEEP[name])) & {"E0107", "E0322"}


@pytest.mark.parametrize("levels", [30, 60, 85, 120, 170, 250, 499])
def test_what_the_checker_takes_the_rest_takes_too(levels: int) -> None:
    """Rules and emitter go down the tree by recursion: the checker is the one that counts."""
    shapes = [
        in_a_function("1" + " + 1" * levels),
        in_a_function("(" * levels + "1" + ")" * levels),
        in_a_function("(1 + " * levels + "1" + ")" * levels),
        in_a_function("if true { " * levels + "1" + " } else { 2 }" * levels),
        in_a_function("[1].map(fn(x) { return " * levels + "1" + " }).len()" * levels),
        in_a_flow("while true {\n" * levels + "flow.sleep(1s)\n" + "}\n" * levels),
        in_a_flow("wait match {\ncase after 1s:\n" * levels + "return\n" + "}\n" * levels),
    ]
    for text in shapes:
        survive(text)


ARMS = lines(f"case {i}: return" for i in range(2_000))
OTHERS = " | ".join(map(str, range(2_000)))
VARIANTS = lines(f"A{i}" for i in range(500))
CASES = lines(f"case A{i}: return {i}" for i in range(500))
PAIRS = lines(f"let x{i + 1} = (x{i}, x{i})" for i in range(60))
LONG = {
    "arms": f"fn f(x: Int) {{\nmatch x {{\n{ARMS}\ncase _: return\n}}\n}}\n",
    "alternatives": f"fn f(x: Int) {{\nmatch x {{\ncase {OTHERS}: 1\ncase _: return\n}}\n}}\n",
    "variants": f"enum E {{\n{VARIANTS}\n}}\nfn f(e: E) -> Int {{\nmatch e {{\n{CASES}\n}}\n}}\n",
    "names": f"fn {'a' * 100_000}() {{}}\nfn g() {{ {'a' * 100_001}() }}\n",
    "unknown": lines(f"fn f{i}() {{ x{i}() }}" for i in range(800)),
    "constants": lines(f"const c{i} = c{i + 1}" for i in range(2_000)) + "\nconst c2000 = 1\n",
    "pairs": f"fn f() {{\nlet x0 = 1\n{PAIRS}\n}}\n",
    "empty": "\n" * 1_000_000,
    "digits": in_a_function("9" * 100_000),
}


@pytest.mark.parametrize("name", LONG)
def test_what_is_long_takes_no_more_than_its_length(name: str) -> None:
    start = time.process_time()
    survive(LONG[name])
    assert time.process_time() - start < 4


def test_a_file_of_fifty_megabytes_is_not_read() -> None:
    text = "x" * 50_000_000
    tracemalloc.start()
    codes = survive(text)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert codes == ["E0108"]
    assert most < len(text) / 2


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", []),
        ("\ufeffflow F() { run { } }\n", []),
        ("flow F() {\r\n    run { }\r\n}\r\n", []),
        ("fn f() { }\0\n", ["E0102"]),
        ("fn f() { }\n\ufefffn g() { }\n", ["E0102"]),
        ('const a = "\ud800"\n', ["E0102"]),
        ("// \udfff\n", ["E0102"]),
        ('const a = "\u202e"\n', ["W0111"]),
        ("// \u2066 \u200f\n", ["W0111", "W0111"]),
        ("fn f() { }\u202e\n", ["E0102"]),
    ],
)
def test_characters_that_are_not_seen(text: str, codes: list[str]) -> None:
    assert survive(text) == codes


def test_the_same_text_gives_the_same_diagnostics() -> None:
    random = Random(7)
    for text in random.sample(CORPUS, 20):
        broken = edited(random, text, random.choice(CORPUS))
        first, second = (api.check(".", OneFile(broken)).diagnostics for _ in range(2))
        assert first == second
