"""The pipeline: sources to bytecode and flow.lock.

    load, parse, check, rules        no error may be left
    emit                             each flow to a chunk; channels numbered as flow.lock says
    verify, encode, hash             the machine takes nothing else
    compare                          with the last deployed version: what its instances need
    write                            `.qoqi/build/<hash>.chunk` and `.debug`, then flow.lock

Files are written beside their place and renamed, chunks before the lock that names them, so a build
that is interrupted leaves either the old lock or the new one with all it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qoqi.compiler.diagnostics import Diagnostic, Severity, error, sort
from qoqi.compiler.emit.emitter import channel_names, emit_flow
from qoqi.compiler.names.symbols import FlowSymbol
from qoqi.compiler.project import lockfile, versions
from qoqi.compiler.project.files import replace_file
from qoqi.compiler.project.lockfile import LOCK, Lock, LockedFlow, LockedVersion
from qoqi.compiler.source import SourceFile, Span
from qoqi.compiler.types.facts import Checked
from qoqi.vm.bytecode.chunk import Chunk, Debug
from qoqi.vm.bytecode.codec import encode, encode_debug, version_hash
from qoqi.vm.bytecode.verify import verify
from qoqi.vm.dataclass import dataclass

BUILD_FOLDER = ".qoqi/build"


@dataclass(frozen=True, slots=True)
class BuiltFlow:
    """One flow, compiled. `change` is `new`, `changed` or `same`, against the lock before."""

    name: str
    hash: str
    previous: str | None
    chunk: Chunk
    data: bytes
    debug: Debug
    change: str


@dataclass(frozen=True, slots=True)
class Built:
    """Nothing is built where a diagnostic is an error. `lock` is what flow.lock becomes."""

    flows: tuple[BuiltFlow, ...]
    lock: Lock
    diagnostics: tuple[Diagnostic, ...]


def compile_flows(
    checked: Checked,
    sources: Mapping[str, SourceFile],
    lock: Lock,
    root: str = "",
    *,
    whole: bool = True,
) -> Built:
    """Every flow of a package that has no errors, against its lock. Touches no file.

    `whole` is false for one file of a folder: the lock's other flows are then left as they are.
    """
    found: list[Diagnostic] = []
    flows: list[BuiltFlow] = []
    locked: list[LockedFlow] = []
    for flow in sorted(checked.flows, key=lambda flow: flow.qualified):
        before = lock.flow(flow.qualified)
        built, version, problems = _compile(checked, sources, flow, before, root)
        found += problems
        flows.append(built)
        locked.append(before.followed_by(version))
    names = {flow.qualified for flow in checked.flows}
    gone = [_only_deployed(each) for each in lock.flows if each.name not in names and whole]
    if any(each.severity is Severity.ERROR for each in found):
        return Built((), lock, tuple(sort(found)))
    return Built(tuple(flows), lock.with_flows([*locked, *gone]), tuple(sort(found)))


def _compile(
    checked: Checked,
    sources: Mapping[str, SourceFile],
    flow: FlowSymbol,
    before: LockedFlow,
    root: str,
) -> tuple[BuiltFlow, LockedVersion, list[Diagnostic]]:
    base = before.base
    numbers = versions.channel_numbers(base, channel_names(checked, flow))
    emitted = emit_flow(checked, sources, flow, numbers, root)
    chunk = emitted.chunk
    verify(chunk)
    data = encode(chunk)
    hash_ = version_hash(data)
    version = versions.describe(chunk, hash_, emitted.undos)
    problems: list[Diagnostic] = []
    if base is not None and base.hash != hash_:
        problems = versions.compare(sources[flow.module].path, flow, chunk, base, version)
    after = before.followed_by(version).versions[-1]
    change = "new" if not before.versions else "changed"
    if before.versions and before.versions[-1].hash == hash_:
        change = "same"
    built = BuiltFlow(flow.qualified, hash_, after.previous, chunk, data, emitted.debug, change)
    return built, version, problems


def _only_deployed(flow: LockedFlow) -> LockedFlow:
    """What is kept of a flow whose source is gone: instances of it may still be alive."""
    return LockedFlow(flow.name, tuple(each for each in flow.versions if each.deployed))


# -- files ---------------------------------------------------------------------------------------


def read_lock(root: str) -> tuple[Lock | None, str, list[Diagnostic]]:
    """The lock of a package and its text; an absent file is an empty lock.

    Without a lock, the diagnostics say why.
    """
    path = Path(root) / LOCK
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Lock(), "", []
    except (OSError, UnicodeDecodeError) as problem:
        return None, "", [error("E0231", str(path), Span(0, 0), f"{LOCK}: {problem}")]
    lock = lockfile.read(text, str(path))
    if isinstance(lock, Diagnostic):
        return None, text, [lock]
    return lock, text, []


def out_of_date(root: str, before: Lock, after: Lock) -> Diagnostic | None:
    """What `--locked` reports where this build would make another flow.lock."""
    names = sorted({flow.name for flow in (*before.flows, *after.flows)})
    changed = [name for name in names if before.flow(name) != after.flow(name)]
    if not changed:
        return None
    return error(
        "E0233",
        str(Path(root) / LOCK),
        Span(0, 0),
        f"{LOCK} is not what the sources say",
        notes=[
            f"It would change for {', '.join(f'`{name}`' for name in changed)}.",
            "Run `qoqi build` and keep the new flow.lock in version control.",
        ],
    )


def write_build(root: str, built: Built) -> Diagnostic | None:
    """Writes bytecode, then the lock, each whole or not at all; E0234 where that fails."""
    folder = Path(root) / BUILD_FOLDER
    try:
        for flow in built.flows:
            replace_file(folder / f"{flow.hash}.chunk", flow.data)
            replace_file(folder / f"{flow.hash}.debug", encode_debug(flow.debug))
        if built.flows or built.lock.flows or (Path(root) / LOCK).exists():
            write_lock(root, built.lock)
    except OSError as problem:
        place = problem.filename or str(folder)
        message = f"{place} cannot be written: {problem.strerror or problem}"
        return error("E0234", str(Path(root) / LOCK), Span(0, 0), message)
    return None


def write_lock(root: str, lock: Lock) -> None:
    """Replaces flow.lock as a whole: who reads it meanwhile sees the old one or the new one."""
    replace_file(Path(root) / LOCK, lockfile.write(lock).encode())
