"""`qoqi pkg show` without a name: the folder's package, and what changed since the last deploy.

The package is compiled in memory against its flow.lock; nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qoqi.compiler import api
from qoqi.compiler.project import build as building
from qoqi.compiler.project.lockfile import Lock, LockedFlow, LockedVersion
from qoqi.runtime import deploy
from qoqi.runtime.cli import package, render
from qoqi.runtime.cli.ending import FOUND, show_json

Line = tuple[str, str]


def show(path: Path | None, as_json: bool) -> None:
    where = package.root(path)
    result = api.check(where)
    if not result.ok:
        package.report(result.diagnostics, result)
        raise SystemExit(FOUND)
    folder = deploy.lock_folder(where)
    lock, _, problems = building.read_lock(folder)
    made = building.compile_flows(
        result.checked, result.sources, lock or Lock(), folder, whole=folder == where
    )
    found = (*problems, *made.diagnostics)
    if lock is None or (not made.flows and found):
        package.report(found, result)
        raise SystemExit(FOUND)
    if as_json:
        show_json(
            {
                "package": result.package.name,
                "flows": [_json(locked) for locked in made.lock.flows],
            }
        )
        return
    title = f"package {result.package.name}, {render.count(len(made.lock.flows), 'flow')}"
    render.lines([("title", title)], render.console())
    for locked in made.lock.flows:
        render.lines(_flow(locked), render.console())


def state(locked: LockedFlow) -> str:
    """How the folder's version of a flow stands to the one that was deployed last."""
    newest = locked.versions[-1]
    if newest.deployed:
        return "as deployed"
    if newest.previous is None:
        return "never deployed"
    return f"changed since {newest.previous[:12]}"


def _flow(locked: LockedFlow) -> Iterator[Line]:
    newest = locked.versions[-1]
    yield "title", f"{locked.name}, {state(locked)}"
    for version in locked.versions:
        deployed = "deployed" if version.deployed else "not deployed"
        yield "", f"  version {version.hash[:12]}, {deployed}"
    for title, parts in _parts(newest).items():
        for part in parts:
            yield "", f"  {title} {part}"
    base = next((one for one in reversed(locked.versions[:-1]) if one.deployed), None)
    if base is not None and not newest.deployed:
        yield from _changes(base, newest)


def _parts(version: LockedVersion) -> dict[str, list[str]]:
    return {
        "parameter": [str(one) for one in version.params],
        "field": [str(one) for one in version.fields],
        "channel": [f"{one.name}: {one.type}" for one in version.channels],
        "stage": [
            f"{stage.name}({', '.join(map(str, stage.variables))})" for stage in version.stages
        ],
        "step": list(version.steps),
    }


def _changes(before: LockedVersion, after: LockedVersion) -> Iterator[Line]:
    old, new = _parts(before), _parts(after)
    for title, parts in new.items():
        for part in parts:
            if part not in old[title]:
                yield "note", f"  + {title} {part}"
        for part in old[title]:
            if part not in parts:
                yield "note", f"  - {title} {part}"


def _json(locked: LockedFlow) -> dict[str, object]:
    return {
        "flow": locked.name,
        "state": state(locked),
        "versions": [
            {
                "hash": version.hash,
                "previous": version.previous,
                "deployed": version.deployed,
                **{f"{title}s": parts for title, parts in _parts(version).items()},
            }
            for version in locked.versions
        ],
    }
