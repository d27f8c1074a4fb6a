"""Flows written as text, compiled to chunks, run on the machine itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from qoqi.compiler import api
from qoqi.compiler.diagnostics import Severity
from qoqi.vm.bytecode.chunk import Chunk, Debug, StepDef
from qoqi.vm.bytecode.codec import decode, encode
from qoqi.vm.effects import Effect, Ended
from qoqi.vm.frames import Machine, Task
from qoqi.vm.interpreter import advance, call, start_task
from qoqi.vm.program import Program, load
from qoqi.vm.values import UNSET, Closure


@dataclass
class Compiled:
    """A flow's chunk and the program loaded from its bytes."""

    chunk: Chunk
    debug: Debug
    program: Program

    def value(self, *flow_slots: object) -> object:
        """What `run` returns, of a flow that asks for nothing."""
        slots = self.slots(*flow_slots)
        fields = call(self.program, self.chunk.fields_init, (), slots)
        assert isinstance(fields, tuple)
        slots[len(slots) - len(fields) :] = fields
        return call(self.program, self.chunk.run, (), slots)

    def slots(self, *given: object) -> list[object]:
        missing = len(self.chunk.flow_slots) - len(given)
        return [*given, *[UNSET] * missing]

    def step(self, name: str) -> StepDef:
        return next(step for step in self.chunk.steps if step.name == name)

    def step_index(self, name: str) -> int:
        return [step.name for step in self.chunk.steps].index(name)

    def function(self, number: int, *args: object) -> object:
        return call(self.program, number, args)


class Running:
    """A task of a compiled flow, moved from effect to effect."""

    def __init__(self, compiled: Compiled, *flow_slots: object, callee: Closure | None = None):
        self.compiled = compiled
        self.machine = Machine("i", "b", "v", flow_slots=compiled.slots(*flow_slots))
        start = compiled.chunk.run if callee is None else callee
        self.task = Task("0", start_task(compiled.program, start, ()), 0)

    def next(self, *answer: object) -> Effect:
        """Gives the answer of the last effect, and goes on to the next."""
        self.task.frames[-1].stack.extend(answer)
        return advance(self.compiled.program, self.machine, self.task, 100_000)

    def end(self, *answer: object) -> object:
        effect = self.next(*answer)
        assert isinstance(effect, Ended), effect
        return effect.value


class Files:
    """A package in memory."""

    def __init__(self, files: dict[str, str]) -> None:
        self.texts = files

    def files(self, folder: str, suffix: str) -> list[str]:
        return sorted(name for name in self.texts if name.endswith(suffix))

    def read(self, path: str) -> str:
        return self.texts[path]

    def is_file(self, path: str) -> bool:
        return path in self.texts

    def is_folder(self, path: str) -> bool:
        return path == "."


def compile_text(text: str, flow: str = "main.Main", **modules: str) -> Compiled:
    files = {"main.flow": text, **{f"{name}.flow": body for name, body in modules.items()}}
    result = api.build(".", reader=Files(files))
    problems = [d for d in result.diagnostics if d.severity is Severity.ERROR]
    assert not problems, [(d.code, d.message, text[d.span.start : d.span.end]) for d in problems]
    built = next(each for each in result.flows if each.name == flow)
    assert encode(decode(built.data)) == built.data
    return Compiled(built.chunk, built.debug, load(decode(built.data), built.debug))


@pytest.fixture(scope="session")
def files() -> type[Files]:
    return Files


@pytest.fixture(scope="session")
def compiled() -> Callable[..., Compiled]:
    return compile_text


@pytest.fixture
def running() -> type[Running]:
    return Running


@pytest.fixture
def value() -> Callable[..., object]:
    """The value of a body of `run`; `result` is the flow's type, `more` stands before the flow."""

    def run(body: str, result: str = "Int", more: str = "", members: str = "") -> object:
        text = f"{more}\nflow Main() -> {result} {{\n{members}\nrun {{\n{body}\n}}\n}}\n"
        return compile_text(text).value()

    return run
