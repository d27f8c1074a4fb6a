"""The turn algorithm on hand-made chunks: every answer here follows from the seed, not from a run.

Programs are assembled, so that nothing of the compiler stands between the test and the algorithm.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qoqi.runtime.simulation.crashes import Broken, Outcome, every_crash
from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.runtime.store.protocol import Store
from qoqi.vm.bytecode.chunk import ChannelDef, Chunk, FieldDef, FlowSlot, StepDef
from qoqi.vm.bytecode.opcodes import WaitKind
from qoqi.vm.program import load
from tests.vm.assembler import assemble

HOUR = 3_600_000
FLOW = "test.Test"

APPROVAL = f"""
    function run 0 2
        INT 0
        WAIT_CASE {WaitKind.RECEIVE}
        CONST 0
        WAIT_CASE {WaitKind.AFTER + 16}
        WAIT 2
        SWITCH 0
    got:
        STEP 0
        RETURN
    late:
        POP
        CONST 1
        RETURN
    function body 1 1
        LOAD 0
        RETURN
"""


def approval() -> Chunk:
    chunk = assemble(
        APPROVAL,
        switches={"run": [(6, 8)]},
        constants=(("Duration", 48 * HOUR), "expired"),
        result="String",
        channels=(ChannelDef("decisions", "String", 8, False),),
        steps=(StepDef("pay", (FieldDef("to", "to", "String"),), "String", False, body=1),),
    )
    return chunk


def simulation(
    chunk: Chunk, answer: Callable[[Leaving], Reply], store: Store | None = None
) -> Simulation:
    return Simulation(
        store if store is not None else memory_store(),
        {"v1": load(chunk)},
        {FLOW: "v1"},
        answer,
    )


def paid(leaving: Leaving) -> Reply:
    return Reply('"paid"', after=100)


def test_two_days_from_end_to_end() -> None:
    world = simulation(approval(), paid)
    world.start(FLOW, "expense:4411", ())
    row = world.row("expense:4411")
    assert (row.status, row.lease_owner) == ("waiting", None)
    life = world.store.life("expense:4411")
    assert life is not None
    waits = [(wait.kind, wait.at) for wait in life.waits]
    assert waits == [("receive", None), ("after", world.now + 48 * HOUR)]

    world.advance_to(world.now + 3 * HOUR)
    assert world.send("expense:4411", "decisions", "ana", "click-77") == "Delivered"
    assert world.send("expense:4411", "decisions", "ana", "click-77") == "Already"
    assert [step.key for step in world.left] == [f"expense:4411/{row.birth}/0:0:pay#1"]
    assert world.left[0].args == ("ana",)
    assert world.row("expense:4411").status == "running"
    world.advance_to(world.now + 100)
    row = world.row("expense:4411")
    assert (row.status, row.result) == ("done", '"paid"')
    life = world.store.life("expense:4411")
    assert life is not None
    assert [message.taken is not None for message in life.messages] == [True]
    assert world.send("expense:4411", "decisions", "ana", "click-77") == "Already"
    assert world.send("expense:4411", "decisions", "bob") == "Ended"


def test_nobody_answers_for_two_days() -> None:
    world = simulation(approval(), paid)
    world.start(FLOW, "e", ())
    world.advance_to(world.now + 48 * HOUR - 1)
    assert world.row("e").status == "waiting"
    world.advance_to(world.now + 1)
    assert (world.row("e").status, world.row("e").result) == ("done", '"expired"')
    assert world.left == []


def test_a_step_without_an_answer_is_tried_again_under_its_key_after_its_limit() -> None:
    attempts: list[int] = []

    def silent_once(leaving: Leaving) -> Reply:
        attempts.append(leaving.at)
        return Reply("", never=True) if leaving.attempt == 1 else paid(leaving)

    world = simulation(approval(), silent_once)
    world.start(FLOW, "e", ())
    begun = world.now
    world.send("e", "decisions", "ana")
    world.rest()
    assert world.row("e").status == "done"
    assert attempts == [begun, begun + 60_000 + 1_000]
    assert len({step.key for step in world.left}) == 1


def play_approval(world: Simulation) -> None:
    world.start(FLOW, "e", ())
    world.advance_to(world.now + 3 * HOUR)
    while world.send("e", "decisions", "ana", "click-77") not in ("Delivered", "Already"):
        raise AssertionError("the message was refused")


def test_every_crash_of_the_approval() -> None:
    report = every_crash(
        lambda store: simulation(approval(), paid, store), memory_store, play_approval
    )
    assert report.outcome.ends == {"e": ("done", '"paid"')}
    assert report.points > 10


FAN_OUT = """
    function run 0 1
        CONST 0
        CONST 1
        CONST 2
        LIST 3
        CLOSURE 0
        INT -1
        OPERATION 0
        RETURN
    function retryInvoice 1 2
        LOAD 0
        STEP 0
        STORE 1
        LOAD 1
        STEP 1
        RETURN
    function body 1 1
        LOAD 0
        RETURN
"""


def fan_out() -> Chunk:
    one = (FieldDef("x", "x", "String"),)
    return assemble(
        FAN_OUT,
        constants=("a", "b", "c"),
        closures=((1, 0),),
        operations=(("task.map", 3),),
        result=("List", "String"),
        steps=(
            StepDef("charge", one, "String", False, body=2),
            StepDef("record", one, "String", False, body=2),
        ),
    )


def test_three_payments_leave_in_one_write_under_the_keys_of_the_seed() -> None:
    delays = {"a": 3_000, "b": 1_000, "c": 2_000}

    def answer(leaving: Leaving) -> Reply:
        (given,) = leaving.args
        assert isinstance(given, str)
        if leaving.step == "charge":
            return Reply(f'"{given}!"', after=delays[given])
        return Reply(f'"{given}?"')

    world = simulation(fan_out(), answer)
    birth = world.start(FLOW, "retries-1", ()).row.birth
    assert [step.key for step in world.left] == [
        f"retries-1/{birth}/0:0/retryInvoice#{n}:charge#1" for n in (1, 2, 3)
    ]
    life = world.store.life("retries-1")
    assert life is not None
    assert {attempt.until for attempt in life.attempts} == {world.now + 60_000}
    world.rest()
    assert world.row("retries-1").result == '["a!?","b!?","c!?"]'
    assert [step.args for step in world.left[3:]] == [("b!",), ("c!",), ("a!",)]


def test_every_crash_of_the_three_payments() -> None:
    def answer(leaving: Leaving) -> Reply:
        (given,) = leaving.args
        return Reply(f'"{given}!"', after=100)

    def play(world: Simulation) -> None:
        world.start(FLOW, "retries-1", ())

    report = every_crash(lambda store: simulation(fan_out(), answer, store), memory_store, play)
    assert report.outcome.ends == {"retries-1": ("done", '["a!!","b!!","c!!"]')}


ORDER = """
    function run 0 1
        CONST 0
        STEP 0
        POP
        CONST 1
        STEP 0
        POP
        CONST 2
        STEP 1
        VARIANT 1
        RETURN
    function body 1 1
        LOAD 0
        RETURN
    function undo_args 2 2
        LOAD 0
        TUPLE 1
        RETURN
"""


def order() -> Chunk:
    one = (FieldDef("x", "x", "String"),)
    from qoqi.vm.bytecode.chunk import TypeDef, VariantDef

    value = FieldDef("value", "value", ("param", 0))
    error = FieldDef("error", "error", ("param", 1))
    result = TypeDef(
        "Result", 2, None, (VariantDef("Ok", "Ok", (value,)), VariantDef("Err", "Err", (error,)))
    )
    return assemble(
        ORDER,
        constants=("cup", "pot", "parcel"),
        types=(result,),
        variants=((0, 0), (0, 1)),
        result=("enum", 0, "String", "String"),
        steps=(
            StepDef("reserve", one, "String", False, body=1, undo=2, undo_args=2),
            StepDef("ship", one, "String", False, body=1),
            StepDef("release", one, "String", False, body=1),
        ),
    )


def echo(leaving: Leaving) -> Reply:
    (given,) = leaving.args
    return Reply(f'"r-{given}"' if leaving.step == "reserve" else '"no carrier"', after=50)


def test_an_err_undoes_what_was_done_the_last_first() -> None:
    world = simulation(order(), echo)
    world.start(FLOW, "o", ())
    world.rest()
    row = world.row("o")
    assert (row.status, row.phase, row.result) == ("done", "finish", '{"Err":"no carrier"}')
    assert [(step.step, step.args) for step in world.left] == [
        ("reserve", ("cup",)),
        ("reserve", ("pot",)),
        ("ship", ("parcel",)),
        ("release", ("r-pot",)),
        ("release", ("r-cup",)),
    ]


def test_a_cancelled_order_keeps_the_answer_under_way_and_undoes_it() -> None:
    world = simulation(order(), echo)
    world.start(FLOW, "o", ())
    assert world.cancel("o", "customer called") == "ok"
    world.rest()
    row = world.row("o")
    assert row.status == "failed"
    assert [(step.step, step.args) for step in world.left] == [
        ("reserve", ("cup",)),
        ("release", ("r-cup",)),
    ]


def test_every_crash_of_the_order() -> None:
    def play(world: Simulation) -> None:
        world.start(FLOW, "o", ())

    report = every_crash(lambda store: simulation(order(), echo, store), memory_store, play)
    assert report.outcome.ends == {"o": ("done", '{"Err":"no carrier"}')}
    assert report.outcome.undone == {"o": ("undo#2", "undo#1")}


def test_every_crash_of_an_order_cancelled_while_its_first_step_is_under_way() -> None:
    def play(world: Simulation) -> None:
        world.start(FLOW, "o", ())
        world.cancel("o", "customer called")

    def quick(leaving: Leaving) -> Reply:
        return Reply('"r"', after=50)

    def same(whole: Outcome, now: Outcome) -> bool:
        # A crash while `reserve` is under way costs its answer: it may have acted, a person looks.
        # One before it leaves leaves nothing to undo.
        return now == whole or now.ends["o"][0] == "stopped" or now.undone == {}

    chunk = order()
    report = every_crash(lambda store: simulation(chunk, quick, store), memory_store, play, same)
    assert report.outcome.ends["o"][0] == "failed"
    assert report.outcome.undone == {"o": ("undo#1",)}


def test_the_harness_notices_a_step_that_leaves_before_its_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from qoqi.vm import steps

    early = steps.note

    def note_and_leave(instance, task, at, attempt):  # type: ignore[no-untyped-def]
        early(instance, task, at, attempt)
        coroutine = instance.host.leave(instance.noted[-1].leaving)
        with pytest.raises(StopIteration):
            coroutine.send(None)

    monkeypatch.setattr(steps, "note", note_and_leave)
    with pytest.raises(Broken, match="before its attempt was written"):
        every_crash(lambda store: simulation(approval(), paid, store), memory_store, play_approval)


def test_nothing_can_wake_it() -> None:
    chunk = assemble(
        f"""
        function run 0 1
            INT 0
            WAIT_CASE {WaitKind.RECEIVE}
            WAIT 1
            POP
            RETURN
        """,
        channels=(ChannelDef("inner", "String", 8, True),),
        result="String",
    )
    world = simulation(chunk, paid)
    world.start(FLOW, "e", ())
    row = world.row("e")
    assert (row.status, row.error_code) == ("stopped", "R0009")


def test_a_mistake_stops_the_instance_and_keeps_it() -> None:
    chunk = assemble(
        """
        function run 0 1
            LOAD_FLOW 0
            INT 0
            DIV
            RETURN
        """,
        flow_slots=(FlowSlot("n", "Int", True),),
        result="Int",
    )
    world = simulation(chunk, paid)
    world.start(FLOW, "e", (3,))
    row = world.row("e")
    assert (row.status, row.phase, row.error_code) == ("stopped", "run", "R0003")
    assert world.cancel("e", "over") == "ok"
    world.rest()
    assert world.row("e").status == "failed"
