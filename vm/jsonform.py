"""JSON: values to JSON and back, and JSON text that is the same on every machine.

`to_json` needs no type: a value knows its form (the JSON column of the language reference). What it
gives is Python data of str, int, bool, None, list, dict, float (a Float) and Decimal (a number of a
`Json`). `json_text` writes that compactly, keeps the order of keys, writes numbers exactly and
escapes lone surrogates, so the text is always UTF-8.

`from_json` reads JSON into a value of a type. A misfit is R0004 with the path of the part that does
not fit: `lines[2].cents: expected Int, found "x"`. A field JSON lacks takes its default, a field
`T?` without one has `None`; fields the type does not know are skipped. Numbers are read exactly
(`parse_json` makes them int or Decimal, never float).

Both ways nesting is bounded by `DEPTH_LIMIT`, and what is written by `LIST_LIMIT` parts: a value
may share parts, so a small one in memory can be huge as text.

An empty map with keys of another kind than String or a unit enum is written `{}`, and read so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation
from typing import Final

from qoqi.vm.bytecode.chunk import NO_FUNCTION, FieldDef, Term
from qoqi.vm.failure import FlowError
from qoqi.vm.text import (
    bytes_text,
    date_text,
    decimal_text,
    duration_text,
    exact_decimal,
    parse_bytes,
    parse_date,
    parse_decimal,
    parse_duration,
    parse_time,
    time_text,
)
from qoqi.vm.types import TypeInfo, Types
from qoqi.vm.values import (
    DEPTH_LIMIT,
    INT_DIGITS,
    LIST_LIMIT,
    Date,
    Duration,
    InstanceValue,
    RangeValue,
    SetValue,
    Struct,
    TermValue,
    Time,
    Variant,
)

Default = Callable[[int], object]
"""Gives the value of a default: a function of the chunk without parameters."""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


# --- values to JSON ---------------------------------------------------------------------------


def to_json(value: object) -> object:
    """The value as JSON data; R0008 if it is nested too deep or has too many parts."""
    try:
        return _write(value, DEPTH_LIMIT, [LIST_LIMIT])
    except RecursionError:  # called so deep in the host that there is no room for as many levels
        raise FlowError("R0008", f"a value nested deeper than {DEPTH_LIMIT} levels") from None


def _write(value: object, depth: int, left: list[int]) -> object:
    kind = value.__class__
    if kind is str or kind is int or kind is bool or kind is float:
        return value
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if depth <= 0:
        raise FlowError("R0008", f"a value nested deeper than {DEPTH_LIMIT} levels")
    if isinstance(value, (list, tuple)):
        if value == ():
            return None
        return _write_all(value, depth, left)
    if isinstance(value, Struct):
        assert value.type.fields is not None
        return _write_fields(value.type.fields, value.fields, depth, left)
    if isinstance(value, Variant):
        return _write_variant(value, depth, left)
    if isinstance(value, dict):
        _take(left, len(value))
        return _write_map(value, depth, left)
    if isinstance(value, SetValue):
        return _write_all(value.items, depth, left)
    if isinstance(value, RangeValue):
        low, high = _write_all((value.low, value.high), depth, left)
        return {"low": low, "high": high, "inclusive": value.inclusive}
    if isinstance(value, InstanceValue):
        return {"instance": value.name, "birth": value.birth}
    raise FlowError("R0004", f"a {kind.__name__.removesuffix('Value')} has no JSON form")


_SCALARS: Final[dict[type, Callable[..., object]]] = {
    Decimal: decimal_text,
    Duration: duration_text,
    Time: time_text,
    Date: date_text,
    bytes: bytes_text,
}


def _take(left: list[int], count: int) -> None:
    left[0] -= count
    if left[0] < 0:
        raise FlowError("R0008", f"a value of more than {LIST_LIMIT:,} parts")


def _write_all(items: Iterable[object], depth: int, left: list[int]) -> list[object]:
    written = [_write(item, depth - 1, left) for item in items]
    _take(left, len(written))
    return written


def _write_fields(
    fields: tuple[FieldDef, ...], values: Iterable[object], depth: int, left: list[int]
) -> dict[str, object]:
    _take(left, len(fields))
    return {
        field.json_name: _write(value, depth - 1, left)
        for field, value in zip(fields, values, strict=True)
    }


def _write_variant(value: Variant, depth: int, left: list[int]) -> object:
    name = value.type.name
    if name == "Option":
        return _write(value.payload[0], depth, left) if value.payload else None
    if name == "Json":
        return _write_json(value, depth, left)
    definition = value.type.variants[value.index]
    if not value.payload:
        return definition.json_name
    _take(left, 1)
    if name in ("Result", "Settled"):
        return {definition.json_name: _write(value.payload[0], depth - 1, left)}
    return {definition.json_name: _write_fields(definition.fields, value.payload, depth, left)}


def _write_json(value: Variant, depth: int, left: list[int]) -> object:
    if not value.payload:
        return None
    held = value.payload[0]
    if isinstance(held, Decimal):
        exponent = held.as_tuple().exponent
        return int(held) if exponent == 0 else held
    return _write(held, depth, left)


def _write_map(value: dict[object, object], depth: int, left: list[int]) -> object:
    words = [_key_word(key) for key in value]
    if None not in words:
        items = value.values()
        return {
            word: _write(item, depth - 1, left) for word, item in zip(words, items, strict=True)
        }
    return [
        [_write(key, depth - 1, left), _write(item, depth - 1, left)] for key, item in value.items()
    ]


def _key_word(key: object) -> str | None:
    if isinstance(key, str):
        return key
    if isinstance(key, Variant) and not key.payload and key.type.name != "Option":
        return key.type.variants[key.index].json_name
    return None


class _Exact(Exception):
    """A number that only the exact writer can write."""


def _refuse(_: object) -> object:
    raise _Exact


_ENCODER: Final = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    separators=(",", ":"),
    default=_refuse,
    check_circular=False,
)
_QUOTE: Final = json.JSONEncoder(ensure_ascii=False).encode


def _made_once(encoder: json.JSONEncoder) -> Callable[[object], str]:
    """Its `encode`, with the C part that it would make anew for every text made now."""
    make = getattr(json.encoder, "c_make_encoder", None)
    quote = getattr(json.encoder, "encode_basestring", None)
    if make is None or quote is None:
        return encoder.encode
    write = make(
        None,
        encoder.default,
        quote,
        encoder.indent,
        encoder.key_separator,
        encoder.item_separator,
        encoder.sort_keys,
        encoder.skipkeys,
        encoder.allow_nan,
    )
    return lambda raw: "".join(write(raw, 0))


_encode: Final = _made_once(_ENCODER)


def json_text(raw: object) -> str:
    """JSON data as text: compact, in the order given, numbers exact, always valid UTF-8."""
    try:
        text = _encode(raw)
    except _Exact:
        parts: list[str] = []
        _write_text(raw, parts)
        text = "".join(parts)
    if not text.isascii():
        text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text


def _write_text(raw: object, parts: list[str]) -> None:
    if isinstance(raw, Decimal):
        parts.append(decimal_text(raw))
    elif isinstance(raw, list):
        parts.append("[")
        for index, item in enumerate(raw):
            if index:
                parts.append(",")
            _write_text(item, parts)
        parts.append("]")
    elif isinstance(raw, dict):
        parts.append("{")
        for index, (key, item) in enumerate(raw.items()):
            if index:
                parts.append(",")
            parts.append(_QUOTE(key) + ":")
            _write_text(item, parts)
        parts.append("}")
    else:
        parts.append(_ENCODER.encode(raw))


def value_text(value: object) -> str:
    """The value as JSON text."""
    return json_text(to_json(value))


def json_size(value: object) -> int:
    """How many bytes the value takes as JSON."""
    return len(value_text(value).encode())


def display(value: object) -> str:
    """What `\\(x)` shows."""
    kind = value.__class__
    if kind is str:
        return value  # type: ignore[return-value]
    if kind is int:
        return str(value)
    if kind in _SCALARS:
        return str(_SCALARS[kind](value))
    if isinstance(value, Variant) and not value.payload and value.type.name != "Json":
        return value.name
    return value_text(value)


# --- JSON to values ---------------------------------------------------------------------------


def parse_json(text: str | bytes) -> object:
    """JSON text as data, its numbers exact; R0004 where it is not JSON."""
    try:
        if isinstance(text, str) and not text.startswith("\ufeff"):
            return _DECODER.decode(text)
        return json.loads(
            text, parse_int=_parse_int, parse_float=_parse_float, parse_constant=_parse_constant
        )
    except RecursionError:
        raise FlowError("R0004", f"JSON nested deeper than {DEPTH_LIMIT} levels") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FlowError("R0004", f"no JSON: {error.msg.lower()} ({where})") from None
    except UnicodeDecodeError:
        raise FlowError("R0004", "no JSON: it is not UTF-8") from None


def _parse_int(text: str) -> int:
    if len(text) > INT_DIGITS + text.startswith("-"):
        raise FlowError("R0004", f"a number of more than {INT_DIGITS:,} digits")
    return int(text)


def _parse_float(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        raise FlowError("R0004", "a number out of every range") from None


def _parse_constant(word: str) -> object:
    raise FlowError("R0004", f"no JSON: {word} is no number of JSON")


_DECODER: Final = json.JSONDecoder(
    parse_int=_parse_int, parse_float=_parse_float, parse_constant=_parse_constant
)


class _Misfit(Exception):
    """A part that does not fit; `path` grows from the inside out as it is raised on."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.path: list[str] = []


def from_json(raw: object, term: Term | TermValue, types: Types, default: Default) -> object:
    """JSON data as a value of the type; R0004 with the path where it does not fit."""
    wanted = term.term if isinstance(term, TermValue) else term
    try:
        return _Reader(types, default).read(raw, wanted, (), DEPTH_LIMIT)
    except RecursionError:  # called so deep in the host that there is no room for as many levels
        raise FlowError("R0004", f"nested deeper than {DEPTH_LIMIT} levels") from None
    except _Misfit as misfit:
        path = "".join(reversed(misfit.path)).removeprefix(".")
        text = f"{path}: {misfit.message}" if path else misfit.message
        raise FlowError("R0004", text) from None


def json_value(raw: object, types: Types) -> Variant:
    """JSON data as a value of the type Json."""
    value = from_json(raw, ("enum", _json_key(types)), types, _no_default)
    assert isinstance(value, Variant)
    return value


def _json_key(types: Types) -> int:
    return types.json.key if isinstance(types.json.key, int) else len(types.chunk_types)


def _no_default(_: int) -> object:
    raise AssertionError("Json has no defaults")


class _Reader:
    """One reading: the types, and what gives the value of a default."""

    __slots__ = ("default", "types")

    def __init__(self, types: Types, default: Default) -> None:
        self.types = types
        self.default = default

    def read(self, raw: object, term: Term, env: tuple[Term, ...], depth: int) -> object:
        if isinstance(term, str):
            value = _read_scalar(raw, term)
            if value is None:
                raise _Misfit(f"expected {term}, found {_shown(raw)}")
            return value
        assert isinstance(term, tuple)
        if depth <= 0:
            raise _Misfit(f"nested deeper than {DEPTH_LIMIT} levels")
        head = term[0]
        if head == "param":
            index = term[1]
            assert isinstance(index, int)
            return self.read(raw, env[index], (), depth)
        if head == "struct" or head == "enum":
            key = term[1]
            assert isinstance(key, int)
            args = tuple(substitute(arg, env) for arg in term[2:])
            info = self.types.at(key)
            if head == "struct":
                return self.read_struct(raw, info, args, depth)
            return self.read_enum(raw, info, args, depth)
        if head == "List":
            return self.read_items(raw, term, env, depth)
        if head == "Set":
            return SetValue(dict.fromkeys(self.read_items(raw, term, env, depth)))
        if head == "Map":
            return self.read_map(raw, term, env, depth)
        if head == "Tuple":
            return self.read_tuple(raw, term, env, depth)
        if head == "Range":
            return self.read_range(raw, term, env, depth)
        if head == "Instance":
            return self.read_instance(raw, term)
        raise _Misfit(f"a {head} cannot be read from JSON")

    def misfit(self, raw: object, term: Term, env: tuple[Term, ...] = ()) -> _Misfit:
        wanted = type_text(substitute(term, env), self.types)
        return _Misfit(f"expected {wanted}, found {_shown(raw)}")

    def part(
        self, raw: object, term: Term, env: tuple[Term, ...], depth: int, where: str
    ) -> object:
        try:
            return self.read(raw, term, env, depth - 1)
        except _Misfit as misfit:
            misfit.path.append(where)
            raise

    def read_items(
        self, raw: object, term: tuple[Term, ...], env: tuple[Term, ...], depth: int
    ) -> list[object]:
        if not isinstance(raw, list):
            raise self.misfit(raw, term, env)
        of = term[1]
        return [self.part(item, of, env, depth, f"[{at}]") for at, item in enumerate(raw)]

    def read_map(
        self, raw: object, term: tuple[Term, ...], env: tuple[Term, ...], depth: int
    ) -> dict[object, object]:
        key_term, of = substitute(term[1], env), term[2]
        worded = key_term == "String" or (isinstance(key_term, tuple) and key_term[0] == "enum")
        result: dict[object, object] = {}
        if isinstance(raw, dict) and (worded or not raw):
            for word, item in raw.items():
                key = word
                if key_term != "String":
                    key = self.part(word, key_term, (), depth, _member(word))
                result[key] = self.part(item, of, env, depth, _member(word))
            return result
        if worded or not isinstance(raw, list):
            raise self.misfit(raw, term, env)
        for at, pair in enumerate(raw):
            if not isinstance(pair, list) or len(pair) != 2:
                misfit = _Misfit(f"expected a key and a value, found {_shown(pair)}")
                misfit.path.append(f"[{at}]")
                raise misfit
            key = self.part(pair[0], key_term, (), depth, f"[{at}][0]")
            if key in result:
                misfit = _Misfit("the key stands twice")
                misfit.path.append(f"[{at}][0]")
                raise misfit
            result[key] = self.part(pair[1], of, env, depth, f"[{at}][1]")
        return result

    def read_tuple(
        self, raw: object, term: tuple[Term, ...], env: tuple[Term, ...], depth: int
    ) -> tuple[object, ...]:
        parts = term[1:]
        if not parts:
            if raw is None:
                return ()
            raise self.misfit(raw, term)
        if not isinstance(raw, list) or len(raw) != len(parts):
            raise self.misfit(raw, term, env)
        return tuple(
            self.part(item, of, env, depth, f"[{at}]")
            for at, (item, of) in enumerate(zip(raw, parts, strict=True))
        )

    def read_range(
        self, raw: object, term: tuple[Term, ...], env: tuple[Term, ...], depth: int
    ) -> RangeValue:
        if not isinstance(raw, dict) or not isinstance(raw.get("inclusive"), bool):
            raise self.misfit(raw, term, env)
        low = self.part(raw.get("low"), term[1], env, depth, ".low")
        high = self.part(raw.get("high"), term[1], env, depth, ".high")
        return RangeValue(low, high, raw["inclusive"])

    def read_instance(self, raw: object, term: tuple[Term, ...]) -> InstanceValue:
        name = raw.get("instance") if isinstance(raw, dict) else None
        birth = raw.get("birth") if isinstance(raw, dict) else None
        if not isinstance(name, str) or not isinstance(birth, str):
            raise self.misfit(raw, term)
        return InstanceValue(str(term[1]), name, birth)

    def read_struct(
        self, raw: object, info: TypeInfo, args: tuple[Term, ...], depth: int
    ) -> Struct:
        if not isinstance(raw, dict) or info.fields is None:
            raise _Misfit(f"expected {_base_name(info)}, found {_shown(raw)}")
        return Struct(info, self.read_fields(raw, info.fields, args, depth))

    def read_fields(
        self,
        raw: dict[str, object],
        fields: tuple[FieldDef, ...],
        args: tuple[Term, ...],
        depth: int,
    ) -> list[object]:
        values: list[object] = []
        for field in fields:
            if field.json_name in raw:
                item = raw[field.json_name]
                values.append(self.part(item, field.type, args, depth, _member(field.json_name)))
            elif field.default != NO_FUNCTION:
                values.append(self.default(field.default))
            elif self.is_option(substitute(field.type, args)):
                values.append(self.types.none())
            else:
                wanted = type_text(substitute(field.type, args), self.types)
                misfit = _Misfit(f"missing, expected {wanted}")
                misfit.path.append(_member(field.json_name))
                raise misfit
        return values

    def is_option(self, term: Term) -> bool:
        return (
            isinstance(term, tuple)
            and term[0] == "enum"
            and isinstance(term[1], int)
            and self.types.at(term[1]) is self.types.option
        )

    def read_enum(self, raw: object, info: TypeInfo, args: tuple[Term, ...], depth: int) -> Variant:
        types = self.types
        if info is types.option:
            if raw is None:
                return types.none()
            return types.some(self.read(raw, args[0], (), depth - 1))
        if info is types.json:
            return self.read_json(raw, depth)
        for index, variant in enumerate(info.variants):
            name = variant.json_name
            if not variant.fields:
                if raw == name and isinstance(raw, str):
                    unit = info.units[index]
                    assert unit is not None
                    return unit
            elif isinstance(raw, dict) and len(raw) == 1 and name in raw:
                return self.read_payload(raw[name], info, index, args, depth)
        raise _Misfit(f"expected {_base_name(info)}{_choices(info)}, found {_shown(raw)}")

    def read_payload(
        self, raw: object, info: TypeInfo, index: int, args: tuple[Term, ...], depth: int
    ) -> Variant:
        variant = info.variants[index]
        where = _member(variant.json_name)
        if info is self.types.result or info is self.types.settled:
            held = self.part(raw, variant.fields[0].type, args, depth, where)
            return Variant(info, index, (held,))
        try:
            if not isinstance(raw, dict):
                raise _Misfit(f"expected the fields of {variant.name}, found {_shown(raw)}")
            values = self.read_fields(raw, variant.fields, args, depth - 1)
        except _Misfit as misfit:
            misfit.path.append(where)
            raise
        return Variant(info, index, tuple(values))

    def read_json(self, raw: object, depth: int) -> Variant:
        of = self.types.json
        if depth <= 0:
            raise _Misfit(f"nested deeper than {DEPTH_LIMIT} levels")
        if raw is None:
            return of.variant("Null")
        if isinstance(raw, bool):
            return of.variant("Bool", raw)
        if isinstance(raw, str):
            return of.variant("String", raw)
        if isinstance(raw, (int, float, Decimal)):
            return of.variant("Number", _read_number(raw))
        if isinstance(raw, list):
            items = [self.json_part(item, depth, f"[{at}]") for at, item in enumerate(raw)]
            return of.variant("Array", items)
        if isinstance(raw, dict):
            members = {key: self.json_part(item, depth, _member(key)) for key, item in raw.items()}
            return of.variant("Object", members)
        raise _Misfit(f"expected Json, found {_shown(raw)}")

    def json_part(self, raw: object, depth: int, where: str) -> Variant:
        try:
            return self.read_json(raw, depth - 1)
        except _Misfit as misfit:
            misfit.path.append(where)
            raise


def _read_number(raw: int | float | Decimal) -> Decimal:
    number = exact_decimal(Decimal(repr(raw)) if isinstance(raw, float) else Decimal(raw))
    if number is None:
        raise _Misfit(f"expected a number of at most 34 digits, found {_shown(raw)}")
    return number


def _read_scalar(raw: object, term: str) -> object | None:
    """The value, or None where JSON does not fit."""
    if term == "String":
        return raw if isinstance(raw, str) else None
    if term == "Bool":
        return raw if isinstance(raw, bool) else None
    if isinstance(raw, bool):
        return None
    if term == "Int":
        return _integral(raw)
    if term == "Decimal":
        if isinstance(raw, (int, float, Decimal)):
            return _read_number(raw)
        return parse_decimal(raw) if isinstance(raw, str) else None
    if term == "Float":
        if not isinstance(raw, (int, float, Decimal)):
            return None
        try:
            number = float(raw)
        except OverflowError:
            return None
        return number if number - number == 0.0 else None
    if isinstance(raw, str) and term in _FROM_TEXT:
        return _FROM_TEXT[term](raw)
    return None


_FROM_TEXT: Final[dict[str, Callable[[str], object | None]]] = {
    "Bytes": parse_bytes,
    "Duration": parse_duration,
    "Time": parse_time,
    "Date": parse_date,
}


def _integral(raw: object) -> int | None:
    if isinstance(raw, int):
        return raw
    if isinstance(raw, float):
        return int(raw) if raw.is_integer() else None
    if isinstance(raw, Decimal) and raw.adjusted() < INT_DIGITS:
        whole = raw.to_integral_value()
        return int(whole) if whole == raw else None
    return None


def substitute(term: Term, env: tuple[Term, ...]) -> Term:
    """The term with the type parameters replaced by what `env` has for them."""
    if not env or not isinstance(term, tuple):
        return term
    if term[0] == "param":
        index = term[1]
        assert isinstance(index, int)
        return env[index]
    return tuple(substitute(part, env) for part in term)


def type_text(term: Term, types: Types) -> str:
    """The type as a program writes it."""
    if not isinstance(term, tuple):
        return str(term)
    head = term[0]
    if head == "struct" or head == "enum":
        key = term[1]
        assert isinstance(key, int)
        info = types.at(key)
        args = [type_text(arg, types) for arg in term[2:]]
        if info is types.option and args:
            return f"{args[0]}?"
        return f"{_base_name(info)}<{', '.join(args)}>" if args else _base_name(info)
    if head == "Tuple":
        return f"({', '.join(type_text(part, types) for part in term[1:])})"
    if head == "Fn":
        params = term[1]
        assert isinstance(params, tuple)
        shown = ", ".join(type_text(param, types) for param in params)
        return f"fn({shown}) -> {type_text(term[2], types)}"
    if head == "param":
        return f"T{term[1]}"
    return f"{head}<{', '.join(type_text(part, types) for part in term[1:])}>"


def _base_name(info: TypeInfo) -> str:
    return info.name.rpartition(".")[2]


def _choices(info: TypeInfo) -> str:
    names = [variant.json_name for variant in info.variants]
    if not names or len(names) > 6:
        return ""
    return f" ({', '.join(names)})"


def _member(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{_QUOTE(name)}]"


def _shown(raw: object) -> str:
    if isinstance(raw, dict):
        return "an object"
    if isinstance(raw, list):
        return "a list"
    text = json_text(raw) if not isinstance(raw, float) else repr(raw)
    return text if len(text) <= 40 else text[:39] + "…"
