"""The abstract syntax tree: what a module says, without what it means.

Every node is frozen, has a `span` and compares by identity (`node`), so that names and types can
live in side tables keyed by it (`compiler.types.facts`). A tree is built from one file alone and
stores no semantic fact; broken source gives `Error…` nodes where nothing better can be said.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from qoqi.compiler.frozen import frozen
from qoqi.compiler.source import Span
from qoqi.compiler.syntax.node import Node as Node
from qoqi.compiler.syntax.node import children as children
from qoqi.compiler.syntax.node import field_names as field_names
from qoqi.compiler.syntax.node import moved as moved
from qoqi.compiler.syntax.pattern_nodes import BindPattern as BindPattern
from qoqi.compiler.syntax.pattern_nodes import ErrorPattern as ErrorPattern
from qoqi.compiler.syntax.pattern_nodes import FieldPattern as FieldPattern
from qoqi.compiler.syntax.pattern_nodes import FnType as FnType
from qoqi.compiler.syntax.pattern_nodes import Ident as Ident
from qoqi.compiler.syntax.pattern_nodes import ListPattern as ListPattern
from qoqi.compiler.syntax.pattern_nodes import LiteralPattern as LiteralPattern
from qoqi.compiler.syntax.pattern_nodes import NamedType as NamedType
from qoqi.compiler.syntax.pattern_nodes import OptionType as OptionType
from qoqi.compiler.syntax.pattern_nodes import OrPattern as OrPattern
from qoqi.compiler.syntax.pattern_nodes import Pattern as Pattern
from qoqi.compiler.syntax.pattern_nodes import PatternArg as PatternArg
from qoqi.compiler.syntax.pattern_nodes import RangePattern as RangePattern
from qoqi.compiler.syntax.pattern_nodes import RestPattern as RestPattern
from qoqi.compiler.syntax.pattern_nodes import StructPattern as StructPattern
from qoqi.compiler.syntax.pattern_nodes import TuplePattern as TuplePattern
from qoqi.compiler.syntax.pattern_nodes import TupleType as TupleType
from qoqi.compiler.syntax.pattern_nodes import TypeNode as TypeNode
from qoqi.compiler.syntax.pattern_nodes import VariantPattern as VariantPattern
from qoqi.compiler.syntax.pattern_nodes import WildPattern as WildPattern

# -- expressions ------------------------------------------------------------------------------


@frozen
class IntLit(Node):
    value: int


@frozen
class DecimalLit(Node):
    """`12.50`: the scale that was written is kept."""

    value: Decimal


@frozen
class DurationLit(Node):
    millis: int


@frozen
class DateLit(Node):
    """Days since 1970-01-01."""

    days: int


@frozen
class TimeLit(Node):
    """Milliseconds since the epoch, UTC."""

    millis: int


@frozen
class BoolLit(Node):
    value: bool


@frozen
class StringLit(Node):
    """Text and interpolated expressions in turn. Plain text is one str part; `""` has no parts.

    Escapes are resolved and the indent of `\"\"\"` text is removed.
    """

    parts: tuple[str | Expr, ...]


Literal: TypeAlias = IntLit | DecimalLit | DurationLit | DateLit | TimeLit | BoolLit | StringLit


@frozen
class Name(Node):
    """A use of a lower- or upper-case name: a variable, function, module, variant or type."""

    name: str


@frozen
class ListExpr(Node):
    items: tuple[Expr, ...]


@frozen
class MapExpr(Node):
    """`["a": 1]`; no entries is `[:]`."""

    entries: tuple[tuple[Expr, Expr], ...]


@frozen
class TupleExpr(Node):
    """`(a, b)`; no items is `()`."""

    items: tuple[Expr, ...]


@frozen
class ParenExpr(Node):
    """`(e)`: kept because the formatter keeps what is written."""

    inner: Expr


@frozen
class FieldInit(Node):
    """`id: e`, or `id` alone, which takes the variable of that name (`value` is None)."""

    name: Ident
    value: Expr | None


@frozen
class StructExpr(Node):
    """`Claim { ..old, cents: 3 }`. `path` is the dotted type name; `base` is what follows `..`."""

    path: tuple[Ident, ...]
    base: Expr | None
    fields: tuple[FieldInit, ...]


@frozen
class Arg(Node):
    name: Ident | None
    value: Expr


@frozen
class Call(Node):
    """`f(a, n: b)`; a method call has a `FieldExpr` as `fn`."""

    fn: Expr
    args: tuple[Arg, ...]


@frozen
class FieldExpr(Node):
    """`x.f`, `module.fn`, `Type.fn`, `Enum.Variant`: `name` may be of either case."""

    base: Expr
    name: Ident


@frozen
class TupleIndexExpr(Node):
    """`t.0`"""

    base: Expr
    index: int


@frozen
class IndexExpr(Node):
    base: Expr
    index: Expr


@frozen
class TryExpr(Node):
    """`e?`"""

    inner: Expr


@frozen
class UnaryExpr(Node):
    """`-e`, `!e`"""

    op: str
    operand: Expr


@frozen
class BinaryExpr(Node):
    """`op` is one of `?? || && == != < <= > >= in not-in + - * / %`."""

    op: str
    op_span: Span
    left: Expr
    right: Expr


@frozen
class RangeExpr(Node):
    low: Expr
    high: Expr
    inclusive: bool


@frozen
class LambdaParam(Node):
    pattern: Pattern
    type: TypeNode | None


@frozen
class LambdaExpr(Node):
    """`fn(x) => e` has an expression, `fn(x) { … }` a block as `body`."""

    params: tuple[LambdaParam, ...]
    result: TypeNode | None
    body: Expr | Block


@frozen
class Condition(Node):
    """What `if` and `while` test: `e`, or `let P = e && guard`.

    Without `let`, `pattern` and `guard` are None.
    """

    pattern: Pattern | None
    value: Expr
    guard: Expr | None


@frozen
class IfExpr(Node):
    condition: Condition
    then: Block
    otherwise: Block | IfExpr | None


@frozen
class MatchArm(Node):
    """`case P | Q if guard: …`; the span starts at `case`."""

    pattern: Pattern
    guard: Expr | None
    body: Block


@frozen
class MatchExpr(Node):
    """`head` covers `match` to the end of what is matched: what E0305 marks."""

    head: Span
    subject: Expr
    arms: tuple[MatchArm, ...]


@frozen
class ReceiveCase(Node):
    """`let P = e`, or `e` alone (then `pattern` is None): receive, send, wait, join, cancelled."""

    pattern: Pattern | None
    value: Expr


@frozen
class AfterCase(Node):
    delay: Expr


@frozen
class AtCase(Node):
    time: Expr


@frozen
class WhenCase(Node):
    condition: Expr


WaitCase: TypeAlias = ReceiveCase | AfterCase | AtCase | WhenCase


@frozen
class WaitArm(Node):
    """`case …: …`; the case's span starts after `case` and ends before `if` or `:`."""

    case: WaitCase
    guard: Expr | None
    body: Block


@frozen
class WaitExpr(Node):
    """`head` covers the words `wait match`: what F0006 and F0016 mark."""

    head: Span
    arms: tuple[WaitArm, ...]


@frozen
class ErrorExpr(Node):
    pass


Expr: TypeAlias = (
    IntLit
    | DecimalLit
    | DurationLit
    | DateLit
    | TimeLit
    | BoolLit
    | StringLit
    | Name
    | ListExpr
    | MapExpr
    | TupleExpr
    | ParenExpr
    | StructExpr
    | Call
    | FieldExpr
    | TupleIndexExpr
    | IndexExpr
    | TryExpr
    | UnaryExpr
    | BinaryExpr
    | RangeExpr
    | LambdaExpr
    | IfExpr
    | MatchExpr
    | WaitExpr
    | ErrorExpr
)


# -- statements -------------------------------------------------------------------------------


@frozen
class Block(Node):
    """`{ … }`, or the statements of an arm; as a value it is worth its last expression."""

    statements: tuple[Stmt, ...]


@frozen
class LetStmt(Node):
    """`let P: T = e else { … }`, `var x = e`."""

    mutable: bool
    pattern: Pattern
    type: TypeNode | None
    value: Expr
    otherwise: Block | None


@frozen
class AssignStmt(Node):
    """`place op e`, `op` being `=`, `+=`, `-=`, `*=`, `/=` or `%=`."""

    target: Expr
    op: str
    value: Expr


@frozen
class ExprStmt(Node):
    value: Expr


@frozen
class WhileStmt(Node):
    """`head` covers `while` to the end of the condition: what W0101 marks."""

    head: Span
    condition: Condition
    body: Block


@frozen
class ForStmt(Node):
    head: Span
    pattern: Pattern
    iterable: Expr
    body: Block


@frozen
class ReturnStmt(Node):
    value: Expr | None


@frozen
class BreakStmt(Node):
    pass


@frozen
class ContinueStmt(Node):
    pass


@frozen
class DeferStmt(Node):
    body: Block


@frozen
class StageStmt(Node):
    name: Ident
    variables: tuple[Ident, ...]


@frozen
class BecomeStmt(Node):
    stage: Ident
    args: tuple[Arg, ...]


@frozen
class GivenAnswer(Node):
    """One link of a `given`: `kind` is `value`, `fails` (a reason) or `never`."""

    kind: str
    after: Expr | None
    value: Expr | None


@frozen
class GivenStmt(Node):
    """`given http.post(url) after 5m => a then b`; `runs` takes a module's given back."""

    target: tuple[Ident, ...]
    args: tuple[PatternArg, ...] | None
    answers: tuple[GivenAnswer, ...]
    runs: bool


@frozen
class ErrorStmt(Node):
    pass


Stmt: TypeAlias = (
    LetStmt
    | AssignStmt
    | ExprStmt
    | WhileStmt
    | ForStmt
    | ReturnStmt
    | BreakStmt
    | ContinueStmt
    | DeferStmt
    | StageStmt
    | BecomeStmt
    | GivenStmt
    | ErrorStmt
)


# -- declarations -----------------------------------------------------------------------------


@frozen
class TypeParam(Node):
    """`T: Ordered`; `bound` is None without one."""

    name: Ident
    bound: Ident | None


@frozen
class ParamDecl(Node):
    """A parameter; `mutable` is the `var` of `var self`."""

    name: Ident
    mutable: bool
    type: TypeNode
    default: Expr | None


@frozen
class ImportDecl(Node):
    """`import a.b`, `import a.b as c`, `import a.b.{X, y}`."""

    public: bool
    path: tuple[Ident, ...]
    alias: Ident | None
    names: tuple[Ident, ...] | None


@frozen
class ConstDecl(Node):
    doc: str
    public: bool
    name: Ident
    type: TypeNode | None
    value: Expr


@frozen
class StructField(Node):
    """`kind: String as "content-type" = "x"`; `json_name` is what `as` says."""

    doc: str
    name: Ident
    type: TypeNode
    json_name: str | None
    default: Expr | None


@frozen
class StructDecl(Node):
    doc: str
    public: bool
    name: Ident
    type_params: tuple[TypeParam, ...]
    fields: tuple[StructField, ...]


@frozen
class VariantDecl(Node):
    """`params` is None for a unit variant."""

    doc: str
    name: Ident
    params: tuple[ParamDecl, ...] | None
    json_name: str | None


@frozen
class EnumDecl(Node):
    doc: str
    public: bool
    name: Ident
    type_params: tuple[TypeParam, ...]
    variants: tuple[VariantDecl, ...]


@frozen
class FnDecl(Node):
    """A function of a module or a flow. A `native` one (stdlib only) has no body.

    `native` is None, or the colour it declares: `pure`, `world` or `flow`. `owner` is the type of a
    function that is called on a type: `fn Int.parse(text: String) -> Int?`.
    """

    doc: str
    public: bool
    native: str | None
    name: Ident
    type_params: tuple[TypeParam, ...]
    params: tuple[ParamDecl, ...]
    result: TypeNode | None
    body: Block | None
    owner: Ident | None = None


@frozen
class WithinClause(Node):
    limit: Expr


@frozen
class TriesClause(Node):
    """`tries n | forever [for d] [else e]`; `count` is None for `forever`."""

    count: Expr | None
    duration: Expr | None
    otherwise: Expr | None


@frozen
class BackoffClause(Node):
    first: Expr
    most: Expr | None


@frozen
class UndoClause(Node):
    """`undo release(it)`"""

    call: Expr


@frozen
class OnClause(Node):
    queue: Expr


@frozen
class BeatClause(Node):
    interval: Expr


@frozen
class LimitClause(Node):
    count: Expr
    per: Expr | None


StepClause: TypeAlias = (
    WithinClause | TriesClause | BackoffClause | UndoClause | OnClause | BeatClause | LimitClause
)


@frozen
class StepDecl(Node):
    """A step; an `extern` one has no body. `clauses` are its own, before those of its group."""

    doc: str
    public: bool
    extern: bool
    name: Ident
    params: tuple[ParamDecl, ...]
    result: TypeNode | None
    clauses: tuple[StepClause, ...]
    body: Block | None


@frozen
class StepsGroup(Node):
    """`steps within 30s tries 20 { … }`"""

    clauses: tuple[StepClause, ...]
    steps: tuple[StepDecl, ...]


@frozen
class ChannelDecl(Node):
    """`channel x: T answers R capacity n inside`."""

    doc: str
    name: Ident
    type: TypeNode
    answers: TypeNode | None
    capacity: Expr | None
    inside: bool


@frozen
class FieldDecl(Node):
    """`var votes: Map<String, Bool> = [:]` of a flow."""

    doc: str
    name: Ident
    type: TypeNode | None
    value: Expr | None


@frozen
class ViewDecl(Node):
    doc: str
    name: Ident
    result: TypeNode
    body: Block


@frozen
class RunDecl(Node):
    body: Block


@frozen
class MigrateDecl(Node):
    doc: str
    name: Ident
    params: tuple[ParamDecl, ...]
    body: Block


@frozen
class ErrorItem(Node):
    """Text at the level of declarations or members that could not be read."""


Member: TypeAlias = (
    ChannelDecl
    | FieldDecl
    | ViewDecl
    | RunDecl
    | MigrateDecl
    | FnDecl
    | StepDecl
    | StepsGroup
    | ConstDecl
    | ErrorItem
)


@frozen
class FlowDecl(Node):
    doc: str
    public: bool
    name: Ident
    params: tuple[ParamDecl, ...]
    result: TypeNode | None
    keep: Expr | None
    members: tuple[Member, ...]


@frozen
class TestDecl(Node):
    """`test "a name" { … }`"""

    title: StringLit
    body: Block


Item: TypeAlias = (
    ImportDecl
    | ConstDecl
    | StructDecl
    | EnumDecl
    | FnDecl
    | StepDecl
    | StepsGroup
    | FlowDecl
    | TestDecl
    | GivenStmt
    | ErrorItem
)


@frozen
class Module(Node):
    """One file. `doc` is its `//!` text."""

    doc: str
    items: tuple[Item, ...]
