"""Mistakes as people make them who are new to the language, and the claim made of each.

A row is a text with one mistake, whose place «…» marks, then the code, the message, and how the
first fix or note begins.
"""

from __future__ import annotations

from typing import TypeAlias

from qoqi.compiler import api
from tests.compiler.fuzzing import OneFile

Row: TypeAlias = tuple[str, str, str, str]

GIVEN = """\
struct Claim { id: String, cents: Int, manager: String = "ana" }
enum Decision { Approved(by: String), Rejected(by: String, why: String) }
extern step pay(claim: Claim) -> Result<String, String>
extern step ask(who: String)
"""


def name(row: Row) -> str:
    return f"{row[1]} {row[2][:50]}"


def one_message(row: Row) -> None:
    """The text, with what is `GIVEN`, has this diagnostic and no other."""
    text, code, message, help = row
    imports = "".join(line for line in text.splitlines(True) if line.startswith("import"))
    whole = imports + GIVEN + text.removeprefix(imports)
    start, end = whole.index("«"), whole.index("»") - 1
    whole = whole.replace("«", "").replace("»", "")
    found = api.check(".", OneFile(whole)).diagnostics
    assert [(each.code, each.message) for each in found] == [(code, message)]
    assert tuple(found[0].span) == (start, end)
    helps = [*(fix.title for fix in found[0].fixes), *found[0].notes]
    assert bool(helps) == bool(help)
    assert not helps or helps[0].startswith(help)
