"""StatefulSets in a plan: they create pods in order, when those before them are ready.

A pod counts as ready as soon as it is scheduled, apart from `minReadySeconds`: whether it becomes
ready is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from sully.client.transport import Key
from sully.domain.planning.owners import NotNeeded, WaitsForPod
from sully.domain.scheduling.objects import Pod
from sully.domain.workloads.statefulsets import (
    NextPods,
    ReplicaState,
    StatefulSet,
    next_pods,
    ordinal_of,
)
from sully.planning.owners.kinds import STATEFUL_SETS
from sully.planning.simulation.cluster_copy import ClusterCopy

if TYPE_CHECKING:
    from sully.planning.simulation.simulator import SimulatedEviction


class _SetRun(msgspec.Struct):
    """One StatefulSet in a plan."""

    namespace: str
    name: str
    spec: StatefulSet | None
    model: Pod
    """One of its pods: all have the same spec."""
    ordinals: Collection[int]
    ready: set[str] = msgspec.field(default_factory=set)
    """Pods, by uid, that were scheduled in the plan and are ready."""
    created: set[str] = msgspec.field(default_factory=set)
    """Names of pods that are created, but perhaps not in the copy yet."""
    gone: dict[str, SimulatedEviction] = msgspec.field(default_factory=dict)
    """Evicted pods that are deleted and not replaced yet, by name."""

    @property
    def is_ordered(self) -> bool:
        return self.spec is None or self.spec.is_ordered

    def pod_name(self, ordinal: int) -> str:
        return f"{self.name}-{ordinal}"


class PlannedStatefulSets:
    """Runs the decisions about StatefulSets on a copy of the cluster."""

    def __init__(
        self,
        cluster: ClusterCopy,
        *,
        replace: Callable[[SimulatedEviction], None],
        create: Callable[[Pod, str], None],
    ) -> None:
        self._cluster = cluster
        self._replace = replace
        self._create = create
        self._runs: dict[str, _SetRun] = {}

    def removed(self, pod: Pod, eviction: SimulatedEviction | None) -> None:
        """Note that a pod is deleted."""
        run = self._run(pod)
        run.created.discard(pod.metadata.name)
        if eviction is not None:
            run.gone[pod.metadata.name] = eviction
        self._sync(run)

    def bound(self, pod: Pod) -> None:
        """Note that a pod was scheduled; the next may be created when it is ready."""
        run = self._run(pod)
        seconds = run.spec.spec.min_ready_seconds if run.spec is not None else 0
        now = self._cluster.clock.now()
        self._cluster.clock.call_at(
            now + timedelta(seconds=seconds), partial(self._become_ready, run, pod.metadata.uid)
        )

    def obstacle(self, pod: Pod) -> WaitsForPod | NotNeeded | None:
        """Return why a pod that is deleted has not been created again."""
        run = self._run(pod)
        if ordinal_of(pod.metadata.name) not in run.ordinals:
            return NotNeeded(f"StatefulSet/{run.name}")
        waits_for = self._next(run).waits_for
        return WaitsForPod(run.name, run.pod_name(waits_for)) if waits_for is not None else None

    def _run(self, pod: Pod) -> _SetRun:
        owner = pod.owner
        uid, name = (owner.uid, owner.name) if owner is not None else ("", "")
        run = self._runs.get(uid)
        if run is None:
            spec = self._cluster.owner(STATEFUL_SETS, pod)
            ordinals = self._known_ordinals(uid, pod) if spec is None else spec.range
            run = _SetRun(pod.metadata.namespace, name, spec, pod, ordinals)
            self._runs[uid] = run
        return run

    def _known_ordinals(self, uid: str, pod: Pod) -> list[int]:
        """Return the ordinals of the pods of a set that cannot be read."""
        names = {other.metadata.name for other in (pod, *self._cluster.pods_of(uid))}
        return sorted(number for number in map(ordinal_of, names) if number is not None)

    def _become_ready(self, run: _SetRun, uid: str) -> None:
        run.ready.add(uid)
        self._sync(run)

    def _sync(self, run: _SetRun) -> None:
        for ordinal in self._next(run).create:
            name = run.pod_name(ordinal)
            run.created.add(name)
            eviction = run.gone.pop(name, None)
            if eviction is not None:
                self._replace(eviction)
            else:
                self._create(run.model, name)

    def _next(self, run: _SetRun) -> NextPods:
        return next_pods(run.ordinals, partial(self._state, run), ordered=run.is_ordered)

    def _state(self, run: _SetRun, ordinal: int) -> ReplicaState:
        name = run.pod_name(ordinal)
        pod = self._cluster.pods.get(Key(run.namespace, name))
        if pod is None:
            return ReplicaState.NOT_READY if name in run.created else ReplicaState.MISSING
        if pod.is_terminating or not pod.spec.node_name:
            return ReplicaState.NOT_READY
        is_ready = pod.metadata.uid in run.ready or pod.ready
        return ReplicaState.READY if is_ready else ReplicaState.NOT_READY
