"""Tokens and trivia: nothing of a text is lost, and words mean what their place says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.lexer import MAX_CHARACTERS, Lexed, lex
from qoqi.compiler.syntax.tokens import Token, Trivia

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.flow"))
PIECES = [
    *'()[]{}"\\\n\r\t ;=<>|.,:?!-+*/%&@#$',
    *("\\(", "\r\n", '"""', '#"', '"#', "..", "->", "=>", "//", "///x\n", "//!", "/*", "'a'"),
    *("\ufeff", "\ud800", "\u2028", "\0", "é", "<<<<<<< a\n", "1h", "1.5", "@2026-01-01", "_"),
    *("let ", "x", "X", "fn ", "flow ", "step ", "case ", "match ", "if ", "given ", "then "),
    *("after ", "wait ", "stage ", "within ", "not ", "in ", "struct ", "native ", "and ", "as "),
]
texts = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))


def read(text: str) -> Lexed:
    return lex(SourceFile("a.flow", "a", text))


def kinds(text: str) -> str:
    return " ".join(token.kind for token in read(text).tokens)


def joined(lexed: Lexed) -> str:
    pieces: list[Token | Trivia] = [*lexed.tokens, *lexed.trivia]
    pieces.sort(key=lambda piece: (piece.start, piece.end))
    at = 0
    for piece in pieces:
        assert piece.start == at
        assert piece.end == at + len(piece.text)
        at = piece.end
    return "".join(piece.text for piece in pieces)


@settings(max_examples=300, deadline=None)
@given(texts)
@example("\ufefflet \0\ud800\u2028\r\n")
@example('"a\\(b\r\nc"')
@example('"""\\("\\(')
@example("// a\r\n/// b\r//!")
@example("List<Int>= 3")
def test_tokens_and_trivia_are_the_text(text: str) -> None:
    assert joined(read(text)) == text


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_samples_are_lexed_without_loss_or_error(path: Path, newline: str) -> None:
    text = path.read_text(encoding="utf-8").replace("\n", newline)
    lexed = read(text)
    assert joined(lexed) == text
    assert lexed.diagnostics == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb", "NAME NL NAME"),
        ("a\n\n// c\nb", "NAME NL NAME"),
        ("a +\nb", "NAME + NAME"),
        ("a\n.b", "NAME . NAME"),
        ("a // c\n  // d\n  ?? b", "NAME ?? NAME"),
        ("a\n..b", "NAME NL RANGE NAME"),
        ("a\n-b", "NAME NL - NAME"),
        ("f(a\n, b\n)\nc", "NAME ( NAME , NAME ) NL NAME"),
        ("f(fn() {\na\nb\n})", "NAME ( LAMBDA ( ) { NAME NL NAME } )"),
        ("{ a\n}\nb", "{ NAME } NL NAME"),
        ("x: List<Int>\ny", "NAME : TYPE < TYPE > NL NAME"),
        ("a >\nb", "NAME > NAME"),
        ("A.B < A.C && a >= b", "TYPE . TYPE < TYPE . TYPE && NAME COMPARE NAME"),
        ("a.B<Int>\nb", "NAME . TYPE < TYPE > NL NAME"),
        ("return\nbreak\n", "return NL break"),
        ("a\nelse", "NAME else"),
        ("case a:\nb\ncase c:", "case NAME : NAME case NAME :"),
    ],
)
def test_where_a_statement_ends(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flow A(", "flow TYPE ("),
        ("flow.now()", "NAME . NAME ( )"),
        ("let flow = step", "let NAME = NAME"),
        ("step step(step: Int)", "step NAME ( NAME : TYPE )"),
        ("channel channel: Int", "channel NAME : TYPE"),
        ("run {", "run {"),
        ("run = 1", "NAME = INT"),
        ("x.match.flow.let", "NAME . NAME . NAME . NAME"),
        ("stage in x", "NAME in NAME"),
        ("stage stage(at)", "stage NAME ( NAME )"),
        ("become on(to: at)", "become NAME ( NAME : NAME )"),
        ("extern step a() within within", "extern step NAME ( ) within NAME"),
        ("extern step a()\n within 1s\n on x", "extern step NAME ( ) within DURATION on NAME"),
        ("extern step a()\nwithin = 1", "extern step NAME ( ) within = INT"),
        ("step a() tries forever for 1h", "step NAME ( ) tries forever for DURATION"),
        ("within\non", "NAME NL NAME"),
        ("case at t:", "case at NAME :"),
        ("case at:", "case NAME :"),
        ("case at if x:", "case NAME if NAME :"),
        ("case when.ok:", "case NAME . NAME :"),
        ("given a() => b then never", "given NAME ( ) => NAME then never"),
        ("given a() => then", "given NAME ( ) => NAME"),
        ("given a(_)\n  after 1s\n", "given NAME ( _ ) NL NAME DURATION"),
        ("given a() => b\n  then after 1s c", "given NAME ( ) => NAME then after DURATION NAME"),
        ("given after fails fails", "given NAME fails NAME"),
        ("import a as b", "import NAME as NAME"),
        ("let as = as", "let NAME = NAME"),
        ("native flow fn a()", "native COLOUR fn NAME ( )"),
        ("native = 1", "NAME = INT"),
        ("steps within 1s {", "steps within DURATION {"),
        ("steps()", "NAME ( )"),
    ],
)
def test_words_by_position(text: str, expected: str) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("let a = B { c }", "let NAME = TYPE STRUCT_OPEN NAME }"),
        ("if a == B { c }", "if NAME COMPARE TYPE { NAME }"),
        ("if f(B { c }) { d }", "if NAME ( TYPE STRUCT_OPEN NAME } ) { NAME }"),
        ("if let B { c } = d { e }", "if let TYPE STRUCT_OPEN NAME } = NAME { NAME }"),
        ("case B { c } if d == E { f }:", None),
        ("fn a() -> B { c }", "fn NAME ( ) -> TYPE { NAME }"),
        ("fn(a) => B { c }", "LAMBDA ( NAME ) => TYPE STRUCT_OPEN NAME }"),
        ("struct B { c: D }", "struct TYPE { NAME : TYPE }"),
        ("a\nB\n{ c }", "NAME NL TYPE NL { NAME }"),
        ("for a in B { c }", "for NAME in TYPE { NAME }"),
    ],
)
def test_what_a_brace_opens(text: str, expected: str | None) -> None:
    if expected is None:
        expected = "case TYPE STRUCT_OPEN NAME } if NAME COMPARE TYPE STRUCT_OPEN NAME } :"
    assert kinds(text) == expected


def test_interpolated_expressions_are_tokens_in_their_place() -> None:
    text = '"a \\(b["\\(c)"]) d"'
    tokens = read(text).tokens
    assert [(token.kind, token.text) for token in tokens] == [
        ("STRING_START", '"a \\('),
        ("NAME", "b"),
        ("[", "["),
        ("STRING_START", '"\\('),
        ("NAME", "c"),
        ("STRING_END", ')"'),
        ("]", "]"),
        ("STRING_END", ') d"'),
    ]
    assert all(text[token.start : token.end] == token.text for token in tokens)


def test_numbers_after_a_dot_are_places_of_a_tuple() -> None:
    assert kinds("t.0.1") == "NAME . INT . INT"
    assert kinds("0..1.5") == "INT RANGE DECIMAL"


def test_documentation_belongs_to_the_token_that_follows() -> None:
    lexed = read("//! M\n//!  more\n/// A\n/// B\n\nstruct X {\n/// C\nc: Int\n}\n//! late")
    assert lexed.module_doc == "M\n more"
    assert sorted(lexed.docs.values()) == ["A\nB", "C"]
    starts = {token.text: token.start for token in lexed.tokens}
    assert lexed.docs[starts["struct"]] == "A\nB"
    assert lexed.docs[starts["c"]] == "C"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ('let a = "b', "E0101", "8-10"),
        ('f("b)', "E0101", "2-4"),
        ('let a = """b\nc', "E0101", "8-11"),
        ('"\\(a\nb', "E0101", "0-4"),
        ('#"a', "E0101", "0-3"),
        ("a § b", "E0102", "2-3"),
        ("\0\0", "E0102", "0-2"),
        ("<<<<<<< a\nb\n=======\nc\n>>>>>>> d\n", "E0109", "0-9"),
        ("a; b", "E0115", "1-2"),
        ("a === b", "E0115", "2-5"),
        ("a && b and c", "E0115", "7-10"),
        ("def f()", "E0115", "0-3"),
        ("let a = await b()", "E0115", "8-13"),
        ("async fn a()", "E0115", "0-5"),
        ("'a'", "E0115", "0-3"),
        ("/* a */ b", "E0115", "0-2"),
    ],
)
def test_what_is_reported(text: str, code: str, place: str) -> None:
    (found,) = read(text).diagnostics
    assert (found.code, f"{found.span.start}-{found.span.end}") == (code, place)


def test_a_file_that_is_too_large_is_not_read() -> None:
    lexed = read("x" * (MAX_CHARACTERS + 1))
    assert [found.code for found in lexed.diagnostics] == ["E0108"]
    assert lexed.tokens == []
    assert not lexed.complete


def test_words_of_other_languages_stay_names_where_they_can_be() -> None:
    lexed = read("let def = switch\nfunction.and(or, await, async)\n")
    assert lexed.diagnostics == []
