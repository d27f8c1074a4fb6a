"""The grammar of the language, as data: `flow.lark` and the parse tables made from it."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def source(name: str) -> str:
    """The text of a file of this folder, from a checkout or an installed wheel alike."""
    return (FOLDER / name).read_text(encoding="utf-8")
