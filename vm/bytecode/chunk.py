"""The chunk: one flow, compiled. What is in it, and nothing about how it is written or run.

A chunk holds all that an instance of the flow needs: its run, the functions and steps it reaches
(those of the standard library too), its views, migrations and types. Its version is the SHA-256 of
its canonical bytes (`codec`). `Debug` travels beside it and is not hashed, so a comment or a new
line makes no new version.

Type terms are nested tuples of text and numbers:

    "Bool" "Int" "Decimal" "Float" "String" "Bytes" "Duration" "Time" "Date" "Never"
    ("List", T) ("Set", T) ("Map", K, V) ("Range", T) ("Tuple", T…)          unit is ("Tuple",)
    ("struct", index, args…) ("enum", index, args…)                          index into chunk.types
    ("param", n)                 the n-th type parameter of the struct or enum it stands in
    ("Instance", flow)           flow: the qualified name
    ("Channel", T) ("Task", T) ("Request", T, R) ("Fn", (params…), result)   not data

`Option`, `Result`, `Settled` and `Json` are enums of the prelude and are known by those names.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from qoqi.vm.dataclass import dataclass

Term: TypeAlias = "str | int | tuple[Term, ...]"

FORMAT = "qoqi.bytecode/1"

FOREVER = -1
NO_FUNCTION = -1


@dataclass(frozen=True, slots=True)
class FieldDef:
    """A field of a struct, or of a variant. `default` is a function of no parameters, or -1."""

    name: str
    json_name: str
    type: Term
    default: int = NO_FUNCTION


@dataclass(frozen=True, slots=True)
class VariantDef:
    name: str
    json_name: str
    fields: tuple[FieldDef, ...]


@dataclass(frozen=True, slots=True)
class TypeDef:
    """A struct (`variants` None) or an enum (`fields` None); `params` counts type parameters."""

    name: str
    params: int
    fields: tuple[FieldDef, ...] | None
    variants: tuple[VariantDef, ...] | None


@dataclass(frozen=True, slots=True)
class Place:
    """`xs[i].name`: a local (`flow` false) or a field, then steps.

    A step is ("field", n) of a struct, ("item", n) of a tuple, or ("slot", s): index with what the
    local s holds.
    """

    flow: bool
    root: int
    steps: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """Captured values come first in the slots, then the parameters, then the other locals."""

    name: str
    params: int
    slots: int
    code: tuple[tuple[int, int], ...]
    places: tuple[Place, ...] = ()
    mutations: tuple[tuple[str, int, int], ...] = ()
    switches: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class FlowSlot:
    """A parameter or a field: state that run, functions, tasks and views share."""

    name: str
    type: Term
    parameter: bool
    default: int = NO_FUNCTION


@dataclass(frozen=True, slots=True)
class ChannelDef:
    """`answers` is None for a channel whose messages are not answered."""

    name: str
    type: Term
    capacity: int
    inside: bool
    answers: Term | None = None


@dataclass(frozen=True, slots=True)
class StageDef:
    """`entry` is the pc in run's function right after the STAGE instruction.

    A variable is (name, slot of run, type). All other slots of run are empty there.
    """

    name: str
    entry: int
    variables: tuple[tuple[str, int, Term], ...]


@dataclass(frozen=True, slots=True)
class StepDef:
    """A step and its clauses; times in milliseconds.

    `body` is a function over the parameters, -1 for an extern step. `otherwise` and `queue` are
    functions over the parameters, `undo_args` one over (it, parameters…) that gives the arguments
    of step `undo` as a tuple. `tries` 0 means the daemon's default, -1 forever.
    """

    name: str
    params: tuple[FieldDef, ...]
    result: Term
    settled: bool
    body: int = NO_FUNCTION
    within: int = 60_000
    tries: int = 0
    tries_for: int = 0
    otherwise: int = NO_FUNCTION
    backoff: int = 0
    backoff_most: int = 0
    undo: int = -1
    undo_args: int = NO_FUNCTION
    queue: int = NO_FUNCTION
    beat: int = 0
    limits: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class MigrationDef:
    """Leaves `stage` of the previous version. `params` are names in the old JSON with old types.

    The function gives (name of the new stage, a map from variable or field name to new value).
    """

    stage: str
    params: tuple[FieldDef, ...]
    function: int


@dataclass(frozen=True, slots=True)
class ViewDef:
    name: str
    result: Term
    function: int


@dataclass(frozen=True, slots=True)
class PeerDef:
    """Another flow this one starts, waits for or sends to: its types, in this chunk's table.

    A channel is (name, message type, answer type or None).
    """

    flow: str
    result: Term
    channels: tuple[tuple[str, Term, Term | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """One flow. `fields_init` is a function over nothing that gives the initial fields as a tuple.

    A field without an initial value has an empty place there (see `UNSET` in vm.values).

    A constant is an int, str, float, bytes or decimal.Decimal, or one of the pairs
    ("Duration", ms), ("Time", ms since the epoch), ("Date", days since the epoch), ("Unset", 0).
    """

    flow: str
    types: tuple[TypeDef, ...]
    variants: tuple[tuple[int, int], ...]
    terms: tuple[Term, ...]
    constants: tuple[object, ...]
    functions: tuple[Function, ...]
    closures: tuple[tuple[int, int], ...]
    natives: tuple[tuple[str, int], ...]
    operations: tuple[tuple[str, int], ...]
    flow_slots: tuple[FlowSlot, ...]
    result: Term
    channels: tuple[ChannelDef, ...]
    stages: tuple[StageDef, ...]
    steps: tuple[StepDef, ...]
    migrations: tuple[MigrationDef, ...]
    views: tuple[ViewDef, ...]
    run: int
    fields_init: int
    listens: bool
    keep: int = 0
    peers: tuple[PeerDef, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionDebug:
    """`lines` are (pc, line) in rising pc; `slots` names the locals, for traces and `--dump`."""

    file: str
    lines: tuple[tuple[int, int], ...]
    slots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Debug:
    """One entry per function of the chunk."""

    functions: tuple[FunctionDebug, ...] = field(default=())
