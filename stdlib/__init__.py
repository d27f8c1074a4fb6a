"""The standard library: flow sources, one module of `std` per file.

`prelude.flow` is `std.prelude`, whose public names are known everywhere. Sources are named
`std/http.flow` in diagnostics, wherever the package is installed.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from qoqi.compiler.source import SourceFile

FOLDER = Path(__file__).parent


@cache
def sources() -> tuple[SourceFile, ...]:
    """All modules of the library, by name."""
    files = sorted(FOLDER.glob("*.flow"))
    return tuple(
        SourceFile(f"std/{file.name}", f"std.{file.stem}", file.read_text(encoding="utf-8"))
        for file in files
    )
