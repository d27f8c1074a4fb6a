"""How a command ends: its exit code, its one line on stderr, its JSON on stdout.

Exit codes: 0, 1 (findings in the sources), 2 (the command line is wrong), 3 (no daemon, or it
refused). Where something goes wrong nothing was changed.
"""

from __future__ import annotations

import sys
from typing import NoReturn

from qoqi.vm.jsonform import json_text

FOUND, USAGE, REFUSED = 1, 2, 3


def fail(code: int, message: str) -> NoReturn:
    """Ends the command: one line on stderr, whatever the text holds."""
    from qoqi.runtime.cli.render import visible

    print("error: " + "\n  ".join(visible(line) for line in message.splitlines()), file=sys.stderr)
    raise SystemExit(code)


def show_json(data: object) -> None:
    """JSON on stdout, for programs."""
    print(json_text(data))
