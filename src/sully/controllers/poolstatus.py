"""Answers ResourcePoolStatusRequests, once each, and deletes them when they have expired.

Reads requests, the inventory and claims; writes the status of requests. What is reported is
`domain/allocation/pools/pool_status.py`. A request waits for pools that are still being published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from sully.api.resource.types import ResourceClaim, ResourcePoolStatusRequest
from sully.client.informers.informer import Informer, own_key
from sully.client.options import DeleteOptions, WriteOptions
from sully.client.transport import Key, Transport
from sully.controllers.framework.controller import DONE, REQUEUE, Result, Watch
from sully.domain.allocation.pools.pool_status import (
    PoolAllocations,
    PoolContent,
    is_incomplete,
    pool_uses,
    report,
    summary,
)
from sully.domain.devices.taints import BLOCKING_EFFECTS
from sully.machinery.errors import NotFound
from sully.machinery.formats.timestamps import END_OF_TIME, later
from sully.machinery.meta import Condition, find_condition
from sully.runtime.clock import Clock
from sully.views.devices.inventory import Inventory
from sully.views.kinds import POOL_STATUS_REQUESTS

NAME = "resourcepoolstatusrequest-controller"
COMPLETE = "Complete"
FAILED = "Failed"
KEPT = timedelta(hours=1)
"""How long an answered request is kept."""
KEPT_PENDING = timedelta(hours=24)


class PoolStatusController:
    """Reports the state of pools in the status of requests."""

    name = NAME

    def __init__(  # noqa: PLR0913 - two caches, a view, and what it writes with
        self,
        *,
        requests: Informer[ResourcePoolStatusRequest],
        claims: Informer[ResourceClaim],
        inventory: Inventory,
        transport: Transport,
        clock: Clock,
        effects: frozenset[str] = BLOCKING_EFFECTS,
        counts_once: bool = True,
    ) -> None:
        self._requests = requests
        self._claims = claims
        self._inventory = inventory
        self._transport = transport
        self._clock = clock
        self._effects = effects
        self._counts_once = counts_once

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for requests; what they ask about is read when they are answered."""
        yield Watch(self._requests, own_key)

    async def reconcile(self, key: Key) -> Result:
        """Answer a request, or delete it if it has expired."""
        request = self._requests.get(key)
        if request is None:
            return DONE
        remaining = _expires(request) - self._clock.now()
        if remaining <= timedelta(0):
            return await self._delete(request)
        if request.status is not None:
            return Result(requeue_after=remaining)
        return await self._answer(request)

    async def _answer(self, request: ResourcePoolStatusRequest) -> Result:
        pools = tuple(self._pools(request))
        if is_incomplete(pools, request.spec):
            return REQUEUE
        status = report(
            pools,
            request.spec,
            effects=self._effects,
            counts_once=self._counts_once,
        )
        complete = Condition(
            type=COMPLETE,
            status="True",
            reason="CalculationComplete",
            message=summary(status),
            last_transition_time=self._clock.now(),
        )
        answered = msgspec.structs.replace(
            request, status=msgspec.structs.replace(status, conditions=(complete,))
        )
        options = WriteOptions(field_manager=NAME)
        await self._transport.update(POOL_STATUS_REQUESTS, answered, "status", options)
        return DONE

    def _pools(self, request: ResourcePoolStatusRequest) -> Iterator[PoolContent]:
        uses = pool_uses(self._claims.values())
        for id_ in self._inventory.pools():
            pool = self._inventory.pool(id_)
            requested = request.spec.pool_name in (None, id_.pool)
            if pool is None or not requested or id_.driver != request.spec.driver:
                continue
            if slices := pool.current():
                devices = self._inventory.devices(id_)
                yield PoolContent(id_, slices, devices, uses.get(id_, PoolAllocations()))

    async def _delete(self, request: ResourcePoolStatusRequest) -> Result:
        try:
            await self._transport.delete(
                POOL_STATUS_REQUESTS,
                Key("", request.metadata.name),
                DeleteOptions(uid=request.metadata.uid),
            )
        except NotFound:
            return DONE
        return DONE


def _expires(request: ResourcePoolStatusRequest) -> datetime:
    """Return when a request is deleted."""
    created = request.metadata.creation_timestamp
    if request.status is None:
        return _after(created, KEPT_PENDING)
    conditions = request.status.conditions
    outcome = find_condition(conditions, COMPLETE) or find_condition(conditions, FAILED)
    return _after(outcome.last_transition_time if outcome is not None else created, KEPT)


def _after(since: datetime | None, retention: timedelta) -> datetime:
    # An object without a time is not deleted.
    return later(since, retention) if since is not None else END_OF_TIME
