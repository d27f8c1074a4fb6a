"""A few rounds of what `make torture` does two hundred of."""

from __future__ import annotations

from pathlib import Path

from tests.reliability.torture import torture


def test_kill_nine_under_load_loses_and_doubles_nothing(tmp_path: Path) -> None:
    done = torture(tmp_path, seed=4, rounds=8)

    assert done.kills == 8
    assert len(done.started) > 10
    assert {what for what, _, _ in done.payments.requests} == {"pay", "once", "refund"}
