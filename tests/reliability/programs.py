"""Random flows, well typed, whose outcome nothing may change that happens to daemons and stores.

A program has a flow `Main`, a `Kid` that ends by itself, and a `Desk` that serves until it is asked
to end. Its statements add to a sum: steps of every kind (plain, tried again, `Settled`, with tries,
a limit, structs and enums), waits with several cases, tasks that are joined, cancelled and mapped,
stages in loops, children alone and all at once, requests, sends and cancellations to others,
undos, commits and unwinds; it ends with a value or an Err. What comes from outside is part of the
program: messages, a pause, and sometimes a cancellation.

A crash costs minutes, so what is decided by time is decided by hours: messages and cancellations
come at noon, sleeps end at midnight, waits give up after an hour. So whatever a crash delays, the
order of things is the same. Run as a script it plays as many seeds as are asked for, and prints those
that fail.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.crashes import Outcome, Report, every_crash
from qoqi.runtime.simulation.faults import DEATHS, EVERY, At, Fault
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.vm.host import RETRY, CancelTold
from qoqi.vm.jsonform import parse_json
from tests.reliability.lab import DAY, HOUR, SECOND, programs

HEAD = """\
enum Verdict { Yes(count: Int), No }
struct Order { id: Int, names: List<String> }

step plain(n: Int) -> Int { return n }
step again(n: Int) -> Int backoff 1s { return n }
step kept(n: Int) -> Int undo dropped(it) { return n }
step dropped(n: Int) -> Result<(), String> { return Ok(()) }
step sure(n: Int) -> Settled<Int> { return Known(n) }
step often(n: Int) -> Int tries 50 else 0 backoff 1s to 4s { return n }
step bounded(n: Int) -> Int limit 2 { return n }
step told(order: Order) -> Verdict undo dropped(order.id) { return No }

flow Kid(n: Int) -> Int {
    channel news: Int
    run {
        let first = kept(n)
        if n % 3 == 0 { flow.sleep(1d) }
        return first + plain(n)
    }
}

flow Desk() -> Int {
    channel asks: Int answers Int capacity 100
    channel news: Int capacity 100
    var sum = 0
    view total -> Int { return sum }
    run {
        while true {
            stage open()
            wait match {
                case let asked = asks.receive():
                    sum += 1
                    asked.answer(asked.value + plain(asked.value))
                case let n = news.receive(): sum += n
                case let _ = flow.cancelled(): return sum
            }
        }
    }
}

flow Main() -> Result<Int, Int> {
    channel news: Int capacity 100
    channel inner: Int capacity 100 inside
    var seen = 0
    var ready = false
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
    fn readies(n: Int) -> Int {
        flow.sleep(2h)
        ready = true
        return n
    }
    fn waits(n: Int) -> Int {
        wait match {
            case when ready: return n
            case let x = news.receive() if n % 2 == 0: return x
            case after 3h: return n + 1
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
    stages_made: int = 0

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
            self.told,
            self.bounded,
            self.several,
            self.when,
            self.stopped,
            self.first,
            self.desk,
        ]
        if alone:
            choices += [self.stage, self.stage, self.stages]
        if depth < 2:
            choices += [self.branch, self.loop]
        self.chance.choice(choices)(depth)

    def step(self, depth: int) -> None:
        step = self.chance.choice(["plain", "again", "kept", "often"])
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
        self.stages_made += 1
        self.say(depth, f"stage s{self.stages_made}(sum)")

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
        what += ["flow.finally(dropped(sum))"]
        self.say(depth, self.chance.choice(what))

    def told(self, depth: int) -> None:
        self.say(depth, f'match told(Order {{ id: sum % {self.number()}, names: ["a"] }}) {{')
        self.say(depth, "    case Yes(n): sum += n")
        self.say(depth, "    case No: sum += 5")
        self.say(depth, "}")

    def bounded(self, depth: int) -> None:
        """Three at most find a slot at once."""
        one = "fn(n) => bounded(n)"
        self.say(
            depth, f"for part in task.map([1, 2, 3, {self.number()}], {one}) {{ sum += part }}"
        )

    def several(self, depth: int) -> None:
        """A task, an instance, a message or time, of which time is the last."""
        task, kid = self.name("t"), self.name("k")
        self.say(depth, f"let {task} = task.start(fn() => both({self.number()}))")
        self.say(depth, f'let {kid} = Kid.start("{kid}-\\(sum)", 3)')
        self.say(depth, "wait match {")
        self.say(depth, f"    case let r = {task}.join(): sum += joined(r)")
        self.say(depth, f"    case let r = {kid}.wait(): sum += ended(r) * 2")
        self.say(depth, "    case after 6h: sum += 100")
        self.say(depth, "}")
        self.say(depth, f"sum += ended({kid}.wait())")

    def when(self, depth: int) -> None:
        ready, waits = self.name("t"), self.name("t")
        self.say(depth, "ready = false")
        self.say(depth, f"let {ready} = task.start(fn() => readies({self.number()}))")
        self.say(depth, f"let {waits} = task.start(fn() => waits({self.number()}))")
        self.say(depth, f"sum += joined({waits}.join()) + joined({ready}.join())")

    def stopped(self, depth: int) -> None:
        name = self.name("t")
        self.say(depth, f"let {name} = task.start(fn() => listens({self.number()}))")
        self.step(depth)
        self.say(depth, f"{name}.cancel()")
        self.say(depth, f"sum += joined({name}.join())")

    def first(self, depth: int) -> None:
        """The one that does not sleep for a day; then the other is waited for as well."""
        name = self.name("ks")
        one, other = (f'Kid.start("{name}-{n}-\\(sum)", {n})' for n in (3, 4))
        start = "flow.detach" if self.chance.random() < 0.3 else ""
        self.say(depth, f"let {name} = [{start}({one}), {other}]")
        at, end = self.name("at"), self.name("end")
        self.say(depth, f"let ({at}, {end}) = task.first({name})")
        self.say(depth, f"sum += {at} + ended({end})")
        self.say(depth, f"for other in task.settle({name}) {{ sum += ended(other) }}")

    def desk(self, depth: int) -> None:
        name = self.name("d")
        self.say(depth, f'let {name} = Desk.start("{name}-\\(sum)")')
        for _ in range(self.chance.randrange(1, 4)):
            if self.chance.random() < 0.5:
                self.say(depth, f"match {name}.asks.ask({self.number()}) {{")
                self.say(depth, "    case Ok(n): sum += n")
                self.say(depth, "    case Err(_): sum += 17")
                self.say(depth, "}")
            else:
                self.say(depth, f"if {name}.news.send(sum).isOk() {{ sum += 1 }}")
        if self.chance.random() < 0.7:
            self.say(depth, f'if {name}.cancel("enough").isOk() {{ sum += 2 }}')
            self.say(depth, f"sum += ended({name}.wait()) % 100")

    def stages(self, depth: int) -> None:
        self.stages_made += 1
        name, count = f"r{self.stages_made}", self.name("i")
        self.say(depth, f"var {count} = 0")
        self.say(depth, f"while {count} < {self.chance.randrange(1, 4)} {{")
        self.say(depth, f"    stage {name}(sum, {count})")
        self.block(depth + 1, 1, alone=False)
        self.say(depth, f"    {count} += 1")
        self.say(depth, "}")

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
    if chance.random() < 0.2:
        begin = chance.randrange(0, 3) * DAY + noon + 2 * HOUR
        outside += [(begin, "pause", 0), (begin + 5 * HOUR, "resume", 0)]
    return Program(seed, text, tuple(sorted(outside)))


def answer(leaving: Leaving) -> Reply:
    """The same for the same question; `again` has to be asked twice."""
    (number,) = leaving.args
    if leaving.step == "told":
        (number, _) = getattr(number, "fields", (0, None))
        assert isinstance(number, int)
        return Reply(f'{{"Yes":{number}}}' if number % 2 else '"No"', after=SECOND)
    assert isinstance(number, int)
    after = number % 3 * SECOND
    match leaving.step:
        case "again" if leaving.attempt == 1:
            return Reply(RETRY, after=after)
        case "often" if leaving.attempt <= 2:
            return Reply(RETRY, after=after)
        case "dropped":
            return Reply('{"Ok":null}', after=after)
        case "sure":
            return Reply(f'{{"Known":{number}}}', after=after)
        case _:
            return Reply(str(number * 2 + 1), after=after)


def make(made: Program, *, daemons: int = 1) -> Callable[[Store], Simulation]:
    def simulation(store: Store) -> Simulation:
        by_hash, newest = programs(made.text)
        world = Simulation(store, dict(by_hash), dict(newest), answer, settings=Settings(wave=10))
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
            elif what == "cancel":
                world.cancel("main", "enough")
            elif what == "pause":
                world.outside.pause("main", world.now, "test")
                world.tell("main", CancelTold())
                world.settle()
            else:
                world.outside.resume("main", world.now, "test")
                world.tell("main", CancelTold())
                world.settle()

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


def crashed_everywhere(seed: int, faults: Sequence[At] = DEATHS, most: int = 0) -> Report:
    """The program of a seed, with each fault at every call of the store and every departure.

    Of them all at most so many, if `most` says so.
    """
    made = program(seed)
    daemons = 1 + seed % 2
    return every_crash(
        make(made, daemons=daemons), memory_store, play(made), same, faults=faults, most=most
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="random flows, crashed at every point")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--points", type=int, default=0, help="of each seed at most so many")
    given = parser.parse_args()
    failed = []
    happened: Counter[Fault] = Counter()
    for seed in range(given.first, given.first + given.seeds):
        try:
            report = crashed_everywhere(seed, EVERY, given.points)
            happened += report.happened
        except Exception as broken:
            failed.append(seed)
            print(f"seed {seed}: {type(broken).__name__}: {broken}", flush=True)
        else:
            print(f"seed {seed}: {report.points} points, {report.outcome.ends['main']}", flush=True)
    print(", ".join(f"{count} {fault}" for fault, count in sorted(happened.items())))
    print(f"failed: {failed}" if failed else "everything held")


if __name__ == "__main__":
    main()
