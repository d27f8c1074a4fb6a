"""From a folder to versions on a daemon: the only module of the runtime that compiles.

A deploy is planned before anything is sent: each flow is new, known (nothing to do), older (known,
but another version runs) or behind (the daemon's newest is not the version this one was built
after). One that is older or behind keeps the whole deploy from being sent. What was sent is marked
deployed in flow.lock, flow by flow, so that a deploy which is broken off leaves the lock true. Two
folders that deploy at once race at the daemon: the second is behind, and nothing of it is lost.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from qoqi.compiler.project import kept
from qoqi.runtime.api.client import Client
from qoqi.runtime.api.wire import VersionBody
from qoqi.runtime.api.wire_versions import CandidateBody, VersionItem
from qoqi.runtime.model import VersionRow
from qoqi.vm.bytecode.codec import encode_debug
from qoqi.vm.dataclass import dataclass

if TYPE_CHECKING:
    from qoqi.compiler.api import BuildResult


@dataclass(frozen=True, slots=True)
class Deployable:
    """One flow's version, ready to be stored."""

    flow: str
    hash: str
    previous: str | None
    bytecode: bytes
    debug: bytes

    def row(self, now: int) -> VersionRow:
        return VersionRow(self.hash, self.flow, self.previous, self.bytecode, self.debug, now)

    def body(self) -> VersionBody:
        def text(data: bytes) -> str:
            return base64.b64encode(data).decode("ascii")

        return VersionBody(self.flow, text(self.bytecode), text(self.debug), self.previous)

    def candidate(self) -> CandidateBody:
        body = self.body()
        return CandidateBody(self.hash, body.flow, body.bytecode, body.debug, body.previous)


@dataclass(frozen=True, slots=True)
class Stands:
    """What becomes of instances of a version at a stage when a newer one is deployed.

    `fate`: moves (at its next stage), pinned (stays), stopped (a resume takes it over), ending.
    """

    fate: str
    version: str
    stage: str | None
    instances: int


@dataclass(frozen=True, slots=True)
class Planned:
    """`newest` is what the daemon has of the flow now, `stands` whose instances are concerned."""

    version: Deployable
    action: str  # new, known, older, behind
    newest: str | None
    stands: tuple[Stands, ...] = ()


def versions(built: BuildResult) -> tuple[Deployable, ...]:
    """The versions of a build that has no errors."""
    return tuple(
        Deployable(flow.name, flow.hash, flow.previous, flow.data, encode_debug(flow.debug))
        for flow in built.flows
    )


def kept_versions(path: str) -> tuple[Deployable, ...] | None:
    """The versions of a package that was built as it is now; the compiler is not even loaded."""
    flows = kept.read(path)
    if flows is None:
        return None
    return tuple(
        Deployable(flow.name, flow.hash, flow.previous, flow.data, flow.debug) for flow in flows
    )


def compile_package(path: str, *, locked: bool = False) -> BuildResult:
    """Builds a package; with `locked`, nothing is written and the lock must be up to date."""
    from qoqi.compiler import api

    return api.build(path, locked=locked)


def plan(wanted: Iterable[Deployable], deployed: Iterable[VersionItem]) -> tuple[Planned, ...]:
    """What deploying each version would do, given all that is deployed, the oldest first."""
    of: dict[str, list[VersionItem]] = {}
    for view in deployed:
        of.setdefault(view.flow, []).append(view)
    planned = []
    for version in wanted:
        known = [view.hash for view in of.get(version.flow, [])]
        newest = known[-1] if known else None
        if newest is None:
            action = "new"
        elif version.hash == newest:
            action = "known"
        elif version.hash in known:
            action = "older"
        else:
            action = "new" if version.previous == newest else "behind"
        stands = _stands(version, of.get(version.flow, [])) if action == "new" else ()
        planned.append(Planned(version, action, newest, stands))
    return tuple(planned)


def _stands(version: Deployable, deployed: Iterable[VersionItem]) -> tuple[Stands, ...]:
    """What becomes of the living instances of a flow that gets a new version."""
    counts: dict[tuple[str, str, str | None], int] = {}
    for view in deployed:
        for one in view.stands:
            if view.pinned:
                fate = "pinned"
            elif one.phase == "finish":
                fate = "ending"
            else:
                fate = "stopped" if one.status == "stopped" else "moves"
            mark = (fate, view.hash, one.stage)
            counts[mark] = counts.get(mark, 0) + one.instances
    return tuple(Stands(*mark, count) for mark, count in counts.items())


def refused(planned: Iterable[Planned]) -> str | None:
    """Why nothing of this plan may be sent; None if it may."""
    for one in planned:
        flow, newest = one.version.flow, (one.newest or "")[:12]
        if one.action == "behind":
            after = (one.version.previous or "no version")[:12]
            return (
                f"nothing was deployed: of {flow} the daemon runs {newest}, and this version was "
                f"built after {after}; take over the flow.lock that was deployed, and build again"
            )
        if one.action == "older":
            return (
                f"nothing was deployed: version {one.version.hash[:12]} of {flow} was deployed "
                f"before {newest}, which runs now; instances go forward only, so going back is a "
                "new version too: change what it does, by a print if by nothing else, and build "
                "again"
            )
    return None


def send(
    client: Client,
    folder: str,
    built: BuildResult,
    planned: Iterable[Planned],
    said: Callable[[Planned], None] = lambda one: None,
) -> None:
    """Sends what is new, and marks what the daemon has as deployed; `said` is told of each."""
    from qoqi.compiler.project.build import write_lock
    from qoqi.compiler.project.lockfile import mark_deployed

    lock = built.lock
    for one in planned:
        if one.action == "new":
            client.put_version(one.version.hash, one.version.body())
        after = mark_deployed(lock, one.version.flow, one.version.hash)
        if after != lock:
            lock = after
            write_lock(folder, lock)
        if one.action == "new":
            said(one)


def lock_folder(path: str) -> str:
    """Where flow.lock of a package stands: its folder, or that of its one file."""
    return str(Path(path).parent) if Path(path).is_file() else path
