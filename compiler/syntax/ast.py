"""The abstract syntax tree: what a module says, without what it means.

Every node is frozen, has a `span` and compares by identity (`node`), so that names and types can
live in side tables keyed by it (`compiler.types.facts`). A tree is built from one file alone and
stores no semantic fact; broken source gives `Error…` nodes where nothing better can be said.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from qoqi.compiler.source import Span
from qoqi.compiler.syntax.node import Node as Node
from qoqi.compiler.syntax.node import children as children
from qoqi.compiler.syntax.node import field_names as field_names
from qoqi.compiler.syntax.node import moved as moved


class Ident(Node):
    """A name where it is written; `name` is empty where recovery put one in."""

    name: str


# -- types ------------------------------------------------------------------------------------


class NamedType(Node):
    """`Claim`, `http.Response`, `List<T>`: an optional module, a name, arguments."""

    module: Ident | None
    name: Ident
    args: tuple[TypeNode, ...]


class OptionType(Node):
    inner: TypeNode


class TupleType(Node):
    """`(A, B)`; no items is the unit type `()`."""

    items: tuple[TypeNode, ...]


class FnType(Node):
    params: tuple[TypeNode, ...]
    result: TypeNode


TypeNode: TypeAlias = NamedType | OptionType | TupleType | FnType


# -- patterns ---------------------------------------------------------------------------------


class WildPattern(Node):
    """`_`"""


class BindPattern(Node):
    name: Ident


class LiteralPattern(Node):
    """A literal; `-3` is an `IntLit` with a negative value."""

    value: Literal


class RangePattern(Node):
    low: Literal
    high: Literal
    inclusive: bool


class PatternArg(Node):
    """A positional (`name` is None) or named part of a variant pattern."""

    name: Ident | None
    pattern: Pattern


class VariantPattern(Node):
    """`None`, `Approved(by)`, `Json.Object(m)`, `a.Colour.Red`, `Rejected(_, ..)`.

    `path` is the dotted name from the left; the last is the variant. `args` is None without
    parentheses; `rest` says that `..` was written.
    """

    path: tuple[Ident, ...]
    args: tuple[PatternArg, ...] | None
    rest: bool


class FieldPattern(Node):
    """`index: 2`, or `index` alone, which binds (`pattern` is None)."""

    name: Ident
    pattern: Pattern | None


class StructPattern(Node):
    """`Cancelled { reason }`, `Chunk { index: 2, .. }`."""

    path: tuple[Ident, ...]
    fields: tuple[FieldPattern, ...]
    rest: bool


class TuplePattern(Node):
    items: tuple[Pattern, ...]


class RestPattern(Node):
    """`..` or `..rest`, in a list pattern only."""

    name: Ident | None


class ListPattern(Node):
    items: tuple[Pattern | RestPattern, ...]


class OrPattern(Node):
    """`P | Q`: every alternative binds the same names."""

    alternatives: tuple[Pattern, ...]


class ErrorPattern(Node):
    pass


Pattern: TypeAlias = (
    WildPattern
    | BindPattern
    | LiteralPattern
    | RangePattern
    | VariantPattern
    | StructPattern
    | TuplePattern
    | ListPattern
    | OrPattern
    | ErrorPattern
)


# -- expressions ------------------------------------------------------------------------------


class IntLit(Node):
    value: int


class DecimalLit(Node):
    """`12.50`: the scale that was written is kept."""

    value: Decimal


class DurationLit(Node):
    millis: int


class DateLit(Node):
    """Days since 1970-01-01."""

    days: int


class TimeLit(Node):
    """Milliseconds since the epoch, UTC."""

    millis: int


class BoolLit(Node):
    value: bool


class StringLit(Node):
    """Text and interpolated expressions in turn. Plain text is one str part; `""` has no parts.

    Escapes are resolved and the indent of `\"\"\"` text is removed.
    """

    parts: tuple[str | Expr, ...]


Literal: TypeAlias = IntLit | DecimalLit | DurationLit | DateLit | TimeLit | BoolLit | StringLit


class Name(Node):
    """A use of a lower- or upper-case name: a variable, function, module, variant or type."""

    name: str


class ListExpr(Node):
    items: tuple[Expr, ...]


class MapExpr(Node):
    """`["a": 1]`; no entries is `[:]`."""

    entries: tuple[tuple[Expr, Expr], ...]


class TupleExpr(Node):
    """`(a, b)`; no items is `()`."""

    items: tuple[Expr, ...]


class ParenExpr(Node):
    """`(e)`: kept because the formatter keeps what is written."""

    inner: Expr


class FieldInit(Node):
    """`id: e`, or `id` alone, which takes the variable of that name (`value` is None)."""

    name: Ident
    value: Expr | None


class StructExpr(Node):
    """`Claim { ..old, cents: 3 }`. `path` is the dotted type name; `base` is what follows `..`."""

    path: tuple[Ident, ...]
    base: Expr | None
    fields: tuple[FieldInit, ...]


class Arg(Node):
    name: Ident | None
    value: Expr


class Call(Node):
    """`f(a, n: b)`; a method call has a `FieldExpr` as `fn`."""

    fn: Expr
    args: tuple[Arg, ...]


class FieldExpr(Node):
    """`x.f`, `module.fn`, `Type.fn`, `Enum.Variant`: `name` may be of either case."""

    base: Expr
    name: Ident


class TupleIndexExpr(Node):
    """`t.0`"""

    base: Expr
    index: int


class IndexExpr(Node):
    base: Expr
    index: Expr


class TryExpr(Node):
    """`e?`"""

    inner: Expr


class UnaryExpr(Node):
    """`-e`, `!e`"""

    op: str
    operand: Expr


class BinaryExpr(Node):
    """`op` is one of `?? || && == != < <= > >= in not-in + - * / %`."""

    op: str
    op_span: Span
    left: Expr
    right: Expr


class RangeExpr(Node):
    low: Expr
    high: Expr
    inclusive: bool


class LambdaParam(Node):
    pattern: Pattern
    type: TypeNode | None


class LambdaExpr(Node):
    """`fn(x) => e` has an expression, `fn(x) { … }` a block as `body`."""

    params: tuple[LambdaParam, ...]
    result: TypeNode | None
    body: Expr | Block


class Condition(Node):
    """What `if` and `while` test: `e`, or `let P = e && guard`.

    Without `let`, `pattern` and `guard` are None.
    """

    pattern: Pattern | None
    value: Expr
    guard: Expr | None


class IfExpr(Node):
    condition: Condition
    then: Block
    otherwise: Block | IfExpr | None


class MatchArm(Node):
    """`case P | Q if guard: …`; the span starts at `case`."""

    pattern: Pattern
    guard: Expr | None
    body: Block


class MatchExpr(Node):
    """`head` covers `match` to the end of what is matched: what E0305 marks."""

    head: Span
    subject: Expr
    arms: tuple[MatchArm, ...]


class ReceiveCase(Node):
    """`let P = e`, or `e` alone (then `pattern` is None): receive, send, wait, join, cancelled."""

    pattern: Pattern | None
    value: Expr


class AfterCase(Node):
    delay: Expr


class AtCase(Node):
    time: Expr


class WhenCase(Node):
    condition: Expr


WaitCase: TypeAlias = ReceiveCase | AfterCase | AtCase | WhenCase


class WaitArm(Node):
    """`case …: …`; the case's span starts after `case` and ends before `if` or `:`."""

    case: WaitCase
    guard: Expr | None
    body: Block


class WaitExpr(Node):
    """`head` covers the words `wait match`: what F0006 and F0016 mark."""

    head: Span
    arms: tuple[WaitArm, ...]


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


class Block(Node):
    """`{ … }`, or the statements of an arm; as a value it is worth its last expression."""

    statements: tuple[Stmt, ...]


class LetStmt(Node):
    """`let P: T = e else { … }`, `var x = e`."""

    mutable: bool
    pattern: Pattern
    type: TypeNode | None
    value: Expr
    otherwise: Block | None


class AssignStmt(Node):
    """`place op e`, `op` being `=`, `+=`, `-=`, `*=`, `/=` or `%=`."""

    target: Expr
    op: str
    value: Expr


class ExprStmt(Node):
    value: Expr


class WhileStmt(Node):
    """`head` covers `while` to the end of the condition: what W0101 marks."""

    head: Span
    condition: Condition
    body: Block


class ForStmt(Node):
    head: Span
    pattern: Pattern
    iterable: Expr
    body: Block


class ReturnStmt(Node):
    value: Expr | None


class BreakStmt(Node):
    pass


class ContinueStmt(Node):
    pass


class DeferStmt(Node):
    body: Block


class StageStmt(Node):
    name: Ident
    variables: tuple[Ident, ...]


class BecomeStmt(Node):
    stage: Ident
    args: tuple[Arg, ...]


class GivenAnswer(Node):
    """One link of a `given`: `kind` is `value`, `fails` (a reason) or `never`."""

    kind: str
    after: Expr | None
    value: Expr | None


class GivenStmt(Node):
    """`given http.post(url) after 5m => a then b`; `runs` takes a module's given back."""

    target: tuple[Ident, ...]
    args: tuple[PatternArg, ...] | None
    answers: tuple[GivenAnswer, ...]
    runs: bool


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


class TypeParam(Node):
    """`T: Ordered`; `bound` is None without one."""

    name: Ident
    bound: Ident | None


class ParamDecl(Node):
    """A parameter; `mutable` is the `var` of `var self`."""

    name: Ident
    mutable: bool
    type: TypeNode
    default: Expr | None


class ImportDecl(Node):
    """`import a.b`, `import a.b as c`, `import a.b.{X, y}`."""

    public: bool
    path: tuple[Ident, ...]
    alias: Ident | None
    names: tuple[Ident, ...] | None


class ConstDecl(Node):
    doc: str
    public: bool
    name: Ident
    type: TypeNode | None
    value: Expr


class StructField(Node):
    """`kind: String as "content-type" = "x"`; `json_name` is what `as` says."""

    doc: str
    name: Ident
    type: TypeNode
    json_name: str | None
    default: Expr | None


class StructDecl(Node):
    doc: str
    public: bool
    name: Ident
    type_params: tuple[TypeParam, ...]
    fields: tuple[StructField, ...]


class VariantDecl(Node):
    """`params` is None for a unit variant."""

    doc: str
    name: Ident
    params: tuple[ParamDecl, ...] | None
    json_name: str | None


class EnumDecl(Node):
    doc: str
    public: bool
    name: Ident
    type_params: tuple[TypeParam, ...]
    variants: tuple[VariantDecl, ...]


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


class WithinClause(Node):
    limit: Expr


class TriesClause(Node):
    """`tries n | forever [for d] [else e]`; `count` is None for `forever`."""

    count: Expr | None
    duration: Expr | None
    otherwise: Expr | None


class BackoffClause(Node):
    first: Expr
    most: Expr | None


class UndoClause(Node):
    """`undo release(it)`"""

    call: Expr


class OnClause(Node):
    queue: Expr


class BeatClause(Node):
    interval: Expr


class LimitClause(Node):
    count: Expr
    per: Expr | None


StepClause: TypeAlias = (
    WithinClause | TriesClause | BackoffClause | UndoClause | OnClause | BeatClause | LimitClause
)


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


class StepsGroup(Node):
    """`steps within 30s tries 20 { … }`"""

    clauses: tuple[StepClause, ...]
    steps: tuple[StepDecl, ...]


class ChannelDecl(Node):
    """`channel x: T answers R capacity n inside`."""

    doc: str
    name: Ident
    type: TypeNode
    answers: TypeNode | None
    capacity: Expr | None
    inside: bool


class FieldDecl(Node):
    """`var votes: Map<String, Bool> = [:]` of a flow."""

    doc: str
    name: Ident
    type: TypeNode | None
    value: Expr | None


class ViewDecl(Node):
    doc: str
    name: Ident
    result: TypeNode
    body: Block


class RunDecl(Node):
    body: Block


class MigrateDecl(Node):
    doc: str
    name: Ident
    params: tuple[ParamDecl, ...]
    body: Block


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


class FlowDecl(Node):
    doc: str
    public: bool
    name: Ident
    params: tuple[ParamDecl, ...]
    result: TypeNode | None
    keep: Expr | None
    members: tuple[Member, ...]


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


class Module(Node):
    """One file. `doc` is its `//!` text."""

    doc: str
    items: tuple[Item, ...]
