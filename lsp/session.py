"""Open documents, the packages they belong to, and when those are checked.

A session is what one client sees. It is told of texts (`open`, `change`, `close`) and files
(`files_changed`), and it checks a package once its texts have been still for `delay` seconds: in a
worker thread, one package at a time, by `compiler.incremental`. A check whose text has changed
meanwhile stops and is dropped. What a check found is `published`, file by file, with the version of
the text it is about; files that had diagnostics and have none any more are published once empty.

    await session.snapshot(path)     the package of a file, as of its newest text
    session.last(path)               as of the last check: at once, perhaps older than the text

A file belongs to the package around it (the nearest folder with `flow.toml`), else to the folder
that is open in the editor, else it is a package with what it imports from beside it. So is a file
that its package leaves out.

The files of a folder are read through `Overlay`: open documents as they stand in the editor, the
rest from disk, each kept until the disk has another one.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Protocol

from qoqi.compiler.diagnostics import Diagnostic
from qoqi.compiler.incremental import Snapshot, Superseded, recheck
from qoqi.compiler.project.load import MANIFEST, SUFFIX, Package, find_root, load_package
from qoqi.compiler.project.lockfile import LOCK
from qoqi.compiler.source import SourceFile
from qoqi.lsp.text import Text
from qoqi.lsp.versions import Locked, look

logger = logging.getLogger("qoqi.lsp")

DELAY = 0.15
MOST_FOLDERS = 5_000


@dataclass(frozen=True, slots=True)
class Document:
    """A text that is open in the editor."""

    path: str
    version: int
    text: Text


class Publisher(Protocol):
    """Takes the diagnostics of a file; `version` is that of its text, None if it is not open."""

    def __call__(self, path: str, version: int | None, found: tuple[Diagnostic, ...]) -> None: ...


@dataclass(frozen=True, slots=True)
class Result:
    """A package after a check: what the compiler says, and what flow.lock says to it.

    `versions` are those of the open texts that were checked.
    """

    snapshot: Snapshot
    locked: Locked
    versions: Mapping[str, int]
    generation: int

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (*self.snapshot.diagnostics, *self.locked.diagnostics)


@dataclass(slots=True)
class Work:
    """The state of one package: `generation` counts changes, `task` is the check under way."""

    root: str
    generation: int = 1
    result: Result | None = None
    task: asyncio.Task[None] | None = None
    shown: set[str] = field(default_factory=set)


class Overlay:
    """Reads open documents, then the disk. It is read in the worker thread: see `frozen`."""

    def __init__(self, texts: Mapping[str, str], folders: Iterable[str], kept: _Kept) -> None:
        self.texts = texts
        self.folders = tuple(folders)
        self.kept = kept

    def files(self, folder: str, suffix: str) -> list[str]:
        """Files below a folder; those of packages inside it only if it is one itself."""
        found = set(self.kept.files(folder, suffix, nested=self.is_file(f"{folder}/{MANIFEST}")))
        inside = f"{folder.rstrip('/')}/"
        found |= {path for path in self.texts if path.startswith(inside) and path.endswith(suffix)}
        return sorted(found)

    def read(self, path: str) -> str:
        text = self.texts.get(path)
        return text if text is not None else self.kept.read(path)

    def is_file(self, path: str) -> bool:
        return path in self.texts or Path(path).is_file()

    def is_folder(self, path: str) -> bool:
        return Path(path).is_dir()


class _Kept:
    """Files of the disk, by path and what the disk says of them."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[tuple[int, int], str]] = {}

    def read(self, path: str) -> str:
        status = os.stat(path)
        stamp = (status.st_mtime_ns, status.st_size)
        known = self._texts.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, Path(path).read_bytes().decode("utf-8"))
            self._texts[path] = known
        return known[1]

    def files(self, folder: str, suffix: str, *, nested: bool) -> list[str]:
        found: list[str] = []
        for count, (place, folders, names) in enumerate(os.walk(folder)):
            if count > MOST_FOLDERS:
                return found
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if not nested and place != folder and MANIFEST in names:
                folders[:] = []
                continue
            for name in names:
                if name.endswith(suffix) and not name.startswith("."):
                    found.append(str(PurePosixPath(place, name)))
        return found

    def forget(self, path: str) -> None:
        self._texts.pop(path, None)


def silent(path: str, version: int | None, found: tuple[Diagnostic, ...]) -> None:
    """Publishes nothing."""


class Session:
    def __init__(self, publish: Publisher = silent, delay: float = DELAY) -> None:
        self.publish = publish
        self.delay = delay
        self.documents: dict[str, Document] = {}
        self.folders: list[str] = []
        self.checked: Callable[[Work], None] = lambda work: None
        self._kept = _Kept()
        self._packages: dict[str, Work] = {}
        self._roots: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(1, "check")

    # -- what the client tells ----------------------------------------------------------------

    def open(self, path: str, version: int, text: str) -> None:
        self.documents[path] = Document(path, version, Text(text))
        self._roots.clear()
        self._touch(path)

    def change(self, path: str, version: int, text: Text) -> None:
        self.documents[path] = Document(path, version, text)
        if PurePosixPath(path).name == MANIFEST:
            self._roots.clear()
        self._touch(path)

    def close(self, path: str) -> None:
        """The file is again what the disk says; one that is not there has no diagnostics."""
        self.documents.pop(path, None)
        root = self._roots.pop(path, None)
        if root == path:
            self._drop(path)
        else:
            self._touch(path)
        self._roots.clear()

    def files_changed(self, paths: Iterable[str]) -> None:
        """Files came, went, or have another text on the disk."""
        self._roots.clear()
        for path in paths:
            self._kept.forget(path)
            if PurePosixPath(path).name in (MANIFEST, LOCK):
                folder = str(PurePosixPath(path).parent)
                for work in list(self._packages.values()):
                    if work.root.startswith(folder) or folder.startswith(work.root):
                        self._later(work)
            for work in list(self._packages.values()):
                known = {source.path for source in self._sources(work)}
                if path in known or path.startswith(f"{work.root.rstrip('/')}/"):
                    self._later(work)
        self._rehome()

    def set_folders(self, folders: Iterable[str]) -> None:
        self.folders = [folder.rstrip("/") or "/" for folder in folders]
        self._roots.clear()
        self._rehome()

    async def stop(self) -> None:
        for work in self._packages.values():
            work.generation += 1
            if work.task is not None:
                work.task.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- what is known ------------------------------------------------------------------------

    def root(self, path: str) -> str:
        """The package a file is checked with."""
        known = self._roots.get(path)
        if known is None:
            known = self._roots[path] = self._find_root(path)
        return known

    def last(self, path: str) -> Result | None:
        """The last check of a file's package that has the file."""
        work = self._packages.get(self.root(path))
        return work.result if work is not None else None

    async def snapshot(self, path: str) -> Result:
        """The package of a file as of its newest text, when it is checked."""
        return await self.settled(self._work(self.root(path)))

    async def settled(self, work: Work) -> Result:
        while work.result is None or work.result.generation != work.generation:
            if work.task is None:
                self._later(work, changed=False)
            assert work.task is not None
            await asyncio.shield(work.task)
        return work.result

    def works(self) -> list[Work]:
        """The packages that are known, by root."""
        return [self._packages[root] for root in sorted(self._packages)]

    def text(self, path: str) -> Text | None:
        """The text of a file, open or on the disk."""
        document = self.documents.get(path)
        if document is not None:
            return document.text
        try:
            return Text(self._kept.read(path))
        except (OSError, UnicodeDecodeError):
            return None

    def load_folders(self) -> None:
        """Checks the packages of the open folders, also those without an open document."""
        for folder in self.folders:
            reader = self._reader()
            for manifest in reader.kept.files(folder, MANIFEST, nested=True):
                if PurePosixPath(manifest).name == MANIFEST:
                    self._later(self._work(str(PurePosixPath(manifest).parent)), changed=False)
            if not reader.is_file(f"{folder}/{MANIFEST}") and reader.files(folder, SUFFIX):
                self._later(self._work(folder), changed=False)

    # -- packages -----------------------------------------------------------------------------

    def _find_root(self, path: str) -> str:
        if not path.startswith("/"):
            return path
        reader = self._reader()
        root = find_root(reader, path)
        if root == path:
            inside = [folder for folder in self.folders if path.startswith(f"{folder}/")]
            root = max(inside, key=len, default=path)
        if root == path or not path.endswith(SUFFIX):
            return root
        package = load_package(reader, root)
        return root if any(source.path == path for source in package.sources) else path

    def _reader(self) -> Overlay:
        texts = {path: document.text.value for path, document in self.documents.items()}
        return Overlay(texts, self.folders, self._kept)

    def _sources(self, work: Work) -> Iterable[SourceFile]:
        return work.result.snapshot.package.sources if work.result is not None else ()

    def _work(self, root: str) -> Work:
        return self._packages.setdefault(root, Work(root))

    def _touch(self, path: str) -> None:
        """A text changed: its package is checked again, and all that use the file."""
        root = self.root(path)
        for work in list(self._packages.values()):
            if work.root != root and work.result is not None:
                sources = work.result.snapshot.package.sources
                if any(source.path == path for source in sources):
                    self._later(work)
        self._later(self._work(root))

    def _rehome(self) -> None:
        """Files may belong to other packages now."""
        roots = {self.root(path) for path in self.documents}
        for root in roots - self._packages.keys():
            self._later(self._work(root))
        for root in list(self._packages):
            if root not in roots and (root.endswith(SUFFIX) or not Path(root).is_dir()):
                self._drop(root)

    def _drop(self, root: str) -> None:
        work = self._packages.pop(root, None)
        if work is None:
            return
        work.generation += 1
        if work.task is not None:
            work.task.cancel()
        for path in work.shown:
            self._show(path)

    # -- checking -----------------------------------------------------------------------------

    def _later(self, work: Work, *, changed: bool = True) -> None:
        if changed:
            work.generation += 1
        if work.task is None or work.task.done():
            work.task = asyncio.get_running_loop().create_task(self._check(work))

    async def _check(self, work: Work) -> None:
        """Checks a package until the check is that of its newest texts."""
        try:
            while True:
                generation = work.generation
                await asyncio.sleep(self.delay if work.result is not None else 0)
                if generation != work.generation:
                    continue
                result = await self._run(work, generation)
                if generation == work.generation and result is not None:
                    work.result = result
                    self._publish(work)
                    self.checked(work)
                    return
        finally:
            work.task = None

    async def _run(self, work: Work, generation: int) -> Result | None:
        reader = self._reader()
        before = work.result
        versions = {path: document.version for path, document in self.documents.items()}

        def stale() -> bool:
            return generation != work.generation

        def run() -> Result | None:
            try:
                package = load_package(reader, work.root)
                old = before.snapshot if before is not None else None
                snapshot = recheck(package, old, stale)
                locked = look(snapshot, reader, before.locked if before is not None else None)
                return Result(snapshot, locked, versions, generation)
            except Superseded:
                return None

        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, run)
        except RecursionError as fault:
            logger.error("%s: nested too deeply to be checked: %s", work.root, fault)
        except Exception:
            logger.exception("the check of %s failed", work.root)
        if before is not None:
            return Result(before.snapshot, before.locked, before.versions, generation)
        empty = Package("", work.root, (), (), {}, None)
        return Result(recheck(empty), Locked(), {}, generation)

    def _publish(self, work: Work) -> None:
        assert work.result is not None
        found = {diagnostic.file for diagnostic in work.result.diagnostics}
        found |= {path for path in self.documents if self.root(path) == work.root}
        before, work.shown = work.shown, found
        for path in sorted(found | before):
            self._show(path)

    def _show(self, path: str) -> None:
        document = self.documents.get(path)
        version = document.version if document is not None else None
        self.publish(path, version, self.diagnostics(path))

    def diagnostics(self, path: str) -> tuple[Diagnostic, ...]:
        """What the last checks found in a file, of all packages that have it."""
        found: dict[Diagnostic, None] = {}
        for root in sorted(self._packages):
            result = self._packages[root].result
            if result is not None:
                for diagnostic in result.diagnostics:
                    if diagnostic.file == path:
                        found[diagnostic] = None
        return tuple(found)
