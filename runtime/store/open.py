"""From the URL of a store to the store. `sqlite:PATH`, a plain path, or `:memory:`."""

from __future__ import annotations

from pathlib import Path

from qoqi.runtime.store import sqlite
from qoqi.runtime.store.sqlstore import SqlStore

MEMORY = ":memory:"


class UnknownStore(Exception):
    """The URL names a database that is not supported."""


def open_store(url: str, holder: str, busy_timeout: int = sqlite.BUSY_TIMEOUT) -> SqlStore:
    """`holder` is the name of the daemon; a folder that is missing is made.

    Raises StoreHeld, StoreBroken, StoreBusy or UnknownStore.
    """
    scheme, colon, rest = url.partition(":")
    if url == MEMORY or (scheme == "sqlite" and rest == MEMORY):
        return memory_store()
    if "://" in url:
        raise UnknownStore(f"{scheme}: a store is sqlite:PATH")
    path = Path(rest if colon and scheme == "sqlite" else url)
    path.parent.mkdir(parents=True, exist_ok=True)
    return SqlStore(sqlite.open_file(path, holder, busy_timeout))


def memory_store() -> SqlStore:
    """A store that is gone with its process."""
    return SqlStore(sqlite.open_memory())
