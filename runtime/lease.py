"""Leases: "mine for thirty seconds", renewed for all instances of a daemon in one call.

A lease that is not renewed was lost to another daemon, or ran out while this process stood still.
Its host is told so, the turn ends with `LeaseLost`, and the instance is dropped from memory without
a write: whoever holds it now has gone on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from qoqi.runtime.store.protocol import StoreBroken, StoreBusy

if TYPE_CHECKING:
    from qoqi.runtime.daemon import Daemon
    from qoqi.runtime.host import StoreHost

_log = logging.getLogger("qoqi.lease")


async def renewals(daemon: Daemon) -> None:
    """Renews every ten seconds, while the daemon runs; a busy store is asked again soon."""
    settings, clock = daemon.settings, daemon.clock
    wait = settings.renew
    while True:
        await clock.sleep_until(clock.now() + wait)
        try:
            await renew(daemon)
            wait = settings.renew
        except StoreBusy as busy:
            _log.warning("the leases could not be renewed: %s", busy)
            wait = settings.look


async def renew(daemon: Daemon) -> None:
    """Renews what is held now; a host whose lease is gone is told."""
    hosts = {id: host for id, host in daemon.hosts.items() if not (host.lost or host.released)}
    if hosts:
        await _renew(daemon, hosts)


async def prove(daemon: Daemon, host: StoreHost) -> None:
    """Renews one that was taken and came to rest, at once: a renewal ends the count of takings."""
    try:
        if not (host.lost or host.released):
            await _renew(daemon, {host.id: host})
    except (StoreBusy, StoreBroken) as trouble:
        _log.info("%s: counted until the next renewal, %s", host.id, trouble)


async def _renew(daemon: Daemon, hosts: dict[str, StoreHost]) -> None:
    now = daemon.clock.now()
    until = now + daemon.settings.lease
    renewed = set(await daemon.store.renew(list(hosts), daemon.me, now, until))
    for id, host in hosts.items():
        if daemon.hosts.get(id) is not host:
            continue  # it left memory during the call
        if id in renewed:
            host.lease_until = until
            host.proven.set()
        elif not host.released:
            _log.warning("%s: its lease is lost", id)
            host.lose()
