"""Makes the helpers beside the tests importable, and each kind of store that is at hand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from qoqi.runtime.store.open import memory_store, open_store
from qoqi.runtime.store.protocol import Store
from tests.runtime.store_lab import Lab


@pytest.fixture(params=["sqlite", "memory"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """What the tests of the contract run on: the same tests for every store."""
    if request.param == "memory":
        store = memory_store()
    else:
        store = open_store(f"sqlite:{tmp_path / 'flows.db'}", "shop-1")
        store.database.all("PRAGMA synchronous = OFF", {})  # nothing here pulls the plug
    typed: Store = store
    yield Lab(store)
    typed.close()
