"""What a check of a whole package found, kept on disk: `.qoqi/cache/check.json`.

`qoqi check` of a large package that has not changed is then a matter of reading it. The key is a
hash of all that the answer depends on: every source with its path, what was wrong with the folder,
and the compiler itself, file by file. A package of which one letter changed is checked again; what
an editor needs, one module after another, is `compiler.incremental`.

A file that is damaged, or of another format, is as good as none. Only packages with `flow.toml` are
kept, and only those whose check takes longer than reading the file: a command that looks should
leave nothing behind in a folder that is none of ours.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, Severity
from qoqi.compiler.project.files import replace_file
from qoqi.compiler.project.load import Package
from qoqi.compiler.source import Span

FORMAT = 1
PLACE = ".qoqi/cache/check.json"
LEAST = 100_000
"""Fewer characters of source than this are checked in less than a second."""

_COMPILER = Path(__file__).resolve().parents[1]
_PARTS = ("compiler", "grammar", "stdlib", "vm")


def key(package: Package) -> str | None:
    """What the answer for a package is kept under; None where it is not kept."""
    if package.manifest is None or sum(len(each.text) for each in package.sources) < LEAST:
        return None
    return fingerprint(package)


def fingerprint(package: Package) -> str:
    """Another one for any other text of a source, other findings in the folder, other compiler."""
    digest = hashlib.sha256(f"{FORMAT} {_compiler()} {package.diagnostics!r}".encode())
    for source in package.sources:
        for part in (package.packages.get(source.module, ""), source.module, source.path):
            digest.update(f"{part}\0".encode(errors="surrogatepass"))
        digest.update(hashlib.sha256(source.text.encode(errors="surrogatepass")).digest())
    return digest.hexdigest()


def read(package: Package, wanted: str) -> tuple[tuple[Diagnostic, ...], int] | None:
    """The diagnostics and the number of flows found the last time, if nothing has changed."""
    try:
        data = json.loads((Path(package.root) / PLACE).read_text(encoding="utf-8"))
        if data["key"] != wanted:
            return None
        return tuple(_diagnostic(each) for each in data["diagnostics"]), int(data["flows"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def write(package: Package, under: str, found: tuple[Diagnostic, ...], flows: int) -> None:
    data = {"key": under, "flows": flows, "diagnostics": [_data(each) for each in found]}
    # A folder that cannot be written is checked anew each time, which is no mistake.
    with contextlib.suppress(OSError):
        replace_file(Path(package.root) / PLACE, json.dumps(data).encode(), lasting=False)


def _compiler() -> str:
    """The compiler as it is on disk: sizes and times of its files."""
    found: list[str] = []
    for part in _PARTS:
        for place, _, names in os.walk(_COMPILER.parent / part):
            for name in names:
                if name.endswith((".py", ".flow", ".tables")):
                    state = os.stat(os.path.join(place, name))
                    found.append(f"{part}/{name} {state.st_size} {state.st_mtime_ns}")
    return "\n".join(sorted(found))


def _data(each: Diagnostic) -> list[Any]:
    return [
        each.code,
        int(each.severity),
        each.file,
        each.span,
        each.message,
        [[label.file, label.span, label.text] for label in each.labels],
        each.notes,
        [
            [fix.title, [[edit.file, edit.span, edit.text] for edit in fix.edits]]
            for fix in each.fixes
        ],
    ]


def _diagnostic(data: list[Any]) -> Diagnostic:
    code, severity, file, span, message, labels, notes, fixes = data
    return Diagnostic(
        str(code),
        Severity(severity),
        str(file),
        Span(*map(int, span)),
        str(message),
        tuple(Label(str(of), Span(*map(int, at)), str(text)) for of, at, text in labels),
        tuple(map(str, notes)),
        tuple(
            Fix(
                str(title),
                tuple(Edit(str(of), Span(*map(int, at)), str(text)) for of, at, text in edits),
            )
            for title, edits in fixes
        ),
    )
