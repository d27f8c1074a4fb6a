"""`dataclass` as in the standard library, whose methods are written when they are first called.

There are three hundred data classes here, and the standard library writes and compiles up to nine
methods for each when the class is made: that was half of the time that any command took to start.
In most runs most classes are never made an instance of, and next to none is compared or shown. So
here a method is at first a small function that writes the real one, puts it in its own place, and
calls it. Making a class takes a tenth of the time. The methods are the same source as there, but
for `__init__` of a frozen class, which fills the slots by their own setters and is faster for it.

The rest is done by the standard library: fields, defaults, slots and `__match_args__`, and with
them `fields`, `replace` and `is_dataclass`. Type checkers are shown its own `dataclass`, so they
know all that they know of it. What no class of ours needs is refused where the class is made:
classes without slots, `kw_only`, fields that `__init__` does not take.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        *,
        slots: bool,
        frozen: bool = False,
        eq: bool = True,
        order: bool = False,
        unsafe_hash: bool = False,
    ) -> Callable[[type], type]:
        """Makes a class of its annotations."""

        def make(cls: type) -> type:
            if not slots:
                raise TypeError(f"{cls.__name__} has no slots")
            return _made(cls, frozen, eq, order, unsafe_hash)

        return make


__all__ = ["dataclass"]

_ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}

_Fields = Iterable["Field[Any]"]


def _made(cls: type, frozen: bool, eq: bool, order: bool, unsafe_hash: bool) -> type:
    if cls.__doc__ is None:  # The standard library finds the types of the signature too, slowly.
        cls.__doc__ = f"{cls.__name__}({', '.join(vars(cls).get('__annotations__', ()))})"
    own = {name for name, value in vars(cls).items() if value is not None or name != "__hash__"}
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    fields = dataclasses.fields(made)
    for field in fields:
        if field.kw_only or not field.init:
            raise TypeError(f"{cls.__name__}.{field.name} is no argument by its position")
    compared = [field for field in fields if field.compare]
    methods: dict[str, object] = {
        "__init__": _written(made, "__init__", lambda: _init(made, fields, frozen)),
        "__repr__": _written(made, "__repr__", lambda: _repr(fields)),
    }
    if eq:
        methods["__eq__"] = _written(made, "__eq__", lambda: _comparison("==", compared))
    if unsafe_hash or (eq and frozen):
        methods["__hash__"] = _written(made, "__hash__", lambda: _hash(compared))
    elif eq:
        methods["__hash__"] = None
    if order:
        for name, sign in _ORDER.items():
            methods[name] = _written(made, name, partial(_comparison, sign, compared))
    if frozen:
        methods["__setattr__"], methods["__delattr__"] = _refuse_to_set, _refuse_to_delete
        methods["__getstate__"], methods["__setstate__"] = _state, _set_state
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    result: type = made
    return result


def _written(made: Any, name: str, write: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A method that at its first call is replaced by the one that is written for the class."""

    def first(self: object, *args: object, **named: object) -> Any:
        method = write()
        method.__qualname__ = f"{made.__qualname__}.{name}"
        setattr(made, name, method)
        return method(self, *args, **named)

    return first


def _compiled(
    name: str, parameters: str, body: str, scope: dict[str, object]
) -> Callable[..., Any]:
    exec(f"def {name}(self{parameters}):\n {body}", scope)
    method: Callable[..., Any] = scope[name]  # type: ignore[assignment]
    return method


def _init(made: Any, fields: _Fields, frozen: bool) -> Callable[..., Any]:
    parameters: list[str] = []
    lines: list[str] = []
    scope: dict[str, object] = {"MISSING": MISSING}
    for field in fields:
        name = value = field.name
        default = ""
        if field.default is not MISSING:
            default = f"=default_{name}"
            scope[f"default_{name}"] = field.default
        elif field.default_factory is not MISSING:
            default = "=MISSING"
            scope[f"make_{name}"] = field.default_factory
            value = f"make_{name}() if {name} is MISSING else {name}"
        parameters.append(f", {name}{default}")
        if frozen:
            scope[f"set_{name}"] = getattr(made, name).__set__
            lines.append(f"set_{name}(self, {value})")
        else:
            lines.append(f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    return _compiled("__init__", "".join(parameters), "\n ".join(lines) or "pass", scope)


def _repr(fields: _Fields) -> Callable[..., Any]:
    shown = ", ".join(f"{each.name}={{self.{each.name}!r}}" for each in fields if each.repr)
    return _compiled("__repr__", "", f"return f'{{type(self).__qualname__}}({shown})'", {})


def _comparison(sign: str, fields: _Fields) -> Callable[..., Any]:
    body = (
        f"return {_values('self', fields)} {sign} {_values('other', fields)}"
        " if other.__class__ is self.__class__ else NotImplemented"
    )
    return _compiled("compare", ", other", body, {})


def _hash(fields: _Fields) -> Callable[..., Any]:
    return _compiled("__hash__", "", f"return hash({_values('self', fields)})", {})


def _values(of: str, fields: _Fields) -> str:
    return f"({''.join(f'{of}.{each.name},' for each in fields)})"


# -- frozen classes ----------------------------------------------------------------------------


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    """What a copy is made of, in place of assignments."""
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: Iterable[object]) -> None:
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)
