"""A flow as a chunk: its run, state, channels, views and migrations, and all they reach."""

from __future__ import annotations

from qoqi.compiler.emit import constants, functions, migrations, steps
from qoqi.compiler.emit.function import FunctionEmitter
from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.names.symbols import (
    ChannelSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    Symbol,
    ViewSymbol,
)
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.model import UNIT
from qoqi.vm.bytecode.chunk import (
    NO_FUNCTION,
    ChannelDef,
    Chunk,
    Debug,
    FlowSlot,
    Function,
    FunctionDebug,
    MigrationDef,
    PeerDef,
    ViewDef,
)
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.dataclass import dataclass

DEFAULT_CAPACITY = 16


@dataclass(frozen=True, slots=True)
class Members:
    """The symbols of one flow, in the order of its text."""

    slots: tuple[FlowSlotSymbol, ...]
    channels: tuple[ChannelSymbol, ...]
    views: tuple[ViewSymbol, ...]


def members(tables: Tables) -> Members:
    declared = [symbol for symbol in tables.checked.declared if _flow_of(symbol) is tables.flow]
    return Members(
        tuple(
            sorted(
                (each for each in declared if isinstance(each, FlowSlotSymbol)),
                key=lambda slot: slot.index,
            )
        ),
        tuple(
            sorted(
                (each for each in declared if isinstance(each, ChannelSymbol)),
                key=lambda channel: channel.index,
            )
        ),
        tuple(
            sorted(
                (each for each in declared if isinstance(each, ViewSymbol)),
                key=lambda view: view.index,
            )
        ),
    )


def _flow_of(symbol: Symbol) -> FlowSymbol | None:
    match symbol:
        case FlowSlotSymbol(flow=flow) | ChannelSymbol(flow=flow) | ViewSymbol(flow=flow):
            return flow
        case _:
            return None


def emit(tables: Tables) -> tuple[Chunk, Debug]:
    """Emits everything the flow reaches. What is wrong with clauses is in `tables.diagnostics`."""
    flow, checked = tables.flow, tables.checked
    assert flow is not None
    outer = FunctionEmitter(tables, flow.module, flow.name)
    of_flow = members(tables)
    run = tables.function(flow, lambda tables: _run(tables, flow))
    fields_init = tables.function((flow, "fields"), lambda tables: _fields(outer, of_flow))
    slots = tuple(
        FlowSlot(
            slot.name,
            outer.term(checked.declared[slot]),
            slot.parameter,
            _initial(tables, slot),
        )
        for slot in of_flow.slots
    )
    result = outer.term(checked.signatures[flow].result)
    channels = sorted(
        ((tables.channels[channel.name], _channel(outer, channel)) for channel in of_flow.channels),
        key=lambda pair: pair[0],
    )
    views = tuple(
        ViewDef(view.name, outer.term(checked.declared[view]), functions.of_view(outer, view))
        for view in of_flow.views
    )
    moved = tuple(_migrations(outer, flow))
    keep = 0
    if flow.decl.keep is not None:
        keep = constants.clause(tables, flow.module, flow.decl.keep)
    tables.run_jobs(lambda tables, symbol: steps.describe(outer, symbol))
    chunk = Chunk(
        flow=flow.qualified,
        types=tuple(tables.types),
        variants=tables.variants,
        terms=tables.terms,
        constants=tables.constants,
        functions=tuple(tables.functions),
        closures=tables.closures,
        natives=tables.natives,
        operations=tables.operations,
        flow_slots=slots,
        result=result,
        channels=tuple(channel for _, channel in channels),
        stages=tuple(tables.stages),
        steps=tuple(steps.named_apart(tables)),
        migrations=moved,
        views=views,
        run=run,
        fields_init=fields_init,
        listens=flow.qualified in checked.listens,
        keep=keep,
        peers=_peers(tables),
    )
    return chunk, Debug(tuple(tables.debug))


def _peers(tables: Tables) -> tuple[PeerDef, ...]:
    return tuple(
        PeerDef(
            name,
            peer.result,
            tuple((channel, *types) for channel, types in peer.channels.items()),
        )
        for name, peer in tables.peers.items()
    )


def _run(tables: Tables, flow: FlowSymbol) -> tuple[Function, FunctionDebug]:
    run = next(member for member in flow.decl.members if isinstance(member, ast.RunDecl))
    inner = FunctionEmitter(tables, flow.module, "run")
    inner.at(run)
    inner.body(run.body, unit=tables.checked.signatures[flow].result == UNIT)
    return inner.finished(0)


def _fields(outer: FunctionEmitter, of_flow: Members) -> tuple[Function, FunctionDebug]:
    """Each field's initial value, kept at once since those below may use it; then all of them."""
    tables = outer.tables
    inner = outer.new(outer.module, "fields")
    fields = [slot for slot in of_flow.slots if not slot.parameter]
    if fields:
        inner.at(fields[0].flow.decl)
    for slot in fields:
        initial = _initial(tables, slot)
        if initial != NO_FUNCTION:
            inner.code.emit(Op.CALL, initial, pops=0)
            inner.code.emit(Op.STORE_FLOW, slot.index)
    for slot in fields:
        if _initial(tables, slot) != NO_FUNCTION:
            inner.code.emit(Op.LOAD_FLOW, slot.index)
        else:
            inner.code.emit(Op.CONST, tables.constant(("Unset", 0)))
    inner.code.emit(Op.TUPLE, len(fields), pops=len(fields))
    inner.return_top()
    return inner.finished(0)


def _initial(tables: Tables, slot: FlowSlotSymbol) -> int:
    """The function of a parameter's default or a field's initial value.

    A field's may use the parameters and the fields above, so it runs with the state at hand.
    """
    value = slot.decl.default if isinstance(slot.decl, ast.ParamDecl) else slot.decl.value
    return tables.default(value, slot.flow.module)


def _channel(outer: FunctionEmitter, channel: ChannelSymbol) -> ChannelDef:
    tables, decl = outer.tables, channel.decl
    capacity = DEFAULT_CAPACITY
    if decl.capacity is not None:
        capacity = constants.clause(tables, channel.flow.module, decl.capacity)
    answers = tables.checked.answers.get(channel)
    return ChannelDef(
        channel.name,
        outer.term(tables.checked.declared[channel]),
        capacity,
        decl.inside,
        None if answers is None else outer.term(answers),
    )


def _migrations(outer: FunctionEmitter, flow: FlowSymbol) -> list[MigrationDef]:
    return [
        migrations.describe(outer, member)
        for member in flow.decl.members
        if isinstance(member, ast.MigrateDecl)
    ]
