"""The natives that syntax itself needs, by their names in the machine's table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.vm.bytecode.opcodes import Op

if TYPE_CHECKING:
    from qoqi.compiler.emit.function import FunctionEmitter

LIST_LEN = "List.len"
LIST_DROP = "List.drop"
LIST_TAKE = "List.take"
REQUEST_VALUE = "Request.value"
TO_JSON = "data.toJson"
FAIL = "fail"
SHOW = "data.show"


def to_json(fn: FunctionEmitter) -> None:
    """The value on top of the stack as `Json`."""
    fn.code.emit(Op.NATIVE, fn.tables.native(TO_JSON, 1), pops=1)


def without_ends(fn: FunctionEmitter, first: int, last: int) -> None:
    """The list on top of the stack without its `first` and its `last` items."""
    code, tables = fn.code, fn.tables
    if last:
        code.emit(Op.DUP)
        code.emit(Op.NATIVE, tables.native(LIST_LEN, 1), pops=1)
        code.emit(Op.INT, last)
        code.emit(Op.SUB)
        code.emit(Op.NATIVE, tables.native(LIST_TAKE, 2), pops=2)
    if first:
        code.emit(Op.INT, first)
        code.emit(Op.NATIVE, tables.native(LIST_DROP, 2), pops=2)
