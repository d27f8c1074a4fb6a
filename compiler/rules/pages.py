"""The page of each code: what it means, an example that fails, and the same one fixed.

A page is `docs/CODE.md`:

    # F0006 A wait without the cancelled case

    Prose.

    ## Fails

    ```flow
    …
    ```

    ## Fixed

    ```flow
    …
    ```

The page of a code of the run time has `## Stops` and `## Mended` instead: a program without
mistakes that an instance may stop in, and one in which it does not. What no program is to blame
for, and what takes more than one file, has neither.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from qoqi.vm.dataclass import dataclass

_HEADING = re.compile(r"# ([A-Z]\d{4}) (.+)")
_EXAMPLE = re.compile(
    r"^## (Fails|Fixed|Stops|Mended)\n(?:(?!## |```)[^\n]*\n)*```flow\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Page:
    """`text` is the whole page; `prose` what stands between its title and its first section."""

    code: str
    title: str
    text: str
    prose: str
    failing: str | None
    fixed: str | None
    stops: str | None
    mended: str | None


def codes() -> list[str]:
    """The codes that have a page, in order."""
    docs = files("qoqi.compiler.rules") / "docs"
    return sorted(each.name[:-3] for each in docs.iterdir() if each.name.endswith(".md"))


@cache
def page(code: str) -> Page | None:
    """The page of a code; None where there is none."""
    if not re.fullmatch(r"[A-Z]\d{4}", code):
        return None
    source = files("qoqi.compiler.rules") / "docs" / f"{code}.md"
    return parse(source.read_text(encoding="utf-8")) if source.is_file() else None


def parse(text: str) -> Page | None:
    """A page from its text; None if it has no title."""
    heading = _HEADING.match(text)
    if heading is None:
        return None
    examples = {name: code for name, code in _EXAMPLE.findall(text)}
    prose = text[heading.end() :].split("\n## ", 1)[0].strip()
    shown = [examples.get(name) for name in ("Fails", "Fixed", "Stops", "Mended")]
    return Page(heading[1], heading[2].strip(), text, prose, *shown)
