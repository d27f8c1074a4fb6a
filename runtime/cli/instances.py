"""The commands on instances: start, send, ls, show, history, cancel, end, pause."""

from __future__ import annotations

from datetime import datetime

from qoqi.runtime.api import wire
from qoqi.runtime.cli import history, life, render
from qoqi.runtime.cli.connect import daemon, json_argument
from qoqi.runtime.cli.ending import REFUSED, USAGE, fail, show_json
from qoqi.vm.jsonform import json_text
from qoqi.vm.text import parse_duration

WAIT_MOST = 60_000
"""How long a daemon lets a message wait for its answer, in ms."""

Target = tuple[str | None, str | None]
"""Address and token, as given on the command line."""


def start(to: Target, flow: str, name: str | None, args: str | None, as_json: bool) -> None:
    given = json_argument(args, "the arguments") if args is not None else {}
    if not isinstance(given, dict):
        fail(USAGE, 'the arguments: expected an object by parameter, {"claim": …}')
    with daemon(*to) as client:
        answer = client.start(flow, name, given)
    if as_json:
        show_json(wire.write(answer))
    elif answer.outcome == "started":
        _say(f"started {life.position(answer.instance)}")
    else:
        _say(f"already there: {life.position(answer.instance)}")


def send(
    to: Target,
    name: str,
    channel: str,
    value: str,
    key: str | None,
    wait: str | None,
    birth: str | None,
    as_json: bool,
) -> None:
    given = json_argument(value, "the message")
    if key is not None and not (1 <= len(key) <= 256 and key.isprintable()):
        fail(USAGE, "--key: expected 1 to 256 printable characters")
    if wait is not None:
        length = parse_duration(wait)
        if length is None or not 0 < length.ms <= WAIT_MOST:
            fail(USAGE, f"--wait: {wait} is no length of time up to 60s (30s)")
    with daemon(*to) as client:
        answer = client.send(name, channel, given, key=key, birth=birth, wait=wait)
    if as_json:
        show_json(wire.write(answer))
        return
    if answer.answered:
        _say(json_text(answer.answer))
        return
    if wait is not None:
        again = (
            "ask again under the same --key" if key else "without a --key a repeat is another one"
        )
        fail(REFUSED, f"the message was delivered, and has no answer after {wait}; {again}")
    repeat = "duplicate: " if answer.outcome == "already" else ""
    _say(f"{repeat}{life.position(answer.instance)}")


def view(to: Target, name: str, view: str, as_json: bool) -> None:
    with daemon(*to) as client:
        answer = client.view(name, view)
    if as_json:
        show_json(wire.write(answer))
    else:
        _say(json_text(answer.value))


def listing(to: Target, query: dict[str, str], limit: int, as_json: bool) -> None:
    found: list[wire.InstanceView] = []
    with daemon(*to) as client:
        after: str | None = None
        while len(found) < limit:
            page = client.instances(
                {
                    **query,
                    "limit": str(min(limit - len(found), wire.PAGE_LIMIT)),
                    **({"after": after} if after is not None else {}),
                }
            )
            found += page.instances
            after = page.next
            if after is None:
                break
    if as_json:
        show_json([wire.write(one) for one in found])
        return
    out = render.console()
    if not found:
        out.print("no instances")
        return
    rows = [
        [
            one.name,
            one.flow,
            one.stage or "start",
            f"{one.status}, paused" if one.paused else one.status,
            history.moment(one.since),
            one.parent or "",
            _stopped(one),
        ]
        for one in found
    ]
    render.table(["NAME", "FLOW", "STAGE", "STATUS", "SINCE", "PARENT", "STOPPED BY"], rows, out)
    if after is not None:
        out.print(f"more than {limit}; see the rest with --after {render.visible(after)}")


def _stopped(one: wire.InstanceView) -> str:
    """Why an instance stopped, and whom it keeps waiting."""
    if one.stopped_by is None or one.status != "stopped" or not one.holds:
        return (one.stopped_by or "") if one.status == "stopped" else ""
    return f"{one.stopped_by} (holds {', then '.join(one.holds)})"


def show(to: Target, name: str, as_json: bool) -> None:
    with daemon(*to) as client:
        view = client.life(name)
    if as_json:
        show_json(wire.write(view))
    else:
        render.lines(life.life(view), render.console())


def past(to: Target, name: str, as_json: bool) -> None:
    rows: list[wire.LedgerItem] = []
    with daemon(*to) as client:
        after: int | None = 0
        while after is not None:
            page = client.ledger(name, after, wire.PAGE_LIMIT)
            rows += page.ledger
            after = page.next
    if as_json:
        show_json([wire.write(row) for row in rows])
    else:
        render.lines((("", history.line(row)) for row in rows), render.console())


def cancel(to: Target, name: str, reason: str, now: bool, birth: str | None, as_json: bool) -> None:
    with daemon(*to) as client:
        answer = client.cancel(name, reason, now=now, birth=birth)
    if as_json:
        show_json(wire.write(answer))
    else:
        _say(f"{life.position(answer.instance)}{_to_end(answer.instance)}")


def _to_end(at: wire.InstanceView) -> str:
    """What a cancellation has done so far, where the status does not say it."""
    if at.status in ("done", "failed"):
        return ""
    if at.phase == "run":
        return "" if at.cancel is None else "; it is told to end"
    if at.status == "stopped":
        ways = f"`qoqi resume {at.name}` runs its undos on, `qoqi end {at.name}` ends it without"
        return f"; it is ending already: {ways}"
    return "; it is ending"


def end(to: Target, name: str, reason: str, as_json: bool) -> None:
    with daemon(*to) as client:
        try:
            answer = client.end(name, reason)
        except wire.ApiError as refused:
            if refused.code == "not_stopped":
                fail(REFUSED, f"{refused.message}; `qoqi cancel {name}` asks it to end")
            raise
    _acted(answer, as_json)


def pause(to: Target, name: str, as_json: bool) -> None:
    with daemon(*to) as client:
        _acted(client.pause(name), as_json)


def since(text: str) -> str:
    """A local day or moment on the command line as ms since the epoch."""
    try:
        return str(int(datetime.fromisoformat(text).timestamp() * 1000))
    except ValueError:
        fail(USAGE, f"--since: {text} is no day or time (2026-11-30, 2026-11-30T08:00)")


def _acted(answer: wire.ActAnswer, as_json: bool) -> None:
    if as_json:
        show_json(wire.write(answer))
    else:
        _say(life.position(answer.instance))


def _say(text: str) -> None:
    render.lines([("", text)], render.console())
