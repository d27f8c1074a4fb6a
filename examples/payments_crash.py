"""Three payments, and a crash: the daemon is killed in the middle, and nobody pays twice.

The bank carries out every request, but holds back its answers to the charge of the first invoice
and to the records of the other two. Once the third charge was answered and its record was asked
for, the daemon gets a `kill -9`. Another one is started on the same store; what had an answer is
not asked again, what had none is asked again under its key, and the bank answers as before.

Run it with the interpreter of the virtual environment; options are handed to `qoqi serve`, so
`--recover at-once` shows the other way to take up what a dead daemon left.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from playground import Playground, wait_for

NAME = "retries-1"
INVOICES = {"invoices": [{"id": f"2026-{n}", "cents": n * 1000} for n in (1, 2, 3)]}
HELD_BACK = ("retryInvoice#1:charge", "retryInvoice#2:record", "retryInvoice#3:record")


def until_the_third_charge_was_answered(ground: Playground) -> None:
    """Starts the flow and waits for the moment of the crash."""
    for match in HELD_BACK:
        ground.tell_bank(match=match, delay=30.0, times=1)
    ground.qoqi("start", "Retries", NAME, json.dumps(INVOICES))
    wait_for(
        "all that is held back to be asked for",
        lambda: all(any(match in key for key in ground.counts()["asked"]) for match in HELD_BACK),
    )


def asked(ground: Playground) -> dict[str, int]:
    """How often the bank was asked, by the end of the key: `retryInvoice#1:charge#1`."""
    return {key.rpartition("/")[2]: n for key, n in sorted(ground.counts()["asked"].items())}


def carried_out(ground: Playground) -> dict[str, int]:
    return {key.rpartition("/")[2]: n for key, n in sorted(ground.counts()["done"].items())}


def story(options: Sequence[str]) -> None:
    with Playground(options) as ground:
        ground.start_bank()
        ground.serve()
        ground.qoqi("deploy")
        until_the_third_charge_was_answered(ground)
        before = asked(ground)
        ground.crash_daemon()
        print("the daemon was killed; another one starts on its store", flush=True)
        begin = time.monotonic()
        ground.serve()
        ground.wait_until(NAME, "done")
        print(f"{NAME} is done, {time.monotonic() - begin:.1f} s after the restart\n")
        print(f"{'key':<28}{'asked before':>14}{'asked in all':>14}{'carried out':>14}")
        done = carried_out(ground)
        for key, times in asked(ground).items():
            print(f"{key:<28}{before.get(key, 0):>14}{times:>14}{done[key]:>14}")


if __name__ == "__main__":
    story(sys.argv[1:])
