"""Versions of one flow, built one after the other as `qoqi build` and `qoqi deploy` do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qoqi.compiler import api
from qoqi.compiler.project.build import write_lock
from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.vm.jsonform import json_text, parse_json, to_json
from qoqi.vm.program import Program, load

FLOW = "plan.Plan"


@dataclass(frozen=True)
class Version:
    hash: str
    program: Program


def build(folder: Path, *sources: str) -> list[Version]:
    """Each source is built against the lock as the one before left it, and deployed."""
    versions = []
    for source in sources:
        (folder / "plan.flow").write_text(source, "utf-8")
        result = api.build(str(folder))
        assert result.ok, [(each.code, each.message) for each in result.diagnostics]
        flow = next(flow for flow in result.flows if flow.name == FLOW)
        write_lock(str(folder), api.mark_deployed(result.lock, FLOW, flow.hash))
        versions.append(Version(flow.hash, load(flow.chunk, flow.debug)))
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
    made = Simulation(
        store if store is not None else memory_store(),
        {version.hash: version.program},
        {FLOW: version.hash},
        answer,
        settings=settings,
    )
    for _ in range(1, daemons):
        made.add_daemon()
    return made


def deploy(made: Simulation, version: Version) -> None:
    made.deploy(FLOW, version.hash, version.program)


def state(made: Simulation, name: str = "p") -> dict[str, object]:
    """The instance's state as JSON data."""
    raw = parse_json(made.row(name).state)
    assert isinstance(raw, dict)
    return raw


def left(made: Simulation) -> list[str]:
    """What left, in words."""
    return [
        f"{step.step}({', '.join(json_text(to_json(value)) for value in step.args)})"
        for step in made.left
    ]
