"""Near misses."""

from __future__ import annotations

import pytest

from qoqi.compiler.suggest import edit_distance, nearest


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("total", "total", 0),
        ("total", "totl", 1),
        ("total", "totall", 1),
        ("total", "tatal", 1),
        ("total", "toatl", 1),
        ("total", "amount", 3),
        ("", "ab", 2),
    ],
)
def test_distance_counts_up_to_a_limit(a: str, b: str, distance: int) -> None:
    assert edit_distance(a, b, 2) == distance


def test_the_nearest_comes_first_and_ties_by_the_alphabet() -> None:
    assert nearest("count", ["amount", "counts", "coumt", "Count", "total"]) == [
        "Count",
        "coumt",
        "counts",
    ]


def test_nothing_near_is_nothing() -> None:
    assert nearest("count", ["price", "name"]) == []
    assert nearest("", ["a"]) == []
    assert nearest("count", ["count"]) == []


def test_what_begins_so_is_near() -> None:
    assert nearest("desc", ["descending", "ascending"]) == ["descending"]
