"""`qoqi deploy`: builds a package and puts its flows on the daemon."""

from __future__ import annotations

from pathlib import Path

from qoqi.runtime import deploy
from qoqi.runtime.cli import package
from qoqi.runtime.cli.connect import daemon
from qoqi.runtime.cli.ending import REFUSED, fail, show_json
from qoqi.runtime.cli.instances import Target
from qoqi.runtime.cli.render import console, table

_SAID = {
    "new": "new",
    "known": "known, nothing to do",
    "older": "known, but a newer version runs",
    "behind": "behind",
}


def run(to: Target, path: Path | None, *, dry_run: bool, as_json: bool) -> None:
    where, built = package.built_or_exit(path, locked=dry_run)
    if not built.flows:
        fail(REFUSED, f"{where} has no flows to deploy")
    with daemon(*to) as client:
        planned = deploy.plan(deploy.versions(built), client.versions().versions)
        behind = [one for one in planned if one.action == "behind"]
        if not behind and not dry_run:
            deploy.send(client, deploy.lock_folder(where), built, planned)
    if as_json:
        show_json(
            [
                {
                    "flow": one.version.flow,
                    "hash": one.version.hash,
                    "previous": one.version.previous,
                    "action": one.action,
                    "sent": one.action == "new" and not behind and not dry_run,
                }
                for one in planned
            ]
        )
    else:
        rows = [[one.version.flow, one.version.hash[:12], _SAID[one.action]] for one in planned]
        table(["FLOW", "VERSION", "DEPLOYED" if not dry_run else "WOULD BE"], rows, console())
    if behind:
        first = behind[0]
        built_after = (first.version.previous or "no version")[:12]
        fail(
            REFUSED,
            f"nothing was deployed: of {first.version.flow} the daemon runs "
            f"{(first.newest or '')[:12]}, and this version was built after {built_after}; take "
            "over the flow.lock that was deployed, and build again",
        )
