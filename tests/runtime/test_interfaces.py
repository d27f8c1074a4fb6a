"""The interfaces of the seed, with what was decided to be missing from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from qoqi.runtime.host import StoreHost
from qoqi.runtime.replay import _DryHost
from qoqi.runtime.simulation.world import SimHost
from qoqi.runtime.store.protocol import Store
from qoqi.runtime.store.sqlstore import SqlStore
from qoqi.runtime.store.thread import StoreThread
from qoqi.vm.host import Host

HOST = {"still", "attempt", "put_result", "put_results", "give_up", "late"}
HOST_MORE = {"messages", "ended", "newest", "find", "children", "answer", "event", "leave", "now"}
STORE = (
    {"create", "lease", "save", "due", "attempt", "put_result", "give_up", "late", "working"}
    | {"alive", "renew", "pin", "instances", "send", "cancel", "resume", "end", "sweep"}
    | {"put_version", "messages", "post_result", "daemons"}
)
STORE_MORE = {"ended", "next_wake", "newest", "instance", "pause", "counts", "ledger"}


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    return {
        name: member
        for name, member in inspect.getmembers(kind, inspect.isfunction)
        if not name.startswith("_")
    }


def test_the_host_has_the_calls_of_the_seed_and_those_it_lacked() -> None:
    assert set(methods(Host)) >= HOST | HOST_MORE
    # `Working` is asked by a body of the store, and reads: nothing moves a limit.
    assert "until" not in inspect.signature(methods(Store)["working"]).parameters


@pytest.mark.parametrize("host", [StoreHost, SimHost, _DryHost])
def test_every_host_answers_all_of_it(host: type) -> None:
    wanted, has = methods(Host), methods(host)
    assert set(wanted) <= set(has)
    for name, method in wanted.items():
        asked = list(inspect.signature(method).parameters)
        assert list(inspect.signature(has[name]).parameters) == asked, f"{host.__name__}.{name}"


def test_the_store_has_the_calls_of_the_seed_and_those_it_lacked() -> None:
    assert set(methods(Store)) >= STORE | STORE_MORE
    assert "birth" in inspect.signature(methods(Store)["send"]).parameters
    assert set(methods(Store)) - {"close"} <= set(methods(SqlStore))


def test_the_thread_has_every_call_of_the_store_awaited() -> None:
    wanted, has = methods(Store), methods(StoreThread)
    assert set(wanted) <= set(has)
    assert all(inspect.iscoroutinefunction(has[name]) for name in wanted)
