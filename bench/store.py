"""What the store costs: saves alone and grouped, the look for due instances, a store in memory.

    PYTHONPATH=.links python bench/store.py [--sleepers N] [--growth N] [--folder PATH]

`save+put` is what a step costs: its answer, and the save that lets the next one leave, in one call
(one commit a step) or as two calls. Grouped figures go through `StoreThread` from one event loop
with that many instances under way at once.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from qoqi.runtime.store.open import memory_store, open_store
from qoqi.runtime.store.protocol import StartRequest
from qoqi.runtime.store.sqlite import SqliteDatabase
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm.host import GivenMark, LedgerLine, NewAttempt, PutResult, Save, WaitRow

NOW = 1_700_000_000_000
UNTIL = NOW + 3_600_000
ME = "bench/1"
STATE = '{"format":"qoqi.flow/1","tasks":[' + '"' + "x" * 1_500 + '"' + "]}"
CHANNELS = ((0, "decisions", 16, False),)


def request(id: str) -> StartRequest:
    return StartRequest(id, "k7f2k7f2", "Order", "v1", "{}", STATE, None, CHANNELS)


def key(id: str, n: int) -> str:
    return f"{id}/k7f2k7f2/0:0:charge#{n}"


def next_save(id: str, n: int, put: bool) -> Save:
    """The save between two steps of an instance."""
    answered = PutResult(key(id, n - 1), 1, '{"Ok":{"amount":"12.50"}}')
    return Save(
        state=STATE,
        status="running",
        phase="run",
        stage=None,
        pass_number=0,
        version="v1",
        release=False,
        attempts=(NewAttempt(key(id, n), 1, 0, '[{"invoice":7}]', UNTIL, "charge", False),),
        given=(GivenMark(key(id, n - 1), 1, n, NOW),) if n > 1 else (),
        puts=(answered,) if put and n > 1 else (),
        ledger=(LedgerLine("left", {"steps": [[key(id, n), 1]]}),),
        again=n > 1,
    )


def statements(store: SqlStore, work: Callable[[], object]) -> int:
    database = store.database
    assert isinstance(database, SqliteDatabase)
    before = database.statements
    work()
    return database.statements - before


def took(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def report(what: str, value: str) -> None:
    print(f"{what:<58} {value}")


def single(store: SqlStore, count: int) -> None:
    store.create(request("one"), NOW)
    store.lease("one", ME, NOW, UNTIL)
    store.save("one", ME, next_save("one", 1, True), (), NOW)
    number = statements(store, lambda: store.save("one", ME, next_save("one", 2, True), (), NOW))
    report("statements of a save with its put", str(number))

    def run() -> None:
        for n in range(3, 3 + count):
            store.save("one", ME, next_save("one", n, True), (), NOW)

    report("save with its put, one after the other", f"{took(run) / count * 1e6:.0f} us")


async def _grouped(thread: StoreThread, ids: list[str], steps: int, one_call: bool) -> float:
    async def instance(id: str) -> None:
        for n in range(1, steps + 1):
            if not one_call and n > 1:
                put = PutResult(key(id, n - 1), 1, '{"Ok":{"amount":"12.50"}}')
                await thread.put_result(put, NOW)
            await thread.save(id, ME, next_save(id, n, one_call), (), NOW)

    for id in ids:
        await thread.create(request(id), NOW)
        await thread.lease(id, ME, NOW, UNTIL)
    thread.groups = thread.calls = 0
    start = time.perf_counter()
    await asyncio.gather(*(instance(id) for id in ids))
    return time.perf_counter() - start


async def _busy_loop(stop: asyncio.Event) -> None:
    """An event loop with other work: bytecode in slices of 2 ms."""
    while not stop.is_set():
        end = time.perf_counter() + 0.002
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(0)


async def grouped(
    make: Callable[[str], SqlStore],
    width: int,
    steps: int,
    one_call: bool,
    busy: bool = False,
    where: str = "",
) -> None:
    name = f"{width}-{one_call}-{busy}"
    thread = StoreThread(make(name))
    stop = asyncio.Event()
    other = asyncio.ensure_future(_busy_loop(stop)) if busy else None
    seconds = await _grouped(thread, [f"i{n}" for n in range(width)], steps, one_call)
    stop.set()
    if other is not None:
        await other
    rate = width * steps / seconds
    what = "save+put in one call" if one_call else "save, put as two calls"
    report(
        f"{what}, {width} at once{', busy loop' if busy else ''}{where}",
        f"{rate:8,.0f}/s  {1e6 / rate:5.0f} us  {thread.calls / thread.groups:6.1f} a commit",
    )
    await thread.close()


def sleepers(store: SqlStore, count: int) -> None:
    """Instances that wait: a third for a time, a third for a message, a third for another's end."""
    kinds = (
        lambda n: WaitRow("0", 0, "after", at=UNTIL + n),
        lambda n: WaitRow("0", 0, "receive", channel=0),
        lambda n: WaitRow("0", 0, "flow", other="awaited", other_birth="k7f2k7f2"),
    )
    store.create(request("awaited"), NOW)
    store.lease("awaited", ME, NOW, UNTIL)
    start = time.perf_counter()
    for first in range(0, count, 1_000):
        with store.database.transaction():
            for n in range(first, min(first + 1_000, count)):
                id = f"sleeper-{n}"
                store.create(request(id), NOW)
                store.lease(id, ME, NOW, UNTIL)
                save = Save(STATE, "waiting", "run", None, 0, "v1", True, waits=(kinds[n % 3](n),))
                store.save(id, ME, save, (), NOW)
    each = (time.perf_counter() - start) / count * 1e6
    report(f"start, lease and first save of {count:,} sleepers", f"{each:.0f} us each")
    store.sweep(NOW, 0)
    looks = 200
    idle = took(lambda: [store.due(NOW, 50) for _ in range(looks)]) / looks
    report("an idle look (due)", f"{idle * 1e6:.0f} us")
    wake = took(lambda: [store.next_wake(NOW) for _ in range(looks)]) / looks
    report("the next wake", f"{wake * 1e6:.0f} us")
    messages = 1_000
    sends = took(
        lambda: [
            store.send(f"sleeper-{3 * n + 1}", "decisions", None, "1", None, NOW)
            for n in range(min(messages, count // 3))
        ]
    )
    report("a send, its own commit", f"{sends / min(messages, count // 3) * 1e6:.0f} us")
    full = took(lambda: store.due(NOW, 50))
    report("a look that finds 50", f"{full * 1e6:.0f} us (found {len(store.due(NOW, 50))})")
    report("counts by status", f"{took(store.counts) * 1e3:.1f} ms")
    report("where they stand", f"{took(store.standing) * 1e3:.1f} ms")
    end = took(
        lambda: store.save(
            "awaited",
            ME,
            Save("{}", "done", "run", None, 0, "v1", True, result="1", keep=1_000),
            (),
            NOW,
        )
    )
    report(f"an end that {count // 3:,} wait for", f"{end * 1e3:.0f} ms")


_SERIES = "WITH RECURSIVE c(n) AS (SELECT :low UNION ALL SELECT n + 1 FROM c WHERE n + 1 < :high)"
_FILL = (
    'INSERT INTO "instances" ("id", "birth", "flow", "version", "status", "phase", "since",'
    f' "pass", "created", "wake_at", "args", "state") {_SERIES}'
    " SELECT 'kept-' || n, 'k7f2k7f2', 'Order', 'v1', 'waiting', 'run', 1, 0, 1, :wake + n,"
    " '{}', '{}' FROM c",
    'INSERT INTO "attempts" ("key", "attempt", "instance", "pass", "asked", "step", "result")'
    f" {_SERIES} SELECT 'kept-' || n || '/k', 1, 'kept-' || n, 0, '[1]', 'charge', '1' FROM c",
    f'INSERT INTO "ledger" ("instance", "at", "kind", "detail") {_SERIES}'
    " SELECT 'kept-' || n, 1, 'started', '{}' FROM c",
)


def growth(store: SqlStore, most: int) -> None:
    """What an instance of five steps and an idle look cost among more and more that are kept."""
    filled = 0
    for count in (1_000, 10_000, 100_000, 1_000_000):
        if count > most:
            return
        with store.database.transaction():
            for statement in _FILL:
                store.database.run(statement, {"low": filled, "high": count, "wake": UNTIL})
        filled = count

        def lives(first: int) -> None:
            with store.database.transaction():
                for number in range(first, first + 100):
                    _life(store, f"lives-{filled}-{number}")  # noqa: B023

        each = min(took(lambda at=at: lives(at)) for at in range(0, 800, 100)) / 100  # type: ignore[misc]
        look = min(took(lambda: store.due(NOW, 50)) for _ in range(100))
        wake = min(took(lambda: store.next_wake(NOW)) for _ in range(100))
        report(
            f"among {count:,}: an instance of five steps, an idle look",
            f"{each * 1e6:.0f} us, {(look + wake) * 1e6:.0f} us",
        )


def _life(store: SqlStore, id: str) -> None:
    store.create(request(id), NOW)
    store.lease(id, ME, NOW, UNTIL)
    for n in range(1, 6):
        store.save(id, ME, next_save(id, n, True), (), NOW)
    end = Save("{}", "done", "run", None, 0, "v1", True, result="1", keep=1_000_000)
    store.save(id, ME, end, (), NOW)


def memory(count: int) -> None:
    def run() -> None:
        for _ in range(count):
            memory_store().close()

    run()
    report("a store in memory, made and closed", f"{took(run) / count * 1e3:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sleepers", type=int, default=100_000)
    parser.add_argument("--growth", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    memory(100)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:

        def make(name: str) -> SqlStore:
            return open_store(f"sqlite:{folder}/{name}.db", "bench")

        store = make("single")
        single(store, 1_000)
        store.close()
        runs: list[Coroutine[Any, Any, None]] = [
            grouped(make, 500, 40, True),
            grouped(make, 500, 40, False),
            grouped(make, 16, 200, True),
            grouped(make, 500, 10, True, busy=True),
            grouped(lambda _: memory_store(), 500, 40, True, where=", in memory"),
        ]
        for run in runs:
            asyncio.run(run)
        store = make("sleepers")
        sleepers(store, arguments.sleepers)
        store.close()
        store = make("growth")
        growth(store, arguments.growth)
        store.close()


if __name__ == "__main__":
    main()
