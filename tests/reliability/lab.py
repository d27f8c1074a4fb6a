"""Flows written as text, run by the real algorithm in a simulation: one store, a clock that stands.

`world` is a `Simulation` on a fresh store; `Meddler` stands between its daemons and the store, and
lets a test count calls, or do something at the very moment of one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from qoqi.compiler import api
from qoqi.compiler.diagnostics import Severity
from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Life, Store
from qoqi.vm.program import Program, load

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000

Answer = Callable[[Leaving], Reply]


class Files:
    """A package in memory."""

    def __init__(self, **modules: str) -> None:
        self._texts = {f"{name}.flow": text for name, text in modules.items()}

    def files(self, folder: str, suffix: str) -> list[str]:
        return sorted(name for name in self._texts if name.endswith(suffix))

    def read(self, path: str) -> str:
        return self._texts[path]

    def is_file(self, path: str) -> bool:
        return path in self._texts

    def is_folder(self, path: str) -> bool:
        return path == "."


@cache
def built(text: str) -> api.BuildResult:
    """One module `m`, compiled; it has to be without errors."""
    result = api.build(".", reader=Files(m=text))
    problems = [
        (found.code, found.message, text[found.span.start : found.span.end])
        for found in result.diagnostics
        if found.severity is Severity.ERROR
    ]
    assert not problems, problems
    return result


@cache
def programs(text: str) -> tuple[dict[str, Program], dict[str, str]]:
    """Programs by hash, and the hash of each flow."""
    flows = built(text).flows
    return (
        {flow.hash: load(flow.chunk, flow.debug) for flow in flows},
        {flow.name: flow.hash for flow in flows},
    )


def null(leaving: Leaving) -> Reply:
    return Reply("null")


def world(
    text: str,
    answer: Answer = null,
    store: Store | None = None,
    *,
    settings: Settings | None = None,
    **options: Any,
) -> Simulation:
    by_hash, newest = programs(text)
    return Simulation(
        store or memory_store(),
        dict(by_hash),
        dict(newest),
        answer,
        settings=settings,
        **options,
    )


def left(simulation: Simulation) -> list[tuple[str, int]]:
    """What left, in order: (step, attempt)."""
    return [(step.step, step.attempt) for step in simulation.left]


def ending(simulation: Simulation, id: str) -> tuple[str, str | None]:
    row = simulation.row(id)
    return str(row.status), row.result


def life(simulation: Simulation, id: str) -> Life:
    found = simulation.outside.life(id)
    assert found is not None
    return found


def kinds(simulation: Simulation, id: str) -> list[str]:
    """The ledger of an instance, as its kinds."""
    return [row.kind for row in simulation.outside.ledger(id, 0, 10_000)]


class Meddler:
    """A store whose calls are counted; `before` and `after` are called around each of them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.calls: list[str] = []
        self.before: Callable[[str, tuple[Any, ...]], None] = lambda name, args: None
        self.after: Callable[[str, tuple[Any, ...]], None] = lambda name, args: None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def call(*args: Any, **named: Any) -> Any:
            self.before(name, args)
            self.calls.append(name)
            result = method(*args, **named)
            self.after(name, args)
            return result

        return call

    def count(self, name: str) -> int:
        return self.calls.count(name)


def meddled(
    text: str, answer: Answer = null, *, settings: Settings | None = None
) -> tuple[Simulation, Meddler]:
    """A world whose daemons reach the store through a `Meddler`; people reach it directly."""
    store = memory_store()
    meddler = Meddler(store)
    simulation = world(text, answer, meddler, settings=settings)
    simulation.outside = store
    return simulation, meddler
