"""A snapshot as explanations read it: sources of taints, allocated devices, records, placements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cached_property
from typing import Any

from sully.api.cluster.types import ManagedCluster
from sully.api.resource.types import DeviceRequestAllocationResult, ResourceClaim
from sully.api.sully.types import EvictionRecord, TaintRecord
from sully.client.objects import key_of
from sully.client.transport import Kind
from sully.domain.devices.pools import DeviceId, device_of_result
from sully.domain.devices.rules import recorded, sourced
from sully.domain.devices.taints import SourcedTaint, blocks
from sully.domain.eviction.judge import EvictionPolicy
from sully.domain.eviction.running_loops import RunningLoop
from sully.explain.facts.clusters.cluster_taints import ClusterTaints
from sully.explain.facts.devices.allocations import AllocatedDeviceFacts
from sully.explain.sources import Sources
from sully.explain.trials.scheduler import SchedulerCopy
from sully.views.devices.exposures import Exposures
from sully.views.eviction_loops import loops_in
from sully.views.fleet import FleetView
from sully.views.fleet_kinds import CLUSTERS, POLICIES
from sully.views.kinds import EVICTION_RECORDS, PATCHES, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.kinds import NODES, SCHEDULING
from sully.views.snapshot.snapshot import Snapshot


class Reader:
    """Reads one snapshot; `everything`: whether it has all namespaces."""

    def __init__(self, snapshot: Snapshot, *, everything: bool = True) -> None:
        self.snapshot = snapshot
        self._complete = everything and not any(map(self._hides, SCHEDULING))
        """Whether it has all that the scheduler looks at."""

    def _hides(self, kind: Kind[Any]) -> bool:
        if kind == PATCHES and not self.snapshot.control_plane.honors_patches:
            return False  # They would change nothing.
        gap = self.snapshot.gap(kind)
        return gap is not None and gap.reason == "not allowed"

    @property
    def now(self) -> datetime:
        return self.snapshot.taken

    @property
    def policy(self) -> EvictionPolicy:
        return self.snapshot.policy

    @property
    def exposures(self) -> Exposures:
        return self.snapshot.exposures

    @property
    def fleet(self) -> FleetView:
        return self.snapshot.fleet

    def prevents_scheduling(self, taint: SourcedTaint) -> bool:
        """Report whether the scheduler that acts there honors a taint."""
        unread = self.snapshot.control_plane.unscheduled_origins
        return blocks(taint.taint) and taint.origin.kind not in unread

    @cached_property
    def hides_taints(self) -> bool:
        """Report whether the caller is not allowed to see the taints of devices."""
        return self._hides(SLICES) or self._hides(RULES) or self._hides(PATCHES)

    @cached_property
    def sources(self) -> Sources:
        return Sources(
            self.snapshot.of(RULES).values(),
            self.snapshot.of(PATCHES).values(),
            self.snapshot.of(SLICES).values(),
            self.snapshot.of(TAINT_RECORDS).values(),
        )

    @cached_property
    def scheduler(self) -> SchedulerCopy | None:
        """Return a scheduler to try changes with; None if not everything is known."""
        complete = self._complete and self.snapshot.gap(NODES) is None
        return SchedulerCopy(self.snapshot) if complete else None

    @cached_property
    def cluster_taints(self) -> ClusterTaints:
        return ClusterTaints(self.snapshot.of(POLICIES).values())

    @cached_property
    def clusters(self) -> dict[str, ManagedCluster]:
        clusters = self.snapshot.of(CLUSTERS).values()
        return {cluster.metadata.name: cluster for cluster in clusters}

    @cached_property
    def eviction_loops(self) -> tuple[RunningLoop, ...]:
        """Return the owners whose pods are evicted again and again."""
        return loops_in(self.snapshot)

    def taints(
        self, device: DeviceId, claims: Iterable[ResourceClaim] = ()
    ) -> tuple[SourcedTaint, ...]:
        """Return the taints of a device; of one that is not published, those of rules."""
        published = self.snapshot.inventory.device(device)
        if published is not None:
            return published.taints
        contents = (recorded(claim.metadata.annotations).get(str(device)) for claim in claims)
        content = next((content for content in contents if content is not None), None)
        return tuple(map(sourced, self.snapshot.inventory.rules_for(device, content)))

    def allocated(self, *claims: ResourceClaim) -> tuple[AllocatedDeviceFacts, ...]:
        return tuple(
            self.allocation(claim, result)
            for claim in claims
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
        )

    def allocation(
        self, claim: ResourceClaim, result: DeviceRequestAllocationResult
    ) -> AllocatedDeviceFacts:
        device = device_of_result(result)
        pods = [pod for pod in self.snapshot.usage.consumers(claim) if not pod.is_terminal]
        return AllocatedDeviceFacts(
            device=device,
            claim=str(key_of(claim)),
            taints=self.taints(device, (claim,)),
            tolerations=result.tolerations,
            # Unknown to a user who may not read slices.
            published=self._hides(SLICES) or self.snapshot.inventory.published(device) is not None,
            pods=tuple(str(key_of(pod)) for pod in pods),
            terminating=tuple(str(key_of(pod)) for pod in pods if pod.is_terminating),
            admin_access=bool(result.admin_access),
        )

    def evictions(self, predicate: Callable[[EvictionRecord], bool]) -> tuple[EvictionRecord, ...]:
        """Return records of evictions, in order of time."""
        records = filter(predicate, self.snapshot.of(EVICTION_RECORDS).values())
        return tuple(sorted(records, key=lambda record: record.spec.evicted_time))

    def taint_records(self, rule: str) -> list[TaintRecord]:
        """Return the records of all rules that ever had a name, the newest last."""
        records = self.snapshot.of(TAINT_RECORDS).values()
        named = [record for record in records if record.spec.rule.name == rule]
        return sorted(named, key=lambda record: record.spec.added_time)
