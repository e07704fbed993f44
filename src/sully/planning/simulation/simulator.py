"""Simulates changes on a copy of the cluster: the entry point of planning.

`Simulation.run` applies the changes and then advances a virtual clock from event to event. At every
time pods are evicted first (evictor.py, which runs `sully.evictor`), then replaced as their owners
do it (../owners/planned_owners.py, `domain/planning/replacements.py`), then scheduled
(scheduler.py, which runs `sully/scheduler/core.py`), until nothing changes any more.
../plan_builder.py turns the result into a plan.

Before the changes the cluster settles as it is, so that what would happen without them is not
attributed to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from sully.api.resource.types import ResourceClaim
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.pools import DeviceId
from sully.domain.eviction.judge import Evict, EvictingTaint, Wait
from sully.domain.planning.device_counts import DeviceCounts
from sully.domain.planning.differences import DevicesByPool, device_changes
from sully.domain.planning.owners import Obstacle
from sully.domain.planning.replacements import (
    ReplacementPod,
    is_replaced_after_deletion,
    new_name,
    replacement_pod,
    slow_start_order,
)
from sully.domain.planning.report import DeviceChange
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import JobEnd
from sully.machinery.formats.timestamps import later
from sully.planning.dryrun.changes import Change, apply_change, caches_of, schedule_expiry
from sully.planning.owners.planned_owners import PlannedOwners
from sully.planning.simulation.cluster_copy import ClusterCopy, SimulationOptions
from sully.planning.simulation.device_counting import PoolCounter
from sully.planning.simulation.drain import DrainRequest, PlannedDrain
from sully.planning.simulation.evictor import PlannedEvictor
from sully.planning.simulation.scheduler import Pending, PlannedScheduler
from sully.views.devices.changes import InventoryChange, RuleChange
from sully.views.kinds import CLASSES
from sully.views.snapshot.snapshot import Snapshot

_MAX_STEPS = 200_000
"""Ends simulations in which something always happens."""
_MAX_ROUNDS = 8
"""How often a pod of a Job is evicted again; with the default backoffLimit the Job has failed."""


class SimulatedEviction(msgspec.Struct):
    """One evicted pod, and its replacement."""

    pod: Pod
    time: datetime
    reasons: tuple[EvictingTaint, ...]
    without_change: bool
    """It would be evicted as early without the change."""
    replacement_uid: str = ""
    """The uid of the pod that replaces it; empty if none does."""
    missing_template: str = ""
    """The ResourceClaimTemplate of the replacement that does not exist."""
    obstacle: Obstacle | None = None
    """Why its owner does not replace it, or deletes the replacement."""
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Annotations with which its owner replaces it, beyond its own."""
    first: SimulatedEviction | None = None
    """If the pod is itself a replacement: the eviction that it replaces."""
    round: int = 0
    """How many replacements before it were evicted."""
    evicted_again: datetime | None = None
    """When the replacement was due for eviction itself."""
    claims: dict[DeviceId, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The claims on those of its devices that are no longer published."""


class AppliedChange(msgspec.Struct, frozen=True):
    """A change, and the object that it replaced or deleted."""

    change: Change
    existing: Any | None


class SimulatedDeletion(msgspec.Struct, frozen=True):
    """One pod that is not evicted, but deleted by its owner."""

    pod: Pod
    time: datetime
    end: JobEnd


class DueAgain(msgspec.Struct, frozen=True):
    """A pod that was scheduled in the simulation and is due for eviction there."""

    pod: Pod
    time: datetime
    reasons: tuple[EvictingTaint, ...]
    claims: tuple[ResourceClaim, ...]
    replaces: SimulatedEviction | None
    """The eviction of the pod that it replaces; None if it was Pending before the change."""


class Simulation:
    """A copy of the cluster, advanced in time."""

    def __init__(
        self,
        snapshot: Snapshot,
        options: SimulationOptions | None = None,
        *,
        start: datetime | None = None,
        base: Simulation | None = None,
    ) -> None:
        """Simulate a cluster; `base` is a simulation of the same one that has not begun."""
        self.cluster: ClusterCopy = ClusterCopy(
            snapshot,
            options or SimulationOptions(),
            start or snapshot.taken,
            base.cluster if base is not None else None,
        )
        self.evicted: list[SimulatedEviction] = []
        self.deleted: list[SimulatedDeletion] = []
        """Pods of owners that fail because of evictions."""
        self.created: dict[str, Pod] = {}
        """Pods, by uid, that owners create without an eviction."""
        self.evictor = PlannedEvictor(self.cluster, self._on_evicted)
        self.evictor.on_skipped = self._on_due_again
        self.scheduler: PlannedScheduler = PlannedScheduler(
            self.cluster, self._on_bound, base.scheduler.core if base is not None else None
        )
        self._by_replacement: dict[str, SimulatedEviction] = {}
        """Evictions by the uid of the replacement."""
        self._due_without_change: dict[str, datetime] = {}
        """When pods are evicted without the change, by uid."""
        self._to_replace: list[SimulatedEviction] = []
        self._to_create: list[tuple[Pod, str]] = []
        """Names of further pods of an owner, with one of its pods."""
        self.owners = PlannedOwners(
            self.cluster,
            replace=self._to_replace.append,
            create=lambda pod, name: self._to_create.append((pod, name)),
            terminate=self._terminate,
        )
        self.counter = PoolCounter(self.cluster.classes.values())
        """Counts devices by the classes before the change."""
        self._counter_after = self.counter
        self.before: DevicesByPool = {}
        self.after: DevicesByPool = {}
        """All devices before and right after the change."""
        self.counts_before: dict[str, DeviceCounts] = {}
        self.counts_after: dict[str, DeviceCounts] | None = None
        """The devices of each class while the change is in effect, before it expires."""
        self.counted_at = self.cluster.clock.start
        self.bound_before: frozenset[str] = frozenset()
        self.applied: tuple[AppliedChange, ...] = ()
        self.device_changes: tuple[DeviceChange, ...] = ()
        self.evicted_again: set[str] = set()
        """Pods, by uid, that were Pending before, were bound, and are due for eviction."""
        self.due_again: dict[str, DueAgain] = {}
        """Pods, by uid, that are due for eviction from where they were scheduled since."""
        self.drain: PlannedDrain | None = None
        """Evicts pods after the changes, through the Eviction API."""
        self.without_change: Simulation | None = None
        """What would happen without the changes, not begun; None if that is hardly anything."""

    # -- running ----------------------------------------------------------------------------------

    def run(self, changes: Sequence[Change], drain: DrainRequest | None = None) -> None:
        """Let the cluster settle, apply the changes, and advance until nothing happens."""
        cluster = self.cluster
        if cluster.inventory.taint_times or any(
            pod.is_terminating for pod in cluster.pods.values()
        ):
            # Later, its views would have to be built again.
            start = cluster.clock.start
            self.without_change = Simulation(
                cluster.snapshot, cluster.options, start=start, base=self
            )
        self._start(self._devices())
        self.counts_before = self._count(self.before, self.counter)
        self.applied = tuple(
            AppliedChange(change, caches_of(cluster)[change.kind.plural].get(change.key))
            for change in changes
        )
        for change in changes:
            apply_change(cluster, change, self._count_after)
        if any(change.kind.plural == CLASSES.plural for change in changes):
            self._counter_after = PoolCounter(cluster.classes.values())
        self.after = self._devices()
        self.device_changes = tuple(device_changes(self.before, self.after, self._claims_on))
        if drain is not None:
            self.drain = PlannedDrain(cluster, self.evictor, drain)
        self._advance()
        self.scheduler.diagnose()
        self._count_after()

    def count_without_change(
        self, devices: DevicesByPool, counter: PoolCounter
    ) -> dict[str, DeviceCounts]:
        """Advance the cluster as it is, with these devices; count those of each class then.

        As `run` without changes, but nothing is reported about pods.
        """
        self._start(devices)
        self._advance()
        self.scheduler.retry_all()
        return self._count(self.before, counter)

    def _start(self, devices: DevicesByPool) -> None:
        """Let the cluster settle as it is, and find the pods that are due for eviction."""
        cluster = self.cluster
        self.scheduler.settle()
        self.bound_before = frozenset(self.scheduler.bindings)
        self.evictor.clear_exemptions()
        schedule_expiry(cluster)
        self.before = devices
        due = self._find_due_pods()
        self._end_terminating()
        cluster.inventory.on_change(self._on_devices_changed)
        cluster.usage.on_change(self._on_usage_changed)
        # The first has just reported everything; the order of evictions must not depend on that.
        self.evictor.start_with(due)

    def _advance(self) -> None:
        """Advance from event to event until nothing happens."""
        cluster = self.cluster
        self._settle()
        until = cluster.clock.start + cluster.options.horizon
        for _ in range(_MAX_STEPS):
            if not cluster.clock.advance(until):
                break
            self._settle()

    def _count_after(self) -> None:
        """Count devices by class once, while the change is in effect."""
        if self.counts_after is None:
            # Devices as the change left them: other rules that expire meanwhile are not part of it.
            self.counts_after = self._count(self.after, self._counter_after)
            self.counted_at = self.cluster.clock.now()

    def _settle(self) -> None:
        """Evict, replace and schedule at this time until there is nothing to do."""
        while True:
            self.evictor.settle()
            self._replace()
            self.scheduler.settle()
            drained = self.drain is not None and self.drain.settle()
            evicted = self.evictor.settle() or drained
            if not evicted and not (self._to_replace or self._to_create):
                return

    def _find_due_pods(self) -> list[Key]:
        """Note which pods are evicted without the change, and when; return them in that order."""
        due: list[tuple[datetime, Key]] = []
        for key in self._pods_on_tainted_devices():
            pod = self.cluster.pods.get(key)
            if pod is None:
                continue
            match self.evictor.verdict(pod):
                case Wait(until):
                    due.append((until, key))
                    self._due_without_change[pod.metadata.uid] = until
                case Evict(since):
                    due.append((since, key))
                    self._due_without_change[pod.metadata.uid] = self.cluster.clock.start
                case _:
                    continue
        return [key for _, key in sorted(due)]

    def _pods_on_tainted_devices(self) -> set[Key]:
        """Return the pods that may be evicted without the change."""
        cluster = self.cluster
        rules = tuple(RuleChange(None, rule) for rule in cluster.rules.values())
        # Rules also select devices that are no longer published.
        pods = set(cluster.exposures.affected_pods(InventoryChange({}, rules))) if rules else set()
        effects = cluster.exposures.policy.effects
        for pool, devices in self.before.items():
            names = [
                name
                for name, device in devices.items()
                if device.taints and any(taint.taint.effect in effects for taint in device.taints)
            ]
            pods.update(cluster.usage.pods_on(pool, names))
        return pods

    def _end_terminating(self) -> None:
        """Let pods terminate that were deleted before the plan starts."""
        stop_seconds = self.cluster.options.stop_seconds
        for pod in self.cluster.pods.values():
            end = pod.metadata.deletion_timestamp
            if end is None:
                continue
            if stop_seconds is not None:
                # The grace period starts when the pod is deleted.
                end = later(end, -max(0.0, pod.grace_seconds - stop_seconds))
            self._remove_at(end, pod)

    def _remove_at(
        self, time: datetime, pod: Pod, eviction: SimulatedEviction | None = None
    ) -> None:
        self.cluster.clock.call_at(time, lambda: self._remove(pod, eviction))

    # -- events -----------------------------------------------------------------------------------

    def _on_devices_changed(self, change: InventoryChange) -> None:
        for key in self.cluster.exposures.affected_pods(change):
            self.evictor.wake(key)

    def _on_usage_changed(self, pods: Iterable[Key]) -> None:
        for key in sorted(pods):
            # Most replacements get devices without taints.
            if key != self.scheduler.on_untainted or self.evictor.is_pending(key):
                self.evictor.usage_changed(key)

    def _on_evicted(self, pod: Pod, reasons: tuple[EvictingTaint, ...]) -> None:
        due, now = self._due_without_change.get(pod.metadata.uid), self.cluster.clock.now()
        eviction = SimulatedEviction(
            pod, now, reasons, without_change=due is not None and due <= now
        )
        replaced = self._by_replacement.get(pod.metadata.uid)
        if replaced is None:
            self.evicted.append(eviction)
        else:
            eviction.first, eviction.round = replaced.first or replaced, replaced.round + 1
            eviction.first.evicted_again = eviction.first.evicted_again or now
        self.scheduler.terminating(pod)
        eviction.claims = {
            reason.device: self._claims_on(reason.device)
            for reason in reasons
            if self.cluster.inventory.published(reason.device) is None
        }
        self.owners.evicted(eviction)
        end = pod.metadata.deletion_timestamp
        if end is None or end <= now:
            # Without a grace period it is removed before it is replaced.
            self._remove(pod, eviction)
        else:
            self._remove_at(end, pod, eviction)

    def _remove(self, pod: Pod, eviction: SimulatedEviction | None) -> None:
        current = self._existing(pod)
        if current is not None:
            self.cluster.remove_pod(current)
        self.owners.removed(pod, eviction)

    def _existing(self, pod: Pod) -> Pod | None:
        """Return a pod as it is now; None if it was deleted."""
        current = self.cluster.pods.get(key_of(pod))
        return current if current is not None and current.metadata.uid == pod.metadata.uid else None

    def _terminate(self, pod: Pod, end: JobEnd) -> None:
        """Delete a pod for its owner."""
        now = self.cluster.clock.now()
        if pod.metadata.uid not in self._by_replacement:
            self.deleted.append(SimulatedDeletion(pod, now, end))
        terminating = self.evictor.delete(pod)
        until = terminating.metadata.deletion_timestamp
        if until is None or until <= now:
            self._remove(terminating, None)
        else:
            self._remove_at(until, terminating)

    def _replace(self) -> None:
        if not self._to_replace and not self._to_create:
            return
        # The owners hold these lists.
        evictions, created = list(self._to_replace), list(self._to_create)
        self._to_replace.clear()
        self._to_create.clear()
        replacements: list[ReplacementPod] = []
        # At a rate they are evicted one by one.
        for eviction in slow_start_order(evictions, _owner) if len(evictions) > 1 else evictions:
            pod = eviction.pod
            # That of a DaemonSet with `maxSurge` comes while the pod terminates.
            beside = is_replaced_after_deletion(pod) and self._existing(pod) is not None
            replacement = replacement_pod(
                pod,
                self.cluster.clock.now(),
                spec_of=partial(self.cluster.claim_spec, pod),
                name=new_name(pod) if beside else "",
                annotations=eviction.annotations,
            )
            eviction.replacement_uid = replacement.pod.metadata.uid
            eviction.missing_template = replacement.missing_template
            self._by_replacement[eviction.replacement_uid] = eviction
            replacements.append(replacement)
        for pod, name in created:
            spec_of = partial(self.cluster.claim_spec, pod)
            new = replacement_pod(pod, self.cluster.clock.now(), spec_of=spec_of, name=name)
            self.created[new.pod.metadata.uid] = new.pod
            replacements.append(new)
        self.scheduler.create(replacements)

    def _on_bound(self, pod: Pod) -> None:
        replaced = self._by_replacement.get(pod.metadata.uid)
        rounds = replaced.round if replaced is not None else 0
        # A pod that is due for eviction where it has just been scheduled would be so every time;
        # that ends only with a Job that fails.
        if rounds >= _MAX_ROUNDS or not self.owners.counts_failures(pod):
            self.evictor.exempt(pod)
        self.evictor.scheduled(pod)
        self.owners.bound(pod)

    def _on_due_again(self, pod: Pod) -> None:
        uid, now = pod.metadata.uid, self.cluster.clock.now()
        if uid in self.due_again:
            return
        eviction = self._by_replacement.get(uid)
        if eviction is None:
            self.evicted_again.add(uid)
        else:
            eviction.evicted_again = now
        verdict = self.evictor.verdict(pod)
        reasons = verdict.due(now) if isinstance(verdict, Evict) else ()
        claims = tuple(self.cluster.usage.claims_of(pod))
        self.due_again[uid] = DueAgain(pod, now, reasons, claims, eviction)

    # -- devices ----------------------------------------------------------------------------------

    def _claims_on(self, device: DeviceId) -> tuple[str, ...]:
        return tuple(map(str, self.cluster.usage.claims_on(device.pool_id, (device.device,))))

    def _devices(self) -> DevicesByPool:
        """Return all devices with their effective taints."""
        inventory = self.cluster.inventory
        return {pool: dict(inventory.devices(pool)) for pool in inventory.pools()}

    def _count(self, devices: DevicesByPool, counter: PoolCounter) -> dict[str, DeviceCounts]:
        """Count devices by class, with their current use."""
        ledger = self.scheduler.core.devices.ledger
        return counter.count(devices, self.cluster.inventory, ledger)

    def pending(self, uid: str) -> Pending | None:
        """Return why a pod stays Pending."""
        return self.scheduler.pending.get(uid)


def _owner(eviction: SimulatedEviction) -> tuple[str, str]:
    return eviction.pod.metadata.namespace, eviction.pod.owner_text
