"""Versions of one flow, built one after the other as `qoqi build` and `qoqi deploy` do it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from qoqi.compiler import api
from qoqi.compiler.project.build import write_lock
from qoqi.runtime.model import Settings, VersionRow
from qoqi.runtime.programs import Programs, turn_limits
from qoqi.runtime.replay import Plan, PlanLine, Reader, plan
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm.bytecode.codec import encode_debug
from qoqi.vm.jsonform import json_text, parse_json, to_json
from qoqi.vm.program import Program, load
from qoqi.vm.snapshot import freeze, thaw

FLOW = "plan.Plan"


@dataclass(frozen=True)
class Version:
    hash: str
    program: Program
    data: bytes
    debug: bytes

    def row(self, previous: str | None) -> VersionRow:
        return VersionRow(self.hash, FLOW, previous, self.data, self.debug, 0)


def build(folder: Path, *sources: str) -> list[Version]:
    """Each source is built against the lock as the one before left it, and deployed."""
    versions = []
    for source in sources:
        (folder / "plan.flow").write_text(source, "utf-8")
        result = api.build(str(folder))
        assert result.ok, [(each.code, each.message) for each in result.diagnostics]
        flow = next(flow for flow in result.flows if flow.name == FLOW)
        write_lock(str(folder), api.mark_deployed(result.lock, FLOW, flow.hash))
        program = load(flow.chunk, flow.debug)
        versions.append(Version(flow.hash, program, flow.data, encode_debug(flow.debug)))
    return versions


def echo(leaving: Leaving) -> Reply:
    """A step answers with its name and what it was given, after 10 ms."""
    given = ",".join(json_text(to_json(value)) for value in leaving.args)
    return Reply(json_text(f"{leaving.step}({given})"), after=10)


def world(
    version: Version,
    answer: Callable[[Leaving], Reply] = echo,
    store: Store | None = None,
    daemons: int = 1,
    settings: Settings | None = None,
) -> Simulation:
    kept = store if store is not None else memory_store()
    kept.put_version(version.row(None))
    made = Simulation(
        kept,
        {version.hash: version.program},
        {FLOW: version.hash},
        answer,
        settings=settings,
    )
    for _ in range(1, daemons):
        made.add_daemon()
    return made


def start_state_at(
    version: Version, stage: str, values: dict[str, object], fields: dict[str, object]
) -> str:
    """A state of this version at a stage, with empty channels, as an instance would write it."""
    channels = [channel.name for channel in version.program.chunk.channels]
    life = {"id": "p", "birth": "b", "given": 0, "started": 0, "undos": 0, "cancels": []}
    text = json_text(
        {
            "format": "qoqi.flow/1",
            "version": version.hash,
            "pass": 1,
            "stage": stage,
            "life": {**life, "refuses": None, "returned": False, "now": 0},
            "vars": values,
            "fields": fields,
            "channels": {name: {"items": [], "closed": False} for name in channels},
            "undo": [],
            "counts": {},
        }
    )
    return freeze(thaw(text, version.program), version.program)


def deploy(made: Simulation, version: Version) -> None:
    made.outside.put_version(version.row(made.newest[FLOW]))
    made.deploy(FLOW, version.hash, version.program)


def parse(text: str | None) -> dict[str, object]:
    """A JSON object."""
    raw = parse_json(text or "")
    assert isinstance(raw, dict)
    return raw


def state(made: Simulation, name: str = "p") -> dict[str, object]:
    """The instance's state as JSON data."""
    return parse(made.row(name).state)


def left(made: Simulation) -> list[str]:
    """What left, in words."""
    return [
        f"{step.step}({', '.join(json_text(to_json(value)) for value in step.args)})"
        for step in made.left
    ]


# -- plans ---------------------------------------------------------------------------------------


class Awaited:
    """A store of a simulation, with the face that asyncio has of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        async def call(*args: object) -> object:
            return getattr(self._store, name)(*args)

        return call


def reader(made: Simulation) -> Reader:
    store = cast(StoreThread, Awaited(made.outside))
    return Reader(store, Programs(store), made.now, turn_limits(made.settings), made.settings.keep)


def dry(made: Simulation, version: Version, name: str = "p") -> Plan:
    """What a resume of a stopped instance into this version would do."""
    life = made.outside.life(name)
    assert life is not None
    return asyncio.run(plan(life, version.hash, reader(made)))


def short(line: PlanLine) -> tuple[str, str]:
    """What becomes of a key: `taken 0:charge#1`."""
    return line.what, line.key.partition("/")[2].partition("/")[2].partition(":")[2]
