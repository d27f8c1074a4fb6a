"""The deployed versions in memory, and what is read by them: arguments, messages, first states.

A program is loaded once per process and hash, and never changes. Which version is a flow's newest
is asked of the store when this process deploys and at every heartbeat (another daemon may have
deployed), not at every start.

Values from outside come as JSON data by name. They are decoded against the types of the version
they go to, so a misfit is found before anything is stored, and are kept in their canonical text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from qoqi.runtime.model import Settings, VersionRow
from qoqi.runtime.store.protocol import StartRequest
from qoqi.vm.bytecode.chunk import NO_FUNCTION, FlowSlot
from qoqi.vm.bytecode.codec import ChunkError, decode, decode_debug
from qoqi.vm.failure import FlowError
from qoqi.vm.host import Limits
from qoqi.vm.interpreter import decode as decode_value
from qoqi.vm.jsonform import json_text, to_json
from qoqi.vm.program import Program, load

if TYPE_CHECKING:
    from qoqi.runtime.store.thread import StoreThread

_HASH = re.compile(r"[0-9a-f]{64}")


class NoVersion(LookupError):
    """A version that this store does not have, or whose bytecode cannot be loaded."""


class Programs:
    """Programs by hash, the newest version by flow, and the pins."""

    def __init__(self, store: StoreThread) -> None:
        self._store = store
        self._loaded: dict[str, Program] = {}
        self._refused: dict[str, str] = {}
        self._newest: dict[str, str | None] = {}
        self._previous: dict[str, str | None] = {}
        self._pins: frozenset[tuple[str, str]] = frozenset()
        self.chosen: dict[str, str] = {}

    def code(self, hash: str) -> Program:
        """A program that was loaded before: what a turn may ask for (see `prepare`)."""
        program = self._loaded.get(hash)
        if program is None:
            raise NoVersion(self._refused.get(hash, f"version {hash[:12]} was not loaded"))
        return program

    async def get(self, hash: str) -> Program:
        program = self._loaded.get(hash)
        if program is None:
            row = await self._store.version(hash)
            if row is None:
                raise NoVersion(f"version {hash[:12]} is not in the store")
            program = self._loaded[hash] = open_version(row)
            self._previous[hash] = row.previous
        return program

    async def lineage(self, old: str, new: str) -> tuple[str, ...]:
        """The versions after `old` up to `new`, oldest first, loaded; empty if there is no way."""
        path: list[str] = []
        hash: str | None = new
        while hash != old:
            if hash is None:
                return ()
            await self.get(hash)
            path.append(hash)
            hash = self._previous[hash]
        return tuple(reversed(path))

    async def prepare(self, version: str, *states: str | None) -> None:
        """Loads what a turn may ask for: its version, and those that its states name.

        A state names the version it is of, and those under which its undos were registered.

        What cannot be loaded is refused when the turn asks for it, which stops that instance.
        """
        named = {hash for state in states if state is not None for hash in _HASH.findall(state)}
        for hash in {version, *named} - self._loaded.keys():
            try:
                await self.get(hash)
            except NoVersion as why:
                self._refused[hash] = str(why)

    async def newest(self, flow: str) -> str | None:
        """The newest version, loaded; None if the flow was never deployed."""
        hash = self._newest.get(flow)
        if hash is None:
            hash = self._newest[flow] = await self._store.newest(flow)
        if hash is not None:
            await self.get(hash)
        return hash

    async def to_start(self, flow: str) -> str | None:
        """The version new instances begin in: the newest, unless `chosen` says another (`dev`)."""
        hash = self.chosen.get(flow)
        if hash is None:
            return await self.newest(flow)
        await self.get(hash)
        return hash

    async def newest_for(self, flow: str, version: str) -> str | None:
        """The newest version for an instance of `version`; None if that one is pinned."""
        if (flow, version) in self._pins:
            return None
        return await self.newest(flow)

    async def refresh(self) -> None:
        """Forgets which versions are newest, and reads the pins."""
        self._pins = await self._store.pins()
        self._newest.clear()


def open_version(row: VersionRow) -> Program:
    """A stored version made ready to run; NoVersion says what is wrong with it."""
    if hashlib.sha256(row.bytecode).hexdigest() != row.hash:
        raise NoVersion(f"the bytecode is not that of version {row.hash[:12]}")
    try:
        chunk = decode(row.bytecode)
        debug = decode_debug(row.debug) if row.debug else None
        program = load(chunk, debug)
    except ChunkError as lie:
        raise NoVersion(f"version {row.hash[:12]} cannot be loaded: {lie}") from lie
    if chunk.flow != row.flow:
        raise NoVersion(f"the bytecode is of flow {chunk.flow}, not {row.flow}")
    if debug is not None and len(debug.functions) != len(chunk.functions):
        raise NoVersion("the debug table is of another version")
    return program


# -- values from outside -----------------------------------------------------------------------


def parameters(program: Program) -> list[FlowSlot]:
    return [slot for slot in program.chunk.flow_slots if slot.parameter]


def arguments(program: Program, given: Mapping[str, object]) -> tuple[object, ...]:
    """The arguments of a flow from JSON data by parameter; FlowError R0004 with the path."""
    slots = parameters(program)
    known = {slot.name for slot in slots}
    for name in given:
        if name not in known:
            takes = ", ".join(slot.name for slot in slots) or "nothing"
            raise FlowError("R0004", f"{name}: {program.chunk.flow} takes {takes}")
    return tuple(_argument(program, slot, given) for slot in slots)


def _argument(program: Program, slot: FlowSlot, given: Mapping[str, object]) -> object:
    if slot.name in given:
        return read_value(program, given[slot.name], slot.type, slot.name)
    if slot.default != NO_FUNCTION:
        return program.default(slot.default)
    if _is_option(program, slot):
        return program.types.none()
    raise FlowError("R0004", f"{slot.name}: is missing")


def _is_option(program: Program, slot: FlowSlot) -> bool:
    term = slot.type
    if not isinstance(term, tuple) or term[0] != "enum" or not isinstance(term[1], int):
        return False
    return program.types.at(term[1]) is program.types.option


def positional(program: Program, given: list[object]) -> tuple[object, ...]:
    """The same from a list, as another instance's start gives them."""
    slots = parameters(program)
    return arguments(program, {slot.name: raw for slot, raw in zip(slots, given, strict=False)})


def arguments_text(program: Program, values: tuple[object, ...]) -> str:
    """What `instances.args` keeps: the arguments by parameter, in their canonical form."""
    slots = parameters(program)
    named = zip(slots, values, strict=True)
    return json_text({slot.name: to_json(value) for slot, value in named})


def turn_limits(settings: Settings) -> Limits:
    """What a turn needs of a daemon's settings."""
    return Limits(
        settings.tries,
        settings.retry,
        settings.far,
        settings.wave,
        settings.slice,
        settings.state_note,
        settings.state_limit,
        settings.value_limit,
    )


def first_request(
    program: Program,
    hash: str,
    id: str,
    birth: str,
    values: tuple[object, ...],
    state: str,
    parent: str | None,
) -> StartRequest:
    """The first row of an instance of this version, with its channels."""
    channels = tuple(
        (number, channel.name, channel.capacity, channel.inside)
        for number, channel in enumerate(program.chunk.channels)
    )
    return StartRequest(
        id=id,
        birth=birth,
        flow=program.chunk.flow,
        version=hash,
        args=arguments_text(program, values),
        state=state,
        parent=parent,
        channels=channels,
    )


def read_value(program: Program, raw: object, term: object, name: str) -> object:
    """One value; what does not fit is named from `name` on (`claim.lines[2].cents`)."""
    try:
        values = decode_value(program, [raw], ("Tuple", term))  # type: ignore[arg-type]
    except FlowError as misfit:
        message = misfit.message.removeprefix("[0]")
        if not name:
            message = message.removeprefix(".").removeprefix(": ")
        raise FlowError(misfit.code, f"{name}{message}") from None
    assert isinstance(values, tuple)
    return values[0]
