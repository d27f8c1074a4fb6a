"""Open documents, the packages they belong to, and when those are checked.

A session is what one client sees. It is told of texts (`open`, `change`, `close`) and files
(`files_changed`), and it checks their packages: in a worker thread, one package at a time, by
`compiler.incremental`. Whatever else checks a package does so in that thread (`aside`): it fills in
facts of the standard library, which is one for the process. A check whose text has changed
meanwhile stops and is dropped. What a check found is `published`, file by file, with the version of
the text it is about, where it is not what was published last; files that had diagnostics and have
none any more are published once empty.

    await session.snapshot(path)     the package of a file, as of its newest text
    await session.looked(path)       what is known of a file first, as of its newest text
    session.last(path)               as of the last check: at once, perhaps older than the text

When: the first change after a pause is checked at once. While changes follow one another, a check
waits for as long as a part of the last one took, at most `delay` seconds: what is quick need not
wait, and what is slow would be dropped in its middle again and again. While a request is answered
that a person waits for (`urgent`), a check stands still.

The first check of a large package takes seconds. It goes on while texts change, and its worker
turns aside to look at the texts that are open: first at their syntax, then at their names and types
(`first_look`). What is found so is published; the rest follows with the whole check.

A file belongs to the package around it (the nearest folder with `flow.toml`), else to the folder
that is open in the editor, else it is a package with what it imports from beside it. So is a file
that its package leaves out.

The files of a folder are read through `Overlay`: open documents as they stand in the editor, the
rest from disk, each kept until the disk has another one.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import Protocol, TypeVar

from qoqi.compiler.diagnostics import Diagnostic
from qoqi.compiler.garbage import paused
from qoqi.compiler.incremental import Snapshot, Superseded, Watch, first_look, recheck
from qoqi.compiler.project.load import MANIFEST, SUFFIX, Package, find_root, load_package
from qoqi.compiler.project.lockfile import LOCK
from qoqi.compiler.source import SourceFile
from qoqi.lsp.text import Text
from qoqi.lsp.versions import Locked, look
from qoqi.vm.dataclass import dataclass

logger = logging.getLogger("qoqi.lsp")

T = TypeVar("T")

DELAY = 0.15
# How long a check waits for the next change, as a part of how long the last check took.
PATIENCE = 0.25
# How much more of a check must be done before that is told.
STEP = 0.02
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
    """A package after a check: what the compiler says, and what flow.lock says to it."""

    snapshot: Snapshot
    locked: Locked
    generation: int

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (*self.snapshot.diagnostics, *self.locked.diagnostics)


@dataclass(slots=True)
class Work:
    """The state of one package: `generation` counts changes, `task` is the check under way, `told`
    the last result that was published.

    `touched` is when the last change came, `quiet` how long it had been still then, `seconds` how
    long the last check took. `shown` are the files with something published.

    Until there is a first result: `wanted` are open files to be looked at, `early` what was found
    in them, `looked` how those are understood of which that is all a first look finds, and `news`
    happens when there is more. `over` says that nobody wants to know any more.
    """

    root: str
    generation: int = 1
    result: Result | None = None
    told: Result | None = None
    task: asyncio.Task[None] | None = None
    shown: set[str] = field(default_factory=set[str])
    touched: float = 0.0
    quiet: float = 0.0
    seconds: float = 0.0
    wanted: deque[str] = field(default_factory=deque[str])
    early: dict[str, tuple[Diagnostic, ...]] = field(
        default_factory=dict[str, tuple[Diagnostic, ...]]
    )
    looked: dict[str, Result] = field(default_factory=dict[str, Result])
    news: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False

    def tell(self) -> None:
        """Wakes who waits for news."""
        self.news.set()
        self.news = asyncio.Event()


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


def unseen(work: Work, what: object) -> None:
    """Nobody wants to know of a check."""


@dataclass(frozen=True, slots=True)
class Published:
    """What a client was told last of a file; the places in it depend on its text."""

    version: int | None
    text: str | None
    found: tuple[Diagnostic, ...]


class Session:
    def __init__(self, publish: Publisher = silent, delay: float = DELAY) -> None:
        self.publish = publish
        self.delay = delay
        self.documents: dict[str, Document] = {}
        self.folders: list[str] = []
        self.checked: Callable[[Work, Result | None], None] = unseen
        self.progress: Callable[[Work, float], None] = unseen
        self._published: dict[str, Published] = {}
        self._free: Future[None] = Future()
        self._free.set_result(None)
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
        self._published.pop(path, None)
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
            _end(work)
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- what is known ------------------------------------------------------------------------

    def root(self, path: str) -> str:
        """The package a file is checked with."""
        known = self._roots.get(path)
        if known is None:
            known = self._roots[path] = self._find_root(path)
        return known

    def last(self, path: str) -> Result | None:
        """The last check of a file's package, or the first look at the file."""
        work = self._packages.get(self.root(path))
        if work is None:
            return None
        return work.result or work.looked.get(path)

    async def snapshot(self, path: str) -> Result:
        """The package of a file as of its newest text, when it is checked."""
        return await self.settled(self._work(self.root(path)))

    async def looked(self, path: str) -> None:
        """Waits until something is known of a text: all there is, or what a first look finds."""
        work = self._work(self.root(path))
        while work.result is None and not work.over:
            early = work.looked.get(path)
            if early is not None and early.generation == work.generation:
                return
            if path not in work.wanted:
                work.wanted.append(path)
            news = work.news
            if work.task is None:
                self._later(work, changed=False)
            await news.wait()
        if work.result is not None:
            await self.settled(work)

    async def aside(self, path: str, attempt: Callable[[Watch], T]) -> T:
        """Does in the worker thread what checks a file's package for a trial, with a watch for the
        check. Raises `Superseded` if the package changes meanwhile."""
        work = self._work(self.root(path))
        generation = work.generation

        def stale() -> bool:
            self._free.result()
            return work.over or generation != work.generation

        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, attempt, Watch(stale))

    @contextmanager
    def urgent(self) -> Generator[None]:
        """Checks stand still inside: for what is asked between two keys."""
        self._free = Future()
        try:
            yield
        finally:
            self._free.set_result(None)

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
        _end(work)
        for path in work.shown:
            self._show(path)

    # -- checking -----------------------------------------------------------------------------

    def _later(self, work: Work, *, changed: bool = True) -> None:
        loop = asyncio.get_running_loop()
        if changed:
            work.generation += 1
            work.quiet = loop.time() - work.touched
            work.touched = loop.time()
        if work.result is None:
            for path in self.documents:
                if path not in work.wanted and self.root(path) == work.root:
                    work.wanted.append(path)
        if work.task is None or work.task.done():
            work.task = loop.create_task(self._check(work))

    def _pause(self, work: Work) -> float:
        """How long a text must be still before it is checked."""
        if work.result is None or work.quiet > self.delay:
            return 0
        return min(self.delay, work.seconds * PATIENCE)

    async def _check(self, work: Work) -> None:
        """Checks a package until the check is that of its newest texts."""
        try:
            while True:
                generation = work.generation
                await asyncio.sleep(self._pause(work))
                if generation != work.generation:
                    continue
                before = work.result
                result = await self._run(work, generation)
                if result is None or work.over:
                    continue
                if before is None:
                    work.result = result  # perhaps of older texts: the next check starts from it
                    work.early.clear()
                    work.looked.clear()
                if generation == work.generation:
                    work.result = result
                    self._publish(work)
                    work.tell()
                    self.checked(work, work.told)
                    work.told = result
                    return
        finally:
            work.task = None

    async def _run(self, work: Work, generation: int) -> Result | None:
        reader = self._reader()
        before = work.result
        loop = asyncio.get_running_loop()

        def stale() -> bool:
            self._free.result()
            return work.over or (before is not None and generation != work.generation)

        def run() -> Result | None:
            started = loop.time()
            try:
                with paused():
                    package = load_package(reader, work.root)
                    watch = Watch(stale)
                    if before is None:
                        watch = self._first(work, package, loop, stale)
                    old = before.snapshot if before is not None else None
                    snapshot = recheck(package, old, watch)
                    locked = look(snapshot, reader, before.locked if before is not None else None)
                    if before is None:
                        # It lives as long as the package does. To look through it for garbage
                        # would stop the server for seconds.
                        gc.freeze()
            except Superseded:
                return None
            work.seconds = loop.time() - started
            return Result(snapshot, locked, generation)

        try:
            return await loop.run_in_executor(self._pool, run)
        except RecursionError as fault:
            logger.error("%s: nested too deeply to be checked: %s", work.root, fault)
        except Exception:
            logger.exception("the check of %s failed", work.root)
        if before is not None:
            return Result(before.snapshot, before.locked, generation)
        empty = Package("", work.root, (), (), {}, None)
        return Result(recheck(empty), Locked(), generation)

    def _first(
        self,
        work: Work,
        package: Package,
        loop: asyncio.AbstractEventLoop,
        stale: Callable[[], bool],
    ) -> Watch:
        """A watch over a first check, in whose worker thread it turns aside to files that are
        `wanted`, and tells how much is done."""
        aside = Watch(stale)
        told = 0.0

        def look_at(path: str) -> None:
            document = self.documents.get(path)
            source = next((each for each in package.sources if each.path == path), None)
            if document is None or source is None:
                return
            source = replace(source, text=document.text.value)
            others = tuple(source if each.path == path else each for each in package.sources)
            syntax = aside.parsed(source).diagnostics
            loop.call_soon_threadsafe(self._early, work, document, syntax, None)
            found = first_look(replace(package, sources=others), source.module, aside)
            loop.call_soon_threadsafe(self._early, work, document, found.diagnostics, found)

        def turn_aside() -> bool:
            while len(package.sources) > 1 and work.wanted and not stale():
                look_at(work.wanted.popleft())
            return stale()

        def progress(part: float) -> None:
            nonlocal told
            if part >= told + STEP:
                told = part
                loop.call_soon_threadsafe(self._told, work, part)

        return Watch(turn_aside, progress, aside.known)

    def _told(self, work: Work, part: float) -> None:
        self.progress(work, part)

    def _early(
        self,
        work: Work,
        document: Document,
        found: tuple[Diagnostic, ...],
        snapshot: Snapshot | None,
    ) -> None:
        """Something is known of an open file before the first check is done."""
        path = document.path
        if work.over or work.result is not None or self.documents.get(path) is not document:
            return
        work.early[path] = found
        work.shown.add(path)
        self._show(path)
        if snapshot is not None:
            work.looked[path] = Result(snapshot, Locked(), work.generation)
            work.tell()

    def _publish(self, work: Work) -> None:
        assert work.result is not None
        found = {diagnostic.file for diagnostic in work.result.diagnostics}
        found |= {path for path in self.documents if self.root(path) == work.root}
        before, work.shown = work.shown, found
        for path in sorted(found | before, key=lambda path: (path not in self.documents, path)):
            self._show(path)

    def _show(self, path: str) -> None:
        document = self.documents.get(path)
        version = document.version if document is not None else None
        text = self.text(path)
        told = Published(version, text.value if text is not None else None, self.diagnostics(path))
        if self._published.get(path) != told:
            self._published[path] = told
            self.publish(path, version, told.found)

    def diagnostics(self, path: str) -> tuple[Diagnostic, ...]:
        """What the last checks found in a file, of all packages that have it."""
        found: dict[Diagnostic, None] = {}
        for root in sorted(self._packages):
            work = self._packages[root]
            known = work.result.diagnostics if work.result is not None else work.early.get(path, ())
            for diagnostic in known:
                if diagnostic.file == path:
                    found[diagnostic] = None
        return tuple(found)


def _end(work: Work) -> None:
    """Nobody wants to know of a package any more."""
    work.over = True
    work.generation += 1
    if work.task is not None:
        work.task.cancel()
    work.tell()
