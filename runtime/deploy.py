"""From a folder to versions on a daemon: the only module of the runtime that compiles.

A deploy is planned before anything is sent: each flow is new, known (nothing to do), older (known,
but another version runs) or behind (the daemon's newest is not the version this one was built
after). One that is behind keeps the whole deploy from being sent. What was sent is marked deployed
in flow.lock, flow by flow, so that a deploy which is broken off leaves the lock true.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from qoqi.compiler import api
from qoqi.compiler.project.build import write_lock
from qoqi.compiler.project.lockfile import mark_deployed
from qoqi.runtime.api.client import Client
from qoqi.runtime.api.wire import VersionBody, VersionView
from qoqi.runtime.model import VersionRow
from qoqi.vm.bytecode.codec import encode_debug


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


@dataclass(frozen=True, slots=True)
class Planned:
    """`newest` is what the daemon has of the flow now."""

    version: Deployable
    action: str  # new, known, older, behind
    newest: str | None


def versions(built: api.BuildResult) -> tuple[Deployable, ...]:
    """The versions of a build that has no errors."""
    return tuple(
        Deployable(flow.name, flow.hash, flow.previous, flow.data, encode_debug(flow.debug))
        for flow in built.flows
    )


def compile_package(path: str, *, locked: bool = False) -> api.BuildResult:
    """Builds a package; with `locked`, nothing is written and the lock must be up to date."""
    return api.build(path, locked=locked)


def plan(wanted: Iterable[Deployable], deployed: Iterable[VersionView]) -> tuple[Planned, ...]:
    """What deploying each version would do, given all that is deployed, the oldest first."""
    of: dict[str, list[str]] = {}
    for view in deployed:
        of.setdefault(view.flow, []).append(view.hash)
    planned = []
    for version in wanted:
        known = of.get(version.flow, [])
        newest = known[-1] if known else None
        if newest is None:
            action = "new"
        elif version.hash == newest:
            action = "known"
        elif version.hash in known:
            action = "older"
        else:
            action = "new" if version.previous == newest else "behind"
        planned.append(Planned(version, action, newest))
    return tuple(planned)


def send(client: Client, folder: str, built: api.BuildResult, planned: Iterable[Planned]) -> None:
    """Sends what is new, and marks what the daemon has as deployed."""
    lock = built.lock
    for one in planned:
        if one.action == "new":
            client.put_version(one.version.hash, one.version.body())
        after = mark_deployed(lock, one.version.flow, one.version.hash)
        if after != lock:
            lock = after
            write_lock(folder, lock)


def lock_folder(path: str) -> str:
    """Where flow.lock of a package stands: its folder, or that of its one file."""
    return str(Path(path).parent) if Path(path).is_file() else path
