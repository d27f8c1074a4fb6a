"""Who waits for a slot of a step with a `limit`, in this daemon: told when one is free.

What counts is in the store: attempts that are open (`Host.in_use`). An instance that finds no slot
looks again once a second, whoever has them; where an attempt of this daemon ends, the one that has
waited longest looks at once. It keeps its place until its step leaves or it leaves memory, so one
that was told in vain is the first again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qoqi.vm.bytecode.chunk import StepDef
from qoqi.vm.host import SlotFree

if TYPE_CHECKING:
    from qoqi.runtime.host import StoreHost


class Slots:
    """By step: the hosts that asked, in that order, and whether each was told since."""

    def __init__(self) -> None:
        self._asked: dict[str, dict[StoreHost, bool]] = {}
        self._under_way: dict[tuple[str, int], str] = {}

    def asked(self, step: str, host: StoreHost) -> None:
        """It counts the slots in use, and waits unless its step leaves."""
        self._asked.setdefault(step, {})[host] = False

    def got(self, step: str, host: StoreHost) -> None:
        """A step of it leaves: it has a slot."""
        asked = self._asked.get(step, {})
        asked.pop(host, None)
        if not asked:
            self._asked.pop(step, None)

    def begins(self, step: StepDef, key: str, attempt: int) -> None:
        """An attempt begins in this daemon, which will hear of its end."""
        if any(not per for _, per in step.limits):
            self._under_way[key, attempt] = step.name

    def ended(self, key: str, attempt: int) -> None:
        """It is written that an attempt has ended."""
        step = self._under_way.pop((key, attempt), None)
        if step is None:
            return
        asked = self._asked.get(step, {})
        waits = next((host for host, told in asked.items() if not told), None)
        if waits is not None:
            asked[waits] = True
            waits.push(SlotFree(step))

    def gone(self, host: StoreHost) -> None:
        """It leaves memory."""
        for step in [step for step, asked in self._asked.items() if host in asked]:
            self.got(step, host)
