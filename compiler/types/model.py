"""The types, as values. Two types are the same if they compare equal.

A declared type is known by its qualified name: `module.Name`, the prelude's by the bare name
(`Int`, `List`, `Option`, `Result`, `Settled`, `Json`). `Var` is a type not known yet and appears
during inference only: facts that leave the checker have none.
"""

from __future__ import annotations

from typing import TypeAlias

from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Con:
    """`Int`, `List<T>`, `claims.Claim`, `Instance<F>` (its one argument is a FlowRef)."""

    name: str
    args: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Tup:
    """A tuple; without items, unit."""

    items: tuple[Type, ...] = ()


@dataclass(frozen=True, slots=True)
class Fn:
    params: tuple[Type, ...]
    result: Type


@dataclass(frozen=True, slots=True)
class Param:
    """A type parameter in scope; `owner` tells two of one name apart."""

    name: str
    owner: str
    bound: str | None = None


@dataclass(frozen=True, slots=True)
class FlowRef:
    """The argument of `Instance`: a flow by its qualified name."""

    name: str


@dataclass(frozen=True, slots=True)
class NeverType:
    """Of what does not come back; fits every type."""


@dataclass(frozen=True, slots=True)
class ErrorType:
    """Of what was reported already; fits every type, so that one mistake is one diagnostic."""


@dataclass(frozen=True, slots=True)
class Var:
    id: int


Type: TypeAlias = Con | Tup | Fn | Param | FlowRef | NeverType | ErrorType | Var

UNIT = Tup()
NEVER = NeverType()
ERROR = ErrorType()
BOOL, INT, DECIMAL, FLOAT = Con("Bool"), Con("Int"), Con("Decimal"), Con("Float")
STRING, BYTES, JSON = Con("String"), Con("Bytes"), Con("Json")
DURATION, TIME, DATE = Con("Duration"), Con("Time"), Con("Date")


def list_of(item: Type) -> Con:
    return Con("List", (item,))


def set_of(item: Type) -> Con:
    return Con("Set", (item,))


def map_of(key: Type, value: Type) -> Con:
    return Con("Map", (key, value))


def option_of(inner: Type) -> Con:
    return Con("Option", (inner,))


def result_of(ok: Type, err: Type) -> Con:
    return Con("Result", (ok, err))


def settled_of(inner: Type) -> Con:
    return Con("Settled", (inner,))


def instance_of(flow: str) -> Con:
    return Con("Instance", (FlowRef(flow),))


def a_type(type_: Type) -> str:
    """The type as a message has it, with its article: `an` `Int`, `a` `String?`."""
    shown = show(type_)
    return f"{'an' if shown[:1] in 'AEIO' else 'a'} `{shown}`"


def show(type_: Type) -> str:
    """As a user would write it; unknown parts are `_`."""
    match type_:
        case Con("Option", (inner,)):
            return f"{show(inner)}?"
        case Con(name, args):
            short = name.rsplit(".", 1)[-1]
            return f"{short}<{', '.join(map(show, args))}>" if args else short
        case Tup(items):
            return f"({', '.join(map(show, items))})"
        case Fn(params, result):
            return f"fn({', '.join(map(show, params))}) -> {show(result)}"
        case Param(name=name):
            return name
        case FlowRef(name):
            return name.rsplit(".", 1)[-1]
        case NeverType():
            return "Never"
        case ErrorType() | Var():
            return "_"
