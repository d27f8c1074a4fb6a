"""Positions: every encoding, every line end of the protocol, and none that is not one."""

from __future__ import annotations

import pytest

from qoqi.compiler.source import Span
from qoqi.lsp.text import Encoding, Text

U8, U16, U32 = Encoding.UTF8, Encoding.UTF16, Encoding.UTF32


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("", [0]),
        ("a", [0]),
        ("a\n", [0, 2]),
        ("a\r\nb", [0, 3]),
        ("a\rb\r\nc\nd", [0, 2, 5, 7]),
        ("a\r\r\nb", [0, 2, 4]),
        ("a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg", [0]),
    ],
)
def test_lines_end_where_the_protocol_says(text: str, starts: list[int]) -> None:
    assert Text(text).starts == starts


@pytest.mark.parametrize(
    ("encoding", "column"),
    [(U8, 1 + 2 + 3 + 4), (U16, 1 + 1 + 1 + 2), (U32, 4)],
)
def test_a_column_counts_units_of_the_encoding(encoding: Encoding, column: int) -> None:
    text = Text("x\naé€😀b")

    assert text.position(6, encoding) == (1, column)
    assert text.offset((1, column), encoding) == 6


@pytest.mark.parametrize("encoding", list(Encoding))
def test_positions_lead_back_to_their_offsets(encoding: Encoding) -> None:
    text = Text('let a = "😀é"\r\n\tb\u2028c\rd\n\n')
    inside = [
        at for at in range(len(text.value) + 1) if text.value[at - 1 : at + 1] != "\r\n" or at == 0
    ]

    for at in inside:
        assert text.offset(text.position(at, encoding), encoding) == at


@pytest.mark.parametrize(
    ("position", "offset"),
    [((0, 99), 2), ((1, 99), 5), ((9, 0), 5), ((-1, 0), 0), ((0, -3), 0)],
)
def test_a_position_outside_is_the_nearest_inside(position: tuple[int, int], offset: int) -> None:
    assert Text("ab\ncd").offset(position, U16) == offset


def test_the_middle_of_a_pair_is_the_place_behind_it() -> None:
    assert Text("😀b").offset((0, 1), U16) == 1
    assert Text("é").offset((0, 1), U8) == 1


def test_a_change_replaces_a_range() -> None:
    text = Text("a😀b\r\ncd")

    after = text.changed(((0, 3), (1, 1)), "X", U16)

    assert after.value == "a😀Xd"


def test_a_change_without_a_range_is_the_whole_text() -> None:
    assert Text("old").changed(None, "new", U8).value == "new"


def test_a_span_over_lines() -> None:
    assert Text("ab\ncd\n").range(Span(1, 4), U16) == ((0, 1), (1, 1))
