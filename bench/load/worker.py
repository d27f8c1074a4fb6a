"""The process under test: a daemon on a SQLite file, as `qoqi serve` makes it, driven by lines.

    python worker.py FOLDER [--far MS] [--profile FILE]

FOLDER has `load.flow`; the store is `FOLDER/flows.db`, with the settings of every store of ours
(WAL, synchronous=FULL). Commands are JSON lines on stdin, each answered by one on stdout:

    {"start": flow, "names": prefix, "count": n, "args": {…}}   starts them all at once
    {"send": channel, "names": prefix, "count": n}               a message to each
    {"sleepers": n}        n instances that wait, written straight into the store
    {"stats": true}        CPU, time of the loop's thread, statements, groups and calls so far
    {"steps": true}        when each body began since the last such command, in seconds
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from qoqi.runtime import bodies, deploy
from qoqi.runtime.clock import SystemClock
from qoqi.runtime.daemon import Daemon, collect_rarely
from qoqi.runtime.model import Settings
from qoqi.runtime.programs import arguments
from qoqi.runtime.store.open import open_store
from qoqi.runtime.store.sqlite import SqliteDatabase
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm.host import Save, WaitRow

MODULE = "load"


def _watch_bodies() -> list[float]:
    """Has each body that is made leave the moment in the list."""
    begun: list[float] = []
    make = bodies.make

    def watched(*given: Any) -> bodies.Body:
        begun.append(time.perf_counter())
        return make(*given)

    bodies.make = watched
    return begun


async def _start(daemon: Daemon, asked: dict[str, Any]) -> dict[str, object]:
    hash = await daemon.programs.newest(f"{MODULE}.{asked['start']}")
    assert hash is not None
    program = daemon.programs.code(hash)

    async def one(number: int) -> None:
        name = f"{asked['names']}-{number}"
        values = arguments(program, asked["args"])
        await daemon.create(daemon.first_row(name, program, hash, values, None))

    await asyncio.gather(*(one(number) for number in range(asked["count"])))
    return {"started": asked["count"]}


async def _send(daemon: Daemon, asked: dict[str, Any]) -> dict[str, object]:
    async def one(number: int) -> None:
        id, now = f"{asked['names']}-{number}", daemon.clock.now()
        await daemon.send(
            id, lambda store, hold: store.send(id, asked["send"], None, "1", None, now, hold)
        )

    await asyncio.gather(*(one(number) for number in range(asked["count"])))
    return {"sent": asked["count"]}


async def _sleepers(daemon: Daemon, count: int) -> dict[str, object]:
    """The rows that `Wait` leaves behind, a thousand a transaction."""
    hash = await daemon.programs.newest(f"{MODULE}.Wait")
    assert hash is not None
    program = daemon.programs.code(hash)

    def some(first: int, last: int) -> None:
        store, now = daemon.store._store, daemon.clock.now()
        for number in range(first, last):
            id = f"sleeper-{number}"
            request = daemon.first_row(id, program, hash, (1,), None)
            store.create(request, now)
            store.lease(id, daemon.me, now, now + 60_000)
            wait = (
                WaitRow("0", 0, "receive", channel=0)
                if number % 2
                else WaitRow("0", 0, "after", at=now + 3_600_000 + number)
            )
            save = Save(request.state, "waiting", "run", None, 0, hash, True, waits=(wait,))
            store.save(id, daemon.me, save, (), now)

    for first in range(0, count, 1_000):
        await daemon.store.aside(some, first, min(first + 1_000, count))
    return {"sleepers": count}


def _stats(daemon: Daemon) -> dict[str, object]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    database = daemon.store._database
    assert isinstance(database, SqliteDatabase)
    return {
        "cpu": used.ru_utime + used.ru_stime,
        "loop": time.thread_time(),
        "statements": database.statements,
        "groups": daemon.store.groups,
        "calls": daemon.store.calls,
    }


async def _obey(daemon: Daemon, begun: list[float]) -> None:
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print(json.dumps({"ready": time.time()}), flush=True)
    while line := await lines.readline():
        asked = json.loads(line)
        if "start" in asked:
            answer = await _start(daemon, asked)
        elif "send" in asked:
            answer = await _send(daemon, asked)
        elif "sleepers" in asked:
            answer = await _sleepers(daemon, asked["sleepers"])
        elif "steps" in asked:
            answer = {"steps": list(begun)}
            begun.clear()
        else:
            answer = _stats(daemon)
        print(json.dumps(answer), flush=True)


async def _main(folder: Path, far: int) -> None:
    begun = _watch_bodies()
    built = deploy.compile_package(str(folder))
    thread = StoreThread(open_store(f"sqlite:{folder / 'flows.db'}", "bench"))
    clock = SystemClock()
    settings = Settings(far=far, recover_at_once=True)
    async with bodies.http_client() as http:
        daemon = Daemon(thread, clock, bodies.World(clock.now, http), settings=settings)
        for version in deploy.versions(built):
            await daemon.deploy(version.row(clock.now()))
        await daemon.start()
        await _obey(daemon, begun)
        await daemon.kill()
        await thread.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--far", type=int, default=Settings().far)
    parser.add_argument("--profile", type=Path)
    given = parser.parse_args()
    collect_rarely()
    if given.profile is None:
        asyncio.run(_main(given.folder, given.far))
        return
    profile = cProfile.Profile()
    profile.enable()
    try:
        asyncio.run(_main(given.folder, given.far))
    finally:
        profile.disable()
        profile.dump_stats(given.profile)


if __name__ == "__main__":
    main()
