"""The canonical layout, rule by rule: what is written, and what becomes of it."""

from __future__ import annotations

from textwrap import dedent

import pytest

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.parser import parse
from qoqi.compiler.syntax.printer import format as layout


def formatted(text: str, width: int = 120) -> str:
    parsed = parse(SourceFile("a.flow", "a", text))
    assert [problem.message for problem in parsed.diagnostics] == []
    return layout(parsed, width)


def body(text: str, width: int = 120) -> str:
    """The formatted statements of a function, without the function."""
    whole = formatted("fn f() {\n" + dedent(text).strip("\n") + "\n}\n", width).splitlines()
    assert (whole[0], whole[-1]) == ("fn f() {", "}")
    return dedent("\n".join(whole[1:-1]))


def block(text: str) -> str:
    return dedent(text).strip("\n")


# -- spaces


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("let x=a+b*-c", "let x = a + b * -c"),
        ("x+=- 1", "x += -1"),
        ("f( a,n :b , )", "f(a, n: b)"),
        ("a . b ( c ) [ 0 ] ?", "a.b(c)[0]?"),
        ("x in 0 .. 10||x not in 0 ..=n", "x in 0..10 || x not in 0..=n"),
        ("let m=[ : ]", "let m = [:]"),
        ('let m = ["a":1 ,"b" : [1,2,],]', 'let m = ["a": 1, "b": [1, 2]]'),
        ("let p=Point{x:1,y,}", "let p = Point { x: 1, y }"),
        ("let p = Point { .. old,x:2 }", "let p = Point { ..old, x: 2 }"),
        ("let e=Empty{ }", "let e = Empty {}"),
        ("let l: List<Map<String,Int ?>>= []", "let l: List<Map<String, Int?>> = []"),
        ("let g=fn( x )=>x", "let g = fn(x) => x"),
        ("let g = fn(x:Int)->Int{return x}", "let g = fn(x: Int) -> Int { return x }"),
        ("if ! ( a ){b()}else{c()}", "if !(a) { b() } else { c() }"),
        ("let low = None<x", "let low = None < x"),
        ("f(Low < High, Mid > x)", "f(Low < High, Mid > x)"),
        ("let t=( 1,2,)", "let t = (1, 2)"),
        ("let y = t . 0 . 1", "let y = t.0.1"),
        ("let y = x? ? .z", "let y = x? ?.z"),
        ("let [first,..rest]=xs", "let [first, ..rest] = xs"),
        ("while true{run( )}", "while true { run() }"),
        ("for( a,b )in m{print( a )}", "for (a, b) in m { print(a) }"),
        ("return", "return"),
    ],
)
def test_spaces_in_a_statement(written: str, wanted: str) -> None:
    assert body(written) == wanted


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("import  std . http  as web", "import std.http as web"),
        ("import a.b.{ X,y, }", "import a.b.{X, y}"),
        ("pub native world fn f<T:Data>( x:T )->List<T>", None),
        ("fn Int . parse( text:String )->Int ?{return None}", None),
        ('enum E{A,B(x:Int)as "b"}', 'enum E { A, B(x: Int) as "b" }'),
        ('struct S{a:Int=1,b:String as "c"}', 'struct S { a: Int = 1, b: String as "c" }'),
        ("steps{}", "steps {}"),
        ('given f(_)after 1s=>a then fails "b"', 'given f(_) after 1s => a then fails "b"'),
    ],
)
def test_spaces_in_a_declaration(written: str, wanted: str | None) -> None:
    expected = {
        "pub native": "pub native world fn f<T: Data>(x: T) -> List<T>",
        "fn Int . p": "fn Int.parse(text: String) -> Int? { return None }",
    }

    assert formatted(written) == (wanted or expected[written[:10]]) + "\n"


def test_literals_are_spelled_as_they_were() -> None:
    text = r'f(1_000_000, 0.000_1, 1w2d, @2026-11-30T08:00+01:00, "\u{e9}\t\\", #"raw \n"#)'

    assert body(text) == text


def test_expressions_in_a_text_are_laid_out_and_stay_on_its_line() -> None:
    assert body(r'print("\( a+b ) \(xs [ 0 ]) \(if c{"x"}else{"y"})")', 20) == (
        r'print("\(a + b) \(xs[0]) \(if c { "x" } else { "y" })")'
    )


def test_a_text_of_several_lines_is_left_alone() -> None:
    text = 'fn f() {\n  g("""\n      one \\( x )\n\n    two   \n   """,1)\n}\n'

    assert formatted(text) == (
        'fn f() {\n    g("""\n      one \\( x )\n\n    two   \n   """, 1)\n}\n'
    )


# -- lines


def test_empty_lines_are_single_and_none_stands_at_the_edges_of_a_block() -> None:
    written = "\n\nfn f() {\n\n    a()\n\n\n    b()\n\n}\n\n\n\nfn g() {}\n\n"

    assert formatted(written) == "fn f() {\n    a()\n\n    b()\n}\n\nfn g() {}\n"


def test_nothing_is_nothing() -> None:
    assert formatted("") == ""
    assert formatted(" \n\n") == ""


def test_line_ends_and_the_byte_order_mark_are_of_one_kind() -> None:
    written = '\ufeff// c\r\nfn f() {\r\n  g()\r\n\r\n  h("""\r\n    x\r\n    """)\r\n}'

    assert formatted(written) == ('// c\nfn f() {\n    g()\n\n    h("""\n    x\n    """)\n}\n')


def test_items_and_members_on_one_line_are_parted() -> None:
    assert formatted("const a = 1 const b = 2\nfn f() {} fn g() {}") == (
        "const a = 1\nconst b = 2\nfn f() {}\nfn g() {}\n"
    )
    assert formatted("flow F() { run { go() } view v -> Int { return 1 } }") == (
        "flow F() {\n    run { go() }\n    view v -> Int { return 1 }\n}\n"
    )


def test_a_block_on_one_line_stays_if_it_is_one_statement() -> None:
    assert body("if a { b() }") == "if a { b() }"
    assert body("if a {\n b() }") == "if a {\n    b()\n}"
    assert body("while a { b()\n c() }") == "while a {\n    b()\n    c()\n}"
    assert body("run(fn() {})") == "run(fn() {})"


def test_the_blocks_of_an_if_are_on_one_line_or_none_is() -> None:
    assert body("let x = if a { 1 } else {\n 2 }") == block(
        """
        let x = if a {
            1
        } else {
            2
        }
        """
    )
    assert body("if a { first() } else if b { second() } else { third() }", 40) == block(
        """
        if a {
            first()
        } else if b {
            second()
        } else {
            third()
        }
        """
    )


def test_what_a_case_does_stays_on_its_line_or_below() -> None:
    written = """
        match x { case A: a()
        case B:
        b()
        case C: c()
        d()
        case D: if y { z() }
        case E: }
        """

    assert body(written) == block(
        """
        match x {
            case A: a()
            case B:
                b()
            case C:
                c()
                d()
            case D: if y { z() }
            case E:
        }
        """
    )


def test_a_case_that_is_too_long_goes_on_below() -> None:
    assert body("match x { case Approved(by): return settle(by, amount) }", 50) == block(
        """
        match x {
            case Approved(by):
                return settle(by, amount)
        }
        """
    )


# -- brackets


def test_a_newline_behind_a_bracket_keeps_it_open() -> None:
    assert body("f(\na, b)") == "f(\n    a, b,\n)"
    assert body("f(\na,\nb)") == "f(\n    a,\n    b,\n)"
    assert body("f(a,\nb)") == "f(a, b)"
    assert body("let x = [\n]") == "let x = []"


def test_fields_on_lines_of_their_own_have_no_commas() -> None:
    assert body("let p = Point {\nx: 1,\ny: 2, }") == "let p = Point {\n    x: 1\n    y: 2\n}"
    assert body("let p = Point { x: 1\ny: 2 }") == "let p = Point { x: 1, y: 2 }"
    assert formatted("enum E {\nA, B,\nC\n}") == "enum E {\n    A, B\n    C\n}\n"


def test_a_comma_stays_where_a_newline_alone_would_part_nothing() -> None:
    assert body("let Point {\nx,\n..\n} = p") == "let Point {\n    x,\n    ..\n} = p"


def test_rows_stay_and_one_that_is_too_long_falls_apart() -> None:
    rows = "let x = [\n    1, 2,\n    3, 4,\n]"

    assert body(rows) == rows
    assert body("let x = [\n    1, 2,\n    300_000, 400_000,\n]", 20) == (
        "let x = [\n    1, 2,\n    300_000,\n    400_000,\n]"
    )


def test_what_is_too_long_is_opened_with_an_item_a_line() -> None:
    assert body("let found = search(first, second, third)", 40) == block(
        """
        let found = search(
            first,
            second,
            third,
        )
        """
    )
    assert formatted("import a.b.{First, second, Third}", 30) == (
        "import a.b.{\n    First,\n    second,\n    Third,\n}\n"
    )


def test_arguments_that_end_in_an_open_bracket_share_its_lines() -> None:
    assert body('assert(steps() == ["one", "two", "three"])', 40) == block(
        """
        assert(steps() == [
            "one",
            "two",
            "three",
        ])
        """
    )
    assert body("xs.map(fn(x) {\nreturn x\n})") == "xs.map(fn(x) {\n    return x\n})"
    assert body("f([[(\na,\nb)]])") == "f([[(\n    a,\n    b,\n)]])"


def test_parentheses_of_an_expression_get_no_comma() -> None:
    assert body("let x = (\nfirst\n|| second)") == "let x = (first\n    || second)"
    assert body("let x = (\na)") == "let x = (a)"


def test_a_text_alone_is_not_moved() -> None:
    text = 'fail("a text that is longer than the line")'

    assert body(text, 30) == text


# -- lines that go on


def test_clauses_go_below_the_header_if_they_must_or_do() -> None:
    text = 'extern step ask(who: String) -> Answer\n    within 1m tries 3 on "mail"\n'
    one = text.replace("\n    ", " ")

    assert formatted(text) == text
    assert formatted(one) == one
    assert formatted(one, 60) == text
    assert formatted(one, 20) == (
        "extern step ask(\n    who: String,\n) -> Answer\n"
        '    within 1m\n    tries 3\n    on "mail"\n'
    )


def test_the_answer_of_a_given_goes_below_it() -> None:
    text = "given ask(_, name: first)\n    => Yes then No\n"

    assert formatted(text) == text
    assert formatted(text.replace("\n    ", " "), 30) == text


def test_logical_operators_start_the_lines_that_go_on() -> None:
    assert body("let x = first && second || third && fourth", 40) == block(
        """
        let x = first && second
            || third && fourth
        """
    )
    assert body("let x = first ||\nsecond") == "let x = first\n    || second"
    assert body("if first &&\nsecond { go() }") == block(
        """
        if first
                && second {
            go()
        }
        """
    )


def test_sums_break_behind_their_signs() -> None:
    assert body("let x = first + second - third", 20) == block(
        """
        let x = first +
            second -
            third
        """
    )
    assert body("let x = first -\nsecond") == "let x = first -\n    second"


def test_a_chain_of_methods_stays_as_it_is_or_breaks_at_each() -> None:
    kept = "let x = xs\n    .map(f)\n    .sum()"

    assert body(kept) == kept
    assert body("let x = xs.map(f).filter(g).sum()", 30) == block(
        """
        let x = xs.map(f)
            .filter(g)
            .sum()
        """
    )


def test_other_newlines_mean_nothing() -> None:
    assert body("let\nx =\nfn(a)\n=>\na") == "let x = fn(a) => a"
    assert body("if a {\nb()\n}\nelse {\nc()\n}") == "if a {\n    b()\n} else {\n    c()\n}"


# -- comments


def test_comments_stay_where_they_are() -> None:
    text = block(
        """
        //! Of the module.

        // Loose.

        /// Of the struct.
        struct S { // behind a brace
            // above a field
            a: Int // behind a field

            /// Of the field.
            b: Int
            // last
        }

        fn f() {
            // only this
        }

        fn g(
            a: Int, // behind an argument
            // above the bracket
        ) {
            h( // behind a parenthesis
                1,
            )
            let x = a
                // above an operator
                && b // behind a statement
            // last
        }
        // end
        """
    )

    assert formatted(text) == text + "\n"


def test_comments_are_brought_in_line_and_stay_in_order() -> None:
    written = "struct S { a: Int, // one\n// two\n\n\n// three\nb: Int,// four\n}\n// five"

    assert (
        formatted(written)
        == block(
            """
        struct S {
            a: Int // one
            // two

            // three
            b: Int // four
        }
        // five
        """
        )
        + "\n"
    )


def test_a_comment_that_a_comma_follows_comes_behind_the_comma() -> None:
    assert body("f(a // one\n, b // two\n)") == "f(\n    a, // one\n    b, // two\n)"
    assert body("f(\n    g(a) // one\n)") == "f(\n    g(a), // one\n)"


def test_a_comment_between_cases_belongs_to_the_one_it_is_in_line_with() -> None:
    text = block(
        """
        match x {
            // the first
            case A:
                a()
                // of A
            // of B
            case B: b()
                // below B
            // of no case
        }
        """
    )

    assert body(text) == text


def test_a_comment_may_stand_anywhere() -> None:
    assert body("let x = // why\n  1 // one\nlet // this\n y = 2") == block(
        """
        let x = // why
            1 // one
        let // this
            y = 2
        """
    )
    assert formatted("fn f(var // why\n self: S) {}") == ("fn f(var self // why\n    : S) {}\n")


# -- what is refused


def test_wrong_syntax_has_no_layout() -> None:
    parsed = parse(SourceFile("a.flow", "a", "fn f( {"))

    with pytest.raises(ValueError, match=r"a\.flow has syntax errors"):
        layout(parsed)
