"""O2: a cancellation that comes before a replay has caught up still runs every undo."""

from __future__ import annotations

from qoqi.runtime.simulation.world import Leaving, Reply, Simulation
from qoqi.runtime.store.open import memory_store
from qoqi.vm.bytecode.chunk import Chunk, FieldDef, StepDef
from qoqi.vm.host import FAILED
from qoqi.vm.program import load
from tests.vm.assembler import assemble

FLOW = "test.Test"

ORDER = """
    function run 0 1
        CONST 0
        STEP 0
        POP
        CONST 1
        STEP 1
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
    return assemble(
        ORDER,
        constants=("cup", "parcel"),
        result="String",
        steps=(
            StepDef("reserve", one, "String", False, body=1, undo=2, undo_args=2),
            StepDef("ship", one, "String", False, body=1),
            StepDef("release", one, "String", False, body=1),
        ),
    )


def stopped() -> Simulation:
    def answer(leaving: Leaving) -> Reply:
        if leaving.step == "ship":
            return Reply(FAILED, failure='{"code":"R0001","message":"no carrier"}')
        return Reply('"r-cup"')

    world = Simulation(memory_store(), {"v1": load(order())}, {FLOW: "v1"}, answer)
    world.start(FLOW, "o", ())
    assert world.row("o").status == "stopped"
    return world


def test_a_failed_body_stops_the_instance_with_its_text() -> None:
    row = stopped().row("o")
    assert row.error_code == "R0001"
    assert "no carrier" in (row.stopped_by or "")


def test_a_cancel_of_the_stopped_instance_runs_its_undo() -> None:
    world = stopped()
    world.cancel("o", "over")
    world.rest()
    assert world.row("o").status == "failed"
    assert [(step.step, step.args) for step in world.left][2:] == [("release", ("r-cup",))]


def test_a_cancel_before_the_replay_runs_the_undo_too() -> None:
    world = stopped()
    assert world.outside.resume("o", world.now, "ana", "v1").outcome == "ok"
    world.cancel("o", "over")
    world.rest()
    assert world.row("o").status == "failed"
    assert [step.step for step in world.left] == ["reserve", "ship", "release"]


def test_a_resume_gives_what_was_kept_and_runs_the_failed_step_anew() -> None:
    world = stopped()
    assert world.outside.resume("o", world.now, "ana", "v1").outcome == "ok"
    world.rest()
    row = world.row("o")
    assert (row.status, row.error_code) == ("stopped", "R0001")
    assert [(step.step, step.attempt) for step in world.left] == [
        ("reserve", 1),
        ("ship", 1),
        ("ship", 2),
    ]
    world.cancel("o", "over")
    world.rest()
    assert [step.step for step in world.left][3:] == ["release"]
