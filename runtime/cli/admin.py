"""The commands on a daemon: versions, pin, unpin, daemons, sweep, token, pkg show."""

from __future__ import annotations

from collections.abc import Iterable

from qoqi.runtime.api import wire
from qoqi.runtime.api.tokens import Role
from qoqi.runtime.api.wire import ApiError
from qoqi.runtime.api.wire_versions import VersionItem
from qoqi.runtime.cli import life, render
from qoqi.runtime.cli.connect import daemon
from qoqi.runtime.cli.ending import REFUSED, USAGE, fail, show_json
from qoqi.runtime.cli.history import moment
from qoqi.runtime.cli.instances import Target


def versions(to: Target, flow: str | None, as_json: bool) -> None:
    with daemon(*to) as client:
        found = client.versions(flow).versions
    if as_json:
        show_json([wire.write(one) for one in found])
        return
    if not found:
        render.console().print("no versions; deploy some with `qoqi deploy`")
        return
    oldest = _oldest_living(found)
    rows = [
        [one.flow, one.hash[:12], moment(one.deployed_at), _notes(one, oldest), _standing(one)]
        for one in found
    ]
    header = ["FLOW", "VERSION", "DEPLOYED", "IS", "INSTANCES"]
    render.table(header, rows, render.console())


def _oldest_living(found: Iterable[VersionItem]) -> set[str]:
    """Of each flow, the oldest version that living instances are in."""
    first: dict[str, str] = {}
    for one in found:
        if one.stands:
            first.setdefault(one.flow, one.hash)
    return set(first.values())


def _notes(one: VersionItem, oldest: set[str]) -> str:
    words = ["newest"] if one.newest else []
    words += ["pinned"] if one.pinned else []
    words += ["oldest living"] if one.hash in oldest else []
    return ", ".join(words)


def _standing(one: VersionItem) -> str:
    """How many stand at each stage."""
    stages: dict[str, int] = {}
    for stands in one.stands:
        name = stands.stage or "start"
        stages[name] = stages.get(name, 0) + stands.instances
    if not stages:
        return "none"
    total = sum(stages.values())
    return f"{total}: " + ", ".join(f"{count} at {stage}" for stage, count in stages.items())


def pin(to: Target, flow: str, version: str | None, on: bool, as_json: bool) -> None:
    """Pins a version by the start of its hash; the newest by default. An unpin takes the pinned."""
    with daemon(*to) as client:
        found = [
            one
            for one in client.versions().versions
            if one.flow == flow or one.flow.endswith(f".{flow}")
        ]
        if not found:
            fail(REFUSED, f"no flow {flow} is deployed")
        if version is not None:
            chosen = [one for one in found if one.hash.startswith(version)]
        elif on:
            chosen = found[-1:]
        else:
            chosen = [one for one in found if one.pinned]
        if len(chosen) != 1:
            named = f"starts with {version}" if version is not None else "is pinned"
            some = "no version" if not chosen else "more than one version"
            fail(REFUSED, f"of {flow}, {some} {named}; see `qoqi versions {found[0].flow}`")
        answer = client.pin(chosen[0].flow, chosen[0].hash, on=on)
    if as_json:
        show_json(wire.write(answer))
        return
    now = "is pinned: its instances stay in it" if on else "is not pinned: its instances move on"
    render.console().print(f"{answer.flow} {answer.version[:12]} {now}")


def daemons(to: Target, as_json: bool) -> None:
    with daemon(*to) as client:
        found = client.daemons().daemons
    if as_json:
        show_json([wire.write(one) for one in found])
        return
    rows = [
        [one.incarnation, "alive" if one.alive else "silent", moment(one.alive_until)]
        for one in found
    ]
    render.table(["DAEMON", "HEARTBEAT", "UNTIL"], rows, render.console())


def sweep(to: Target, as_json: bool) -> None:
    with daemon(*to) as client:
        answer = client.sweep()
    if as_json:
        show_json(wire.write(answer))
    else:
        out = render.console()
        out.print(f"{render.count(answer.deleted, 'instance')} deleted")
        for gone in answer.versions:
            out.print(f"version {gone.hash[:12]} of {gone.flow} deleted: nobody needed it")


def new_token(to: Target, name: str, role: str, as_json: bool) -> None:
    if role not in set(Role):
        fail(USAGE, f"--role: {role} is none of {', '.join(Role)}")
    with daemon(*to) as client:
        answer = client.new_token(name, role)
    if as_json:
        show_json(wire.write(answer))
    else:
        print(answer.token)


def tokens(to: Target, as_json: bool) -> None:
    with daemon(*to) as client:
        found = client.tokens().tokens
    if as_json:
        show_json([wire.write(one) for one in found])
    else:
        rows = [[one.name, one.role] for one in found]
        render.table(["NAME", "ROLE"], rows, render.console())


def revoke(to: Target, name: str, as_json: bool) -> None:
    with daemon(*to) as client:
        answer = client.drop_token(name)
    if as_json:
        show_json(wire.write(answer))
    else:
        render.lines([("", f"{answer.name} is revoked")], render.console())


def show(to: Target, name: str, as_json: bool) -> None:
    """A deployed flow or an instance, whichever has the name; an instance comes first."""
    with daemon(*to) as client:
        found: wire.LifeView | wire.FlowView
        try:
            found = client.life(name)
        except ApiError as no_instance:
            if no_instance.code != "no_instance":
                raise
            try:
                found = client.flow(name)
            except ApiError as no_flow:
                if no_flow.code != "no_flow":
                    raise
                fail(REFUSED, f"{name} is neither an instance nor a deployed flow")
    if as_json:
        show_json(wire.write(found))
    elif isinstance(found, wire.LifeView):
        render.lines(life.life(found), render.console())
    else:
        render.lines(life.flow(found), render.console())
