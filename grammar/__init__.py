"""The grammar of the language, as data: `flow.lark` and the parse tables made from it."""

from __future__ import annotations

from importlib.resources import files


def source(name: str) -> str:
    """The text of a file of this folder, from a checkout or an installed wheel alike."""
    return files(__name__).joinpath(name).read_text(encoding="utf-8")
