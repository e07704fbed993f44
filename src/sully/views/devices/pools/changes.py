"""Which pools to evaluate again when an object changes, for views of devices.

An event affects few pools. What is not shown, such as the status of a rule, affects none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import is_
from typing import Any, Protocol, TypeVar

from sully.api.resource.types import (
    DeviceClass,
    DeviceTaintRule,
    DeviceTaintSelector,
    ResourceClaim,
    ResourceSlicePatch,
)
from sully.client.informers.cache import Cache
from sully.client.transport import Kind
from sully.domain.claims.pods import Pod
from sully.domain.devices.pools import PoolId
from sully.domain.scheduling.objects import Node
from sully.views.devices.inventory import Inventory
from sully.views.devices.name_index import names_in
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, PATCHES, RULES
from sully.views.snapshot.kinds import NODES

T = TypeVar("T")
TaintingObject = DeviceTaintRule | ResourceSlicePatch
_Same = Callable[[Any, Any], bool]


class Watched(Protocol):
    """The caches of all kinds that are shown."""

    def of(self, kind: Kind[T]) -> Cache[T]:
        """Return the objects of a kind."""


def on_pool_change(
    caches: Watched,
    inventory: Inventory,
    usage: Usage,
    changed: Callable[[Iterable[PoolId]], None],
    *,
    pods: Kind[Any] = CONSUMER_PODS,
    shows_class: Callable[[DeviceClass], bool] = lambda _: True,
) -> None:
    """Call `changed` with the pools to evaluate again, from now on."""
    begun = False

    def listen(kind: Kind[T], pools: Callable[[T], Iterable[PoolId]], same: _Same = is_) -> None:
        def handle(old: T | None, new: T | None) -> None:
            for obj in (old, new) if begun and not same(old, new) else ():
                if obj is not None:
                    changed(pools(obj))

        caches.of(kind).on_change(handle)

    affected = partial(_affected_pools, inventory, usage)

    def pools_of(pod: Pod) -> Iterable[PoolId]:
        return [id_ for claim in usage.claims_of(pod) for id_ in _pools(claim)]

    listen(RULES, affected, _shows_the_same)
    listen(PATCHES, affected, _shows_the_same)
    listen(CLASSES, lambda class_: inventory.pools() if shows_class(class_) else ())
    listen(CLAIMS, _pools)
    listen(NODES, lambda node: inventory.pools_for(node.metadata.name), _is_as_schedulable)
    listen(pods, pools_of)
    inventory.on_change(lambda change: changed(change.pools) if begun else None)
    begun = True


def _shows_the_same(old: TaintingObject | None, new: TaintingObject | None) -> bool:
    """Report whether nothing changed that is shown.

    Annotations are, such as the expiry; the status, which changes all the time, is not.
    """
    if old is None or new is None:
        return False
    before, after = old.metadata, new.metadata
    return old.spec == new.spec and before.annotations == after.annotations


def _is_as_schedulable(old: Node | None, new: Node | None) -> bool:
    """Report whether nothing changed that decides whether a node gets new pods."""
    return old is not None and new is not None and old.spec == new.spec


def _affected_pools(inventory: Inventory, usage: Usage, source: TaintingObject) -> Iterable[PoolId]:
    """Return the pools with devices that a rule or patch selects.

    A device that no slice has any more is not in the inventory, but may still be allocated.
    """
    if isinstance(source, DeviceTaintRule):
        selector = source.spec.device_selector or DeviceTaintSelector()
    else:
        selector = source.spec.devices.filter or DeviceTaintSelector()
    pools = {device.pool_id: None for device in inventory.named(selector)}
    return pools | {x.device.pool_id: None for x in usage.allocated(names_in(selector))}


def _pools(claim: ResourceClaim) -> Iterable[PoolId]:
    if claim.status.allocation is None:
        return ()
    results = claim.status.allocation.devices.results
    return {PoolId(result.driver, result.pool): None for result in results}
