"""Definition, references, highlights, rename, calls: over files, and refused where it must be."""

from __future__ import annotations

import pytest

from qoqi.compiler.incremental import recheck
from qoqi.compiler.source import Span
from qoqi.lsp import navigation
from qoqi.lsp.navigation import Refused
from tests.lsp.lab import Lab, changed, lab

MONEY = """\
/// An amount.
pub struct Money { cents: Int, unit: String = "EUR" }

pub fn add(self: Money, other: Money) -> Money {
    return Money { ..self, cents: self.cents + other.cents }
}

pub enum Kind { Card(number: String), Cash }
"""
MAIN = """\
import money.{Money, Kind}

step pay(sum: Money, kind: Kind) -> Result<String, String> within 1m {
    return Ok("\\(sum.cents)")
}

fn cents(n: Int) -> Money { return Money { cents: n } }

flow Buy(price: Money) -> Int {
    channel kinds: Kind
    var count: Int = 0

    view seen -> Int { return count }

    run {
        let cents = price.cents
        let sum = Money { cents }.add(price)
        match kinds.receive() {
            case Card(number): print(number)
            case Cash: count += 1
        }
        let done = pay(sum, kind: Kind.Cash)
        return more()
    }

    fn more() -> Int { return count }
}
"""
OTHERS = {"money": MONEY}


def at(mark: str, text: str = MAIN) -> Lab:
    assert text.count(mark.replace("$0", "")) >= 1
    return lab(text.replace(mark.replace("$0", ""), mark, 1), OTHERS)


@pytest.mark.parametrize(
    ("mark", "path", "line"),
    [
        ("pa$0y(sum, kind:", "/p/m.flow", "step pay(sum: Money"),
        ("sum.ce$0nts", "/p/money.flow", "pub struct Money { cents"),
        ("}.a$0dd(", "/p/money.flow", "pub fn add"),
        ("Ca$0sh: count", "/p/money.flow", "pub enum Kind"),
        ("kind: Kind.Ca$0sh", "/p/money.flow", "pub enum Kind"),
        ("k$0inds.receive", "/p/m.flow", "    channel kinds"),
        ("count$0 += 1", "/p/m.flow", "    var count"),
        ("m$0ore()\n    }\n\n", "/p/m.flow", "    fn more()"),
        ("import mo$0ney", "/p/money.flow", "/// An amount."),
        ("pri$0ce.cents", "/p/m.flow", "flow Buy(price"),
        ("ki$0nd: Kind.Cash", "/p/m.flow", "step pay(sum: Money, kind"),
    ],
)
def test_definitions(mark: str, path: str, line: str) -> None:
    here = at(mark)
    found = navigation.definition(here.snapshot, "m", here.offset)

    assert found is not None and found.path == path
    text = MONEY if path.endswith("money.flow") else here.text
    start = text.rfind("\n", 0, found.span.start) + 1
    assert text[start:].startswith(line)


def test_the_definition_of_what_is_in_the_library() -> None:
    here = lab("fn f(s: String) -> String { return s.tr$0im() }\n")
    found = navigation.definition(here.snapshot, "m", here.offset)

    assert found is not None and found.path == "std/prelude.flow"


@pytest.mark.parametrize(
    ("mark", "name"),
    [("let su$0m", "Money"), ("ki$0nds.receive", "Kind"), ("pri$0ce.cents", "Money")],
)
def test_the_definition_of_a_type(mark: str, name: str) -> None:
    here = at(mark)
    found = navigation.type_definition(here.snapshot, "m", here.offset)

    assert found is not None and MONEY[found.span.start : found.span.end] == name


def test_references_are_in_all_files() -> None:
    here = at("sum.ce$0nts")
    found = navigation.references(here.snapshot, "m", here.offset, declaration=True)

    assert len([span for path, span in found if path == "/p/money.flow"]) == 4
    assert len([span for path, span in found if path == "/p/m.flow"]) == 4
    without = navigation.references(here.snapshot, "m", here.offset, declaration=False)
    assert len(without) == len(found) - 1


def test_a_local_and_a_field_of_one_name_are_two() -> None:
    here = at("let ce$0nts = price")

    assert [
        here.of(span)
        for _, span in navigation.references(here.snapshot, "m", here.offset, declaration=True)
    ] == ["cents", "cents"]


def test_highlights_tell_writes() -> None:
    here = at("count$0 += 1")

    found = navigation.highlights(here.snapshot, "m", here.offset)

    assert [write for _, write in found] == [True, False, True, False]


# -- rename --------------------------------------------------------------------------------------


def renamed(mark: str, name: str, text: str = MAIN) -> dict[str, str]:
    """The texts after a rename, which must leave the package as right as it was."""
    here = at(mark, text)
    edits = navigation.rename(here.snapshot, "m", here.offset, name)
    texts = {
        each.module: changed(each.text, each.path, edits) for each in here.snapshot.package.sources
    }
    from tests.lsp.lab import package

    before = [each.code for each in here.snapshot.diagnostics]
    assert [each.code for each in recheck(package(texts)).diagnostics] == before
    return texts


def test_a_rename_over_files() -> None:
    texts = renamed("sum.ce$0nts", "minor")

    assert "pub struct Money { minor: Int" in texts["money"]
    assert "self.minor + other.minor" in texts["money"]
    assert "Money { minor: n }" in texts["m"]


def test_a_rename_of_a_field_keeps_the_variable_of_its_name() -> None:
    assert "Money { minor: cents }.add" in renamed("sum.ce$0nts", "minor")["m"]


def test_a_rename_of_a_variable_keeps_the_field_of_its_name() -> None:
    texts = renamed("let ce$0nts = price", "minor")

    assert "Money { cents: minor }.add" in texts["m"]
    assert "let minor = price.cents" in texts["m"]


@pytest.mark.parametrize(
    ("mark", "name", "text"),
    [
        ("ki$0nd: Kind) ->", "how", "pay(sum, how: Kind.Cash)"),
        ("Money { ce$0nts: n }", "minor", "Money { minor: n }"),
        ("Ca$0sh: count", "Coins", "kind: Kind.Coins)"),
        ("case Card(num$0ber)", "digits", "case Card(digits): print(digits)"),
        ("flow Bu$0y", "Purchase", "flow Purchase(price: Money)"),
        ("k$0inds: Kind", "ways", "match ways.receive()"),
        ("fn mo$0re", "rest", "return rest()"),
        ("Mon$0ey, Kind}", "Sum", "import money.{Sum, Kind}"),
    ],
)
def test_what_a_rename_writes(mark: str, name: str, text: str) -> None:
    assert text in renamed(mark, name)["m"]


@pytest.mark.parametrize(
    ("mark", "name", "why"),
    [
        ("let su$0m", "Sum", "a lower-case letter"),
        ("let su$0m", "case", "a word of the language"),
        ("let su$0m", "a b", "no name"),
        ("let su$0m", "count", "cannot be named"),
        ("let ce$0nts = price", "price", "cannot be named"),
        ("fn mo$0re() -> Int { return", "seen", "cannot be named"),
        ("fn mo$0re() -> Int { return", "print", "cannot be named"),
        ("price.cen$0ts", "unit", "cannot be named"),
        ("$0flow Buy", "x", "no name here"),
    ],
)
def test_a_rename_that_would_change_what_names_mean_is_refused(
    mark: str, name: str, why: str
) -> None:
    here = at(mark)
    with pytest.raises(Refused, match=why):
        navigation.rename(here.snapshot, "m", here.offset, name)


def test_a_rename_that_would_capture_is_refused() -> None:
    here = lab(
        "fn f() -> Int {\n    let a = 1\n    print(a)\n    let b$0 = a\n    return a + b\n}\n"
    )

    with pytest.raises(Refused, match="`a` would then mean something else where `b` is used"):
        navigation.rename(here.snapshot, "m", here.offset, "a")


def test_what_cannot_be_renamed_says_so_before() -> None:
    for mark in ("import mo$0ney", "Resul$0t<String", "pr$0int(number)", "$0flow Buy"):
        here = at(mark)
        with pytest.raises(Refused):
            navigation.prepare_rename(here.snapshot, "m", here.offset)
    here = at("let su$0m")
    assert navigation.prepare_rename(here.snapshot, "m", here.offset)[1] == "sum"


# -- calls ---------------------------------------------------------------------------------------

CHAIN = """\
step ship(id: String) within 1m { print(id) }

flow Child(id: String) {
    run { ship(id) }
}

flow Parent(id: String) {
    run { go(id) }
    fn go(id: String) {
        Child.start("c", id)
        task.map([id], ship)
    }
}
"""


def test_calls_go_from_flows_over_functions_to_steps_and_children() -> None:
    here = lab(CHAIN)
    go = ("fn", "m.Parent.go")

    def names(found: list[tuple[navigation.CallItem, list[Span]]]) -> list[str]:
        return [item.name for item, _ in found]

    assert names(navigation.outgoing(here.snapshot, ("type", "m.Parent"))) == ["go"]
    assert sorted(names(navigation.outgoing(here.snapshot, go))) == ["Child", "ship"]
    assert names(navigation.incoming(here.snapshot, go)) == ["Parent"]
    assert sorted(names(navigation.incoming(here.snapshot, ("step", "m.ship")))) == ["Child", "go"]
    assert names(navigation.incoming(here.snapshot, ("type", "m.Child"))) == ["go"]


def test_the_call_item_at_a_cursor() -> None:
    here = lab(CHAIN.replace("Child.start", "Chi$0ld.start"))
    item = navigation.call_item(here.snapshot, "m", here.offset)

    assert item is not None and (item.name, item.kind) == ("Child", "Class")
    assert navigation.call_item(here.snapshot, "m", CHAIN.index("id: String")) is None
