"""Renews the leases of simulated nodes, spread out over time.

Kubelets renew every ten seconds. Here one process does it for all nodes, so the interval grows with
their number: there are never more than `RENEWALS` writes a second, and the duration that a lease
states grows with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sully.client.informers.informer import Informer, own_key
from sully.client.options import WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.simulatednodes.kinds import AGENT, LEASES, Node
from sully.domain.simulated import machines
from sully.domain.simulated.fleet import Fleet
from sully.machinery.errors import NotFound
from sully.runtime.clock import Clock

USUAL_SECONDS = 10.0
RENEWALS = 10
"""Most renewals in a second."""
_OWN = WriteOptions(field_manager=AGENT)


def interval(nodes: int) -> float:
    """Return how many seconds pass between two renewals of one lease."""
    return max(USUAL_SECONDS, nodes / RENEWALS)


class SimulatedLeases:
    """Shows that simulated nodes are alive."""

    name = "hollow-leases"

    def __init__(
        self, *, fleet: Fleet, nodes: Informer[Node], transport: Transport, clock: Clock
    ) -> None:
        self._fleet = fleet
        self._nodes = nodes
        self._transport = transport
        self._clock = clock
        self._every = interval(fleet.nodes)
        self._due: dict[Key, float] = {}

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for nodes that come and go; the rest is a matter of time."""
        yield Watch(self._nodes, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Renew a lease that is due."""
        node, number, now = (
            self._nodes.get(key),
            self._fleet.number(key.name),
            self._clock.monotonic(),
        )
        if node is None or number is None or not self._fleet.has(number):
            self._due.pop(key, None)
            return DONE
        if key not in self._due:
            # Each node has its own moment in the interval; all together would be a burst.
            self._due[key] = now + self._every * (number + 1) / self._fleet.nodes
        if self._due[key] <= now:
            await self._renew(key, node.metadata.uid)
            self._due[key] = now + self._every
        return Result(requeue_after=timedelta(seconds=self._due[key] - now))

    async def _renew(self, key: Key, uid: str) -> None:
        now, place = self._clock.now(), Key(machines.LEASES, key.name)
        patch = {"spec": machines.renewal(key.name, now, self._every)}
        try:
            await self._transport.patch(LEASES, place, patch, options=_OWN)
        except NotFound:
            lease = machines.lease_of(key.name, uid, now, self._every)
            await self._transport.create(LEASES, lease, options=_OWN)
