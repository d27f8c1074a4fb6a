"""Hover, signature help, hints, tokens, outlines, folds, selections, links, lenses, formatting."""

from __future__ import annotations

import itertools

import pytest

from qoqi.compiler.diagnostics import Edit
from qoqi.compiler.project.lockfile import Lock, LockedFlow, LockedStage, LockedVersion
from qoqi.compiler.project.shapes import Part
from qoqi.compiler.source import Span
from qoqi.compiler.syntax.tokens import (
    CASE_WORDS,
    CLAUSE_WORDS,
    DECLARATION_WORDS,
    GIVEN_WORDS,
    RESERVED,
)
from qoqi.lsp import folding, formatting, hints, keywords, lenses, links, symbols, tokens
from qoqi.lsp.hover import hover
from qoqi.lsp.signatures import Signature, signature_help
from qoqi.lsp.text import Encoding, Text
from qoqi.lsp.versions import Locked
from tests.lsp.lab import lab

CLAIMS = """\
//! Claims.

import std.http
import std.env

/// Money somebody wants back.
struct Claim { id: String, cents: Int }

/// Asks the bank.
step pay(claim: Claim, note: String = "") -> Result<String, String> within 5s tries 3 {
    let answer = http.get("x")
    return Ok(answer.text)
}

fn half(n: Int) -> Int { return n / 2 }

/// Pays a claim.
flow Refund(claim: Claim) -> String {
    channel news: String

    run {
        let deadline = flow.now() + 2d
        stage asking(deadline)
        let paid = pay(claim)
        let text = news.receive()
        return "\\(half(claim.cents)) \\(text) \\(paid)"
    }
}

test "it pays" {
    given pay(_, _) => Ok("r")
    let it = Refund.start("a", Claim { id: "a", cents: 2 })
}
"""


def hovered(mark: str, locked: Locked | None = None) -> str:
    """What is shown at `$0` of the claims, which replaces nothing."""
    here = lab(CLAIMS.replace(mark.replace("$0", ""), mark, 1))
    found = hover(here.snapshot, locked or Locked(), "m", here.offset)
    return found.markdown if found is not None else ""


def test_a_step_shows_its_clauses_and_documentation() -> None:
    shown = hovered("= p$0ay(claim)")

    assert 'step pay(claim: Claim, note: String = "") -> Result<String, String> within 5s' in shown
    assert "Asks the bank." in shown
    assert "- within 5s\n- tries 3" in shown
    assert "**a step**" in shown


def test_a_word_of_the_language_says_what_it_means() -> None:
    words = RESERVED | DECLARATION_WORDS | CLAUSE_WORDS | CASE_WORDS | GIVEN_WORDS

    assert "How long one attempt may take" in hovered("wi$0thin 5s")
    assert "entered again" in hovered("st$0age asking")
    chosen = lab("fn f(n: Int) -> Int {\n    mat$0ch n {\n        case _: return n\n    }\n}\n")
    shown = hover(chosen.snapshot, Locked(), "m", chosen.offset)
    assert shown is not None and "first case whose pattern fits" in shown.markdown
    assert hovered("re$0turn Ok") == ""
    assert set(keywords.DOCS) <= words


def test_a_stage_outside_of_a_flow_shows_nothing() -> None:
    here = lab("fn f() {\n    stage a$0b\n}\n")

    assert hover(here.snapshot, Locked(), "m", here.offset) is None


def test_a_wait_says_so() -> None:
    shown = hovered("news.rec$0eive()")

    assert "Waits for the next message." in shown
    assert "**may wait**" in shown


@pytest.mark.parametrize(
    ("mark", "shown"),
    [
        ("let d$0eadline", "let deadline: Time"),
        ("claim.c$0ents", "Claim.cents: Int"),
        ("flow.n$0ow()", "flow.now() -> Time"),
        ("(ha$0lf(", "fn half(n: Int) -> Int"),
        ("claim: Cl$0aim) -> String", "Money somebody wants back."),
        ("Ref$0und.start", "flow Refund(claim: Claim) -> String"),
        ("import std.h$0ttp", "module std.http"),
        ("chan$0nel", ""),
    ],
)
def test_what_a_name_shows(mark: str, shown: str) -> None:
    assert shown in hovered(mark)


def test_a_function_shows_its_colour() -> None:
    assert "*pure*" in hovered("(ha$0lf(")


def test_a_stage_shows_its_shape_and_the_deployed_one() -> None:
    stages = (LockedStage("asking", (Part("until", "Time", False),)),)
    version = LockedVersion("ab" * 32, None, True, (), (), (), stages, (), (), {})
    lock = Lock((LockedFlow("m.Refund", (version,)),))

    shown = hovered("stage as$0king", Locked("", lock))

    assert "stage asking(deadline: Time)" in shown
    assert "In version `abababab`, the one deployed: `asking(until: Time)`." in shown
    assert "No version of this flow is deployed yet." in hovered("stage as$0king")


# -- signature help ------------------------------------------------------------------------------


def helped(call: str) -> Signature | None:
    good = lab(CLAIMS)
    text = CLAIMS.replace("pay(claim)", call, 1)
    at = text.index("$0")
    text = text.replace("$0", "")
    return signature_help(good.snapshot, good.path, "m", text, at)


@pytest.mark.parametrize(
    ("call", "active"),
    [
        ("pay($0)", 0),
        ("pay(claim, $0)", 1),
        ("pay(claim, note: $0)", 1),
        ("pay($0", 0),
        ("pay(claim, $0", 1),
    ],
)
def test_the_parameter_that_is_written(call: str, active: int) -> None:
    found = helped(call)

    assert found is not None
    assert found.label == "pay(claim: Claim, note: String = …) -> Result<String, String>"
    assert found.parameters == ("claim: Claim", "note: String = …")
    assert found.active == active
    assert found.documentation == "Asks the bank."


def test_signatures_of_what_is_no_function() -> None:
    method = helped('"a".padLeft($0)')
    start = helped('Refund.start("a", $0)')
    word = helped("flow.sleep($0)")

    assert method is not None and method.label.startswith("padLeft(")
    assert start is not None and start.parameters == ("name: String", "claim: Claim")
    assert start.active == 1
    assert word is not None and word.label == "flow.sleep(duration: Duration)"
    assert helped("1 + $0") is None


# -- hints and tokens ----------------------------------------------------------------------------


def test_hints_of_types_and_of_what_calls_do() -> None:
    here = lab(CLAIMS)
    found = hints.hints(here.snapshot, "m", Span(0, len(here.text)))
    shown = [(here.text[: each.at].rsplit(maxsplit=1)[-1], each.text) for each in found]

    assert ("deadline", ": Time") in shown
    assert ("paid", ": Result<String, String>") in shown
    assert ("pay(claim)", "step") in shown
    assert ("news.receive()", "waits") in shown
    assert not any(name == "claim" for name, _ in shown)


ELSEWHERE = {
    "far": "struct Deep { n: Int }\n",
    "near": "import far\nfn deep() -> far.Deep { return far.Deep { n: 1 } }\n",
}


def test_types_are_hinted_as_the_module_can_write_them() -> None:
    text = """\
import std.http as web
import near
fn f() {
    let a = web.get("x")
    let b = [web.get("x")]
    let c = near.deep()
    print("\\(a) \\(b) \\(c)")
}
"""
    here = lab(text, ELSEWHERE)
    found = hints.hints(here.snapshot, "m", Span(0, len(text)))

    assert here.snapshot.diagnostics == ()
    assert [(each.text, each.written) for each in found] == [
        (": web.Response", ": web.Response"),
        (": List<web.Response>", ": List<web.Response>"),
        (": Deep", None),
    ]


def test_what_an_undo_would_call_is_no_call_of_the_step() -> None:
    text = """\
step release(n: Int) { print("\\(n)") }
step book() -> Int undo release(it) { return 1 }
flow F() {
    run {
        release(book())
    }
}
"""
    here = lab(text)
    found = hints.hints(here.snapshot, "m", Span(0, len(text)))

    assert here.snapshot.diagnostics == ()
    assert [here.text[: each.at].rsplit(maxsplit=1)[-1] for each in found] == [
        "release(book()",
        "release(book())",
    ]


def test_hints_only_where_they_are_asked_for() -> None:
    here = lab(CLAIMS)

    assert hints.hints(here.snapshot, "m", Span(0, CLAIMS.index("flow Refund"))) != []
    assert hints.hints(here.snapshot, "m", Span(0, 10)) == []


def decoded(data: list[int], text: str) -> list[tuple[str, str, set[str]]]:
    """The names a client colours, as what and how."""
    lines = text.split("\n")
    line = column = 0
    found = []
    for at in range(0, len(data), 5):
        down, right, length, kind, bits = data[at : at + 5]
        line, column = line + down, right if down else column + right
        name = lines[line][column : column + length]
        marks = {each for index, each in enumerate(tokens.MODIFIERS) if bits >> index & 1}
        found.append((name, tokens.TYPES[kind], marks))
    return found


def test_tokens_say_what_names_are() -> None:
    here = lab(CLAIMS)

    found = decoded(tokens.tokens(here.snapshot, "m", Text(here.text), Encoding.UTF32), here.text)

    assert ("Claim", "struct", {"declaration"}) in found
    assert ("pay", "function", {"step"}) in found
    assert ("receive", "method", {"waits"}) not in found
    assert ("news", "event", {"declaration"}) in found
    assert ("Refund", "class", {"declaration"}) in found
    assert ("deadline", "variable", {"declaration", "readonly"}) in found
    assert ("cents", "property", set()) in found
    assert ("http", "namespace", set()) in found


def test_tokens_of_a_part_are_those_of_the_whole() -> None:
    here = lab(CLAIMS)
    text = Text(here.text)
    start = here.text.index("flow Refund")
    whole = decoded(tokens.tokens(here.snapshot, "m", text, Encoding.UTF32), here.text)
    within = Span(start, len(here.text))

    part = decoded(tokens.tokens(here.snapshot, "m", text, Encoding.UTF32, within), here.text)

    assert part == whole[len(whole) - len(part) :]
    assert part[0][0] == "Refund"


# -- from the syntax -----------------------------------------------------------------------------


def test_the_outline() -> None:
    here = lab(CLAIMS)
    found = symbols.outline(here.snapshot.parsed["m"].module, here.text)

    assert [each.name for each in found] == ["Claim", "pay", "half", "Refund", "it pays"]
    refund = found[3]
    assert [(each.name, each.kind) for each in refund.children] == [
        ("news", "Interface"),
        ("run", "Constructor"),
    ]
    assert [each.name for each in refund.children[1].children] == ["asking"]
    assert all(
        each.whole.start <= each.name_span.start <= each.name_span.end <= each.whole.end
        for each in found
    )


def test_a_search_finds_letters_in_their_order() -> None:
    here = lab(CLAIMS, {"other": "fn refundAll() -> Int { return 1 }\n"})

    found = symbols.search(here.snapshot, "rfnd")

    assert [(each.name, each.container) for each in found] == [
        ("Refund", "m"),
        ("refundAll", "other"),
    ]


def test_folds() -> None:
    here = lab(CLAIMS)
    found = folding.folds(here.snapshot.parsed["m"], Text(here.text))
    lines = here.text.split("\n")
    shown = [(lines[each.first].strip(), lines[each.last].strip(), each.kind) for each in found]

    assert ("import std.http", "import std.env", "imports") in shown
    assert ("run {", 'return "\\(half(claim.cents)) \\(text) \\(paid)"', "") in shown


def test_a_selection_grows() -> None:
    here = lab(CLAIMS.replace("claim.cents)", "claim.ce$0nts)", 1))
    found = folding.selections(here.snapshot.parsed["m"], here.offset)
    shown = [here.of(span) for span in found]

    assert shown[:3] == ["cents", "claim.cents", "half(claim.cents)"]
    assert shown[-1] == here.text
    assert all(a in b for a, b in itertools.pairwise(shown))


def test_links_lead_to_files_and_pages() -> None:
    here = lab("import std.http\nimport other\n// see F0006 and https://x.y/z\n", {"other": ""})
    found = links.links(here.snapshot, here.snapshot.parsed["m"])

    assert [(here.of(each.span), each.path) for each in found[:2]] == [
        ("std.http", "std/http.flow"),
        ("other", "/p/other.flow"),
    ]
    assert here.of(found[2].span) == "F0006"
    assert found[2].url is not None and found[2].url.endswith("/F0006.md")
    assert found[3].url == "https://x.y/z"


def test_lenses() -> None:
    parsed = lab(CLAIMS).snapshot.parsed["m"]

    assert [each.title for each in lenses.lenses(parsed, "/p/m.flow", daemon=False)] == [
        "Run the test"
    ]
    assert lenses.lenses(parsed, "/p/m.flow", daemon=True)[-1].flow == "m.Refund"


def test_who_counts_the_instances_is_asked_once_for_a_file() -> None:
    parsed = lab(CLAIMS + "flow Other() {\n    run {}\n}\n").snapshot.parsed["m"]
    asked: list[str] = []

    def none(flow: str) -> None:
        asked.append(flow)

    assert not lenses.answers(parsed, none)
    assert asked == ["m.Refund"]
    assert lenses.answers(parsed, lambda flow: {})
    assert not lenses.answers(lab("const a = 1\n").snapshot.parsed["m"], lambda flow: {})


@pytest.mark.parametrize(
    ("lives", "text"),
    [
        (None, "the daemon has left"),
        ({}, "no living instances"),
        ({"a" * 64: 1}, "1 instance lives on aaaaaaaa"),
        ({"a" * 64: 1, "b" * 64: 3}, "4 instances live: 1 on aaaaaaaa, 3 on bbbbbbbb"),
    ],
)
def test_how_many_instances_live(lives: dict[str, int] | None, text: str) -> None:
    assert lenses.count_text("m.Refund", lambda flow: lives) == text


def test_formatting_touches_only_the_lines_that_change() -> None:
    here = lab("const a = 1\nconst   b = 2\nconst c = 3\n")
    parsed = here.snapshot.parsed["m"]

    assert formatting.edits(parsed) == [Edit("/p/m.flow", Span(12, 26), "const b = 2\n")]
    assert formatting.edits(parsed, Span(0, 5)) == []
    assert formatting.edits(lab("const = \n").snapshot.parsed["m"]) == []
