"""`qoqi fmt`: brings sources into the one canonical layout.

Every file is handled alone. One that cannot be read, or whose syntax is wrong, is reported and left
as it is, and the command ends with 1 after the others. A file is replaced as a whole: its new text
is written beside it, given the same mode and renamed over it, so that nobody ever reads half a
file. Through a symbolic link, the file it leads to is replaced.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path

from qoqi.compiler.api import parse
from qoqi.compiler.project.load import SUFFIX, DiskReader
from qoqi.compiler.source import LineIndex, SourceFile
from qoqi.compiler.syntax.printer import LayoutError
from qoqi.compiler.syntax.printer import format as layout
from qoqi.runtime.cli import package, render
from qoqi.runtime.cli.ending import FOUND, USAGE, fail

STDIN = "-"


def run(paths: list[str], *, check: bool, diff: bool) -> None:
    if STDIN in paths:
        if len(paths) > 1:
            fail(USAGE, f"{STDIN} is the only path where it is one")
        _stdin(check=check, diff=diff)
        return
    changed = failed = total = 0
    for path in _sources(paths):
        total += 1
        texts = _texts(path)
        if texts is None:
            failed += 1
            continue
        before, after = texts
        if before == after:
            continue
        changed += 1
        if diff:
            sys.stdout.write(_diff(path, before, after))
        if check:
            print(render.visible(path))
        elif not diff and not _replaced(Path(path), after):
            changed -= 1
            failed += 1
    _summary(changed, failed, total, would=check or diff)
    if failed or (changed and (check or diff)):
        raise SystemExit(FOUND)


def _stdin(*, check: bool, diff: bool) -> None:
    """Formats what is piped in, to stdout."""
    data = sys.stdin.buffer.read()
    texts = _formatted("<stdin>", data)
    if texts is None:
        raise SystemExit(FOUND)
    before, after = texts
    if diff:
        sys.stdout.write(_diff("<stdin>", before, after))
    elif not check:
        sys.stdout.write(after)
    if before != after and (check or diff):
        raise SystemExit(FOUND)


def _sources(paths: list[str]) -> Iterator[str]:
    """The files named, and those in the folders named; each once."""
    found: dict[str, None] = {}
    for name in paths or [package.root(None)]:
        path = Path(package.root(Path(name)))
        inside = DiskReader().files(path.as_posix(), SUFFIX) if path.is_dir() else [path.as_posix()]
        found.update(dict.fromkeys(inside))
    return iter(found)


def _texts(path: str) -> tuple[str, str] | None:
    """The text of a file and its canonical one; None if there is none, which was reported then."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        _refused(path, error.strerror or "it cannot be read")
        return None
    return _formatted(path, data)


def _formatted(path: str, data: bytes) -> tuple[str, str] | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refused(path, f"it is not UTF-8 at byte {error.start}")
        return None
    parsed = parse(SourceFile(path, Path(path).stem, text))
    if parsed.diagnostics:
        shown = render.console(sys.stderr)
        render.diagnostics(parsed.diagnostics, {path: LineIndex(text)}, shown)
        return None
    try:
        return text, layout(parsed)
    except LayoutError as error:
        _refused(path, f"{error}; please report this")
        return None


def _refused(path: str, why: str) -> None:
    print(f"error: {render.visible(path)}: {render.visible(why)}", file=sys.stderr)


def _replaced(path: Path, text: str) -> bool:
    """Puts a text in the place of a file's, at once or not at all."""
    target = path.resolve()
    beside = ""
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
        handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)
        os.replace(beside, target)
    except OSError as error:
        if beside:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(beside)
        _refused(path.as_posix(), error.strerror or "it cannot be written")
        return False
    return True


def _diff(path: str, before: str, after: str) -> str:
    """A unified diff that `patch` takes."""
    lines = unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}")
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """The lines of a text with their ends; only `\\n` ends one."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _summary(changed: int, failed: int, total: int, *, would: bool) -> None:
    done = "would change" if would else "formatted"
    parts = [f"{render.count(changed, 'file')} {done}"] if changed else []
    same = total - changed - failed
    if same or not total:
        parts.append(f"{render.count(same, 'file')} unchanged")
    if failed:
        parts.append(f"{render.count(failed, 'file')} not formatted")
    print(", ".join(parts), file=sys.stderr)
