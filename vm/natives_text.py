"""Natives of String and Bytes, and the modules `text` and `crypto`.

A String is a row of code points: lengths and indices count those. `crypto` gives hexadecimal text.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, unquote

from qoqi.vm.context import Context
from qoqi.vm.failure import FlowError
from qoqi.vm.pattern import first_match, full_match
from qoqi.vm.text import bytes_text, parse_bytes
from qoqi.vm.values import TEXT_LIMIT, Variant, checked_text

_REFERENCE: Final = re.compile(r"\$(\$|\d{1,2})")
_LINE: Final = re.compile(r"\r\n|\n|\r")


def split(text: str, separator: str) -> list[Any]:
    return text.split(separator) if separator else list(text)


def lines(text: str) -> list[Any]:
    """Without their ends; an end at the end of the text begins no line."""
    found: list[Any] = _LINE.split(text)
    return found[:-1] if found[-1] == "" else found


def replace(text: str, what: str, new: str) -> str:
    times = text.count(what)
    _fits(len(text) + times * (len(new) - len(what)))
    return text.replace(what, new)


def index_of(context: Context, text: str, part: str) -> Variant:
    at = text.find(part)
    return context.types.some(at) if at >= 0 else context.types.none()


def pad_left(text: str, width: int, fill: str = " ") -> str:
    return _padding(text, width, fill) + text


def pad_right(text: str, width: int, fill: str = " ") -> str:
    return text + _padding(text, width, fill)


def _padding(text: str, width: int, fill: str) -> str:
    missing = width - len(text)
    if missing <= 0 or not fill:
        return ""
    _fits(width)
    return (fill * (missing // len(fill) + 1))[:missing]


def repeat(text: str, count: int) -> str:
    _fits(len(text) * count)
    return text * count


def _fits(size: int) -> None:
    if size > TEXT_LIMIT:
        raise FlowError("R0008", f"a String of more than {TEXT_LIMIT:,} code points")


def _octets(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")


def bytes_to_text(context: Context, value: bytes) -> Variant:
    try:
        return context.types.some(value.decode("utf-8"))
    except UnicodeDecodeError:
        return context.types.none()


def groups(context: Context, text: str, pattern: str) -> Variant:
    """The first match and its groups, empty for one that is not in it."""
    found = first_match(pattern, text)
    if found is None:
        return context.types.none()
    spans = zip(found[::2], found[1::2], strict=True)
    return context.types.some([text[begin:end] if begin >= 0 else "" for begin, end in spans])


def replace_all(text: str, pattern: str, new: str) -> str:
    """Each match by `new`, in which `$1` is its first group, `$0` the match and `$$` a dollar."""
    parts: list[str] = []
    size = at = 0
    while at <= len(text):
        found = first_match(pattern, text, at)
        if found is None:
            break
        begin, end = found[0], found[1]
        parts += [text[at:begin], _filled(new, text, found)]
        size += len(parts[-1]) + len(parts[-2])
        _fits(size)
        if begin == end:  # an empty match: the next one begins a code point further on
            parts.append(text[end : end + 1])
            end += 1
        at = end
    parts.append(text[at:])
    return checked_text("".join(parts))


def _filled(new: str, text: str, found: tuple[int, ...]) -> str:
    def reference(sign: re.Match[str]) -> str:
        if sign[1] == "$":
            return "$"
        number = int(sign[1])
        if 2 * number >= len(found):
            raise FlowError("R0004", f"the pattern has no group {number}")
        begin, end = found[2 * number], found[2 * number + 1]
        return text[begin:end] if begin >= 0 else ""

    return _REFERENCE.sub(reference, new)


def base64_decode(context: Context, text: str) -> Variant:
    """The text that these bytes are; None if it is no base64, or they are no UTF-8."""
    try:
        return context.types.some(base64.b64decode(text, validate=True).decode("utf-8"))
    except (binascii.Error, ValueError):
        return context.types.none()


def hash_text(value: str | bytes) -> str:
    return hashlib.sha256(_octets(value)).hexdigest()


def hmac_text(key: str | bytes, value: str | bytes) -> str:
    return hmac.new(_octets(key), _octets(value), hashlib.sha256).hexdigest()


PURE: Final[dict[str, Callable[..., Any]]] = {
    "String.len": len,
    "String.isEmpty": lambda text: not text,
    "String.lower": str.lower,
    "String.upper": str.upper,
    "String.trim": lambda text: text.strip(),
    "String.trimStart": lambda text: text.lstrip(),
    "String.trimEnd": lambda text: text.rstrip(),
    "String.split": split,
    "String.lines": lines,
    "String.chars": lambda text: list(text),
    "String.contains": lambda text, part: part in text,
    "String.startsWith": lambda text, part: text.startswith(part),
    "String.endsWith": lambda text, part: text.endswith(part),
    "String.replace": replace,
    "String.take": lambda text, count: text[: max(count, 0)],
    "String.drop": lambda text, count: text[max(count, 0) :],
    "String.takeLast": lambda text, count: text[-count:] if count > 0 else "",
    "String.slice": lambda text, start, end: text[max(start, 0) : max(end, 0)],
    "String.padLeft": pad_left,
    "String.padRight": pad_right,
    "String.repeat": repeat,
    "String.reversed": lambda text: text[::-1],
    "String.toBytes": _octets,
    "Bytes.len": len,
    "Bytes.isEmpty": lambda value: not value,
    "Bytes.base64": bytes_text,
    "Bytes.concat": lambda value, other: value + other,
    "Bytes.hex": lambda value: value.hex(),
    "text.matches": lambda text, pattern: full_match(pattern, text),
    "text.replaceAll": replace_all,
    "text.urlEncode": lambda text: quote(_octets(text), safe=""),
    "text.urlDecode": unquote,
    "text.base64Encode": lambda value: bytes_text(_octets(value)),
    "crypto.sha256": hash_text,
    "crypto.hmac": hmac_text,
}

TYPED: Final[dict[str, Callable[..., Any]]] = {
    "String.indexOf": index_of,
    "Bytes.toText": bytes_to_text,
    "Bytes.fromBase64": lambda context, text: context.types.option_of(parse_bytes(text)),
    "text.groups": groups,
    "text.base64Decode": base64_decode,
}
