"""`qoqi dev`: a daemon on a local file, and the package deployed again at each save of a source.

The store is `.qoqi/dev.db`, a file of its own, and flow.lock is neither read nor written: what is
tried out here never becomes a version that others have to go on from. New instances begin in what
the sources say now, also where they say again what they said before; instances under way move at
their stages as after any deploy. Sources with errors are reported, and what ran goes on running.

Saves are found by looking: names, sizes and times of the sources, a few times a second.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qoqi.compiler import api
from qoqi.compiler.project.load import DiskReader
from qoqi.runtime import deploy
from qoqi.runtime.cli import package, render, serve, settings
from qoqi.runtime.daemon import Daemon

LOOK = 0.3

Stamp = dict[str, tuple[int, int]]


def run(
    folder: Path | None,
    listen: str,
    given: Mapping[str, str | None],
    recover: str,
    verbose: bool,
) -> None:
    serve.logs(verbose)
    chosen = settings.read(given, recover)
    address = serve.address_of(listen)
    where = package.root(folder)
    home = serve.home_of(Path(where))
    before = stamp(where)

    async def first(daemon: Daemon) -> None:
        await deploy_again(daemon, where)

    async def beside(daemon: Daemon) -> None:
        await watch(daemon, where, before)

    serve.stand(home, address, f"sqlite:{home / 'dev.db'}", "dev", chosen, first, beside)


def stamp(where: str) -> Stamp:
    """What tells a saved source from the one before; a file that goes meanwhile is not there."""
    paths = [where]
    if not Path(where).is_file():
        paths = [*DiskReader().files(where, ".flow"), str(Path(where) / "flow.toml")]
    found: Stamp = {}
    for path in paths:
        try:
            status = Path(path).stat()
        except OSError:
            continue
        found[path] = (status.st_mtime_ns, status.st_size)
    return found


async def watch(daemon: Daemon, where: str, before: Stamp) -> None:
    """Deploys again whenever a source is not as it was; a save in pieces is one once it rests."""
    while True:
        await asyncio.sleep(LOOK)
        now = await asyncio.to_thread(stamp, where)
        if now == before:
            continue
        while (later := await asyncio.to_thread(stamp, where)) != now:
            now = later
            await asyncio.sleep(LOOK)
        before = now
        await deploy_again(daemon, where)


async def deploy_again(daemon: Daemon, where: str) -> None:
    """Builds the package beside the daemon, and lets new instances begin in it."""
    built = await asyncio.to_thread(api.build, where, reader=DiskReader())
    if built.diagnostics:
        out = render.console(sys.stderr)
        render.diagnostics(built.diagnostics, api.indexes(built.check), out)
    if not built.ok:
        running = ", ".join(sorted(daemon.programs.chosen)) or "nothing"
        print(f"{render.verdict(built.diagnostics)}; still running: {running}", file=sys.stderr)
        return
    changed = []
    for version in deploy.versions(built):
        if daemon.programs.chosen.get(version.flow) == version.hash:
            continue
        newest = await daemon.store.newest(version.flow)
        row = replace(version.row(daemon.clock.now()), previous=newest)
        await daemon.deploy(row)
        daemon.programs.chosen[version.flow] = version.hash
        changed.append(f"{version.flow} {version.hash[:12]}")
    print(f"deployed {', '.join(changed)}" if changed else "nothing to deploy", flush=True)
