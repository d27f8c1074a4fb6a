"""One line on each word of the language that no declaration of flow documents.

Hover and completion show these; their types are the checker's (`compiler.types.builtins`).
"""

from __future__ import annotations

from qoqi.compiler.types.builtins import FLOW, FREE
from qoqi.compiler.types.model import show

DOCS: dict[str, str] = {
    "flow.now": "The moment at which the last answer was given; the same on a replay.",
    "flow.id": "The name of this instance.",
    "flow.birth": "What tells this instance from others of its name.",
    "flow.version": "The hash of the bytecode this instance runs on.",
    "flow.uuid": "A new UUID, drawn once and kept.",
    "flow.random": "A number of the range, drawn once and kept.",
    "flow.sleep": "Waits for a length of time.",
    "flow.sleepUntil": "Waits until a moment.",
    "flow.until": "Waits until a condition over the flow's fields is true.",
    "flow.cancelled": "A case of `wait match`: the instance is asked to end, with this reason.",
    "flow.giveUp": "Ends the instance as a cancellation that nobody listens for does.",
    "flow.refuse": "From here on a cancellation is answered with this text.",
    "flow.accept": "Takes `flow.refuse` back.",
    "flow.commit": "Forgets the undos registered so far.",
    "flow.unwind": "Runs the undos registered so far, the last first, and goes on.",
    "flow.undo": "Registers a step or a send that takes back what was done.",
    "flow.finally": "Registers a step that runs at every end of the instance.",
    "flow.detach": "Starts an instance that has no parent.",
    "flow.self": "This instance.",
    "flow.stop": "Stops the instance for a person, whose answer is the value.",
    "flow.key": "The key of this step: the same at each of its tries. For `Idempotency-Key`.",
    "flow.attempt": "The number of this try, from 1.",
    "flow.working": "Says that the step is still at work.",
    "flow.retry": "Ends this try; the step is tried again later.",
    "task.start": "Starts a function as a task of this instance.",
    "task.map": "Runs a function on each item, at the same time; the answers in the list's order.",
    "task.all": "Waits for all instances, or until one has no result.",
    "task.settle": "Waits for all instances, whatever becomes of them.",
    "task.first": "Waits for the first that ends: its place in the list, and its result.",
    "clock.now": "The time of the test.",
    "clock.advance": "Moves the time of the test on.",
    "clock.set": "Sets the time of the test.",
    "channel.receive": "Waits for the next message.",
    "channel.send": "Sends a message; waits while the channel is full.",
    "channel.poll": "A message that is there already, or `None`.",
    "channel.close": "Closes the channel: later sends are answered `Ended`.",
    "instance.start": "Starts an instance under a name; a name already taken gives that instance.",
    "instance.find": "The instance of that name, if there is one.",
    "instance.wait": "Waits for the end of the instance, and gives its result.",
    "instance.cancel": "Asks the instance to end.",
    "instance.send": "Sends a message to the instance.",
    "instance.ask": "Sends a request to the instance and waits for the answer.",
    "task.join": "Waits for the end of the task, and gives its result.",
    "task.cancel": "Stops the task at its wait.",
    "request.answer": "Answers the request, once.",
    "data.toJson": "The value as `Json`.",
    "data.decode": "Reads the type that is expected here from `Json`; fails where it does not fit.",
    "data.tryDecode": "Reads the type that is expected here from `Json`, or says what is wrong.",
    "print": "Writes to the history of the instance; in a step, to the log.",
    "assert": "Fails unless the condition is true.",
    "fail": "Ends the task with a failure: the instance stops for a person.",
    "steps": "The names of the steps that left, in order.",
    "calls": "The arguments a step was called with, in order.",
    "attempts": "The attempts that left, in order.",
    "times": "When the attempts of a step left.",
}

WORLDLY = frozenset({"flow.key", "flow.attempt", "flow.working", "flow.retry"})
"""Words of `flow` that belong into steps; the others belong into flows."""


def signature(name: str) -> str:
    """How a word is called, as far as one line can say it."""
    space, _, word = name.partition(".")
    shape = FLOW.get(word) if space == "flow" else FREE.get(name)
    if shape is None:
        return f"{name}(…)"
    params = ", ".join(
        f"{param}: {show(type_)}{' = …' if optional else ''}"
        for param, type_, optional in shape.params
    )
    result = show(shape.result)
    return f"{name}({params})" + ("" if result == "()" else f" -> {result}")
