"""Regular expressions in linear time: a Pike machine, so that no pattern can hang an instance.

    literal  .  [a-z] [^…]  \\d \\D \\w \\W \\s \\S \\n \\t \\r  \\ before any sign
    (…) group  (?:…) without one  |  * + ? {n} {n,} {n,m} and each with ? for as few as possible
    ^ $ begin and end of the text  \\b \\B border of a word  (?i) at the front: case does not matter

There are no back references and no look-around: they cannot be matched in linear time. A pattern is
at most `MAX_PROGRAM` instructions, repetitions written out; one match does at most `MAX_WORK` steps
(R0005), about a second. Letters, digits and spaces are those of Unicode.

Model. A pattern is compiled to instructions; a thread is a pc and the places its groups begin and
end. All threads move together over the text, one code point at a time, in order of preference, and
no two stand at one pc: so the work is bounded by the text's length times the program's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from qoqi.vm.dataclass import dataclass
from qoqi.vm.failure import FlowError

MAX_PROGRAM: Final = 2_000
MAX_WORK: Final = 5_000_000
MAX_NESTING: Final = 50

Test = Callable[[str], bool]
Groups = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Take:
    """Goes on past one code point that passes the test."""

    test: Test


@dataclass(frozen=True, slots=True)
class Fork:
    """Goes on at both, `first` by preference."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Notes the place in the text: where a group begins (even) or ends (odd)."""

    number: int


@dataclass(frozen=True, slots=True)
class Assert:
    """Goes on where the text's place is `^`, `$`, `b` or `B`."""

    kind: str


Instruction = Take | Fork | Mark | Assert | None  # None: matched


@dataclass(frozen=True, slots=True)
class Pattern:
    program: tuple[Instruction, ...]
    groups: int


def full_match(source: str, text: str) -> bool:
    """Whether the whole text matches."""
    return _run(compiled(source), text, 0, whole=True) is not None


def first_match(source: str, text: str, start: int = 0) -> Groups | None:
    """Where the first match begins and ends, then each group of it; -1 for a group not in it."""
    return _run(compiled(source), text, start, whole=False)


@lru_cache(maxsize=256)
def compiled(source: str) -> Pattern:
    return _Compiler(source).pattern()


# --- matching ---------------------------------------------------------------------------------


def _run(pattern: Pattern, text: str, start: int, whole: bool) -> Groups | None:
    if (len(text) - start + 1) * len(pattern.program) > MAX_WORK:
        raise FlowError("R0005", f"a text of {len(text):,} code points is too long for the pattern")
    program = pattern.program
    empty = (-1,) * (2 * pattern.groups)
    threads: list[tuple[int, Groups]] = []
    best: Groups | None = None
    for at in range(start, len(text) + 1):
        seen: set[int] = set()
        current: list[tuple[int, Groups]] = []
        for pc, groups in threads:
            _add(program, pc, groups, text, at, seen, current)
        if best is None and (at == start or not whole):
            _add(program, 0, empty, text, at, seen, current)
        threads = []
        for pc, groups in current:
            instruction = program[pc]
            if instruction is None:
                if not whole or at == len(text):
                    best = groups
                    break  # those behind it are of lower preference
            elif isinstance(instruction, Take) and at < len(text) and instruction.test(text[at]):
                threads.append((pc + 1, groups))
        if not threads and (whole or best is not None):
            break
    return best


def _add(
    program: tuple[Instruction, ...],
    pc: int,
    groups: Groups,
    text: str,
    at: int,
    seen: set[int],
    current: list[tuple[int, Groups]],
) -> None:
    """Follows what takes no text, in order of preference."""
    todo = [(pc, groups)]
    while todo:
        pc, groups = todo.pop()
        if pc in seen:
            continue
        seen.add(pc)
        match program[pc]:
            case Fork(first, second):
                todo.append((second, groups))
                todo.append((first, groups))
            case Mark(number):
                todo.append((pc + 1, (*groups[:number], at, *groups[number + 1 :])))
            case Assert(kind):
                if _holds(kind, text, at):
                    todo.append((pc + 1, groups))
            case _:
                current.append((pc, groups))


def _holds(kind: str, text: str, at: int) -> bool:
    if kind == "^":
        return at == 0
    if kind == "$":
        return at == len(text)
    before = at > 0 and _is_word(text[at - 1])
    after = at < len(text) and _is_word(text[at])
    return (before != after) == (kind == "b")


def _is_word(sign: str) -> bool:
    return sign == "_" or sign.isalnum()


# --- compiling --------------------------------------------------------------------------------

_CLASSES: Final[dict[str, Test]] = {
    "d": str.isdecimal,
    "D": lambda sign: not sign.isdecimal(),
    "w": _is_word,
    "W": lambda sign: not _is_word(sign),
    "s": str.isspace,
    "S": lambda sign: not sign.isspace(),
}
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}

# The tree of a pattern: ("take", test) ("all", parts) ("any", choices) ("group", part, number)
# ("repeat", part, low, high or -1, lazy) ("assert", kind)
Node = tuple[object, ...]


class _Compiler:
    """Reads a pattern by descent, then writes its program."""

    def __init__(self, source: str) -> None:
        self.fold = source.startswith("(?i)")
        self.source = source.removeprefix("(?i)")
        self.at = 0
        self.groups = 1
        self.depth = 0
        self.program: list[Instruction] = []

    def pattern(self) -> Pattern:
        tree = self.choices()
        if self.at < len(self.source):
            raise self.wrong("a ) without its (")
        self.write(("group", tree, 0))
        self.emit(None)
        return Pattern(tuple(self.program), self.groups)

    def wrong(self, problem: str) -> FlowError:
        return FlowError("R0004", f"the pattern cannot be read: {problem} at sign {self.at + 1}")

    def peek(self) -> str:
        return self.source[self.at] if self.at < len(self.source) else ""

    def next(self) -> str:
        sign = self.peek()
        if not sign:
            raise self.wrong("it ends too soon")
        self.at += 1
        return sign

    def choices(self) -> Node:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.wrong("groups nested too deep")
        found = [self.sequence()]
        while self.peek() == "|":
            self.at += 1
            found.append(self.sequence())
        self.depth -= 1
        return found[0] if len(found) == 1 else ("any", found)

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated(self.single()))
        return ("all", parts)

    def single(self) -> Node:
        sign = self.next()
        if sign == "(":
            return self.group()
        if sign == "[":
            return ("take", self.sign_class())
        if sign == ".":
            return ("take", lambda found: found != "\n")
        if sign in "^$":
            return ("assert", sign)
        if sign == "\\":
            if self.peek() in ("b", "B"):
                return ("assert", self.next())
            return ("take", self.escaped())
        if sign in "*+?{":
            raise self.wrong(f"nothing to repeat before {sign}")
        return ("take", self.literal(sign))

    def group(self) -> Node:
        number = None
        if self.peek() == "?":
            self.at += 1
            if self.next() != ":":
                raise self.wrong("only (?: is known")
        else:
            number = self.groups
            self.groups += 1
        inner = self.choices()
        if self.peek() != ")":
            raise self.wrong("a ( without its )")
        self.at += 1
        return inner if number is None else ("group", inner, number)

    def literal(self, sign: str) -> Test:
        if self.fold:
            folded = sign.casefold()
            return lambda found: found.casefold() == folded
        return lambda found: found == sign

    def escaped(self) -> Test:
        sign = self.next()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign.isalnum() and sign not in _ESCAPES:
            raise self.wrong(f"no \\{sign} is known")
        return self.literal(_ESCAPES.get(sign, sign))

    def sign_class(self) -> Test:
        outside = self.peek() == "^"
        if outside:
            self.at += 1
        tests: list[Test] = []
        while not tests or self.peek() != "]":
            sign = self.next()
            if sign == "\\" and self.peek() in _CLASSES:
                tests.append(self.escaped())
                continue
            low = self.class_sign(sign)
            if self.peek() == "-" and self.source[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.class_sign(self.next())
                if high < low:
                    raise self.wrong(f"the range {low}-{high} is the wrong way round")
                tests.append(self.between(low, high))
            else:
                tests.append(self.literal(low))
        self.at += 1
        held = tuple(tests)
        return lambda sign: any(test(sign) for test in held) != outside

    def class_sign(self, sign: str) -> str:
        if sign != "\\":
            return sign
        escaped = self.next()
        if escaped.isalnum() and escaped not in _ESCAPES:
            raise self.wrong(f"no \\{escaped} is known here")
        return _ESCAPES.get(escaped, escaped)

    def between(self, low: str, high: str) -> Test:
        if self.fold:
            return lambda sign: (
                low <= sign <= high or low <= sign.lower() <= high or low <= sign.upper() <= high
            )
        return lambda sign: low <= sign <= high

    def repeated(self, part: Node) -> Node:
        while True:
            sign = self.peek()
            if sign == "" or sign not in "*+?{":
                return part
            self.at += 1
            low, high = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}.get(sign) or self.counts()
            lazy = self.peek() == "?"
            if lazy:
                self.at += 1
            part = ("repeat", part, low, high, lazy)

    def counts(self) -> tuple[int, int]:
        low = self.number()
        high = low
        if self.peek() == ",":
            self.at += 1
            high = -1 if self.peek() == "}" else self.number()
        if self.next() != "}" or (high != -1 and high < low):
            raise self.wrong("a { } that is malformed")
        return low, high

    def number(self) -> int:
        begin = self.at
        while self.peek() in "0123456789" and self.peek():
            self.at += 1
        digits = self.source[begin : self.at]
        if not digits or len(digits) > 4:
            raise self.wrong("a { } that is malformed")
        return int(digits)

    def emit(self, instruction: Instruction) -> int:
        if len(self.program) >= MAX_PROGRAM:
            raise FlowError("R0004", "the pattern is too long, its repetitions written out")
        self.program.append(instruction)
        return len(self.program) - 1

    def write(self, node: Node) -> None:
        match node:
            case ("take", test):
                self.emit(Take(test))  # type: ignore[arg-type]
            case ("assert", kind):
                self.emit(Assert(str(kind)))
            case ("all", list(parts)):
                for part in parts:
                    self.write(part)
            case ("group", tuple(part), int(number)):
                self.emit(Mark(2 * number))
                self.write(part)
                self.emit(Mark(2 * number + 1))
            case ("any", list(choices)):
                self.write_choices(choices)
            case ("repeat", tuple(part), int(low), int(high), bool(lazy)):
                self.write_repeat(part, low, high, lazy)
            case _:
                raise AssertionError(node)

    def write_choices(self, choices: list[Node]) -> None:
        ends: list[int] = []
        for choice in choices[:-1]:
            fork = self.emit(None)
            self.write(choice)
            ends.append(self.emit(None))
            self.program[fork] = Fork(fork + 1, len(self.program))
        self.write(choices[-1])
        for end in ends:
            self.program[end] = Fork(len(self.program), len(self.program))

    def write_repeat(self, part: Node, low: int, high: int, lazy: bool) -> None:
        for _ in range(low):
            self.write(part)
        if high == -1:
            fork = self.emit(None)
            self.write(part)
            # Around again; a round that took nothing has been there already, and ends the loop.
            self.emit(Fork(fork, len(self.program) + 1))
            self.fork(fork, lazy)
            return
        forks: list[int] = []
        for _ in range(high - low):
            forks.append(self.emit(None))
            self.write(part)
        for fork in forks:
            self.fork(fork, lazy)

    def fork(self, at: int, lazy: bool) -> None:
        """At `at` into what follows it, or past the end of what is written."""
        into, past = at + 1, len(self.program)
        self.program[at] = Fork(past, into) if lazy else Fork(into, past)
