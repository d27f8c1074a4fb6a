"""Classes of things that never change and compare by identity: nodes of the tree, and symbols.

A class that derives from `Frozen` names its fields by annotations, as a dataclass does, and is read
as one by type checkers: `class Ident(Node): name: str`. Fields of the parent come first; those with
a default come last.

These are not dataclasses because there are more than a hundred of them, and `import` would spend
longer on making them than on all else together. Here a class costs one small `exec`, and an object
is filled by its slots' own setters, which the ban on assignment does not slow down.
"""

from __future__ import annotations

from typing import Any, dataclass_transform


@dataclass_transform(frozen_default=True, eq_default=False)
class FrozenType(type):
    """Makes slots, `__init__` and `__match_args__` of annotations."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> FrozenType:
        own: dict[str, str] = namespace.get("__annotations__", {})
        defaults = {field: namespace.pop(field) for field in own if field in namespace}
        namespace["__slots__"] = tuple(own)
        made = super().__new__(mcs, name, bases, namespace)
        names = [*(field for base in bases for field in getattr(base, "__match_args__", ())), *own]
        type.__setattr__(made, "__match_args__", tuple(names))
        type.__setattr__(made, "__init__", _initializer(made, names, defaults))
        return made


def _initializer(made: type, names: list[str], defaults: dict[str, object]) -> object:
    """`def __init__(self, a, b)` that fills the slots `a` and `b`."""
    scope: dict[str, object] = {f"set_{name}": getattr(made, name).__set__ for name in names}
    scope |= {f"default_{name}": value for name, value in defaults.items()}
    parameters = "".join(
        f", {name}=default_{name}" if name in defaults else f", {name}" for name in names
    )
    body = "".join(f"\n    set_{name}(self, {name})" for name in names) or "\n    pass"
    exec(f"def __init__(self{parameters}):{body}", scope)
    return scope["__init__"]


class Frozen(metaclass=FrozenType):
    """What all of them share: they cannot be assigned to, and show their fields."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed: {name}")

    def __repr__(self) -> str:
        names: tuple[str, ...] = type(self).__match_args__
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"
