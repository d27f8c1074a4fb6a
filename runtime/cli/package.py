"""The package a command is about, and how its problems are shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from qoqi.compiler import api
from qoqi.compiler.diagnostics import Diagnostic
from qoqi.compiler.project.load import DiskReader, find_root
from qoqi.runtime.cli.ending import FOUND, USAGE, fail


def root(path: Path | None) -> str:
    """The file or folder given, else the package around; paths are shown from here."""
    if path is not None:
        if not path.exists():
            fail(USAGE, f"{path} does not exist")
        if path.is_file() and path.suffix != ".flow":
            fail(USAGE, f"{path} is no source of flow (a name ends in .flow)")
        return path.as_posix()
    here = Path.cwd()
    return os.path.relpath(find_root(DiskReader(), here.as_posix()), here)


def report(
    found: tuple[Diagnostic, ...], result: api.CheckResult | api.Summary, form: str = "human"
) -> None:
    """Diagnostics in one of the forms: on stdout, those for people on stderr when others follow."""
    from qoqi.runtime.cli import formats, render

    indexes = api.indexes(result)
    if form == "json":
        print(formats.as_json(found, indexes))
    elif form == "sarif":
        print(formats.as_sarif(found, indexes))
    elif form == "github":
        if found:
            print(formats.as_github(found, indexes))
    else:
        render.diagnostics(found, indexes, render.console())


def built_or_exit(
    path: Path | None, *, locked: bool = False, keep: bool = True
) -> tuple[str, api.BuildResult]:
    """A build without errors; its problems are shown, and errors end the command with 1."""
    from qoqi.runtime.cli import render

    where = root(path)
    built = api.build(where, locked=locked, keep=keep)
    if built.diagnostics:
        render.diagnostics(built.diagnostics, api.indexes(built.check), render.console(sys.stderr))
    if not built.ok:
        print(render.verdict(built.diagnostics), file=sys.stderr)
        raise SystemExit(FOUND)
    return where, built
