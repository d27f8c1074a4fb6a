"""Writes files so that who reads one meanwhile sees the old one or the new one, whole."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def replace_file(path: Path, data: bytes, *, lasting: bool = True) -> None:
    """Writes a file beside its place and renames it; one that has these bytes is left alone.

    What is not `lasting` may be lost where the machine stops before the disk has it.
    """
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
