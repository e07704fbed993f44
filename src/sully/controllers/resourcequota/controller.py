"""Keeps the status of quotas: the limits in force, and what is used of them.

Reads quotas and everything they count; writes their status. The server charges what is created
(server/quota_admission.py); what is deleted, and pods that end, are released here. A status is
written only if nothing was charged since the quota was read; then it is counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Generic, TypeVar

from sully.client.collection import Copy
from sully.client.informer import Informer
from sully.client.objects import key_of
from sully.client.transport import Key, Kind, Transport
from sully.controllers.framework import DONE, Result, Watch
from sully.controllers.resourcequota.counting import Counting
from sully.domain.ownership import Owned
from sully.domain.quota.decisions import same_amounts
from sully.domain.quota.evaluators import Claims, evaluator
from sully.domain.workloads import Pod
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

    def __init__(self, copy: Copy[T], matters: Callable[[T | None, T | None], bool]) -> None:
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
        objects: Iterable[Informer[Owned]],
        counting: Counting,
        transport: Transport,
        clock: Clock,
    ) -> None:
        self._quotas = quotas
        self._pods = pods
        self._objects = tuple(objects)
        self._counting = counting
        self._transport = transport
        self._clock = clock
        quotas.add_index(_BY_NAMESPACE, lambda quota: (quota["metadata"]["namespace"],))

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for new limits, for objects that go, and for pods that end."""
        yield Watch(Filtered(self._quotas, _has_new_limits), lambda quota: (key_of(quota),))
        yield Watch(Filtered(self._pods, _uses_less), self._counters_of(self._pods.kind))
        for informer in self._objects:
            yield Watch(Filtered(informer, _is_gone), self._counters_of(informer.kind))

    def _counters_of(self, kind: Kind[Any]) -> Callable[[Any], Iterable[Key]]:
        """Return what names the quotas that an object of a kind is counted by."""
        judge = evaluator(kind.group, kind.plural, self._clock.now(), Claims())
        claims = kind.plural == "resourceclaims"

        def keys(obj: Any) -> Iterable[Key]:
            for quota in self._quotas.by_index(_BY_NAMESPACE, key_of(obj).namespace):
                names = quota["spec"].get("hard") or {}
                extended = claims and any(name.startswith("requests.") for name in names)
                if extended or judge.matching(names):
                    yield key_of(quota)

        return keys

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


def _is_gone(_old: object, new: object | None) -> bool:
    return new is None


def _uses_less(old: Pod | None, new: Pod | None) -> bool:
    """Say whether a pod ended, or is in other scopes now."""
    if old is None or new is None:
        return new is None
    deadlines = old.spec.active_deadline_seconds, new.spec.active_deadline_seconds
    return old.finished != new.finished or (deadlines[0] is None) != (deadlines[1] is None)
