"""Whether what was asked before is what is asked now, where no type says how to read the old JSON.

A step's arguments have types in its version, so they are decoded and compared. What an operation
is given (the arguments of a start, a message) has the types of another flow. There the value of now
leads: its old JSON is read along it, and a field that the old JSON lacks has its default, as in
every reading.
"""

from __future__ import annotations

from collections.abc import Sequence

from qoqi.vm.bytecode.chunk import NO_FUNCTION, FieldDef
from qoqi.vm.jsonform import Default, to_json
from qoqi.vm.values import SetValue, Struct, TermValue, Variant


def same(kept: object, value: object, default: Default) -> bool:
    """Whether the old JSON reads as this value; `default` gives the default of a field."""
    match value:
        case TermValue():
            return True  # a type is no part of a question, and its number is the version's own
        case Struct(type=info, fields=fields):
            assert info.fields is not None
            return _same_fields(kept, info.fields, fields, default)
        case Variant():
            return _same_variant(kept, value, default)
        case list() | tuple() if value != ():
            return _same_items(kept, value, default)
        case SetValue(items=items):
            return _same_items(kept, [*items], default)
        case dict() if isinstance(kept, dict):
            new = to_json(value)
            if not isinstance(new, dict) or kept.keys() != new.keys():
                return False
            values = zip(new, value.values(), strict=True)
            return all(same(kept[word], item, default) for word, item in values)
        case dict():
            pairs = [[key, item] for key, item in value.items()]
            return kept == [] if not pairs else _same_items(kept, pairs, default)
        case _:
            return bool(kept == to_json(value))


def _same_items(kept: object, values: Sequence[object], default: Default) -> bool:
    if not isinstance(kept, list) or len(kept) != len(values):
        return False
    return all(same(old, value, default) for old, value in zip(kept, values, strict=True))


def _same_variant(kept: object, value: Variant, default: Default) -> bool:
    name = value.type.name
    if name == "Option":
        return same(kept, value.payload[0], default) if value.payload else kept is None
    definition = value.type.variants[value.index]
    if name == "Json" or not value.payload:
        return bool(kept == to_json(value))
    if not isinstance(kept, dict) or list(kept) != [definition.json_name]:
        return False
    held = kept[definition.json_name]
    if name in ("Result", "Settled"):
        return same(held, value.payload[0], default)
    return _same_fields(held, definition.fields, value.payload, default)


def _same_fields(
    kept: object, fields: Sequence[FieldDef], values: Sequence[object], default: Default
) -> bool:
    if not isinstance(kept, dict):
        return False
    for field, value in zip(fields, values, strict=True):
        if field.json_name in kept:
            if not same(kept[field.json_name], value, default):
                return False
        elif field.default != NO_FUNCTION:
            if default(field.default) != value:
                return False
        elif not (isinstance(value, Variant) and value.type.name == "Option" and not value.payload):
            return False
    return True
