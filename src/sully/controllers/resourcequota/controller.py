"""Keeps the status of quotas: the hard limits, and what is used of them.

Reads quotas and everything they count; writes their status. The server charges what is created and
releases what is deleted (server/admission/quota.py), so the usage is calculated when the limits
change, and where the object alone does not show what is released. A status is written only if
nothing was charged since the quota was read; otherwise it is calculated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sully.api.resource.types import ResourceClaim
from sully.client.informers.informer import Informer, own_key
from sully.client.objects import key_of
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Filtered
from sully.controllers.resourcequota.usage import UsageCalculator
from sully.domain.quota.decisions import is_recounted, same_amounts
from sully.domain.quota.objects import ResourceQuota, ResourceQuotaStatus
from sully.domain.quota.pods import is_pod_resource
from sully.domain.scheduling.objects import Pod
from sully.runtime.clock import Clock

QUOTAS: Kind[ResourceQuota] = Kind("", "v1", "resourcequotas", "ResourceQuota", ResourceQuota)
RESYNC = timedelta(minutes=5)
"""How often the usage is calculated without an event."""
RECALCULATE = timedelta(seconds=1)
"""A server that did not yet see a new quota may have created something without charging it."""
_BY_NAMESPACE = "resourcequota-controller/namespace"


class ResourceQuotaController:
    """Calculates the usage of quotas."""

    name = "resourcequota-controller"

    def __init__(
        self,
        *,
        quotas: Informer[ResourceQuota],
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        usage: UsageCalculator,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._quotas = quotas
        self._pods = pods
        self._claims = claims
        self._usage = usage
        self._transport = transport
        self._clock = clock
        quotas.add_index(_BY_NAMESPACE, lambda quota: (quota.metadata.namespace,))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for new limits, and for pods and claims that the server cannot release."""
        yield Watch(Filtered(self._quotas, _has_new_limits), own_key)
        yield Watch(Filtered(self._pods, _is_released), self._recalculated_quotas)
        yield Watch(Filtered(self._pods, self._is_overdue), self._pod_quotas)
        yield Watch(Filtered(self._claims, _is_released), self._recalculated_quotas)

    def _recalculated_quotas(self, obj: Pod | ResourceClaim) -> Iterable[Key]:
        """Yield the quotas for extended resources: those may count for a pod or for a claim."""
        return self._quotas_with(obj, is_recounted)

    def _pod_quotas(self, pod: Pod) -> Iterable[Key]:
        return self._quotas_with(pod, is_pod_resource)

    def _quotas_with(self, obj: object, matches: Callable[[str], bool]) -> Iterable[Key]:
        for quota in self._quotas.by_index(_BY_NAMESPACE, key_of(obj).namespace):
            if any(map(matches, quota.spec.hard)):
                yield key_of(quota)

    def _is_overdue(self, old: Pod | None, _new: Pod | None) -> bool:
        """Report whether a changed pod may still count though its grace period is over."""
        end = None if old is None else old.metadata.deletion_timestamp
        grace = 0 if old is None else old.metadata.deletion_grace_period_seconds or 0
        # With a grace period of 0 it was reconciled before.
        return end is not None and grace > 0 and (self._clock.now() - end).total_seconds() > grace

    async def reconcile(self, key: Key) -> Result:
        """Calculate the usage of a quota, and write it if it changed."""
        quota = self._quotas.get(key)
        if quota is None:
            return DONE
        hard, before = quota.spec.hard, quota.status.used
        limited = {name: amount for name, amount in before.items() if name in hard}
        used = limited | await self._usage.used(quota)
        if same_amounts(quota.status.hard, hard) and same_amounts(before, used):
            return Result(requeue_after=RESYNC)
        updated = replace(quota, status=ResourceQuotaStatus(hard=hard, used=used))
        await self._transport.update(QUOTAS, updated, "status")
        return Result(requeue_after=RESYNC if before else RECALCULATE)


def _has_new_limits(old: ResourceQuota | None, new: ResourceQuota | None) -> bool:
    return new is not None and (old is None or old.spec != new.spec)


def _is_released(old: Pod | ResourceClaim | None, new: Pod | ResourceClaim | None) -> bool:
    if isinstance(old, Pod) and isinstance(new, Pod):
        return new.is_terminal and not old.is_terminal
    return new is None
