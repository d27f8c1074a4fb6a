"""The compiler as others call it: parse a text, check a package, build it.

The command line, the daemon, the language server and the tests of flows use this module and none
behind it. Nothing here raises for what a user wrote: problems are diagnostics. `root` is a folder
with `flow.toml`, a folder of sources, or one source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from qoqi import stdlib
from qoqi.compiler.diagnostics import Diagnostic, Severity, sort
from qoqi.compiler.emit.emitter import emit_flow, emit_tests
from qoqi.compiler.emit.tests import EmittedTests
from qoqi.compiler.names.symbols import FlowSymbol
from qoqi.compiler.project import build as building
from qoqi.compiler.project.build import BuiltFlow
from qoqi.compiler.project.load import SUFFIX, DiskReader, Package, Reader, load_package
from qoqi.compiler.project.lockfile import LOCK, Lock, mark_deployed, write
from qoqi.compiler.rules.registry import run_rules
from qoqi.compiler.source import LineIndex, SourceFile
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.compiler.types.checker import check as check_types
from qoqi.compiler.types.facts import Checked
from qoqi.vm.bytecode.chunk import Chunk, Debug
from qoqi.vm.bytecode.codec import encode, version_hash

__all__ = [
    "BuildResult",
    "BuiltFlow",
    "CheckResult",
    "FlowToTest",
    "TestBuild",
    "build",
    "build_tests",
    "check",
    "check_package",
    "indexes",
    "mark_deployed",
    "parse",
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
        return write(self.lock)


def _has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(each.severity is Severity.ERROR for each in diagnostics)


def check(root: str, reader: Reader | None = None) -> CheckResult:
    """Reads and checks a package."""
    return check_package(load_package(reader or DiskReader(), root))


def check_package(package: Package) -> CheckResult:
    """Checks a package that was read: syntax, names, types, then the rules of flows."""
    parsed = {source.module: parse(source) for source in package.sources}
    checked, problems = check_types(parsed, package.packages)
    found = [*package.diagnostics, *problems]
    found += [each for module in parsed.values() for each in module.diagnostics]
    found += run_rules(checked, parsed)
    sources = {source.module: source for source in stdlib.sources()}
    sources |= {name: module.file for name, module in parsed.items()}
    return CheckResult(package, parsed, sources, checked, tuple(sort(found)))


def build(root: str, *, locked: bool = False, reader: Reader | None = None) -> BuildResult:
    """Builds a package on disk: bytecode and flow.lock, written together.

    With `locked`, nothing is written and a lock that would change is an error (E0233). With a
    `reader` of other files than the disk's, nothing is written either.
    """
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
    if reader is None:
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
    """A flow as its tests run it; `steps` are its steps by qualified name."""

    name: str
    hash: str
    chunk: Chunk
    debug: Debug
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TestBuild:
    """What `qoqi test` runs: every flow of the package, and the tests by module."""

    __test__ = False

    flows: tuple[FlowToTest, ...]
    modules: tuple[EmittedTests, ...]


def build_tests(result: CheckResult) -> TestBuild:
    """Compiles a package that has no errors for its tests. Writes nothing."""
    folder, _ = _folder(result.package)
    flows: list[FlowToTest] = []
    for flow in sorted(result.checked.flows, key=lambda flow: flow.qualified):
        emitted = emit_flow(result.checked, result.sources, flow, root=folder)
        hash_ = version_hash(encode(emitted.chunk))
        flows.append(FlowToTest(flow.qualified, hash_, emitted.chunk, emitted.debug, emitted.steps))
    modules = []
    for source in result.package.sources:
        if source.module in result.checked.modules:
            tests = emit_tests(result.checked, result.sources, source.module, folder)
            if tests is not None:
                modules.append(tests)
    return TestBuild(tuple(flows), tuple(modules))


def _folder(package: Package) -> tuple[str, bool]:
    """The folder with flow.lock, and whether the package is all of it and not one of its files."""
    if package.root.endswith(SUFFIX):
        return str(Path(package.root).parent), False
    return package.root, True


def _failed(result: CheckResult, found: Iterable[Diagnostic]) -> BuildResult:
    return BuildResult(result, (), Lock(), tuple(sort([*result.diagnostics, *found])))


def indexes(result: CheckResult) -> dict[str, LineIndex]:
    """Lines and columns of every file a diagnostic of this package may name, by path."""
    found = {source.path: LineIndex(source.text) for source in result.sources.values()}
    extra = [str(Path(_folder(result.package)[0]) / LOCK), result.package.manifest]
    for path in extra:
        if path is not None and path not in found:
            file = Path(path)
            text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
            found[path] = LineIndex(text)
    return found
