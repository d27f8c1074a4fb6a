"""Natives of List, Map, Set and Range. What takes a closure is written in flow over these."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import display
from qoqi.vm.places import missing
from qoqi.vm.values import (
    LIST_LIMIT,
    RangeValue,
    SetValue,
    Variant,
    checked_float,
    checked_int,
    checked_list,
    checked_text,
)

# The checker knows the types of arguments; here a value of any of its types is `Any`.
Items = list[Any]


def _position(at: int, size: int) -> None:
    if not 0 <= at < size:
        raise FlowError("R0002", f"index {at} is outside a list of {size}")


def _count(number: int) -> int:
    return max(number, 0)


# --- List -------------------------------------------------------------------------------------


def list_append(_: Context, items: Items, item: Any) -> tuple[Any, Items]:
    items.append(item)
    return (), items


def list_insert(_: Context, items: Items, at: int, item: Any) -> tuple[Any, Items]:
    if not 0 <= at <= len(items):
        raise FlowError("R0002", f"index {at} is outside a list of {len(items)}")
    items.insert(at, item)
    return (), items


def list_remove(_: Context, items: Items, at: int) -> tuple[Any, Items]:
    _position(at, len(items))
    return items.pop(at), items


def list_clear(_: Context, items: Items) -> tuple[Any, Items]:
    return (), []


def list_get(context: Context, items: Items, at: int) -> Variant:
    return context.types.some(items[at]) if 0 <= at < len(items) else context.types.none()


def list_concat(items: Items, others: Items) -> Items:
    return checked_list(items + others)


def list_first(context: Context, items: Items) -> Variant:
    return context.types.some(items[0]) if items else context.types.none()


def list_last(context: Context, items: Items) -> Variant:
    return context.types.some(items[-1]) if items else context.types.none()


def list_min(context: Context, items: Items) -> Variant:
    return context.types.some(min(items)) if items else context.types.none()


def list_max(context: Context, items: Items) -> Variant:
    return context.types.some(max(items)) if items else context.types.none()


def list_index_of(context: Context, items: Items, item: Any) -> Variant:
    return context.types.some(items.index(item)) if item in items else context.types.none()


def list_sum(items: Items, zero: Any = 0) -> Any:
    """`zero`, which is the sum of nothing, then the items; an Int 0 is the zero of any type."""
    if not items:
        return zero
    total = items[0] if zero == 0 else zero + items[0]
    for item in items[1:]:
        total = total + item
    if isinstance(total, int):
        return checked_int(total)
    return checked_float(total) if isinstance(total, float) else total


def list_sorted_by_keys(items: Items, keys: Items, descending: bool = False) -> Items:
    """The items by their keys, equal ones as they stood."""
    order = sorted(range(len(items)), key=keys.__getitem__, reverse=descending)
    return [items[at] for at in order]


def list_grouped_by_keys(items: Items, keys: Items) -> dict[Any, Items]:
    groups: dict[Any, Items] = {}
    for item, key in zip(items, keys, strict=True):
        groups.setdefault(key, []).append(item)
    return groups


def list_unique(items: Items) -> Items:
    try:
        return list(dict.fromkeys(items))
    except TypeError:  # structs with lists have no hash
        found: Items = []
        for item in items:
            if item not in found:
                found.append(item)
        return found


def list_chunks(items: Items, size: int) -> Items:
    if size < 1:
        raise FlowError("R0001", f"chunks of {size} items")
    return [items[at : at + size] for at in range(0, len(items), size)]


def list_slice(items: Items, start: int, end: int) -> Items:
    return items[_count(start) : _count(end)]


# --- Map --------------------------------------------------------------------------------------


def map_get(context: Context, entries: dict[Any, Any], key: Any) -> Variant:
    return context.types.some(entries[key]) if key in entries else context.types.none()


def map_remove(context: Context, entries: dict[Any, Any], key: Any) -> tuple[Any, Any]:
    if key not in entries:
        return context.types.none(), entries
    return context.types.some(entries.pop(key)), entries


def map_set(_: Context, entries: dict[Any, Any], key: Any, value: Any) -> tuple[Any, Any]:
    entries[key] = value
    return (), entries


def map_from(keys: Items, values: Items) -> dict[Any, Any]:
    return dict(zip(keys, values, strict=True))


def map_at(entries: dict[Any, Any], key: Any) -> Any:
    if key not in entries:
        raise missing(entries, key)
    return entries[key]


# --- Set and Range ----------------------------------------------------------------------------


def _set(items: Any) -> SetValue:
    return SetValue(dict.fromkeys(items))


def set_add(_: Context, members: SetValue, item: Any) -> tuple[Any, SetValue]:
    new = item not in members.items
    members.items[item] = None
    return new, members


def set_remove(_: Context, members: SetValue, item: Any) -> tuple[Any, SetValue]:
    if item not in members.items:
        return False, members
    del members.items[item]
    return True, members


def range_to_list(span: RangeValue) -> Items:
    low, high = span.low, span.high
    assert isinstance(low, int)
    assert isinstance(high, int)
    if high - low > LIST_LIMIT:
        raise FlowError("R0008", f"a List of more than {LIST_LIMIT:,} items")
    return list(range(low, high + 1 if span.inclusive else high))


PURE: Final[dict[str, Callable[..., Any]]] = {
    "List.len": len,
    "List.isEmpty": lambda items: not items,
    "List.concat": list_concat,
    "List.take": lambda items, count: items[: _count(count)],
    "List.drop": lambda items, count: items[_count(count) :],
    "List.takeLast": lambda items, count: items[-count:] if count > 0 else [],
    "List.dropLast": lambda items, count: items[: max(len(items) - _count(count), 0)],
    "List.slice": list_slice,
    "List.reversed": lambda items: items[::-1],
    "List.contains": lambda items, item: item in items,
    "List.join": lambda items, separator="": checked_text(
        separator.join([display(item) for item in items])
    ),
    "List.toSet": _set,
    "List.unique": list_unique,
    "List.sorted": lambda items: sorted(items),
    "List.sortedByKeys": list_sorted_by_keys,
    "List.groupedByKeys": list_grouped_by_keys,
    "List.sum": list_sum,
    "List.zip": lambda items, others: list(zip(items, others, strict=False)),
    "List.enumerate": lambda items: list(enumerate(items)),
    "List.chunks": list_chunks,
    "List.flatten": lambda lists: checked_list(list(chain.from_iterable(lists))),
    "Map.len": len,
    "Map.isEmpty": lambda entries: not entries,
    "Map.keys": lambda entries: list(entries),
    "Map.values": lambda entries: list(entries.values()),
    "Map.entries": lambda entries: list(entries.items()),
    "Map.contains": lambda entries, key: key in entries,
    "Map.merge": lambda entries, others: {**entries, **others},
    "Map.from": map_from,
    "Map.at": map_at,
    "Set.len": lambda members: len(members.items),
    "Set.isEmpty": lambda members: not members.items,
    "Set.contains": lambda members, item: item in members.items,
    "Set.union": lambda members, others: SetValue(members.items | others.items),
    "Set.intersect": lambda members, others: _set(
        [item for item in members.items if item in others.items]
    ),
    "Set.minus": lambda members, others: _set(
        [item for item in members.items if item not in others.items]
    ),
    "Set.sorted": lambda members: sorted(members.items),
    "Set.toList": lambda members: list(members.items),
    "Range.contains": lambda span, item: item in span,
    "Range.toList": range_to_list,
    "Range.low": lambda span: span.low,
    "Range.high": lambda span: span.high,
    "min": lambda a, b: b if b < a else a,
    "max": lambda a, b: b if b > a else a,
}

TYPED: Final[dict[str, Callable[..., Any]]] = {
    "List.get": list_get,
    "List.first": list_first,
    "List.last": list_last,
    "List.min": list_min,
    "List.max": list_max,
    "List.indexOf": list_index_of,
    "Map.get": map_get,
}

MUTATING: Final[dict[str, Callable[..., tuple[Any, Any]]]] = {
    "List.append": list_append,
    "List.insert": list_insert,
    "List.remove": list_remove,
    "List.clear": list_clear,
    "Map.set": map_set,
    "Map.remove": map_remove,
    "Set.add": set_add,
    "Set.remove": set_remove,
}
