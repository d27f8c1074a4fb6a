"""`qoqi build`: bytecode by hash, flow.lock written."""

from __future__ import annotations

from pathlib import Path

from qoqi.compiler.project import kept
from qoqi.compiler.project.build import BUILD_FOLDER
from qoqi.compiler.project.lockfile import LOCK
from qoqi.runtime import deploy
from qoqi.runtime.cli import package
from qoqi.runtime.cli.render import console, count, table

_CHANGES = {"new": "new", "changed": "changed", "same": "unchanged"}


def run(path: Path | None, *, locked: bool, dump: bool) -> None:
    where, built = package.built_or_exit(path, locked=locked or dump)
    if dump:
        from qoqi.vm.bytecode.disassemble import disassemble

        for flow in built.flows:
            print(disassemble(flow.chunk, flow.debug))
        return
    if not locked:
        kept.write(built)
    if not built.flows:
        print("no flows")
        return
    rows = [[flow.name, flow.hash[:12], _CHANGES[flow.change]] for flow in built.flows]
    table(["FLOW", "VERSION", "CHANGE"], rows, console())
    if not locked:
        folder = Path(deploy.lock_folder(where))
        done = f"{count(len(built.flows), 'flow')} in {folder / BUILD_FOLDER}, {folder / LOCK}"
        print(done)
