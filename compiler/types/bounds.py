"""What types can do: `Data` has a JSON form, `Ordered` has `<`, `Number` has `+ - *`.

A struct or enum is data if all its fields are. A type parameter can do what its bound says, and
what orders or counts is data. Never and what was reported already can do everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.compiler.types.model import (
    Con,
    ErrorType,
    FlowRef,
    Fn,
    NeverType,
    Param,
    Tup,
    Type,
    Var,
    show,
)
from qoqi.compiler.types.unify import substitute

if TYPE_CHECKING:
    from qoqi.compiler.types.context import Body, Obligation, Program

BOUNDS = ("Data", "Ordered", "Number")

_ORDERED = {"Int", "Decimal", "Float", "String", "Duration", "Time", "Date", "Instance"}
_NUMBERS = {"Int", "Decimal", "Float"}
_DATA = _ORDERED | {"Bool", "Bytes", "List", "Map", "Set", "Never"}
_NOT_DATA = {"Channel", "Task", "Request", "Range", "Outbox", "test.Handle"}


def satisfies(program: Program, type_: Type, bound: str) -> bool:
    if isinstance(type_, ErrorType | NeverType | Var):
        return True
    if isinstance(type_, Param):
        return type_.bound == bound or (bound == "Data" and type_.bound is not None)
    if bound == "Number":
        return isinstance(type_, Con) and type_.name in _NUMBERS
    if bound == "Ordered":
        return _is_ordered(program, type_)
    return is_data(program, type_)


def is_data(program: Program, type_: Type) -> bool:
    return first_not_data(program, type_) is None


def first_not_data(program: Program, type_: Type) -> Type | None:
    """The part of a type that has no JSON form, if one has none."""
    return _not_data(program, type_, set())


def _not_data(program: Program, type_: Type, seen: set[Type]) -> Type | None:
    match type_:
        case ErrorType() | NeverType() | FlowRef() | Var():
            return None
        case Param(bound=bound):
            return None if bound is not None else type_
        case Fn():
            return type_
        case Tup(items=items):
            return _first(program, items, seen)
        case Con(name=name, args=args):
            if name in _NOT_DATA:
                return type_
            if name in _DATA:
                return _first(program, args, seen)
            if type_ in seen:
                return None
            seen.add(type_)
            return _first(program, parts(program, type_), seen)


def _first(program: Program, types: tuple[Type, ...], seen: set[Type]) -> Type | None:
    for part in types:
        found = _not_data(program, part, seen)
        if found is not None:
            return found
    return None


def parts(program: Program, type_: Con) -> tuple[Type, ...]:
    """The types of a struct's fields, or of all fields of an enum's variants."""
    struct = program.structs.get(type_.name)
    if struct is not None:
        mapping: dict[Type, Type] = dict(zip(program.params[struct], type_.args, strict=False))
        return tuple(substitute(t, mapping) for _, t in program.struct_fields[struct])
    enum = program.enums.get(type_.name)
    if enum is None:
        return ()
    mapping = dict(zip(program.params[enum], type_.args, strict=False))
    return tuple(
        substitute(t, mapping)
        for variant in program.variants[type_.name].values()
        for _, t, _ in program.signatures[variant].params
    )


def _is_ordered(program: Program, type_: Type) -> bool:
    match type_:
        case Tup(items=items):
            return bool(items) and all(satisfies(program, item, "Ordered") for item in items)
        case Con(name=name):
            if name in _ORDERED:
                return True
            enum = program.enums.get(name)
            return enum is not None and all(v.params is None for v in enum.decl.variants)
        case _:
            pass
    return False


def check_bound(body: Body, obligation: Obligation, type_: Type) -> None:
    """Reports a type that lacks what a body demanded of it."""
    if satisfies(body.program, type_, obligation.bound):
        return
    shown = show(type_)
    notes: list[str] = []
    match obligation.bound:
        case "Data":
            part = first_not_data(body.program, type_) or type_
            message = f"{obligation.what} is data, and `{shown}` is not"
            if isinstance(part, Param):
                notes.append(f"Say that it is: `<{part.name}: Data>`.")
            elif part != type_:
                notes.append(f"`{show(part)}` is a part of it and has no JSON form.")
            else:
                notes.append("Functions, channels, tasks, requests and ranges have no JSON form.")
        case "Ordered":
            message = f"{obligation.what} has an order, and `{shown}` has none"
            if isinstance(type_, Param):
                notes.append(f"Say that it has: `<{type_.name}: Ordered>`.")
            else:
                notes.append(
                    "Numbers, strings, durations, times, dates, enums without fields, instances "
                    "and tuples of them have an order."
                )
        case _:
            message = f"{obligation.what} is a number, and `{shown}` is not"
            if isinstance(type_, Param):
                notes.append(f"Say that it is: `<{type_.name}: Number>`.")
    once = (type_, obligation.bound) if isinstance(type_, Param) else None
    body.error("E0314", obligation.span, message, notes=notes, once=once)
