"""What the pages say is so: programs check, tables are the code's, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from qoqi.compiler.api import build_tests, check, parse
from qoqi.compiler.codes import CODES
from qoqi.compiler.source import SourceFile
from qoqi.runtime.api.wire import ERRORS
from qoqi.runtime.testing.runner import FlowUnderTest, TestCase, run_test
from qoqi.vm.program import load

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_to_headings_have_them(page: Path) -> None:
    missing = []
    for target, heading in re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", page.read_text("utf-8")):
        other = page.parent / target if target else page
        headings = re.findall(r"(?m)^#+ (.+)$", other.read_text("utf-8"))
        slugs = {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}
        if heading not in slugs:
            missing.append(f"{target}#{heading}")

    assert missing == []


@dataclass(frozen=True, slots=True)
class Block:
    """A block of flow on a page; the words behind `flow` say what it is.

    Alone: a whole module in which nothing is found, and whose tests pass. `F0006`: that is found in
    it, and nothing else. `mail.flow`: a file of the package that the page builds, which is checked
    as it is then. `fragment`: a piece of a module, of a flow or of a run, which parses.
    """

    text: str
    words: tuple[str, ...]
    files: Mapping[str, str]

    @property
    def is_fragment(self) -> bool:
        return "fragment" in self.words

    @property
    def codes(self) -> set[str]:
        return {word for word in self.words if re.fullmatch(r"[A-Z]\d{4}", word)}


def _blocks(page: Path) -> Iterator[tuple[str, Block]]:
    """By page and line."""
    text = page.read_text("utf-8")
    package: dict[str, str] = {}
    for found in re.finditer(r"^```flow([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        words, source = tuple(found[1].split()), found[2]
        line = text.count("\n", 0, found.start()) + 1
        named = [word for word in words if word.endswith(".flow")]
        package.update(dict.fromkeys(named, source))
        files = dict(package) if named else {"page.flow": source}
        yield f"{_name(page)}:{line}", Block(source, words, files)


BLOCKS = {name: block for page in PAGES for name, block in _blocks(page)}
MODULES = {name: block for name, block in BLOCKS.items() if not block.is_fragment}
FRAGMENTS = {name: block for name, block in BLOCKS.items() if block.is_fragment}
TESTED = [name for name, block in MODULES.items() if re.search(r'(?m)^test "', block.text)]


def test_there_are_blocks_of_each_kind() -> None:
    assert len(MODULES) >= 20
    assert len(FRAGMENTS) >= 3
    assert len(TESTED) >= 5


@pytest.mark.parametrize("name", MODULES)
def test_modules_have_the_findings_they_say(name: str, tmp_path: Path) -> None:
    block = MODULES[name]
    found = check(_written(tmp_path, block)).diagnostics

    assert [f"{d.code} {d.message}" for d in found if d.code not in block.codes] == []
    assert {d.code for d in found} == block.codes


@pytest.mark.parametrize("name", FRAGMENTS)
def test_fragments_parse(name: str) -> None:
    text = FRAGMENTS[name].text
    places = [
        text,
        f"flow Page() {{\n{text}\nrun {{}}\n}}",
        f"flow Page() {{ run {{\n{text}\n}} }}",
    ]
    found = [parse(SourceFile("page.flow", "page", place)).diagnostics for place in places]

    assert () in [tuple(each) for each in found]


@pytest.mark.parametrize("name", TESTED)
def test_tests_on_pages_pass(name: str, tmp_path: Path) -> None:
    built = build_tests(check(_written(tmp_path, MODULES[name])))
    flows = [
        FlowUnderTest(flow.name, flow.hash, load(flow.chunk, flow.debug), flow.steps)
        for flow in built.flows
    ]
    reports = []
    for module in built.modules:
        program = load(module.chunk, module.debug)
        for each in module.tests:
            case = TestCase(
                module.file, each.title, each.line, program, each.function, module.givens
            )
            reports.append(run_test(case, flows))

    assert reports
    assert [f"{r.case.title}, line {r.line}: {r.failure}" for r in reports if r.failure] == []


def _written(folder: Path, block: Block) -> str:
    for name, text in block.files.items():
        (folder / name).write_text(text, "utf-8")
    return str(folder)


def test_the_map_names_what_there_is() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    drawn = text.partition("```text\n")[2].partition("```")[0]
    folder, missing = "", []
    for line in drawn.splitlines():
        names = re.split(r"  +", line.strip())[0].split(", ")
        for name in names:
            inside = folder if line.startswith(" ") else ""
            path = ROOT / inside / (name if name.endswith("/") else f"{name}.py")
            if not path.exists():
                missing.append(f"{inside}{name}")
        if not line.startswith(" "):
            folder = names[0]

    assert missing == []


def test_every_page_is_reached_from_the_readme() -> None:
    text = (ROOT / "README.md").read_text("utf-8")

    assert [
        page.name for page in ROOT.glob("docs/*.md") if f"](docs/{page.name})" not in text
    ] == []


def test_every_code_of_a_rule_or_of_a_run_is_on_the_page() -> None:
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([EFRW]\d{4})` \| (.+) \|$", page, re.MULTILINE))

    assert rows == {code: title for code, title in CODES.items() if code[0] in "FRW"}


def test_every_name_of_the_library_is_on_the_page() -> None:
    page = (ROOT / "docs" / "language.md").read_text("utf-8")
    missing = [
        f"{path.stem}: {name}"
        for path in sorted((ROOT / "stdlib").glob("*.flow"))
        for name in re.findall(
            r"^pub (?:native )?(?:world )?(?:fn|const|enum|struct) (?:\w+\.)?(\w+)",
            path.read_text("utf-8"),
            re.MULTILINE,
        )
        if not re.search(rf"\b{name}\b", page)
    ]

    assert missing == []


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
