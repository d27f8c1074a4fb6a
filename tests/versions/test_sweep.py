"""Which versions nobody needs: the old end of the chain, up to the first that somebody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from qoqi.runtime.simulation.world import Simulation
from tests.versions.lineage import FLOW, Version, build, deploy, world
from tests.versions.test_moving import PAYING, TRIAL, WEEKS

KEEP = 31 * 86_400_000


@pytest.fixture
def versions(tmp_path: Path) -> list[Version]:
    return build(tmp_path, TRIAL, WEEKS, PAYING)


def swept(made: Simulation, versions: list[Version]) -> list[int]:
    """Which of the versions go, by their place."""
    gone = [hash for flow, hash in made.outside.sweep_versions() if flow == FLOW]
    return [number for number, one in enumerate(versions) if one.hash in gone]


def test_of_a_flow_without_instances_only_the_newest_stays(versions: list[Version]) -> None:
    made = world(versions[0])
    assert swept(made, versions) == []
    deploy(made, versions[1])
    deploy(made, versions[2])
    assert swept(made, versions) == [0, 1]
    assert [row.hash for row in made.outside.versions(FLOW)] == [versions[2].hash]


def test_an_instance_needs_its_version_and_all_on_its_way(versions: list[Version]) -> None:
    made = world(versions[0])
    made.start(FLOW, "p", ("ana",))
    deploy(made, versions[1])
    deploy(made, versions[2])
    assert swept(made, versions) == []


def test_an_undo_needs_the_version_it_was_registered_in(versions: list[Version]) -> None:
    made = world(versions[0])
    made.start(FLOW, "p", ("ana",))
    deploy(made, versions[1])
    made.send("p", "go", 3)
    made.rest()
    assert made.row("p").version == versions[1].hash  # and it can refund what the first charged
    assert swept(made, versions) == []
    made.cancel("p", "enough")
    made.rest()
    assert swept(made, versions) == [0]
    deploy(made, versions[2])
    assert swept(made, versions) == []  # the ended one is shown as long as it is kept
    made.advance_to(made.now + KEEP)
    made.outside.sweep(made.now, 0)
    assert swept(made, versions) == [1]


def test_a_pin_and_a_stage_before_the_move_need_theirs(versions: list[Version]) -> None:
    made = world(versions[0])
    made.outside.pin(FLOW, versions[0].hash, True)
    deploy(made, versions[1])
    assert swept(made, versions) == []
    made.outside.pin(FLOW, versions[0].hash, False)
    assert swept(made, versions) == [0]
