"""A state that cannot be read stops its instance with R0016, and stays as it was found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from qoqi.runtime.store.open import memory_store
from qoqi.vm.snapshot import version_of
from tests.turn.test_turn import FLOW, HOUR, approval, paid, simulation


def cut(state: str) -> str:
    return state[: len(state) // 2]


def cut_in_the_head(state: str) -> str:
    return state[:20]


def of_no_version(state: str) -> str:
    return "[]"


@pytest.mark.parametrize("damage", [cut, cut_in_the_head, of_no_version])
def test_a_damaged_state_stops_the_instance_untouched(
    damage: Callable[[str], str],
) -> None:
    store = memory_store()
    world = simulation(approval(), paid, store)
    world.start(FLOW, "e", ())
    damaged = damage(world.row("e").state)
    store.database.run('UPDATE "instances" SET "state" = :state', {"state": damaged})
    world.advance_to(world.now + 49 * HOUR)
    row = world.row("e")
    assert (row.status, row.error_code, row.state) == ("stopped", "R0016", damaged)


def test_the_version_is_read_from_any_form_of_the_text() -> None:
    world = simulation(approval(), paid)
    world.start(FLOW, "e", ())
    state = world.row("e").state
    assert version_of(state) == "v1"
    assert version_of('{"version": "v1", "format": "qoqi.flow/1"}') == "v1"
