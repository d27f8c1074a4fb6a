"""Code actions: every one that is offered parses, removes what it is for, and breaks nothing."""

from __future__ import annotations

import pytest

from qoqi.compiler.incremental import recheck
from qoqi.compiler.rules import pages
from qoqi.lsp import actions, changes
from qoqi.lsp.changes import Action
from tests.lsp.lab import Lab, lab, package

PAGES = [page for code in pages.codes() if (page := pages.page(code)) is not None and page.failing]


def offered(here: Lab, only: tuple[str, ...] = ()) -> list[Action]:
    diagnostics = [each for each in here.snapshot.diagnostics if each.file == here.path]
    return actions.actions(here.snapshot, diagnostics, "m", here.selected, only)


def done(text: str, title: str, only: tuple[str, ...] = ()) -> str:
    """A text after the action of that title."""
    here = lab(text)
    found = [each for each in offered(here, only) if each.title == title]
    assert found, [each.title for each in offered(here, only)]
    return here.after(found[0].edits)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.code)
def test_fixes_of_the_pages_remove_what_they_fix(page: pages.Page) -> None:
    assert page.failing is not None
    here = lab(page.failing)
    for diagnostic in here.snapshot.diagnostics:
        for action in actions.fixes([diagnostic], diagnostic.span):
            after = recheck(package({"m": here.after(action.edits)}))
            same = [each for each in after.diagnostics if each.code == diagnostic.code]
            before = [each for each in here.snapshot.diagnostics if each.code == diagnostic.code]
            assert len(same) < len(before), action.title


CLAIM = "struct Claim { id: String, cents: Int = 3, memo: String? }\n"


def test_a_record_is_filled() -> None:
    text = CLAIM + 'fn make() -> Claim { return Cl$0aim { id: "a" } }\n'

    assert 'Claim { id: "a", cents: 3, memo: None }' in done(text, "Fill in all fields")


def test_an_empty_record_is_filled() -> None:
    text = CLAIM + "fn make() -> Claim { return Cl$0aim {} }\n"

    assert 'Claim { id: "", cents: 3, memo: None }' in done(text, "Fill in all fields")


def test_missing_cases_are_added() -> None:
    text = """\
enum E { A, B(n: Int) }
fn f(e: E) -> Int {
    return mat$0ch e {
        case A: 1
    }
}
"""

    after = done(text, "Add the missing arms")

    assert "case B(_):" in after
    assert recheck(package({"m": after})).ok


def test_the_cases_of_a_wildcard_are_written_out() -> None:
    text = """\
enum E { A, B(n: Int), C }
fn f(e: E) -> Int {
    return mat$0ch e {
        case A: 1
        case _: 2
    }
}
"""

    assert "case B(_) | C: 2" in done(text, "Write out the cases of `_`")


def test_a_type_is_written() -> None:
    assert "let a: List<Int> = [1]" in done(
        "fn f() { let a$0 = [1]\n print(a) }\n", "Write the type `List<Int>`"
    )


def test_a_type_of_another_module_is_written_with_its_name() -> None:
    text = 'import std.http\nfn f() {\n    let a$0 = http.get("x")\n    print(a.text)\n}\n'

    after = done(text, "Write the type `http.Response`")
    assert "let a: http.Response = " in after
    assert recheck(package({"m": after})).diagnostics == ()


def test_a_type_that_the_module_has_no_name_for_is_not_written() -> None:
    here = lab(
        "import near\nfn f() -> Int {\n    let a$0 = near.deep()\n    return a.n\n}\n",
        {
            "far": "struct Deep { n: Int }\n",
            "near": "import far\nfn deep() -> far.Deep { return far.Deep { n: 1 } }\n",
        },
    )

    assert here.snapshot.diagnostics == ()
    assert not any(each.title.startswith("Write the type") for each in offered(here))


def test_an_expression_is_given_a_name() -> None:
    text = "fn f(n: Int) -> Int {\n    return 1 + $1n * 2$2\n}\n"

    assert done(text, "Give it the name `value`") == (
        "fn f(n: Int) -> Int {\n    let value = n * 2\n    return 1 + value\n}\n"
    )


def test_an_expression_in_a_case_is_given_a_name() -> None:
    text = """\
fn f(n: Int) -> Int {
    match n {
        case 1: return $1n * 2$2 + 1
        case _: return 0
    }
}
"""
    after = done(text, "Give it the name `value`")

    assert "case 1: \n            let value = n * 2\n            return value + 1\n" in after
    assert recheck(package({"m": after})).diagnostics == ()


@pytest.mark.parametrize(
    "text",
    [
        "fn f(n: Int) -> Bool { return n > 1 && $110 / n$2 > 1 }\n",
        "fn f(ns: List<Int>) -> List<Int> { return ns.map(fn(n) => $1n * 2$2) }\n",
        "fn f(n: Int) { while $1n * 2$2 > 3 { print(n) } }\n",
        "fn f(n: Int) -> Int { return n * $12 +$2 1 }\n",
    ],
)
def test_what_is_not_always_evaluated_gets_no_name(text: str) -> None:
    assert offered(lab(text), (changes.EXTRACT,)) == []


def test_a_variable_is_inlined() -> None:
    text = "fn f(n: Int) -> Int {\n    let twic$0e = n + n\n    return twice * twice\n}\n"

    assert (
        done(text, "Inline `twice`") == "fn f(n: Int) -> Int {\n    return (n + n) * (n + n)\n}\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "fn g() -> Int { return 1 }\nfn f() -> Int {\n    let a$0 = g()\n    return a + a\n}\n",
        "fn f() -> Int {\n    var n = 1\n    let a$0 = n\n    n = 2\n    return a + n\n}\n",
        "fn f() -> Int {\n    var a$0 = 1\n    a = 2\n    return a\n}\n",
    ],
)
def test_what_would_compute_something_else_is_not_inlined(text: str) -> None:
    assert offered(lab(text), (changes.INLINE,)) == []


def test_a_call_becomes_a_step() -> None:
    text = """\
import std.http

/// Looks.
flow Probe(url: String) -> Int {
    run {
        let path = "/x"
        let answer = http.g$0et("\\(url)\\(path)")
        return answer.status
    }
}
"""
    after = done(text, "Turn the call into the step `httpGet`")

    assert "step httpGet(url: String, path: String) -> http.Response within 1m {" in after
    assert "let answer = httpGet(url, path)" in after
    assert recheck(package({"m": after})).diagnostics == ()


def test_imports_are_sorted() -> None:
    text = '$0import std.time\nimport std.http\n\nfn f() -> Time { return time.parse("") }\n'

    after = done(text, "Sort the imports", (changes.ORGANIZE,))

    assert after.startswith("import std.http\nimport std.time\n\n")


def test_imports_with_words_between_stay() -> None:
    text = "$0import std.time\n// why\nimport std.http\n"

    assert offered(lab(text), (changes.ORGANIZE,)) == []


def test_all_is_fixed_at_once() -> None:
    text = """\
$0import std.http

fn f(cents: Int) -> Int { return cent + 1 }
fn g(total: Int) -> Int { return totl }
"""

    after = done(text, "Fix all problems that have one fix", (changes.FIX_ALL,))

    assert recheck(package({"m": after})).diagnostics == ()


def test_only_what_is_asked_for_is_offered() -> None:
    text = CLAIM + 'fn make() -> Claim { return Cl$0aim { id: "a" } }\n'

    assert {each.kind for each in offered(lab(text), ("refactor",))} == {"refactor.rewrite"}
    assert offered(lab(text), ("source",)) == []
