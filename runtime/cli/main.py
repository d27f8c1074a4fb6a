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

from qoqi.runtime.cli import settings

app = typer.Typer(
    name="qoqi",
    help="Compiles flows and runs them: durable workflows that wait for days.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
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
def test(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files and folders; the package around by default."),
    ] = None,
    text: Annotated[
        str | None, typer.Option("-k", help="Only tests whose title or file contains this.")
    ] = None,
    crashes: Annotated[
        bool, typer.Option("--crashes", help="Again with a crash at each write of each test.")
    ] = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the results as JUnit's XML.")
    ] = None,
    jobs: Annotated[
        int,
        typer.Option("--jobs", "-j", min=0, help="Processes; as many as processors by default."),
    ] = 0,
    names: Annotated[
        bool, typer.Option("--verbose", "-v", help="Name the tests that passed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Runs the tests of flows."""
    from qoqi.runtime.cli import test as command

    options = command.Options(text, crashes, junit, as_json, jobs, names)
    command.run(paths or [], options)


@app.command(context_settings={"ignore_unknown_options": True})
def run(
    file: Annotated[Path, typer.Argument(help="A source, or the folder of a package.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FLOW] [NAME=VALUE]…", help="The flow, then its arguments."),
    ] = None,
    args: Annotated[
        str | None, typer.Option("--args", help="The arguments as a JSON object.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="The instance's name.")] = "run",
    as_json: AsJson = False,
) -> None:
    """Runs one flow to its end, in memory, with real steps: for trying things."""
    from qoqi.runtime.cli import run as command

    command.run(file, words or [], args, name, as_json)


@app.command()
def new(
    where: Annotated[Path, typer.Argument(metavar="NAME", help="The package's folder.")],
) -> None:
    """Makes a package that checks, tests and deploys, to begin from."""
    from qoqi.runtime.cli import new as command

    command.run(where)


@app.command()
def doc(
    name: Annotated[
        str | None, typer.Argument(help="std.time, List.map, a flow; all modules by default.")
    ] = None,
    path: Annotated[Path | None, typer.Option("--path", help="The package's folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Shows signatures and doc comments, of the standard library and of the package."""
    from qoqi.runtime.cli import doc as command

    command.run(name, path, as_json)


@app.command()
def explain(
    code: Annotated[str, typer.Argument(help="The code of a diagnostic: F0006.")],
) -> None:
    """Prints the page of a diagnostic: what it means, an example, the same one fixed."""
    from qoqi.runtime.cli import explain as command

    command.run(code)


@app.command()
def lsp(
    tcp: Annotated[
        int | None, typer.Option("--tcp", help="Listen on this port instead of standard input.")
    ] = None,
    log: Annotated[Path | None, typer.Option("--log", help="Write a log to this file.")] = None,
    url: Url = None,
    token: Token = None,
) -> None:
    """Serves editors: the language server."""
    from qoqi.runtime.cli import lsp as command

    command.run(tcp, log, url, token)


@app.command()
def deploy(
    path: Folder = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be deployed; send nothing.")
    ] = False,
    rehearse: Annotated[
        bool,
        typer.Option("--rehearse", help="Try it in memory on every living instance; send nothing."),
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=1, help="With --rehearse: at most so many of each flow."),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Builds a package and puts its flows on the daemon."""
    from qoqi.runtime.cli import deploy as command

    if rehearse:
        command.rehearse((url, token), path, sample, as_json)
    else:
        command.run((url, token), path, dry_run=dry_run, as_json=as_json)


# -- the daemon --------------------------------------------------------------------------------


@app.command()
@settings.options
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
    recover: Annotated[
        str,
        typer.Option(
            help="wait for the limits of a dead daemon's steps, or at-once: give them up."
        ),
    ] = "wait",
    verbose: Annotated[bool, typer.Option("--verbose", help="Log what the daemon does.")] = False,
    **given: str | None,
) -> None:
    """Runs the daemon."""
    from qoqi.runtime.cli import serve as command

    command.run(folder, listen, store, name, given, recover, verbose)


@app.command()
@settings.options
def dev(
    folder: Folder = None,
    listen: Annotated[
        str, typer.Option("--listen", help="Address and port of the API.")
    ] = "127.0.0.1:7117",
    recover: Annotated[
        str, typer.Option(help="at-once gives a dead daemon's steps up at once; or wait.")
    ] = "at-once",
    verbose: Annotated[bool, typer.Option("--verbose", help="Log what the daemon does.")] = False,
    **given: str | None,
) -> None:
    """Runs a daemon on a local file, and deploys the package again at each save of a source."""
    from qoqi.runtime.cli import dev as command

    command.run(folder, listen, given, recover, verbose)


@app.command()
def versions(
    flow: Annotated[str | None, typer.Argument(help="One flow's only.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Lists deployed versions, the oldest first, and how many instances stand where."""
    from qoqi.runtime.cli import admin

    admin.versions((url, token), flow, as_json)


Flow = Annotated[str, typer.Argument(help="The flow, as deployed.")]


@app.command()
def pin(
    flow: Flow,
    version: Annotated[
        str | None, typer.Argument(help="The start of its hash; the newest by default.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Keeps the instances of a version in it, whatever is deployed."""
    from qoqi.runtime.cli import admin

    admin.pin((url, token), flow, version, True, as_json)


@app.command()
def unpin(
    flow: Flow,
    version: Annotated[
        str | None, typer.Argument(help="The start of its hash; the pinned one by default.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Lets the instances of a version move on at their next stage."""
    from qoqi.runtime.cli import admin

    admin.pin((url, token), flow, version, False, as_json)


@app.command()
def daemons(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Lists the daemons on the store by their heartbeats."""
    from qoqi.runtime.cli import admin

    admin.daemons((url, token), as_json)


@app.command()
def sweep(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Deletes ended instances whose time is over, and versions nobody needs, now."""
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
    wait: Annotated[
        str | None, typer.Option("--wait", help="Print its answer, once it has one: 30s.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Sends a message to an instance's channel."""
    from qoqi.runtime.cli import instances

    instances.send((url, token), name, channel, value, key, wait, as_json)


@app.command()
def view(
    name: Name,
    view: Annotated[str, typer.Argument(help="The view's name in its flow.")],
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Prints what a view of an instance gives now; the instance is not woken."""
    from qoqi.runtime.cli import instances

    instances.view((url, token), name, view, as_json)


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
    """Shows what a stopped instance would do if it went on; with --go, lets it. Ends a pause."""
    from qoqi.runtime.cli import plans

    plans.resume((url, token), name, go, as_json)


@app.command()
def answer(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE_JSON", help="The answer.")],
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Answers the question an instance stopped with; it goes on."""
    from qoqi.runtime.cli import plans

    plans.answer((url, token), name, value, as_json)


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
