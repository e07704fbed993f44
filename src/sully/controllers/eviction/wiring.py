"""Puts the two controllers of eviction together."""

from __future__ import annotations

from dataclasses import dataclass

from sully.client.events import EventRecorder
from sully.client.informers.informer import Informer
from sully.client.transport import Transport
from sully.controllers.eviction.controller import NAME, EvictionController
from sully.controllers.eviction.evictor import Evictor
from sully.controllers.eviction.metrics import EvictionMetrics
from sully.controllers.eviction.outlook import Outlook
from sully.controllers.eviction.records import Records
from sully.controllers.eviction.settings import EvictionOptions
from sully.controllers.eviction.status import RuleStatuses
from sully.controllers.kinds import PAST_EVICTIONS
from sully.controllers.manager import Manager
from sully.controllers.workloads import BUDGETS
from sully.domain.devices.taints import NO_EXECUTE_WITH_BUDGET
from sully.runtime.clock import Clock
from sully.runtime.metrics import Metrics
from sully.views.devices.exposures import Exposures
from sully.views.devices.inventory import Inventory
from sully.views.devices.usage import Usage
from sully.views.kinds import CLAIMS, PODS


@dataclass(frozen=True, slots=True)
class Access:
    """How a controller acts, and tells people what it did."""

    transport: Transport
    recorder: EventRecorder


def make_eviction(
    manager: Manager,
    inventory: Inventory,
    access: Access,
    options: EvictionOptions,
    clock: Clock,
    metrics: Metrics,
) -> tuple[RuleStatuses, EvictionController]:
    """Return both controllers; add the first one first, so that it speaks before the other acts."""
    pods, claims = manager.informer(PODS), manager.informer(CLAIMS)
    usage = Usage(
        pods=pods,
        claims=claims,
        extended_resources=options.compat.evicts_extended_resources,
        pod_groups=options.pod_groups,
    )
    exposures = Exposures(inventory, usage, clock=clock, terms=options.terms, pauses=options.pauses)
    past = manager.informer(PAST_EVICTIONS) if options.records else None
    records = Records(access.transport, past, exposures, clock)
    outlook = Outlook(exposures=exposures, records=records, clock=clock, options=options)
    statuses = RuleStatuses(outlook, access.transport, access.recorder, NAME)
    budgets = NO_EXECUTE_WITH_BUDGET in options.terms.effects
    controller = EvictionController(
        outlook,
        Evictor(access.transport, access.recorder, clock, records),
        statuses,
        EvictionMetrics(metrics),
        (pods, claims, *(each for each in inventory.sources if isinstance(each, Informer))),
        manager.informer(BUDGETS) if budgets else None,
    )
    return statuses, controller
