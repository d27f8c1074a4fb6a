"""`qoqi doc NAME`: signatures and doc comments, of the standard library and of the package around.

A name is a module (`std.time`, `billing.invoice`), a declaration of one (`time.format`, `Invoice`),
a method (`List.map`, `Json.at`), a member of a flow (`Approval.decisions`), or a word of the
language (`flow.now`, `task.map`). The more of its path is written, the fewer it can be; all that it
can be are shown. Without a name the modules are listed.

Only the syntax is read, so a package with errors in it is no hindrance.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

from qoqi import stdlib
from qoqi.compiler import api
from qoqi.compiler.project.load import DiskReader, load_package
from qoqi.compiler.source import SourceFile
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax import ast
from qoqi.lsp.builtins import DOCS, signature
from qoqi.runtime.cli import package, render
from qoqi.runtime.cli.ending import USAGE, fail, show_json
from qoqi.vm.dataclass import dataclass

_PREFIX = re.compile(r"^pub\s+(native\s+(world\s+|flow\s+)?)?|^native\s+(world\s+|flow\s+)?")

STD = "std."
PRELUDE = "std.prelude"

Declared: TypeAlias = (
    ast.ConstDecl
    | ast.StructDecl
    | ast.EnumDecl
    | ast.FnDecl
    | ast.StepDecl
    | ast.FlowDecl
    | ast.ChannelDecl
    | ast.FieldDecl
    | ast.ViewDecl
    | ast.VariantDecl
    | ast.StructField
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A declaration: its module, its name there (`List.map`), how it is written, what it says."""

    module: str
    name: str
    header: str
    doc: str
    member: bool

    @property
    def qualified(self) -> str:
        return self.name if self.module == PRELUDE else f"{self.module}.{self.name}"


@dataclass(frozen=True, slots=True)
class Page:
    """A module and what it declares for others."""

    name: str
    doc: str
    entries: tuple[Entry, ...]


def run(name: str | None, path: Path | None, as_json: bool) -> None:
    pages = _pages(path)
    if name is None:
        _list_modules(pages, as_json)
        return
    page = pages.get(name) or pages.get(STD + name)
    if page is not None:
        _show_page(page, as_json)
        return
    found = [entry for page in pages.values() for entry in page.entries if _is(entry, name)]
    if not found:
        words = [word for word in DOCS if word == name or word.startswith(f"{name}.")]
        found = [Entry("", word, signature(word), DOCS[word], False) for word in words]
    if not found:
        _unknown(name, pages)
    if as_json:
        show_json([_json(entry) for entry in found])
        return
    for entry in found:
        _show(entry)


def _unknown(name: str, pages: dict[str, Page]) -> None:
    known = {*pages, *DOCS}
    for page in pages.values():
        for entry in page.entries:
            known |= {entry.qualified, entry.name, entry.name.rpartition(".")[2]}
    close = nearest(name, known)
    hint = f"; near it: {', '.join(close)}" if close else ""
    fail(USAGE, f"nothing here is named {name}{hint}")


def _is(entry: Entry, name: str) -> bool:
    """Whether a name is the end of the entry's path, with the type of a method or without."""
    paths = (f".{entry.module}.{entry.name}", f".{entry.module}.{entry.name.rpartition('.')[2]}")
    return any(path.endswith(f".{name}") for path in paths)


# -- what there is -----------------------------------------------------------------------------


def _pages(path: Path | None) -> dict[str, Page]:
    """The modules of the package, then those of the library; of others only what is `pub`."""
    read = load_package(DiskReader(), package.root(path))
    pages: dict[str, Page] = {}
    for source in read.sources:
        pages[source.module] = _page(source, own=read.packages.get(source.module) == "")
    for source in stdlib.sources():
        pages[source.module] = _page(source, own=False)
    return pages


def _page(source: SourceFile, *, own: bool) -> Page:
    module = api.parse(source).module
    return Page(source.module, module.doc, tuple(_entries(source, module, own)))


def _entries(source: SourceFile, module: ast.Module, own: bool) -> Iterator[Entry]:
    for item in module.items:
        for declared in item.steps if isinstance(item, ast.StepsGroup) else (item,):
            if isinstance(declared, ast.ConstDecl | ast.StructDecl | ast.EnumDecl | ast.FnDecl):
                if own or declared.public:
                    yield from _entry(source, declared)
            elif isinstance(declared, ast.StepDecl | ast.FlowDecl) and (own or declared.public):
                yield from _entry(source, declared)


def _entry(source: SourceFile, node: Declared, owner: str = "") -> Iterator[Entry]:
    own_name = node.name.name
    name = f"{owner}.{own_name}" if owner else own_name
    if isinstance(node, ast.FnDecl) and not owner:
        name = f"{head}.{own_name}" if (head := _head(node)) else own_name
    yield Entry(source.module, name, header(source.text, node), node.doc, bool(owner))
    members: Iterable[object] = ()
    if isinstance(node, ast.FlowDecl):
        members = node.members
    elif isinstance(node, ast.EnumDecl):
        members = node.variants
    elif isinstance(node, ast.StructDecl):
        members = node.fields
    for member in members:
        for each in member.steps if isinstance(member, ast.StepsGroup) else (member,):
            if isinstance(each, Declared):
                yield from _entry(source, each, name)


def _head(node: ast.FnDecl) -> str | None:
    """The type a function is called on: its owner, or that of `self`."""
    if node.owner is not None:
        return node.owner.name
    if node.params and node.params[0].name.name == "self":
        return _type_name(node.params[0].type)
    return None


def _type_name(node: ast.TypeNode | None) -> str | None:
    match node:
        case ast.NamedType(name=name):
            return name.name
        case ast.OptionType():
            return "Option"
        case _:
            return None


def header(text: str, node: Declared) -> str:
    """A declaration as it is written, without its body and `pub`; a struct or an enum whole."""
    start, end = node.span.start, node.span.end
    match node:
        case ast.FnDecl(body=ast.Block(span=body)) | ast.StepDecl(body=ast.Block(span=body)):
            end = body.start
        case ast.ViewDecl(body=ast.Block(span=body)):
            end = body.start
        case ast.FlowDecl(members=members):
            before = members[0].span.start if members else end
            brace = text.rfind("{", start, before)
            end = brace if brace >= 0 else before
        case _:
            pass
    lines = _PREFIX.sub("", text[start:end].rstrip()).splitlines()
    indent = start - (text.rfind("\n", 0, start) + 1)
    rest = [line[min(indent, len(line) - len(line.lstrip())) :] for line in lines[1:]]
    return "\n".join(line.rstrip() for line in [*lines[:1], *rest])


# -- shown -------------------------------------------------------------------------------------


def _list_modules(pages: dict[str, Page], as_json: bool) -> None:
    if as_json:
        show_json([{"module": page.name, "doc": page.doc} for page in pages.values()])
        return
    rows = [[page.name, (page.doc.splitlines() or [""])[0]] for page in pages.values()]
    render.table(["MODULE", "WHAT IT IS"], rows, render.console())


def _show_page(page: Page, as_json: bool) -> None:
    if as_json:
        entries = [_json(entry) for entry in page.entries]
        show_json({"module": page.name, "doc": page.doc, "declarations": entries})
        return
    print(f"# {page.name}\n")
    if page.doc:
        print(f"{_visible(page.doc)}\n")
    for entry in page.entries:
        if not entry.member:
            _show(entry)


def _show(entry: Entry) -> None:
    print(_visible(entry.header))
    if entry.module:
        print(f"    in {entry.module}")
    if entry.doc:
        print(textwrap.indent(_visible(entry.doc), "    "))
    print()


def _visible(text: str) -> str:
    return "\n".join(render.visible(line) for line in text.splitlines())


def _json(entry: Entry) -> dict[str, str]:
    return {
        "module": entry.module,
        "name": entry.name,
        "declaration": entry.header,
        "doc": entry.doc,
    }
