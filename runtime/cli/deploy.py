"""`qoqi deploy`: builds a package and puts its flows on the daemon; or rehearses that in memory.

What would happen is printed before anything is sent: what is new, and what becomes of the instances
that live in older versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from qoqi.runtime import deploy
from qoqi.runtime.api import wire
from qoqi.runtime.api.wire_versions import RehearsalBody, RehearsalView, RehearsedItem
from qoqi.runtime.cli import package
from qoqi.runtime.cli.connect import daemon
from qoqi.runtime.cli.ending import FOUND, REFUSED, fail, show_json
from qoqi.runtime.cli.instances import Target
from qoqi.runtime.cli.render import console, count, lines, table

_SAID = {
    "new": "new",
    "known": "known, nothing to do",
    "older": "known, but a newer version runs",
    "behind": "behind",
}

_FATES = {
    "moves": "to move at the next stage",
    "pinned": "to stay, the version is pinned",
    "stopped": "stopped, to move on a resume",
    "ending": "ending, in that version",
}


def run(to: Target, path: Path | None, *, dry_run: bool, as_json: bool) -> None:
    where, built = package.built_or_exit(path, keep=not dry_run)
    if not built.flows:
        fail(REFUSED, f"{where} has no flows to deploy")
    with daemon(*to) as client:
        planned = deploy.plan(deploy.versions(built), client.versions().versions)
        refused = deploy.refused(planned)
        if not as_json:
            _show(planned, dry_run)
        if refused is None and not dry_run:
            out = console()

            def said(one: deploy.Planned) -> None:
                if not as_json:
                    out.print(f"deployed {one.version.flow} {one.version.hash[:12]}")

            deploy.send(client, deploy.lock_folder(where), built, planned, said)
    if as_json:
        sent = refused is None and not dry_run
        show_json([_json(one, sent=sent and one.action == "new") for one in planned])
    if refused is not None:
        fail(REFUSED, refused)


def _show(planned: Sequence[deploy.Planned], dry_run: bool) -> None:
    rows = [[one.version.flow, one.version.hash[:12], _SAID[one.action]] for one in planned]
    table(["FLOW", "VERSION", "WOULD BE" if dry_run else "IS"], rows, console())
    lines((("", line) for one in planned for line in _movements(one)), console())


def _movements(planned: deploy.Planned) -> Iterator[str]:
    """Per fate and version, how many instances at which stage."""
    groups: dict[tuple[str, str], list[deploy.Stands]] = {}
    for one in planned.stands:
        groups.setdefault((one.fate, one.version), []).append(one)
    for fate, words in _FATES.items():
        for (found, version), stands in groups.items():
            if found == fate:
                total = sum(one.instances for one in stands)
                where = ", ".join(f"{one.instances} at {one.stage or 'start'}" for one in stands)
                yield (
                    f"  {planned.version.flow}: {count(total, 'instance')} of {version[:12]} "
                    f"{words}: {where}"
                )


def _json(one: deploy.Planned, *, sent: bool) -> dict[str, object]:
    return {
        "flow": one.version.flow,
        "hash": one.version.hash,
        "previous": one.version.previous,
        "action": one.action,
        "sent": sent,
        "instances": [
            {
                "fate": stands.fate,
                "version": stands.version,
                "stage": stands.stage,
                "instances": stands.instances,
            }
            for stands in one.stands
        ],
    }


# -- rehearsals ----------------------------------------------------------------------------------


def rehearse(to: Target, path: Path | None, sample: int | None, as_json: bool) -> None:
    """Ends with 1 where an instance would stop in the new version."""
    where, built = package.built_or_exit(path, keep=False)
    if not built.flows:
        fail(REFUSED, f"{where} has no flows to rehearse")
    with daemon(*to) as client:
        planned = deploy.plan(deploy.versions(built), client.versions().versions)
        refused = deploy.refused(planned)
        if refused is not None:
            fail(REFUSED, refused)
        new = [one.version.candidate() for one in planned if one.action == "new"]
        flows = client.rehearse(RehearsalBody(tuple(new), sample)).flows if new else ()
    if as_json:
        show_json([wire.write(one) for one in flows])
    elif not flows:
        console().print("nothing is new: the daemon has what this package says")
    else:
        lines((line for one in flows for line in _rehearsed(one)), console())
    if any(item.outcome == "stops" for one in flows for item in one.outcomes):
        raise SystemExit(FOUND)


def _rehearsed(view: RehearsalView) -> Iterator[tuple[str, str]]:
    tried = "all" if view.tried == view.living else str(view.tried)
    yield (
        "title",
        f"{view.flow} {view.version[:12]}: {count(view.living, 'instance')}, {tried} tried "
        "from their last stage",
    )
    for outcome in ("leaves", "waits", "ends", "stops"):
        for item in _sorted(view.outcomes, outcome):
            yield from _item(item)


def _sorted(items: Iterable[RehearsedItem], outcome: str) -> list[RehearsedItem]:
    found = [item for item in items if item.outcome == outcome]
    return sorted(found, key=lambda item: (-item.instances, item.stage or "", item.line))


_WOULD = {
    "leaves": "would go on with a step",
    "waits": "would go on and wait",
    "ends": "would end",
    "stops": "would stop",
}


def _item(item: RehearsedItem) -> Iterator[tuple[str, str]]:
    stops = item.outcome == "stops"
    why = f" with {item.code}" if item.code else ""
    line = f" at {item.line}" if item.line else ""
    names = ", ".join(item.names) + (", …" if item.instances > len(item.names) else "")
    yield (
        "bad" if stops else "",
        f"  {item.instances} {item.status} at {item.stage or 'start'} {_WOULD[item.outcome]}"
        f"{why}{line}: {names}",
    )
    if item.message is not None:
        yield "", f"    {item.message}"
