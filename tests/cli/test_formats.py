"""Diagnostics for programs: places, escapes, and that each form is what its reader expects."""

from __future__ import annotations

import json

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, error, warning
from qoqi.compiler.source import LineIndex, Span
from qoqi.runtime.cli import formats

TEXT = "let a = 1\nlet 名 = a\n"
INDEXES = {"src/a b.flow": LineIndex(TEXT)}
FILE = "src/a b.flow"


def found() -> list[Diagnostic]:
    return [
        error(
            "E0301",
            FILE,
            Span(18, 19),
            "100%: expected Int, found String",
            labels=[Label(FILE, Span(4, 5), "bound here")],
            notes=["convert it"],
            fixes=[Fix("write 1", (Edit(FILE, Span(18, 19), "1"),))],
        ),
        warning("W0103", FILE, Span(0, 3), "odd"),
    ]


def test_json_counts_code_points_from_one() -> None:
    first, second = json.loads(formats.as_json(found(), INDEXES))
    assert first["span"] == {"start": {"line": 2, "column": 9}, "end": {"line": 2, "column": 10}}
    assert first["labels"] == [
        {
            "file": FILE,
            "span": {"start": {"line": 1, "column": 5}, "end": {"line": 1, "column": 6}},
            "text": "bound here",
        }
    ]
    assert first["fixes"][0]["edits"][0]["text"] == "1"
    assert (second["severity"], second["code"]) == ("warning", "W0103")
    assert json.loads(formats.as_json([], INDEXES)) == []


def test_github_commands_escape_what_would_end_them() -> None:
    first, second = formats.as_github(found(), INDEXES).splitlines()
    assert first == (
        "::error file=src/a b.flow,line=2,col=9,endLine=2,endColumn=10,title=E0301"
        "::100%25: expected Int, found String%0Aconvert it"
    )
    assert second.startswith("::warning file=src/a b.flow,line=1,col=1,")
    tricky = warning("W0103", "a,b:c.flow", Span(0, 0), "x")
    shown = formats.as_github([tricky], {"a,b:c.flow": LineIndex("")})
    assert "file=a%2Cb%3Ac.flow," in shown


def test_sarif_names_places_rules_and_fixes() -> None:
    run = json.loads(formats.as_sarif(found(), INDEXES))["runs"][0]
    assert run["columnKind"] == "unicodeCodePoints"
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["E0301", "W0103"]
    first = run["results"][0]
    assert first["level"] == "error"
    assert first["message"]["text"] == "100%: expected Int, found String\nconvert it"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/a%20b.flow"},
        "region": {"startLine": 2, "startColumn": 9, "endLine": 2, "endColumn": 10},
    }
    assert first["relatedLocations"][0]["message"]["text"] == "bound here"
    change = first["fixes"][0]["artifactChanges"][0]["replacements"][0]
    assert change["insertedContent"]["text"] == "1"
