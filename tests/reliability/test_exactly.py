"""What a crash must not change: what a flow was told by other instances.

Each program is run whole, then once for each write and each departure, dying before it and after
it (`every_crash`); the whole run is looked at by hand, the others must end as it did.
"""

from __future__ import annotations

import re

from qoqi.runtime.simulation.crashes import Outcome, every_crash
from qoqi.runtime.simulation.world import Simulation
from qoqi.runtime.store.open import memory_store
from tests.reliability.lab import world


def untimed(outcome: Outcome) -> dict[str, tuple[str, str]]:
    """A cancellation's result says when it was asked for, and a crash costs time."""
    return {
        id: (status, re.sub(r'"at":\d+', '"at":0', result or ""))
        for id, (status, result) in outcome.ends.items()
    }


def same(whole: Outcome, now: Outcome) -> bool:
    return untimed(whole) == untimed(now)


def played(text: str) -> dict[str, tuple[str, str | None]]:
    def play(simulation: Simulation) -> None:
        simulation.start("m.Main", "i", ())

    report = every_crash(lambda store: world(text, store=store), memory_store, play, same)
    assert report.points > 4
    return report.outcome.ends


def test_a_cancellation_of_another_is_asked_once_and_its_answer_stands() -> None:
    text = """
    flow Child() {
        channel never: String
        run { let _ = never.receive() }
    }
    flow Main() -> List<Result<(), CancelError>> {
        run {
            let child = Child.start("child")
            let first = child.cancel("not needed")
            let _ = child.wait()
            return [first, child.cancel("again")]
        }
    }
    """
    ends = played(text)
    assert ends["i"] == ("done", '[{"Ok":null},{"Err":"Ended"}]')
    assert ends["child"][0] == "failed"


def test_an_instance_may_cancel_itself() -> None:
    text = """
    flow Main() {
        channel never: String
        run {
            let _ = flow.self().cancel("enough")
            let _ = never.receive()
        }
    }
    """
    assert played(text)["i"][0] == "failed"
