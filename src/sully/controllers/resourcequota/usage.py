"""Calculates what a namespace uses of a quota, from lists at least as new as the quota.

A create charges a quota in the transaction that writes the object. So a list that is read after the
quota has every object that is charged to it, and the usage is right for that revision of the quota.
Caches are not enough: one may be ahead of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from sully.api.resource.types import DeviceClass
from sully.client.informers.informer import Informer
from sully.client.options import ListOptions
from sully.client.transport import Kind, Transport
from sully.controllers.framework.kinds import PartialObjectMetadata
from sully.domain.quota.decisions import total
from sully.domain.quota.devices import extended_claim_owner, is_claim_of
from sully.domain.quota.evaluators import Claims, ObjectCounts, evaluator
from sully.domain.quota.objects import ResourceQuota
from sully.domain.quota.pods import Usage, pod_usage
from sully.machinery.formats.quantity import Quantity
from sully.machinery.meta import Wire
from sully.runtime.clock import Clock

Obj = dict[str, Any]

_ONE = ListOptions(limit=1)


class QuotaObject(Wire, frozen=True, kw_only=True):
    """A pod, claim or service, with all fields that count."""

    metadata: Obj
    spec: Obj
    status: Obj = msgspec.field(default_factory=dict)


class UsageCalculator:
    """Lists the objects of a namespace and sums up what they use."""

    def __init__(
        self,
        transport: Transport,
        kinds: Iterable[Kind[Any]],
        classes: Informer[DeviceClass],
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._kinds = tuple(kinds)
        self._classes = classes
        self._clock = clock
        self.custom: Callable[[], Iterable[Kind[Any]]] = tuple
        """Returns the kinds of definitions, which change."""

    async def used(self, quota: ResourceQuota) -> dict[str, str]:
        """Return `status.used` for a quota."""
        limited = quota.spec.hard.keys()
        used: Usage = {}
        for kind in (*self._kinds, *self.custom()):
            for name, amount in (await self._of_kind(kind, quota, limited)).items():
                used[name] = used[name] + amount if name in used else amount
        return {name: str(amount) for name, amount in used.items()}

    async def _of_kind(
        self, kind: Kind[Any], quota: ResourceQuota, limited: Collection[str]
    ) -> Usage:
        namespace, now = quota.metadata.namespace, self._clock.now()
        quota_evaluator = evaluator(kind.group, kind.plural, now, Claims(self._resources()))
        if not quota_evaluator.matching(limited):
            return {}
        if not isinstance(quota_evaluator, ObjectCounts):
            objects = await self._objects(kind, namespace)
            if isinstance(quota_evaluator, Claims):
                quota_evaluator = await self._with_owners(quota_evaluator, namespace, objects, now)
            return total(quota, quota_evaluator, objects)
        one = total(quota, quota_evaluator, ({},))
        number = Quantity.of(await self._number(kind, namespace))
        return {name: number if counts else counts for name, counts in one.items()}

    async def _number(self, kind: Kind[Any], namespace: str) -> int:
        page = await self._transport.list(kind.read_as(PartialObjectMetadata), namespace, _ONE)
        return len(page.items) + (page.remaining or 0)

    async def _objects(self, kind: Kind[Any], namespace: str) -> list[Obj]:
        page = await self._transport.list(kind.read_as(QuotaObject), namespace)
        return [msgspec.structs.asdict(item) for item in page.items]

    def _resources(self) -> Mapping[str, str]:
        return {
            device_class.metadata.name: device_class.spec.extended_resource_name or ""
            for device_class in self._classes.values()
        }

    async def _with_owners(
        self, evaluator: Claims, namespace: str, claims: Iterable[Obj], now: datetime
    ) -> Claims:
        """Return an evaluator that leaves out what the pods of claims already count."""
        owned: dict[str, list[Obj]] = {}
        for claim in claims:
            if (owner := extended_claim_owner(claim)) is not None:
                owned.setdefault(owner["uid"], []).append(claim)
        if not owned:
            return evaluator
        pods_kind = next(kind for kind in self._kinds if (kind.group, kind.plural) == ("", "pods"))
        pods = {pod["metadata"]["uid"]: pod for pod in await self._objects(pods_kind, namespace)}

        def owner_usage(claim: Obj) -> Usage:
            owner = extended_claim_owner(claim)
            pod = None if owner is None else pods.get(owner["uid"])
            if owner is None or pod is None or pod["metadata"]["name"] != owner["name"]:
                return {}
            return pod_usage(pod, now) if is_claim_of(claim, pod, owned[owner["uid"]]) else {}

        return Claims(evaluator.classes, owner_usage)
