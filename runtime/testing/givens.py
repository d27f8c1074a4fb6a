"""`given`: what steps and functions answer in a test, and bodies that run with their effects given.

A test's program and the flows it starts share no values, only data: arguments go over as JSON read
into the test's types, and what a `given` answers goes back by the names of its types.
"""

from __future__ import annotations

from dataclasses import replace

from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.vm.bytecode.chunk import NO_FUNCTION, Term
from qoqi.vm.bytecode.opcodes import Op
from qoqi.vm.dataclass import dataclass
from qoqi.vm.effects import Ended, Failed, Operation, OutOfBudget
from qoqi.vm.failure import FlowError
from qoqi.vm.frames import Frame, Machine, Task
from qoqi.vm.host import FAILED, RETRY
from qoqi.vm.interpreter import advance, call, resume, start_task
from qoqi.vm.jsonform import from_json, json_text, to_json, value_text
from qoqi.vm.program import Program, load
from qoqi.vm.steps import retry_delay
from qoqi.vm.types import Types
from qoqi.vm.values import (
    UNSET,
    Closure,
    Duration,
    SetValue,
    Struct,
    TermValue,
    Time,
    UndoValue,
    Variant,
)

SLICE = 1_000_000
STUB = "given:"


class TestFailed(Exception):
    """The test fails here, for a reason of its own."""

    __test__ = False


@dataclass(slots=True)
class Given:
    """One `given`. `answers` are (kind, delay in ms, closure); `used` counts those given."""

    kind: str
    target: str
    file: str
    matcher: Closure
    answers: list[tuple[str, int, object]]
    params: Term
    runs: bool
    used: int = 0


class Givens:
    """The `given`s of one test, the last said first."""

    def __init__(self, program: Program, step_names: dict[str, tuple[str, ...]]) -> None:
        self.program = program
        self.step_names = step_names
        self.said: list[Given] = []
        self._replies: dict[tuple[str, int], tuple[int, Reply]] = {}
        self._stubbed: dict[tuple[int, frozenset[tuple[str, str]]], Program] = {}

    def say(self, args: tuple[object, ...]) -> None:
        kind, target, file, matcher, answers, params, runs = args
        assert isinstance(matcher, Closure) and isinstance(answers, list)
        links: list[tuple[str, int, object]] = []
        for answer in answers:
            assert isinstance(answer, tuple)
            word, delay, closure = answer
            links.append((str(word), delay.ms if isinstance(delay, Duration) else 0, closure))
        assert isinstance(params, TermValue)
        self.said.append(
            Given(str(kind), str(target), str(file), matcher, links, params.term, runs is True)
        )

    def _find(self, kind: str, target: str, file: str, values: list[object]) -> Given | None:
        for given in reversed(self.said):
            if (given.kind, given.target, given.file) != (kind, target, file):
                continue
            if call(self.program, given.matcher, self._read(given, values)) is True:
                return given
        return None

    def _read(self, given: Given, values: list[object]) -> list[object]:
        raw = [to_json(value) for value in values]
        assert isinstance(given.params, tuple)
        wanted = len(given.params) - 1
        if not wanted:
            return []
        read = from_json(raw[:wanted], given.params, self.program.types, self.program.default)
        assert isinstance(read, tuple)
        return list(read)

    def _next(self, given: Given) -> tuple[str, int, object]:
        link = given.answers[min(given.used, len(given.answers) - 1)]
        given.used += 1
        return link

    def _value(self, given: Given, closure: object, values: list[object]) -> object:
        assert isinstance(closure, Closure)
        return call(self.program, closure, self._read(given, values))

    # -- steps --------------------------------------------------------------------------------

    def answer(self, world: Simulation, leaving: Leaving) -> Reply:
        """What a step that leaves is answered with, chosen now.

        A step that leaves again because its daemon died is answered as before, at the same moment.
        """
        reply = self._given_before(world, leaving) or self._choose(world, leaving)
        self._replies[leaving.key, leaving.attempt] = (leaving.at + reply.after, reply)
        return reply

    def _given_before(self, world: Simulation, leaving: Leaving) -> Reply | None:
        """What an attempt that a crash made void was answered, if this one follows it."""
        attempt = leaving.attempt - 1
        while (leaving.key, attempt) in world.void:
            before = self._replies.get((leaving.key, attempt))
            if before is not None:
                due, reply = before
                return replace(reply, after=max(0, due - leaving.at))
            attempt -= 1
        return None

    def _choose(self, world: Simulation, leaving: Leaving) -> Reply:
        name = self.qualified(leaving)
        values = list(leaving.args)
        given = self._find("step", name, "", values)
        if given is None or given.runs:
            if leaving.program.chunk.steps[leaving.number].body == NO_FUNCTION:
                raise TestFailed(
                    f"{leaving.step} is an extern step, and no `given` answers {_shown(values)}"
                )
            return self._run_body(world, leaving)
        kind, delay, closure = self._next(given)
        if kind == "never":
            return Reply("", never=True)
        if kind == "fails":
            return Reply('"Unknown"' if leaving.settled else RETRY, after=delay)
        return Reply(value_text(self._value(given, closure, values)), after=delay)

    def qualified(self, leaving: Leaving) -> str:
        for names in self.step_names.values():
            if len(names) > leaving.number and names is self.step_names.get(
                leaving.program.chunk.flow
            ):
                return names[leaving.number]
        return leaving.step

    # -- bodies -------------------------------------------------------------------------------

    def _run_body(self, world: Simulation, leaving: Leaving) -> Reply:
        """Runs the body at once, in a program whose given functions are stubs."""
        program = self._stubs(leaving.program)
        step = program.chunk.steps[leaving.number]
        task = Task(step.name, start_task(program, step.body, leaving.args), 0)
        machine = Machine(leaving.key, "", "")
        undos: list[list[object]] = []
        while True:
            effect = advance(program, machine, task, SLICE)
            undo = json_text(undos) if undos else None
            match effect:
                case Ended(value):
                    return Reply(value_text(value), undo=undo)
                case Failed(failure):
                    text = json_text(
                        {"code": failure.code, "message": failure.message, "trace": []}
                    )
                    return Reply(FAILED, failure=text, undo=undo)
                case OutOfBudget():
                    continue
                case Operation(name="step.retry", args=args):
                    return Reply(RETRY, delay=retry_delay(args), undo=undo)
                case Operation(name="flow.undo", args=(UndoValue() as later,)):
                    undos.append([later.target, [to_json(one) for one in later.args]])
                    resume(task, ())
                case Operation():
                    self._answer_body(world, leaving, program, task, effect)
                case _:
                    raise TestFailed(f"the body of {step.name} asked for {effect}")

    def _answer_body(
        self,
        world: Simulation,
        leaving: Leaving,
        program: Program,
        task: Task,
        asked: Operation,
    ) -> None:
        name, args = asked.name, list(asked.args)
        if name.startswith(STUB):
            file, function, original = name[len(STUB) :].split(":")
            given = self._find("fn", function, file, args)
            if given is None or given.runs:
                _run_original(program, task, int(original), args)
                return
            resume(task, self._effect(given, args, program))
            return
        given = self._find("native", name, "", args)
        if given is not None:
            resume(task, self._effect(given, args, program))
            return
        match name:
            case "step.key":
                resume(task, leaving.key)
            case "step.attempt":
                resume(task, leaving.attempt)
            case "step.working":
                resume(task, True)
            case "undo.step":
                number, values = args
                assert isinstance(number, int) and isinstance(values, tuple)
                resume(task, UndoValue(program.chunk.steps[number].name, values))
            case "undo.send":
                resume(task, UndoValue("send", tuple(args)))
            case "time.now":
                resume(task, Time(world.now))
            case "log.write" | "flow.print":
                resume(task, ())
            case _:
                raise TestFailed(
                    f"the body of {leaving.step} uses {name}{_shown(args)}, and no `given` answers"
                )

    def _effect(self, given: Given, args: list[object], program: Program) -> object:
        kind, _, closure = self._next(given)
        if kind != "value":
            raise TestFailed(f"a function answers with a value: {given.target} {kind}")
        return translate(self._value(given, closure, args), program.types)

    def _stubs(self, program: Program) -> Program:
        targets = frozenset((given.file, given.target) for given in self.said if given.kind == "fn")
        key = (id(program), targets)
        if key not in self._stubbed:
            self._stubbed[key] = _with_stubs(program, targets) if targets else program
        return self._stubbed[key]


def _with_stubs(program: Program, targets: frozenset[tuple[str, str]]) -> Program:
    """The program with each target's code replaced by an operation; the originals come after."""
    chunk, debug = program.chunk, program.debug
    if debug is None:
        return program
    functions, tables = list(chunk.functions), list(debug.functions)
    operations = list(chunk.operations)
    for number, (function, lines) in enumerate(zip(chunk.functions, debug.functions, strict=True)):
        if (lines.file, function.name) not in targets:
            continue
        operations.append((f"{STUB}{lines.file}:{function.name}:{len(functions)}", function.params))
        loads = tuple((int(Op.LOAD), slot) for slot in range(function.params))
        code = (*loads, (int(Op.OPERATION), len(operations) - 1), (int(Op.RETURN), 0))
        functions[number] = replace(function, code=code, places=(), mutations=(), switches=())
        tables[number] = replace(lines, lines=((0, lines.lines[0][1] if lines.lines else 0),))
        functions.append(function)
        tables.append(lines)
    changed = replace(chunk, functions=tuple(functions), operations=tuple(operations))
    return load(changed, replace(debug, functions=tuple(tables)))


def _run_original(program: Program, task: Task, number: int, args: list[object]) -> None:
    """No `given` fits: the function itself runs, and its value is what the stub gives."""
    function = program.chunk.functions[number]
    empty = [UNSET] * (function.slots - function.params)
    task.frames.append(Frame(number, 0, [*args, *empty]))


def translate(value: object, types: Types) -> object:
    """The same value in another program's types, by their names."""
    match value:
        case Struct(type=info, fields=fields):
            found = types.named(info.name)
            if found is None:
                raise TestFailed(f"the flow knows no {info.name}")
            return Struct(found, [translate(one, types) for one in fields])
        case Variant():
            found = types.named(value.type.name)
            if found is None:
                raise TestFailed(f"the flow knows no {value.type.name}")
            return found.variant(value.name, *(translate(one, types) for one in value.payload))
        case list():
            return [translate(one, types) for one in value]
        case dict():
            return {translate(k, types): translate(v, types) for k, v in value.items()}
        case tuple():
            return tuple(translate(one, types) for one in value)
        case SetValue(items=items):
            return SetValue({translate(one, types): None for one in items})
        case _:
            return value


def _shown(values: list[object]) -> str:
    try:
        return json_text([to_json(value) for value in values]).replace("[", "(", 1)[:-1] + ")"
    except FlowError:
        return "(…)"
