"""The codes of what goes wrong at run time: one for each kind of mistake, never reused."""

from __future__ import annotations

from typing import Final

from qoqi.vm.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    code: str
    title: str


_RUNTIME: Final = (
    Code("R0001", "the program said fail, or an assertion is false"),
    Code("R0002", "an index or a key that is not there"),
    Code("R0003", "a division by zero"),
    Code("R0004", "a value from outside does not decode"),
    Code("R0005", "a number out of range"),
    Code("R0006", "too many calls under way"),
    Code("R0007", "too long without a step or a wait"),
    Code("R0008", "a value or a state that is too large"),
    Code("R0009", "nothing can ever move this instance again"),
    Code("R0010", "a name that an instance may not have"),
    Code("R0011", "this instance ended its daemon again and again"),
    Code("R0012", "a step gave no answer in all its attempts"),
    Code("R0013", "undone while a step may have acted and gave no answer"),
    Code("R0014", "an undo of a step that its version does not have"),
    Code("R0015", "an undo that failed"),
    Code("R0016", "a frozen state that cannot be read"),
    Code("R0017", "a state that does not go over into a newer version"),
    Code("F0101", "kept answers that nobody asked for again"),
    Code("F0102", "another question under the key of a kept answer"),
    Code("F0103", "the stage this instance stands at is gone"),
    Code("F0104", "the program asked for a person"),
)

RUNTIME_CODES: Final[dict[str, Code]] = {code.code: code for code in _RUNTIME}
