"""Natives: what `native fn` of the standard library is, by name; pure functions of values.

Names. A function of a module is `module.fn` (`text.matches`, `math.sqrt`), a method by its self and
a function of a type is `Type.fn` (`List.append`, `Int.parse`), a function of the prelude its name
(`min`). What the compiler itself emits: `data.toJson`, `data.decode`, `data.tryDecode`,
`data.show`, `fail`.

Three tables. A native of `PURE` is given its arguments. One of `TYPED` is given the `Context`
first: it makes values of the prelude (`Option`, `Json` …) or reads JSON into a type. One of
`MUTATING` is given the context, then the value of a place, its own to change, then the arguments,
and gives (result, new value); it changes nothing if it fails.

The subjects are in `natives_…`; each has its part of the tables. A name or a number of arguments
that no table has is refused as the program is loaded, not when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any, Final

from qoqi.vm import (
    natives_collections,
    natives_json,
    natives_numbers,
    natives_text,
    natives_time,
)
from qoqi.vm.bytecode.codec import ChunkError
from qoqi.vm.context import Context

Native = Callable[..., Any]

_SUBJECTS: Final = (
    natives_collections,
    natives_json,
    natives_numbers,
    natives_text,
    natives_time,
)

PURE: Final[dict[str, Native]] = {
    name: native for subject in _SUBJECTS for name, native in subject.PURE.items()
}
TYPED: Final[dict[str, Native]] = {
    name: native for subject in _SUBJECTS for name, native in subject.TYPED.items()
}
MUTATING: Final[dict[str, Native]] = dict(natives_collections.MUTATING)


def names() -> frozenset[str]:
    """All natives there are."""
    return frozenset(PURE) | frozenset(TYPED) | frozenset(MUTATING)


def bind(name: str, count: int, context: Context) -> Native:
    """The native of this name for a call with so many arguments; ChunkError if there is none."""
    if name in PURE:
        return _checked(name, PURE[name], count, 0)
    if name in TYPED:
        return partial(_checked(name, TYPED[name], count, 1), context)
    raise ChunkError(f"there is no native {name[:60]}")


def mutator(name: str, count: int, context: Context) -> Native:
    """The native that changes a place, for a call with so many arguments beside the place."""
    if name not in MUTATING:
        raise ChunkError(f"there is no native {name[:60]} that changes a place")
    return partial(_checked(name, MUTATING[name], count, 2), context)


def _checked(name: str, native: Native, count: int, given: int) -> Native:
    """The native, if it takes `count` arguments beside the `given` ones."""
    most = least = 0
    for parameter in signature(native).parameters.values():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            most = 255
            continue
        most += 1
        least += parameter.default is Parameter.empty
    if not least <= count + given <= most:
        raise ChunkError(f"the native {name} does not take {count} arguments")
    return native
