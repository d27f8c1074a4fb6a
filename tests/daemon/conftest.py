"""Makes the bench and the assembler beside the tests importable, and gives each test a bench."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "vm")]

from tests.daemon.workbench import Bench  # noqa: E402


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.close()
