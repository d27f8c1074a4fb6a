"""One function being emitted: its code, its locals, the blocks and loops it is in.

The modules beside this one say how each kind of node becomes code; they are given a
`FunctionEmitter` and come back to it for what is nested. The contract of the calls:

    value(node)   leaves exactly the node's value on the stack
    effect(node)  leaves nothing
    block(block)  leaves nothing; a stage in it finds the stack empty
    block_value   leaves the value of the block's last expression

A node of type `Never` does not come back, so after it nothing is emitted (`Code.reachable`).

`defer`: each block keeps what was deferred in it so far; every way out of the block writes those
statements out again, the last first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from qoqi.compiler.emit import calls, expressions, statements
from qoqi.compiler.emit.code import Code, Label, Scope
from qoqi.compiler.emit.tables import Tables
from qoqi.compiler.emit.terms import substituted
from qoqi.compiler.emit.terms import term as term_of
from qoqi.compiler.names.symbols import LocalSymbol
from qoqi.compiler.syntax import ast
from qoqi.compiler.types.facts import CallPlan, Facts
from qoqi.compiler.types.model import NeverType, Type
from qoqi.vm.bytecode.chunk import Function, FunctionDebug, Term
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.dataclass import dataclass


@dataclass(slots=True, eq=False)
class FunctionEmitter:
    """`types` says what the type parameters stand for, where the function depends on them.

    `by_name` finds the parameters of a step in its clauses, where they have symbols of their own.
    """

    tables: Tables
    module: str
    name: str
    types: Mapping[Type, Type] = field(default_factory=dict[Type, Type])
    mutates_self: bool = False
    code: Code = field(default_factory=Code)
    scopes: list[Scope] = field(default_factory=list[Scope])
    locals: dict[LocalSymbol, int] = field(default_factory=dict[LocalSymbol, int])
    by_name: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def facts(self) -> Facts:
        return self.tables.checked.facts[self.module]

    def new(
        self, module: str, name: str, types: Mapping[Type, Type] | None = None
    ) -> FunctionEmitter:
        """The emitter of another function of the chunk."""
        return FunctionEmitter(self.tables, module, name, types or {})

    # -- places in the source and in the frame ------------------------------------------------

    def at(self, node: ast.Node) -> None:
        """What is emitted next belongs to the line on which `node` begins."""
        self.code.line = self.tables.line(self.module, node.span.start)

    def slot(self, symbol: LocalSymbol) -> int:
        """The slot of a local, new where it is seen first."""
        if symbol not in self.locals:
            shared = self.by_name.get(symbol.name) if symbol.kind in ("param", "it") else None
            self.locals[symbol] = self.code.slot(symbol.name) if shared is None else shared
        return self.locals[symbol]

    def parameter(self, name: str, symbol: LocalSymbol | None) -> int:
        slot = self.code.slot(name)
        if symbol is not None:
            self.locals[symbol] = slot
        return slot

    def type_of(self, node: ast.Node) -> Type:
        return substituted(self.facts.types[node], self.types)

    def term(self, type_: Type) -> Term:
        return term_of(self.tables, substituted(type_, self.types))

    # -- nodes ----------------------------------------------------------------------------------

    def value(self, node: ast.Expr) -> None:
        expressions.value(self, node)

    def effect(self, node: ast.Expr) -> None:
        expressions.effect(self, node)

    def branch(self, node: ast.Expr, label: Label, when: bool) -> None:
        """Goes to `label` if the condition is `when`."""
        expressions.branch(self, node, label, when)

    def arguments(self, plan: CallPlan) -> int:
        """Leaves all arguments of a call on the stack, in the order of the parameters."""
        return calls.arguments(self, plan.args)

    def block(self, block: ast.Block) -> None:
        statements.block(self, block)

    def block_value(self, block: ast.Block) -> None:
        statements.block_value(self, block)

    # -- the ways out ---------------------------------------------------------------------------

    def never(self, node: ast.Expr) -> None:
        """After a value that never comes: nothing follows."""
        if isinstance(self.facts.types.get(node), NeverType):
            self.code.emit(self._return)

    def return_top(self) -> None:
        """Returns the value on top of the stack."""
        if self.code.reachable and any(scope.deferred for scope in self.scopes):
            kept = self.code.temporary()
            self.code.emit(Op.STORE, kept)
            self.run_deferred(0)
            self.code.emit(Op.LOAD, kept)
            self.code.free(kept)
        self.code.emit(self._return)

    def leave_loop(self, *, again: bool) -> None:
        """`continue` or `break` of the innermost loop."""
        index, loop = next(
            (index, scope.loop)
            for index, scope in reversed(list(enumerate(self.scopes)))
            if scope.loop is not None
        )
        self.run_deferred(index)
        self.code.drop_to(loop.depth)
        self.code.jump(Op.JUMP, loop.again if again else loop.end)

    def run_deferred(self, down_to: int) -> None:
        """Writes out what was deferred in the open blocks, from the innermost to `down_to`."""
        open_scopes = self.scopes
        for index in range(len(open_scopes) - 1, down_to - 1, -1):
            for block in reversed(open_scopes[index].deferred):
                self.scopes = open_scopes[:index]
                self.block(block)
        self.scopes = open_scopes

    # -- the finished function ------------------------------------------------------------------

    def body(self, block: ast.Block, unit: bool) -> None:
        """The whole of a function's block: its value, or () where it gives nothing."""
        if unit:
            self.block(block)
            self.code.emit(Op.UNIT)
        else:
            self.block_value(block)
        self.code.emit(self._return)

    def result(self, node: ast.Expr) -> None:
        """The whole of a function that is one expression."""
        self.at(node)
        self.value(node)
        self.code.emit(self._return)

    def finished(self, params: int) -> tuple[Function, FunctionDebug]:
        code = self.code
        assert not code.reachable, f"{self.name} does not return"
        function = Function(
            self.name,
            params,
            len(code.slot_names),
            code.finished(),
            tuple(code.places),
            tuple(code.mutations),
            code.switches(),
        )
        path = self.tables.path(self.module)
        return function, FunctionDebug(path, tuple(code.lines), tuple(code.slot_names))

    @property
    def _return(self) -> Op:
        return Op.RETURN_MUTATED if self.mutates_self else Op.RETURN
