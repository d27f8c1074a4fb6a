"""Links in a text: imports to the files they name, codes in comments to their pages."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.rules import pages
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import Parsed
from qoqi.vm.dataclass import dataclass

_CODE = re.compile(r"\b[EFRW]\d{4}\b")
_URL = re.compile(r"https?://[^\s)\"'>]+")


@dataclass(frozen=True, slots=True)
class Link:
    """`path` is a file, or `url` an address."""

    span: Span
    path: str | None
    url: str | None
    tooltip: str


def page_link(code: str) -> str | None:
    """Where the page of a code is: the file that `qoqi explain CODE` prints."""
    page = files("qoqi.compiler.rules") / "docs" / f"{code}.md"
    return Path(str(page)).as_uri() if page.is_file() else None


def links(snapshot: Snapshot | None, parsed: Parsed) -> list[Link]:
    found: list[Link] = []
    facts = snapshot.checked.facts.get(parsed.file.module) if snapshot is not None else None
    for item in parsed.module.items:
        if not isinstance(item, ast.ImportDecl) or facts is None or snapshot is None:
            continue
        symbol = facts.uses.get(item.path[-1])
        path = getattr(symbol, "path", None)
        if isinstance(path, str):
            span = item.path[0].span.join(item.path[-1].span)
            found.append(Link(span, path, None, f"the module {getattr(symbol, 'name', '')}"))
    for trivia in parsed.trivia:
        if trivia.kind not in ("comment", "doc", "module doc"):
            continue
        for match in _CODE.finditer(trivia.text):
            page = pages.page(match.group())
            if page is not None:
                start = trivia.start + match.start()
                span = Span(start, start + len(match.group()))
                found.append(Link(span, None, page_link(match.group()), page.title))
        for match in _URL.finditer(trivia.text):
            start = trivia.start + match.start()
            found.append(Link(Span(start, start + len(match.group())), None, match.group(), ""))
    return sorted(found, key=lambda link: link.span)
