"""`qoqi explain CODE`: the page of a diagnostic."""

from __future__ import annotations

from qoqi.compiler.rules import pages
from qoqi.compiler.suggest import nearest
from qoqi.runtime.cli.ending import USAGE, fail


def run(code: str) -> None:
    wanted = code.upper()
    found = pages.page(wanted)
    if found is not None:
        print(found.text.rstrip())
        return
    close = nearest(wanted, pages.codes())
    hint = f"; near it: {', '.join(close)}" if close else ""
    fail(USAGE, f"there is no diagnostic {code}{hint}")
