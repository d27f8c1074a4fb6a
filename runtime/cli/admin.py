"""The commands on a daemon: versions, daemons, sweep, token, pkg show."""

from __future__ import annotations

from qoqi.runtime.api import wire
from qoqi.runtime.api.tokens import Role
from qoqi.runtime.api.wire import ApiError
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
    rows = [
        [one.flow, one.hash[:12], (one.previous or "")[:12], moment(one.deployed_at)]
        for one in found
    ]
    render.table(["FLOW", "VERSION", "PREVIOUS", "DEPLOYED"], rows, render.console())


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
        render.console().print(f"{render.count(answer.deleted, 'instance')} deleted")


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
