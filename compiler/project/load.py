"""Finds the sources of a package.

A package is a folder with `flow.toml`; a folder without one is a package by itself. A single file
is read with the modules it imports from beside it. `flow.toml` has

    name = "billing"
    sources = ["src"]                        # all of the folder unless given

    [dependencies]
    money = { path = "../money" }

A module is named by its path below the source folder it stands in: `billing/invoice.flow` is
`billing.invoice`. Modules of a dependency begin with the name it is given here. Hidden folders are
skipped; all `*.flow` files below a source folder belong to the package. A source folder lies in the
package, and not in another source folder; a dependency may lie anywhere.

Files are reached through a `Reader`, so that an editor can show text that is not saved yet.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import tomllib
from pathlib import Path, PurePosixPath
from typing import Protocol

from qoqi.compiler.diagnostics import Diagnostic, Edit, Fix, Label, error
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.suggest import nearest
from qoqi.compiler.syntax.tokens import RESERVED
from qoqi.vm.dataclass import dataclass

MANIFEST = "flow.toml"
LOCK = "flow.lock"
SUFFIX = ".flow"
_PART = re.compile(r"[a-z_][A-Za-z0-9_]*")
_NAME = re.compile(r"[a-z_][A-Za-z0-9_-]*")
_IMPORT = re.compile(r"^[ \t]*(?:pub[ \t]+)?import[ \t]+([a-z_][\w.]*\w)", re.MULTILINE)
_TOML_PLACE = re.compile(r" \(at line (\d+), column (\d+)\)$")
_KEYS = ("name", "sources", "dependencies")
_MOST_BYTES = 64 * 1024 * 1024


class Reader(Protocol):
    """Reads files. Paths are text with `/`; `files` lists those below a folder, sorted."""

    def files(self, folder: str, suffix: str) -> list[str]: ...

    def read(self, path: str) -> str: ...

    def is_file(self, path: str) -> bool: ...

    def is_folder(self, path: str) -> bool: ...


class DiskReader:
    """Reads the disk; hidden files and folders are not seen."""

    def files(self, folder: str, suffix: str) -> list[str]:
        found: list[str] = []
        for place, folders, names in os.walk(folder):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if name.endswith(suffix) and not name.startswith("."):
                    found.append(_join(place.replace(os.sep, "/"), name))
        return sorted(found)

    def read(self, path: str) -> str:
        """The text of a file. A pipe or a device, which may never end, is none."""
        state = os.stat(path)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no file")
        if state.st_size > _MOST_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {_MOST_BYTES // 2**20} MiB")
        return Path(path).read_text(encoding="utf-8")

    def is_file(self, path: str) -> bool:
        return Path(path).is_file()

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()


def shown_text(path: str) -> str:
    """What can be shown of a file that is no source: nothing of one that is not to be read."""
    file = Path(path)
    if not file.is_file() or file.stat().st_size > _MOST_BYTES:
        return ""
    return file.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True, slots=True)
class Package:
    """A package's sources, then those of its dependencies.

    `packages` says for each module which package it belongs to: "" for this one, else the name of
    the dependency, with which the module's name begins. `manifest` is the path of `flow.toml`, or
    None.
    """

    name: str
    root: str
    sources: tuple[SourceFile, ...]
    diagnostics: tuple[Diagnostic, ...]
    packages: dict[str, str]
    manifest: str | None = None


def find_root(reader: Reader, path: str) -> str:
    """The package a file or folder belongs to: the nearest folder above with `flow.toml`.

    Without one it is the path itself.
    """
    at = path
    while True:
        if reader.is_folder(at) and reader.is_file(_join(at, MANIFEST)):
            return at
        parent = str(PurePosixPath(at).parent)
        if parent == at:
            return path
        at = parent


def load_package(reader: Reader, root: str) -> Package:
    """The package of a folder, or of one file. Problems are diagnostics (E0211, E0212)."""
    root = root.rstrip("/") or "/"
    if reader.is_file(root):
        return _single_file(reader, root)
    found: list[Diagnostic] = []
    sources: list[SourceFile] = []
    packages: dict[str, str] = {}
    name, manifest = _load_into(reader, root, "", (root,), sources, packages, found)
    return Package(name, root, tuple(sources), tuple(found), packages, manifest)


def _single_file(reader: Reader, path: str) -> Package:
    found: list[Diagnostic] = []
    module = PurePosixPath(path).name.removesuffix(SUFFIX)
    text = _read_source(reader, path, found)
    if not _PART.fullmatch(module):
        module = re.sub(r"[^A-Za-z0-9_]", "_", module)
        module = module if _PART.fullmatch(module) else f"_{module}"
    sources: dict[str, SourceFile] = {}
    if text is not None:
        sources[module] = SourceFile(path, module, text)
        _add_imported(reader, str(PurePosixPath(path).parent), text, sources, found)
    return Package(module, path, tuple(sources.values()), tuple(found), dict.fromkeys(sources, ""))


def _add_imported(
    reader: Reader,
    folder: str,
    text: str,
    sources: dict[str, SourceFile],
    found: list[Diagnostic],
) -> None:
    """The modules a file imports, and those they import, as far as they lie in its folder."""
    texts = [text]
    while texts:
        for match in _IMPORT.finditer(texts.pop()):
            module = match.group(1)
            path = _join(folder, *module.split(".")) + SUFFIX
            if module in sources or not reader.is_file(path):
                continue
            imported = _read_source(reader, path, found)
            if imported is not None:
                sources[module] = SourceFile(path, module, imported)
                texts.append(imported)


def _load_into(
    reader: Reader,
    root: str,
    prefix: str,
    chain: tuple[str, ...],
    sources: list[SourceFile],
    packages: dict[str, str],
    found: list[Diagnostic],
) -> tuple[str, str | None]:
    manifest_path = _join(root, MANIFEST)
    manifest: dict[str, object] = {}
    has_manifest = reader.is_file(manifest_path)
    if has_manifest:
        manifest = _read_manifest(reader, manifest_path, found)
    name = manifest.get("name")
    if not isinstance(name, str):
        name = PurePosixPath(root).name or "package"
    folders = manifest.get("sources")
    for folder in folders if isinstance(folders, list) else ["."]:
        _load_folder(reader, root, str(folder), manifest_path, prefix, sources, packages, found)
    dependencies = manifest.get("dependencies")
    if isinstance(dependencies, dict):
        for dependency, where in sorted(dependencies.items()):
            _load_dependency(
                reader, root, manifest_path, dependency, where, chain, sources, packages, found
            )
    return name, manifest_path if has_manifest else None


def _load_folder(
    reader: Reader,
    root: str,
    folder: str,
    manifest_path: str,
    prefix: str,
    sources: list[SourceFile],
    packages: dict[str, str],
    found: list[Diagnostic],
) -> None:
    inside = os.path.normpath(folder or ".").replace(os.sep, "/")
    base = root if inside == "." else _join(root, inside)
    if inside.startswith(("/", "../")) or inside == "..":
        message = f"the source folder `{folder}` lies outside of the package"
        found.append(_manifest_error(reader, manifest_path, folder, message))
        return
    if not reader.is_folder(base):
        found.append(
            _manifest_error(reader, manifest_path, folder, f"there is no source folder `{folder}`")
        )
        return
    seen = {source.module: source.path for source in sources}
    files = reader.files(base, SUFFIX)
    if not set(seen.values()).isdisjoint(files):
        message = f"the source folder `{folder}` has files of another one in it"
        note = "A file is one module, named by its path below one source folder."
        found.append(_manifest_error(reader, manifest_path, folder, message, note))
        return
    for path in files:
        parts = path.removeprefix(base).strip("/").removesuffix(SUFFIX).split("/")
        bad = next((part for part in parts if not _PART.fullmatch(part)), None)
        reserved = next((part for part in parts if part in RESERVED), None)
        if bad is not None:
            message = f"`{bad}` cannot be part of a module's name"
            note = "Folders and files of a package are named like values: `unpaidBills.flow`."
            found.append(error("E0212", path, Span(0, 0), message, notes=[note]))
            continue
        if reserved is not None:
            message = f"`{reserved}` is a word of the language, and no module can have the name"
            found.append(error("E0212", path, Span(0, 0), message, notes=["Rename it."]))
            continue
        module = ".".join([prefix, *parts] if prefix else parts)
        if module.split(".")[0] == "std":
            message = f"`{module}` would be a module of the standard library"
            found.append(error("E0212", path, Span(0, 0), message, notes=["Rename it."]))
            continue
        if module in seen:
            found.append(
                error(
                    "E0212",
                    path,
                    Span(0, 0),
                    f"a second module is named `{module}`",
                    labels=[Label(seen[module], Span(0, 0), "the first is this file")],
                    notes=["Two source folders have a file of the same name: rename one."],
                )
            )
            continue
        text = _read_source(reader, path, found)
        if text is None:
            continue
        seen[module] = path
        sources.append(SourceFile(path, module, text))
        packages[module] = prefix


def _load_dependency(
    reader: Reader,
    root: str,
    manifest_path: str,
    name: str,
    where: object,
    chain: tuple[str, ...],
    sources: list[SourceFile],
    packages: dict[str, str],
    found: list[Diagnostic],
) -> None:
    place = where.get("path") if isinstance(where, dict) else None
    if not isinstance(place, str) or not _PART.fullmatch(name):
        message = f'dependency `{name}` is not written as `{name} = {{ path = "../{name}" }}`'
        found.append(_manifest_error(reader, manifest_path, name, message))
        return
    if name == "std":
        message = "`std` is the standard library, and no dependency can have the name"
        found.append(_manifest_error(reader, manifest_path, name, message))
        return
    folder = os.path.normpath(_join(root, place)).replace(os.sep, "/")
    if not reader.is_folder(folder):
        message = f"dependency `{name}` is not there: no folder `{place}`"
        found.append(_manifest_error(reader, manifest_path, place, message))
        return
    if folder in chain:
        message = f"dependency `{name}` leads back to this package"
        found.append(_manifest_error(reader, manifest_path, name, message))
        return
    if name in packages.values():
        return
    _load_into(reader, folder, name, (*chain, folder), sources, packages, found)


def _read_source(reader: Reader, path: str, found: list[Diagnostic]) -> str | None:
    try:
        return reader.read(path)
    except UnicodeDecodeError as problem:
        message = f"this file is not UTF-8 text (byte {problem.start})"
    except OSError as problem:
        message = f"this file cannot be read: {problem.strerror or problem}"
    found.append(error("E0212", path, Span(0, 0), message))
    return None


def _read_manifest(reader: Reader, path: str, found: list[Diagnostic]) -> dict[str, object]:
    text = _read_source(reader, path, found)
    if text is None:
        return {}
    try:
        manifest: dict[str, object] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        what = _TOML_PLACE.sub("", str(problem))
        span = _toml_place(text, str(problem))
        found.append(error("E0211", path, span, f"{MANIFEST} is not TOML: {what}"))
        return {}
    meant: list[str] = []
    for key in manifest:
        if key not in _KEYS:
            near = nearest(key, [known for known in _KEYS if known not in manifest])
            meant += near
            found.append(_unknown_key(path, text, key, near))
    name = manifest.get("name")
    if name is None and "name" in meant:
        return manifest
    if name is None or not isinstance(name, str) or not _NAME.fullmatch(name):
        span = _find(text, "name")
        found.append(
            error("E0211", path, span, 'a package has a name in lower case: `name = "billing"`')
        )
    folders = manifest.get("sources")
    if folders is not None and not _is_texts(folders):
        span = _find(text, "sources")
        found.append(
            error("E0211", path, span, '`sources` is a list of folders: `sources = ["src"]`')
        )
        del manifest["sources"]
    dependencies = manifest.get("dependencies")
    if dependencies is not None and not isinstance(dependencies, dict):
        span = _find(text, "dependencies")
        found.append(error("E0211", path, span, "`dependencies` is a table of names and paths"))
    return manifest


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _unknown_key(path: str, text: str, key: str, near: list[str]) -> Diagnostic:
    span = _find(text, key)
    return error(
        "E0211",
        path,
        span,
        f"`{key}` is not a setting of {MANIFEST}",
        notes=["Its settings are " + ", ".join(f"`{known}`" for known in _KEYS) + "."],
        fixes=[Fix(f"Change to `{name}`", (Edit(path, span, name),)) for name in near],
    )


def _toml_place(text: str, problem: str) -> Span:
    """Where TOML says that it is wrong, to the end of the line."""
    place = _TOML_PLACE.search(problem)
    if place is None:
        return Span(len(text), len(text)) if "end of document" in problem else Span(0, 0)
    lines = text.split("\n")
    start = sum(len(line) + 1 for line in lines[: int(place[1]) - 1])
    end = start + len(lines[int(place[1]) - 1])
    return Span(min(start + int(place[2]) - 1, end), end)


def _manifest_error(reader: Reader, path: str, word: str, message: str, *notes: str) -> Diagnostic:
    text = reader.read(path) if reader.is_file(path) else ""
    return error("E0211", path, _find(text, word), message, notes=notes)


def _find(text: str, word: str) -> Span:
    at = text.find(word)
    return Span(0, 0) if at < 0 else Span(at, at + len(word))


def _join(*parts: str) -> str:
    return str(PurePosixPath(*parts))
