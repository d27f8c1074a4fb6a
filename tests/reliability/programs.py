"""Random flows, well typed, whose outcome no crash may change: a generator and what plays them.

A program has a flow `Main` and a flow `Kid`. Its statements add to a sum: steps (plain ones, ones
that are tried again, `Settled` ones that count the same known or unknown), waits with and without a
time, tasks and maps, stages, children alone and all at once, undos, commits and unwinds; it ends
with a value or an Err. What comes from outside is part of the program: messages, and sometimes a
cancellation.

A crash costs minutes, so what is decided by time is decided by hours: messages and cancellations
come at noon, sleeps end at midnight, waits give up after an hour. So whatever a crash delays, the
order of things is the same. Run as a script it plays as many seeds as are asked for, and prints those
that fail.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.crashes import Outcome, Report, every_crash
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.vm.host import RETRY
from qoqi.vm.jsonform import parse_json
from tests.reliability.lab import DAY, HOUR, MINUTE, SECOND, programs
from tests.reliability.overlaps import TwoDaemons, overlapped_everywhere

STANDSTILL = 3 * MINUTE  # longer than a lease and a limit

HEAD = """\
step plain(n: Int) -> Int { return n }
step again(n: Int) -> Int backoff 1s { return n }
step kept(n: Int) -> Int undo dropped(it) { return n }
step dropped(n: Int) -> Result<(), String> { return Ok(()) }
step sure(n: Int) -> Settled<Int> { return Known(n) }

flow Kid(n: Int) -> Int {
    channel news: Int
    run {
        let first = kept(n)
        if n % 3 == 0 { flow.sleep(1d) }
        return first + plain(n)
    }
}

flow Main() -> Result<Int, Int> {
    channel news: Int capacity 100
    channel inner: Int capacity 100 inside
    var seen = 0
    view total -> Int { return seen }
    run {
        var sum = 0
"""
FUNCTIONS = """\
    fn both(n: Int) -> Int {
        seen += 1
        return plain(n) + kept(n + 1)
    }
    fn listens(n: Int) -> Int {
        wait match {
            case let x = news.receive(): return x + n
            case after 1h: return n
        }
    }
    fn fails(n: Int) -> Int { return plain(n) / (n - n) }
    fn joined(result: Result<Int, Failure>) -> Int {
        return match result {
            case Ok(n): n
            case Err(_): 7
        }
    }
    fn ended(result: Result<Int, Cancelled>) -> Int {
        return match result {
            case Ok(n): n
            case Err(_): 11
        }
    }
}
"""


@dataclass
class Program:
    """The source, and what comes from outside: (when after the start, what, value)."""

    seed: int
    text: str
    outside: tuple[tuple[int, str, int], ...]


@dataclass
class _Writer:
    chance: random.Random
    lines: list[str] = field(default_factory=list)
    names: int = 0
    stages: int = 0

    def name(self, word: str) -> str:
        self.names += 1
        return f"{word}{self.names}"

    def say(self, depth: int, text: str) -> None:
        self.lines.append("    " * (2 + depth) + text)

    def number(self) -> str:
        return str(self.chance.randrange(1, 9))

    def block(self, depth: int, count: int, *, alone: bool) -> None:
        """Statements; `alone` where a stage may stand."""
        for _ in range(count):
            self.statement(depth, alone=alone)

    def statement(self, depth: int, *, alone: bool) -> None:
        choices: list[Callable[[int], None]] = [
            self.step,
            self.step,
            self.settled,
            self.receive,
            self.poll,
            self.sleep,
            self.task,
            self.map,
            self.child,
            self.children,
            self.undo,
            self.inside,
        ]
        if alone:
            choices += [self.stage, self.stage]
        if depth < 2:
            choices += [self.branch, self.loop]
        self.chance.choice(choices)(depth)

    def step(self, depth: int) -> None:
        step = self.chance.choice(["plain", "again", "kept"])
        self.say(depth, f"sum += {step}({self.number()})")

    def settled(self, depth: int) -> None:
        self.say(depth, f"match sure({self.number()}) {{")
        self.say(depth, "    case Known(_): sum += 3")
        self.say(depth, "    case Unknown: sum += 3")
        self.say(depth, "}")

    def receive(self, depth: int) -> None:
        self.say(depth, f"sum += listens({self.number()})")

    def poll(self, depth: int) -> None:
        self.say(depth, f"if let Some(x) = news.poll() {{ sum += x * {self.number()} }}")

    def inside(self, depth: int) -> None:
        self.say(depth, f"inner.send(sum + {self.number()})")
        self.say(depth, "sum += inner.receive() % 100")

    def sleep(self, depth: int) -> None:
        self.say(depth, "flow.sleep(1d)")

    def stage(self, depth: int) -> None:
        self.stages += 1
        self.say(depth, f"stage s{self.stages}(sum)")

    def task(self, depth: int) -> None:
        name = self.name("t")
        work = self.chance.choice(["both", "listens", "fails"])
        self.say(depth, f"let {name} = task.start(fn() => {work}({self.number()}))")
        if self.chance.random() < 0.4:
            self.step(depth)
        self.say(depth, f"sum += joined({name}.join())")

    def map(self, depth: int) -> None:
        numbers = ", ".join(self.number() for _ in range(self.chance.randrange(1, 4)))
        limit = self.chance.choice(["", ", limit: 1", ", limit: 2"])
        self.say(depth, f"for part in task.map([{numbers}], both{limit}) {{ sum += part }}")

    def child(self, depth: int) -> None:
        name = self.name("k")
        cancelled = self.chance.random() < 0.3
        number = self.chance.choice(["3", "6"]) if cancelled else self.number()
        self.say(depth, f'let {name} = Kid.start("{name}-\\(sum)", {number})')
        if cancelled:  # while it sleeps: it has done one step, and has not begun the next
            self.say(depth, "flow.sleep(1h)")
            self.say(depth, f'{name}.cancel("no more")')
        self.say(depth, f"sum += ended({name}.wait())")

    def children(self, depth: int) -> None:
        name = self.name("ks")
        one = f'fn(n) => Kid.start("{name}-\\(n)-\\(sum)", n)'
        self.say(depth, f"let {name} = [1, 2, {self.number()}].toSet().toList().map({one})")
        wait = self.chance.choice(["settle", "all"])
        if wait == "settle":
            self.say(depth, f"for end in task.settle({name}) {{ sum += ended(end) }}")
        else:
            self.say(depth, f"match task.all({name}) {{")
            self.say(depth, "    case Ok(all): sum += all.len()")
            self.say(depth, "    case Err(_): sum += 13")
            self.say(depth, "}")

    def undo(self, depth: int) -> None:
        what = ["flow.undo(dropped(sum))"] * 3 + ["flow.commit()", "flow.unwind()"]
        self.say(depth, self.chance.choice(what))

    def branch(self, depth: int) -> None:
        self.say(depth, f"if sum % {self.number()} == 0 {{")
        self.block(depth + 1, self.chance.randrange(1, 3), alone=False)
        self.say(depth, "} else {")
        self.block(depth + 1, self.chance.randrange(1, 3), alone=False)
        self.say(depth, "}")

    def loop(self, depth: int) -> None:
        name = self.name("i")
        self.say(depth, f"for {name} in 0..{self.chance.randrange(1, 4)} {{")
        self.say(depth, f"    sum += {name}")
        self.block(depth + 1, self.chance.randrange(1, 3), alone=False)
        self.say(depth, "}")


def program(seed: int) -> Program:
    chance = random.Random(seed)
    writer = _Writer(chance)
    writer.block(0, chance.randrange(3, 9), alone=True)
    writer.say(0, "if sum % 3 == 0 { return Err(sum) }")
    writer.say(0, "return Ok(sum)")
    text = HEAD + "\n".join(writer.lines) + "\n    }\n" + FUNCTIONS
    noon = DAY // 2
    outside = [
        (day * DAY + noon, "message", chance.randrange(1, 50))
        for day in range(chance.randrange(0, 4))
    ]
    if chance.random() < 0.2:
        outside.append((chance.randrange(1, 4) * DAY + noon + HOUR, "cancel", 0))
    return Program(seed, text, tuple(sorted(outside)))


def answer(leaving: Leaving) -> Reply:
    """The same for the same question; `again` has to be asked twice."""
    (number,) = leaving.args
    assert isinstance(number, int)
    after = number % 3 * SECOND
    match leaving.step:
        case "again" if leaving.attempt == 1:
            return Reply(RETRY, after=after)
        case "dropped":
            return Reply('{"Ok":null}', after=after)
        case "sure":
            return Reply(f'{{"Known":{number}}}', after=after)
        case _:
            return Reply(str(number * 2 + 1), after=after)


S = TypeVar("S", bound=Simulation)


def make(made: Program, kind: type[S], *, daemons: int = 1) -> Callable[[Store], S]:
    def simulation(store: Store) -> S:
        by_hash, newest = programs(made.text)
        world = kind(store, dict(by_hash), dict(newest), answer, settings=Settings(wave=10))
        for _ in range(daemons - 1):
            world.add_daemon()
        return world

    return simulation


def play(made: Program) -> Callable[[Simulation], None]:
    def run(world: Simulation) -> None:
        begun = world.now
        world.start("m.Main", "main", ())
        for at, what, value in made.outside:
            world.advance_to(begun + at)
            if what == "message":
                sent = world.send("main", "news", value, f"k-{at}")
                assert sent in ("Delivered", "Ended")
            else:
                world.cancel("main", "enough")

    return run


def same(whole: Outcome, now: Outcome) -> bool:
    """Whether the outcomes are one, whenever a cancellation was asked for."""
    return _timeless(whole) == _timeless(now) and whole.undone == now.undone


def _timeless(outcome: Outcome) -> dict[str, tuple[str, object]]:
    ends: dict[str, tuple[str, object]] = {}
    for id, (status, result) in outcome.ends.items():
        raw = parse_json(result or "null")
        if isinstance(raw, dict) and set(raw) == {"reason", "at"}:
            raw = raw["reason"]
        ends[id] = status, raw
    return ends


def crashed_everywhere(seed: int) -> Report:
    """The program of a seed, with a crash at every call of the store and every departure."""
    made = program(seed)
    return every_crash(make(made, Simulation), memory_store, play(made), same)


def frozen_everywhere(seed: int) -> int:
    """The program of a seed on two daemons, the first of which stands still at every write."""
    made = program(seed)
    return overlapped_everywhere(make(made, TwoDaemons, daemons=2), play(made), same, STANDSTILL)


def main() -> None:
    parser = argparse.ArgumentParser(description="random flows, crashed at every point")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=200)
    given = parser.parse_args()
    failed = []
    for seed in range(given.first, given.first + given.seeds):
        try:
            report = crashed_everywhere(seed)
            frozen_everywhere(seed)
        except Exception as broken:
            failed.append(seed)
            print(f"seed {seed}: {type(broken).__name__}: {broken}", flush=True)
        else:
            print(f"seed {seed}: {report.points} points, {report.outcome.ends['main']}", flush=True)
    print(f"failed: {failed}" if failed else "everything held")


if __name__ == "__main__":
    main()
