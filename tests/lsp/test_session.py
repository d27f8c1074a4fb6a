"""Sessions: what is checked when, for texts and files that come, change and go.

Diagnostics are compared with those of a fresh check, and nothing here waits for a clock: a session
without delay is asked for its snapshots.
"""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from qoqi.compiler.api import build, check, check_package, mark_deployed
from qoqi.compiler.diagnostics import Diagnostic
from qoqi.compiler.incremental import Snapshot, Superseded, Watch, recheck
from qoqi.compiler.project import lockfile
from qoqi.compiler.project.load import Package
from qoqi.lsp.session import Result, Session, Work
from qoqi.lsp.text import Encoding, Text
from qoqi.lsp.versions import Locked
from tests.lsp.lab import package

GOOD = "fn f() -> Int { return 1 }\n"
BAD = "fn f() -> Int { return x }\n"


class Shown:
    """What an editor would show, by file name, and every publication in its order."""

    def __init__(self) -> None:
        self.now: dict[str, list[str]] = {}
        self.versions: dict[str, int | None] = {}
        self.log: list[tuple[str, int | None]] = []

    def __call__(self, path: str, version: int | None, found: tuple[Diagnostic, ...]) -> None:
        name = Path(path).name
        self.now[name] = [each.code for each in found]
        self.versions[name] = version
        self.log.append((name, version))


@pytest.fixture
def shown() -> Shown:
    return Shown()


@pytest.fixture
async def session(shown: Shown) -> AsyncIterator[Session]:
    made = Session(shown, delay=0)
    yield made
    await made.stop()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def at(folder: Path, name: str) -> str:
    return (folder / name).as_posix()


async def settle(session: Session) -> None:
    for work in session.works():
        await session.settled(work)


async def test_an_unsaved_text_counts(session: Session, shown: Shown, tmp_path: Path) -> None:
    write(tmp_path, {"a.flow": GOOD})
    path = at(tmp_path, "a.flow")

    session.open(path, 1, GOOD)
    await session.snapshot(path)
    assert shown.now["a.flow"] == []

    session.change(path, 2, Text(BAD))
    await session.snapshot(path)
    assert shown.now["a.flow"] == ["E0201"]
    assert shown.versions["a.flow"] == 2

    session.close(path)
    await settle(session)
    assert shown.now["a.flow"] == []


async def test_a_document_that_was_never_saved(session: Session, shown: Shown) -> None:
    session.open("untitled:Untitled-1", 1, BAD)
    await session.snapshot("untitled:Untitled-1")

    assert shown.now["untitled:Untitled-1"] == ["E0201"]


async def test_the_other_files_of_a_package(session: Session, shown: Shown, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "flow.toml": 'name = "shop"\n',
            "a.flow": "import b\nfn f() -> Int { return b.g() }\n",
            "b.flow": "fn g() -> Int { return 1 }\n",
        },
    )
    a, b = at(tmp_path, "a.flow"), at(tmp_path, "b.flow")
    session.open(b, 1, "fn g() -> Int { return 1 }\n")
    await session.snapshot(b)

    session.change(b, 2, Text('fn g() -> String { return "" }\n'))
    await session.snapshot(b)
    assert shown.now["a.flow"] == ["E0301"]
    assert shown.versions["a.flow"] is None

    session.open(a, 7, "import b\nfn f() -> String { return b.g() }\n")
    await session.snapshot(a)
    assert shown.now["a.flow"] == []


async def test_a_new_file_is_seen(session: Session, shown: Shown, tmp_path: Path) -> None:
    write(
        tmp_path,
        {"flow.toml": 'name = "shop"\n', "a.flow": "import b\n\nfn f() -> Int { return b.g() }\n"},
    )
    a = at(tmp_path, "a.flow")
    session.open(a, 1, (tmp_path / "a.flow").read_text())
    await session.snapshot(a)
    assert "E0203" in shown.now["a.flow"]

    write(tmp_path, {"b.flow": "fn g() -> Int { return 1 }\n"})
    session.files_changed([at(tmp_path, "b.flow")])
    await session.snapshot(a)
    assert shown.now["a.flow"] == []


async def test_a_deleted_file_has_no_diagnostics(
    session: Session, shown: Shown, tmp_path: Path
) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": GOOD, "b.flow": BAD})
    session.open(at(tmp_path, "a.flow"), 1, GOOD)
    await settle(session)
    assert shown.now["b.flow"] == ["E0201"]

    (tmp_path / "b.flow").unlink()
    session.files_changed([at(tmp_path, "b.flow")])
    await settle(session)
    assert shown.now["b.flow"] == []


async def test_a_renamed_file(session: Session, shown: Shown, tmp_path: Path) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": GOOD, "b.flow": BAD})
    session.open(at(tmp_path, "a.flow"), 1, GOOD)
    await settle(session)

    (tmp_path / "b.flow").rename(tmp_path / "c.flow")
    session.files_changed([at(tmp_path, "b.flow"), at(tmp_path, "c.flow")])
    await settle(session)
    assert (shown.now["b.flow"], shown.now["c.flow"]) == ([], ["E0201"])


async def test_a_file_that_its_package_leaves_out(
    session: Session, shown: Shown, tmp_path: Path
) -> None:
    write(
        tmp_path,
        {"flow.toml": 'name = "shop"\nsources = ["src"]\n', "src/a.flow": GOOD, "draft.flow": BAD},
    )
    session.open(at(tmp_path, "src/a.flow"), 1, GOOD)
    session.open(at(tmp_path, "draft.flow"), 1, BAD)
    await settle(session)
    assert shown.now == {"a.flow": [], "draft.flow": ["E0201"]}

    session.close(at(tmp_path, "draft.flow"))
    await settle(session)
    assert shown.now["draft.flow"] == []


async def test_the_manifest_is_watched(session: Session, shown: Shown, tmp_path: Path) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": GOOD})
    session.open(at(tmp_path, "a.flow"), 1, GOOD)
    await settle(session)

    write(tmp_path, {"flow.toml": 'name = "shop"\nnonsense = 1\n'})
    session.files_changed([at(tmp_path, "flow.toml")])
    await settle(session)
    assert shown.now["flow.toml"] == ["E0211"]

    write(tmp_path, {"flow.toml": 'name = "shop"\n'})
    session.files_changed([at(tmp_path, "flow.toml")])
    await settle(session)
    assert shown.now["flow.toml"] == []


async def test_the_lock_is_watched(session: Session, shown: Shown, tmp_path: Path) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": GOOD})
    session.open(at(tmp_path, "a.flow"), 1, GOOD)
    await settle(session)

    write(tmp_path, {"flow.lock": "this is no lock\n"})
    session.files_changed([at(tmp_path, "flow.lock")])
    await settle(session)
    assert shown.now["flow.lock"] == ["E0231"]

    (tmp_path / "flow.lock").unlink()
    session.files_changed([at(tmp_path, "flow.lock")])
    await settle(session)
    assert shown.now["flow.lock"] == []


async def test_a_folder_without_a_manifest_is_a_package(
    session: Session, shown: Shown, tmp_path: Path
) -> None:
    write(
        tmp_path,
        {
            "a.flow": "fn g() -> Int { return 1 }\n",
            "b.flow": "import a\n\nfn h() -> String { return a.g() }\n",
            "inner/flow.toml": 'name = "inner"\n',
            "inner/c.flow": BAD,
        },
    )
    session.set_folders([tmp_path.as_posix()])
    session.open(at(tmp_path, "a.flow"), 1, (tmp_path / "a.flow").read_text())
    await settle(session)
    assert shown.now == {"a.flow": [], "b.flow": ["E0301"]}

    session.load_folders()
    await settle(session)
    assert shown.now["c.flow"] == ["E0201"]


async def test_an_older_check_is_never_shown(shown: Shown, tmp_path: Path) -> None:
    session = Session(shown, delay=0)
    path = at(tmp_path, "a.flow")
    session.open(path, 0, GOOD)
    for version in range(1, 40):
        session.change(path, version, Text(BAD if version % 2 else GOOD))
        await asyncio.sleep(0.001 if version % 5 == 0 else 0)
    await session.snapshot(path)
    await session.stop()

    versions = [version for _, version in shown.log if version is not None]
    assert versions == sorted(versions)
    assert versions[-1] == 39
    assert len(versions) < 39
    assert shown.now["a.flow"] == ["E0201"]


def test_a_check_stops_when_its_text_changed() -> None:
    answers = iter([False, True, True])

    with pytest.raises(Superseded):
        recheck(package({"a": GOOD, "b": GOOD, "c": GOOD}), None, Watch(lambda: next(answers)))


async def test_a_fault_in_a_check_is_logged_and_the_last_good_result_stays(
    session: Session,
    shown: Shown,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = at(tmp_path, "a.flow")
    session.open(path, 1, BAD)
    before = (await session.snapshot(path)).snapshot

    def broken(*_: object) -> Snapshot:
        raise ValueError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr("qoqi.lsp.session.recheck", broken)
        session.change(path, 2, Text(GOOD))
        after = (await session.snapshot(path)).snapshot
    assert after is before
    assert "a bug" in caplog.text

    session.change(path, 3, Text(GOOD))
    await session.snapshot(path)
    assert shown.now["a.flow"] == []


# -- when, and what first -------------------------------------------------------------------------


def test_a_check_waits_only_while_changes_follow_one_another() -> None:
    session = Session(delay=0.15)
    work = Work("/p", result=Result(recheck(package({"a": GOOD})), Locked(), 1))

    def pause(quiet: float, seconds: float) -> float:
        work.quiet, work.seconds = quiet, seconds
        return session._pause(work)

    assert pause(quiet=1, seconds=3) == 0
    assert pause(quiet=0.1, seconds=0.04) == 0.01
    assert pause(quiet=0.1, seconds=3) == 0.15
    work.result = None
    assert pause(quiet=0.1, seconds=3) == 0


async def test_what_did_not_change_is_not_published_again(
    session: Session, shown: Shown, tmp_path: Path
) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": GOOD, "b.flow": BAD})
    a = at(tmp_path, "a.flow")
    session.open(a, 1, GOOD)
    await session.snapshot(a)

    session.change(a, 2, Text(BAD))
    await session.snapshot(a)

    assert [version for name, version in shown.log if name == "a.flow"][-2:] == [1, 2]
    assert [name for name, _ in shown.log].count("b.flow") == 1


class Held:
    """A check that goes on once it is let go, and turns aside as a real one does meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[bool] = []
        self.free = threading.Event()
        monkeypatch.setattr("qoqi.lsp.session.recheck", self.check)

    def check(self, package: Package, before: Snapshot | None, watch: Watch) -> Snapshot:
        self.begun.append(before is None)
        while not self.free.wait(0.001):
            watch.poll()
        return recheck(package, before, watch)


async def test_an_open_file_is_looked_at_before_its_package_is_checked(
    session: Session, shown: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "import b\n\nfn f() -> String { return b.g() }\n\nfn h() { let q = 1 }\n"
    other = "fn g() -> Int { return 1 }\n\nfn wrong() -> Int { return x }\n"
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": text, "b.flow": other})
    a = at(tmp_path, "a.flow")
    held = Held(monkeypatch)

    session.open(a, 1, text)
    await session.looked(a)
    assert shown.now == {"a.flow": ["E0301"]}
    assert session.works()[0].result is None
    early = session.last(a)
    assert early is not None
    assert "g" in early.snapshot.program.scopes["b"].names

    session.change(a, 2, Text(text.replace("String", "Int")))
    await session.looked(a)
    assert shown.now == {"a.flow": []}

    held.free.set()
    await session.snapshot(a)
    assert shown.now == {"a.flow": ["W0106"], "b.flow": ["E0201"]}
    assert held.begun == [True, False]


# -- edit sessions against fresh checks ----------------------------------------------------------

PARTS = {
    "base": """\
struct Item { id: String, cents: Int }
enum Kind { Small, Large(size: Int) }
const limit = 10
fn total(self: Item) -> Int { return self.cents * limit }
fn apply(n: Int, f: fn(Int) -> Int) -> Int { return f(n) }
fn pause() { flow.sleep(1s) }
""",
    "middle": """\
import base

step charge(item: base.Item) -> Result<String, String> within 1m { return Ok(item.id) }
fn both(a: base.Item) -> Int { return base.apply(a.total(), fn(n) => n + 1) }
fn slow() { base.pause() }
""",
    "top": """\
import base
import middle

flow Shop(item: base.Item) -> Int {
    channel kinds: base.Kind

    run {
        middle.slow()
        let done = middle.charge(item)
        wait match {
            case let kind = kinds.receive(): print(kind)
            case let why = flow.cancelled(): return 0
        }
        match kinds.receive() {
            case Small: return 1
            case Large(size): return size + middle.both(item)
        }
    }
}
""",
    "alone": "fn x() -> Int { return 1 }\n",
}
INSERTS = (
    "x",
    " ",
    "\n",
    "{",
    "}",
    "(",
    '"',
    "flow.now()",
    ": Int",
    "let q = 1\n",
    "😀",
    "\r\n",
    "// c\n",
)


def edited(text: str, chance: random.Random) -> str:
    """A text after what a person might do to it."""
    at = chance.randrange(len(text) + 1)
    match chance.randrange(4):
        case 0:
            return text[:at] + text[at + chance.randint(1, 12) :]
        case 1:
            return text[:at] + chance.choice(INSERTS) + text[at:]
        case 2:
            lines = text.split("\n")
            del lines[chance.randrange(len(lines))]
            return "\n".join(lines)
        case _:
            return text[:at] + "\n" + text[at:]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_found_after_edits_is_what_a_fresh_check_finds(seed: int) -> None:
    chance = random.Random(seed)
    texts = dict(PARTS)
    snapshot = recheck(package(texts))
    for _ in range(10):
        name = chance.choice(list(texts))
        texts[name] = PARTS[name] if chance.random() < 0.3 else edited(texts[name], chance)
        snapshot = recheck(package(texts), snapshot)

        assert list(snapshot.diagnostics) == list(check_package(package(texts)).diagnostics)


def test_an_edit_of_a_body_checks_its_module_alone() -> None:
    snapshot = recheck(package(PARTS))
    body = PARTS["alone"].replace("return 1", "return 2")

    assert recheck(package({**PARTS, "alone": body}), snapshot).again == {"alone"}
    body = PARTS["top"].replace("return 1", "return 2")
    assert recheck(package({**PARTS, "top": body}), snapshot).again == {"top"}


def test_an_edit_that_others_notice_checks_them_too() -> None:
    snapshot = recheck(package(PARTS))
    struct = PARTS["base"].replace("cents: Int", "cents: Int, memo: String")

    after = recheck(package({**PARTS, "base": struct}), snapshot)

    assert after.again == {"base", "middle", "top"}


def test_texts_put_together_from_changes_are_the_editors() -> None:
    """Incremental changes with pairs, tabs, and every line end, against Python's own slicing."""
    chance = random.Random(5)
    text = Text('let a = "😀"\r\n\tb\u2028c\rd\n')
    for _ in range(300):
        start = chance.randrange(len(text.value) + 1)
        end = min(len(text.value), start + chance.randrange(4))
        if text.value[start - 1 : start + 1] == "\r\n" or text.value[end - 1 : end + 1] == "\r\n":
            continue
        new = chance.choice(["", "x", "😀", "\r\n", "\t", "\u2028", "é\n"])
        encoding = chance.choice(list(Encoding))
        places = (text.position(start, encoding), text.position(end, encoding))
        expected = text.value[:start] + new + text.value[end:]

        text = text.changed(places, new, encoding)

        assert text.value == expected


async def test_memory_stays_flat(session: Session, tmp_path: Path) -> None:
    """Two thousand edits of one module of a package leave nothing behind."""
    write(tmp_path, {"flow.toml": 'name = "shop"\n'})
    write(tmp_path, {f"{name}.flow": text for name, text in PARTS.items()})
    path = at(tmp_path, "alone.flow")
    session.open(path, 0, PARTS["alone"])
    await session.snapshot(path)

    async def edit(count: int, first: int) -> None:
        for version in range(first, first + count):
            text = f"fn x() -> Int {{ return {version} }}\n"
            session.change(path, version, Text(text if version % 3 else text[:-4]))
            if version % 4 == 0:
                await session.snapshot(path)
        await session.snapshot(path)

    await edit(200, 1)
    gc.collect()
    before = len(gc.get_objects())
    await edit(1800, 201)
    gc.collect()
    after = len(gc.get_objects())

    assert after - before < 500


async def test_the_session_says_what_the_command_says(session: Session, tmp_path: Path) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": BAD, "b.flow": "fn ("})
    path = at(tmp_path, "a.flow")
    session.open(path, 1, BAD)
    await session.snapshot(path)

    told = [*session.diagnostics(path), *session.diagnostics(at(tmp_path, "b.flow"))]

    assert told == list(check(tmp_path.as_posix()).diagnostics)


# -- against flow.lock ---------------------------------------------------------------------------

STAGED = """\
flow Desk(name: String) -> String {
    channel calls: String

    run {
        var count = 0
        while count < 3 {
            stage listening(count)
            let call = calls.receive()
            count += call.len()
        }
        return name
    }
}
"""


def deploy(folder: Path) -> None:
    """Builds, and marks what was built as deployed."""
    built = build(folder.as_posix())
    assert built.ok
    lock = built.lock
    for flow in built.flows:
        lock = mark_deployed(lock, flow.name, flow.hash)
    (folder / "flow.lock").write_text(lockfile.write(lock), encoding="utf-8")


async def test_a_changed_stage_is_told_with_the_migration_as_its_fix(
    session: Session, tmp_path: Path
) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": STAGED})
    deploy(tmp_path)
    path = at(tmp_path, "a.flow")
    session.open(path, 1, STAGED)
    result = await session.snapshot(path)
    assert session.diagnostics(path) == ()
    assert result.locked.flow("a.Desk").base is not None

    changed = STAGED.replace("count)", "count, last)").replace(
        "var count = 0", 'var count = 0\n        var last = ""'
    )
    changed = changed.replace("count += call.len()", "count += last.len()\n            last = call")
    session.change(path, 2, Text(changed))
    await session.snapshot(path)
    (found,) = session.diagnostics(path)
    assert found.code == "F0007"

    (edit,) = found.fixes[0].edits
    fixed = changed[: edit.span.start] + edit.text + changed[edit.span.end :]
    assert "migrate listening(" in fixed
    session.change(path, 3, Text(fixed))
    await session.snapshot(path)
    assert "F0007" not in [each.code for each in session.diagnostics(path)]


async def test_diagnostics_against_the_lock_go_when_the_text_has_errors(
    session: Session, tmp_path: Path
) -> None:
    write(tmp_path, {"flow.toml": 'name = "shop"\n', "a.flow": STAGED})
    deploy(tmp_path)
    path = at(tmp_path, "a.flow")
    session.open(path, 1, STAGED.replace("stage listening(count)", "stage other(count)"))
    await session.snapshot(path)
    assert [each.code for each in session.diagnostics(path)] == ["F0010"]

    session.change(path, 2, Text(STAGED.replace("stage listening(count)", "stage other(cont)")))
    await session.snapshot(path)
    assert "F0010" not in [each.code for each in session.diagnostics(path)]
