"""Diagnostics for programs: JSON, workflow commands of GitHub, SARIF 2.1.0.

All are made of `diagnostics.to_json`: 1-based lines and columns, columns in code points, ends
exclusive.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from qoqi.compiler.diagnostics import Diagnostic, to_json
from qoqi.compiler.source import LineIndex
from qoqi.vm.jsonform import json_text

FORMATS = ("human", "json", "github", "sarif")

_SARIF_LEVEL = {"error": "error", "warning": "warning", "information": "note", "hint": "note"}
_GITHUB_LEVEL = {"error": "error", "warning": "warning", "information": "notice", "hint": "notice"}


def as_json(found: Iterable[Diagnostic], indexes: Mapping[str, LineIndex]) -> str:
    """The array of `qoqi check --format json`, one diagnostic a line."""
    lines = [json_text(to_json(diagnostic, indexes)) for diagnostic in found]
    return "[\n" + ",\n".join(lines) + "\n]" if lines else "[]"


def as_github(found: Iterable[Diagnostic], indexes: Mapping[str, LineIndex]) -> str:
    """One workflow command a line; GitHub shows it at the line of a pull request."""
    lines = []
    for diagnostic in found:
        shown: Any = to_json(diagnostic, indexes)
        start, end = shown["span"]["start"], shown["span"]["end"]
        properties = {
            "file": shown["file"],
            "line": start["line"],
            "col": start["column"],
            "endLine": end["line"],
            "endColumn": end["column"],
            "title": shown["code"],
        }
        named = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
        text = "\n".join([shown["message"], *shown["notes"]])
        lines.append(f"::{_GITHUB_LEVEL[shown['severity']]} {named}::{_data(text)}")
    return "\n".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_sarif(found: Sequence[Diagnostic], indexes: Mapping[str, LineIndex]) -> str:
    codes = sorted({diagnostic.code for diagnostic in found})
    results = [_sarif_result(to_json(diagnostic, indexes)) for diagnostic in found]
    driver = {"name": "qoqi", "rules": [{"id": code} for code in codes]}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2)


def _sarif_result(shown: Any) -> dict[str, object]:
    result: dict[str, object] = {
        "ruleId": shown["code"],
        "level": _SARIF_LEVEL[shown["severity"]],
        "message": {"text": "\n".join([shown["message"], *shown["notes"]])},
        "locations": [_sarif_place(shown["file"], shown["span"], None)],
    }
    if shown["labels"]:
        result["relatedLocations"] = [
            _sarif_place(label["file"], label["span"], label["text"]) for label in shown["labels"]
        ]
    if shown["fixes"]:
        result["fixes"] = [
            {
                "description": {"text": fix["title"]},
                "artifactChanges": [
                    {
                        "artifactLocation": {"uri": _uri(edit["file"])},
                        "replacements": [
                            {
                                "deletedRegion": _region(edit["span"]),
                                "insertedContent": {"text": edit["text"]},
                            }
                        ],
                    }
                    for edit in fix["edits"]
                ],
            }
            for fix in shown["fixes"]
        ]
    return result


def _sarif_place(file: str, span: Any, text: str | None) -> dict[str, object]:
    place: dict[str, object] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": _region(span)}
    }
    if text is not None:
        place["message"] = {"text": text}
    return place


def _region(span: Any) -> dict[str, int]:
    return {
        "startLine": span["start"]["line"],
        "startColumn": span["start"]["column"],
        "endLine": span["end"]["line"],
        "endColumn": span["end"]["column"],
    }


def _uri(file: str) -> str:
    return PurePath(file).as_posix().replace("%", "%25").replace(" ", "%20")
