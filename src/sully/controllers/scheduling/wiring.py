"""Puts the scheduler together and adds it to a manager."""

from __future__ import annotations

from sully.client.events import EventRecorder
from sully.client.transport import Transport
from sully.controllers.manager import Manager
from sully.controllers.scheduling.binder import BACKOFF, WORKERS, Binder
from sully.controllers.scheduling.claims import ClaimWriter
from sully.controllers.scheduling.cluster import Cluster
from sully.controllers.scheduling.controller import Scheduler
from sully.controllers.scheduling.devices import Devices
from sully.controllers.scheduling.evaluating import Evaluations
from sully.controllers.scheduling.kinds import COMPONENT, NODES, PODS
from sully.controllers.scheduling.metrics import SchedulerMetrics
from sully.controllers.scheduling.outbox import Outbox
from sully.controllers.scheduling.queue import Queue
from sully.controllers.scheduling.reminding import Reminder
from sully.controllers.scheduling.telling import Teller
from sully.controllers.scheduling.wishes import Options
from sully.domain.eviction.judge import EVICTING, EVICTING_WITH_BUDGETS, Terms
from sully.domain.scheduling.objects import SCHEDULERS
from sully.machinery.compat import Compat
from sully.machinery.gates import Gates
from sully.runtime.clock import Clock
from sully.runtime.evaluation import Evaluator
from sully.runtime.ids import Ids
from sully.runtime.metrics import Metrics
from sully.views.devices.inventory import Inventory
from sully.views.kinds import CLAIMS, CLASSES


def options(gates: Gates, *, compat: Compat, schedulers: frozenset[str] = SCHEDULERS) -> Options:
    """Return what the gates switch on."""
    budgets = gates["SullyNoExecuteWithPodDisruptionBudget"]
    return Options(
        compat=compat,
        taints=gates["DRADeviceTaints"],
        prefer_no_schedule=gates["SullyPreferNoSchedule"],
        binding_conditions=gates["DRADeviceBindingConditions"],
        partitions=gates["DRAPartitionableDevices"],
        shares=gates["DRAConsumableCapacity"],
        eviction=Terms(effects=EVICTING_WITH_BUDGETS if budgets else EVICTING),
        schedulers=schedulers,
    )


def add_scheduler(  # noqa: PLR0913 - what it reads and writes, and what a test may replace
    manager: Manager,
    *,
    transport: Transport,
    inventory: Inventory,
    clock: Clock,
    ids: Ids,
    settings: Options,
    metrics: Metrics | None = None,
    queue: Queue | None = None,
    evaluator: Evaluator | None = None,
) -> None:
    """Run the scheduler with the other controllers of a manager."""
    # Beside another scheduler events must not seem to be its.
    names = settings.schedulers
    component = COMPONENT if COMPONENT in names else min(names)
    recorder = EventRecorder(transport, component, clock=clock)
    manager.alongside(recorder.run)
    claims, pods = manager.informer(CLAIMS), manager.informer(PODS)
    counted = SchedulerMetrics(metrics or Metrics())
    devices, cluster, outbox = Devices(inventory, settings.rests), Cluster(), Outbox()
    queue = Queue(clock.monotonic) if queue is None else queue
    evaluations = Evaluations(queue, evaluator or Evaluator(clock), settings.cost_units)
    scheduler = Scheduler(
        pods=pods,
        nodes=manager.informer(NODES),
        claims=claims,
        classes=manager.informer(CLASSES),
        devices=devices,
        cluster=cluster,
        queue=queue,
        outbox=outbox,
        clock=clock,
        ids=ids,
        options=settings,
        metrics=counted,
        evaluations=evaluations,
    )
    binder = Binder(
        outbox=outbox,
        queue=queue,
        cluster=cluster,
        devices=devices,
        claims=claims,
        writer=ClaimWriter(transport, clock, timestamps=settings.binding_conditions),
        transport=transport,
        recorder=recorder,
        teller=Teller(
            outbox=outbox,
            transport=transport,
            recorder=recorder,
            clock=clock,
            compat=settings.compat,
        ),
        clock=clock,
        metrics=counted,
    )
    reminder = Reminder(queue=queue, pods=pods, recorder=recorder, clock=clock)
    manager.alongside(reminder.run)
    # One looks, because what it decides must be seen by the next look; many write.
    manager.add(scheduler, workers=1)
    manager.add(evaluations.light, workers=1)
    manager.add(evaluations.heavy, workers=1)
    manager.add(binder, workers=WORKERS, backoff=BACKOFF)
