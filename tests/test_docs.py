"""What the pages say is so: programs check, tables are the code's, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qoqi.compiler.api import check
from qoqi.runtime.api.wire import ERRORS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (page.parent / target).exists()] == []


PROGRAMS = {
    f"{_name(page)}-{number}": text
    for page in PAGES
    for number, text in enumerate(
        re.findall(r"^```flow\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL), 1
    )
}


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 5


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_check(program: str, tmp_path: Path) -> None:
    source = tmp_path / "page.flow"
    source.write_text(PROGRAMS[program], "utf-8")

    assert [f"{d.code} {d.message}" for d in check(str(source)).diagnostics] == []


def test_table_of_errors_is_the_servers() -> None:
    page = (ROOT / "docs" / "http-api.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.+) \|$", page, re.MULTILINE)

    assert {code: (int(status), text) for code, status, text in rows} == ERRORS


@pytest.mark.parametrize(
    ("paragraph", "words"),
    [
        ("A step does not run once only.", "under the same key"),
        ("`Settled` means: not run again by the daemon.", "never twice in the world"),
        ("A step that asks first needs a long limit.", "longer than the longest"),
        ("One window stays open.", "between that look and the send"),
        ("Attempts of one step overlap only if its body lets them.", "`flow.working()`"),
    ],
)
def test_what_is_not_promised_is_said(paragraph: str, words: str) -> None:
    page = (ROOT / "docs" / "runtime.md").read_text("utf-8")
    found = page.partition(f"**{paragraph}**")[2].partition("\n\n")[0]

    assert words in found
