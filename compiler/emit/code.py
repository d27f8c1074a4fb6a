"""Code of one function while it grows: instructions, labels, the depth of the stack, lines.

Jumps name labels and get their pc when the function is finished. The depth of the operand stack is
known at every instruction, so that leaving a loop from inside an expression can drop what lies
above the loop's depth, and every label is reached with one depth only.

After an instruction that does not go on (`JUMP`, `RETURN`, `FAIL`, …) nothing is written until a
label that some jump names is marked: code that cannot run is not in the chunk.
"""

from __future__ import annotations

from dataclasses import field

from qoqi.compiler.syntax import ast
from qoqi.vm.bytecode.chunk import Place
from qoqi.vm.bytecode.opcodes import OPCODES, Op
from qoqi.vm.dataclass import dataclass

_ENDS = frozenset({Op.JUMP, Op.SWITCH, Op.RETURN, Op.RETURN_MUTATED, Op.FAIL})


@dataclass(slots=True, eq=False)
class Label:
    """A place to jump to. `depth` is that of the stack there, -1 before anything leads to it."""

    pc: int = -1
    depth: int = -1


@dataclass(slots=True, eq=False)
class Loop:
    """Where `continue` and `break` lead, and the depth of the stack there."""

    again: Label
    end: Label
    depth: int


@dataclass(slots=True, eq=False)
class Scope:
    """A block that is open: what was deferred in it so far, and the loop whose body it is."""

    deferred: list[ast.Block] = field(default_factory=list[ast.Block])
    loop: Loop | None = None


@dataclass(slots=True, eq=False)
class Code:
    instructions: list[tuple[Op, int]] = field(default_factory=list[tuple[Op, int]])
    lines: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    depth: int = 0
    reachable: bool = True
    line: int = 0
    slot_names: list[str] = field(default_factory=list[str])
    places: dict[Place, int] = field(default_factory=dict[Place, int])
    mutations: dict[tuple[str, int, int], int] = field(
        default_factory=dict[tuple[str, int, int], int]
    )
    _targets: list[tuple[int, Label]] = field(default_factory=list[tuple[int, Label]])
    _switches: list[tuple[Label, ...]] = field(default_factory=list[tuple[Label, ...]])
    _marked: int = 0
    _free: list[int] = field(default_factory=list[int])
    _free_walks: list[int] = field(default_factory=list[int])

    # -- slots ------------------------------------------------------------------------------

    def slot(self, name: str) -> int:
        """A new local."""
        self.slot_names.append(name)
        return len(self.slot_names) - 1

    def temporary(self) -> int:
        """A local without a name, to be given back with `release`."""
        return self._free.pop() if self._free else self.slot("")

    def free(self, *slots: int) -> None:
        """Gives temporaries back: from here on no code uses what they hold."""
        self._free.extend(slots)

    def release(self, *slots: int) -> None:
        """Empties temporaries and gives them back, so that nothing is held longer than needed."""
        for slot in slots:
            self.emit(Op.CLEAR, slot)
        self.free(*slots)

    def walk(self) -> int:
        """Two locals in a row, for the list and the count of a `for`."""
        if self._free_walks:
            return self._free_walks.pop()
        self.slot("")
        return self.slot("") - 1

    def release_walk(self, slot: int) -> None:
        self.emit(Op.CLEAR, slot)
        self.emit(Op.CLEAR, slot + 1)
        self._free_walks.append(slot)

    # -- instructions -------------------------------------------------------------------------

    def emit(self, op: Op, operand: int = 0, *, pops: int | None = None) -> None:
        """Adds an instruction; `pops` is how many values it takes where that varies."""
        if not self.reachable:
            return
        info = OPCODES[op]
        taken = info.pops if info.pops is not None else pops
        given = info.pushes
        assert taken is not None, op
        assert given is not None, op
        assert taken <= self.depth, (op, self.depth)
        if self.line and (not self.lines or self.lines[-1][1] != self.line):
            self.lines.append((len(self.instructions), self.line))
        self.instructions.append((op, operand))
        self.depth += given - taken
        if op in _ENDS:
            self.reachable = False

    def jump(self, op: Op, label: Label) -> None:
        """A jump that leads to `label`."""
        if not self.reachable:
            return
        at = len(self.instructions)
        self.emit(op)
        self._targets.append((at, label))
        self._reach(label)

    def next_item(self, slot: int, end: Label) -> None:
        """Takes the next item of the walk in `slot`, `slot + 1`; goes to `end` after the last."""
        if not self.reachable:
            return
        self.instructions.append((Op.NEXT, slot))
        self.depth += 1
        self.jump(Op.JUMP_IF_FALSE, end)
        self.depth += 1

    def switch(self, labels: tuple[Label, ...]) -> None:
        if not self.reachable:
            return
        self._switches.append(labels)
        self.emit(Op.SWITCH, len(self._switches) - 1)
        for label in labels:
            self._reach(label)

    def mark(self, label: Label) -> None:
        """The next instruction is where `label` leads; a jump right before it is dropped."""
        last = len(self.instructions) - 1
        if (
            self._targets
            and self._targets[-1] == (last, label)
            and self._marked <= last
            and self.instructions[last][0] is Op.JUMP
        ):
            self._targets.pop()
            self.instructions.pop()
            if self.lines and self.lines[-1][0] == last:
                self.lines.pop()
        self._marked = len(self.instructions)
        label.pc = len(self.instructions)
        if label.depth < 0:
            if not self.reachable:
                return
            label.depth = self.depth
        assert not self.reachable or label.depth == self.depth, (label, self.depth)
        self.depth = label.depth
        self.reachable = True

    def drop_to(self, depth: int) -> None:
        """Drops what lies on the stack above `depth`."""
        while self.reachable and self.depth > depth:
            self.emit(Op.POP)

    def place(self, place: Place) -> int:
        return self.places.setdefault(place, len(self.places))

    def mutation(self, native: str, arguments: int, place: int) -> int:
        return self.mutations.setdefault((native, arguments, place), len(self.mutations))

    def _reach(self, label: Label) -> None:
        assert label.depth in (-1, self.depth), (label, self.depth)
        label.depth = self.depth

    # -- the finished function ------------------------------------------------------------------

    def finished(self) -> tuple[tuple[int, int], ...]:
        """The instructions with every jump's pc; a jump to a jump leads to where that goes."""
        code = [(int(op), operand) for op, operand in self.instructions]
        for at, label in self._targets:
            code[at] = (code[at][0], label.pc)
        for at, _ in self._targets:
            op, target = code[at]
            code[at] = (op, _followed(code, target))
        return tuple(code)

    def switches(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(label.pc for label in labels) for labels in self._switches)


def _followed(code: list[tuple[int, int]], target: int) -> int:
    seen: set[int] = set()
    while code[target][0] == Op.JUMP and target not in seen:
        seen.add(target)
        target = code[target][1]
    return target
