"""How long checking a package takes: cold, again after nothing and after one edit, and by command.

    python bench/check.py [LINES…]

Makes packages of about 1,000, 10,000 and 100,000 lines, in modules of 250 lines that import some of
those before them, as flows with steps, waits, stages, types and tests do, and prints:

    cold     `api.check` of the package on disk, its standard library loaded
    edit     `incremental.recheck` after a change in the body of one function of one module
    memory   the most that the process took
    command  `qoqi check` in a new process: the first time, and again with its cache
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from qoqi.compiler import api
from qoqi.compiler.incremental import Snapshot, recheck
from qoqi.compiler.project.load import DiskReader, load_package

SIZES = (1_000, 10_000, 100_000)
T = TypeVar("T")

HEAD = """\
//! Orders of part {number}: types, steps and the flow that binds them.
{imports}
"""
PART = """\
/// One position of an order.
struct Item{n} {{
    id: String
    cents: Int
    count: Int = 1
    tags: List<String> = []
}}

enum Decision{n} {{
    Approved(by: String)
    Rejected(by: String, why: String)
    Later(until: Time)
}}

fn total{n}(items: List<Item{n}>) -> Int {{
    var sum = 0
    for item in items {{
        if item.count > 0 && item.cents > 0 {{
            sum += item.cents * item.count
        }}
    }}
    return sum{more}
}}

fn describe{n}(decision: Decision{n}) -> String {{
    match decision {{
        case Approved(by): return "approved by \\(by)"
        case Rejected(by, why): return "rejected by \\(by): \\(why)"
        case Later(until): return "decided at \\(until)"
    }}
}}

step notify{n}(to: String, text: String) -> Bool within 30s tries 3 else false {{
    let answer = http.post("https://mail.example/\\(to)", json: ["text": text])
    return answer.status < 300
}}

extern step reserve{n}(item: String, count: Int) -> Result<String, String> undo release{n}(it)
extern step release{n}(reservation: String) -> Bool

/// Waits for a decision, and asks again every day.
flow Order{n}(items: List<Item{n}>, owner: String) -> Result<Int, String> {{
    channel decisions: Decision{n} capacity 8
    var asked: Int = 0

    view state -> String {{ return "asked \\(asked) times" }}

    run {{
        let deadline = flow.now() + 7d
        for item in items {{
            let reservation = reserve{n}(item.id, item.count)?
            print("reserved \\(reservation)")
        }}
        while true {{
            stage deciding(deadline)
            let told = notify{n}(owner, "order of \\(total{n}(items)) cents")
            if !told {{ print("nobody was told") }}
            asked += 1
            wait match {{
                case let decision = decisions.receive():
                    match decision {{
                        case Approved(_): return Ok(total{n}(items))
                        case Rejected(_, why): return Err(why)
                        case Later(until): flow.sleepUntil(until)
                    }}
                case at deadline: return Err("nobody decided")
            }}
        }}
    }}
}}

test "order {n} is approved" {{
    let it = Order{n}.start("o", [Item{n} {{ id: "a", cents: 5 }}], "ana")
    assert(it.stage() == Some("deciding"))
}}

"""


def write_package(folder: Path, lines: int) -> None:
    """A package of about so many lines."""
    written = number = 0
    while written < lines:
        before = sorted({number - 1, number // 2, number - 7} & set(range(number)))
        imports = "".join(f"import part{each:04}\n" for each in before)
        text = HEAD.format(number=number, imports=f"import std.http\n{imports}")
        for part in range(3):
            calls = before if part == 0 else []
            more = "".join(f" + part{each:04}.total0([])" for each in calls)
            text += PART.format(n=part, more=more)
        (folder / f"part{number:04}.flow").write_text(text, encoding="utf-8")
        written += text.count("\n")
        number += 1
    (folder / "flow.toml").write_text('name = "bench"\n', encoding="utf-8")


def timed(action: Callable[[], T]) -> tuple[float, T]:
    start = time.perf_counter()
    value = action()
    return time.perf_counter() - start, value


def command(folder: Path) -> float:
    run = [sys.executable, "-m", "qoqi.runtime.cli.main", "check", str(folder)]
    seconds, done = timed(lambda: subprocess.run(run, capture_output=True, text=True))
    assert done.returncode == 0, done.stdout + done.stderr
    return seconds


def _recheck_with(folder: str, before: Snapshot) -> Snapshot:
    return recheck(load_package(DiskReader(), folder), before)


def measure(lines: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_package(folder, lines)
        cold, result = timed(lambda: api.check(name))
        assert result.diagnostics == (), result.diagnostics[:3]
        snapshot = recheck(load_package(DiskReader(), name))
        path = sorted(folder.glob("part*.flow"))[-1]
        path.write_text(path.read_text("utf-8").replace("var sum = 0", "var sum = 1", 1), "utf-8")
        edit, _ = timed(partial(_recheck_with, name, snapshot))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        del snapshot, result
        first, again = command(folder), command(folder)
        print(
            f"{lines:>8,} lines  cold {cold:6.2f} s  edit {edit:6.2f} s  memory {memory:5} MiB  "
            f"command {first:6.2f} s, again {again:5.2f} s"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        write_package(Path(name), 1)
        api.check(name)
    for lines in [int(each) for each in sys.argv[1:]] or SIZES:
        measure(lines)


if __name__ == "__main__":
    main()
