"""The OpenAPI document, made of the routes and the records they name: it says what they do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from qoqi.runtime.api import wire
from qoqi.runtime.model import Phase, Status

if TYPE_CHECKING:
    from qoqi.runtime.api.server import Route

VERSION = "1"
_COMMON = (
    "bad_request",
    "bad_token",
    "not_allowed",
    "internal",
    "database_busy",
    "database_damaged",
)


def document(routes: Iterable[Route]) -> dict[str, object]:
    parts: dict[str, object] = {}
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, parts)
    wire.schema(wire.ErrorBody, parts)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "flow daemon",
            "version": VERSION,
            "description": "Starts flows, sends to them, and shows what became of them. Times are "
            "milliseconds since the epoch. Errors are an ErrorBody whose code says what happened.",
        },
        "paths": paths,
        "components": {
            "schemas": parts,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(route: Route, parts: dict[str, object]) -> dict[str, object]:
    parameters: list[dict[str, object]] = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for part in route.segments
        if part.startswith("{")
    ]
    for name in route.query:
        numbers = name == "after" and "status" not in route.query  # else a name
        found = _COUNT if numbers else _QUERY.get(name, {"type": "string"})
        parameters.append({"name": name, "in": "query", "schema": found})
    if route.keyed:
        key = {"type": "string", "pattern": "^[!-~]([ -~]{0,254}[!-~])?$"}
        parameters.append({"name": "Idempotency-Key", "in": "header", "schema": key})
    if route.resumes:
        seen = {"type": "string", "pattern": "^[0-9]{1,15}$"}
        parameters.append({"name": "Last-Event-ID", "in": "header", "schema": seen})
    operation: dict[str, object] = {
        "operationId": route.handler.__name__,
        "summary": route.summary,
        "parameters": parameters,
        "responses": _responses(route, parts),
    }
    if route.body is not None:
        content = {"application/json": {"schema": wire.schema(route.body, parts)}}
        operation["requestBody"] = {"required": True, "content": content}
    if route.right is None:
        operation["security"] = []
    else:
        operation["description"] = f"Needs a token with the right to `{route.right}`."
    return operation


_COUNT: dict[str, object] = {"type": "integer", "minimum": 0, "maximum": 1 << 53}
_QUERY: dict[str, dict[str, object]] = {
    "limit": {"type": "integer", "minimum": 1, "maximum": wire.PAGE_LIMIT},
    "since": _COUNT,
    "status": {"type": "string", "enum": [str(one) for one in Status]},
    "phase": {"type": "string", "enum": [str(one) for one in Phase]},
    "wait": {"type": "string", "pattern": "^([1-9]|[1-5][0-9]|60)s$"},
}
_KINDS: dict[type, str] = {str: "text/plain", wire.EventStream: "text/event-stream"}


def _words(record: type) -> str:
    """What a record says of itself; a type, and a record without words, says its name."""
    words = " ".join((record.__doc__ or "").split())
    return record.__name__ if words.startswith(f"{record.__name__}(") else words


def _responses(route: Route, parts: dict[str, object]) -> dict[str, object]:
    found: dict[str, Any] = {
        str(status): {
            "description": _words(record),
            "content": {
                _KINDS.get(record, "application/json"): {"schema": wire.schema(record, parts)}
            },
        }
        for status, record in route.answers.items()
    }
    by_status: dict[int, list[str]] = {}
    codes = [*route.errors, *(_COMMON if route.right is not None else _COMMON[-3:])]
    if route.body is not None:
        codes += ["bad_json", "too_slow", "too_large"]
    for code in dict.fromkeys(codes):
        by_status.setdefault(wire.ERRORS[code][0], []).append(code)
    for status, named in sorted(by_status.items()):
        found[str(status)] = {
            "description": "; ".join(f"{code}: {wire.ERRORS[code][1]}" for code in named),
            "content": {"application/json": {"schema": wire.schema(wire.ErrorBody, parts)}},
        }
    return found
