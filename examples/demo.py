"""`make demo`: an approval from its source to its end, with a real daemon, then all stopped again.

Every command is shown as it would be typed, with what it prints. One that fails ends the demo.
"""

from __future__ import annotations

import shlex
import sys

from playground import Playground

CLAIM = '{"claim": {"employee": "kim", "cents": 4250, "purpose": "train to Lyon"}}'
DECISION = '{"Approved": {"by": "ana"}}'


def show(ground: Playground, *arguments: str) -> None:
    print(f"$ qoqi {shlex.join(arguments)}", flush=True)
    print(ground.qoqi(*arguments).rstrip() + "\n", flush=True)


def demo() -> None:
    with Playground() as ground:
        print(f"# in a copy of examples/, {ground.folder}\n")
        show(ground, "check")
        show(ground, "build")
        print("$ qoqi serve &")
        ground.serve()
        print(f"  listening on {ground.url}\n")
        show(ground, "deploy")
        show(ground, "start", "Approval", "expense:4411", CLAIM)
        ground.wait_until("expense:4411", "waiting")
        show(ground, "ls")
        print("# three hours, a restart or a week later ...\n")
        show(ground, "send", "expense:4411", "decisions", DECISION, "--key", "click-77")
        ground.wait_until("expense:4411", "done")
        show(ground, "send", "expense:4411", "decisions", DECISION, "--key", "click-77")
        show(ground, "pkg", "show", "expense:4411")
        print("$ kill %1")
        print(f"  the daemon ended with {ground.stop_daemon()}, and its folder is gone")


if __name__ == "__main__":
    try:
        demo()
    except (RuntimeError, TimeoutError) as error:
        print(f"demo: {error}", file=sys.stderr)
        raise SystemExit(1) from error
