"""Random flows: whatever happens to daemons and stores, the same becomes of them.

`python -m tests.reliability.programs --seeds 1000` plays more. A seed that fails is kept in `KEPT`.
"""

from __future__ import annotations

import pytest

from qoqi.runtime.simulation.crashes import Outcome
from qoqi.runtime.simulation.faults import EVERY, Fault
from tests.reliability import programs
from tests.reliability.lab import built
from tests.reliability.programs import crashed_everywhere, program

FIRST = (0, 1, 2, 4, 5, 7)
KEPT: tuple[int, ...] = ()


def test_the_generator_uses_the_whole_language_of_flows() -> None:
    text = "\n".join(program(seed).text for seed in range(150))
    for word in (
        *("stage s", "task.start", "task.map", "limit: ", "Kid.start", ".cancel(", "task.settle"),
        *("task.all", "flow.undo", "flow.commit", "flow.unwind", "news.poll", "inner.send"),
        *("flow.sleep", "sure(", "again(", "for i", "if sum", "often(", "bounded(", "told("),
        *(
            "case when",
            "case after",
            "join():",
            "wait():",
            "receive() if",
            "task.first",
            ".cancel()",
        ),
        *("asks.ask(", "news.send(", "flow.detach", "flow.finally", "stage r", "while i"),
    ):
        assert word in text, word
    asked = {what for seed in range(150) for _, what, _ in program(seed).outside}
    assert asked == {"message", "cancel", "pause", "resume"}
    assert all(built(program(seed).text).ok for seed in range(20))


@pytest.mark.parametrize("seed", [*FIRST, *KEPT])
def test_nothing_that_happens_changes_an_outcome(seed: int) -> None:
    report = crashed_everywhere(seed, EVERY, most=24)
    assert report.points == 24
    assert set(report.happened) == set(Fault) - {Fault.GIVEN_UP}
    assert report.outcome.ends["main"][0] in ("done", "failed")


def test_outcomes_are_compared_by_what_they_say_not_when() -> None:
    def outcome(at: int, reason: str = "no") -> Outcome:
        return Outcome({"i": ("failed", f'{{"reason":"{reason}","at":{at}}}')}, {})

    assert programs.same(outcome(1), outcome(2))
    assert not programs.same(outcome(1), outcome(1, "yes"))
    assert not programs.same(outcome(1), Outcome(outcome(1).ends, {"i": ("undo#1",)}))
