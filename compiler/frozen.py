"""Classes of things that never change and compare by identity: nodes of the tree, and symbols.

A class with `@frozen` names its fields by annotations, as a dataclass does, and is read as one by
type checkers. Fields of the parent come first; those with a default come last.

These are not dataclasses because there are more than a hundred of them, and `import` would spend
longer on making them than on all else together. Here a class costs one small `exec`, and an object
is filled by its slots' own setters, which the ban on assignment does not slow down. There is no
metaclass either: with one, every `isinstance` and every `case` would take four times as long.
"""

from __future__ import annotations

from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T", bound="Frozen")

# What a class gets when it is made, and a copy of it anew.
_MADE = ("__dict__", "__weakref__", "__slots__")


class Frozen:
    """What all of them share: they cannot be assigned to, and show their fields."""

    __slots__ = ()
    __match_args__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: {name}")

    def __repr__(self) -> str:
        names = type(self).__match_args__
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"


@dataclass_transform(frozen_default=True, eq_default=False)
def frozen(cls: type[T]) -> type[T]:
    """The class with slots, `__init__` and `__match_args__` made of its annotations."""
    namespace: dict[str, Any] = {k: v for k, v in cls.__dict__.items() if k not in _MADE}
    own: dict[str, str] = namespace.get("__annotations__", {})
    defaults = {field: namespace.pop(field) for field in own if field in namespace}
    names = (*cls.__match_args__, *own)
    namespace["__slots__"] = tuple(own)
    namespace["__match_args__"] = names
    made: Any = type(cls.__name__, cls.__bases__, namespace)
    made.__init__ = _initializer(made, names, defaults)
    whole: type[T] = made
    return whole


def _initializer(made: type, names: tuple[str, ...], defaults: dict[str, object]) -> object:
    """`def __init__(self, a, b)` that fills the slots `a` and `b`."""
    scope: dict[str, object] = {f"set_{name}": getattr(made, name).__set__ for name in names}
    scope |= {f"default_{name}": value for name, value in defaults.items()}
    parameters = "".join(
        f", {name}=default_{name}" if name in defaults else f", {name}" for name in names
    )
    body = "".join(f"\n    set_{name}(self, {name})" for name in names) or "\n    pass"
    exec(f"def __init__(self{parameters}):{body}", scope)
    return scope["__init__"]
