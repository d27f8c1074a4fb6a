"""What the checker found out: side tables keyed by AST nodes, one `Facts` per module.

The emitter, the rules and the language server read these; nothing else passes between them. All
types here are final: no `Var`, literals already have the type they are used at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from qoqi.compiler.names.symbols import (
    ChannelSymbol,
    EnumSymbol,
    FlowSymbol,
    FnSymbol,
    LocalSymbol,
    StepSymbol,
    StructSymbol,
    Symbol,
    VariantSymbol,
    ViewSymbol,
)
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.model import Type
from qoqi.vm.dataclass import dataclass


class Colour(Enum):
    """What a function may do: PURE computes, WORLD has effects, FLOW waits and calls steps."""

    PURE = "pure"
    WORLD = "world"
    FLOW = "flow"


@dataclass(frozen=True, slots=True)
class Given:
    """An argument that was written (the receiver of a method call among them)."""

    value: ast.Expr


@dataclass(frozen=True, slots=True)
class Default:
    """An argument left out: its parameter's default is evaluated (in the declaration's scope)."""

    value: ast.Expr
    module: str


ArgSource: TypeAlias = Given | Default


@dataclass(frozen=True, slots=True)
class FnTarget:
    """A function of a module or flow, or a native one. `type_args` by the declaration's order."""

    symbol: FnSymbol
    type_args: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class StepTarget:
    symbol: StepSymbol


@dataclass(frozen=True, slots=True)
class VariantTarget:
    symbol: VariantSymbol


@dataclass(frozen=True, slots=True)
class ViewTarget:
    symbol: ViewSymbol


@dataclass(frozen=True, slots=True)
class ValueTarget:
    """A call of a function value: `callee` is evaluated first."""

    callee: ast.Expr


@dataclass(frozen=True, slots=True)
class BuiltinTarget:
    """A call that no flow signature can say. `name` is one of

    channel.receive channel.send channel.poll channel.close      (`channel`: which)
    instance.start (`flow`: args are name, then the flow's parameters)
    instance.find (`flow`; args: name)    instance.wait instance.cancel (receiver first)
    instance.send instance.ask (`channel`; args: instance, value, key or missing)
    task.start (args: function, then its arguments)   task.join task.cancel (task)
    task.map (list, function, limit or missing)
    task.all task.settle task.first (list)
    flow.now id birth version self uuid random sleep sleepUntil until cancelled stop giveUp refuse
    accept commit unwind, as `flow.NAME`
    flow.undo flow.finally (args: the call, not evaluated)
    flow.detach (args: the start call)
    flow.key attempt working retry (in a step)
    request.answer (request, value)
    data.toJson (value)   data.decode data.tryDecode (json; `type`: what is decoded)
    print assert fail
    test.… in tests, listed in `types.builtins`

    `type` is the type argument a builtin needs at run time: of decode, and of flow.stop.
    """

    name: str
    flow: FlowSymbol | None = None
    channel: ChannelSymbol | None = None
    type: Type | None = None


Target: TypeAlias = FnTarget | StepTarget | VariantTarget | ViewTarget | ValueTarget | BuiltinTarget


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A resolved call: whom, and with what, in the order of the parameters.

    For a method call the receiver is the first argument. Arguments are evaluated in the order they
    are written, defaults last. `missing` in a BuiltinTarget's optional place is None.
    """

    target: Target
    args: tuple[ArgSource | None, ...]


@dataclass(frozen=True, slots=True)
class StructPlan:
    """A struct literal: one source per declared field, `None` where it comes from the base."""

    symbol: StructSymbol
    fields: tuple[ArgSource | None, ...]


@dataclass(frozen=True, slots=True)
class VariantMatch:
    """A variant pattern (also a bare name that is a unit variant): sub-patterns by field.

    None stands for a field that any value fits.
    """

    symbol: VariantSymbol
    fields: tuple[ast.Pattern | None, ...]


@dataclass(frozen=True, slots=True)
class StructMatch:
    """A struct pattern: (field index, sub-pattern); a bare field name binds `binds[field]`."""

    symbol: StructSymbol
    fields: tuple[tuple[int, ast.Pattern | LocalSymbol], ...]


@dataclass(slots=True)
class Facts:
    """Everything the checker knows of one module.

    uses      what a name stands for: keyed by Name, FieldExpr (a module member, a flow's channel, a
              type's function, a variant), Ident (of a type path, stage variable, struct field)
    types     the type of every expression and pattern
    calls     every call; a `FieldExpr`/`Name` used as a value (`xs.map(Paid)`) is in `values`
    values    function, step or variant used as a value: what a closure of it calls
    structs   struct literals
    matches   variant and struct patterns
    fields    FieldExpr that reads a struct's field: its index (0 for the value of a Request)
    bindings  the local each BindPattern, parameter, FieldPattern, RestPattern name declares,
              keyed by the pattern, ParamDecl, LambdaParam, FieldPattern, or the Ident of `..rest`
    captures  per lambda, the locals it takes from outside, in order
    coerce    expressions that change type where they stand: Int literal parts to Decimal/Float are
              already in `types`; this has "set" (a list literal taken as Set), "json" (a literal
              that is Json, or data taken as Json), "instance" (a test's handle taken as Instance)
    colours   per FnDecl, StepDecl body, LambdaExpr, RunDecl, ViewDecl
    undo_it   per UndoClause, the local `it`
    """

    module: str
    uses: dict[ast.Node, Symbol] = field(default_factory=dict)
    types: dict[ast.Node, Type] = field(default_factory=dict)
    calls: dict[ast.Call, CallPlan] = field(default_factory=dict)
    values: dict[ast.Node, Target] = field(default_factory=dict)
    structs: dict[ast.StructExpr, StructPlan] = field(default_factory=dict)
    matches: dict[ast.Node, VariantMatch | StructMatch] = field(default_factory=dict)
    fields: dict[ast.FieldExpr, int] = field(default_factory=dict)
    bindings: dict[ast.Node, LocalSymbol] = field(default_factory=dict)
    captures: dict[ast.LambdaExpr, tuple[LocalSymbol, ...]] = field(default_factory=dict)
    coerce: dict[ast.Node, str] = field(default_factory=dict)
    colours: dict[ast.Node, Colour] = field(default_factory=dict)
    undo_it: dict[ast.UndoClause, LocalSymbol] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FnSignature:
    """Of a function, step, variant or flow: parameter names and types, result.

    `params` has (name, type, has a default); `type_params` are the `Param`s they may mention.
    """

    type_params: tuple[Type, ...]
    params: tuple[tuple[str, Type, bool], ...]
    result: Type


@dataclass(frozen=True, slots=True)
class Checked:
    """A package after checking: modules by name, with facts, and the types of declarations.

    `signatures` is keyed by FnSymbol, StepSymbol, VariantSymbol, FlowSymbol (its parameters and
    result); `declared` gives the type of a ConstSymbol, FlowSlotSymbol, ChannelSymbol (its
    message), ViewSymbol; `answers` the answer type of a channel that has one; `struct_fields` per
    StructSymbol (name, type with the struct's own `Param`s). `reexports`, `flows` list what was
    declared. `listens` are the flows that have a cancelled case. The modules that are `too_deep`
    have a body nested so deeply that nothing after the checker reads them.
    """

    modules: Mapping[str, ast.Module]
    facts: Mapping[str, Facts]
    signatures: Mapping[Symbol, FnSignature]
    declared: Mapping[Symbol, Type]
    answers: Mapping[ChannelSymbol, Type]
    struct_fields: Mapping[StructSymbol, tuple[tuple[str, Type], ...]]
    structs: Mapping[str, StructSymbol]
    enums: Mapping[str, EnumSymbol]
    flows: tuple[FlowSymbol, ...]
    listens: frozenset[str]
    too_deep: frozenset[str] = frozenset()
