"""What bytecode can ask of the world around it: a closed union.

`interpreter.advance` runs a task until it can go on no more without an answer from outside, and
gives one of these. The turn answers by `interpreter.resume(task, value)`, or leaves the task
stopped at the effect.

`Operation` names (`OPERATION` instructions) and what they are given and give:

    flow.now () -> Time                       flow.id flow.birth flow.version () -> String
    flow.uuid () -> String                    flow.random (Range) -> Int
    flow.self () -> Instance                  flow.print (text) -> ()
    flow.undo flow.finally (Undo) -> ()       flow.commit flow.unwind () -> ()
    flow.stop (question, term) -> T           flow.giveUp (why) -> Never
    flow.refuse (text) flow.accept () -> ()
    undo.step (step number, args tuple) -> Undo, a value only undo/finally take
    undo.send (Instance, channel name, value, key?) -> Undo
    channel.poll (channel number) -> T?       channel.close (channel number) -> ()
    instance.start (flow, name, args tuple) -> Instance      instance.detach (the same) -> Instance
    instance.find (flow, name) -> Instance?
    instance.cancel (Instance, why) -> Result<(), CancelError>
    instance.send (Instance, channel name, value, key?) -> Result<Sent, SendError>
    instance.ask (Instance, channel name, value, key?) -> an asking, taken by WaitKind.ANSWER
    request.answer (Request, value) -> ()
    task.start (closure, args tuple) -> Task  task.cancel (Task) -> ()
    task.map (list, closure, limit Int or -1) -> list: starts, then waits for all

In a step's body only:

    step.key () -> String     step.attempt () -> Int     step.working () -> Bool
    step.retry (Duration?) -> Never                      flow.undo (Undo) -> ()
    http.request (method, url, headers map, body Bytes?) -> http.Response
    env.get (name) -> String?   random.int (Range)   random.uuid ()   log.write (text)
    time.now () -> Time   file.read (path) -> Bytes   file.write (path, Bytes)
"""

from __future__ import annotations

from typing import TypeAlias

from qoqi.vm.bytecode.opcodes import WaitKind
from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import Failure


@dataclass(frozen=True, slots=True)
class StepCall:
    """`step` indexes the chunk's steps."""

    step: int
    args: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a wait that is on; `number` counts the cases as written."""

    number: int
    kind: WaitKind
    operands: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class PassStage:
    stage: int


@dataclass(frozen=True, slots=True)
class Operation:
    name: str
    args: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    value: object


@dataclass(frozen=True, slots=True)
class Failed:
    failure: Failure


@dataclass(frozen=True, slots=True)
class OutOfBudget:
    """The budget of instructions is spent; the task can go on at once."""


Effect: TypeAlias = StepCall | Wait | PassStage | Operation | Ended | Failed | OutOfBudget
