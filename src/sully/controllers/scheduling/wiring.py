"""Constructs the scheduler and adds it to a manager."""

from __future__ import annotations

from sully.client.transport import Transport
from sully.controllers.framework.manager import Manager
from sully.controllers.scheduling.allocation_check import AllocationCheck, CurrentClaims
from sully.controllers.scheduling.bind_queue import BindQueue
from sully.controllers.scheduling.binder import WORKERS, Binder
from sully.controllers.scheduling.claim_writer import ClaimWriter
from sully.controllers.scheduling.controller import Evaluations, Scheduler
from sully.controllers.scheduling.metrics import SchedulerMetrics
from sully.controllers.scheduling.pod_backoff import BACKOFF
from sully.controllers.scheduling.reporting import EventRepeater, Reporter
from sully.domain.devices.taints import EVICTING_EFFECTS, PREFERENCE_EFFECTS, enabled_effects
from sully.domain.eviction.judge import EvictionPolicy
from sully.domain.scheduling.objects import SCHEDULERS
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.scheduler.caches.constraint_sources import ConstraintSources
from sully.scheduler.core import SchedulingCore
from sully.scheduler.options import SchedulerOptions
from sully.scheduler.queue import SchedulingQueue
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES
from sully.views.snapshot.kinds import (
    NAMESPACES,
    NODES,
    PODS,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    VOLUMES,
)

COMPONENT = "default-scheduler"
"""The source component of its events."""
USER_AGENT = "kube-scheduler"
"""The name of its user, and of its field manager."""


def options(
    gates: Gates, *, compat: Compat, schedulers: frozenset[str] = SCHEDULERS
) -> SchedulerOptions:
    """Return the scheduling options for feature gates."""
    return SchedulerOptions(
        compat=compat,
        taints=gates["DRADeviceTaints"],
        honors_preference=bool(enabled_effects(PREFERENCE_EFFECTS, gates)),
        binding_conditions=gates["DRADeviceBindingConditions"],
        partitionable_devices=gates["DRAPartitionableDevices"],
        consumable_capacity=gates["DRAConsumableCapacity"],
        eviction_policy=EvictionPolicy(effects=enabled_effects(EVICTING_EFFECTS, gates)),
        schedulers=schedulers,
    )


def add_scheduler(  # noqa: PLR0913 - what it reads and writes, and what a test may replace
    manager: Manager,
    *,
    transport: Transport,
    inventory: Inventory,
    clock: Clock,
    ids: Ids,
    settings: SchedulerOptions,
    metrics: Metrics | None = None,
    queue: SchedulingQueue | None = None,
    evaluator: Evaluator | None = None,
    alone: bool = True,
    protects: bool = True,
) -> None:
    """Run the scheduler with the other controllers of a manager.

    `alone`: no other scheduler allocates devices, or the server rejects a device in two claims.
    `protects`: claims get their finalizer from the scheduler, before they are allocated.
    """
    # With another scheduler in the cluster, events must not seem to come from that one.
    names = settings.schedulers
    component = COMPONENT if COMPONENT in names else min(names)
    env = manager.env(transport, component)
    queue = SchedulingQueue(clock.monotonic) if queue is None else queue
    core = SchedulingCore(inventory, queue, options=settings, ids=ids, sliced=True)
    _follow_sources(manager, core.sources)
    claims, pods, bind_queue = manager.informer(CLAIMS), manager.informer(PODS), BindQueue()
    scheduler_metrics = SchedulerMetrics(metrics or Metrics())
    evaluations = Evaluations(core, evaluator or Evaluator(clock))
    scheduler = Scheduler(
        core=core,
        pods=pods,
        nodes=manager.informer(NODES),
        claims=claims,
        classes=manager.informer(CLASSES),
        bind_queue=bind_queue,
        clock=clock,
        metrics=scheduler_metrics,
        evaluations=evaluations,
    )
    reporter = Reporter(bind_queue=bind_queue, env=env, compat=settings.compat)
    binder = Binder(
        core=core,
        bind_queue=bind_queue,
        claims=claims,
        writer=ClaimWriter(
            transport,
            clock,
            timestamps=settings.binding_conditions,
            records=settings.compat.records_allocated_attributes,
            protects=protects,
        ),
        reporter=reporter,
        env=env,
        metrics=scheduler_metrics,
        check=None
        if alone
        else AllocationCheck(
            claims=CurrentClaims(transport),
            pods=pods,
            inventory=inventory,
            schedulers=names,
            clock=clock,
        ),
    )
    repeater = EventRepeater(queue=queue, pods=pods, recorder=env.recorder, clock=clock)
    manager.add_runnable(repeater.run)
    # One worker decides, because each decision must see what the last one assumed; many write.
    manager.add(scheduler, workers=1)
    manager.add(evaluations.light, workers=1)
    manager.add(evaluations.heavy, workers=1)
    manager.add(binder, workers=WORKERS, backoff=BACKOFF)


def _follow_sources(manager: Manager, sources: ConstraintSources) -> None:
    """Keep what constraints of pods refer to up to date."""
    manager.informer(NAMESPACES).on_change(sources.namespace_changed)
    manager.informer(VOLUME_CLAIMS).on_change(sources.volume_claim_changed)
    manager.informer(VOLUMES).on_change(sources.volume_changed)
    manager.informer(STORAGE_CLASSES).on_change(sources.storage_class_changed)
