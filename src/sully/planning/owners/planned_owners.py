"""The owners of pods in a plan: when they replace an evicted pod, and what else they do.

The decisions are in `sully/domain/planning/owners.py` and `sully/domain/workloads/`;
here they get the pods of the copy and its clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sully.client.transport import Key
from sully.domain.planning.owners import (
    Obstacle,
    OwnerBehavior,
    Recreation,
    behavior_of,
    excluded,
)
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.jobs.failures import JobEnd
from sully.planning.owners.jobs import PlannedJobs
from sully.planning.owners.kinds import DAEMON_SETS, JOBS
from sully.planning.owners.statefulsets import PlannedStatefulSets
from sully.planning.simulation.cluster_copy import ClusterCopy

if TYPE_CHECKING:
    from sully.planning.simulation.simulator import SimulatedEviction


class PlannedOwners:
    """Decides when pods are created, and calls back."""

    def __init__(
        self,
        cluster: ClusterCopy,
        *,
        replace: Callable[[SimulatedEviction], None],
        create: Callable[[Pod, str], None],
        terminate: Callable[[Pod, JobEnd], None],
    ) -> None:
        self._cluster = cluster
        self._replace = replace
        self._jobs = PlannedJobs(cluster, replace=replace, terminate=terminate)
        self._sets = PlannedStatefulSets(cluster, replace=replace, create=create)

    def behavior(self, pod: Pod) -> OwnerBehavior:
        """Return what is known about the owner of a pod."""
        known = behavior_of(pod)
        if known.recreation is Recreation.AS_JOB:
            job = self._cluster.owner(JOBS, pod)
            if job is not None and job.is_managed_elsewhere:
                return OwnerBehavior(Recreation.UNKNOWN)
        return known

    def counts_failures(self, pod: Pod) -> bool:
        """Report whether the owner of a pod fails if its pods are evicted too often."""
        return behavior_of(pod).recreation is Recreation.AS_JOB

    def evicted(self, eviction: SimulatedEviction) -> None:
        """Note that a pod was evicted and terminates."""
        recreation = self.behavior(eviction.pod).recreation
        if recreation is Recreation.WHILE_TERMINATING:
            # Most pods.
            self._replace(eviction)
            return
        match recreation:
            case Recreation.AS_JOB:
                self._jobs.evicted(eviction)
            case Recreation.ON_ITS_NODE if self._surges(eviction.pod):
                self._replace_on_node(eviction)
            case _:
                pass

    def removed(self, pod: Pod, eviction: SimulatedEviction | None) -> None:
        """Note that a pod is deleted; `eviction` if it was evicted in this plan."""
        recreation = self.behavior(pod).recreation
        if recreation is Recreation.WHILE_TERMINATING:
            return
        if recreation is Recreation.IN_ORDER:
            self._sets.removed(pod, eviction)
        if eviction is None:
            return
        match recreation:
            case Recreation.AFTER_DELETION | Recreation.UNKNOWN:
                self._replace(eviction)
            case Recreation.AS_JOB:
                self._jobs.removed(eviction)
            case Recreation.ON_ITS_NODE if not self._surges(pod):
                self._replace_on_node(eviction)
            case _:
                pass

    def bound(self, pod: Pod) -> None:
        """Note that a pod was scheduled."""
        if behavior_of(pod).recreation is Recreation.IN_ORDER:
            self._sets.bound(pod)

    def obstacle(self, eviction: SimulatedEviction) -> Obstacle | None:
        """Return why a pod has not been replaced by now."""
        if eviction.obstacle is not None or eviction.replacement_uid:
            return eviction.obstacle
        if behavior_of(eviction.pod).recreation is Recreation.IN_ORDER:
            return self._sets.obstacle(eviction.pod)
        return None

    def _surges(self, pod: Pod) -> bool:
        daemon_set = self._cluster.owner(DAEMON_SETS, pod)
        return daemon_set is not None and daemon_set.replaces_terminating

    def _replace_on_node(self, eviction: SimulatedEviction) -> None:
        name = eviction.pod.spec.node_name
        node = self._cluster.nodes.get(Key("", name))
        eviction.obstacle = excluded(eviction.pod, name, node)
        if eviction.obstacle is None:
            self._replace(eviction)
