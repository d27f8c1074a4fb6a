"""The bytes of a chunk: canonical msgpack, format `qoqi.bytecode/1`.

A record is an array of its fields in the order of `chunk.py`; there are no maps. The grammar, where
`x*` is an array of x and `|` a choice:

    chunk     = [format, flow:str, type*, [int, int]*, term*, constant*, function*, closure*,
                 [name:str, count:int]*, [name:str, count:int]*, flow_slot*, result:term, channel*,
                 stage*, step*, migration*, view*, run:int, fields_init:int, listens:bool,
                 keep:int, peer*]
    type      = [name:str, params:int, field* | nil, variant* | nil]
    field     = [name:str, json_name:str, term, default:int]
    variant   = [name:str, json_name:str, field*]
    term      = str | int | term*
    constant  = int | str | float | bytes | ["Int" | "Decimal", digits:str]
              | ["Duration" | "Time" | "Date" | "Unset", int]
    function  = [name:str, params:int, slots:int, code, place*, [str, int, int]*, int**]
    code      = opcode and operand of each instruction in turn, one flat array of int
    place     = [flow:bool, root:int, [kind:str, int]*]
    flow_slot = [name:str, term, parameter:bool, default:int]
    channel   = [name:str, term, capacity:int, inside:bool, term | nil]
    stage     = [name:str, entry:int, [name:str, slot:int, term]*]
    step      = [name:str, field*, term, settled:bool, body:int, within:int, tries:int,
                 tries_for:int, otherwise:int, backoff:int, backoff_most:int, undo:int,
                 undo_args:int, queue:int, beat:int, [int, int]*]
    migration = [stage:str, field*, function:int]
    view      = [name:str, term, function:int]
    peer      = [flow:str, result:term, [name:str, term, term | nil]*]
    debug     = ["qoqi.debug/1", [file:str, [pc:int, line:int]*, str*]*]

Canonical: integers take the shortest form, an Int constant stands as a number if it has 64 bits
and as ["Int", digits] otherwise, and `decode` refuses bytes that `encode` would not have written.
So one chunk has one hash, on every machine. A new field or a new opcode needs a new format name:
old bytes are kept by hash for as long as an instance runs on them.

`decode` checks shape and bounds; what the numbers refer to is checked by `verify`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar

import msgpack

from qoqi.vm.bytecode.chunk import (
    FORMAT,
    ChannelDef,
    Chunk,
    Debug,
    FieldDef,
    FlowSlot,
    Function,
    FunctionDebug,
    MigrationDef,
    PeerDef,
    Place,
    StageDef,
    StepDef,
    TypeDef,
    VariantDef,
    ViewDef,
)

DEBUG_FORMAT: Final = "qoqi.debug/1"
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_TERM_DEPTH: Final = 100
_INT64: Final = 2**63
_INT_DIGITS: Final = 4096

Read = Callable[[Any], Any]
Record = TypeVar("Record")


class ChunkError(Exception):
    """Bytes or a chunk that are refused; the message says why."""


# --- encode -----------------------------------------------------------------------------------


def encode(chunk: Chunk) -> bytes:
    """The canonical bytes of the chunk."""
    return _pack([FORMAT, *_plain_fields(chunk)])


def encode_debug(debug: Debug) -> bytes:
    return _pack([DEBUG_FORMAT, _plain(debug.functions)])


def version_hash(data: bytes) -> str:
    """The version that these bytes are: SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _pack(data: object) -> bytes:
    packed = msgpack.packb(data, use_bin_type=True)
    assert isinstance(packed, bytes)
    return packed


def _plain_fields(record: Any) -> list[object]:
    """The fields of a record as msgpack data."""
    plain: list[object] = []
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(record, Chunk) and field.name == "constants":
            plain.append([_plain_constant(constant) for constant in value])
        elif isinstance(record, Function) and field.name == "code":
            plain.append([number for instruction in value for number in instruction])
        else:
            plain.append(_plain(value))
    return plain


def _plain(value: Any) -> object:
    if isinstance(value, (str, int)) or value is None:
        return value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _plain_fields(value)


def _plain_constant(value: object) -> object:
    if isinstance(value, bool):
        raise ChunkError("a Bool is no constant, it has instructions")
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        return ["Int", str(value)]
    if isinstance(value, Decimal):
        return ["Decimal", str(value)]
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, (int, str, float, bytes)):
        return value
    raise ChunkError(f"a {type(value).__name__} is no constant")


# --- decode -----------------------------------------------------------------------------------


def decode(data: bytes) -> Chunk:
    """The chunk of these bytes; ChunkError unless `encode` gives them back."""
    parts = _unpack(data, FORMAT, "bytecode")
    chunk = _record(Chunk, *_CHUNK)(parts)
    assert isinstance(chunk, Chunk)
    if encode(chunk) != data:
        raise ChunkError("the bytecode is not in its canonical form")
    return chunk


def decode_debug(data: bytes) -> Debug:
    parts = _unpack(data, DEBUG_FORMAT, "debug table")
    debug = _record(
        Debug, _many(_record(FunctionDebug, _text, _many(_row(_int, _int)), _many(_text)))
    )
    result = debug(parts)
    assert isinstance(result, Debug)
    return result


def _unpack(data: bytes, form: str, what: str) -> list[Any]:
    if len(data) > MAX_BYTES:
        raise ChunkError(f"a {what} of {len(data):,} bytes, more than {MAX_BYTES:,}")
    try:
        parts = msgpack.unpackb(data, raw=False, strict_map_key=True)
    except msgpack.ExtraData:
        raise ChunkError(f"the {what} has more bytes behind its end") from None
    except (ValueError, msgpack.UnpackException):  # truncated, too deep, no UTF-8
        raise ChunkError(f"the {what} is damaged or cut off") from None
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
        raise ChunkError(f"this is no {what} of flow")
    if parts[0] != form:
        raise ChunkError(f"the {what} has format {parts[0][:40]!r}, this machine reads {form!r}")
    return parts[1:]


def _wrong(wanted: str, value: object) -> ChunkError:
    return ChunkError(f"expected {wanted}, found {type(value).__name__}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong("text", value)
    return value


def _int(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong("an integer", value)
    return value


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false", value)
    return value


def _array(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong("an array", value)
    return value


def _many(read: Read) -> Read:
    return lambda value: tuple(read(item) for item in _array(value))


def _or_nil(read: Read) -> Read:
    return lambda value: None if value is None else read(value)


def _row(*reads: Read) -> Read:
    def read_row(value: Any) -> tuple[Any, ...]:
        parts = _array(value)
        if len(parts) != len(reads):
            raise ChunkError(f"expected {len(reads)} parts, found {len(parts)}")
        return tuple(read(part) for read, part in zip(reads, parts, strict=True))

    return read_row


def _record(make: Callable[..., Record], *reads: Read) -> Callable[[Any], Record]:
    row = _row(*reads)
    return lambda value: make(*row(value))


def _term(value: Any, depth: int = 0) -> Any:
    if depth > MAX_TERM_DEPTH:
        raise ChunkError(f"a type nested deeper than {MAX_TERM_DEPTH} levels")
    if isinstance(value, list):
        return tuple(_term(part, depth + 1) for part in value)
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise _wrong("a type", value)


def _constant(value: Any) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, str, float, bytes, list)):
        raise _wrong("a constant", value)
    if not isinstance(value, list):
        return value
    kind, held = _row(_text, lambda part: part)(value)
    if kind in ("Duration", "Time", "Date", "Unset"):
        return kind, _int(held)
    digits = _text(held)
    if len(digits) <= _INT_DIGITS + 1:
        try:
            if kind == "Int":
                return int(digits)
            if kind == "Decimal" and (number := Decimal(digits)).is_finite():
                return number
        except (ValueError, InvalidOperation):
            pass  # said below, with the kind
    raise ChunkError(f"a constant {kind[:20]!r} that cannot be read")


def _code(value: Any) -> tuple[tuple[int, int], ...]:
    flat = [_int(number) for number in _array(value)]
    if len(flat) % 2:
        raise ChunkError("an instruction without its operand")
    return tuple(zip(flat[::2], flat[1::2], strict=True))


_NAME_COUNT: Final = _row(_text, _int)
_INTS: Final = _row(_int, _int)
_FIELD: Final = _record(FieldDef, _text, _text, _term, _int)
_FIELDS: Final = _many(_FIELD)
_VARIANT: Final = _record(VariantDef, _text, _text, _FIELDS)
_PLACE: Final = _record(Place, _bool, _int, _many(_NAME_COUNT))
_CHUNK: Final[tuple[Read, ...]] = (
    _text,
    _many(_record(TypeDef, _text, _int, _or_nil(_FIELDS), _or_nil(_many(_VARIANT)))),
    _many(_INTS),
    _many(_term),
    _many(_constant),
    _many(
        _record(
            Function,
            _text,
            _int,
            _int,
            _code,
            _many(_PLACE),
            _many(_row(_text, _int, _int)),
            _many(_many(_int)),
        )
    ),
    _many(_INTS),
    _many(_NAME_COUNT),
    _many(_NAME_COUNT),
    _many(_record(FlowSlot, _text, _term, _bool, _int)),
    _term,
    _many(_record(ChannelDef, _text, _term, _int, _bool, _or_nil(_term))),
    _many(_record(StageDef, _text, _int, _many(_row(_text, _int, _term)))),
    _many(
        _record(
            StepDef,
            _text,
            _FIELDS,
            _term,
            _bool,
            *(_int,) * 11,
            _many(_INTS),
        )
    ),
    _many(_record(MigrationDef, _text, _FIELDS, _int)),
    _many(_record(ViewDef, _text, _term, _int)),
    _int,
    _int,
    _bool,
    _int,
    _many(_record(PeerDef, _text, _term, _many(_row(_text, _term, _or_nil(_term))))),
)
