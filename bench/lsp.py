"""How long an editor waits after a key: for diagnostics, and for completion.

    python bench/lsp.py [--edits 20] [--memory 10000]

For files of 100, 1,000 and 5,000 lines and for a package of 50,000, `qoqi lsp` is driven over
standard input and output as an editor drives it: a file is opened, until its first diagnostics and
until a request is answered that needs its whole package; a key, then its diagnostics; a key that is
a dot, then its completion. Beside it, in the same run and one after the other, pyright's server on
Python files of the same size, made in the same shape: types, functions that use them, one mistake
typed and taken back. (Of a package pyright checks what is open and what that needs.)

With `--memory N`, N edits of one module, and how much the server's memory grew meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
SIZES = (100, 1_000, 5_000)
MODULES, MODULE_LINES = 50, 1_000

FLOW_PART = """\
/// Number {i}.
struct Item{i} {{ id: String, cents: Int, memo: String = "" }}

enum Kind{i} {{ Small, Large(size: Int), Gone(why: String) }}

fn total{i}(self: Item{i}) -> Int {{
    let sum = self.cents * {i}
    return sum + self.id.len()
}}

fn sizeOf{i}(kind: Kind{i}) -> Int {{
    return match kind {{
        case Small: 1
        case Large(size): size
        case Gone(_): 0
    }}
}}

step charge{i}(item: Item{i}) -> Result<String, String> within 1m tries 3 {{
    if item.cents < 0 {{ return Err("negative") }}
    return Ok(item.id)
}}

/// Sells number {i}.
flow Sale{i}(item: Item{i}) -> Int {{
    channel kinds: Kind{i}

    run {{
        var sold = 0
        let deadline = flow.now() + 2d
        while sold < 3 {{
            stage selling(sold, deadline)
            wait match {{
                case let kind = kinds.receive():
                    sold += sizeOf{i}(kind)
                case at deadline: return sold
            }}
        }}
        match charge{i}(item) {{
            case Ok(receipt): print(receipt)
            case Err(why): print(why)
        }}
        return sold + item.total{i}()
    }}
}}

"""
FLOW_EDIT = "fn edited(item: Item0) -> Int {\n    return item.cents\n}\n"
PYTHON_PART = '''\
@dataclass(frozen=True)
class Item{i}:
    """Number {i}."""

    id: str
    cents: int
    memo: str = ""

    def total(self) -> int:
        value = self.cents * {i}
        return value + len(self.id)


@dataclass(frozen=True)
class Large{i}:
    size: int


@dataclass(frozen=True)
class Gone{i}:
    why: str


Kind{i} = Large{i} | Gone{i} | None


def size_of{i}(kind: Kind{i}) -> int:
    match kind:
        case None:
            return 1
        case Large{i}(size=size):
            return size
        case Gone{i}():
            return 0


def charge{i}(item: Item{i}) -> str | int:
    if item.cents < 0:
        return -1
    return item.id


async def sale{i}(item: Item{i}, kinds: list[Kind{i}]) -> int:
    sold = 0
    while sold < 3:
        kind = kinds.pop()
        sold += size_of{i}(kind)
    match charge{i}(item):
        case str() as receipt:
            print(receipt)
        case int() as code:
            print(code)
    return sold + item.total()


'''
PYTHON_EDIT = "def edited(item: Item0) -> int:\n    return item.cents\n"


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    suffix: str
    part: str
    edit: str
    head: str
    command: tuple[str, ...]
    manifest: tuple[str, str]


FLOW = Language(
    "qoqi lsp",
    "flow",
    FLOW_PART,
    FLOW_EDIT,
    "//! Made for the bench.\n\n",
    (sys.executable, "-m", "qoqi.runtime.cli.main", "lsp"),
    ("flow.toml", 'name = "bench"\n'),
)
PYTHON = Language(
    "pyright",
    "py",
    PYTHON_PART,
    PYTHON_EDIT,
    "from dataclasses import dataclass\n\n\n",
    (str(BIN / "pyright-langserver"), "--stdio"),
    ("pyrightconfig.json", '{ "typeCheckingMode": "standard" }\n'),
)


def source(language: Language, lines: int, head: str = "") -> str:
    """A module of about so many lines, with the function that is edited at its end."""
    each = language.part.count("\n")
    count = max(1, (lines - 5) // each)
    parts = "".join(language.part.format(i=i) for i in range(count))
    return language.head + head + parts + language.edit


# -- a client ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Client:
    """As much of the protocol as the bench needs."""

    process: asyncio.subprocess.Process
    answers: dict[int, asyncio.Future[Any]] = field(default_factory=dict)
    told: dict[tuple[str, int], asyncio.Event] = field(default_factory=dict)
    last: int = 0
    versions: dict[str, int] = field(default_factory=dict)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def ask(self, method: str, params: object) -> Any:
        self.last += 1
        future = asyncio.get_running_loop().create_future()
        self.answers[self.last] = future
        self.send({"id": self.last, "method": method, "params": params})
        return await asyncio.wait_for(future, 300)

    async def listen(self) -> None:
        assert self.process.stdout is not None
        read = self.process.stdout
        while True:
            length = 0
            while (line := await read.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if not length:
                return
            self.hear(json.loads(await read.readexactly(length)))

    def hear(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            self.answers.pop(message["id"]).set_result(message.get("result"))
        elif method == "textDocument/publishDiagnostics":
            params = message["params"]
            self.event(params["uri"], params.get("version", -1)).set()
        elif "id" in message:
            wanted = method == "workspace/configuration"
            items: list[object] = message["params"]["items"] if wanted else []
            result: object = [{} for _ in items] if wanted else None
            self.send({"id": message["id"], "result": result})

    def event(self, uri: str, version: int) -> asyncio.Event:
        return self.told.setdefault((uri, version), asyncio.Event())

    async def diagnosed(self, uri: str) -> None:
        await asyncio.wait_for(self.event(uri, self.versions[uri]).wait(), 300)

    def open(self, uri: str, kind: str, text: str) -> None:
        self.versions[uri] = 1
        document = {"uri": uri, "languageId": kind, "version": 1, "text": text}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})

    def change(self, uri: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        self.versions[uri] += 1
        places = {
            name: {"line": line, "character": character}
            for name, (line, character) in (("start", start), ("end", end))
        }
        params = {
            "textDocument": {"uri": uri, "version": self.versions[uri]},
            "contentChanges": [{"range": places, "text": text}],
        }
        self.send({"method": "textDocument/didChange", "params": params})


async def start(language: Language, folder: Path) -> tuple[Client, asyncio.Task[None]]:
    process = await asyncio.create_subprocess_exec(
        *language.command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=64 * 1024 * 1024,
        start_new_session=True,
    )
    client = Client(process)
    listening = asyncio.get_running_loop().create_task(client.listen())
    await client.ask(
        "initialize",
        {
            "processId": None,
            "rootUri": folder.as_uri(),
            "workspaceFolders": [{"uri": folder.as_uri(), "name": "bench"}],
            "capabilities": {
                "textDocument": {"publishDiagnostics": {"versionSupport": True}},
                "workspace": {"configuration": True, "workspaceFolders": True},
            },
        },
    )
    client.send({"method": "initialized", "params": {}})
    return client, listening


async def stop(client: Client, listening: asyncio.Task[None]) -> None:
    await client.ask("shutdown", None)
    client.send({"method": "exit", "params": None})
    await asyncio.wait_for(client.process.wait(), 30)
    await listening


def at(uri: str, line: int, character: int) -> dict[str, Any]:
    return {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": character},
    }


def cpu_time(group: int) -> float:
    """Milliseconds that a server and the processes it started have had of a processor."""
    ticks = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text("utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended meanwhile
        if int(fields[2]) == group:
            ticks += int(fields[11]) + int(fields[12])
    return ticks * 1000 / os.sysconf("SC_CLK_TCK")


# -- what is measured ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """Milliseconds from opening or a key to what it leads to; `whole` is when all is checked.

    `cpu` is what a key whose diagnostics are waited for takes of a processor, on average: on a
    machine that does other things too, it says more than the time that passes.
    """

    first: float
    whole: float
    diagnostics: list[float]
    completion: list[float]
    cpu: float

    def row(self, what: str, name: str) -> str:
        def at(values: list[float], part: float) -> str:
            return f"{sorted(values)[min(len(values) - 1, int(len(values) * part))]:7.0f}"

        return (
            f"{what:16} {name:10} {self.first:7.0f} {self.whole:7.0f}  "
            f"{at(self.diagnostics, 0.5)} {at(self.diagnostics, 0.95)}  "
            f"{at(self.completion, 0.5)} {at(self.completion, 0.95)}  {self.cpu:7.0f}"
        )


async def measure(language: Language, folder: Path, path: Path, edits: int) -> Figures:
    """Types and takes back a letter that is a mistake, then a dot with its completion."""
    client, listening = await start(language, folder)
    text = path.read_text("utf-8")
    uri = path.as_uri()
    before = time.perf_counter()
    client.open(uri, language.suffix, text)
    await client.diagnosed(uri)
    first = (time.perf_counter() - before) * 1000
    # An answer that needs the whole package comes when that is checked.
    await client.ask("textDocument/hover", at(uri, 0, 0))
    whole = (time.perf_counter() - before) * 1000
    lines = text.split("\n")
    line = len(lines) - 2 - (1 if language.suffix == "flow" else 0)
    column = len(lines[line])
    diagnostics: list[float] = []
    completion: list[float] = []
    cpu = 0.0
    for _ in range(edits):
        used = cpu_time(client.process.pid)
        for old, new in (((line, column), "x"), ((line, column + 1), "")):
            started = time.perf_counter()
            client.change(uri, (line, column), old, new)
            await client.diagnosed(uri)
            diagnostics.append((time.perf_counter() - started) * 1000)
        cpu += cpu_time(client.process.pid) - used
        word = column - len("cents")
        client.change(uri, (line, word), (line, column), "")
        started = time.perf_counter()
        answer = await client.ask("textDocument/completion", at(uri, line, word))
        completion.append((time.perf_counter() - started) * 1000)
        items = answer["items"] if isinstance(answer, dict) else answer
        assert any(item["label"] == "cents" for item in items), "completion does not know the type"
        client.change(uri, (line, word), (line, word), "cents")
        await client.diagnosed(uri)
    await stop(client, listening)
    return Figures(first, whole, diagnostics, completion, cpu / len(diagnostics))


def one_file(language: Language, folder: Path, lines: int) -> Path:
    folder.mkdir(parents=True)
    (folder / language.manifest[0]).write_text(language.manifest[1])
    path = folder / f"edited.{language.suffix}"
    path.write_text(source(language, lines))
    return path


def many_files(language: Language, folder: Path, _: int) -> Path:
    """Modules that each use the one before; the last of them is edited."""
    folder.mkdir(parents=True)
    (folder / language.manifest[0]).write_text(language.manifest[1])
    path = folder
    for number in range(MODULES):
        head = ""
        if number:
            head = f"import m{number - 1}\n\n"
            use = {
                "flow": "fn before(item: m{n}.Item0) -> Int {{ return item.total0() }}\n\n",
                "py": "def before(item: m{n}.Item0) -> int:\n    return item.total()\n\n\n",
            }[language.suffix]
            head += use.format(n=number - 1)
        path = folder / f"m{number}.{language.suffix}"
        path.write_text(source(language, MODULE_LINES, head))
    return path


async def compare(edits: int) -> None:
    print(f"{'':27} {'opening':>15}  {'diagnostics':>15}  {'completion':>15}  {'cpu':>7}  (ms)")
    print(f"{'':27} {'first':>7} {'all':>7}" + f"  {'p50':>7} {'p95':>7}" * 2)
    makers: list[tuple[str, int, Callable[[Language, Path, int], Path]]] = [
        (f"{size:,} lines", size, one_file) for size in SIZES
    ]
    makers.append((f"{MODULES * MODULE_LINES:,} lines", 0, many_files))
    for what, size, make in makers:
        for language in (FLOW, PYTHON):
            if not shutil.which(language.command[0]):
                print(f"{what:16} {language.name:10} is not installed")
                continue
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place).resolve() / "bench"
                path = make(language, folder, size)
                figures = await measure(language, folder, path, edits)
                print(figures.row(what, language.name), flush=True)


async def memory(edits: int) -> None:
    """The server's resident memory before and after many edits."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve() / "bench"
        path = one_file(FLOW, folder, 100)
        client, listening = await start(FLOW, folder)
        uri = path.as_uri()
        client.open(uri, "flow", path.read_text("utf-8"))
        await client.diagnosed(uri)

        def resident() -> int:
            status = Path(f"/proc/{client.process.pid}/status").read_text("utf-8")
            return int(status.split("VmRSS:")[1].split()[0])

        kept: list[int] = []
        for number in range(edits):
            client.change(uri, (0, 0), (0, 0), "/")
            client.change(uri, (0, 0), (0, 1), "")
            if number % 20 == 0:
                await client.diagnosed(uri)
            if number % max(1, edits // 10) == 0:
                await client.diagnosed(uri)
                kept.append(resident())
        await client.diagnosed(uri)
        kept.append(resident())
        await stop(client, listening)
    shown = " ".join(f"{each // 1024}" for each in kept)
    print(f"{edits * 2:,} edits: {shown} MiB; grew {(kept[-1] - kept[1]) / 1024:.1f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--edits", type=int, default=20, help="how many keys are measured")
    parser.add_argument("--memory", type=int, default=0, help="so many edits, for memory only")
    arguments = parser.parse_args()
    if arguments.memory:
        asyncio.run(memory(arguments.memory))
    else:
        asyncio.run(compare(arguments.edits))


if __name__ == "__main__":
    main()
