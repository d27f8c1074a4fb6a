"""A daemon behind its API in each test that asks for one, on a clock that stands."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.daemon.workbench import Bench
from tests.reliability.site import Site, open_site


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    await made.close()


@pytest.fixture
async def site(bench: Bench) -> AsyncIterator[Site]:
    async with open_site(bench) as made:
        yield made
