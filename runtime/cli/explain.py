"""`qoqi explain CODE`: the page of a diagnostic."""

from __future__ import annotations

from qoqi.compiler.rules import pages
from qoqi.compiler.suggest import nearest
from qoqi.runtime.cli.ending import USAGE, fail
from qoqi.vm.codes import RUNTIME_CODES


def run(code: str) -> None:
    wanted = code.upper()
    found = pages.page(wanted)
    if found is not None:
        print(found.text.rstrip())
        return
    if wanted in RUNTIME_CODES:
        title = RUNTIME_CODES[wanted].title
        print(f"# {wanted}\n\n{title[:1].upper()}{title[1:]}.")
        return
    known = sorted({*pages.codes(), *RUNTIME_CODES})
    close = nearest(wanted, known)
    hint = f"; near it: {', '.join(close)}" if close else ""
    fail(USAGE, f"there is no diagnostic {code}{hint}")
