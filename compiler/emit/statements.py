"""Statements and blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.emit import matching, migrations, patterns, places, stages, tests
from qoqi.compiler.emit.code import Label, Loop, Scope
from qoqi.compiler.emit.patterns import Spot
from qoqi.compiler.syntax import ast
from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter


def block(fn: FunctionEmitter, node: ast.Block, loop: Loop | None = None) -> None:
    """A block for what it does; `loop` where it is a loop's body."""
    fn.scopes.append(Scope(loop=loop))
    for inner in node.statements:
        statement(fn, inner)
    _close(fn)


def block_value(fn: FunctionEmitter, node: ast.Block) -> None:
    """A block that is worth its last expression, or () if it ends in no expression."""
    fn.scopes.append(Scope())
    for inner in node.statements[:-1]:
        statement(fn, inner)
    match node.statements[-1:]:
        case (ast.ExprStmt(value=value) as last,):
            fn.at(last)
            fn.value(value)
        case rest:
            for inner in rest:
                statement(fn, inner)
            fn.code.emit(Op.UNIT)
    _close(fn)


def _close(fn: FunctionEmitter) -> None:
    if fn.code.reachable:
        fn.run_deferred(len(fn.scopes) - 1)
    fn.scopes.pop()


def statement(fn: FunctionEmitter, node: ast.Stmt) -> None:
    code = fn.code
    fn.at(node)
    match node:
        case ast.LetStmt():
            _let(fn, node)
        case ast.AssignStmt():
            places.assign(fn, node)
        case ast.ExprStmt(value=value):
            fn.effect(value)
        case ast.WhileStmt():
            _while(fn, node)
        case ast.ForStmt():
            _for(fn, node)
        case ast.ReturnStmt(value=value):
            if value is None:
                code.emit(Op.UNIT)
            else:
                fn.value(value)
            fn.return_top()
        case ast.BreakStmt():
            fn.leave_loop(again=False)
        case ast.ContinueStmt():
            fn.leave_loop(again=True)
        case ast.DeferStmt(body=body):
            fn.scopes[-1].deferred.append(body)
        case ast.StageStmt():
            stages.stage(fn, node)
        case ast.BecomeStmt():
            migrations.become(fn, node)
        case ast.GivenStmt():
            tests.given(fn, node)
        case ast.ErrorStmt():
            raise AssertionError("a module with errors is not emitted")


def _let(fn: FunctionEmitter, node: ast.LetStmt) -> None:
    code = fn.code
    if isinstance(node.pattern, ast.WildPattern):
        fn.effect(node.value)
        return
    fn.value(node.value)
    if node.otherwise is None:
        patterns.bind_top(fn, node.pattern)
        return
    kept = code.temporary()
    code.emit(Op.STORE, kept)
    other, end = Label(), Label()
    patterns.fit(fn, node.pattern, Spot(kept), other)
    code.emit(Op.CLEAR, kept)
    code.jump(Op.JUMP, end)
    code.mark(other)
    code.free(kept)
    fn.block(node.otherwise)
    code.mark(end)


def _while(fn: FunctionEmitter, node: ast.WhileStmt) -> None:
    code = fn.code
    again, end = Label(), Label()
    code.mark(again)
    matching.condition(fn, node.condition, end)
    block(fn, node.body, Loop(again, end, code.depth))
    code.jump(Op.JUMP, again)
    code.mark(end)


def _for(fn: FunctionEmitter, node: ast.ForStmt) -> None:
    code = fn.code
    again, end = Label(), Label()
    fn.value(node.iterable)
    code.emit(Op.ITERABLE)
    walk = code.walk()
    code.emit(Op.STORE, walk)
    code.emit(Op.INT, 0)
    code.emit(Op.STORE, walk + 1)
    depth = code.depth
    code.mark(again)
    code.next_item(walk, end)
    patterns.bind_top(fn, node.pattern)
    block(fn, node.body, Loop(again, end, depth))
    fn.at(node)
    code.jump(Op.JUMP, again)
    code.mark(end)
    code.release_walk(walk)
