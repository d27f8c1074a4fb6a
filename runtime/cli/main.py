"""`qoqi`: the command line. This module names commands and their options, and nothing else.

Each command imports what it does when it runs, so `qoqi --help` loads neither the compiler nor the
runtime. A command ends with 0, 1 (findings in the sources), 2 (a wrong command line) or 3 (no
daemon, or it refused).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="qoqi",
    help="Compiles flows and runs them: durable workflows that wait for days.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
)
token_app = typer.Typer(help="Tokens of the daemon's API.", no_args_is_help=True)
pkg_app = typer.Typer(help="What is in a package, a flow, an instance.", no_args_is_help=True)
app.add_typer(token_app, name="token", rich_help_panel=None)
app.add_typer(pkg_app, name="pkg", rich_help_panel=None)

Folder = Annotated[
    Path | None, typer.Argument(help="A folder or file; the package around by default.")
]
Url = Annotated[str | None, typer.Option("--url", envvar="QOQI_URL", help="The daemon's address.")]
Token = Annotated[
    str | None,
    typer.Option("--token", envvar="QOQI_TOKEN", help="A token; .qoqi/token by default."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout, for programs.")]
Name = Annotated[str, typer.Argument(help="The instance's name.")]


# -- sources -----------------------------------------------------------------------------------


@app.command()
def check(
    path: Folder = None,
    form: Annotated[str, typer.Option("--format", help="human, json, github or sarif.")] = "human",
) -> None:
    """Reports what is wrong with a package's flows."""
    from qoqi.runtime.cli import check as command

    command.run(path, form)


@app.command()
def build(
    path: Folder = None,
    locked: Annotated[
        bool, typer.Option("--locked", help="Fail if flow.lock would change; write nothing.")
    ] = False,
    dump: Annotated[
        bool, typer.Option("--dump", help="Print the bytecode; write nothing.")
    ] = False,
) -> None:
    """Compiles flows to bytecode by hash, and writes flow.lock."""
    from qoqi.runtime.cli import build as command

    command.run(path, locked=locked, dump=dump)


@app.command()
def fmt(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Files and folders, or `-`; the package around by default."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="List the files that would change; write nothing.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what would change; write nothing.")
    ] = False,
) -> None:
    """Brings sources into the one canonical layout."""
    from qoqi.runtime.cli import fmt as command

    command.run(paths or [], check=check, diff=diff)


@app.command()
def explain(
    code: Annotated[str, typer.Argument(help="The code of a diagnostic: F0006.")],
) -> None:
    """Prints the page of a diagnostic: what it means, an example, the same one fixed."""
    from qoqi.runtime.cli import explain as command

    command.run(code)


@app.command()
def deploy(
    path: Folder = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deployed; send nothing.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Builds a package and puts its flows on the daemon."""
    from qoqi.runtime.cli import deploy as command

    command.run((url, token), path, dry_run=dry_run, as_json=as_json)


# -- the daemon --------------------------------------------------------------------------------


@app.command()
def serve(
    folder: Annotated[
        Path | None, typer.Argument(help="A package to deploy where no version of it is yet.")
    ] = None,
    listen: Annotated[
        str, typer.Option("--listen", help="Address and port of the API.")
    ] = "127.0.0.1:7117",
    store: Annotated[
        str | None,
        typer.Option("--store", help="sqlite:PATH; .qoqi/flows.db by default."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="The daemon's name; the host's by default.")
    ] = None,
    lease: Annotated[str, typer.Option(help="How long an instance is held unrenewed.")] = "30s",
    renew: Annotated[str, typer.Option(help="How often leases are renewed.")] = "10s",
    heartbeat: Annotated[str, typer.Option(help="How often the daemon says it lives.")] = "10s",
    tries: Annotated[int, typer.Option(min=1, help="Attempts of a step without `tries`.")] = 100,
    retry: Annotated[str, typer.Option(help="Delay of a step without `backoff`.")] = "1s",
    keep: Annotated[str, typer.Option(help="How long an ended instance is kept.")] = "30d",
    drain: Annotated[str, typer.Option(help="How long steps may end at a stop.")] = "30s",
    recover: Annotated[
        str,
        typer.Option(
            help="wait for the limits of a dead daemon's steps, or at-once: give them up."
        ),
    ] = "wait",
    verbose: Annotated[bool, typer.Option("--verbose", help="Log what the daemon does.")] = False,
) -> None:
    """Runs the daemon."""
    from qoqi.runtime.cli import serve as command

    lengths = {
        "lease": lease,
        "renew": renew,
        "heartbeat": heartbeat,
        "retry": retry,
        "keep": keep,
        "drain": drain,
    }
    command.run(folder, listen, store, name, lengths, tries, recover, verbose)


@app.command()
def versions(
    flow: Annotated[str | None, typer.Argument(help="One flow's only.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Lists deployed versions, the oldest first."""
    from qoqi.runtime.cli import admin

    admin.versions((url, token), flow, as_json)


@app.command()
def daemons(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Lists the daemons on the store by their heartbeats."""
    from qoqi.runtime.cli import admin

    admin.daemons((url, token), as_json)


@app.command()
def sweep(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Deletes ended instances whose time is over, now."""
    from qoqi.runtime.cli import admin

    admin.sweep((url, token), as_json)


@token_app.command("new")
def token_new(
    name: Annotated[str, typer.Argument(help="A name to revoke it by.")],
    role: Annotated[
        str, typer.Option("--role", help="admin, operate, send, supervise or read.")
    ] = "operate",
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Draws a token and prints it, this once."""
    from qoqi.runtime.cli import admin

    admin.new_token((url, token), name, role, as_json)


@token_app.command("ls")
def token_ls(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Lists tokens by name and role."""
    from qoqi.runtime.cli import admin

    admin.tokens((url, token), as_json)


@token_app.command("revoke")
def token_revoke(
    name: Annotated[str, typer.Argument(help="The token's name.")],
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Revokes a token."""
    from qoqi.runtime.cli import admin

    admin.revoke((url, token), name, as_json)


# -- instances ---------------------------------------------------------------------------------


@app.command()
def start(
    flow: Annotated[str, typer.Argument(help="The flow, as deployed.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME] [ARGS_JSON]", help="Its name; an object by parameter."),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Starts an instance; a name already taken with the same arguments is that instance."""
    from qoqi.runtime.cli import instances
    from qoqi.runtime.cli.ending import USAGE, fail

    name: str | None = None
    args: str | None = None
    match words or []:
        case []:
            pass
        case [one] if one.lstrip()[:1] in ("{", "["):
            args = one
        case [one]:
            name = one
        case [name, args]:
            pass
        case _:
            fail(USAGE, "start takes a flow, a name and one JSON object; quote the JSON")
    instances.start((url, token), flow, name, args, as_json)


@app.command()
def send(
    name: Name,
    channel: Annotated[str, typer.Argument(help="The channel's field.")],
    value: Annotated[str, typer.Argument(metavar="VALUE_JSON", help="The message.")],
    key: Annotated[
        str | None, typer.Option("--key", help="A repeat under the same key is no new message.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Sends a message to an instance's channel."""
    from qoqi.runtime.cli import instances

    instances.send((url, token), name, channel, value, key, as_json)


@app.command("ls")
def ls(
    text: Annotated[str | None, typer.Argument(help="Only names that contain this.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", help="waiting, running, stopped, done, failed.")
    ] = None,
    phase: Annotated[str | None, typer.Option("--phase", help="run or finish.")] = None,
    flow: Annotated[str | None, typer.Option("--flow", help="Of this flow.")] = None,
    version: Annotated[str | None, typer.Option("--version", help="In this version.")] = None,
    stage: Annotated[str | None, typer.Option("--stage", help="At this stage.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="In their status since this day or time.")
    ] = None,
    after: Annotated[str | None, typer.Option("--after", help="Behind this name.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="At most so many.")] = 100,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Lists instances by name."""
    from qoqi.runtime.cli import instances

    given = {
        "text": text,
        "status": status,
        "phase": phase,
        "flow": flow,
        "version": version,
        "stage": stage,
        "since": None if since is None else instances.since(since),
        "after": after,
    }
    query = {name: value for name, value in given.items() if value is not None}
    instances.listing((url, token), query, limit, as_json)


@app.command()
def show(name: Name, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Shows everything about an instance."""
    from qoqi.runtime.cli import instances

    instances.show((url, token), name, as_json)


@app.command()
def history(name: Name, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Tells what happened to an instance."""
    from qoqi.runtime.cli import instances

    instances.past((url, token), name, as_json)


@app.command()
def cancel(
    name: Name,
    reason: Annotated[str, typer.Option("--reason", help="Why; the flow is told.")] = "cancelled",
    now: Annotated[
        bool, typer.Option("--now", help="Also one that listens or refuses: undos run, it ends.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Asks an instance to end."""
    from qoqi.runtime.cli import instances

    instances.cancel((url, token), name, reason, now, as_json)


@app.command()
def resume(
    name: Name,
    go: Annotated[bool, typer.Option("--go", help="Really: steps may leave.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Lets a stopped instance go on from its last stage, or ends a pause."""
    from qoqi.runtime.cli import instances
    from qoqi.runtime.cli.ending import USAGE, fail

    if not go:
        fail(USAGE, "a resume lets steps leave; say so with --go")
    instances.resume((url, token), name, as_json)


@app.command()
def end(
    name: Name,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the history.")] = "ended",
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Ends a stopped instance as it is; no undo runs."""
    from qoqi.runtime.cli import instances

    instances.end((url, token), name, reason, as_json)


@app.command()
def pause(name: Name, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Holds an instance where it is until a resume."""
    from qoqi.runtime.cli import instances

    instances.pause((url, token), name, as_json)


@pkg_app.command("show")
def pkg_show(
    what: Annotated[
        str | None, typer.Argument(help="A flow or an instance; the package by default.")
    ] = None,
    path: Annotated[Path | None, typer.Option("--path", help="The package's folder.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Shows a package, a deployed flow, or an instance."""
    if what is None:
        from qoqi.runtime.cli import pkg

        pkg.show(path, as_json)
    else:
        from qoqi.runtime.cli import admin

        admin.show((url, token), what, as_json)


def main() -> None:
    """The entry point of `python -m`; an interrupt is no traceback."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
