"""The tables of a chunk while it grows: everything is numbered when it is first reached.

A function is asked for by a key (the symbol, the lambda's node, …) and a job that emits it. It gets
its number at once and is emitted later, in the order of the numbers; what it reaches comes after
it. So the numbering follows the text of the flow alone, and two builds give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TypeAlias

from qoqi.compiler.names.symbols import FlowSymbol, StepSymbol, VariantSymbol
from qoqi.compiler.source import LineIndex, SourceFile, Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Checked
from qoqi.vm.bytecode.chunk import (
    NO_FUNCTION,
    Function,
    FunctionDebug,
    StageDef,
    StepDef,
    Term,
    TypeDef,
)
from qoqi.vm.dataclass import dataclass

Job: TypeAlias = Callable[["Tables"], "tuple[Function, FunctionDebug]"]
TypeJob: TypeAlias = Callable[["Tables"], TypeDef]


@dataclass(slots=True, eq=False)
class Peer:
    """What this flow needs to know of another: its result if it waits for it, channels it asks."""

    result: Term = ("Tuple",)
    channels: dict[str, tuple[Term, Term | None]] = field(
        default_factory=dict[str, "tuple[Term, Term | None]"]
    )


@dataclass(slots=True, eq=False)
class Tables:
    """`channels` gives the number of each of the flow's channels, by name."""

    checked: Checked
    sources: Mapping[str, SourceFile]
    flow: FlowSymbol | None
    channels: Mapping[str, int]
    variant_symbols: Mapping[tuple[str, int], VariantSymbol]
    default_job: Callable[[ast.Expr, str], Job]
    root: str = ""
    testing: bool = False
    peers: dict[str, Peer] = field(default_factory=dict[str, Peer])
    functions: list[Function] = field(default_factory=list[Function])
    debug: list[FunctionDebug] = field(default_factory=list[FunctionDebug])
    stages: list[StageDef] = field(default_factory=list[StageDef])
    step_order: dict[StepSymbol, int] = field(default_factory=dict[StepSymbol, int])
    steps: list[StepDef] = field(default_factory=list[StepDef])
    undo_steps: dict[StepSymbol, None] = field(default_factory=dict[StepSymbol, None])
    types: list[TypeDef] = field(default_factory=list[TypeDef])
    _constants: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    _constant_values: list[object] = field(default_factory=list[object])
    _terms: dict[Term, int] = field(default_factory=dict[Term, int])
    _variants: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _closures: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _natives: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    _operations: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    _function_numbers: dict[object, int] = field(default_factory=dict[object, int])
    _jobs: list[Job] = field(default_factory=list[Job])
    _type_numbers: dict[str, int] = field(default_factory=dict[str, int])
    _type_jobs: list[TypeJob] = field(default_factory=list[TypeJob])
    _lines: dict[str, LineIndex] = field(default_factory=dict[str, LineIndex])

    def constant(self, value: object) -> int:
        """Equal constants of one kind share a number; `1.0` and `1.00` are not equal here."""
        key = (type(value).__name__, repr(value))
        if key not in self._constants:
            self._constants[key] = len(self._constant_values)
            self._constant_values.append(value)
        return self._constants[key]

    def term(self, term: Term) -> int:
        return self._terms.setdefault(term, len(self._terms))

    def variant(self, type_index: int, variant: int) -> int:
        return self._variants.setdefault((type_index, variant), len(self._variants))

    def closure(self, function: int, captured: int) -> int:
        return self._closures.setdefault((function, captured), len(self._closures))

    def native(self, name: str, arguments: int) -> int:
        return self._natives.setdefault((name, arguments), len(self._natives))

    def operation(self, name: str, arguments: int) -> int:
        return self._operations.setdefault((name, arguments), len(self._operations))

    def function(self, key: object, job: Job) -> int:
        """The number of a function; `job` emits it when its turn comes."""
        if key not in self._function_numbers:
            self._function_numbers[key] = len(self._jobs)
            self._jobs.append(job)
        return self._function_numbers[key]

    def default(self, value: ast.Expr | None, module: str) -> int:
        """The number of the function that gives a default, -1 where there is none."""
        if value is None:
            return NO_FUNCTION
        return self.function(("default", value), self.default_job(value, module))

    def type(self, name: str, job: TypeJob) -> int:
        """The number of a declared type; `job` describes it when its turn comes."""
        if name not in self._type_numbers:
            self._type_numbers[name] = len(self._type_jobs)
            self._type_jobs.append(job)
        return self._type_numbers[name]

    def step(self, symbol: StepSymbol) -> int:
        return self.step_order.setdefault(symbol, len(self.step_order))

    def undo_step(self, symbol: StepSymbol) -> int:
        """The number of a step that an undo will call."""
        self.undo_steps[symbol] = None
        return self.step(symbol)

    def run_jobs(self, describe_step: Callable[[Tables, StepSymbol], StepDef]) -> None:
        """Emits what was reached until nothing new is."""
        while True:
            if len(self.functions) < len(self._jobs):
                function, debug = self._jobs[len(self.functions)](self)
                self.functions.append(function)
                self.debug.append(debug)
            elif len(self.steps) < len(self.step_order):
                self.steps.append(describe_step(self, list(self.step_order)[len(self.steps)]))
            elif len(self.types) < len(self._type_jobs):
                self.types.append(self._type_jobs[len(self.types)](self))
            else:
                return

    def line(self, module: str, offset: int) -> int:
        if module not in self._lines:
            self._lines[module] = LineIndex(self.sources[module].text)
        return self._lines[module].position(offset)[0]

    def text(self, module: str, span: Span) -> str:
        """What is written there."""
        return self.sources[module].text[span.start : span.end]

    def peer(self, flow: str) -> Peer:
        return self.peers.setdefault(flow, Peer())

    def path(self, module: str) -> str:
        """A module's path, from the package's folder where it is in it."""
        path = self.sources[module].path
        return path.removeprefix(f"{self.root.rstrip('/')}/") if self.root else path

    @property
    def constants(self) -> tuple[object, ...]:
        return tuple(self._constant_values)

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(self._terms)

    @property
    def variants(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._variants)

    @property
    def closures(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._closures)

    @property
    def natives(self) -> tuple[tuple[str, int], ...]:
        return tuple(self._natives)

    @property
    def operations(self) -> tuple[tuple[str, int], ...]:
        return tuple(self._operations)
