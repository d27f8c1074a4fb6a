"""The compiler as others call it: parse a text, check a package, build it.

The command line, the daemon, the language server and the tests of flows use this module and none
behind it. Nothing here raises for what a user wrote: problems are diagnostics. `root` is a folder
with `flow.toml`, a folder of sources, or one source.

A check is what an editor and a person wait for, so what only a build needs is imported by a build.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from qoqi import stdlib
from qoqi.compiler.causes import first_causes
from qoqi.compiler.diagnostics import Diagnostic, Severity, sort
from qoqi.compiler.garbage import paused
from qoqi.compiler.names.symbols import FlowSymbol
from qoqi.compiler.project import cache
from qoqi.compiler.project.load import (
    LOCK,
    SUFFIX,
    DiskReader,
    Package,
    Reader,
    load_package,
    shown_text,
)
from qoqi.compiler.rules.registry import run_rules
from qoqi.compiler.source import LineIndex, SourceFile
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.compiler.types.checker import check as check_types
from qoqi.compiler.types.facts import Checked
from qoqi.vm.dataclass import dataclass

if TYPE_CHECKING:
    from qoqi.compiler.emit.tests import EmittedTests
    from qoqi.compiler.project.build import BuiltFlow
    from qoqi.compiler.project.lockfile import Lock, LockedVersion
    from qoqi.vm.bytecode.chunk import Chunk, Debug

__all__ = [
    "BuildResult",
    "BuiltFlow",
    "CheckResult",
    "FlowToTest",
    "Summary",
    "TestBuild",
    "build",
    "build_tests",
    "check",
    "check_package",
    "indexes",
    "mark_deployed",
    "parse",
    "summary",
]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """A package as far as it can be understood.

    `parsed` and `sources` are by module, the standard library's among the sources.
    """

    package: Package
    parsed: Mapping[str, Parsed]
    sources: Mapping[str, SourceFile]
    checked: Checked
    diagnostics: tuple[Diagnostic, ...]

    @property
    def flows(self) -> tuple[FlowSymbol, ...]:
        return self.checked.flows

    @property
    def ok(self) -> bool:
        return not _has_errors(self.diagnostics)


@dataclass(frozen=True, slots=True)
class BuildResult:
    """What a build made. Where a diagnostic is an error, no flow is built and nothing written.

    `lock` is what flow.lock says after the build.
    """

    check: CheckResult
    flows: tuple[BuiltFlow, ...]
    lock: Lock
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        return not _has_errors(self.diagnostics)

    @property
    def lock_text(self) -> str:
        from qoqi.compiler.project.lockfile import write

        return write(self.lock)


def _has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(each.severity is Severity.ERROR for each in diagnostics)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a check found, for who wants to show it and no more; `flows` is their number."""

    package: Package
    sources: Mapping[str, SourceFile]
    flows: int
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        return not _has_errors(self.diagnostics)


def summary(root: str) -> Summary:
    """As `check` of what is on disk; a large package that has not changed is not checked again."""
    package = load_package(DiskReader(), root)
    key = cache.key(package)
    known = cache.read(package, key) if key is not None else None
    if known is None:
        result = check_package(package)
        known = (result.diagnostics, len(result.flows))
        if key is not None:
            cache.write(package, key, *known)
    diagnostics, flows = known
    sources = {source.module: source for source in (*stdlib.sources(), *package.sources)}
    return Summary(package, sources, flows, diagnostics)


def check(root: str, reader: Reader | None = None) -> CheckResult:
    """Reads and checks a package."""
    return check_package(load_package(reader or DiskReader(), root))


def check_package(package: Package) -> CheckResult:
    """Checks a package that was read: syntax, names, types, then the rules of flows."""
    with paused():
        parsed = {source.module: parse(source) for source in package.sources}
        checked, problems = check_types(parsed, package.packages)
        found = [*package.diagnostics, *problems]
        found += [each for module in parsed.values() for each in module.diagnostics]
        found += run_rules(checked, parsed)
    sources = {source.module: source for source in stdlib.sources()}
    sources |= {name: module.file for name, module in parsed.items()}
    causes = tuple(sort(first_causes(found, parsed)))
    return CheckResult(package, parsed, sources, checked, causes)


def build(
    root: str, *, locked: bool = False, reader: Reader | None = None, keep: bool = True
) -> BuildResult:
    """Builds a package on disk: bytecode and flow.lock, written together.

    With `locked`, nothing is written and a lock that would change is an error (E0233). Without
    `keep`, or with a `reader` of other files than the disk's, nothing is written either.
    """
    from qoqi.compiler.project import build as building
    from qoqi.compiler.project.lockfile import Lock

    result = check(root, reader)
    folder, whole = _folder(result.package)
    if not result.ok:
        return BuildResult(result, (), Lock(), result.diagnostics)
    before = Lock()
    if reader is None:
        read, _, problems = building.read_lock(folder)
        if read is None:
            return _failed(result, problems)
        before = read
    made = building.compile_flows(result.checked, result.sources, before, folder, whole=whole)
    if _has_errors(made.diagnostics):
        return _failed(result, made.diagnostics)
    problem = None
    if reader is None and (keep or locked):
        problem = (
            building.out_of_date(folder, before, made.lock)
            if locked
            else building.write_build(folder, made)
        )
    if problem is not None:
        return _failed(result, [*made.diagnostics, problem])
    found = tuple(sort([*result.diagnostics, *made.diagnostics]))
    return BuildResult(result, made.flows, made.lock, found)


@dataclass(frozen=True, slots=True)
class FlowToTest:
    """A flow as its tests run it; `steps` are its steps by qualified name.

    `before` is the deployed version that this one follows: what a test of a migration starts at.
    """

    name: str
    hash: str
    chunk: Chunk
    debug: Debug
    steps: tuple[str, ...]
    before: LockedVersion | None


@dataclass(frozen=True, slots=True)
class TestBuild:
    """What `qoqi test` runs: every flow of the package, and the tests by module."""

    __test__ = False

    flows: tuple[FlowToTest, ...]
    modules: tuple[EmittedTests, ...]


def build_tests(result: CheckResult) -> TestBuild:
    """Compiles a package that has no errors for its tests. Writes nothing."""
    from qoqi.compiler.emit.emitter import emit_flow, emit_tests
    from qoqi.compiler.project import build as building
    from qoqi.compiler.project.lockfile import Lock
    from qoqi.vm.bytecode.codec import encode, version_hash

    folder, _ = _folder(result.package)
    lock, _, _ = building.read_lock(folder)
    flows: list[FlowToTest] = []
    for flow in sorted(result.checked.flows, key=lambda flow: flow.qualified):
        emitted = emit_flow(result.checked, result.sources, flow, root=folder)
        hash_ = version_hash(encode(emitted.chunk))
        before = (lock or Lock()).flow(flow.qualified).before(hash_)
        flows.append(
            FlowToTest(flow.qualified, hash_, emitted.chunk, emitted.debug, emitted.steps, before)
        )
    modules = []
    for source in result.package.sources:
        if source.module in result.checked.modules:
            tests = emit_tests(result.checked, result.sources, source.module, folder)
            if tests is not None:
                modules.append(tests)
    return TestBuild(tuple(flows), tuple(modules))


def mark_deployed(lock: Lock, flow: str, version: str) -> Lock:
    """The lock after a deploy; KeyError where the flow has no such version."""
    from qoqi.compiler.project import lockfile

    return lockfile.mark_deployed(lock, flow, version)


def _folder(package: Package) -> tuple[str, bool]:
    """The folder with flow.lock, and whether the package is all of it and not one of its files."""
    if package.root.endswith(SUFFIX):
        return str(Path(package.root).parent), False
    return package.root, True


def _failed(result: CheckResult, found: Iterable[Diagnostic]) -> BuildResult:
    from qoqi.compiler.project.lockfile import Lock

    return BuildResult(result, (), Lock(), tuple(sort([*result.diagnostics, *found])))


def indexes(result: CheckResult | Summary) -> dict[str, LineIndex]:
    """Lines and columns of every file a diagnostic of this package may name, by path."""
    found = {source.path: LineIndex(source.text) for source in result.sources.values()}
    named = {str(Path(_folder(result.package)[0]) / LOCK), result.package.manifest}
    named |= {each.file for each in result.diagnostics}
    for path in sorted(path for path in named if path is not None):
        if path not in found:
            found[path] = LineIndex(shown_text(path))
    return found
