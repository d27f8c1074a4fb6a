"""The examples are as the tools leave them: locked by `qoqi build`, laid out by `qoqi fmt`."""

from __future__ import annotations

import subprocess

from playground import QOQI, ROOT


def test_the_lock_is_up_to_date() -> None:
    built = subprocess.run(
        [QOQI, "build", "--locked"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert built.returncode == 0, built.stdout + built.stderr


def test_the_sources_are_laid_out() -> None:
    formatted = subprocess.run(
        [QOQI, "fmt", "--check", "examples"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert formatted.returncode == 0, formatted.stdout + formatted.stderr
