"""A store that answers busy, or commits and loses its answer, at each call of a daemon in turn.

The daemon cannot tell the two apart. Whatever it was told, nothing leaves twice under one attempt,
every message counts once, and the flow comes to the same end by itself.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import httpx

from qoqi.runtime.store.protocol import StoreBusy
from qoqi.runtime.store.thread import StoreThread
from tests.daemon.workbench import Bench, Watched
from tests.reliability.lab import MINUTE, SECOND
from tests.reliability.site import open_site

TEXT = """
import std.http
step pay(n: Int) -> Int within 10s undo back(it) {
    let headers = ["key": flow.key(), "attempt": "\\(flow.attempt())"]
    return http.post("http://bank/\\(n)", headers: headers).status + n
}
step back(n: Int) -> Int within 10s {
    let headers = ["key": flow.key(), "attempt": "\\(flow.attempt())"]
    return http.post("http://bank/\\(n)", headers: headers).status
}
flow Kid(n: Int) -> Int { run { return pay(n) } }
flow Main() -> Result<Int, Int> {
    channel news: Int
    run {
        var sum = pay(1)
        stage paid(sum)
        sum += news.receive()
        for part in task.map([2, 3], fn(n) => pay(n)) { sum += part }
        let kid = Kid.start("kid", 4)
        match kid.wait() {
            case Ok(n): sum += n
            case Err(_): sum += 1000
        }
        flow.sleep(20s)
        return Err(sum)
    }
}
"""
NAMES = frozenset({"lease", "save", "put_result", "put_results", "give_up", "late", "together"})


class Unsure(Watched):
    """Says busy at its n-th call: before anything was done, or after all of it was."""

    def __init__(self, store: Any, at: int, after: bool) -> None:
        super().__init__(store)
        self.at = at
        self.after = after
        self.counted = 0

    def __getattribute__(self, name: str) -> Any:
        method = super().__getattribute__(name)
        if name not in NAMES:
            return method

        async def call(*args: Any, **named: Any) -> Any:
            self.counted += 1
            now = self.counted == self.at
            if now and not self.after:
                raise StoreBusy("nothing was done")
            result = await method(*args, **named)
            if now:
                raise StoreBusy("the answer was lost")
            return result

        return call


async def play(at: int, after: bool) -> tuple[tuple[str, str | None], list[httpx.Request], int]:
    bench = Bench()
    unsure = Unsure(bench.store._store, at, after)
    bench.store = unsure
    async with open_site(bench) as site:
        await site.deploy(TEXT)
        await site.start("Main", "i")
        await bench.advance(SECOND)
        sent = await site.send("i", "news", 10, "k")
        while sent.status_code == 503:
            await bench.advance(SECOND)
            sent = await site.send("i", "news", 10, "k")
        assert sent.status_code in (200, 202)
        await bench.advance(5 * MINUTE)
        row = await bench.row("i")
        end = (str(row.status), row.result)
    requests, counted = bench.requests, unsure.counted
    await bench.close()
    return end, requests, counted


async def test_whatever_the_daemon_was_told_the_end_is_the_same() -> None:
    whole, requests, calls = await play(0, False)
    sum = 201 + 10 + (202 + 203) + 204
    assert whole == ("done", f'{{"Err":{sum}}}')
    assert len(requests) == 7  # four payments, and those of Main undone
    assert 12 < calls < 60
    for at in range(1, calls + 1):
        for after in (False, True):
            end, requests, _ = await play(at, after)
            assert end == whole, f"call {at}, {'after' if after else 'before'}: {end}"
            asked = Counter((one.headers["key"], one.headers["attempt"]) for one in requests)
            assert max(asked.values()) == 1, f"call {at}: {asked}"


def test_the_calls_are_those_of_the_store() -> None:
    assert all(hasattr(StoreThread, name) for name in NAMES)
