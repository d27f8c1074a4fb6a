"""Places: reading and changing a part of a variable, copying only what somebody else can see.

A place is a slot, then steps: a struct's field, a tuple's item, an index. Values never change, so a
change copies every container on the way; a container that provably nobody else refers to is changed
where it is instead, which makes appending in a loop amortised O(1).

The proof is CPython's reference count. A container reached by `holder[key]` is referred to by its
holder and, for the moment of the question, by the question itself: `ALONE`, measured below. Each
further reference, wherever it is (another variable, an operand stack, a constant, a closure, a
message, another container, a local of the interpreter) counts one more, and then it is copied. A
count can only be too high, never too low, so the worst that can happen is one copy more.
Copying a container gives each of its parts a second holder, so everything below is copied too.

A tuple on the way is a list while its part changes and is a tuple again afterwards, also when the
change fails.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import Any, Final

from qoqi.vm.failure import FlowError
from qoqi.vm.values import SetValue, Struct

Steps = tuple[tuple[str, int], ...]
Mutator = Callable[..., "tuple[object, object]"]

_HOLDER: Final[list[list[object]]] = [[]]
ALONE: Final = getrefcount(_HOLDER[0])

# A holder is a list or a dict, a key its index or key: `Any` because both are indexed alike.


def missing(container: object, key: object) -> FlowError:
    if isinstance(container, list):
        return FlowError("R0002", f"index {key} is outside a list of {len(container)}")
    return FlowError("R0002", f"the map has no key {key!r}" if _short(key) else "no such key")


def _short(key: object) -> bool:
    return isinstance(key, (str, int)) and len(str(key)) <= 60


def index(container: Any, key: Any) -> object:
    """`container[key]`; R0002 where there is nothing."""
    if container.__class__ is list:
        if 0 <= key < len(container):
            return container[key]
    elif container.__class__ is dict:
        if key in container:
            return container[key]
    else:
        raise TypeError(f"{container.__class__.__name__} has no index")
    raise missing(container, key)


def read(holder: Any, root: int, steps: Steps, slots: list[object]) -> object:
    """What the place has."""
    value: Any = holder[root]
    for kind, number in steps:
        if kind == "field":
            value = value.fields[number]
        elif kind == "item":
            value = value[number]
        else:
            value = index(value, slots[number])
    return value


def write(holder: Any, root: int, steps: Steps, slots: list[object], value: object) -> None:
    """Puts `value` into the place; a last index may insert a key."""
    opened: list[tuple[Any, Any]] = []
    try:
        holder, key = _reach(holder, root, steps, slots, opened)
        if holder.__class__ is list and not 0 <= key < len(holder):
            raise missing(holder, key)
        holder[key] = value
    finally:
        _close(opened)


def mutate(
    holder: Any,
    root: int,
    steps: Steps,
    slots: list[object],
    native: Mutator,
    args: list[object],
) -> object:
    """Gives the native the place's value, its own to change, then `args`; keeps the new value."""
    if not steps:
        _own(holder, root)
        result, holder[root] = native(holder[root], *args)
        return result
    opened: list[tuple[Any, Any]] = []
    try:
        holder, key = _reach(holder, root, steps, slots, opened)
        _require(holder, key)
        _own(holder, key)
        result, holder[key] = native(holder[key], *args)
    finally:
        _close(opened)
    return result


def _reach(
    holder: Any, root: int, steps: Steps, slots: list[object], opened: list[tuple[Any, Any]]
) -> tuple[Any, Any]:
    """The last container of the place and the key in it; everything on the way is owned."""
    key: Any = root
    for kind, number in steps:
        _require(holder, key)
        if kind == "item":
            holder[key] = [*holder[key]]
            opened.append((holder, key))
            holder = holder[key]
            key = number
            continue
        _own(holder, key)
        holder = holder[key]
        if kind == "field":
            holder = holder.fields
            key = number
        else:
            key = slots[number]
    return holder, key


def _require(holder: Any, key: Any) -> None:
    if holder.__class__ is dict:
        if key not in holder:
            raise missing(holder, key)
    elif not 0 <= key < len(holder):
        raise missing(holder, key)


def _close(opened: list[tuple[Any, Any]]) -> None:
    for holder, key in reversed(opened):
        holder[key] = tuple(holder[key])


def _own(holder: Any, key: Any) -> None:
    """Makes what `holder[key]` has the holder's alone, by a copy if need be."""
    if getrefcount(holder[key]) <= ALONE:
        return
    value = holder[key]
    if value.__class__ is list:
        holder[key] = value[:]
    elif value.__class__ is dict:
        holder[key] = value.copy()
    elif value.__class__ is Struct:
        holder[key] = Struct(value.type, value.fields[:])
    elif value.__class__ is SetValue:
        holder[key] = SetValue(value.items.copy())
