"""Records and tokens by themselves: what is read is what was written, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from typing import Any

import pytest

from qoqi.runtime.api import tokens, wire
from qoqi.runtime.api.tokens import RIGHTS, Holder, Right, Role
from qoqi.runtime.model import Settings
from qoqi.vm.jsonform import json_text

RECORDS = [
    record
    for record in vars(wire).values()
    if isinstance(record, type) and is_dataclass(record) and record.__module__ == wire.__name__
]


def sample(hint: Any, parts: dict[str, Any]) -> Any:
    """A value of a schema."""
    if "$ref" in hint:
        return sample(parts[hint["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in hint:
        return sample(hint["anyOf"][0], parts)
    match hint.get("type"):
        case "string":
            return "text"
        case "integer":
            return 7
        case "boolean":
            return True
        case "array":
            return [sample(hint["items"], parts)]
        case "object" if "properties" in hint:
            return {name: sample(part, parts) for name, part in hint["properties"].items()}
        case "object":
            return {"key": sample(hint["additionalProperties"], parts)}
        case _:
            return {"any": [1, None]}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_what_the_schema_says_is_read_and_written_back(record: type) -> None:
    parts: dict[str, Any] = {}
    raw = sample(wire.schema(record, parts), parts)
    assert json.loads(json_text(wire.write(wire.read(record, raw)))) == raw


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_record_takes_no_other_field(record: type) -> None:
    parts: dict[str, Any] = {}
    raw = sample(wire.schema(record, parts), parts)
    with pytest.raises(wire.WireError, match=r"^surplus: no such field here$"):
        wire.read(record, {**raw, "surplus": 1})


@pytest.mark.parametrize(
    ("record", "raw", "said"),
    [
        (wire.TokenBody, {"name": "x"}, "role: is missing"),
        (wire.TokenBody, {"name": 1, "role": "x"}, "name: expected a string, found a number"),
        (wire.ResumeBody, {"go": 1}, "go: expected true or false, found a number"),
        (wire.Health, {"status": "", "incarnation": "", "instances": {"a": True}},
         "instances.a: expected a whole number, found true"),
        (wire.TokenList, {"tokens": [{"name": "a", "role": None}]},
         "tokens[0].role: expected a string, found null"),
        (wire.TokenList, {"tokens": {}}, "tokens: expected a list, found an object"),
        (wire.TokenBody, "x", "the body: expected an object, found a string"),
    ],
)  # fmt: skip
def test_a_misfit_is_named_by_its_path(record: type, raw: object, said: str) -> None:
    with pytest.raises(wire.WireError) as misfit:
        wire.read(record, raw)
    assert str(misfit.value) == said


def test_every_error_has_a_status_of_its_kind() -> None:
    for code, (status, meaning) in wire.ERRORS.items():
        assert wire.ApiError(code, "x").status == status
        assert 400 <= status < 600
        assert meaning


def test_a_token_is_found_by_its_digest_only() -> None:
    token, other = tokens.draw(), tokens.draw()
    assert token != other and token.startswith("qoqi_") and len(token) == 48
    kept = [(tokens.digest(other), "read", "b"), (tokens.digest(token), "send", "a")]
    assert tokens.holder(token, kept) == Holder("a", Role.SEND)
    for wrong in (token[:-1], token + "x", "", tokens.digest(token), token.upper()):
        assert tokens.holder(wrong, kept) is None


def test_rights_grow_from_role_to_role() -> None:
    assert RIGHTS[Role.READ] < RIGHTS[Role.OPERATE] < RIGHTS[Role.ADMIN] == set(Right)
    assert RIGHTS[Role.SEND] < RIGHTS[Role.OPERATE]
    assert RIGHTS[Role.SUPERVISE] == {Right.SUPERVISE}


def test_a_lease_outlives_two_lost_renewals() -> None:
    settings = Settings()
    assert settings.renew * 2 < settings.lease
    assert settings.heartbeat * 2 < settings.alive
