"""Run-time types: the structs and enums of a chunk, and those of the prelude that it lacks.

Natives and the turn make values of the prelude (`Option`, `Result`, `Json` …) whether or not the
program names those types, so `Types` adds the missing ones after the chunk's own. A chunk's type is
known by its index, an added one by its name: that is how snapshots refer to them.

A variant without fields is made once per program (`TypeInfo.units`); comparing and hashing do not
depend on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from qoqi.vm.bytecode.chunk import FieldDef, Term, TypeDef, VariantDef
from qoqi.vm.dataclass import dataclass
from qoqi.vm.values import Struct, Variant


@dataclass(slots=True, eq=False)
class TypeInfo:
    """A struct or an enum at run time; compared by identity.

    `key` is the index of a type of the chunk, the name of one that was added.
    """

    key: int | str
    name: str
    fields: tuple[FieldDef, ...] | None
    variants: tuple[VariantDef, ...]
    units: list[Variant | None] = field(default_factory=list)
    index_of: dict[str, int] = field(default_factory=dict)

    def variant(self, name: str, *payload: object) -> Variant:
        """The variant of this name; KeyError where the enum has none."""
        index = self.index_of[name]
        return self.units[index] or Variant(self, index, payload)


def _field(name: str, term: Term) -> FieldDef:
    return FieldDef(name, name, term)


def _enum(name: str, params: int, **variants: tuple[FieldDef, ...]) -> TypeDef:
    # A keyword cannot be `None`; the variant of that name is written with an underscore.
    words = ((word.rstrip("_"), fields) for word, fields in variants.items())
    return TypeDef(name, params, None, tuple(VariantDef(word, word, of) for word, of in words))


def _struct(name: str, *fields: FieldDef) -> TypeDef:
    return TypeDef(name, 0, fields, None)


def prelude_types(json_index: int) -> tuple[TypeDef, ...]:
    """What the machine itself makes values of; Json, the only one that names itself, first."""
    json: Term = ("enum", json_index)
    first: Term = ("param", 0)
    return (
        _enum(
            "Json",
            0,
            Object=(_field("members", ("Map", "String", json)),),
            Array=(_field("items", ("List", json)),),
            String=(_field("text", "String"),),
            Number=(_field("number", "Decimal"),),
            Bool=(_field("value", "Bool"),),
            Null=(),
        ),
        _enum("Option", 1, Some=(_field("value", first),), None_=()),
        _enum("Result", 2, Ok=(_field("value", first),), Err=(_field("error", ("param", 1)),)),
        _enum("Settled", 1, Known=(_field("value", first),), Unknown=()),
        _struct("Cancelled", _field("reason", "String")),
        _struct("Failure", _field("message", "String"), _field("at", "String")),
        _enum("Sent", 0, Delivered=(), Already=()),
        _enum("SendError", 0, Full=(), Ended=(), Unknown=()),
        _enum("CancelError", 0, Refused=(_field("why", "String"),), Ended=()),
        _enum(
            "Weekday",
            0,
            Monday=(),
            Tuesday=(),
            Wednesday=(),
            Thursday=(),
            Friday=(),
            Saturday=(),
            Sunday=(),
        ),
    )


class Types:
    """The types of a loaded program: by chunk index, and by name."""

    __slots__ = ("by_name", "chunk_types", "json", "option", "result", "settled")

    def __init__(self, definitions: Sequence[TypeDef]) -> None:
        self.chunk_types: list[TypeInfo] = [
            _make(index, definition) for index, definition in enumerate(definitions)
        ]
        self.by_name: dict[str, TypeInfo] = {}
        for info in self.chunk_types:
            self.by_name.setdefault(info.name, info)
        for definition in prelude_types(len(definitions)):
            if self.named(definition.name) is None:
                self.by_name[definition.name] = _make(definition.name, definition)
        self.json = self.by_name["Json"]
        self.option = self.by_name["Option"]
        self.result = self.by_name["Result"]
        self.settled = self.by_name["Settled"]

    def at(self, key: int | str) -> TypeInfo:
        """By the key of a TypeInfo; KeyError where there is none."""
        if isinstance(key, str):
            return self.by_name[key]
        if key == len(self.chunk_types):
            return self.json  # an added Json, as the terms of its own fields name it
        if not 0 <= key < len(self.chunk_types):
            raise KeyError(key)
        return self.chunk_types[key]

    def named(self, name: str) -> TypeInfo | None:
        """A type by its name, with or without the module it stands in."""
        found = self.by_name.get(name)
        if found is None:
            ending = "." + name
            matching = [info for full, info in self.by_name.items() if full.endswith(ending)]
            found = matching[0] if len(matching) == 1 else None
        return found

    def enum(self, name: str) -> TypeInfo:
        """An enum or struct of the prelude, by name."""
        found = self.named(name)
        if found is None:
            raise KeyError(name)
        return found

    def some(self, value: object) -> Variant:
        return self.option.variant("Some", value)

    def none(self) -> Variant:
        return self.option.variant("None")

    def option_of(self, value: object | None) -> Variant:
        """`Some` of a value, `None` for Python's None, which is no value of flow."""
        return self.option.variant("None") if value is None else self.some(value)

    def ok(self, value: object) -> Variant:
        return self.result.variant("Ok", value)

    def err(self, error: object) -> Variant:
        return self.result.variant("Err", error)

    def known(self, value: object) -> Variant:
        return self.settled.variant("Known", value)

    def unknown(self) -> Variant:
        return self.settled.variant("Unknown")

    def struct(self, name: str, *fields: object) -> Struct:
        return Struct(self.enum(name), list(fields))


def _make(key: int | str, definition: TypeDef) -> TypeInfo:
    variants = definition.variants or ()
    info = TypeInfo(key, definition.name, definition.fields, variants)
    for index, variant in enumerate(variants):
        info.units.append(None if variant.fields else Variant(info, index, ()))
        info.index_of[variant.name] = index
    return info
