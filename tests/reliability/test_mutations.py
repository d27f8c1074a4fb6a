"""The harness itself: a turn, a host or a store that is broken on purpose is found out.

One small program does a bit of everything. Whole and mended it bears all that can go wrong; each
mutation breaks one promise, and `every_crash` says which. The last tests break what happens only
where a crash may show (a `Settled` step given up), and there a test of a flow must fail as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from qoqi.compiler import api
from qoqi.runtime.cli.test import load_suite
from qoqi.runtime.model import Settings
from qoqi.runtime.simulation.crashes import Broken, Report, every_crash
from qoqi.runtime.simulation.faults import EVERY, At, Fault
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store import instances, lifecycle, saving, sql
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.runtime.testing import suite as suites
from qoqi.runtime.testing.runner import TestReport, run_test
from qoqi.vm import finish, steps, turn
from qoqi.vm.host import TIMEOUT
from qoqi.vm.instance import Instance, read_attempts
from tests.reliability.lab import DAY, Files, world

Patch = pytest.MonkeyPatch

TEXT = """
step pay(n: Int) -> Int undo back(it) { return n }
step back(n: Int) -> Result<(), String> { return Ok(()) }
step sure(n: Int) -> Settled<Int> { return Known(n) }
flow Kid(n: Int) -> Int {
    run {
        flow.sleep(1d)
        return pay(n)
    }
}
flow Main() -> Result<Int, Int> {
    channel news: Int capacity 10
    run {
        var sum = pay(1)
        stage paid(sum)
        sum += news.receive()
        sum += news.receive() * 10
        let kids = [Kid.start("k1", 2), Kid.start("k2", 3)]
        for end in task.settle(kids) {
            match end {
                case Ok(n): sum += n
                case Err(_): sum += 1000
            }
        }
        match sure(4) {
            case Known(_): sum += 3
            case Unknown: sum += 3
        }
        for part in task.map([6, 8], fn(n) => pay(n)) { sum += part }
        return Err(sum)
    }
}
"""


def answer(leaving: Leaving) -> Reply:
    (number,) = leaving.args
    match leaving.step:
        case "back":
            return Reply('{"Ok":null}', after=1_000)
        case "sure":
            return Reply(f'{{"Known":{number}}}', after=1_000)
        case _:
            assert isinstance(number, int)
            return Reply(str(number), after=number * 1_000)


def play(simulation: Simulation) -> None:
    begun = simulation.now
    simulation.start("m.Main", "main", ())
    for day, value in ((1, 7), (2, 8)):
        simulation.advance_to(begun + day * DAY)
        assert simulation.send("main", "news", value, f"k{day}") == "Delivered"


FEW = (
    At(Fault.DIES, after=True),
    At(Fault.FROZEN, after=True),
    At(Fault.OVERLAP),
    At(Fault.DIES),
)


def run(faults: Sequence[At], most: int = 0) -> Report:
    def make(store: Store) -> Simulation:
        return world(TEXT, answer, store, settings=Settings(wave=0))

    return every_crash(make, memory_store, play, faults=faults, most=most)


def test_the_program_bears_everything() -> None:
    report = run(EVERY, most=90)

    total = 1 + 7 + 80 + (2 + 3) + 3 + (6 + 8)
    assert report.outcome.ends["main"] == ("done", f'{{"Err":{total}}}')
    assert report.outcome.undone == {"main": ("undo#3", "undo#2", "undo#1")}
    assert set(report.happened) == set(Fault) - {Fault.GIVEN_UP}


# -- what is broken, and what is said of it ------------------------------------------------------


def a_message_is_lost(patch: Patch) -> None:
    """Taken when the instance is, and not when its state says so."""
    lease = instances.lease

    def takes(db: Any, id: str, me: str, now: int, until: int) -> Any:
        taken = lease(db, id, me, now, until)
        for message in taken.messages if taken else ():
            db.run(sql.TAKE, {"seq": message.seq, "id": id, "now": now, "pass": 0})
        return taken

    patch.setattr(instances, "lease", takes)


def a_message_is_taken_twice(patch: Patch) -> None:
    write = saving._write_messages
    patch.setattr(
        saving,
        "_write_messages",
        lambda db, id, save, now, woken: write(db, id, replace(save, taken=()), now, woken),
    )


def a_step_leaves_before_its_save(patch: Patch) -> None:
    note = steps.note

    def leaves(instance: Instance, task: str, at: Any, attempt: int) -> None:
        note(instance, task, at, attempt)
        with pytest.raises(StopIteration):
            instance.host.leave(instance.noted[-1].leaving).send(None)

    patch.setattr(steps, "note", leaves)


def an_answer_is_changed(patch: Patch) -> None:
    """By one that came after its attempt was given up."""
    for name in ("PUT", "PUT_GIVEN"):
        text = getattr(sql, name)
        assert '"result" IS NULL' in text
        patch.setattr(sql, name, text.replace('"result" IS NULL', "1 = 1"))


def a_kept_answer_is_read_wrong(patch: Patch) -> None:
    read = read_attempts

    def wrong(instance: Instance, attempts: Any) -> None:
        wrong = [replace(one, result="9") if one.result == "6" else one for one in attempts]
        read(instance, tuple(wrong))

    patch.setattr(turn, "read_attempts", wrong)


def _at_take_up(patch: Patch, change: Callable[[Instance], None]) -> None:
    """In phase finish, what is read of an instance is changed."""
    take = turn.take

    async def taken(*args: Any) -> Instance:
        instance = await take(*args)
        if instance.phase == "finish":
            change(instance)
        return instance

    patch.setattr(turn, "take", taken)


def an_undo_is_skipped(patch: Patch) -> None:
    def skips(instance: Instance) -> None:
        instance.machine.undos.pop()

    _at_take_up(patch, skips)


def an_undo_is_run_twice(patch: Patch) -> None:
    def again(instance: Instance) -> None:
        last = instance.machine.undos[-1]
        instance.machine.undos.append(replace(last, number=last.number + 100))

    _at_take_up(patch, again)


def undos_run_in_the_order_they_came(patch: Patch) -> None:
    undo = finish._undo

    async def first(instance: Instance, entry: Any) -> None:
        undos = instance.machine.undos
        undos.reverse()
        await undo(instance, undos[-1])

    patch.setattr(finish, "_undo", first)


def a_count_is_wrong(patch: Patch) -> None:
    patch.setattr(sql, "TAKE_OFF", sql.TAKE_OFF.replace('"left" - 1', '"left" - 0'))


def a_status_is_no_line_of_the_table(patch: Patch) -> None:
    """Out of the finish phase there is no way back."""
    changes = saving._changes

    def back(before: Any, save: Any, now: int) -> dict[str, object]:
        found = changes(before, save, now)
        return found | {"phase": "run"} if before.phase == "finish" else found

    patch.setattr(saving, "_changes", back)


def a_wake_is_lost(patch: Patch) -> None:
    patch.setattr(sql, "WAKE", sql.WAKE + " AND 1 = 0")


def an_end_wakes_nobody(patch: Patch) -> None:
    patch.setattr(lifecycle, "wake", lambda db, waiters, now: None)


def a_write_under_a_lost_lease_stands(patch: Patch) -> None:
    head = lifecycle.head

    def mine(db: Any, id: str) -> Any:
        found = head(db, id)
        return found and found._replace(lease_owner=_WRITER[0], lease_until=1 << 60)

    save = saving.save

    def said(db: Any, id: str, me: str, *rest: Any) -> Any:
        _WRITER[0] = me
        return save(db, id, me, *rest)

    patch.setattr(saving, "allow", lambda *line: None)
    patch.setattr(saving, "head", mine)
    patch.setattr(saving, "save", said)
    patch.setattr(sql, "SAVE_AGAIN", sql.SAVE_AGAIN.replace('"lease_owner" = :me', ":me = :me"))


_WRITER = [""]


def a_settled_step_is_tried_again(patch: Patch) -> None:
    gave_up = steps.gave_up

    def again(instance: Instance, task: Any, last: Any) -> None:
        if last.result == TIMEOUT and last.settled:
            steps.note(instance, task.name, task.at, task.at.attempt + 1)
        else:
            gave_up(instance, task, last)

    patch.setattr(steps, "gave_up", again)


def the_ledger_forgets_an_answer(patch: Patch) -> None:
    row = lifecycle.ledger_row
    patch.setattr(
        saving,
        "ledger_row",
        lambda id, at, kind, *rest: row(id, at, "print" if kind == "answered" else kind, *rest),
    )


BROKEN: list[tuple[Callable[[Patch], None], str]] = [
    (a_message_is_lost, "is gone, and nobody took it|the outcome differs"),
    (a_message_is_taken_twice, "was taken, and is there again|was taken twice"),
    (a_step_leaves_before_its_save, "left before its attempt was written"),
    (an_answer_is_changed, "the answer was timeout, and is"),
    (a_kept_answer_is_read_wrong, "the outcome differs"),
    (an_undo_is_skipped, "the outcome differs|the undos that stand are"),
    (an_undo_is_run_twice, "the outcome differs|the undos that stand are"),
    (undos_run_in_the_order_they_came, "the undos that stand are"),
    (a_count_is_wrong, "`left` is"),
    (a_status_is_no_line_of_the_table, "went from"),
    (a_wake_is_lost, "waits and nobody takes it"),
    (an_end_wakes_nobody, "an `all` is over and did not wake it|which has ended"),
    (a_write_under_a_lost_lease_stands, "stood although its lease was lost"),
    (a_settled_step_is_tried_again, "is Settled and"),
    (the_ledger_forgets_an_answer, "the ledger does not say so"),
]


@pytest.mark.parametrize(("mutate", "said"), BROKEN, ids=[one.__name__ for one, _ in BROKEN])
def test_it_is_found(mutate: Callable[[Patch], None], said: str, monkeypatch: Patch) -> None:
    mutate(monkeypatch)

    with pytest.raises(Broken, match=said):
        run(FEW)


# -- where a crash may show ----------------------------------------------------------------------

SHOWING = """
step sure() -> Settled<Int> { return Known(4) }
step few(n: Int) -> Int within 5s tries 1 else 0 { return n }
step back(n: Int) -> Result<(), String> { return Ok(()) }
flow Main() -> Int {
    channel news: Int
    run {
        flow.undo(back(1))
        let first = news.receive()
        let known = match sure() {
            case Known(n): n
            case Unknown: 0
        }
        let sum = first + known + few(8)
        flow.unwind()
        return sum
    }
}
test "a step that may be seen to be given up" {
    given sure() after 2s => Known(4)
    given few(8) after 2s => 8
    let it = Main.start("m")
    it.news.send(100)
    clock.advance(10s)
    assert(it.result() == Ok(112))
}
"""


def showing() -> TestReport:
    checked = api.check(".", reader=Files(m=SHOWING))
    loaded = load_suite(".", api.build_tests(checked))
    (case,) = loaded.cases
    return run_test(case, loaded.flows, crashes=True)


def test_what_a_crash_may_show_passes_and_is_counted() -> None:
    report = showing()

    assert report.failure is None
    assert report.showed >= 4  # both steps, each under way at two writes at least
    wanted = set(Fault) - {Fault.GIVEN_UP}
    assert {fault for fault, count in report.faults.items() if count} == wanted


def only_after_a_giving_up(instance: Instance) -> bool:
    """Broken only where a crash may show: whoever looks elsewhere finds nothing."""
    return any(row.result == TIMEOUT for row in instance.kept.values())


def undos_are_forgotten(patch: Patch) -> None:
    """The test ends as it may after a crash; only the instance's end says that they are gone."""
    read = read_attempts

    def forgets(instance: Instance, attempts: Any) -> None:
        read(instance, attempts)
        if only_after_a_giving_up(instance):
            instance.machine.undos.clear()

    patch.setattr(turn, "read_attempts", forgets)


def a_variable_is_lost(patch: Patch) -> None:
    """The sum is wrong where it may be wrong for another reason."""
    read = read_attempts

    def loses(instance: Instance, attempts: Any) -> None:
        read(instance, attempts)
        if only_after_a_giving_up(instance):
            slots = instance.machine.tasks["0"].frames[0].slots
            slots[:] = [1 if value == 100 else value for value in slots]

    patch.setattr(turn, "read_attempts", loses)


@pytest.mark.parametrize(
    "mutate",
    [undos_are_forgotten, a_variable_is_lost],
    ids=lambda one: str(one.__name__),
)
def test_what_breaks_where_a_crash_may_show_is_found(
    mutate: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    mutate(monkeypatch)

    failure = showing().failure

    assert failure is not None
    assert failure.startswith("with a ")


def test_the_suite_hands_on_what_happened() -> None:
    checked = api.check(".", reader=Files(m=SHOWING))
    loaded = load_suite(".", api.build_tests(checked))
    (result,) = suites.run(loaded.cases, loaded.flows, crashes=True, jobs=1)

    assert result.crashes == sum(result.faults.values())
    assert {str(Fault.FROZEN), str(Fault.LOST), str(Fault.CLOCK)} <= set(result.faults)
