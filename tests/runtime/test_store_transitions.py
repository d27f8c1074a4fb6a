"""Every line of the table of transitions is taken by the call it names; nothing else is allowed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from qoqi.runtime.model import ALLOWED, ENDED, TRANSITIONS, Phase, Status, Transition
from qoqi.runtime.store.lifecycle import NotAllowed, allow
from qoqi.runtime.store.open import memory_store
from qoqi.vm.host import NewInstance
from tests.runtime.store_lab import KEEP, LEASE, ME, OTHER, Lab, after, request


@pytest.fixture
def lab() -> Iterator[Lab]:
    store = memory_store()
    yield Lab(store)
    store.close()


def bring(lab: Lab, status: Status, phase: Phase, ends: Status = Status.DONE) -> None:
    """An instance `a` in that status and phase; `ends` is how its finish phase would end."""
    result = '{"Err":"no"}' if ends is Status.DONE else '{"reason":"no"}'
    lab.start("a")
    if (status, phase) == (Status.WAITING, Phase.RUN):
        return
    lab.take("a")
    if phase is Phase.FINISH:
        lab.save("a", phase=phase, result=result, enter_finish="no")
    if (status, phase) == (Status.FAILED, Phase.RUN):
        lab.save("a", "stopped", stopped_by="a mistake")
        lab.store.end("a", "enough", lab.now, KEEP, "ana")
    elif status is not Status.RUNNING:
        lab.save("a", status, phase=phase, waits=(after(lab.now),), result=result)


def by_create(lab: Lab, line: Transition) -> None:
    lab.start("a")


def by_lease(lab: Lab, line: Transition) -> None:
    if line.status is Status.STOPPED:
        lab.cancel("a")
    if line.status is Status.RUNNING:
        lab.now += LEASE
    assert lab.due() == ["a"]
    lab.take("a", OTHER)


def by_save(lab: Lab, line: Transition) -> None:
    if line.status is None:
        lab.running("parent")
        new = NewInstance("a", "Order", "[]", "parent")
        lab.save("parent", starts=(new,), children=(request("a", "parent"),))
        return
    enters = line.phase is not line.to_phase
    assert line.to is not None
    lab.save(
        "a",
        line.to,
        phase=line.to_phase,
        waits=(after(lab.now),) if line.to is Status.WAITING else (),
        result='{"Err":1}' if enters or line.to in ENDED else None,
        enter_finish="no" if enters else None,
    )


def by_resume(lab: Lab, line: Transition) -> None:
    assert lab.store.resume("a", lab.now, "ana").outcome == "ok"


def by_end(lab: Lab, line: Transition) -> None:
    assert lab.store.end("a", "enough", lab.now, KEEP, "ana").outcome == "ok"


def by_sweep(lab: Lab, line: Transition) -> None:
    assert lab.store.sweep(lab.now + KEEP, KEEP) == 1


TAKE: dict[str, Callable[[Lab, Transition], None]] = {
    "create": by_create,
    "lease": by_lease,
    "save": by_save,
    "resume": by_resume,
    "end": by_end,
    "sweep": by_sweep,
}


def name(line: Transition) -> str:
    return f"{line.by}: {line.status or 'new'}, {line.when}"


@pytest.mark.parametrize("line", TRANSITIONS, ids=name)
def test_each_line_is_taken(lab: Lab, line: Transition) -> None:
    if line.status is not None:
        ends = Status.FAILED if line.to is Status.FAILED else Status.DONE
        bring(lab, line.status, line.phase or Phase.RUN, ends)
        assert lab.row("a").status is line.status
    TAKE[line.by](lab, line)
    if line.to is None:
        assert lab.store.instance("a") is None
    else:
        assert lab.at("a") == (line.to, line.to_phase)


STATES = [(status, phase) for status in Status for phase in Phase]
CALLS = sorted(TAKE)


def test_nothing_that_is_no_line_is_allowed() -> None:
    ends = [(None, None), *STATES]
    for before, after_, by in itertools.product(ends, ends, CALLS):
        change = (*before, *after_)
        if (*change, by) in ALLOWED:
            allow(by, *change)
            continue
        with pytest.raises(NotAllowed):
            allow(by, *change)


@pytest.mark.parametrize(("to", "phase"), STATES)
@pytest.mark.parametrize("held", list(Phase))
def test_a_save_that_is_no_line_writes_nothing(
    lab: Lab, held: Phase, to: Status, phase: Phase
) -> None:
    bring(lab, Status.RUNNING, held)
    before = lab.tables()
    if (Status.RUNNING, held, to, phase, "save") in ALLOWED:
        lab.save("a", to, phase=phase, result="1")
        assert lab.at("a") == (to, phase)
    else:
        with pytest.raises(NotAllowed):
            lab.save("a", to, phase=phase, result="1")
        assert lab.tables() == before


@pytest.mark.parametrize(("status", "phase"), STATES)
def test_a_lease_takes_only_what_the_table_says(lab: Lab, status: Status, phase: Phase) -> None:
    bring(lab, status, phase)
    before = lab.row("a")
    taken = lab.store.lease("a", ME, lab.now, lab.now + LEASE)
    if status is Status.WAITING:
        assert taken is not None
        assert taken.row.status is Status.RUNNING
        assert taken.row.phase is phase
    else:  # held, stopped without a cancellation, or ended
        assert taken is None
        assert lab.row("a") == before


@pytest.mark.parametrize(("status", "phase"), STATES)
def test_people_move_only_what_is_stopped(lab: Lab, status: Status, phase: Phase) -> None:
    bring(lab, status, phase)
    before = lab.tables()
    if status is Status.STOPPED:
        assert lab.store.resume("a", lab.now, "ana").outcome == "ok"
        return
    assert lab.store.resume("a", lab.now, "ana").outcome != "ok"
    assert lab.store.end("a", "enough", lab.now, KEEP, "ana").outcome != "ok"
    assert lab.store.sweep(lab.now + KEEP - 1, KEEP) == 0
    assert lab.tables() == before


def test_running_without_a_lease_cannot_be_written(lab: Lab) -> None:
    lab.running("a")
    with pytest.raises(NotAllowed, match="without a lease"):
        lab.save("a", release=True)
