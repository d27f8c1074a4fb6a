"""What natives need of the program they run in."""

from __future__ import annotations

from collections.abc import Callable

from qoqi.vm.dataclass import dataclass
from qoqi.vm.types import Types


@dataclass(frozen=True, slots=True)
class Context:
    """The program's types, and what gives the value of a default (a function of no parameters)."""

    types: Types
    default: Callable[[int], object]
