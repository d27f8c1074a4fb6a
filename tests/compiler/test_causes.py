"""One syntax error in a declaration is what is said of it; all else is judged as ever."""

from __future__ import annotations

import pytest

from qoqi.compiler import api
from qoqi.compiler.project.load import Package
from qoqi.compiler.source import SourceFile


def codes(text: str, other: str = "") -> list[str]:
    sources = [SourceFile("m.flow", "m", text)]
    if other:
        sources.append(SourceFile("n.flow", "n", other))
    package = Package("", "", tuple(sources), (), {})
    return [each.code for each in api.check_package(package).diagnostics]


@pytest.mark.parametrize(
    "broken",
    [
        # The variable is lost, and with it what its uses mean.
        "fn f() -> Int {\n    let q = Queue<Int, Int> {}\n    return q.len()\n}\n",
        # The condition is cut: `y` is nowhere, and a path seems to end without `return`.
        "fn f(a: Int?) -> Int {\n    if let Some(x) = a && let Some(y) = a { return x + y }\n"
        "    return 0\n}\n",
        # The stage is lost: its migration seems to become nothing.
        "flow F() {\n    channel c: Int\n    migrate a(n: Int) { become s }\n"
        "    run {\n        var v = 1\n        stage s(v: 2)\n        v = c.receive()\n    }\n}\n",
        # A field of a struct is lost, which another declaration uses.
        "struct A {\n    n Int m: = String\n}\nfn f(a: A) -> Int { return a.n }\n",
    ],
)
def test_what_follows_from_a_syntax_error_is_not_said(broken: str) -> None:
    assert codes(broken)[0].startswith("E01")
    assert [code for code in codes(broken) if not code.startswith("E01")] == []


def test_other_declarations_are_judged_as_ever() -> None:
    text = (
        "fn f() -> Int {\n    let q = A<Int, Int> {}\n    return q\n}\nfn g() -> Int { return h }\n"
    )
    assert codes(text) == ["E0110", "E0201"]


def test_a_mistake_that_is_repaired_exactly_hides_nothing() -> None:
    text = "fn f(a: Int) -> Int {\n    if a = 1 { return h }\n    return a\n}\n"
    assert codes(text) == ["E0116", "E0201"]


def test_a_module_whose_name_is_lost_is_not_missed_by_others() -> None:
    broken = "fn ? gone(n: Int) -> Int { return n }\n"
    assert codes("import n.{gone}\nfn f() -> Int { return gone(1) }\n", broken) == ["E0110"]
