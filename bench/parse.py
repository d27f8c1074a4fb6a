"""How long a parse takes, per 1,000 lines.

    python bench/parse.py [FILE…]

Reads the files given, or the samples of the parser's tests, repeats them to about 1,000 lines and
prints the best CPU time of several parses, for the lexer alone and for the whole.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from qoqi.compiler.source import SourceFile
from qoqi.compiler.syntax.lexer import lex
from qoqi.compiler.syntax.parser import parse

ROUNDS = 25
LINES = 1_000
SAMPLES = Path(__file__).resolve().parent.parent / "tests" / "syntax" / "samples"
NAMES = ("library.flow", "clinic.flow")


def best(action: Callable[[], object]) -> float:
    """The least CPU time of an action, in milliseconds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times) * 1000


def main() -> None:
    paths = [Path(name) for name in sys.argv[1:]] or [SAMPLES / name for name in NAMES]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    text *= max(1, LINES // max(1, text.count("\n")))
    file = SourceFile("bench.flow", "bench", text)
    parsed = parse(file)
    lines = text.count("\n")
    scale = LINES / lines
    print(f"{lines} lines, {len(parsed.tokens)} tokens, {len(parsed.diagnostics)} diagnostics")
    print(f"lexer  {best(lambda: lex(file)) * scale:6.1f} ms per {LINES:,} lines")
    print(f"parse  {best(lambda: parse(file)) * scale:6.1f} ms per {LINES:,} lines")


if __name__ == "__main__":
    main()
