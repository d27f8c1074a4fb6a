"""What checking works on: the program's tables, and the state of one body.

`Program` has what is known of all modules: scopes, signatures, types of declarations, facts and
diagnostics. `Body` is the state while one function, step, run, view, test or initial value is
checked: its variables, its unifier, the types found so far. Facts get final types when the body is
finished.

Two operations carry the whole inference:

    infer(e, want)   the type of `e`; `want` is the type wanted there, if one is known. It gives
                     literals, bare variants, closures and calls their types, and is not checked
    check(e, want)   infers and then demands that the type fits; reports E0301 otherwise

A construct that hands its value on (`if`, `match`, a block, parentheses) checks its parts against
what is wanted of itself, so that a mismatch marks the smallest expression.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from qoqi.compiler.diagnostics import Diagnostic, Fix, Label, error
from qoqi.compiler.names.resolver import PRELUDE
from qoqi.compiler.names.scope import FlowScope, Locals, ModuleScope
from qoqi.compiler.names.symbols import (
    ChannelSymbol,
    EnumSymbol,
    FlowSlotSymbol,
    FlowSymbol,
    FnSymbol,
    LocalSymbol,
    StructSymbol,
    Symbol,
    VariantSymbol,
)
from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import (
    ArgSource,
    BuiltinTarget,
    CallPlan,
    Facts,
    FnSignature,
    FnTarget,
    Target,
)
from qoqi.compiler.types.model import ERROR, UNIT, Con, NeverType, Param, Type
from qoqi.compiler.types.unify import Unifier
from qoqi.vm.dataclass import dataclass

DISCARD = Con("(discarded)")

Reason: TypeAlias = Callable[[], Label]
ExprRule: TypeAlias = Callable[["Body", Any, Type | None], Type]


def reason_at(path: str, span: Span, text: str) -> Reason:
    """A reason that is one place in a file; the label is made only if it is shown."""
    return lambda: Label(path, span, text)


@dataclass(frozen=True, slots=True)
class Rules:
    """How a body is checked: a rule per kind of expression, and the two reports it leads to.

    They are given to a body rather than imported, since every rule works on bodies.
    """

    expressions: Mapping[type, ExprRule]
    report_mismatch: Callable[[Body, ast.Node, Type, Type], None]
    check_bound: Callable[[Body, Obligation, Type], None]


MOST_NESTED = 90
MOST_TYPE_PARTS = 400


@dataclass(slots=True)
class Program:
    """The tables of all modules. Those of the standard library are made once and shared.

    `bodies` are the library functions whose bodies the program needs facts of; `params` the type
    parameters of structs and enums; `variants` an enum's by name; `stages` the types of a flow's
    stage variables; `calls` who calls whom, and `hearing` who has a case for `flow.cancelled()`;
    `too_deep` the modules with a body that is nested too deeply.
    `rules` are those of bodies where they are not the usual ones: an editor listens in. `poll` is
    called between bodies, and may end the check by raising.
    """

    scopes: dict[str, ModuleScope] = field(default_factory=dict)
    facts: dict[str, Facts] = field(default_factory=dict)
    signatures: dict[Symbol, FnSignature] = field(default_factory=dict)
    declared: dict[Symbol, Type] = field(default_factory=dict)
    answers: dict[ChannelSymbol, Type] = field(default_factory=dict)
    struct_fields: dict[StructSymbol, tuple[tuple[str, Type], ...]] = field(default_factory=dict)
    structs: dict[str, StructSymbol] = field(default_factory=dict)
    enums: dict[str, EnumSymbol] = field(default_factory=dict)
    flows: dict[str, FlowSymbol] = field(default_factory=dict)
    params: dict[Symbol, tuple[Param, ...]] = field(default_factory=dict)
    variants: dict[str, dict[str, VariantSymbol]] = field(default_factory=dict)
    stages: dict[tuple[FlowSymbol, str], dict[str, Type]] = field(default_factory=dict)
    bodies: dict[FnSymbol, None] = field(default_factory=dict)
    calls: dict[Symbol, set[FnSymbol]] = field(default_factory=dict)
    hearing: set[Symbol] = field(default_factory=set)
    too_deep: set[str] = field(default_factory=set)
    under_way: list[Symbol] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    constants: Callable[[Program, Symbol], Type] | None = None
    rules: Rules | None = None
    poll: Callable[[], None] | None = None

    def prelude(self) -> ModuleScope | None:
        return self.scopes.get(PRELUDE)

    def flow_scope(self, flow: FlowSymbol) -> FlowScope:
        return self.scopes[flow.module].flows[flow.qualified]

    def path_of(self, module: str) -> str:
        return self.scopes[module].path

    def report(self, diagnostic: Diagnostic) -> None:
        self.diagnostics.append(diagnostic)


@dataclass(slots=True)
class Frame:
    """A function or closure under way: what `return` gives, its loops, what it captures."""

    result: Type
    reason: Reason | None
    loops: list[bool] = field(default_factory=list)
    captures: dict[LocalSymbol, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Obligation:
    """A bound that a type must satisfy, looked at when the body's types are known."""

    type: Type
    bound: str
    span: Span
    what: str


@dataclass(slots=True, eq=False)
class Body:
    """The state of one body, that of `owner`: a function, or a flow for its run.

    `tools` says whether test tools may be used, `testing` whether a flow's `start` gives a test's
    handle. `waiting` is the call that a case of a `wait match` waits for, until that is seen.
    """

    program: Program
    scope: ModuleScope
    facts: Facts
    rules: Rules
    flow: FlowScope | None = None
    type_params: Mapping[str, Param] = field(default_factory=dict)
    tools: bool = True
    testing: bool = False
    owner: Symbol | None = None
    u: Unifier = field(default_factory=Unifier)
    locals: Locals = field(default_factory=Locals)
    local_types: dict[LocalSymbol, Type] = field(default_factory=dict)
    local_decls: dict[LocalSymbol, ast.Node] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    types: dict[ast.Node, Type] = field(default_factory=dict)
    pending: list[Callable[[], None]] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    reason: Reason | None = None
    statement: ast.Node | None = None
    waiting: ast.Call | None = None
    slots_seen: int | None = None
    stages: list[tuple[str, dict[str, LocalSymbol]]] = field(default_factory=list)
    errors: int = 0
    told: set[tuple[str, Hashable]] = field(default_factory=set[tuple[str, Hashable]])
    depth: int = 0
    refused_depth: bool = False

    # -- expressions --------------------------------------------------------------------------

    def infer(self, expr: ast.Expr, want: Type | None = None) -> Type:
        if self.depth >= MOST_NESTED:
            self.too_deep(expr.span, "Give parts of it names, with `let`.")
            return ERROR
        self.depth += 1
        type_ = self.rules.expressions[type(expr)](self, expr, want)
        self.depth -= 1
        self.types[expr] = type_
        return type_

    def check(self, expr: ast.Expr, want: Type, why: Reason | None = None) -> Type:
        """Infers and demands `want`; `why` explains where the demand comes from."""
        before, self.reason = self.reason, why
        found = self.infer(expr, want)
        self.fit(expr, found, want)
        self.reason = before
        return found

    def recheck(self, expr: ast.Expr, want: Type) -> Type:
        """As `check`, for a part that stands for the whole: the reason stays."""
        found = self.infer(expr, want)
        self.fit(expr, found, want)
        return found

    def infer_waited(self, value: ast.Expr, call: ast.Call) -> tuple[Type, bool]:
        """Infers what a case waits for, and whether that is something that happens."""
        outer, self.waiting = self.waiting, call
        type_ = self.infer(value)
        left, self.waiting = self.waiting, outer
        return type_, left is not call

    def fit(self, expr: ast.Node, found: Type, want: Type) -> bool:
        found = self.u.resolve(found)
        if isinstance(found, NeverType):
            self.u.never(want)
            return True
        if self.u.unify(found, want) or self._is_handle_of(expr, found, want):
            return True
        self.rules.report_mismatch(self, expr, found, want)
        return False

    def _is_handle_of(self, expr: ast.Node, found: Type, want: Type) -> bool:
        """In tests a handle is taken where an instance of its flow is wanted."""
        want = self.u.resolve(want)
        if not isinstance(found, Con) or not isinstance(want, Con):
            return False
        if (found.name, want.name) != ("test.Handle", "Instance"):
            return False
        if not self.u.unify(found.args[0], want.args[0]):
            return False
        self.facts.coerce[expr] = "instance"
        return True

    def resolve(self, type_: Type) -> Type:
        return self.u.resolve(type_)

    def wanted(self, want: Type | None) -> Type | None:
        """What is wanted, resolved at the top."""
        return None if want is None else self.u.resolve(want)

    # -- reports ------------------------------------------------------------------------------

    @property
    def path(self) -> str:
        return self.scope.path

    def error(
        self,
        code: str,
        span: Span,
        message: str,
        *,
        labels: Iterable[Label] = (),
        notes: Iterable[str] = (),
        fixes: Iterable[Fix] = (),
        once: Hashable = None,
    ) -> None:
        """Reports an error; of those that are `once` the same thing in a body, the first only."""
        self.errors += 1
        if once is not None:
            if (code, once) in self.told:
                return
            self.told.add((code, once))
        self.program.report(
            error(code, self.path, span, message, labels=labels, notes=notes, fixes=fixes)
        )

    def too_deep(self, span: Span, note: str) -> None:
        """Reports nesting once per body: what is deeper still would say the same."""
        self.errors += 1
        if not self.refused_depth:
            self.refused_depth = True
            self.program.too_deep.add(self.scope.name)
            self.error("E0322", span, "this is nested too deeply", notes=[note])

    def because(self, span: Span, text: str) -> Reason:
        """A reason that is a place in this module."""
        return reason_at(self.path, span, text)

    def text(self, span: Span) -> str:
        return self.scope.text[span.start : span.end]

    def quoted(self, span: Span) -> str:
        """What is written there, for a sentence; `this` if it does not fit into one."""
        text = self.text(span)
        return f"`{text}`" if len(text) <= 30 and "\n" not in text else "this"

    # -- names --------------------------------------------------------------------------------

    def use(self, node: ast.Node, symbol: Symbol) -> None:
        self.facts.uses[node] = symbol

    def look_up(self, name: str) -> Symbol | None:
        """What a name stands for here, from the inside out."""
        local = self.locals.find(name)
        if local is not None:
            return local
        if self.flow is not None:
            member = self.flow.member(name)
            if member is not None:
                return member
        found = self.scope.own(name)
        if found is not None:
            return found
        prelude = self.program.prelude()
        return prelude.public(name) if prelude is not None else None

    def capture(self, symbol: LocalSymbol) -> None:
        """Notes a use of a variable from outside the closures around."""
        depth = self.locals.depth_of(symbol)
        for frame in self.frames[depth + 1 :]:
            frame.captures[symbol] = None

    def declare(self, node: ast.Node, ident: ast.Ident, type_: Type, kind: str) -> LocalSymbol:
        """A new variable in the block at hand."""
        symbol = LocalSymbol(ident.name, ident.span, kind in ("var", "var self"), kind)
        self.facts.bindings[node] = symbol
        self.local_types[symbol] = type_
        self.local_decls[symbol] = node
        if ident.name:
            self._refuse_hiding(ident)
            self.locals.add(symbol)
        return symbol

    def _refuse_hiding(self, ident: ast.Ident) -> None:
        member = self.flow.member(ident.name) if self.flow is not None else None
        if isinstance(member, ChannelSymbol) or (
            isinstance(member, FlowSlotSymbol) and not member.parameter
        ):
            what = "channel" if isinstance(member, ChannelSymbol) else "field"
            self.error(
                "E0208",
                ident.span,
                f"`{ident.name}` would hide the {what} `{ident.name}` of this flow",
                labels=[Label(self.path, member.decl.name.span, f"the {what}")],
                notes=["Give the variable another name."],
            )

    # -- generics -----------------------------------------------------------------------------

    def instantiate(
        self, params: Iterable[Type], span: Span, what: str
    ) -> tuple[dict[Type, Type], tuple[Type, ...]]:
        """Fresh variables for type parameters, and the bounds they bring."""
        mapping: dict[Type, Type] = {}
        for param in params:
            var = self.u.fresh(span, what)
            mapping[param] = var
            if isinstance(param, Param) and param.bound is not None:
                self.demand(var, param.bound, span, f"the `{param.name}` of {what}")
        return mapping, tuple(mapping.values())

    def demand(self, type_: Type, bound: str, span: Span, what: str) -> None:
        self.obligations.append(Obligation(type_, bound, span, what))

    # -- facts --------------------------------------------------------------------------------

    def plan(self, call: ast.Call, target: Target, args: tuple[ArgSource | None, ...]) -> None:
        """The plan of a call, its types finished with the body."""
        if isinstance(target, FnTarget):
            self.reach(target.symbol)
            if self.owner is not None:
                self.program.calls.setdefault(self.owner, set()).add(target.symbol)
        open_types = (isinstance(target, FnTarget) and target.type_args) or (
            isinstance(target, BuiltinTarget) and target.type is not None
        )
        if open_types:
            final = self._final_target
            self.pending.append(lambda: self._keep(call, CallPlan(final(target), args)))
        else:
            self._keep(call, CallPlan(target, args))

    def _keep(self, call: ast.Call, plan: CallPlan) -> None:
        self.facts.calls[call] = plan

    def value(self, node: ast.Node, target: Target) -> None:
        """A function, step or variant used as a value."""
        if isinstance(target, FnTarget):
            self.reach(target.symbol)
            self.pending.append(
                lambda: self.facts.values.__setitem__(node, self._final_target(target))
            )
        else:
            self.facts.values[node] = target

    def reach(self, symbol: FnSymbol) -> None:
        """Notes that the body of a library function is needed."""
        if self.program.scopes[symbol.module].package == "std":
            self.program.bodies.setdefault(symbol)

    def _final_target(self, target: Target) -> Target:
        zonk = self.u.zonk
        match target:
            case FnTarget(symbol, type_args):
                return FnTarget(symbol, tuple(zonk(arg) for arg in type_args))
            case BuiltinTarget(name, flow, channel, type_):
                final = zonk(type_) if type_ is not None else None
                return BuiltinTarget(name, flow, channel, UNIT if final == ERROR else final)
            case _:
                pass
        return target

    def finish(self) -> None:
        """Ends the body: reports what nothing decided, and hands over facts with final types."""
        for settle in self.pending:
            settle()
        zonk = self.u.zonk
        if not self.errors:
            for origin in self.u.undecided():
                self.error(
                    "E0311",
                    origin.span,
                    f"nothing says the type of {origin.what}",
                    notes=[_say_type(origin.what)],
                )
        for obligation in self.obligations:
            self.rules.check_bound(self, obligation, zonk(obligation.type))
        final_types = self.facts.types
        for node, type_ in self.types.items():
            final_types[node] = zonk(type_)
        for symbol, type_ in self.local_types.items():
            self.local_types[symbol] = zonk(type_)
        if self.flow is not None:
            for stage, variables in self.stages:
                self.program.stages.setdefault(
                    (self.flow.symbol, stage),
                    {name: self.local_types[local] for name, local in variables.items()},
                )


def _say_type(what: str) -> str:
    """How to say the type of what has none."""
    if what == "this parameter":
        return "Write it: `fn(x: Int) => …`."
    return "Give the variable a type: `let name: List<String> = …`."
