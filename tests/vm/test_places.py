"""Places: changes in place are never seen by anyone else, and missing steps are R0002.

The property test runs random programs of copies and changes twice: on the machine's places and on a
model where every copy is a deep one. All variables must be equal after every operation, whatever
else held the values: other variables, constants, closures, tuples, parts of other values.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qoqi.vm import places
from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.natives import mutator
from qoqi.vm.types import Types
from qoqi.vm.values import Closure, SetValue, Struct
from tests.vm.sample import BOX
from tests.vm.strategies import INFO

CONTEXT = Context(Types(()), lambda number: number)
APPEND = mutator("List.append", 1, CONTEXT)
ADD = mutator("Set.add", 1, CONTEXT)
REMOVE = mutator("List.remove", 1, CONTEXT)

VARIABLES = 4
KEYS = 4  # slots VARIABLES to VARIABLES + KEYS hold 0, 1, "a", "b"
INDEXES: list[object] = [0, 1, "a", "b"]


def struct(held: object, more: object) -> Struct:
    return Struct(INFO[BOX], [held, more])


def same(value: Any) -> Any:
    """A deep copy; types are compared by identity and stay."""
    if isinstance(value, list):
        return [same(item) for item in value]
    if isinstance(value, tuple):
        return tuple(same(item) for item in value)
    if isinstance(value, dict):
        return {key: same(item) for key, item in value.items()}
    if isinstance(value, Struct):
        return Struct(value.type, same(value.fields))
    if isinstance(value, SetValue):
        return SetValue(dict(value.items))
    return copy.copy(value)


TREES = st.recursive(
    st.integers(0, 3),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
        st.tuples(inner, inner),
        st.builds(struct, inner, inner),
        st.sets(st.integers(0, 3)).map(lambda it: SetValue(dict.fromkeys(sorted(it)))),
    ),
    max_leaves=6,
)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("field"), st.integers(0, 1)),
        st.tuples(st.just("item"), st.integers(0, 1)),
        st.tuples(st.just("slot"), st.integers(VARIABLES, VARIABLES + KEYS - 1)),
    ),
    max_size=3,
).map(tuple)

VARIABLE = st.integers(0, VARIABLES - 1)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("copy"), VARIABLE, VARIABLE),
        st.tuples(st.just("pair"), VARIABLE, VARIABLE),
        st.tuples(st.just("twice"), VARIABLE, VARIABLE),
        st.tuples(st.just("constant"), VARIABLE, st.integers(0, 1)),
        st.tuples(st.just("capture"), VARIABLE),
        st.tuples(st.just("write"), VARIABLE, STEPS, VARIABLE),
        st.tuples(st.just("read"), VARIABLE, STEPS, VARIABLE),
        st.tuples(st.just("append"), VARIABLE, STEPS, VARIABLE),
        st.tuples(st.just("add"), VARIABLE, STEPS),
        st.tuples(st.just("remove"), VARIABLE, STEPS),
    ),
    max_size=14,
)


class Deep:
    """The model: every assignment is a deep copy, every change is plain."""

    def __init__(self, initial: list[Any]) -> None:
        self.slots = [*same(initial), *INDEXES]

    def walk(self, root: int, steps: Any) -> Any:
        value = self.slots[root]
        for kind, number in steps:
            if kind == "slot":
                value = places.index(value, self.slots[number])
            else:
                value = value.fields[number] if kind == "field" else value[number]
        return value

    def put(self, root: int, steps: Any, new: Any) -> None:
        def rebuilt(value: Any, rest: Any) -> Any:
            if not rest:
                return same(new)
            (kind, number), rest = rest[0], rest[1:]
            if kind == "item":
                items = list(value)
                items[number] = rebuilt(items[number], rest)
                return tuple(items)
            if kind == "field":
                value.fields[number] = rebuilt(value.fields[number], rest)
                return value
            key = self.slots[number]
            if isinstance(value, list) or rest:
                places.index(value, key)
            value[key] = rebuilt(value[key], rest) if rest else same(new)
            return value

        self.slots[root] = rebuilt(self.slots[root], tuple(steps))


def usable(value: Any, steps: Any, slots: list[Any]) -> bool:
    """Whether the checker would let such steps pass for a value of this shape."""
    for kind, number in steps:
        if kind == "field":
            if not isinstance(value, Struct):
                return False
            value = value.fields[number]
        elif kind == "item":
            if not isinstance(value, tuple):
                return False
            value = value[number]
        else:
            key = slots[number]
            if not isinstance(value, dict if isinstance(key, str) else list):
                return False
            try:
                value = places.index(value, key)
            except FlowError:
                return False
    return True


@given(st.lists(TREES, min_size=VARIABLES, max_size=VARIABLES), OPERATIONS)
@settings(max_examples=600, deadline=None)
def test_nobody_sees_a_change_but_its_variable(initial: list[Any], operations: Any) -> None:
    model = Deep(initial)
    constants = [[1, [2]], {"a": [3]}]
    captured: list[Closure] = []
    frozen: list[Any] = []
    slots: list[Any] = [*same(initial), *INDEXES]
    for operation, *rest in operations:
        match operation:
            case "copy":
                slots[rest[0]] = slots[rest[1]]
                model.slots[rest[0]] = same(model.slots[rest[1]])
            case "pair":
                slots[rest[0]] = (slots[rest[1]], slots[rest[0]])
                model.slots[rest[0]] = same((model.slots[rest[1]], model.slots[rest[0]]))
            case "twice":
                slots[rest[0]] = [slots[rest[1]], slots[rest[1]]]
                model.slots[rest[0]] = same([model.slots[rest[1]], model.slots[rest[1]]])
            case "constant":
                slots[rest[0]] = constants[rest[1]]
                model.slots[rest[0]] = same([[1, [2]], {"a": [3]}][rest[1]])
            case "capture":
                captured.append(Closure(0, (slots[rest[0]],)))
                frozen.append(same(slots[rest[0]]))
            case "write":
                root, steps, source = rest
                if usable(slots[root], steps, slots):
                    places.write(slots, root, steps, slots, slots[source])
                    model.put(root, steps, same(model.slots[source]))
            case "read":
                root, steps, target = rest
                if usable(slots[root], steps, slots):
                    slots[target] = places.read(slots, root, steps, slots)
                    model.slots[target] = same(model.walk(root, steps))
            case "append" | "add" | "remove":
                change(operation, rest, slots, model)
        assert slots == model.slots
    assert [closure.captured[0] for closure in captured] == frozen
    assert constants == [[1, [2]], {"a": [3]}]


def change(operation: str, rest: list[Any], slots: list[Any], model: Deep) -> None:
    root, steps = rest[0], rest[1]
    if not usable(slots[root], steps, slots):
        return
    kind = SetValue if operation == "add" else list
    if not isinstance(model.walk(root, steps), kind):
        return
    if operation == "append":
        places.mutate(slots, root, steps, slots, APPEND, [slots[rest[2]]])
        model.put(root, steps, [*model.walk(root, steps), same(model.slots[rest[2]])])
    elif operation == "add":
        places.mutate(slots, root, steps, slots, ADD, [9])
        model.put(root, steps, SetValue({**model.walk(root, steps).items, 9: None}))
    elif model.walk(root, steps):
        removed = places.mutate(slots, root, steps, slots, REMOVE, [0])
        assert removed == model.walk(root, steps)[0]
        model.put(root, steps, model.walk(root, steps)[1:])


def test_a_value_alone_is_changed_where_it_is() -> None:
    slots: list[Any] = [struct([[1], [2]], 0)]
    before = (id(slots[0]), id(slots[0].fields[0]), id(slots[0].fields[0][1]))
    slots.append(1)
    places.mutate(slots, 0, (("field", 0), ("slot", 1)), slots, APPEND, [3])
    assert slots[0] == struct([[1], [2, 3]], 0)
    assert (id(slots[0]), id(slots[0].fields[0]), id(slots[0].fields[0][1])) == before


def test_a_part_alone_in_a_tuple_is_changed_where_it_is() -> None:
    slots: list[Any] = [([1], 0)]
    before = id(slots[0][0])
    places.mutate(slots, 0, (("item", 0),), slots, APPEND, [2])
    assert slots == [([1, 2], 0)]
    assert id(slots[0][0]) == before


def test_a_shared_value_is_copied_once() -> None:
    held = [1]
    slots: list[Any] = [held]
    places.mutate(slots, 0, (), slots, APPEND, [2])
    owned = id(slots[0])
    places.mutate(slots, 0, (), slots, APPEND, [3])
    assert (slots, held) == ([[1, 2, 3]], [1])
    assert id(slots[0]) == owned


@pytest.mark.parametrize(
    ("value", "steps"),
    [
        ([[1]], (("slot", 1), ("slot", 1))),
        ({"a": 1}, (("slot", 2), ("slot", 2))),
        ([1], (("slot", 1),)),
    ],
)
def test_a_missing_step_is_r0002_and_changes_nothing(value: Any, steps: Any) -> None:
    slots: list[Any] = [(value, 0), 1, "b"]
    kept = same(slots)
    with pytest.raises(FlowError) as caught:
        places.write(slots, 0, (("item", 0), *steps), slots, 5)
    assert caught.value.code == "R0002"
    assert slots == kept


def test_a_native_that_fails_changes_nothing() -> None:
    slots: list[Any] = [([1], 0)]
    with pytest.raises(FlowError):
        places.mutate(slots, 0, (("item", 0),), slots, REMOVE, [5])
    assert slots == [([1], 0)]


def test_a_last_index_inserts_a_key() -> None:
    slots: list[Any] = [{"a": 1}, "b"]
    places.write(slots, 0, (("slot", 1),), slots, 2)
    assert slots[0] == {"a": 1, "b": 2}
