"""Natives of Json and of all data: `toJson`, `decode`, `json.parse`, `show`; and `fail`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.jsonform import display, from_json, json_value, parse_json, to_json, value_text
from qoqi.vm.notation import notation
from qoqi.vm.values import RequestValue, TermValue, Variant

_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d{1,9})\]|\[\"([^\"]*)\"\]")


def data_to_json(context: Context, value: Any) -> Variant:
    if isinstance(value, Variant) and value.type is context.types.json:
        return value
    return json_value(to_json(value), context.types)


def data_decode(context: Context, json: Variant, term: TermValue) -> object:
    return from_json(to_json(json), term, context.types, context.default)


def data_try_decode(context: Context, json: Variant, term: TermValue) -> Variant:
    try:
        return context.types.ok(data_decode(context, json, term))
    except FlowError as error:
        if error.code != "R0004":
            raise
        return context.types.err(error.message)


def json_parse(context: Context, text: str) -> Variant:
    return json_value(parse_json(text), context.types)


def json_try_parse(context: Context, text: str) -> Variant:
    try:
        return context.types.ok(json_parse(context, text))
    except FlowError as error:
        return context.types.err(error.message)


def _member(json: Variant, name: str) -> Variant | None:
    held = json.payload[0] if json.payload else None
    return held.get(name) if isinstance(held, dict) else None


def _item(json: Variant, at: int) -> Variant | None:
    held = json.payload[0] if json.payload else None
    return held[at] if isinstance(held, list) and 0 <= at < len(held) else None


def json_get(context: Context, json: Variant, name: str) -> Variant:
    return context.types.option_of(_member(json, name))


def json_item(context: Context, json: Variant, at: int) -> Variant:
    return context.types.option_of(_item(json, at))


def json_at(context: Context, json: Variant, path: str) -> Variant:
    """What stands at a path like `rows[3].ts`; None where there is nothing."""
    found: Variant | None = json
    at = 0
    while at < len(path) and found is not None:
        step = _STEP.match(path, at)
        if step is None:
            raise FlowError("R0004", f"no path into JSON: {path[:60]}")
        name = step[1] if step[1] is not None else step[3]
        found = _item(found, int(step[2])) if name is None else _member(found, name)
        at = step.end()
    return context.types.option_of(found)


def fail(message: str) -> object:
    raise FlowError("R0001", message)


def request_value(request: RequestValue) -> object:
    return request.value


PURE: Final[dict[str, Callable[..., Any]]] = {
    "fail": fail,
    "data.show": notation,
    "Request.value": request_value,
    "data.display": display,
    "data.text": value_text,
    "json.text": value_text,
    "Json.text": value_text,
    "Json.toText": value_text,
}

TYPED: Final[dict[str, Callable[..., Any]]] = {
    "data.toJson": data_to_json,
    "data.decode": data_decode,
    "data.tryDecode": data_try_decode,
    "Data.toJson": data_to_json,
    "Json.decode": data_decode,
    "Json.tryDecode": data_try_decode,
    "Json.get": json_get,
    "Json.item": json_item,
    "Json.at": json_at,
    "json.parse": json_parse,
    "json.tryParse": json_try_parse,
}
