"""The clocks: the system's, and one that stands still until it is told to go on."""

from __future__ import annotations

import asyncio
import time

import pytest

from qoqi.runtime.clock import Clock, SystemClock, VirtualClock


async def test_the_system_clock_sleeps_until_a_moment() -> None:
    clock: Clock = SystemClock()
    start = clock.now()
    assert abs(start - time.time() * 1000) < 1_000
    await clock.sleep_until(start + 20)
    assert clock.now() >= start + 20
    await clock.sleep_until(start)


async def sleepers(
    clock: VirtualClock, *moments: int
) -> tuple[list[int], list[asyncio.Task[None]]]:
    """Sleepers that write down the moment they slept until, in the order they wake."""
    woken: list[int] = []

    async def sleep(at: int) -> None:
        await clock.sleep_until(at)
        woken.append(at)

    tasks = [asyncio.ensure_future(sleep(at)) for at in moments]
    await asyncio.sleep(0)
    return woken, tasks


async def rest() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_virtual_clock_stands_still_until_it_is_told() -> None:
    clock = VirtualClock(1_000)
    woken, tasks = await sleepers(clock, 1_300, 1_100, 1_200)
    await rest()
    assert clock.now() == 1_000
    assert woken == []
    clock.advance(200)
    await rest()
    assert woken == [1_100, 1_200]
    assert clock.to_next()
    assert clock.now() == 1_300
    await asyncio.gather(*tasks)
    assert woken == [1_100, 1_200, 1_300]
    assert not clock.to_next()
    assert clock.now() == 1_300


async def test_a_sleeper_that_was_cancelled_holds_no_deadline() -> None:
    clock = VirtualClock()
    woken, tasks = await sleepers(clock, 10, 20)
    tasks[0].cancel()
    await rest()
    assert clock.next_deadline() == 20
    clock.set(50)
    await rest()
    assert woken == [20]


async def test_a_moment_that_is_past_is_not_slept_for() -> None:
    clock = VirtualClock(100)
    await asyncio.wait_for(clock.sleep_until(100), 1)
    clock.set(40)  # the system's time may be set back
    assert clock.now() == 40


async def test_a_clock_that_is_set_back_does_not_make_a_second_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SystemClock()
    real = time.time_ns
    sleeping = asyncio.ensure_future(clock.sleep_until(clock.now() + 50))
    await asyncio.sleep(0)
    monkeypatch.setattr(time, "time_ns", lambda: real() - 3_600 * 10**9)
    await asyncio.wait_for(sleeping, 5)
    monkeypatch.setattr(time, "time_ns", lambda: real() + 3_600 * 10**9)
    await asyncio.wait_for(clock.sleep_until(clock.now()), 5)
