"""Tokens: what a request may do, by its bearer token.

A token is 32 drawn bytes behind `qoqi_`. The store keeps its SHA-256 only: a copy of the database
opens nothing. A token is looked for by comparing the digest with every kept one in constant time,
so the time of an answer says nothing about how close a guess was.

Roles, from least to most: `read` looks, `send` starts and sends and does nothing else, `supervise`
claims work of extern steps, `operate` reads, sends and acts on instances, `admin` does all.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from enum import StrEnum

from qoqi.vm.dataclass import dataclass

PREFIX = "qoqi_"


class Role(StrEnum):
    READ = "read"
    SEND = "send"
    SUPERVISE = "supervise"
    OPERATE = "operate"
    ADMIN = "admin"


class Right(StrEnum):
    """What a call of the API needs."""

    LOOK = "look"
    SEND = "send"
    SUPERVISE = "supervise"
    OPERATE = "operate"
    ADMIN = "admin"


RIGHTS: dict[Role, frozenset[Right]] = {
    Role.READ: frozenset({Right.LOOK}),
    Role.SEND: frozenset({Right.SEND}),
    Role.SUPERVISE: frozenset({Right.SUPERVISE}),
    Role.OPERATE: frozenset({Right.LOOK, Right.SEND, Right.OPERATE}),
    Role.ADMIN: frozenset(Right),
}


@dataclass(frozen=True, slots=True)
class Holder:
    """Who sends a request: the token's name, for the ledger, and its role."""

    name: str
    role: Role

    def may(self, right: Right) -> bool:
        return right in RIGHTS[self.role]


def draw() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def holder(token: str, kept: Iterable[tuple[str, str, str]]) -> Holder | None:
    """The holder of a token among the kept (digest, role, name); every one is compared."""
    asked = digest(token)
    found: Holder | None = None
    for kept_digest, role, name in kept:
        if hmac.compare_digest(asked, kept_digest):
            found = Holder(name, Role(role))
    return found
