"""From a checked package to the chunk of one of its flows.

The emitter is given a package without errors, and finds none itself.

One flow, one chunk: run, and every function, step, type and constant it reaches, those of the
standard library too, numbered in the order in which they are reached. Nothing depends on the order
of a set or on the machine, so the same sources give the same bytes everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from qoqi.compiler.emit import flows, tests
from qoqi.compiler.emit.function import FunctionEmitter
from qoqi.compiler.emit.tables import Job, Tables
from qoqi.compiler.emit.tests import EmittedTests
from qoqi.compiler.names.symbols import ChannelSymbol, FlowSymbol, VariantSymbol
from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import Checked
from qoqi.vm.bytecode.chunk import Chunk, Debug, Function, FunctionDebug
from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Emitted:
    """`undos` are the steps that an undo may call, by name; `steps` all, by qualified name."""

    chunk: Chunk
    debug: Debug
    undos: tuple[str, ...]
    steps: tuple[str, ...]


def emit_flow(
    checked: Checked,
    sources: Mapping[str, SourceFile],
    flow: FlowSymbol,
    channels: Mapping[str, int] | None = None,
    root: str = "",
) -> Emitted:
    """`sources` by module; `channels` numbers the flow's channels, in their order if left out.

    Paths of the debug tables are written from `root`, the package's folder.
    """
    numbers = _in_order(checked, flow) if channels is None else channels
    tables = _tables(checked, sources, flow, numbers, root)
    chunk, debug = flows.emit(tables)
    undos = sorted(chunk.steps[tables.step_order[symbol]].name for symbol in tables.undo_steps)
    steps = tuple(symbol.qualified for symbol in tables.step_order)
    return Emitted(chunk, debug, tuple(undos), steps)


def emit_tests(
    checked: Checked, sources: Mapping[str, SourceFile], module: str, root: str = ""
) -> EmittedTests | None:
    """The tests of a module, None where it has none. The package is one without errors."""
    if not tests.has_tests(checked.modules[module]):
        return None
    tables = _tables(checked, sources, None, {}, root)
    tables.testing = True
    return tests.emit(FunctionEmitter(tables, module, "tests"), checked.modules[module])


def _tables(
    checked: Checked,
    sources: Mapping[str, SourceFile],
    flow: FlowSymbol | None,
    channels: Mapping[str, int],
    root: str,
) -> Tables:
    return Tables(
        checked=checked,
        sources=sources,
        flow=flow,
        channels=channels,
        variant_symbols={
            (symbol.enum.qualified, symbol.index): symbol
            for symbol in checked.signatures
            if isinstance(symbol, VariantSymbol)
        },
        default_job=_default_job,
        root=root,
    )


def channel_names(checked: Checked, flow: FlowSymbol) -> list[str]:
    """The names of a flow's channels, in the order of its text."""
    channels = [
        symbol
        for symbol in checked.declared
        if isinstance(symbol, ChannelSymbol) and symbol.flow is flow
    ]
    return [symbol.name for symbol in sorted(channels, key=lambda symbol: symbol.index)]


def _in_order(checked: Checked, flow: FlowSymbol) -> dict[str, int]:
    return {name: number for number, name in enumerate(channel_names(checked, flow))}


def _default_job(value: ast.Expr, module: str) -> Job:
    """A default is a function of no parameters, in the scope of its declaration."""

    def job(tables: Tables) -> tuple[Function, FunctionDebug]:
        inner = FunctionEmitter(tables, module, "default")
        inner.result(value)
        return inner.finished(0)

    return job
