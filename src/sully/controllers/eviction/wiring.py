"""Constructs the controllers of eviction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sully.api.resource.types import DeviceTaintRule
from sully.client.informers.informer import Informer
from sully.controllers.eviction.controller import NAME, EvictionController
from sully.controllers.eviction.executor import Executor, Publisher
from sully.controllers.eviction.metrics import EvictionMetrics
from sully.controllers.eviction.other_evictor import OtherEvictor
from sully.controllers.eviction.status import RuleStatuses
from sully.controllers.eviction.unused_claims import UnusedClaimController
from sully.controllers.framework.controller import ControllerEnv
from sully.controllers.framework.manager import Manager
from sully.domain.capabilities.evictors import OF_SULLY
from sully.domain.devices.taints import BUDGET_EFFECTS
from sully.evictor.core import Evictor
from sully.evictor.records import RecordSources
from sully.evictor.settings import EvictionOptions
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.views.devices.exposures import Exposures
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, PARTIAL_EVICTION_RECORDS, TAINT_RECORDS
from sully.views.snapshot.kinds import BUDGETS, PODS

Describer = Callable[[DeviceTaintRule], str]
"""Describes a rule that is about to be written; empty while caches are filling."""


class EvictionControllers(NamedTuple):
    """The controllers of eviction."""

    statuses: RuleStatuses
    eviction: EvictionController
    unused_claims: UnusedClaimController | None
    describe: Describer


def make_eviction(
    manager: Manager,
    inventory: Inventory,
    options: EvictionOptions,
    *,
    env: ControllerEnv,
    metrics: Metrics,
    notifier: Publisher | None = None,
) -> EvictionControllers:
    """Return the controllers. Start that of the status first: it reports before evictions."""
    exposures, caches = _exposures(manager, inventory, options, env.clock)
    evictor = Evictor(
        exposures,
        options,
        sources=_sources(manager, options) if options.records else None,
        caches=[cache.freshness for cache in caches],
    )
    statuses = (
        RuleStatuses(exposures, evictor.records, env, NAME)
        if options.alone
        else RuleStatuses(exposures, evictor.records, env, OF_SULLY, OtherEvictor(env))
    )
    controller = EvictionController(
        evictor,
        exposures,
        Executor(env, notifier),
        statuses,
        EvictionMetrics(metrics),
        env.clock,
    )
    budgets = not BUDGET_EFFECTS.isdisjoint(options.policy.effects)
    controller.follow(caches, manager.informer(BUDGETS) if budgets else None)
    claims = manager.informer(CLAIMS)
    unused = UnusedClaimController(claims, exposures, env)
    deallocates = options.compat.deallocates_tainted_claims
    describe = _describer(exposures, caches)
    return EvictionControllers(statuses, controller, unused if deallocates else None, describe)


def make_describer(
    manager: Manager, inventory: Inventory, options: EvictionOptions, clock: Clock
) -> Describer:
    """Return what describes rules where the eviction controller runs in another process."""
    return _describer(*_exposures(manager, inventory, options, clock))


def _exposures(
    manager: Manager, inventory: Inventory, options: EvictionOptions, clock: Clock
) -> tuple[Exposures, tuple[Informer[Any], ...]]:
    """Return the pods on tainted devices, and the caches that they are read from."""
    usage = Usage(
        pods=manager.informer(PODS),
        claims=manager.informer(CLAIMS),
        extended_resources=options.compat.evicts_extended_resources,
        pod_groups=options.pod_groups,
    )
    exposures = Exposures(
        inventory,
        usage,
        clock=clock,
        policy=options.policy,
        pauses=options.pauses,
        rates=options.rates,
    )
    return exposures, eviction_caches(manager, inventory)


def eviction_caches(manager: Manager, inventory: Inventory) -> tuple[Informer[Any], ...]:
    """Return the caches that have to be fresh before a pod is evicted."""
    sources = (cache for cache in inventory.sources if isinstance(cache, Informer))
    return (manager.informer(PODS), manager.informer(CLAIMS), *sources)


def _describer(exposures: Exposures, caches: tuple[Informer[Any], ...]) -> Describer:
    def describe(rule: DeviceTaintRule) -> str:
        return exposures.describe(rule) if all(cache.synced for cache in caches) else ""

    return describe


def _sources(manager: Manager, options: EvictionOptions) -> RecordSources:
    """Return the records of earlier evictions in the caches."""
    evictions = manager.informer(PARTIAL_EVICTION_RECORDS)
    if not options.totals:
        return RecordSources(evictions.values)
    taints = manager.informer(TAINT_RECORDS)
    return RecordSources(
        evictions.values,
        lambda: {record.spec.rule.uid: record.status.evicted for record in taints.values()},
    )
