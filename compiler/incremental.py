"""Checks a package again after an edit, in the time of what the edit can have changed.

    snapshot = recheck(package)                 all of it
    snapshot = recheck(package, snapshot)       what changed since, and what depends on it

The unit is the module. A module whose text is the same keeps its tree, facts and diagnostics. One
whose text changed is checked together with those it shares an import cycle with, and with all that
import it, directly or not, if they can notice:

    its interface changed       the text outside of bodies (`interface`), or
    it is impure                a function of it waits, acts, or is given functions: what is wrong
                                in it then depends on who calls it, and the other way round, or
    they point into it          a label or fix of their diagnostics stands in its text

Everything else of the package stays, with symbols of the changed modules as they were before: same
name, same meaning, older tree. `Checked` finds the newer one by name (`lsp.symbols`).

Diagnostics are the same as those of `api.check`, which is a test.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping
from dataclasses import field, replace

from qoqi import stdlib
from qoqi.compiler.causes import first_causes
from qoqi.compiler.diagnostics import Diagnostic, Severity, sort
from qoqi.compiler.garbage import paused
from qoqi.compiler.project.load import Package
from qoqi.compiler.rules.context import whole
from qoqi.compiler.rules.registry import run_rules_of
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import Parsed, parse
from qoqi.compiler.syntax.reparse import reparse
from qoqi.compiler.types.call_graph import CallGraph
from qoqi.compiler.types.checker import check_program, summary
from qoqi.compiler.types.colours import infer
from qoqi.compiler.types.context import Program
from qoqi.compiler.types.facts import Checked
from qoqi.vm.dataclass import dataclass


class Superseded(Exception):
    """The text changed again while it was checked; what was found is of no use."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What is known of one module: what is wrong in it, or because of it, and what others see."""

    types: tuple[Diagnostic, ...] = ()
    rules: tuple[Diagnostic, ...] = ()
    interface: str = ""
    impure: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A package as it was understood at one time; nothing of it changes afterwards.

    `again` are the modules that were checked for this one.
    """

    package: Package
    parsed: Mapping[str, Parsed]
    sources: Mapping[str, SourceFile]
    program: Program
    checked: Checked
    graph: CallGraph
    findings: Mapping[str, Findings]
    diagnostics: tuple[Diagnostic, ...]
    again: frozenset[str]

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    return any(each.severity is Severity.ERROR for each in diagnostics)


# How much of a whole check is parsing, and parsing and types, of one.
_PARSING, _TYPES = 0.4, 0.7


def never() -> bool:
    return False


def unseen(_: float) -> None:
    """Nobody looks at how much is done."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Who waits for a check. It is asked again and again, some hundred times in a second, whether
    the check is `stale`, and told how much of it is done.

    `known` are modules that were parsed already, by path: for those that have the same text.
    """

    stale: Callable[[], bool] = never
    progress: Callable[[float], None] = unseen
    known: MutableMapping[str, Parsed] = field(default_factory=dict[str, Parsed])

    def poll(self) -> None:
        if self.stale():
            raise Superseded

    def parsed(self, source: SourceFile) -> Parsed:
        found = self.known.get(source.path)
        if found is None or found.file != source:
            found = self.known[source.path] = parse(source)
        return found


def recheck(
    package: Package, before: Snapshot | None = None, watch: Watch | None = None
) -> Snapshot:
    """The package as it is now. Raises `Superseded` soon after the watch says it is stale."""
    with paused():
        return _recheck(package, before, watch or Watch())


def _recheck(package: Package, before: Snapshot | None, watch: Watch) -> Snapshot:
    if before is not None and before.package.packages != package.packages:
        before = None
    parsed: dict[str, Parsed] = {}
    changed: set[str] = set()
    for source in package.sources:
        old = before.parsed.get(source.module) if before is not None else None
        if old is not None and old.file == source:
            parsed[source.module] = old
            continue
        watch.poll()
        watch.progress(_PARSING * len(parsed) / len(package.sources))
        parsed[source.module] = watch.parsed(source) if old is None else reparse(old, source)
        changed.add(source.module)
    edges = Imports({name: imports(name, parsed, package.packages) for name in parsed})
    if before is None:
        return _check(package, parsed, set(parsed), None, edges, watch)
    if not changed:
        found = _all(package, parsed, before.findings)
        return replace(before, package=package, diagnostics=found, again=frozenset())
    again = edges.cycles(changed)
    importers = edges.importers(again)
    if importers - again and _noticed(again, parsed, before):
        again |= importers
    again |= edges.cycles(_pointing(again, parsed, before))
    snapshot = _check(package, parsed, again, before, edges, watch)
    if importers - again and any(snapshot.findings[name].impure for name in again):
        snapshot = _check(package, parsed, again | importers, before, edges, watch)
    return snapshot


def first_look(package: Package, module: str, watch: Watch) -> Snapshot:
    """One module, as far as its syntax, names and types tell, without rules and colours.

    The package of this snapshot is that module and those it uses, of which only what they declare
    is read. Its diagnostics are among those of a whole check, which finds more: what the rules say,
    and what others say of this module. No check can go on from it.
    """
    with paused():
        sources = {source.module: source for source in package.sources}
        parsed = {module: watch.parsed(sources[module])}
        waiting = [module]
        while waiting:
            for name in imports(waiting.pop(), parsed, package.packages, sources):
                if name not in parsed:
                    watch.poll()
                    parsed[name] = watch.parsed(sources[name])
                    waiting.append(name)
        path = sources[module].path
        program = check_program(parsed, package.packages, only={module}, poll=watch.poll)
        types = [each for each in program.diagnostics if each.file == path]
        found = first_causes([*parsed[module].diagnostics, *types], parsed)
        program.diagnostics = []
        return Snapshot(
            package=replace(package, sources=tuple(sources[name] for name in sorted(parsed))),
            parsed=parsed,
            sources=_texts(parsed),
            program=program,
            checked=summary(program, parsed),
            graph=CallGraph(),
            findings={},
            diagnostics=tuple(sort(found)),
            again=frozenset(parsed),
        )


def _texts(parsed: Mapping[str, Parsed]) -> dict[str, SourceFile]:
    """The sources of a package and of the standard library, by module."""
    sources = {source.module: source for source in stdlib.sources()}
    return sources | {name: each.file for name, each in parsed.items()}


def _check(
    package: Package,
    parsed: Mapping[str, Parsed],
    again: set[str],
    before: Snapshot | None,
    edges: Imports,
    watch: Watch,
) -> Snapshot:
    """One round: the modules in `again` are checked, for the others what is known stays."""
    chosen = {name: parsed[name] for name in sorted(again)}
    watch.poll()
    old = before.program if before is not None else None
    program = check_program(chosen, package.packages, old, poll=watch.poll)
    watch.poll()
    watch.progress(_TYPES)
    checked = summary(program, parsed)
    sources = _texts(parsed)
    graph = infer(checked, before.graph if before is not None else None, again)
    known = whole(checked, graph)
    findings = dict(before.findings) if before is not None else {}
    found_in: dict[str, list[Diagnostic]] = {}
    for diagnostic in program.diagnostics:
        found_in.setdefault(diagnostic.file, []).append(diagnostic)
    for count, (name, each) in enumerate(chosen.items()):
        watch.progress(_TYPES + (1 - _TYPES) * count / len(chosen))
        findings[name] = Findings(
            types=tuple(found_in.get(each.file.path, ())),
            rules=tuple(run_rules_of(name, checked, sources, graph, known, watch.poll)),
            interface=interface(each),
            impure=_impure(graph, each.module),
        )
    program.diagnostics = []
    found = _all(package, parsed, findings)
    return Snapshot(
        package, parsed, sources, program, checked, graph, findings, found, frozenset(again)
    )


def _all(
    package: Package, parsed: Mapping[str, Parsed], findings: Mapping[str, Findings]
) -> tuple[Diagnostic, ...]:
    found = list(package.diagnostics)
    for name, each in parsed.items():
        found += [*each.diagnostics, *findings[name].types, *findings[name].rules]
    return tuple(sort(first_causes(found, parsed)))


# -- who depends on whom -------------------------------------------------------------------------


def imports(
    name: str,
    parsed: Mapping[str, Parsed],
    packages: Mapping[str, str],
    among: Collection[str] | None = None,
) -> set[str]:
    """The modules of the package that one imports; `among` are all there are, if not `parsed`."""
    there = parsed if among is None else among
    found: set[str] = set()
    package = packages.get(name, "")
    for item in parsed[name].module.items:
        if isinstance(item, ast.ImportDecl):
            dotted = ".".join(part.name for part in item.path)
            for path in (f"{package}.{dotted}" if package else dotted, dotted):
                if path in there:
                    found.add(path)
                    break
    return found


class Imports:
    """Who imports whom, and so on: both ways, oneself included."""

    def __init__(self, edges: Mapping[str, set[str]]) -> None:
        self._uses = edges
        self._users: dict[str, set[str]] = {}
        for name, used in edges.items():
            for other in used:
                self._users.setdefault(other, set()).add(name)

    def uses(self, names: Iterable[str]) -> set[str]:
        return _reach(names, self._uses)

    def importers(self, names: Iterable[str]) -> set[str]:
        return _reach(names, self._users)

    def cycles(self, names: Iterable[str]) -> set[str]:
        """These modules, and those that both use one of them and are used by it."""
        found: set[str] = set()
        for name in names:
            found |= self.uses({name}) & self.importers({name})
        return found


def _reach(start: Iterable[str], edges: Mapping[str, set[str]]) -> set[str]:
    found = set(start)
    waiting = list(found)
    while waiting:
        for other in edges.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _noticed(again: set[str], parsed: Mapping[str, Parsed], before: Snapshot) -> bool:
    """Whether modules that use these can tell that they changed."""
    for name in again:
        known = before.findings.get(name)
        if known is None or known.impure or known.interface != interface(parsed[name]):
            return True
    return False


def _pointing(again: set[str], parsed: Mapping[str, Parsed], before: Snapshot) -> set[str]:
    """Modules with diagnostics whose labels or fixes stand in the text of these."""
    paths = {parsed[name].file.path for name in again}
    return {
        name
        for name, findings in before.findings.items()
        if name not in again
        and any(_points(each, paths) for each in (*findings.types, *findings.rules))
    }


def _points(diagnostic: Diagnostic, paths: set[str]) -> bool:
    if diagnostic.file in paths or any(label.file in paths for label in diagnostic.labels):
        return True
    return any(edit.file in paths for fix in diagnostic.fixes for edit in fix.edits)


# -- what others can see of a module -------------------------------------------------------------


def interface(parsed: Parsed) -> str:
    """The text of a module without its bodies and tests."""
    text = parsed.file.text
    parts: list[str] = []
    for item in parsed.module.items:
        parts += _outside(text, item)
    return "\n".join(parts)


def _outside(text: str, item: ast.Node) -> list[str]:
    match item:
        case ast.TestDecl() | ast.GivenStmt() | ast.RunDecl() | ast.MigrateDecl():
            return []
        case ast.FnDecl(body=ast.Block() as body) | ast.StepDecl(body=ast.Block() as body):
            return [text[item.span.start : body.span.start]]
        case ast.ViewDecl(body=body):
            return [text[item.span.start : body.span.start]]
        case ast.StepsGroup(steps=steps):
            return [part for step in steps for part in _outside(text, step)]
        case ast.FlowDecl(members=members):
            start = members[0].span.start if members else item.span.end
            head = text[item.span.start : start]
            return [head, *(part for member in members for part in _outside(text, member))]
        case _:
            return [text[item.span.start : item.span.end]]


def _impure(graph: CallGraph, module: ast.Module) -> bool:
    """Whether a function others may call does more than compute, or is given a function."""
    for item in module.items:
        if isinstance(item, ast.FnDecl):
            if graph.kinds.get(item):
                return True
            if any(isinstance(param.type, ast.FnType) for param in item.params):
                return True
    return False
