"""The machine in memory: frames, tasks, channels and what an instance carries between its turns.

These are the only mutable objects of the vm. `snapshot` freezes a machine to text and thaws it;
`interpreter` moves tasks; `turn` decides what happens at each effect.
"""

from __future__ import annotations

from dataclasses import field

from qoqi.vm.dataclass import dataclass
from qoqi.vm.effects import Case
from qoqi.vm.failure import Failure


@dataclass(slots=True)
class Frame:
    """A call under way: function number, the next pc, locals, operand stack."""

    function: int
    pc: int
    slots: list[object]
    stack: list[object] = field(default_factory=list)


@dataclass(slots=True)
class AtStep:
    """Stopped at a step: under which key, which attempt, what was asked (JSON text)."""

    step: int
    key: str
    args: tuple[object, ...]
    attempt: int
    asked: str


@dataclass(slots=True)
class AtWait:
    """Stopped at a wait. `since` is when it began (store's clock, ms).

    `times` has the moment at which an AFTER or AT case is over, by case number.
    """

    key: str
    cases: tuple[Case, ...]
    times: dict[int, int]
    since: int
    asked: str


@dataclass(slots=True)
class AtOperation:
    """Stopped at an operation whose answer needs a write first: start, send, ask, stop."""

    name: str
    key: str
    args: tuple[object, ...]
    asked: str


@dataclass(slots=True)
class Task:
    """`counts` numbers, per name, the steps, waits and tasks it started in this pass.

    `ended` with `value`, or with `failure`; `cancelled` says that its owner stopped it.
    `now` is what flow.now() gives: when the last answer it took was first given, in ms.
    `spent` counts instructions since its last step or wait (R0007); it is no part of the state, nor
    is `text`: what it was frozen as (see `snapshot`), at which stop and try.
    """

    name: str
    frames: list[Frame]
    now: int
    at: AtStep | AtWait | AtOperation | None = None
    counts: dict[str, int] = field(default_factory=dict)
    ended: bool = False
    cancelled: bool = False
    value: object = None
    failure: Failure | None = None
    group: str = ""
    spent: int = field(default=0, compare=False)
    text: tuple[object, int, str] | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Channel:
    """Values from inside and those taken in from outside, in the order they were put."""

    items: list[object] = field(default_factory=list)
    closed: bool = False


@dataclass(frozen=True, slots=True)
class UndoEntry:
    """An undo (or `final`, a flow.finally) as data: number over the instance's life, what to call.

    `version` is the hash whose bytecode has the step; `target` is a step's name, or `send`.
    `args` is JSON text of the arguments.
    """

    number: int
    version: str
    target: str
    args: str
    final: bool = False
    key: str = ""


@dataclass(slots=True)
class Machine:
    """One instance in memory. Times in milliseconds; `given` counts answers given in its life.

    `undos_at_stop` are those registered when a person resumed it from its last stage: a
    cancellation that comes before the replay has registered them again still runs them (O2).
    """

    id: str
    birth: str
    version: str
    pass_number: int = 0
    stage: str | None = None
    tasks: dict[str, Task] = field(default_factory=dict)
    flow_slots: list[object] = field(default_factory=list)
    channels: list[Channel] = field(default_factory=list)
    undos: list[UndoEntry] = field(default_factory=list)
    undos_at_stop: list[UndoEntry] = field(default_factory=list)
    undo_count: int = 0
    given: int = 0
    cancels: list[str] = field(default_factory=list)
    refuses: str | None = None
    returned: bool = False
    started: int = 0
