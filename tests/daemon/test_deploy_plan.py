"""What a deploy would do, decided before anything is sent."""

from __future__ import annotations

import pytest

from qoqi.runtime.api.wire_versions import StandsItem, VersionItem
from qoqi.runtime.deploy import Deployable, Stands, plan, refused


def deployed(*hashes: str, flow: str = "Job") -> list[VersionItem]:
    return [
        VersionItem(hash, flow, None, at, 1, hash == hashes[-1], False, ())
        for at, hash in enumerate(hashes)
    ]


@pytest.mark.parametrize(
    ("has", "hash", "previous", "action", "newest"),
    [
        ([], "v1", None, "new", None),
        ([], "v3", "v2", "new", None),
        (["v1"], "v1", None, "known", "v1"),
        (["v1"], "v2", "v1", "new", "v1"),
        (["v1", "v2"], "v1", None, "older", "v2"),
        (["v1", "v2"], "v3", "v1", "behind", "v2"),
        (["v1"], "v2", None, "behind", "v1"),
    ],
)
def test_each_flow_is_new_known_older_or_behind(
    has: list[str], hash: str, previous: str | None, action: str, newest: str | None
) -> None:
    wanted = Deployable("Job", hash, previous, b"", b"")
    others = deployed("x1", "x2", flow="Other")
    (planned,) = plan([wanted], [*others, *deployed(*has)])
    assert (planned.action, planned.newest) == (action, newest)


@pytest.mark.parametrize(
    ("has", "hash", "previous", "says"),
    [
        (["v1"], "v2", "v1", None),
        (["v1", "v2"], "v2", "v1", None),
        (["v1", "v2"], "v3", "v1", "runs v2, and this version was built after v1; take over"),
        (["v1", "v2"], "v1", None, "v1 of Job was deployed before v2, which runs now"),
    ],
)
def test_what_would_go_back_is_refused_with_the_way_out(
    has: list[str], hash: str, previous: str | None, says: str | None
) -> None:
    found = refused(plan([Deployable("Job", hash, previous, b"", b"")], deployed(*has)))
    assert found == says if says is None else says in (found or "")


def test_a_plan_says_which_instances_are_concerned() -> None:
    """Of each old version: those that move, are pinned, stopped or ending."""
    stands = (
        StandsItem("asking", "waiting", "run", 7),
        StandsItem("asking", "running", "run", 2),
        StandsItem("asking", "stopped", "run", 3),
        StandsItem(None, "waiting", "finish", 1),
    )
    pinned = VersionItem("v1", "Job", None, 0, 1, False, True, stands[:1])
    newest = VersionItem("v2", "Job", "v1", 1, 1, True, False, stands)
    (planned,) = plan([Deployable("Job", "v3", "v2", b"", b"")], [pinned, newest])
    assert planned.stands == (
        Stands("pinned", "v1", "asking", 7),
        Stands("moves", "v2", "asking", 9),
        Stands("stopped", "v2", "asking", 3),
        Stands("ending", "v2", None, 1),
    )
    (same,) = plan([Deployable("Job", "v2", "v1", b"", b"")], [pinned, newest])
    assert same.stands == ()
