"""Our `dataclass` does what the standard library's does, and nothing before it is needed."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)


@dataclass(slots=True)
class Counter:
    count: int

    def __post_init__(self) -> None:
        self.count += 1


@dataclass(slots=True, order=True, unsafe_hash=True)
class Length:
    ms: int


@dataclass(slots=True, eq=False)
class Same:
    name: str


@dataclass(slots=True)
class Own:
    name: str

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "own"


@dataclass(frozen=True, slots=True)
class Empty:
    pass


def test_fields_are_taken_by_position_and_name_with_their_defaults() -> None:
    assert (Point(1).x, Point(1).y, Point(1).tags, Point(1).note) == (1, 0, [], "")
    assert Point(1, 2, ["a"], "n") == Point(x=1, y=2, tags=["a"], note="n")
    assert Point(1).tags is not Point(1).tags
    assert isinstance(Empty(), Empty)


def test_what_does_not_fit_is_refused_as_by_any_function() -> None:
    for _ in range(2):  # The first call writes `__init__`, the second runs it.
        with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required.*'x'"):
            Point()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
            Point(1, z=2)  # type: ignore[call-arg]


def test_equality_is_of_one_class_and_of_compared_fields() -> None:
    assert Point(1, note="a") == Point(1, note="b")
    assert Point(1) != Point(2)
    assert Length(1) != Same("a")  # type: ignore[comparison-overlap]
    assert Same("a") != Same("a")
    assert Empty() == Empty()


def test_a_hash_is_there_where_equality_lasts() -> None:
    assert hash(Length(5)) == hash(Length(5)) == hash((5,))
    assert len({Empty(), Empty()}) == 1
    assert hash(Own("a")) == 7
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter(1))
    assert len({Same("a"), Same("a")}) == 2


def test_order_is_that_of_the_fields() -> None:
    assert Length(1) < Length(2) <= Length(2) < Length(3)
    assert Length(3) > Length(2) >= Length(2)
    with pytest.raises(TypeError):
        assert Length(1) < 2  # type: ignore[operator]


def test_it_is_shown_with_its_fields_unless_it_shows_itself() -> None:
    assert repr(Point(1, 2, ["a"], "hidden")) == "Point(x=1, y=2, tags=['a'])"
    assert repr(Own("a")) == "own"
    assert repr(Empty()) == "Empty()"


def test_frozen_ones_cannot_be_assigned_to() -> None:
    point = Point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert point.x == 1


def test_others_can_and_have_slots_only() -> None:
    counter = Counter(1)
    counter.count = 9
    assert counter.count == 9
    with pytest.raises(AttributeError):
        counter.other = 1  # type: ignore[attr-defined]


def test_post_init_runs_at_every_instance() -> None:
    assert [Counter(1).count, Counter(2).count] == [2, 3]


def test_the_standard_library_knows_them() -> None:
    assert dataclasses.is_dataclass(Point)
    assert [each.name for each in fields(Point)] == ["x", "y", "tags", "note"]
    assert replace(Point(1, 2), x=5) == Point(5, 2)
    assert dataclasses.asdict(Length(4)) == {"ms": 4}
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_they_can_be_copied(copied: Callable[[Any], Any]) -> None:
    point = Point(1, 2, ["a"], "n")
    other = copied(point)
    assert other == point
    assert other.note == "n"
    assert other is not point


def test_without_words_a_class_names_its_fields() -> None:
    assert Point.__doc__ == "A place."
    assert Length.__doc__ == "Length(ms)"


def test_methods_are_written_when_they_are_first_called() -> None:
    @dataclass(frozen=True, slots=True)
    class Late:
        x: int

    before = Late.__eq__
    late = Late(1)
    assert late == Late(1)
    assert Late.__eq__ is not before
    assert before(late, Late(1)), "one that was taken before still works"
    assert late.__init__.__qualname__.endswith("Late.__init__")  # type: ignore[misc]


def without_slots() -> None:
    @dataclass(slots=False)
    class Open:
        x: int


def by_keyword_only() -> None:
    @dataclass(slots=True)
    class Named:
        x: int = field(kw_only=True)


def not_taken() -> None:
    @dataclass(slots=True)
    class Hidden:
        x: int = field(default=0, init=False)


@pytest.mark.parametrize("make", [without_slots, by_keyword_only, not_taken])
def test_what_no_class_here_needs_is_refused_where_it_is_made(make: Callable[[], None]) -> None:
    with pytest.raises(TypeError, match=r"has no slots|is no argument by its position"):
        make()


Theirs = dataclasses.make_dataclass(
    "Point",
    [
        ("x", int),
        ("y", int, 0),
        ("tags", list, field(default_factory=list)),
        ("note", str, field(default="", compare=False, repr=False)),
    ],
    frozen=True,
    slots=True,
)
POINTS = st.tuples(st.integers(), st.integers(0, 2), st.lists(st.text(max_size=2)), st.text())


@given(POINTS, POINTS)
def test_it_agrees_with_the_standard_library(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert (Point(*one) == Point(*other)) == (Theirs(*one) == Theirs(*other))
    assert repr(Point(*one)) == repr(Theirs(*one))
    assert dataclasses.astuple(Point(*one)) == dataclasses.astuple(Theirs(*one))
