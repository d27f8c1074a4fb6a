"""`qoqi check`: what is wrong with a package's flows."""

from __future__ import annotations

from pathlib import Path

from qoqi.compiler import api
from qoqi.runtime.cli import package
from qoqi.runtime.cli.ending import FOUND, USAGE, fail
from qoqi.runtime.cli.formats import FORMATS
from qoqi.runtime.cli.render import count, verdict


def run(path: Path | None, form: str) -> None:
    if form not in FORMATS:
        fail(USAGE, f"--format: {form} is none of {', '.join(FORMATS)}")
    result = api.summary(package.root(path))
    package.report(result.diagnostics, result, form)
    if form == "human":
        print(f"{count(result.flows, 'flow')}, {verdict(result.diagnostics)}")
    if not result.ok:
        raise SystemExit(FOUND)
