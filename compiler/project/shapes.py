"""Shapes: what JSON a version keeps, as text a person can read and a later build can compare.

A type is written as in a source, with qualified names: `List<claims.Line>`, `String?`, `(Int, $0)`
(`$0` is a type parameter). What a declared type looks like stands in the version's table of types,
so that the shape of an old version can be compared when its declarations are long gone:

    "claims.Claim" = ["struct", "id: String", "memo: String = …"]
    "claims.Outcome" = ["enum", "Paid(receipt: String)", "Expired"]

Names are those of the JSON; ` = …` says that a default stands in where JSON lacks the field.

`reads` answers the one question about two shapes: does all JSON of the old type decode as the new?
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from qoqi.vm.bytecode.chunk import NO_FUNCTION, Chunk, FieldDef, Term, TypeDef
from qoqi.vm.dataclass import dataclass

_DEFAULT = " = …"
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_TOKEN = re.compile(r"\$\d+|[A-Za-z_][A-Za-z0-9_.]*|[<>(),?]")


@dataclass(frozen=True, slots=True)
class Shape:
    """A type: its head and arguments. A tuple is `Tuple`, `T?` is `Option`."""

    head: str
    args: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A named part of JSON: a field, a variable, a parameter."""

    name: str
    type: str
    default: bool = False

    def __str__(self) -> str:
        return f"{_quoted(self.name)}: {self.type}{_DEFAULT if self.default else ''}"


Types: TypeAlias = Mapping[str, tuple[str, ...]]
"""Declared types by name: `struct` and its fields, or `enum` and its variants."""


class ShapeError(ValueError):
    """Text that is no shape."""


# -- from a chunk ------------------------------------------------------------------------------


def type_text(chunk: Chunk, term: Term) -> str:
    """A term of the chunk as text."""
    if isinstance(term, str):
        return term
    assert isinstance(term, tuple)
    head, *args = term
    match head:
        case "struct" | "enum":
            index, *of = args
            assert isinstance(index, int)
            name = chunk.types[index].name
            texts = [type_text(chunk, one) for one in of]
            if name == "Option":
                return f"{texts[0]}?"
            return f"{name}<{', '.join(texts)}>" if texts else name
        case "param":
            return f"${args[0]}"
        case "Tuple":
            return f"({', '.join(type_text(chunk, one) for one in args)})"
        case "Fn":
            params, result = args
            assert isinstance(params, tuple)
            texts = [type_text(chunk, one) for one in params]
            return f"Fn<({', '.join(texts)}), {type_text(chunk, result)}>"
        case "Instance":
            return f"Instance<{args[0]}>"
        case _:
            return f"{head}<{', '.join(type_text(chunk, one) for one in args)}>"


def part_of(chunk: Chunk, definition: FieldDef) -> Part:
    default = definition.default != NO_FUNCTION
    return Part(definition.json_name, type_text(chunk, definition.type), default)


def describe_types(chunk: Chunk, terms: Iterable[Term]) -> dict[str, tuple[str, ...]]:
    """The declared types that the terms name, and those that these name, by name."""
    found: dict[str, tuple[str, ...]] = {}
    pending = list(terms)
    while pending:
        term = pending.pop()
        if isinstance(term, str | int):
            continue
        if term[0] in ("struct", "enum"):
            index = term[1]
            assert isinstance(index, int)
            definition = chunk.types[index]
            if definition.name not in found and definition.name not in _PRELUDE:
                found[definition.name] = _definition(chunk, definition)
                pending.extend(one.type for one in _fields(definition))
        pending.extend(term[1:])
    return dict(sorted(found.items()))


def _fields(definition: TypeDef) -> list[FieldDef]:
    if definition.fields is not None:
        return list(definition.fields)
    return [one for variant in definition.variants or () for one in variant.fields]


def _definition(chunk: Chunk, definition: TypeDef) -> tuple[str, ...]:
    if definition.fields is not None:
        return ("struct", *(str(part_of(chunk, one)) for one in definition.fields))
    variants: list[str] = []
    for variant in definition.variants or ():
        name = _quoted(variant.json_name)
        parts = ", ".join(str(part_of(chunk, one)) for one in variant.fields)
        variants.append(f"{name}({parts})" if variant.fields else name)
    return ("enum", *variants)


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


# -- from text ---------------------------------------------------------------------------------


def parse(text: str) -> Shape:
    """The type that a text says; ShapeError if it says none."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text.replace(" ", ""):
        raise ShapeError(f"`{text}` is no type")
    try:
        shape, rest = _parse(tokens)
    except IndexError:
        raise ShapeError(f"`{text}` is no type") from None
    if rest:
        raise ShapeError(f"`{text}` is no type")
    return shape


def _parse(tokens: list[str]) -> tuple[Shape, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        args, rest = _arguments(rest, ")")
        shape = Shape("Tuple", args)
    elif first[0].isalpha() or first[0] in "$_":
        args = ()
        if rest and rest[0] == "<":
            args, rest = _arguments(rest[1:], ">")
        shape = Shape(first, args)
    else:
        raise IndexError
    while rest and rest[0] == "?":
        shape, rest = Shape("Option", (shape,)), rest[1:]
    return shape, rest


def _arguments(tokens: list[str], end: str) -> tuple[tuple[Shape, ...], list[str]]:
    args: list[Shape] = []
    while tokens[0] != end:
        shape, tokens = _parse(tokens)
        args.append(shape)
        if tokens[0] == ",":
            tokens = tokens[1:]
        elif tokens[0] != end:
            raise IndexError
    return tuple(args), tokens[1:]


def parse_part(text: str) -> Part:
    """`name: Type`, `name: Type = …`."""
    default = text.endswith(_DEFAULT)
    text = text.removesuffix(_DEFAULT)
    name, rest = _name(text)
    if not rest.startswith(": "):
        raise ShapeError(f"`{text}` is no part of a shape")
    type_ = rest.removeprefix(": ")
    parse(type_)
    return Part(name, type_, default)


def _name(text: str) -> tuple[str, str]:
    if text.startswith('"'):
        try:
            name, end = json.JSONDecoder().raw_decode(text)
        except json.JSONDecodeError:
            raise ShapeError(f"`{text}` is no part of a shape") from None
        return str(name), text[end:]
    found = _PLAIN.match(text)
    if found is None:
        raise ShapeError(f"`{text}` is no part of a shape")
    return found.group(), text[found.end() :]


def parse_variant(text: str) -> tuple[str, tuple[Part, ...]]:
    """`Expired`, `Paid(receipt: String, total: Decimal)`."""
    name, rest = _name(text)
    if not rest:
        return name, ()
    if not (rest.startswith("(") and rest.endswith(")")):
        raise ShapeError(f"`{text}` is no variant")
    return name, tuple(parse_part(part) for part in _split(rest[1:-1]))


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no brackets and no quotes."""
    parts: list[str] = []
    depth, start, quoted = 0, 0, False
    for at, char in enumerate(text):
        if char == '"' and text[at - 1 : at] != "\\":
            quoted = not quoted
        elif not quoted and char in "(<":
            depth += 1
        elif not quoted and char in ")>":
            depth -= 1
        elif not quoted and char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    parts.append(text[start:].strip())
    return parts


# -- comparing ---------------------------------------------------------------------------------

_PRELUDE: Types = {
    "Option": ("enum", "Some(value: $0)", "None"),
    "Result": ("enum", "Ok(value: $0)", "Err(error: $1)"),
    "Settled": ("enum", "Known(value: $0)", "Unknown"),
    "Json": ("enum",),
}
"""Types every version has alike, so no version says what they are."""


@dataclass(slots=True)
class Comparison:
    """The declared types of an old and a new version, and the pairs taken to fit meanwhile."""

    old: Types
    new: Types
    assumed: set[tuple[Shape, Shape]] = field(default_factory=set[tuple[Shape, Shape]])

    def reads(self, old: Shape, new: Shape) -> bool:
        """Whether all JSON of the old type decodes as the new one."""
        if new.head == "Json" or (old.head, new.head) == ("Int", "Decimal"):
            return True
        if new.head == "Option":
            inner = old.args[0] if old.head == "Option" else old
            is_null = inner.head == "Option" or inner == Shape("Tuple")
            return not is_null and self.reads(inner, new.args[0])
        if (old.head, new.head) == ("Set", "List"):
            return self.reads(old.args[0], new.args[0])
        if self._definition(self.new, new) is not None:
            return self._declared(old, new)
        if old.head != new.head or len(old.args) != len(new.args):
            return False
        if new.head == "Instance":
            return old == new
        return all(map(self.reads, old.args, new.args))

    def _declared(self, old: Shape, new: Shape) -> bool:
        before, after = self._definition(self.old, old), self._definition(self.new, new)
        if before is None or after is None or before[0] != after[0]:
            return False
        if (old, new) in self.assumed or (old == new and self._unchanged(old)):
            return True
        self.assumed.add((old, new))
        fits = (
            self._fields(before[1:], after[1:], old.args, new.args)
            if after[0] == "struct"
            else self._variants(before[1:], after[1:], old.args, new.args)
        )
        self.assumed.discard((old, new))
        return fits

    def _variants(
        self,
        before: tuple[str, ...],
        after: tuple[str, ...],
        old_args: tuple[Shape, ...],
        new_args: tuple[Shape, ...],
    ) -> bool:
        known = dict(map(parse_variant, after))
        for name, parts in map(parse_variant, before):
            if name not in known or bool(parts) != bool(known[name]):
                return False
            if not self.parts(parts, known[name], old_args, new_args):
                return False
        return True

    def _fields(
        self,
        before: tuple[str, ...],
        after: tuple[str, ...],
        old_args: tuple[Shape, ...],
        new_args: tuple[Shape, ...],
    ) -> bool:
        return self.parts(
            tuple(map(parse_part, before)), tuple(map(parse_part, after)), old_args, new_args
        )

    def parts(
        self,
        before: tuple[Part, ...],
        after: tuple[Part, ...],
        old_args: tuple[Shape, ...] = (),
        new_args: tuple[Shape, ...] = (),
    ) -> bool:
        """Whether an object of the old parts has, or lacks by right, each of the new ones."""
        known = {part.name: part for part in before}
        return all(self.part(known.get(part.name), part, old_args, new_args) for part in after)

    def part(
        self,
        before: Part | None,
        after: Part,
        old_args: tuple[Shape, ...] = (),
        new_args: tuple[Shape, ...] = (),
    ) -> bool:
        new = _filled(parse(after.type), new_args)
        if before is None:
            return after.default or new.head == "Option"
        return self.reads(_filled(parse(before.type), old_args), new)

    def _unchanged(self, shape: Shape) -> bool:
        """Whether all declared types a type names are the same in both versions."""
        seen: set[str] = set()
        pending = [shape.head, *_heads(shape.args)]
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            if self.old.get(name) != self.new.get(name):
                return False
            pending.extend(_TOKEN.findall(" ".join(self.new.get(name, ()))))
        return True

    def _definition(self, types: Types, shape: Shape) -> tuple[str, ...] | None:
        return types.get(shape.head) or _PRELUDE.get(shape.head)


def _filled(shape: Shape, args: tuple[Shape, ...]) -> Shape:
    """The shape with its type parameters replaced."""
    if shape.head.startswith("$"):
        return args[int(shape.head[1:])]
    return Shape(shape.head, tuple(_filled(arg, args) for arg in shape.args))


def _heads(shapes: tuple[Shape, ...]) -> list[str]:
    return [head for shape in shapes for head in (shape.head, *_heads(shape.args))]
