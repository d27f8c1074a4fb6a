"""The last build of a package, kept on disk: `.qoqi/cache/build.json`.

A daemon that is started again on the same package need not compile it, nor load the compiler. Kept
is a build that had nothing to say, under a hash of all that it depends on: the sources and the
compiler, as for a check (`cache`), and flow.lock, as it was after the build. So what is read here
is what `build --locked` would make, which would find nothing wrong.

Only packages with `flow.toml` are kept. A file that is damaged, or of another format, is as good as
none; one whose bytecode is not what its hash says is damaged.
"""

from __future__ import annotations

import contextlib
import json
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qoqi.compiler.project import cache
from qoqi.compiler.project.files import replace_file
from qoqi.compiler.project.load import LOCK, DiskReader, Package, load_package
from qoqi.vm.bytecode.codec import encode_debug, version_hash
from qoqi.vm.dataclass import dataclass

if TYPE_CHECKING:
    from qoqi.compiler.api import BuildResult

PLACE = ".qoqi/cache/build.json"


@dataclass(frozen=True, slots=True)
class KeptFlow:
    """A flow as it was built. `debug` is encoded, as beside the bytecode."""

    name: str
    hash: str
    previous: str | None
    data: bytes
    debug: bytes


def read(root: str) -> tuple[KeptFlow, ...] | None:
    """The flows of a package on disk, if it was built as it is now."""
    package = load_package(DiskReader(), root)
    if package.manifest is None or package.diagnostics:
        return None
    try:
        data = json.loads((Path(package.root) / PLACE).read_text(encoding="utf-8"))
        lock = (Path(package.root) / LOCK).read_text(encoding="utf-8")
        if data["key"] != _key(package, lock):
            return None
        flows = tuple(_flow(*each) for each in data["flows"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return flows if all(version_hash(each.data) == each.hash for each in flows) else None


def write(built: BuildResult) -> None:
    """Keeps a build that has no errors, unless it had something to say: then it says so again."""
    package = built.check.package
    if package.manifest is None or built.diagnostics:
        return
    flows = [
        [flow.name, flow.hash, flow.previous, _text(flow.data), _text(encode_debug(flow.debug))]
        for flow in built.flows
    ]
    data = {"key": _key(package, built.lock_text), "flows": flows}
    # A folder that cannot be written is built anew each time, which is no mistake.
    with contextlib.suppress(OSError):
        replace_file(Path(package.root) / PLACE, json.dumps(data).encode(), lasting=False)


def _key(package: Package, lock: str) -> str:
    return version_hash(f"{cache.fingerprint(package)} {lock}".encode())


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _flow(name: Any, hash: Any, previous: Any, data: Any, debug: Any) -> KeptFlow:
    return KeptFlow(
        str(name),
        str(hash),
        None if previous is None else str(previous),
        b64decode(data, validate=True),
        b64decode(debug, validate=True),
    )
