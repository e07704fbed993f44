"""Counts the devices of each pool again when it changed, and keeps the sums.

Reads the inventory and claims; writes nothing but metrics. A scrape only reads the sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

from sully.api.resource.types import DeviceClass, ResourceClaim
from sully.client.informers.informer import Informer
from sully.client.transport import Key
from sully.controllers.devicemetrics.metrics import CLASSES, POOLS, DeviceMetrics
from sully.controllers.framework.controller import DONE, Result, Watch
from sully.controllers.framework.sources import Channel, same_key
from sully.domain.allocation.usage.conflicts import results_of
from sully.domain.devicepolicies.rules import policy_name
from sully.domain.devices.pools import PoolId
from sully.domain.devices.taints import SourcedTaint
from sully.domain.observability.pool_counts import (
    Blocker,
    BlockingTaint,
    DeviceStatus,
    PoolCounts,
    count_pool,
    repaired,
)
from sully.domain.planning.device_counts import DeviceCounter
from sully.machinery.cel import CostBudget
from sully.runtime.clock import Clock
from sully.runtime.metrics import Values
from sully.views.devices.inventory import Inventory

NAME: Final = "device-metrics-controller"
COST_UNITS: Final = 1_000_000
"""What the expressions of all classes may cost for one pool; results are cached."""
ALL: Final = Key("", "pools")
"""One key stands for all pools that changed: counting one takes less than queueing it."""
BATCH_SECONDS: Final = 0.001
"""Seconds after which other tasks get their turn."""
CONTINUE: Final = Result(requeue_after=timedelta(0))


class PoolMetricsController:
    """Keeps the counts of devices up to date."""

    name = NAME

    def __init__(
        self,
        *,
        inventory: Inventory,
        classes: Informer[DeviceClass],
        claims: Informer[ResourceClaim],
        metrics: DeviceMetrics,
        clock: Clock,
    ) -> None:
        self._inventory = inventory
        self._classes = classes
        self._metrics = metrics
        self._clock = clock
        self._counts: dict[PoolId, PoolCounts] = {}
        self._class_totals: Counter[tuple[str, DeviceStatus]] = Counter()
        self._blocked: dict[str, Counter[BlockingTaint]] = {}
        self._allocated: dict[PoolId, Counter[str]] = {}
        """The devices of a pool that claims hold, and how many do."""
        self._uncounted: dict[PoolId, None] = {}
        """Pools that changed since they were counted, in order."""
        self._changed: Channel[Key] = Channel(lambda: [ALL])
        inventory.on_change(lambda change: self._enqueue(change.pools))
        claims.on_change(self._claim_changed)
        classes.on_change(self._class_changed)
        metrics.follow(POOLS, self._pool_values)
        metrics.follow(CLASSES, self._class_values)

    def watches(self) -> Iterable[Watch[Any]]:
        """Wake for pools whose devices, taints, classes or claims changed."""
        yield Watch(self._changed, same_key)

    @property
    def blocked(self) -> dict[str, Counter[BlockingTaint]]:
        """Return by class the taints that keep devices unused, with the number of pools."""
        return self._blocked

    async def reconcile(self, _: Key) -> Result:
        """Count the devices of pools that changed."""
        classes = {class_.metadata.name: class_ for class_ in self._classes.values()}
        counter = DeviceCounter(classes)
        until = self._clock.monotonic() + BATCH_SECONDS
        while self._uncounted:
            pool = next(iter(self._uncounted))
            del self._uncounted[pool]
            counter.budget = CostBudget(COST_UNITS)
            self._count(pool, counter)
            if self._clock.monotonic() >= until:
                return CONTINUE
        return DONE

    def _count(self, pool: PoolId, counter: DeviceCounter) -> None:
        before, devices = self._counts.pop(pool, PoolCounts()), self._inventory.devices(pool)
        after = count_pool(
            devices,
            allocated=self._allocated.get(pool, ()),
            classes_of=counter.classes_of,
            blocker_of=self._blocker,
        )
        self._replace(before, after)
        if devices:
            self._counts[pool] = after
        for since in repaired(before, after, devices):
            self._metrics.repaired(pool.driver, (self._clock.now() - since).total_seconds())

    def _enqueue(self, pools: Iterable[PoolId]) -> None:
        self._uncounted.update(dict.fromkeys(pools))
        if self._uncounted:
            self._changed.send(ALL)

    def _replace(self, before: PoolCounts, after: PoolCounts) -> None:
        self._class_totals.subtract(before.classes)
        self._class_totals.update(after.classes)
        for key in [key for key, count in self._class_totals.items() if not count]:
            del self._class_totals[key]
        for class_, taints in before.blocked.items():
            total = self._blocked[class_]
            total.subtract(taints)
            for taint in taints:
                if not total[taint]:
                    del total[taint]
        for class_, taints in after.blocked.items():
            self._blocked.setdefault(class_, Counter()).update(taints)

    def _blocker(self, sourced: SourcedTaint) -> Blocker:
        origin = sourced.origin
        if origin.kind == "DeviceTaintRule":
            rule = self._inventory.rule(origin.name)
            policy = policy_name(rule) if rule is not None else ""
            return Blocker("DeviceTaintPolicy", policy) if policy else Blocker(*_named(sourced))
        if origin.kind == "ResourceSlice":
            slice_ = self._inventory.slice(origin.name)
            return Blocker(origin.kind, slice_.spec.driver if slice_ is not None else "")
        return Blocker(*_named(sourced))

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        before, after = _devices(old), _devices(new)
        if before == after:
            return
        for pool, device in before:
            held = self._allocated[pool]
            held[device] -= 1
            if not held[device]:
                del held[device]
            if not held:
                del self._allocated[pool]
        for pool, device in after:
            self._allocated.setdefault(pool, Counter())[device] += 1
        self._enqueue(pool for pool, _ in (*before, *after))

    def _class_changed(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        if old is not None and new is not None and old.spec.selectors == new.spec.selectors:
            return
        self._enqueue(self._inventory.pools())

    def _pool_values(self) -> Values:
        return {
            (*pool, effect, _label(allocated)): count
            for pool, counts in self._counts.items()
            for (effect, allocated), count in counts.devices.items()
        }

    def _class_values(self) -> Values:
        return {
            (class_, effect, _label(allocated)): count
            for (class_, (effect, allocated)), count in self._class_totals.items()
        }


def _devices(claim: ResourceClaim | None) -> list[tuple[PoolId, str]]:
    """Return the devices that a claim holds; admin access leaves a device to others."""
    if claim is None:
        return []
    results = (result for result in results_of(claim) if not result.admin_access)
    return [(PoolId(result.driver, result.pool), result.device) for result in results]


def _named(sourced: SourcedTaint) -> tuple[str, str]:
    return sourced.origin.kind, sourced.origin.name


def _label(value: bool) -> str:
    return "true" if value else "false"
