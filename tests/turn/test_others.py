"""Waits for other instances, and answers to tasks that were stopped."""

from __future__ import annotations

from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.vm.bytecode.chunk import FieldDef, PeerDef, StepDef, TypeDef
from qoqi.vm.bytecode.opcodes import WaitKind
from qoqi.vm.program import load
from tests.turn.test_turn import echo, order
from tests.vm.assembler import assemble

PARENT, CHILD = "test.Parent", "test.Child"


def test_a_child_that_ended_before_anybody_waited_is_found_at_once() -> None:
    child = assemble(
        """
        function run 0 1
            CONST 0
            RETURN
        """,
        flow=CHILD,
        constants=("born",),
        result="String",
    )
    parent = assemble(
        f"""
        function run 0 1
            CONST 0
            CONST 1
            TUPLE 0
            OPERATION 0
            STORE 0
            CONST 2
            STEP 0
            POP
            LOAD 0
            WAIT_CASE {WaitKind.FLOW}
            WAIT 1
            POP
            POP
            CONST 3
            RETURN
        function body 1 1
            LOAD 0
            RETURN
        """,
        flow=PARENT,
        constants=(CHILD, "child", "work", "over"),
        operations=(("instance.start", 3),),
        result="String",
        steps=(StepDef("work", (FieldDef("x", "x", "String"),), "String", False, body=1),),
        peers=(PeerDef(CHILD, "String"),),
    )
    world = Simulation(
        memory_store(),
        {"p": load(parent), "c": load(child)},
        {PARENT: "p", CHILD: "c"},
        lambda leaving: Reply('"done"', after=5_000),
    )
    begun = world.now
    world.start(PARENT, "parent", ())
    assert world.row("child").status == "done"
    world.advance_to(begun + 5_000)
    row = world.row("parent")
    assert (row.status, row.result, row.since) == ("done", '"over"', begun + 5_000)


def test_the_answer_to_a_task_that_was_cancelled_is_undone_with_the_rest() -> None:
    chunk = assemble(
        """
        function run 0 1
            CLOSURE 0
            TUPLE 0
            OPERATION 0
            STORE 0
            CONST 1
            STEP 1
            POP
            LOAD 0
            OPERATION 1
            POP
            CONST 1
            STEP 1
            VARIANT 1
            RETURN
        function work 0 1
            CONST 0
            STEP 0
            RETURN
        function body 1 1
            LOAD 0
            RETURN
        function undo_args 2 2
            LOAD 0
            TUPLE 1
            RETURN
        """,
        constants=("cup", "parcel"),
        closures=((1, 0),),
        operations=(("task.start", 2), ("task.cancel", 1)),
        types=(_result(),),
        variants=((0, 0), (0, 1)),
        result=("enum", 0, "String", "String"),
        steps=(
            StepDef("reserve", (_x(),), "String", False, body=2, undo=2, undo_args=3),
            StepDef("ship", (_x(),), "String", False, body=2),
            StepDef("release", (_x(),), "String", False, body=2),
        ),
    )

    def answer(leaving: Leaving) -> Reply:
        reply = echo(leaving)
        return Reply(reply.result, after=500 if leaving.step == "reserve" else 50)

    world = Simulation(memory_store(), {"v1": load(chunk)}, {"test.Test": "v1"}, answer)
    world.start("test.Test", "o", ())
    world.rest()
    assert world.row("o").result == '{"Err":"no carrier"}'
    assert [step.step for step in world.left] == ["ship", "reserve", "ship", "release"]
    assert world.left[-1].args == ("r-cup",)


def _x() -> FieldDef:
    return FieldDef("x", "x", "String")


def _result() -> TypeDef:
    return order().types[0]


def test_what_was_committed_is_not_undone_by_a_later_cancellation() -> None:
    chunk = assemble(
        """
        function run 0 1
            CONST 0
            STEP 0
            POP
            OPERATION 0
            POP
            CONST 0
            STEP 1
            RETURN
        function body 1 1
            LOAD 0
            RETURN
        function undo_args 2 2
            LOAD 0
            TUPLE 1
            RETURN
        """,
        constants=("cup",),
        operations=(("flow.commit", 0),),
        result="String",
        steps=(
            StepDef("reserve", (_x(),), "String", False, body=1, undo=2, undo_args=2),
            StepDef("ship", (_x(),), "String", False, body=1),
            StepDef("release", (_x(),), "String", False, body=1),
        ),
    )
    world = Simulation(
        memory_store(),
        {"v1": load(chunk)},
        {"test.Test": "v1"},
        lambda leaving: Reply('"ok"', after=100),
    )
    world.start("test.Test", "o", ())
    world.advance_to(world.now + 150)
    assert [step.step for step in world.left] == ["reserve", "ship"]
    world.cancel("o", "too late")
    world.rest()
    assert world.row("o").status == "failed"
    assert [step.step for step in world.left] == ["reserve", "ship"]
