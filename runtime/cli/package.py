"""The package a command is about, and how its problems are shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from qoqi.compiler.project import kept
from qoqi.compiler.project.load import DiskReader, find_root
from qoqi.runtime.cli.ending import FOUND, USAGE, fail

if TYPE_CHECKING:
    from qoqi.compiler.api import BuildResult, CheckResult, Summary
    from qoqi.compiler.diagnostics import Diagnostic
    from qoqi.runtime.deploy import Deployable


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
    found: tuple[Diagnostic, ...], result: CheckResult | Summary, form: str = "human"
) -> None:
    """Diagnostics in one of the forms: on stdout, those for people on stderr when others follow."""
    from qoqi.compiler import api
    from qoqi.runtime.cli import formats, render

    indexes = api.indexes(result)
    if form == "json":
        print(formats.as_json(found, indexes))
    elif form == "sarif":
        print(formats.as_sarif(found, indexes))
    elif form == "github":
        if found:
            print(formats.as_github(found, indexes))
    elif found:
        render.diagnostics(found, indexes, render.console())


def built_or_exit(
    path: Path | None, *, locked: bool = False, keep: bool = True
) -> tuple[str, BuildResult]:
    """A build without errors; its problems are shown, and errors end the command with 1."""
    from qoqi.compiler import api
    from qoqi.runtime.cli import render

    where = root(path)
    built = api.build(where, locked=locked, keep=keep)
    if built.diagnostics:
        render.diagnostics(built.diagnostics, api.indexes(built.check), render.console(sys.stderr))
    if not built.ok:
        print(render.verdict(built.diagnostics), file=sys.stderr)
        raise SystemExit(FOUND)
    return where, built


def versions_or_exit(path: Path) -> tuple[Deployable, ...]:
    """What flow.lock and the sources agree on: as it was built the last time, or built now."""
    from qoqi.runtime import deploy

    known = deploy.kept_versions(root(path))
    if known is not None:
        return known
    _, built = built_or_exit(path, locked=True)
    kept.write(built)
    return deploy.versions(built)
