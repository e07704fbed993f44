"""Keeps the status of quotas: the limits in force, and what is used of them.

Reads quotas and everything they count; writes their status. The server charges what is created and
releases what is deleted (server/admission/quota.py), so a quota is counted when its limits are new,
and where the object alone does not tell what is released. A status is written only if nothing was
charged since the quota was read; otherwise it is counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from sully.api.resource.types import ResourceClaim
from sully.client.informers.cache import Cache
from sully.client.informers.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.resourcequota.counting import Counting
from sully.domain.quota.decisions import is_recounted, same_amounts
from sully.domain.quota.pods import is_pod_resource
from sully.domain.scheduling.objects import Pod
from sully.runtime.clock import Clock

Obj = dict[str, Any]
T = TypeVar("T")

QUOTAS: Kind[Obj] = Kind("", "v1", "resourcequotas", "ResourceQuota", dict)
RESYNC = timedelta(minutes=5)
"""How often a quota is counted though nothing seems to have changed."""
RECOUNT = timedelta(seconds=1)
"""A server that did not yet know of a new quota may have created something without charging it."""
_BY_NAMESPACE = "resourcequota-controller/namespace"


class Filtered(Generic[T]):
    """The changes of a collection that matter, each once: a source like an informer."""

    def __init__(self, copy: Cache[T], matters: Callable[[T | None, T | None], bool]) -> None:
        self._copy = copy
        self._matters = matters

    def enqueue(
        self, add: Callable[[Key], None], to_keys: Callable[[T], Iterable[Key]]
    ) -> Callable[[], None]:
        """Add the keys that a change touches, by the new state, or the last one."""

        def handle(old: T | None, new: T | None) -> None:
            left = new if new is not None else old
            if left is not None and self._matters(old, new):
                for key in to_keys(left):
                    add(key)

        return self._copy.on_change(handle)


class ResourceQuotaController:
    """Counts for quotas."""

    name = "resourcequota-controller"

    def __init__(
        self,
        *,
        quotas: Informer[Obj],
        pods: Informer[Pod],
        claims: Informer[ResourceClaim],
        counting: Counting,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._quotas = quotas
        self._pods = pods
        self._claims = claims
        self._counting = counting
        self._transport = transport
        self._clock = clock
        quotas.add_index(_BY_NAMESPACE, lambda quota: (quota["metadata"]["namespace"],))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for new limits, and for pods and claims that go where that is not enough."""
        yield Watch(Filtered(self._quotas, _has_new_limits), lambda quota: (key_of(quota),))
        yield Watch(Filtered(self._pods, _has_gone), self._recounting)
        yield Watch(Filtered(self._pods, self._is_overdue), self._counting_pods)
        yield Watch(Filtered(self._claims, _has_gone), self._recounting)

    def _recounting(self, obj: Pod | ResourceClaim) -> Iterable[Key]:
        """Yield the quotas for extended resources: those may count for a pod or for a claim."""
        return self._limiting(obj, is_recounted)

    def _counting_pods(self, pod: Pod) -> Iterable[Key]:
        return self._limiting(pod, is_pod_resource)

    def _limiting(self, obj: object, matches: Callable[[str], bool]) -> Iterable[Key]:
        for quota in self._quotas.by_index(_BY_NAMESPACE, key_of(obj).namespace):
            if any(map(matches, quota["spec"].get("hard") or ())):
                yield key_of(quota)

    def _is_overdue(self, old: Pod | None, _new: Pod | None) -> bool:
        """Report whether a changed pod may still count though its grace period is over."""
        end = None if old is None else old.metadata.deletion_timestamp
        grace = 0 if old is None else old.metadata.deletion_grace_period_seconds or 0
        # At the very end it has no grace period left; then it was looked at before.
        return end is not None and grace > 0 and (self._clock.now() - end).total_seconds() > grace

    async def reconcile(self, key: Key) -> Result:
        """Count for a quota and write what is new."""
        quota = self._quotas.get(key)
        if quota is None:
            return DONE
        hard, status = quota["spec"].get("hard") or {}, quota.get("status") or {}
        before = status.get("used") or {}
        kept = {name: amount for name, amount in before.items() if name in hard}
        used = kept | await self._counting.used(quota)
        if same_amounts(status.get("hard") or {}, hard) and same_amounts(before, used):
            return Result(requeue_after=RESYNC)
        counted = {**quota, "status": {"hard": hard, "used": used}}
        await self._transport.update(QUOTAS, counted, "status")
        return Result(requeue_after=RESYNC if before else RECOUNT)


def _has_new_limits(old: Obj | None, new: Obj | None) -> bool:
    return new is not None and (old is None or old["spec"] != new["spec"])


def _has_gone(old: Pod | ResourceClaim | None, new: Pod | ResourceClaim | None) -> bool:
    if isinstance(old, Pod) and isinstance(new, Pod):
        return new.finished and not old.finished
    return new is None
