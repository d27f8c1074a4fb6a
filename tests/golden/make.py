"""Writes golden files: bytecode and states as this version writes them, for all later ones to read.

    python tests/golden/make.py

A file that is there is never written again: whoever changes a format finds out here, and keeps
reading the old one. What is new goes beside it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from tests.versions.lineage import FLOW, Version, build, world  # noqa: E402

SOURCE = """
struct Line { sku: String, cents: Decimal, memo: String? }
enum Level { Free, Full(until: Time) }

step charge(line: Line) -> String undo refund(it) { return "" }
step refund(receipt: String) -> String { return "" }

flow Plan(user: String, lines: List<Line>) -> String {
    channel go: Int capacity 4
    var seen: Map<String, Bool> = [:]
    var pause = 90m

    run {
        var level = Level.Free
        let first = charge(lines[0])
        seen[first] = true
        stage trial(level)
        let others = task.map(lines, charge)
        level = Level.Full(flow.now() + pause)
        let n = go.receive()
        stage paid(level, others)
        wait match {
            case let m = go.receive(): return "\\(user) \\(n2(m)) \\(others)"
            case after 30d: fail("nobody came")
        }
    }

    fn n2(n: Int) -> Int { return n * 2 }
}
"""

ARGS = [
    {"sku": "pen", "cents": "1.50", "memo": None},
    {"sku": "ink", "cents": "20.00", "memo": "blue"},
]


def scenes(version: Version) -> Iterator[tuple[str, str]]:
    """The states of one instance: where it stands, and the text."""
    from qoqi.runtime.programs import arguments

    made = world(version)
    args = arguments(version.program, {"user": "ana", "lines": ARGS})
    request = made.first_row("p", FLOW, args, None)
    yield "at-the-start", request.state
    made.start(FLOW, "p", args)
    yield "a-step-is-under-way", made.row("p").state
    made.advance_to(made.now + 10)
    yield "two-tasks-are-at-steps", made.row("p").state
    yield "at-a-stage", made.row("p").at_stage or ""
    made.rest()
    yield "waiting-for-a-message", made.row("p").state
    made.send("p", "go", 5)
    made.send("p", "go", 6)
    made.rest()
    yield "with-a-result", made.row("p").state

    late = world(version)
    late.start(FLOW, "p", args)
    late.advance_to(late.now + 30)
    late.send("p", "go", 5)
    late.advance_to(late.now + 86_400_000)
    yield "at-another-stage", late.row("p").state
    late.rest()
    yield "stopped", late.row("p").state
    late.cancel("p", "enough")
    late.settle()
    yield "undoing", late.row("p").state


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (version,) = build(Path(folder), SOURCE)
    put(HERE / "qoqi.bytecode-1" / f"{version.hash}.chunk", version.data)
    put(HERE / "qoqi.bytecode-1" / f"{version.hash}.debug", version.debug)
    for name, text in scenes(version):
        put(HERE / "qoqi.flow-1" / f"{version.hash[:12]}-{name}.json", text.encode() + b"\n")


def put(path: Path, data: bytes) -> None:
    if path.exists():
        print(f"kept    {path.name}")
        return
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    print(f"written {path.name}")


if __name__ == "__main__":
    main()
