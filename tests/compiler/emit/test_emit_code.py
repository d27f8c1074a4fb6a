"""The code of one function while it grows: labels, depths, what is left out."""

from __future__ import annotations

import pytest

from qoqi.compiler.emit.code import Code, Label
from qoqi.vm.bytecode.opcodes import Op


def names(code: Code) -> list[tuple[str, int]]:
    return [(Op(op).name, operand) for op, operand in code.finished()]


def test_jumps_get_the_pc_of_their_label() -> None:
    code, again, end = Code(), Label(), Label()
    code.mark(again)
    code.emit(Op.TRUE)
    code.jump(Op.JUMP_IF_FALSE, end)
    code.emit(Op.CLEAR, 0)
    code.jump(Op.JUMP, again)
    code.mark(end)
    code.emit(Op.UNIT)
    code.emit(Op.RETURN)
    assert names(code) == [
        ("TRUE", 0),
        ("JUMP_IF_FALSE", 4),
        ("CLEAR", 0),
        ("JUMP", 0),
        ("UNIT", 0),
        ("RETURN", 0),
    ]


def test_nothing_is_written_after_the_end() -> None:
    code, never = Code(), Label()
    code.emit(Op.UNIT)
    code.emit(Op.RETURN)
    code.emit(Op.TRUE)
    code.jump(Op.JUMP, never)
    code.mark(never)
    code.emit(Op.FALSE)
    assert names(code) == [("UNIT", 0), ("RETURN", 0)]
    assert not code.reachable


def test_a_jump_to_the_next_instruction_is_dropped() -> None:
    code, end = Code(), Label()
    code.emit(Op.UNIT)
    code.jump(Op.JUMP, end)
    code.mark(end)
    code.emit(Op.RETURN)
    assert names(code) == [("UNIT", 0), ("RETURN", 0)]


def test_a_jump_that_another_label_follows_stays() -> None:
    code, other, end = Code(), Label(), Label()
    code.emit(Op.TRUE)
    code.jump(Op.JUMP_IF_FALSE, other)
    code.jump(Op.JUMP, end)
    code.mark(other)
    code.mark(end)
    code.emit(Op.UNIT)
    code.emit(Op.RETURN)
    assert names(code)[1:3] == [("JUMP_IF_FALSE", 3), ("JUMP", 3)]


def test_a_jump_to_a_jump_leads_to_where_that_goes() -> None:
    code, first, second = Code(), Label(), Label()
    code.emit(Op.TRUE)
    code.jump(Op.JUMP_IF_TRUE, first)
    code.emit(Op.UNIT)
    code.emit(Op.RETURN)
    code.mark(first)
    code.jump(Op.JUMP, second)
    other = Label()
    code.mark(other)
    code.mark(second)
    code.emit(Op.UNIT)
    code.emit(Op.RETURN)
    assert names(code)[1] == ("JUMP_IF_TRUE", 5)
    assert names(code)[4] == ("JUMP", 5)


def test_two_depths_at_one_label_are_a_mistake() -> None:
    code, end = Code(), Label()
    code.emit(Op.TRUE)
    code.jump(Op.JUMP_IF_TRUE, end)
    code.emit(Op.UNIT)
    with pytest.raises(AssertionError):
        code.jump(Op.JUMP, end)


def test_leaving_drops_what_lies_above() -> None:
    code = Code()
    code.emit(Op.UNIT)
    code.emit(Op.UNIT)
    code.emit(Op.UNIT)
    code.drop_to(1)
    assert names(code)[3:] == [("POP", 0), ("POP", 0)]
    assert code.depth == 1


def test_temporaries_are_used_again() -> None:
    code = Code()
    named = code.slot("x")
    first = code.temporary()
    code.release(first)
    assert code.temporary() == first
    assert code.temporary() not in (named, first)
    walk = code.walk()
    code.release_walk(walk)
    assert code.walk() == walk
    assert code.slot_names[:1] == ["x"]


def test_lines_are_noted_where_they_change() -> None:
    code = Code()
    for line in (3, 3, 5, 3):
        code.line = line
        code.emit(Op.UNIT)
    assert code.lines == [(0, 3), (2, 5), (3, 3)]
