"""What passes over HTTP: one frozen record per body, their JSON form, and the table of errors.

`read` checks a decoded body against a record, strictly: a missing field, a field too many or one of
another type is refused with its path, so a client's typing mistake never counts as a default.
`write` is its inverse and `schema` describes the same record for OpenAPI: three readers of one
declaration, so the document cannot say something else than the server does.

Values of flows are carried as JSON data (`object`); their types are the business of the instance's
version. Times are milliseconds since the epoch.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from qoqi.vm.dataclass import dataclass

R = TypeVar("R")

ROLES = ("read", "send", "supervise", "operate", "admin")
BODY_LIMIT = 1 << 20
VERSION_LIMIT = 32 << 20
PAGE_LIMIT = 1_000


class WireError(ValueError):
    """A body that does not fit its record: where, and what was expected there."""


# -- errors ------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[int, str]] = {
    "bad_request": (400, "the request is not one this call takes; the message says what is wrong"),
    "bad_json": (400, "the body is not JSON; the message has the line and column"),
    "bad_token": (401, "the token is missing or not known to this daemon"),
    "not_allowed": (403, "the token's role does not have the right this call needs"),
    "not_found": (404, "there is no such call"),
    "no_instance": (404, "no instance has this name"),
    "no_channel": (404, "the instance's flow has no channel of this name that takes messages"),
    "no_flow": (404, "no version of this flow is deployed"),
    "no_view": (404, "the instance's flow has no view of this name"),
    "no_version": (404, "no version has this hash"),
    "no_token": (404, "no token has this name"),
    "not_a_call": (405, "the path exists, but not with this method"),
    "too_slow": (408, "the body did not come in time"),
    "name_taken": (409, "an instance of this name exists, started with other arguments or flow"),
    "full": (409, "the channel is full; send again later"),
    "refused": (409, "the flow refuses to be cancelled now; the message has its words"),
    "not_stopped": (409, "only a stopped instance can be resumed, ended or answered"),
    "stage_gone": (409, "F0103: the newest version no longer has the stage it stopped at"),
    "cannot_move": (409, "its state does not go over into the newest version; the message has why"),
    "cancel_pending": (409, "a cancellation is pending; it is carried out instead of a resume"),
    "needs_answer": (409, "the instance stopped with a question; it goes on by an answer"),
    "behind": (409, "a newer version of the flow is deployed than the one this was built after"),
    "token_taken": (409, "a token of this name exists"),
    "not_possible": (409, "the instance is not in a state in which this can be done"),
    "ended": (410, "the instance has ended, or has not the birth that was asked for"),
    "too_large": (413, "the body or value is larger than allowed"),
    "misfit": (422, "a value does not fit the type it was sent to; the message has its path"),
    "view_failed": (422, "the view made a mistake on the instance's present state"),
    "bad_bytecode": (422, "the bytecode is damaged, lies, or is not what its hash says"),
    "too_many": (429, "the daemon serves as many streams of events as it can; try again later"),
    "internal": (500, "a mistake in the daemon; its log has the details"),
    "database_damaged": (503, "a page of the database cannot be read; restore it from a copy"),
    "database_busy": (503, "the database did not answer in time; nothing was written; try again"),
}


class ApiError(Exception):
    """An answer that is an error; `code` is of ERRORS and says the status."""

    def __init__(self, code: str, message: str, detail: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail

    @property
    def status(self) -> int:
        return ERRORS[self.code][0]


@dataclass(frozen=True, slots=True)
class ErrorBody:
    code: str
    message: str
    detail: object = None


# -- requests ----------------------------------------------------------------------------------


def _within(**schema: object) -> dict[str, object]:
    """What a field's schema says beside its type; the call checks it."""
    return {"schema": schema}


NAME = {"pattern": "^[A-Za-z0-9_.:@/~+-]{1,256}$"}
TEXT_LIMIT = 4_096
TEXT = {"minLength": 1, "maxLength": TEXT_LIMIT}


@dataclass(frozen=True, slots=True)
class StartBody:
    """`args` by parameter. Without a name one is drawn."""

    args: dict[str, object] = field(default_factory=dict)
    name: str | None = field(default=None, metadata=_within(**NAME))


@dataclass(frozen=True, slots=True)
class SendBody:
    value: object
    birth: str | None = None


@dataclass(frozen=True, slots=True)
class CancelBody:
    reason: str = field(metadata=_within(**TEXT))
    now: bool = False
    birth: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeBody:
    """Without `go` nothing is changed: the answer says what a resume would do."""

    go: bool = False


@dataclass(frozen=True, slots=True)
class EndBody:
    reason: str = field(metadata=_within(**TEXT))


@dataclass(frozen=True, slots=True)
class PauseBody:
    pass


@dataclass(frozen=True, slots=True)
class VersionBody:
    """`bytecode` and `debug` are base64; `previous` is the version this one was built after."""

    flow: str
    bytecode: str
    debug: str
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class TokenBody:
    name: str = field(metadata=_within(**NAME))
    role: str = field(metadata=_within(enum=[*ROLES]))


# -- answers -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Health:
    status: str
    incarnation: str
    instances: dict[str, int]


@dataclass(frozen=True, slots=True)
class InstanceView:
    """An instance as lists show it; times in ms, `cancel` the reason of a pending one.

    `holds` are the living ancestors, the parent first, that a stopped one keeps from ending.
    """

    name: str
    birth: str
    flow: str
    version: str
    parent: str | None
    status: str
    phase: str
    paused: bool
    stage: str | None
    since: int
    created: int
    stopped_by: str | None
    error_code: str | None
    cancel: str | None
    held_by: str | None
    holds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstancePage:
    """`next` is the `after` of the next page; none on the last."""

    instances: tuple[InstanceView, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """`outcome` is `started` or `already`."""

    outcome: str
    instance: InstanceView


@dataclass(frozen=True, slots=True)
class SendAnswer:
    """`outcome` is `delivered`, or `already` for a key that was used before.

    `answered` says that the message has its answer, which is `answer`.
    """

    outcome: str
    instance: InstanceView
    answered: bool
    answer: object


@dataclass(frozen=True, slots=True)
class ViewAnswer:
    """What a view gives now, of the state as it was written last."""

    view: str
    value: object


class EventStream:
    """Server-sent events, each a row of the ledger: its number, its kind, a LedgerItem."""


@dataclass(frozen=True, slots=True)
class ActAnswer:
    outcome: str
    instance: InstanceView


@dataclass(frozen=True, slots=True)
class VariableView:
    """`kind` is variable, parameter or field."""

    name: str
    kind: str
    value: object


@dataclass(frozen=True, slots=True)
class WaitItem:
    """`channel` by name. `at` is when the wait is over by itself."""

    task: str
    case: int
    kind: str
    channel: str | None
    other: str | None
    left: int | None
    at: int | None


@dataclass(frozen=True, slots=True)
class AttemptItem:
    """`outcome` is open, answer, timeout, retry, lost, failed or spent; `late` came after it.

    An `answer` beside an outcome that is none is what `else` gave in its place. `given` is when the
    flow was given what became of it.
    """

    key: str
    attempt: int
    step: str
    asked: object
    outcome: str
    answer: object
    late: object
    failure: str | None
    settled: bool
    owner: str | None
    started: int | None
    ended: int | None
    until: int | None
    given: int | None


@dataclass(frozen=True, slots=True)
class CallItem:
    """A call that was under way when the instance stopped; `line` 0 where it is not known."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class UndoItem:
    number: int
    target: str
    args: object
    final: bool


@dataclass(frozen=True, slots=True)
class MessageItem:
    seq: int
    channel: str
    key: str | None
    value: object
    at: int


@dataclass(frozen=True, slots=True)
class LedgerItem:
    seq: int
    instance: str
    at: int
    kind: str
    detail: dict[str, object]
    actor: str | None


@dataclass(frozen=True, slots=True)
class LifeView:
    """Everything about one instance. `messages` are those not received; `result` as in the row."""

    instance: InstanceView
    args: object
    result: object
    calls: tuple[CallItem, ...]
    variables: tuple[VariableView, ...]
    waits: tuple[WaitItem, ...]
    attempts: tuple[AttemptItem, ...]
    undos: tuple[UndoItem, ...]
    messages: tuple[MessageItem, ...]
    children: tuple[InstanceView, ...]
    ledger: tuple[LedgerItem, ...]
    note: str | None


@dataclass(frozen=True, slots=True)
class LedgerPage:
    """`next` is the `after` of the next page; none on the last."""

    ledger: tuple[LedgerItem, ...]
    next: int | None


@dataclass(frozen=True, slots=True)
class VersionView:
    hash: str
    flow: str
    previous: str | None
    deployed_at: int
    size: int


@dataclass(frozen=True, slots=True)
class VersionAnswer:
    """`outcome` is `new` or `known`."""

    outcome: str
    hash: str
    flow: str


@dataclass(frozen=True, slots=True)
class StandingItem:
    version: str
    stage: str | None
    instances: int


@dataclass(frozen=True, slots=True)
class FieldView:
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ChannelView:
    name: str
    type: str
    capacity: int
    inside: bool
    answers: str | None


@dataclass(frozen=True, slots=True)
class StageView:
    name: str
    variables: tuple[FieldView, ...]


@dataclass(frozen=True, slots=True)
class StepView:
    """Times in ms. `tries` 0: the daemon's default, -1: for ever. `extern`: of a supervisor."""

    name: str
    params: tuple[FieldView, ...]
    result: str
    extern: bool
    within: int
    tries: int
    undo: str | None


@dataclass(frozen=True, slots=True)
class FlowView:
    """A flow as its newest deployed version has it, all its versions, and who stands where."""

    flow: str
    newest: str
    params: tuple[FieldView, ...]
    fields: tuple[FieldView, ...]
    result: str
    listens: bool
    channels: tuple[ChannelView, ...]
    stages: tuple[StageView, ...]
    steps: tuple[StepView, ...]
    views: tuple[FieldView, ...]
    versions: tuple[VersionView, ...]
    standing: tuple[StandingItem, ...]


@dataclass(frozen=True, slots=True)
class DaemonItem:
    incarnation: str
    alive_until: int
    alive: bool


@dataclass(frozen=True, slots=True)
class DaemonList:
    daemons: tuple[DaemonItem, ...]


@dataclass(frozen=True, slots=True)
class TokenItem:
    name: str
    role: str


@dataclass(frozen=True, slots=True)
class TokenList:
    tokens: tuple[TokenItem, ...]


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """`token` is shown this once; the daemon keeps its digest only."""

    name: str
    role: str
    token: str


# -- JSON both ways ----------------------------------------------------------------------------


@cache
def _hints(record: Any) -> dict[str, Any]:
    return get_type_hints(record)


def read(record: type[R], raw: object, path: str = "") -> R:
    """JSON data as a record; WireError with the path of the part that does not fit."""
    if not isinstance(raw, dict):
        raise WireError(f"{path or 'the body'}: expected an object, found {_kind(raw)}")
    known = _hints(typing.cast(Any, record))
    for name in raw:
        if name not in known:
            raise WireError(f"{path}{'.' if path else ''}{name}: no such field here")
    values: dict[str, object] = {}
    for item in fields(typing.cast(Any, record)):
        where = f"{path}.{item.name}" if path else item.name
        if item.name in raw:
            values[item.name] = _read(known[item.name], raw[item.name], where)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise WireError(f"{where}: is missing")
    return record(**values)


def _read(hint: Any, raw: object, path: str) -> object:
    if hint is object:
        return raw
    if hint is str or hint is bool:
        if isinstance(raw, hint):
            return raw
    elif hint is int:
        if isinstance(raw, int) and not isinstance(raw, bool):
            return raw
    elif _is_union(hint):
        if raw is None:
            return None
        inner = next(option for option in get_args(hint) if option is not type(None))
        return _read(inner, raw, path)
    elif get_origin(hint) is tuple:
        if isinstance(raw, list):
            return tuple(
                _read(get_args(hint)[0], part, f"{path}[{at}]") for at, part in enumerate(raw)
            )
    elif get_origin(hint) is dict:
        if isinstance(raw, dict):
            value = get_args(hint)[1]
            return {key: _read(value, part, f"{path}.{key}") for key, part in raw.items()}
    elif is_dataclass(hint) and isinstance(hint, type):
        return read(hint, raw, path)
    raise WireError(f"{path}: expected {_expected(hint)}, found {_kind(raw)}")


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _expected(hint: Any) -> str:
    names = {str: "a string", bool: "true or false", int: "a whole number"}
    if hint in names:
        return names[hint]
    return "a list" if get_origin(hint) is tuple else "an object"


def _kind(raw: object) -> str:
    if raw is None:
        return "null"
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, str):
        return "a string"
    if isinstance(raw, dict):
        return "an object"
    return "a list" if isinstance(raw, list) else "a number"


@cache
def _names(record: Any) -> tuple[str, ...] | None:
    """The fields of a record; None for what is none."""
    if not is_dataclass(record):
        return None
    return tuple(item.name for item in fields(record))


def write(record: object) -> Any:
    """A record, and all in it, as JSON data."""
    names = _names(typing.cast(Any, record.__class__))
    if names is not None:
        return {name: write(getattr(record, name)) for name in names}
    if isinstance(record, tuple):
        return [write(item) for item in record]
    return record


def schema(hint: Any, parts: dict[str, object]) -> dict[str, object]:
    """The JSON schema of a record or type; records land in `parts` under their names."""
    if hint is object:
        return {}
    if hint is EventStream:
        return {"type": "string"}
    if hint in (str, bool, int):
        return {"type": {str: "string", bool: "boolean", int: "integer"}[hint]}
    if _is_union(hint):
        inner = next(option for option in get_args(hint) if option is not type(None))
        return {"anyOf": [schema(inner, parts), {"type": "null"}]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": schema(get_args(hint)[0], parts)}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": schema(get_args(hint)[1], parts)}
    name = hint.__name__
    if name not in parts:
        parts[name] = {}
        known = _hints(hint)
        required = [
            item.name
            for item in fields(hint)
            if item.default is MISSING and item.default_factory is MISSING
        ]
        # A record without words of its own has its signature there.
        words = " ".join((hint.__doc__ or "").split())
        parts[name] = {
            "type": "object",
            "description": "" if words.startswith(f"{name}(") else words,
            "properties": {
                item.name: _bounded(schema(known[item.name], parts), item.metadata)
                for item in fields(hint)
            },
            "required": required,
            "additionalProperties": False,
        }
    return {"$ref": f"#/components/schemas/{name}"}


def _bounded(
    found: dict[str, object], metadata: Mapping[str, dict[str, object]]
) -> dict[str, object]:
    """A field's schema with what its declaration adds; of one that may be null, the other part."""
    more = metadata.get("schema", {})
    options = found.get("anyOf")
    if isinstance(options, list):
        return {"anyOf": [{**options[0], **more}, *options[1:]]}
    return {**found, **more}
