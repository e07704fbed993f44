"""Prevents that a device is allocated twice where another scheduler allocates the same devices.

Two schedulers do not see each other's decisions until they are written, and a Kubernetes API server
accepts a device in two claims. Another scheduler may have decided and not yet written, so an
allocation is written only when no pod with claims waits for another scheduler, or after a time in
which that would have been written. The claims are read immediately before.

After the same time they are read once more, and then the pod is bound. If another claim got the
device meanwhile, our pod is not bound: a scheduler that does not check never gives way. Our claim
keeps its allocation until the other one is released, because for kube-scheduler a device is free as
soon as one of its claims is deallocated, and it would allocate the device again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.api.resource.types import ResourceClaim
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key, Transport
from sully.controllers.scheduling.claim_writer import ClaimChangedError
from sully.domain.allocation.requests import claim_key
from sully.domain.allocation.usage.conflicts import (
    Held,
    comes_first,
    conflict_of,
    held_by,
    holdings_of,
)
from sully.domain.claims.pods import still_runs
from sully.domain.devices.pools import DeviceId, device_of_result
from sully.domain.scheduling.objects import Pod
from sully.runtime.clock import Clock
from sully.scheduler.effects import Bind
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLAIMS

NEW_POD_SECONDS: Final = 10.0
"""How long a pod that another scheduler has not reported on may delay an allocation: kube-scheduler
writes at most 50 times a second, so many pods that are created together take their time."""
UNSCHEDULABLE_POD_SECONDS: Final = 1.0
"""The same for a pod that was unschedulable and is retried when a device is released."""
QUIET_SECONDS: Final = 0.5
"""How long no pod may have come to another scheduler, or been bound by it: pods come in groups, and
our cache shows them a little later."""
NEW: Final = timedelta(seconds=60)
"""The age up to which a pod is new: nothing may ever schedule an older one."""
STEP: Final = timedelta(seconds=0.1)
LEAST: Final = timedelta(milliseconds=1)
CONFLICT_INTERVAL: Final = timedelta(seconds=1)
"""How often it is checked whether the other claim was released."""


class CurrentClaims:
    """Lists all claims as they are now; calls at the same time share a list."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lock = asyncio.Lock()
        self._next: asyncio.Task[Sequence[ResourceClaim]] | None = None

    async def list(self) -> Sequence[ResourceClaim]:
        """Return the claims of a list that began after this call."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._list())
        return await self._next

    async def _list(self) -> Sequence[ResourceClaim]:
        async with self._lock:
            # Callers from here on may need what is written after this list began.
            self._next = None
            # Without a resource version it is a consistent read.
            return (await self._transport.list(CLAIMS)).items


class ForeignPods:
    """The pods with claims or extended resources that wait for another scheduler."""

    def __init__(self, pods: Informer[Pod], schedulers: frozenset[str], clock: Clock) -> None:
        self._schedulers = schedulers
        self._clock = clock
        self._changed_at: float | None = None
        """When such a pod came, was bound or was deleted."""
        self._waiting: dict[Key, datetime | None] = {}
        """When it was created; None if it was reported as unschedulable."""
        pods.on_change(self._changed)

    def ready_at(self, began: float) -> float:
        """Return until when to wait for their schedulers, from a moment on."""
        quiet = began if self._changed_at is None else self._changed_at + QUIET_SECONDS
        return max(began + self._seconds(), min(quiet, began + NEW_POD_SECONDS))

    def are_active(self) -> bool:
        """Report whether such a pod waits, or one did a short time ago."""
        if self._waiting:
            return True
        at = self._changed_at
        return at is not None and self._clock.monotonic() - at < NEW.total_seconds()

    def _seconds(self) -> float:
        if not self._waiting:
            return 0.0
        now = self._clock.now()
        is_new = any(at is not None and now - at < NEW for at in self._waiting.values())
        return NEW_POD_SECONDS if is_new else UNSCHEDULABLE_POD_SECONDS

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        key = key_of(new if new is not None else old)
        if new is None or not self._is_waiting(new):
            if key in self._waiting:
                del self._waiting[key]
                self._changed_at = self._clock.monotonic()
            return
        if key not in self._waiting:
            self._changed_at = self._clock.monotonic()
        condition = new.condition(POD_SCHEDULED)
        reported = condition is not None and condition.status == "False"
        self._waiting[key] = None if reported else new.metadata.creation_timestamp

    def _is_waiting(self, pod: Pod) -> bool:
        if pod.spec.node_name or pod.uses_scheduler(self._schedulers) or pod.spec.scheduling_gates:
            return False
        if not pod.is_active:
            return False
        return bool(pod.spec.resource_claims) or _has_extended_resources(pod)


def _has_extended_resources(pod: Pod) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any("/" in name for container in containers for name in container.resources.requests)


class AllocationCheck:
    """Checks allocations of pods that are being bound."""

    def __init__(
        self,
        *,
        claims: CurrentClaims,
        pods: Informer[Pod],
        inventory: Inventory,
        schedulers: frozenset[str],
        clock: Clock,
    ) -> None:
        self._claims = claims
        self._pods = pods
        self._foreign = ForeignPods(pods, schedulers, clock)
        self._inventory = inventory
        self._schedulers = schedulers
        self._clock = clock
        self._began: dict[Key, float] = {}
        """When the binding of a pod began, until its allocations are written."""
        self._written: dict[Key, float] = {}
        """When the allocations of a pod that is not bound yet were written."""
        self._in_conflict: set[Key] = set()
        """Pods with a device that another claim got, too."""

    def is_written(self, bind: Bind) -> bool:
        """Report whether the allocations of a pod were checked and written."""
        return bind.key in self._written

    def is_gone(self, bind: Bind) -> bool:
        """Report whether a pod was deleted meanwhile."""
        return not still_runs(self._pods.get(bind.key), bind.pod.metadata.uid)

    def delay(self, bind: Bind) -> timedelta | None:
        """Return when to look again before the next step of a binding; None: now.

        The steps are to write its allocations, and then to bind the pod.
        """
        if not has_allocations(bind):
            return None
        now = self._clock.monotonic()
        if bind.key in self._written:
            began = self._written[bind.key]
            delay = self._foreign.ready_at(began) - now
            if self._foreign.are_active():
                delay = max(delay, began + QUIET_SECONDS - now)
        else:
            delay = self._foreign.ready_at(self._began.setdefault(bind.key, now)) - now
        # A delay that rounds to nothing would be requeued without end.
        return max(LEAST, min(STEP, timedelta(seconds=delay))) if delay > 0 else None

    async def before(self, bind: Bind) -> None:
        """Raise if another claim has a device that is going to be allocated."""
        new = list(_allocations(bind))
        claims = await self._claims.list() if new else ()
        for mine, held in new:
            for other, device in self._conflicts(mine, held, claims):
                raise ClaimChangedError(_text(device, other))

    def written(self, bind: Bind) -> None:
        """Note that the allocations of a pod were written."""
        self._began.pop(bind.key, None)
        self._written.setdefault(bind.key, self._clock.monotonic())

    def was_in_conflict(self, bind: Bind) -> bool:
        """Report whether another claim had a device of a pod, which it no longer may have."""
        return bind.key in self._in_conflict

    async def after(self, bind: Bind, claims: Iterable[ResourceClaim]) -> str:
        """Return why a pod must not be bound to its devices; empty if it may."""
        new = {claim_key(mine) for mine, _ in _allocations(bind)}
        current = await self._claims.list()
        for mine in claims:
            held = [(claim_key(mine), result) for result in held_by(mine.status.allocation)]
            for other, device in self._conflicts(mine, held, current):
                if claim_key(mine) in new and not self._gives_way(other, mine):
                    self._in_conflict.add(bind.key)
                    return _text(device, other)
        return ""

    def forget(self, key: Key) -> None:
        """Forget a pod that is bound, or gets another attempt."""
        self._began.pop(key, None)
        self._written.pop(key, None)
        self._in_conflict.discard(key)

    def _gives_way(self, other: ResourceClaim, mine: ResourceClaim) -> bool:
        """Report whether the scheduler of another claim gives way to ours: it checks as we do."""
        consumers = [
            self._pods.get(Key(other.metadata.namespace, consumer.name))
            for consumer in other.status.reserved_for
        ]
        return comes_first(mine, other) and all(
            pod is not None and not pod.spec.node_name and pod.uses_scheduler(self._schedulers)
            for pod in consumers
        )

    def _conflicts(
        self, mine: ResourceClaim, held: Sequence[Held], claims: Iterable[ResourceClaim]
    ) -> Iterator[tuple[ResourceClaim, DeviceId]]:
        devices = {device_of_result(holding[1]) for holding in held}
        others: dict[DeviceId, list[tuple[ResourceClaim, Held]]] = {}
        for claim, holding in holdings_of(claims):
            device = device_of_result(holding[1])
            if device in devices and claim_key(claim) != claim_key(mine):
                others.setdefault(device, []).append((claim, holding))
        for device, rivals in others.items():
            known = self._inventory.device(device)
            ours = [holding for holding in held if device_of_result(holding[1]) == device]
            content = known.content if known is not None else None
            if conflict_of([*ours, *(holding for _, holding in rivals)], content) is not None:
                yield from ((claim, device) for claim, _ in rivals)


def has_allocations(bind: Bind) -> bool:
    """Report whether a binding allocates devices."""
    return bind.extended is not None or any(bound.allocation is not None for bound in bind.claims)


def _allocations(bind: Bind) -> Iterator[tuple[ResourceClaim, list[Held]]]:
    """Yield the claims that are going to be allocated, with their devices."""
    new = [(bound.claim, bound.allocation) for bound in bind.claims if bound.allocation is not None]
    if bind.extended is not None:
        new.append((bind.extended.claim, bind.extended.allocation))
    for claim, allocation in new:
        yield claim, [(claim_key(claim), result) for result in held_by(allocation)]


def _text(device: DeviceId, other: ResourceClaim) -> str:
    return f"device {device} got allocated to claim {claim_key(other)} in the meantime"
