"""Code lenses: run the tests of a file, and how many instances of a flow live.

The daemon is none of this server's business: `Lives` is a function that somebody who knows it
gives, and that answers nothing where there is no daemon. Then nothing is shown above a flow, for
which it is asked once for all of a file's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from qoqi.compiler.source import Span
from qoqi.compiler.syntax import ast
from qoqi.compiler.syntax.parser import Parsed
from qoqi.vm.dataclass import dataclass

Lives: TypeAlias = Callable[[str], Mapping[str, int] | None]
"""From a flow's name to the number of its living instances by version; None if nobody knows."""


@dataclass(frozen=True, slots=True)
class Lens:
    """`command` is one of the server's; `flow` is a flow whose instances are to be counted."""

    span: Span
    title: str
    command: str
    arguments: tuple[str, ...]
    flow: str = ""


def answers(parsed: Parsed, lives: Lives) -> bool:
    """Whether there is a flow in a file, and somebody who knows how many of it live."""
    flow = next((item for item in parsed.module.items if isinstance(item, ast.FlowDecl)), None)
    return flow is not None and lives(_name(parsed, flow)) is not None


def _name(parsed: Parsed, flow: ast.FlowDecl) -> str:
    return f"{parsed.file.module}.{flow.name.name}"


def lenses(parsed: Parsed, path: str, *, daemon: bool) -> list[Lens]:
    found: list[Lens] = []
    tests = [item for item in parsed.module.items if isinstance(item, ast.TestDecl)]
    if tests:
        first = tests[0].span
        title = f"Run {len(tests)} tests" if len(tests) > 1 else "Run the test"
        found.append(Lens(Span(first.start, first.start + 4), title, "flow.runTests", (path,)))
    for test in tests:
        name = "".join(part for part in test.title.parts if isinstance(part, str))
        span = Span(test.span.start, test.span.start + 4)
        if len(tests) > 1:
            found.append(Lens(span, "Run", "flow.runTests", (path, name)))
    for item in parsed.module.items:
        if isinstance(item, ast.FlowDecl) and daemon:
            name = _name(parsed, item)
            found.append(Lens(item.name.span, "", "flow.instances", (name,), name))
    return found


def count_text(flow: str, lives: Lives) -> str:
    """How many instances live, on which versions. The daemon may have left since it was asked."""
    known = lives(flow)
    if known is None:
        return "the daemon has left"
    total = sum(known.values())
    if not total:
        return "no living instances"
    parts = ", ".join(f"{count} on {version[:8]}" for version, count in sorted(known.items()))
    noun = "instance lives" if total == 1 else "instances live"
    return (
        f"{total} {noun}: {parts}" if len(known) > 1 else f"{total} {noun} on {parts.split()[-1]}"
    )
