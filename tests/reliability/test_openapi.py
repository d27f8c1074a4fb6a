"""The API does what its document says: requests made from it, good and bad, against a daemon.

The daemon is a process of its own, so that a request which brings it down is noticed. What is drawn
is the same in every run. `/events` is left out: its answer does not end.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import CHECKS, load_all_checks

from qoqi.runtime.api.openapi import document
from qoqi.runtime.api.server import ROUTES
from tests.reliability.test_live import DESK

load_all_checks()
schema = schemathesis.openapi.from_dict(document(ROUTES))


@dataclass(frozen=True)
class Served:
    url: str
    headers: dict[str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon with a flow deployed and an instance `d` of it."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "flow.toml").write_text('name = "desk"\n')
    (folder / "m.flow").write_text(DESK)
    qoqi = [sys.executable, "-m", "qoqi.runtime.cli.main"]
    subprocess.run([*qoqi, "build", "."], cwd=folder, check=True, capture_output=True)
    log = folder / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*qoqi, "serve", ".", "--listen", "127.0.0.1:0", "--name", "shop"],
            cwd=folder,
            env={**os.environ},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert process.stdout is not None
    try:
        assert process.stdout.readline().startswith("flow daemon ")
        url, token = (_read(folder, name) for name in ("url", "token"))
        headers = {"Authorization": f"Bearer {token}"}
        body = {"name": "d", "args": {"divisor": 1}}
        httpx.post(f"{url}/flows/Desk/instances", json=body, headers=headers).raise_for_status()
        yield Served(url, headers)
        assert httpx.get(f"{url}/health").json()["status"] == "ok"
        assert "Traceback" not in log.read_text()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _read(folder: Path, name: str) -> str:
    return (folder / ".qoqi" / name).read_text("utf-8").strip()


@schema.exclude(path="/events").parametrize()
@settings(
    max_examples=8,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_request_is_answered_as_the_document_says(case: Case[Any], served: Served) -> None:
    checks: list[Any] = list(CHECKS.get_all())
    if {"410", "422"} & set(case.operation.definition.raw["responses"]):
        # What fits the document need not fit the flow's type (422), nor find it alive (410).
        checks = [check for check in checks if check.__name__ != "positive_data_acceptance"]
    case.call_and_validate(base_url=served.url, headers=served.headers, checks=checks)
