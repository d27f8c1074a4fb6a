"""What flow.lock says to the flows of a package: which are changed, and what instances need.

The comparison is that of `qoqi build` (`project.build.compile_flows`), for a package without
errors; nothing is written. Flows of modules that were not checked again keep what was found before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import PurePosixPath

from qoqi.compiler.diagnostics import Diagnostic, sort
from qoqi.compiler.incremental import Snapshot
from qoqi.compiler.project.build import compile_flows
from qoqi.compiler.project.load import SUFFIX, Reader
from qoqi.compiler.project.lockfile import LOCK, Lock, LockedFlow, read
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Locked:
    """`text` is that of flow.lock, `found` what was found of each flow that has deployed versions.

    `hashes` are the versions of these flows as the sources are now.
    """

    text: str = ""
    lock: Lock = field(default_factory=Lock)
    problems: tuple[Diagnostic, ...] = ()
    found: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return (*self.problems, *(each for found in self.found.values() for each in found))

    def flow(self, name: str) -> LockedFlow:
        return self.lock.flow(name)


def look(snapshot: Snapshot, reader: Reader, before: Locked | None) -> Locked:
    """Compares a package with its flow.lock."""
    root = snapshot.package.root
    folder = str(PurePosixPath(root).parent) if root.endswith(SUFFIX) else root
    path = str(PurePosixPath(folder, LOCK))
    if not reader.is_file(path):
        return Locked()
    try:
        text = reader.read(path)
    except (OSError, UnicodeDecodeError):
        return Locked()
    if before is None or before.text != text:
        before = None
        lock = read(text, path)
        if isinstance(lock, Diagnostic):
            return Locked(text, Lock(), (lock,))
        known = Locked(text, lock)
    else:
        known = before
    if not snapshot.ok or known.problems:
        return replace(known, found={})
    return _compared(snapshot, known, folder, before)


def _compared(snapshot: Snapshot, known: Locked, folder: str, before: Locked | None) -> Locked:
    found: dict[str, tuple[Diagnostic, ...]] = {}
    hashes: dict[str, str] = {}
    chosen = []
    for flow in snapshot.checked.flows:
        name = flow.qualified
        if known.flow(name).base is None:
            continue
        if before is not None and flow.module not in snapshot.again and name in before.hashes:
            found[name] = before.found.get(name, ())
            hashes[name] = before.hashes[name]
        else:
            chosen.append(flow)
    if chosen:
        some = replace(snapshot.checked, flows=tuple(chosen))
        built = compile_flows(some, snapshot.sources, known.lock, folder, whole=False)
        for flow in chosen:
            path = snapshot.sources[flow.module].path
            span = flow.decl.span
            found[flow.qualified] = tuple(
                each
                for each in built.diagnostics
                if each.file == path and span.start <= each.span.start <= span.end
            )
        hashes |= {each.name: each.hash for each in built.flows}
    return replace(
        known, found={name: tuple(sort(each)) for name, each in found.items()}, hashes=hashes
    )
