"""Random flows: no crash and no standstill changes what becomes of them.

`python -m tests.reliability.programs --seeds 1000` plays more. A seed that fails is kept in `KEPT`.
"""

from __future__ import annotations

import pytest

from qoqi.runtime.simulation.crashes import Outcome
from tests.reliability import programs
from tests.reliability.lab import built
from tests.reliability.programs import crashed_everywhere, frozen_everywhere, program

FIRST = (0, 1, 2, 4, 5, 7)
KEPT: tuple[int, ...] = ()


def test_the_generator_uses_the_whole_language_of_flows() -> None:
    text = "\n".join(program(seed).text for seed in range(60))
    for word in (
        *("stage s", "task.start", "task.map", "limit: ", "Kid.start", ".cancel(", "task.settle"),
        *("task.all", "flow.undo", "flow.commit", "flow.unwind", "news.poll", "inner.send"),
        *("flow.sleep", "sure(", "again(", "for i", "if sum"),
    ):
        assert word in text, word
    asked = {what for seed in range(60) for _, what, _ in program(seed).outside}
    assert asked == {"message", "cancel"}
    assert all(built(program(seed).text).ok for seed in range(20))


@pytest.mark.parametrize("seed", [*FIRST, *KEPT])
def test_a_crash_anywhere_changes_no_outcome(seed: int) -> None:
    report = crashed_everywhere(seed)
    assert report.points >= 16
    assert report.outcome.ends["main"][0] in ("done", "failed")


@pytest.mark.parametrize("seed", [*FIRST[:4], *KEPT])
def test_a_daemon_that_stands_still_anywhere_changes_no_outcome(seed: int) -> None:
    assert frozen_everywhere(seed) >= 16


def test_outcomes_are_compared_by_what_they_say_not_when() -> None:
    def outcome(at: int, reason: str = "no") -> Outcome:
        return Outcome({"i": ("failed", f'{{"reason":"{reason}","at":{at}}}')}, {})

    assert programs.same(outcome(1), outcome(2))
    assert not programs.same(outcome(1), outcome(1, "yes"))
    assert not programs.same(outcome(1), Outcome(outcome(1).ends, {"i": ("undo#1",)}))
