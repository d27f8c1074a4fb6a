"""The daemon's speed: every case, its target, our figure, and the ratio to the best peer.

    python bench/daemon.py [--case NAME,…] [--runs N] [--scale X] [--folder PATH] [--json FILE]
                           [--peers FOLDER] [--peer NAME=PYTHON …]

Each case runs N times (default 3) in new processes on a new file. The table has the best figure,
the median of all runs, and the ratio to the target (over 1 is better than asked for). The peers'
figures are those of a machine of two cores of this kind; with `--peers`, the folder that has their
scripts (`NAME_bench.py`), each peer named by `--peer` is measured in the same sitting by its own
script and interpreter, its arguments after the interpreter, and its summaries are printed below.

Needs Linux. Other work on the machine shows: the load is printed with the table.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from load.cases import CASES, TARGETS, Figures, Target


def measured(names: list[str], runs: int, scale: float, base: Path) -> dict[str, list[Figures]]:
    found: dict[str, list[Figures]] = {}
    for name in names:
        for _ in range(runs):
            figures = CASES[name](base, scale)
            found.setdefault(name, []).append(figures)
            said = "  ".join(f"{key} {_number(value)}" for key, value in figures.items())
            print(f"{name:<13} {said}", file=sys.stderr, flush=True)
    return found


def table(found: dict[str, list[Figures]]) -> str:
    lines = [
        f"| case | {'figure':<28} | target | best | median | to target | best peer | to peer |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for target in TARGETS:
        runs = found.get(target.case)
        if runs:
            lines.append(_line(target, [figures[target.figure] for figures in runs]))
    return "\n".join(lines)


def _line(target: Target, values: list[float]) -> str:
    best = max(values) if target.more else min(values)
    middle = statistics.median(values)
    peer, to_peer = "", ""
    if target.peer is not None:
        peer = f"{_number(target.peer)} ({target.whose})"
        to_peer = _ratio(best, target.peer, target.more)
    return (
        f"| {target.case} | {target.unit} | {_number(target.target)} | {_number(best)} |"
        f" {_number(middle)} | {_ratio(best, target.target, target.more)} | {peer} | {to_peer} |"
    )


def _ratio(ours: float, theirs: float, more: bool) -> str:
    """Over 1: ours is better."""
    if not more and ours <= 0:
        return "-"
    return f"{(ours / theirs if more else theirs / ours):.2f}"


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def peer_summaries(folder: Path, peer: str, base: Path) -> list[str]:
    """`NAME=PYTHON ARGUMENTS`: its script's summary lines, as they are."""
    name, _, command = peer.partition("=")
    words = shlex.split(command)
    script = folder / f"{name}_bench.py"
    ran = subprocess.run(
        [words[0], str(script), "--dir", str(base / name), *words[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    summaries = [
        line
        for line in ran.stdout.splitlines()
        if line.startswith("{") and ('"summary"' in line or '"error"' in line)
    ]
    return summaries or [f"{name}: nothing measured: {ran.stderr.strip()[-400:]}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", default=",".join(CASES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--peer", action="append", default=[])
    given = parser.parse_args()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        base = Path(folder)
        found = measured(given.case.split(","), given.runs, given.scale, base)
        print(table(found))
        print(f"\nload of the machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after")
        if given.json is not None:
            given.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        if given.peers is not None:
            for peer in given.peer:
                print("\n".join(peer_summaries(given.peers, peer, base)))


if __name__ == "__main__":
    main()
