"""`qoqi serve`: the daemon, its API and its files, from start to drained stop.

Order of a start: the store (its lock says who else has it), the socket (a taken port is found
before anything moves), the token, the package if one was given, the daemon, one line that says
where it listens. SIGTERM and SIGINT drain: nothing new is taken, steps under way end, leases are
given back; a second signal stops at once.

With a folder, flows that were never deployed here are deployed; of a flow that was, only a version
that is known is accepted. Newer ones are `qoqi deploy`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from qoqi.runtime import bodies
from qoqi.runtime.api.calls import Api
from qoqi.runtime.api.connections import Connection
from qoqi.runtime.api.server import Server
from qoqi.runtime.api.tokens import Role
from qoqi.runtime.cli.connect import FOLDER
from qoqi.runtime.cli.ending import REFUSED, USAGE, fail
from qoqi.runtime.cli.settings import read as settings_of
from qoqi.runtime.clock import SystemClock
from qoqi.runtime.daemon import Daemon, collect_rarely
from qoqi.runtime.model import Settings
from qoqi.runtime.store.open import UnknownStore, open_store
from qoqi.runtime.store.protocol import StoreBroken, StoreBusy, StoreHeld
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.runtime.store.thread import StoreThread

if TYPE_CHECKING:
    from qoqi.runtime.deploy import Deployable

ADMIN = "admin"
CONNECTIONS = 4_096

Beside = Callable[[Daemon], Coroutine[None, None, None]]
"""What runs beside a daemon from its start to its end."""


def run(
    folder: Path | None,
    listen: str,
    store: str | None,
    name: str | None,
    given: Mapping[str, str | None],
    recover: str,
    verbose: bool,
) -> None:
    logs(verbose)
    settings = settings_of(given, recover)
    address = address_of(listen)
    versions: tuple[Deployable, ...] = ()
    if folder is not None:
        from qoqi.runtime.cli import package

        versions = package.versions_or_exit(folder)
    home = home_of(folder)

    async def deploy_first(daemon: Daemon) -> None:
        await _deploy_new(daemon, versions)

    stand(home, address, store or f"sqlite:{home / 'flows.db'}", name, settings, deploy_first)


def logs(verbose: bool) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    for chatty in ("httpx", "uvicorn", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def stand(
    home: Path,
    address: tuple[str, int],
    store: str,
    name: str | None,
    settings: Settings,
    first: Beside,
    beside: Beside | None = None,
) -> None:
    """A daemon from its start to its drained stop: `first` before it starts, `beside` with it."""
    daemon_name = name or socket.gethostname() or "daemon"
    if "/" in daemon_name or not daemon_name.isprintable():
        fail(USAGE, f"--name: {daemon_name!r} may not be a daemon's name")
    try:
        with _for_its_owner():
            opened = open_store(store, daemon_name)
    except (StoreHeld, StoreBroken, StoreBusy) as refused:
        fail(REFUSED, str(refused))
    except UnknownStore as unknown:
        fail(USAGE, f"--store: {unknown}")
    except OSError as error:
        fail(REFUSED, f"the store cannot be opened: {error}")
    try:
        listener = _bind(*address)
        collect_rarely()
        asyncio.run(_serve(opened, listener, home, daemon_name, settings, first, beside))
    finally:
        opened.close()


@contextlib.contextmanager
def _for_its_owner() -> Generator[None]:
    """What flows keep is readable by nobody else, as the token is that gives it out."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


async def _serve(
    store: SqlStore,
    listener: socket.socket,
    home: Path,
    name: str,
    settings: Settings,
    first: Beside,
    beside: Beside | None,
) -> None:
    async with _running(store, name, settings) as daemon:
        api = Api(daemon)
        await _write_token(api, home)
        await first(daemon)
        server = _HttpServer(
            uvicorn.Config(
                Server(api),
                http=Connection,
                log_config=None,
                lifespan="off",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=5,
                timeout_keep_alive=75,
                limit_concurrency=CONNECTIONS,
            )
        )
        stopping = _on_signals(server)
        await daemon.start()
        serving = asyncio.create_task(server.serve([listener]))
        host, port = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        (home / "url").write_text(url + "\n", "utf-8")
        print(f"flow daemon {daemon.me} at {url}", flush=True)
        stopped = asyncio.create_task(stopping.wait())
        ends: set[asyncio.Task[Any]] = {stopped, serving}
        if beside is not None:
            ends.add(asyncio.create_task(beside(daemon)))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in ends - {serving}:
            task.cancel()
        await asyncio.gather(*(ends - {serving}), return_exceptions=True)
        await daemon.stop()
        server.should_exit = True
        await serving


@contextlib.asynccontextmanager
async def _running(store: SqlStore, name: str, settings: Settings) -> AsyncGenerator[Daemon]:
    """A daemon that is not started yet, with what it stands on."""
    thread = StoreThread(store)
    clock = SystemClock()
    async with bodies.http_client() as http:
        world = bodies.World(
            clock.now, http, slice=settings.slice, value_limit=settings.value_limit
        )
        daemon = Daemon(thread, clock, world, name=name, settings=settings)
        try:
            yield daemon
        finally:
            await daemon.kill()
            await thread.close()


class _HttpServer(uvicorn.Server):
    """uvicorn without its signal handlers: the daemon drains first."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _on_signals(server: uvicorn.Server) -> asyncio.Event:
    """Set by the first signal; the second ends the process at once."""
    stopping = asyncio.Event()

    def stop() -> None:
        if stopping.is_set():
            os._exit(1)
        stopping.set()

    loop = asyncio.get_running_loop()
    for sent in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sent, stop)
    return stopping


async def _write_token(api: Api, home: Path) -> None:
    """The first start leaves an admin token, readable by its owner only."""
    path = home / "token"
    if path.is_file() and await api.holder(path.read_text("utf-8").strip()) is not None:
        return
    daemon = api.daemon
    await daemon.store.drop_token(ADMIN)
    token = await api.make_token(ADMIN, Role.ADMIN)
    draft = path.with_name("token.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(token + "\n")
    draft.replace(path)


async def _deploy_new(daemon: Daemon, versions: Iterable[Deployable]) -> None:
    """What was never deployed here is; of what was, a version that is not known is only named."""
    for version in versions:
        newest = await daemon.programs.newest(version.flow)
        if newest is None:
            await daemon.deploy(version.row(daemon.clock.now()))
        elif await daemon.store.version(version.hash) is None:
            print(
                f"{version.flow}: the folder's version {version.hash[:12]} is not deployed; "
                f"{newest[:12]} runs (deploy it with `qoqi deploy`)",
                file=sys.stderr,
            )


# -- the command line --------------------------------------------------------------------------


def home_of(folder: Path | None) -> Path:
    """`.qoqi` beside `flow.toml`, else in the folder given or the current one."""
    start = (folder or Path.cwd()).resolve()
    if start.is_file():
        start = start.parent
    if not start.is_dir():
        fail(USAGE, f"{start} is no folder")
    for place in (start, *start.parents):
        if (place / "flow.toml").is_file():
            start = place
            break
    home = start / FOLDER
    try:
        home.mkdir(exist_ok=True)
    except OSError as error:
        fail(REFUSED, f"{home} cannot be made: {error}")
    return home


def address_of(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        fail(USAGE, f"--listen: {listen} is no ADDRESS:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Its connections inherit this. Without it the body of an answer waits for the client to
        # acknowledge the head: 40 ms. asyncio sets it only on sockets that name their protocol.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            listener.bind((host, port))
            listener.listen(1024)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        fail(
            REFUSED,
            f"cannot listen on {host}:{port}: {error.strerror or error}; "
            "stop what has the port, or name another with --listen",
        )
    return listener
