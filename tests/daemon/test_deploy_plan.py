"""What a deploy would do, decided before anything is sent."""

from __future__ import annotations

import pytest

from qoqi.runtime.api.wire import VersionView
from qoqi.runtime.deploy import Deployable, plan


def deployed(*hashes: str, flow: str = "Job") -> list[VersionView]:
    return [VersionView(hash, flow, None, at, 1) for at, hash in enumerate(hashes)]


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
