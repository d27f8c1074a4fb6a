"""`qoqi`: the command line. This module names commands and their options, and nothing else.

Each command imports what it does when it runs, so `qoqi --help` loads neither the compiler nor the
runtime. A command ends with 0, 1 (findings in the sources), 2 (a wrong command line) or 3 (no
daemon, or it refused).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from qoqi.runtime.cli.commands import Group, Told, argument, command, completion, option

app = Group(
    "qoqi",
    help="Compiles flows and runs them: durable workflows that wait for days.",
    params=[completion("qoqi")],
    no_args_is_help=True,
)
token_app = Group("token", help="Tokens of the daemon's API.", no_args_is_help=True)
pkg_app = Group("pkg", help="What is in a package, a flow, an instance.", no_args_is_help=True)


def _settings() -> dict[str, Told]:
    from qoqi.runtime.cli import settings

    return settings.options()


Folder = Annotated[Path | None, argument(help="A folder or file; the package around by default.")]
Url = Annotated[str | None, option("--url", environment="QOQI_URL", help="The daemon's address.")]
Token = Annotated[
    str | None,
    option("--token", environment="QOQI_TOKEN", help="A token; .qoqi/token by default."),
]
AsJson = Annotated[bool, option("--json", help="JSON on stdout, for programs.")]
Name = Annotated[str, argument(help="The instance's name.")]
Birth = Annotated[
    str | None, option("--birth", help="Only this instance of the name, no later namesake.")
]


# -- sources -----------------------------------------------------------------------------------


@command(app)
def check(
    path: Folder = None,
    form: Annotated[str, option("--format", help="human, json, github or sarif.")] = "human",
) -> None:
    """Reports what is wrong with a package's flows."""
    from qoqi.runtime.cli import check as command

    command.run(path, form)


@command(app)
def build(
    path: Folder = None,
    locked: Annotated[
        bool, option("--locked", help="Fail if flow.lock would change; write nothing.")
    ] = False,
    dump: Annotated[bool, option("--dump", help="Print the bytecode; write nothing.")] = False,
) -> None:
    """Compiles flows to bytecode by hash, and writes flow.lock."""
    from qoqi.runtime.cli import build as command

    command.run(path, locked=locked, dump=dump)


@command(app)
def fmt(
    paths: Annotated[
        list[str] | None,
        argument(help="Files and folders, or `-`; the package around by default."),
    ] = None,
    check: Annotated[
        bool, option("--check", help="List the files that would change; write nothing.")
    ] = False,
    diff: Annotated[bool, option("--diff", help="Show what would change; write nothing.")] = False,
) -> None:
    """Brings sources into the one canonical layout."""
    from qoqi.runtime.cli import fmt as command

    command.run(paths or [], check=check, diff=diff)


@command(app)
def test(
    paths: Annotated[
        list[Path] | None,
        argument(help="Files and folders; the package around by default."),
    ] = None,
    text: Annotated[
        str | None, option("-k", help="Only tests whose title or file contains this.")
    ] = None,
    crashes: Annotated[
        bool, option("--crashes", help="Again with a crash at each write of each test.")
    ] = False,
    junit: Annotated[
        Path | None, option("--junit", help="Write the results as JUnit's XML.")
    ] = None,
    jobs: Annotated[
        int,
        option("--jobs", "-j", least=0, help="Processes; as many as processors by default."),
    ] = 0,
    names: Annotated[bool, option("--verbose", "-v", help="Name the tests that passed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Runs the tests of flows."""
    from qoqi.runtime.cli import test as command

    options = command.Options(text, crashes, junit, as_json, jobs, names)
    command.run(paths or [], options)


@command(app, dashes=True)
def run(
    file: Annotated[Path, argument(help="A source, or the folder of a package.")],
    words: Annotated[
        list[str] | None,
        argument(metavar="[FLOW] [NAME=VALUE]…", help="The flow, then its arguments."),
    ] = None,
    args: Annotated[str | None, option("--args", help="The arguments as a JSON object.")] = None,
    name: Annotated[str, option("--name", help="The instance's name.")] = "run",
    as_json: AsJson = False,
) -> None:
    """Runs one flow to its end, in memory, with real steps: for trying things."""
    from qoqi.runtime.cli import run as command

    command.run(file, words or [], args, name, as_json)


@command(app)
def new(
    where: Annotated[Path, argument(metavar="NAME", help="The package's folder.")],
) -> None:
    """Makes a package that checks, tests and deploys, to begin from."""
    from qoqi.runtime.cli import new as command

    command.run(where)


@command(app)
def doc(
    name: Annotated[
        str | None, argument(help="std.time, List.map, a flow; all modules by default.")
    ] = None,
    path: Annotated[Path | None, option("--path", help="The package's folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Shows signatures and doc comments, of the standard library and of the package."""
    from qoqi.runtime.cli import doc as command

    command.run(name, path, as_json)


@command(app)
def explain(
    code: Annotated[str, argument(help="The code of a diagnostic: F0006.")],
) -> None:
    """Prints the page of a diagnostic: what it means, an example, the same one fixed."""
    from qoqi.runtime.cli import explain as command

    command.run(code)


@command(app)
def lsp(
    tcp: Annotated[
        int | None, option("--tcp", help="Listen on this port instead of standard input.")
    ] = None,
    log: Annotated[Path | None, option("--log", help="Write a log to this file.")] = None,
    url: Url = None,
    token: Token = None,
) -> None:
    """Serves editors: the language server."""
    from qoqi.runtime.cli import lsp as command

    command.run(tcp, log, url, token)


@command(app)
def deploy(
    path: Folder = None,
    dry_run: Annotated[
        bool, option("--dry-run", help="Say what would be deployed; send nothing.")
    ] = False,
    rehearse: Annotated[
        bool,
        option("--rehearse", help="Try it in memory on every living instance; send nothing."),
    ] = False,
    sample: Annotated[
        int | None,
        option("--sample", least=1, help="With --rehearse: at most so many of each flow."),
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


@command(app, others=_settings)
def serve(
    folder: Annotated[
        Path | None, argument(help="A package to deploy where no version of it is yet.")
    ] = None,
    listen: Annotated[
        str, option("--listen", help="Address and port of the API.")
    ] = "127.0.0.1:7117",
    store: Annotated[
        str | None,
        option("--store", help="sqlite:PATH; .qoqi/flows.db by default."),
    ] = None,
    name: Annotated[
        str | None, option("--name", help="The daemon's name; the host's by default.")
    ] = None,
    recover: Annotated[
        str,
        option(help="wait for the limits of a dead daemon's steps, or at-once: give them up."),
    ] = "wait",
    verbose: Annotated[bool, option("--verbose", help="Log what the daemon does.")] = False,
    **given: str | None,
) -> None:
    """Runs the daemon."""
    from qoqi.runtime.cli import serve as command

    command.run(folder, listen, store, name, given, recover, verbose)


@command(app, others=_settings)
def dev(
    folder: Folder = None,
    listen: Annotated[
        str, option("--listen", help="Address and port of the API.")
    ] = "127.0.0.1:7117",
    recover: Annotated[
        str, option(help="at-once gives a dead daemon's steps up at once; or wait.")
    ] = "at-once",
    verbose: Annotated[bool, option("--verbose", help="Log what the daemon does.")] = False,
    **given: str | None,
) -> None:
    """Runs a daemon on a local file, and deploys the package again at each save of a source."""
    from qoqi.runtime.cli import dev as command

    command.run(folder, listen, given, recover, verbose)


@command(app)
def versions(
    flow: Annotated[str | None, argument(help="One flow's only.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Lists deployed versions, the oldest first, and how many instances stand where."""
    from qoqi.runtime.cli import admin

    admin.versions((url, token), flow, as_json)


Flow = Annotated[str, argument(help="The flow, as deployed.")]


@command(app)
def pin(
    flow: Flow,
    version: Annotated[
        str | None, argument(help="The start of its hash; the newest by default.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Keeps the instances of a version in it, whatever is deployed."""
    from qoqi.runtime.cli import admin

    admin.pin((url, token), flow, version, True, as_json)


@command(app)
def unpin(
    flow: Flow,
    version: Annotated[
        str | None, argument(help="The start of its hash; the pinned one by default.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Lets the instances of a version move on at their next stage."""
    from qoqi.runtime.cli import admin

    admin.pin((url, token), flow, version, False, as_json)


@command(app)
def daemons(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Lists the daemons on the store by their heartbeats."""
    from qoqi.runtime.cli import admin

    admin.daemons((url, token), as_json)


@command(app)
def sweep(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Deletes ended instances whose time is over, and versions nobody needs, now."""
    from qoqi.runtime.cli import admin

    admin.sweep((url, token), as_json)


@command(token_app, "new")
def token_new(
    name: Annotated[str, argument(help="A name to revoke it by.")],
    role: Annotated[
        str, option("--role", help="admin, operate, send, supervise or read.")
    ] = "operate",
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Draws a token and prints it, this once."""
    from qoqi.runtime.cli import admin

    admin.new_token((url, token), name, role, as_json)


@command(token_app, "ls")
def token_ls(as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Lists tokens by name and role."""
    from qoqi.runtime.cli import admin

    admin.tokens((url, token), as_json)


@command(token_app, "revoke")
def token_revoke(
    name: Annotated[str, argument(help="The token's name.")],
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Revokes a token."""
    from qoqi.runtime.cli import admin

    admin.revoke((url, token), name, as_json)


# -- instances ---------------------------------------------------------------------------------


@command(app)
def start(
    flow: Annotated[str, argument(help="The flow, as deployed.")],
    words: Annotated[
        list[str] | None,
        argument(
            metavar="[NAME] [ARGS_JSON]", help="Its name; an object by parameter, - for stdin."
        ),
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
        case [one] if one == "-" or one.lstrip()[:1] in ("{", "["):
            args = one
        case [one]:
            name = one
        case [name, args]:
            pass
        case _:
            fail(USAGE, "start takes a flow, a name and one JSON object; quote the JSON")
    instances.start((url, token), flow, name, args, as_json)


@command(app)
def send(
    name: Name,
    channel: Annotated[str, argument(help="The channel's field.")],
    value: Annotated[str, argument(metavar="VALUE_JSON", help="The message; - for stdin.")],
    key: Annotated[
        str | None, option("--key", help="A repeat under the same key is no new message.")
    ] = None,
    wait: Annotated[
        str | None, option("--wait", help="Print its answer, once it has one: 30s.")
    ] = None,
    birth: Birth = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Sends a message to an instance's channel."""
    from qoqi.runtime.cli import instances

    instances.send((url, token), name, channel, value, key, wait, birth, as_json)


@command(app)
def view(
    name: Name,
    view: Annotated[str, argument(help="The view's name in its flow.")],
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Prints what a view of an instance gives now; the instance is not woken."""
    from qoqi.runtime.cli import instances

    instances.view((url, token), name, view, as_json)


@command(app, "ls")
def ls(
    text: Annotated[str | None, argument(help="Only names that contain this.")] = None,
    status: Annotated[
        str | None, option("--status", help="waiting, running, stopped, done, failed.")
    ] = None,
    phase: Annotated[str | None, option("--phase", help="run or finish.")] = None,
    flow: Annotated[str | None, option("--flow", help="Of this flow.")] = None,
    version: Annotated[str | None, option("--version", help="In this version.")] = None,
    stage: Annotated[str | None, option("--stage", help="At this stage.")] = None,
    since: Annotated[
        str | None, option("--since", help="In their status since this day or time.")
    ] = None,
    after: Annotated[str | None, option("--after", help="Behind this name.")] = None,
    limit: Annotated[int, option("--limit", least=1, help="At most so many.")] = 100,
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


@command(app)
def show(name: Name, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Shows everything about an instance."""
    from qoqi.runtime.cli import instances

    instances.show((url, token), name, as_json)


@command(app)
def history(name: Name, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Tells what happened to an instance."""
    from qoqi.runtime.cli import instances

    instances.past((url, token), name, as_json)


@command(app)
def cancel(
    name: Name,
    reason: Annotated[str, option("--reason", help="Why; the flow is told.")] = "cancelled",
    now: Annotated[
        bool, option("--now", help="Also one that listens or refuses: undos run, it ends.")
    ] = False,
    birth: Birth = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Asks an instance to end."""
    from qoqi.runtime.cli import instances

    instances.cancel((url, token), name, reason, now, birth, as_json)


@command(app)
def resume(
    name: Name,
    go: Annotated[bool, option("--go", help="Really: steps may leave.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Shows what a stopped instance would do if it went on; with --go, lets it. Ends a pause."""
    from qoqi.runtime.cli import plans

    plans.resume((url, token), name, go, as_json)


@command(app)
def answer(
    name: Name,
    value: Annotated[str, argument(metavar="VALUE_JSON", help="The answer; - for stdin.")],
    key: Annotated[
        str | None, option("--key", help="Of a step instead: its key, as `qoqi show` has it.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Answers the question an instance stopped with; it goes on. With --key, answers a step."""
    from qoqi.runtime.cli import plans

    plans.answer((url, token), name, value, key, as_json)


@command(app)
def end(
    name: Name,
    reason: Annotated[str, option("--reason", help="Why, for the history.")] = "ended",
    as_json: AsJson = False,
    url: Url = None,
    token: Token = None,
) -> None:
    """Ends a stopped instance as it is; no undo runs."""
    from qoqi.runtime.cli import instances

    instances.end((url, token), name, reason, as_json)


@command(app)
def pause(name: Name, as_json: AsJson = False, url: Url = None, token: Token = None) -> None:
    """Holds an instance where it is until a resume."""
    from qoqi.runtime.cli import instances

    instances.pause((url, token), name, as_json)


@command(pkg_app, "show")
def pkg_show(
    what: Annotated[
        str | None, argument(help="A flow or an instance; the package by default.")
    ] = None,
    path: Annotated[Path | None, option("--path", help="The package's folder.")] = None,
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


app.add_command(token_app)
app.add_command(pkg_app)


def main() -> None:
    """The entry point of `python -m`."""
    app()


if __name__ == "__main__":
    main()
