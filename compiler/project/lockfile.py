"""flow.lock: the versions of each flow of a package, in order. Written by qoqi, kept with sources.

    format = 1

    [[flow]]
    name = "expense.Expense"

      [[flow.version]]
      hash = "9f4c…"
      previous = "51aa…"            # left out of the first
      deployed = true
      params = ["claim: expense.Claim"]
      fields = ["votes: Map<String, Bool> = …"]
      channels = ["decisions: expense.Decision"]      # in the order of their numbers
      steps = ["pay(claim: String) -> Result<String, String>"]
      undos = ["closeReport"]                         # steps that an undo may call

      [flow.version.stages]
      deciding = ["report: String", "deadline: Time"]

      [flow.version.types]
      "expense.Claim" = ["struct", "id: String"]      # an item per line, in truth

Flows are sorted by name, types by name; all else is in the order of the source, so what did not
change stands where it stood. A list has an item per line, so a merge of two changes is a merge of
two lines.

Only a deployed version is kept for good. The last one, while it was never deployed, is replaced by
the next build.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from qoqi.compiler.diagnostics import Diagnostic, error
from qoqi.compiler.project.load import LOCK as LOCK
from qoqi.compiler.project.shapes import Part, ShapeError, Types, parse_part, parse_variant
from qoqi.compiler.source import Span
from qoqi.vm.dataclass import dataclass

FORMAT = 1

_HASH = re.compile(r"[0-9a-f]{64}")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_CONFLICT = re.compile(r"^(<<<<<<< |=======$|>>>>>>> |\|\|\|\|\|\|\| )", re.MULTILINE)
_REMEDY = (
    "Take the file from version control, then run `qoqi build`: it adds what the sources say now."
)


@dataclass(frozen=True, slots=True)
class LockedChannel:
    """Its number is its place in the list. `answers` is a type, None without an answer."""

    name: str
    type: str
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class LockedStage:
    name: str
    variables: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class LockedVersion:
    """A version as later builds and people see it. `steps` are signatures."""

    hash: str
    previous: str | None
    deployed: bool
    params: tuple[Part, ...]
    fields: tuple[Part, ...]
    channels: tuple[LockedChannel, ...]
    stages: tuple[LockedStage, ...]
    steps: tuple[str, ...]
    undos: tuple[str, ...]
    types: Types


@dataclass(frozen=True, slots=True)
class LockedFlow:
    name: str
    versions: tuple[LockedVersion, ...]

    @property
    def base(self) -> LockedVersion | None:
        """The last deployed version: what instances run in, and what a build is compared with."""
        return next((each for each in reversed(self.versions) if each.deployed), None)

    def before(self, hash: str) -> LockedVersion | None:
        """The last deployed version that is not this one, or this one where it is the only one."""
        deployed = [each for each in self.versions if each.deployed]
        others = [each for each in deployed if each.hash != hash]
        found = others or deployed
        return found[-1] if found else None

    def followed_by(self, version: LockedVersion) -> LockedFlow:
        """The versions after a build: those deployed, then this one unless it is the last."""
        kept = tuple(each for each in self.versions if each.deployed)
        if kept and kept[-1].hash == version.hash:
            return replace(self, versions=kept)
        previous = kept[-1].hash if kept else None
        return replace(self, versions=(*kept, replace(version, previous=previous, deployed=False)))


@dataclass(frozen=True, slots=True)
class Lock:
    flows: tuple[LockedFlow, ...] = ()

    def flow(self, name: str) -> LockedFlow:
        return next((flow for flow in self.flows if flow.name == name), LockedFlow(name, ()))

    def with_flows(self, flows: Iterable[LockedFlow]) -> Lock:
        """The lock with these flows in place of those of their names, sorted."""
        named = {flow.name: flow for flow in (*self.flows, *flows)}
        return Lock(tuple(named[name] for name in sorted(named) if named[name].versions))


def mark_deployed(lock: Lock, flow: str, version: str) -> Lock:
    """The lock after a deploy; KeyError where the flow has no such version."""
    locked = lock.flow(flow)
    if all(each.hash != version for each in locked.versions):
        raise KeyError(f"{flow} has no version {version}")
    versions = tuple(
        replace(each, deployed=True) if each.hash == version else each for each in locked.versions
    )
    return lock.with_flows([replace(locked, versions=versions)])


# -- writing -----------------------------------------------------------------------------------


def write(lock: Lock) -> str:
    """The text of a lock; the same for equal locks."""
    lines = [
        "# The versions of this package's flows, written by qoqi. Keep it in version control.",
        f"format = {FORMAT}",
    ]
    for flow in lock.flows:
        lines += ["", "[[flow]]", f"name = {_text(flow.name)}"]
        for version in flow.versions:
            lines += ["", *(f"  {line}" for line in _version(version))]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _version(version: LockedVersion) -> list[str]:
    lines = ["[[flow.version]]", f"hash = {_text(version.hash)}"]
    if version.previous is not None:
        lines.append(f"previous = {_text(version.previous)}")
    lines.append(f"deployed = {'true' if version.deployed else 'false'}")
    lines += _list("params", map(str, version.params))
    lines += _list("fields", map(str, version.fields))
    lines += _list("channels", map(_channel, version.channels))
    lines += _list("steps", version.steps)
    lines += _list("undos", version.undos)
    if version.stages:
        lines += ["", "[flow.version.stages]"]
        for stage in version.stages:
            lines += _list(stage.name, map(str, stage.variables))
    if version.types:
        lines += ["", "[flow.version.types]"]
        for name in sorted(version.types):
            lines += _list(name, version.types[name])
    return lines


def _channel(channel: LockedChannel) -> str:
    answers = "" if channel.answers is None else f" answers {channel.answers}"
    return f"{channel.name}: {channel.type}{answers}"


def _list(key: str, items: Iterable[str]) -> list[str]:
    key = key if _BARE.fullmatch(key) else _text(key)
    texts = [_text(item) for item in items]
    if not texts:
        return [f"{key} = []"]
    return [f"{key} = [", *(f"  {text}," for text in texts), "]"]


def _text(value: str) -> str:
    """A TOML basic string."""
    escaped = "".join(
        f"\\u{ord(char):04x}" if ord(char) < 32 or ord(char) == 127 else char
        for char in value.replace("\\", "\\\\").replace('"', '\\"')
    )
    return f'"{escaped}"'


# -- reading -----------------------------------------------------------------------------------


class _Damaged(Exception):
    """Something in the file is not as qoqi writes it."""


def read(text: str, path: str = LOCK) -> Lock | Diagnostic:
    """The lock, or the one diagnostic that says what is wrong with it and the way out."""
    conflict = _CONFLICT.search(text)
    if conflict is not None and text.find("<<<<<<< ") != -1:
        return error(
            "E0230",
            path,
            Span(*conflict.span()),
            f"{LOCK} has a merge conflict that is not resolved",
            notes=[
                "Keep every version that says `deployed = true`, of both sides, in the order in "
                "which they were deployed; leave out the others and run `qoqi build`, which "
                "writes the last one anew."
            ],
        )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        return _damaged(text, path, _where(text, str(problem)), f"is not TOML: {problem}")
    form = data.get("format")
    if form != FORMAT:
        found = "says no format" if form is None else f"is of format {form}, not {FORMAT}"
        note = "A newer qoqi has written it: install that one." if _is_newer(form) else _REMEDY
        return error("E0232", path, _find(text, "format"), f"{LOCK} {found}", notes=[note])
    try:
        return Lock(tuple(_read_flow(each) for each in _tables(data, "flow")))
    except (_Damaged, ShapeError) as problem:
        return _damaged(text, path, Span(0, 0), f"is not as qoqi writes it: {problem}")


def _is_newer(form: object) -> bool:
    return isinstance(form, int) and form > FORMAT


def _damaged(text: str, path: str, span: Span, what: str) -> Diagnostic:
    return error("E0231", path, span, f"{LOCK} {what}", notes=[_REMEDY])


def _where(text: str, message: str) -> Span:
    """The place that the TOML reader names."""
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    if found is None:
        return Span(len(text), len(text))
    line, column = int(found[1]), int(found[2])
    start = sum(len(each) + 1 for each in text.split("\n")[: line - 1]) + column - 1
    return Span(start, min(start + 1, len(text)))


def _find(text: str, word: str) -> Span:
    at = text.find(word)
    return Span(0, 0) if at < 0 else Span(at, at + len(word))


def _read_flow(data: dict[str, object]) -> LockedFlow:
    name = _string(data, "name")
    versions = tuple(_read_version(each) for each in _tables(data, "version"))
    for before, after in zip((None, *versions), versions, strict=False):
        expected = None if before is None else before.hash
        if after.previous != expected:
            raise _Damaged(f"version {after.hash[:8]} of {name} does not follow the one above it")
        if before is not None and not before.deployed:
            raise _Damaged(f"version {before.hash[:8]} of {name} is not the last, yet not deployed")
    return LockedFlow(name, versions)


def _read_version(data: dict[str, object]) -> LockedVersion:
    hash_ = _string(data, "hash")
    if not _HASH.fullmatch(hash_):
        raise _Damaged(f"`{hash_}` is no hash of a version")
    deployed = data.get("deployed")
    if not isinstance(deployed, bool):
        raise _Damaged(f"version {hash_[:8]} does not say whether it is deployed")
    types = {name: tuple(_strings(_table(data, "types"), name)) for name in _table(data, "types")}
    for name, definition in types.items():
        _check_definition(name, definition)
    return LockedVersion(
        hash=hash_,
        previous=_string(data, "previous") if "previous" in data else None,
        deployed=deployed,
        params=tuple(map(parse_part, _strings(data, "params"))),
        fields=tuple(map(parse_part, _strings(data, "fields"))),
        channels=tuple(map(_read_channel, _strings(data, "channels"))),
        stages=tuple(
            LockedStage(name, tuple(map(parse_part, _strings(_table(data, "stages"), name))))
            for name in _table(data, "stages")
        ),
        steps=tuple(_strings(data, "steps")),
        undos=tuple(_strings(data, "undos")),
        types=types,
    )


def _read_channel(text: str) -> LockedChannel:
    head, marker, answers = text.partition(" answers ")
    part = parse_part(head)
    return LockedChannel(
        part.name, part.type, parse_part(f"answer: {answers}").type if marker else None
    )


def _check_definition(name: str, definition: tuple[str, ...]) -> None:
    match definition:
        case ("struct", *fields):
            for field in fields:
                parse_part(field)
        case ("enum", *variants):
            for variant in variants:
                parse_variant(variant)
        case _:
            raise _Damaged(f"type {name} is neither a struct nor an enum")


def _tables(data: dict[str, object], key: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for each in _items(data, key):
        if not isinstance(each, dict):
            raise _Damaged(f"`{key}` is no list of tables")
        found.append(cast("dict[str, object]", each))
    return found


def _items(data: dict[str, object], key: str) -> list[object]:
    value = data.get(key, [])
    if not isinstance(value, list):
        raise _Damaged(f"`{key}` is no list")
    return cast("list[object]", value)


def _table(data: dict[str, object], key: str) -> dict[str, object]:
    value = data.get(key, {})
    if not isinstance(value, dict):
        raise _Damaged(f"`{key}` is no table")
    return cast("dict[str, object]", value)


def _string(data: dict[str, object], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise _Damaged(f"`{key}` is missing or no text")
    return value


def _strings(data: dict[str, object], key: str) -> list[str]:
    found: list[str] = []
    for each in _items(data, key):
        if not isinstance(each, str):
            raise _Damaged(f"`{key}` is no list of texts")
        found.append(each)
    return found
