"""Small rules of the seed and of the points it leaves open, each on its own."""

from __future__ import annotations

import re

from qoqi.runtime.daemon import incarnation
from qoqi.runtime.simulation.world import Leaving, Reply
from qoqi.vm.jsonform import parse_json
from tests.daemon.workbench import Bench
from tests.reliability.lab import HOUR, SECOND, ending, life, meddled, world
from tests.reliability.site import open_site


def test_an_incarnation_is_a_name_and_an_id_of_this_start() -> None:
    first, second = incarnation("shop-1"), incarnation("shop-1")
    assert re.fullmatch(r"shop-1/[0-9a-f]{4}", first)
    assert first != second


async def test_nothing_is_concluded_from_a_heartbeat_that_is_over(bench: Bench) -> None:
    """A daemon whose heartbeat stopped still holds what it holds, and its steps their limits."""
    text = """
    import std.http
    step pay() -> Int within 5m { return http.get("http://bank/").status }
    flow Main() -> Int { run { return pay() } }
    """
    async with open_site(bench) as site:

        async def slow(_: object) -> object:
            await bench.clock.sleep_until(bench.clock.now() + 25 * SECOND)
            import httpx

            return httpx.Response(200)

        bench.answer = slow
        await site.deploy(text)
        await site.start("Main", "i")
        other = await bench.daemon("other")
        await bench.store.alive(site.daemon.me, 0)  # long silent, as people see it
        await bench.advance(9 * SECOND)
        assert (await bench.row("i")).lease_owner == site.daemon.me
        assert other.hosts == {}
        await bench.advance(20 * SECOND)
        row = await bench.row("i")
        assert (row.status, row.result) == ("done", "200")
        assert len(bench.requests) == 1


def test_thousands_are_started_in_one_write_and_waited_for_in_one_wait() -> None:
    text = """
    flow Kid(n: Int) -> Int { run { return n } }
    flow Main(count: Int) -> Int {
        run {
            let kids = task.map((0..count).toList(), fn(n) => Kid.start("kid-\\(n)", n))
            return match task.all(kids) {
                case Ok(numbers): numbers.len()
                case Err(_): -1
            }
        }
    }
    """
    simulation, meddler = meddled(text)
    saves: list[tuple[int, int]] = []

    def before(name: str, args: tuple[object, ...]) -> None:
        if name == "save" and args[0] == "i":
            save = args[2]
            saves.append((len(save.starts), len(save.waits)))  # type: ignore[attr-defined]

    meddler.before = before
    simulation.start("m.Main", "i", (2_000,))
    simulation.rest()

    assert ending(simulation, "i") == ("done", "2000")
    assert [starts for starts, _ in saves if starts] == [2_000]
    assert max(waits for starts, waits in saves if not starts) <= 1


def test_an_undo_is_numbered_over_the_whole_life_of_its_instance() -> None:
    """After an unwind, a commit and a stage the next undo meets no answer of an older one."""
    text = """
    step book(n: Int) -> Int undo drop(it) { return n }
    step drop(n: Int) { }
    flow Main() -> Result<Int, Int> {
        run {
            book(1)
            flow.unwind()
            book(2)
            flow.commit()
            stage half()
            book(3)
            return Err(0)
        }
    }
    """

    def answer(leaving: Leaving) -> Reply:
        return Reply(str(leaving.args[0]) if leaving.step == "book" else "null")

    simulation = world(text, answer)
    simulation.start("m.Main", "i", ())
    simulation.rest()

    dropped = [step for step in simulation.left if step.step == "drop"]
    assert [(step.args, step.key.rpartition(":")[2]) for step in dropped] == [
        ((1,), "undo#1"),
        ((3,), "undo#3"),
    ]


def test_a_parent_in_memory_is_told_of_the_end_it_waits_for() -> None:
    text = """
    flow Kid() { run { flow.sleep(5s) } }
    flow Main() -> String {
        run {
            let kid = Kid.start("kid")
            wait match {
                case let _ = kid.wait(): return "it ended"
                case after 20s: return "late"
            }
        }
    }
    """
    simulation = world(text)
    begun = simulation.now
    simulation.start("m.Main", "i", ())
    assert "i" in simulation.daemons[0].held  # a near sleeper
    simulation.advance_to(begun + 5 * SECOND)

    assert ending(simulation, "i") == ("done", '"it ended"')
    assert simulation.row("i").since == begun + 5 * SECOND


def test_kept_answers_are_given_in_the_order_in_which_they_were_first_given() -> None:
    """Two tasks, resumed: they interleave as they did, so what they share is as it was."""
    text = """
    step ask(n: Int) -> Int { return n }
    flow Main() -> String {
        var order = ""
        run {
            let a = task.start(fn() => note(1))
            let b = task.start(fn() => note(2))
            a.join()
            b.join()
            if order == "2112" { flow.stop("look") }
            return order
        }
        fn note(n: Int) {
            ask(n)
            order = "\\(order)\\(n)"
            ask(n * 10)
            order = "\\(order)\\(n)"
        }
    }
    """
    delays = {1: 3 * SECOND, 2: SECOND, 10: SECOND, 20: 10 * SECOND}

    def answer(leaving: Leaving) -> Reply:
        (number,) = leaving.args
        assert isinstance(number, int)
        return Reply(str(number), after=delays[number])

    simulation = world(text, answer)
    simulation.start("m.Main", "i", ())
    simulation.rest()
    row = simulation.row("i")
    assert row.error_code == "F0104"
    left = len(simulation.left)
    from qoqi.runtime import people

    assert (
        people.answer(simulation.outside, simulation.program, row, None, simulation.now, "ana")
        is None
    )
    simulation.rest()

    assert ending(simulation, "i") == ("done", '"2112"')
    assert len(simulation.left) == left  # nothing left again


def test_a_message_wakes_a_receive_and_no_send_that_waits_for_room() -> None:
    text = """
    flow Main() -> Int {
        channel news: Int capacity 2
        run {
            news.send(1)
            news.send(2)
            wait match {
                case news.send(3): return 0
                case after 1h: return news.receive()
            }
        }
    }
    """
    simulation, meddler = meddled(text)
    simulation.start("m.Main", "i", ())
    assert simulation.row("i").status == "waiting"
    assert {wait.kind for wait in life(simulation, "i").waits} == {"send", "after"}
    leases = meddler.count("lease")
    assert simulation.send("i", "news", 4) == "Full"
    simulation.advance_to(simulation.now + HOUR - 1)
    assert meddler.count("lease") == leases
    simulation.rest()
    assert parse_json(simulation.row("i").result or "") == 1


def test_a_key_stays_used_across_pauses_and_as_long_as_its_message_is_kept() -> None:
    text = """
    flow Main() -> Int {
        channel news: Int
        run {
            let first = news.receive()
            flow.sleep(20d)
            return first + news.receive()
        }
    }
    """
    simulation = world(text)
    simulation.start("m.Main", "i", ())
    assert simulation.send("i", "news", 1, "evt") == "Delivered"
    assert simulation.outside.pause("i", simulation.now, "ana").outcome == "ok"
    assert simulation.send("i", "news", 2, "evt") == "Already"
    simulation.advance_to(simulation.now + 15 * 24 * HOUR)
    assert simulation.outside.resume("i", simulation.now, "ana").outcome == "ok"
    simulation.outside.sweep(simulation.now, 30 * 24 * HOUR)
    assert simulation.send("i", "news", 3, "evt") == "Already"
    simulation.advance_to(simulation.now + 10 * 24 * HOUR)
    assert simulation.send("i", "news", 4, "other") == "Delivered"
    simulation.rest()
    assert ending(simulation, "i") == ("done", "5")
