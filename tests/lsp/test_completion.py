"""Completion: what is offered, in what order, and in text that is not whole."""

from __future__ import annotations

import pytest

from qoqi.compiler.incremental import recheck
from qoqi.lsp import completion
from qoqi.lsp.items import Item
from tests.lsp.lab import FOLDER, MODULE, completed, lab, labels, package

SHOP = """\
import std.http

struct Order { id: String, cents: Int, memo: String = "" }
enum Outcome { Paid(receipt: String), Refused(why: String), Expired }

fn total(self: Order) -> Int { return self.cents }
fn orderOf(id: String) -> Order { return Order { id, cents: 1 } }

step charge(order: Order, tries: Int = 3) -> Result<String, String> within 1m {
    let answer = http.get("x")
    return Ok(answer.text)
}

flow Sale(order: Order) -> Outcome {
    channel decisions: Outcome
    var seen: Int = 0

    run {
        let paid = charge(order)
        return Expired
    }
}
"""


def at(old: str, new: str, others: dict[str, str] | None = None) -> list[Item]:
    """What is offered at `$0`, when a piece of the shop is being replaced by another."""
    assert SHOP.count(old) == 1
    return completed(SHOP, SHOP.replace(old, new), others)


def the(items: list[Item], label: str) -> Item:
    return next(item for item in items if item.label == label)


def test_fields_and_methods_come_after_a_dot() -> None:
    found = at("return Expired", "order.$0\n        return Expired")

    assert labels(found)[:4] == ["cents", "id", "memo", "total"]
    assert the(found, "cents").detail == "Int"
    assert the(found, "total").insert == "total()"


def test_the_next_line_is_not_part_of_a_name() -> None:
    found = at(
        "return Expired", "seen = order.$0\n        decisions.close()\n        return Expired"
    )

    assert labels(found)[:2] == ["cents", "total"]
    assert the(found, "cents").rank == 0
    assert the(found, "id").rank > 0


def test_what_an_instance_has() -> None:
    found = at("return Expired", 'let s = Sale.start("a", order)\n s.$0\n return Expired')

    assert {"decisions", "wait", "cancel"} <= set(labels(found))


def test_what_a_flow_has() -> None:
    assert labels(at("return Expired", "Sale.$0\n return Expired"))[:2] == ["start", "find"]


def test_variants_of_an_enum() -> None:
    found = at("return Expired", "return Outcome.$0")

    assert labels(found)[:3] == ["Expired", "Paid", "Refused"]
    assert the(found, "Paid").insert == "Paid($1)"
    assert the(found, "Expired").insert == "Expired"


def test_the_wanted_type_comes_first() -> None:
    found = at("return Expired", "return $0")

    assert labels([item for item in found if item.rank == 0]) == ["Expired", "Paid", "Refused"]


def test_a_call_without_its_bracket() -> None:
    found = at("charge(order)", "charge(ord$0")

    assert {"order", "orderOf", "order:"} <= set(labels(found))
    assert the(found, "order").rank == 0
    assert the(found, "orderOf").rank == 0


def test_named_arguments_that_are_not_given() -> None:
    found = at("charge(order)", "charge(order, t$0)")

    assert "tries:" in labels(found)
    assert "order:" not in labels(found)


def test_fields_of_a_struct_that_are_not_there() -> None:
    found = at("Order { id, cents: 1 }", "Order { id, $0 }")

    assert labels([item for item in found if item.kind == "Field"]) == ["cents", "memo"]
    assert the(found, "cents").insert == "cents: $1"


@pytest.mark.parametrize(
    "text",
    [
        "wait match {\n            case $0\n        }\n",
        "wait match {\n            case $0",
        "wait match {\n            case after 1d: return Expired\n            case $0\n        }\n",
    ],
)
def test_the_cases_of_a_wait(text: str) -> None:
    found = at("return Expired\n", text)

    assert labels(found)[:5] == ["after", "at", "let", "let why = flow.cancelled()", "when"]
    assert the(found, "let").insert == "let ${1:x} = ${2:channel}.receive(): $0"


def test_inside_an_unfinished_case() -> None:
    found = at("return Expired\n", "wait match {\n            case let d = decisions.$0")

    assert {"receive", "poll"} <= set(labels(found))


def test_the_cases_of_a_match() -> None:
    text = "match charge(order) {\n case Ok(_): return Expired\n case $0\n }\n"

    found = at("return Expired\n", text)

    assert labels([item for item in found if item.kind == "EnumMember"]) == ["Err", "Ok"]
    assert the(found, "Err").insert == "Err(${1:error})"


def test_words_of_flow_by_where_they_belong() -> None:
    in_flow = at("return Expired", "flow.$0\n return Expired")
    in_step = at('let answer = http.get("x")', 'flow.$0\n let answer = http.get("x")')

    assert the(in_flow, "now").rank < the(in_flow, "key").rank
    assert the(in_step, "key").rank < the(in_step, "now").rank
    assert the(in_flow, "now").insert == "now()"


def test_types_where_a_type_is_written() -> None:
    found = at("fn orderOf(id: String)", "fn orderOf(id: O$0)")

    assert labels(found)[0] == "Order"
    assert "Option" in labels(found)
    assert "charge" not in labels(found)


def test_modules_after_import() -> None:
    assert {"http", "time", "text"} <= set(labels(at("import std.http", "import std.$0")))


def test_a_declaration_of_another_module_brings_its_import() -> None:
    other = {"billing.tax": "fn vatOf(cents: Int) -> Int { return cents }\n"}

    found = at("return Expired", "vat$0\n return Expired", other)

    item = the(found, "tax.vatOf")
    assert [edit.text for edit in item.edits] == ["\nimport billing.tax"]
    assert item.insert == "tax.vatOf($1)"


def test_behind_a_module_that_is_not_imported() -> None:
    found = at("return Expired", "time.$0\n return Expired")

    assert "parse" in labels(found)
    assert [edit.text for edit in the(found, "parse").edits] == ["\nimport std.time"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("$0\n", {"flow", "step", "struct", "test", "import"}),
        ("fl$0\n", {"flow"}),
    ],
)
def test_declarations_at_the_top(line: str, words: set[str]) -> None:
    assert words <= set(labels(completed(SHOP, f"{SHOP}\n{line}")))


def test_members_of_a_flow() -> None:
    found = at("    run {\n", "    $0\n    run {\n")

    assert {"channel", "var", "view", "run", "migrate"} <= set(labels(found))
    assert "import" not in labels(found)


def test_clauses_of_a_step() -> None:
    found = at("within 1m", "tr$0")

    assert labels(found)[:2] == ["tries", "tries forever"]


def test_nothing_in_texts_and_comments() -> None:
    assert at("return Expired", 'print("o$0")\n return Expired') == []
    assert at("return Expired", "// or$0\n return Expired") == []


def test_but_in_an_interpolation() -> None:
    found = at("return Expired", 'print("\\(ord$0)")\n return Expired')

    assert "order" in labels(found)


def test_variables_of_a_stage() -> None:
    found = at("return Expired", "stage later(pa$0)\n return Expired")

    assert labels(found) == ["paid"]


def test_documentation_is_found_when_it_is_shown() -> None:
    here = lab("/// Adds.\nfn add(a: Int) -> Int { return a }\nconst x = 1$0\n")

    shown, doc = completion.document(here.snapshot, ("fn", "m.add"))

    assert shown == "fn add(a: Int) -> Int"
    assert doc == "Adds."
    assert completion.document(here.snapshot, ("word", "flow.key"))[1].startswith("The key")


def test_without_a_check_there_are_words() -> None:
    found = completion.complete(None, f"{FOLDER}/{MODULE}.flow", MODULE, "fl", 2)

    assert "flow" in labels(list(found.items))


def test_every_place_of_the_shop_can_be_completed() -> None:
    """After any letter typed so far, with the rest of the text missing."""
    snapshot = recheck(package({MODULE: SHOP}))
    for end in range(0, len(SHOP), 7):
        found = completion.complete(snapshot, f"{FOLDER}/{MODULE}.flow", MODULE, SHOP[:end], end)
        assert found.span.end <= end


# -- what tests stand in for ---------------------------------------------------------------------

TESTED = """\
import std.http

step pay(cents: Int) -> Bool within 1m { return true }

flow Shop(cents: Int) -> Bool {
    step ask(text: String) -> Bool within 1m { return true }

    run {
        let due = flow.now() + 1d
        stage first(due)
        return pay(cents)
    }
}

test "it" {
    let it = Shop.start("a", 1)
}
"""


def after(line: str, typed: str) -> list[str]:
    """What is offered for a line typed below another one."""
    return labels(completed(TESTED, TESTED.replace(line, f"{line}\n    {typed}")))


def test_a_given_is_for_a_step_or_for_what_only_steps_call() -> None:
    start = '"a", 1)'

    assert after(start, "given $0") == ["pay", "Shop", "http"]
    assert after(start, "given Shop.$0") == ["ask"]
    assert "post" in after(start, "given http.$0")
    assert after(start, "given pay(_) $0") == ["=>", "=> fails", "=> never", "after", "runs"]
    [pay] = completed(TESTED, TESTED.replace(start, f"{start}\n    given pa$0"))
    assert pay.insert == "pay(_) => $0"


def test_the_name_of_a_stage_is_ones_own_and_what_it_carries_is_not() -> None:
    line = "stage first(due)"

    assert after(line, "stage ne$0") == []
    assert after(line, "stage next($0)") == ["due"]


def test_a_type_in_a_header_that_is_still_open() -> None:
    good = "struct Claim { id: String }\n"

    assert labels(completed(good, f"{good}\nfn total(self: Cla$0"))[0] == "Claim"


def test_names_of_arguments_stand_before_values_that_do_not_fit() -> None:
    good = "fn pay(cents: Int) { }\n\nfn f(text: String) { }\n"

    found = labels(completed(good, good.replace("text: String) { }", "text: String) { pay($0) }")))

    assert found.index("cents:") < found.index("text")


def test_a_field_is_all_that_a_struct_literal_wants() -> None:
    good = "struct Claim { id: String, cents: Int }\n\nfn f(id: String) { }\n"

    found = completed(good, good.replace("String) { }", "String) { let c = Claim { id: id, $0 } }"))

    assert labels(found) == ["cents"]
