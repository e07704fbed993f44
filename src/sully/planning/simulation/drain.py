"""A drain in a plan: runs the drain core on a copy of the cluster.

The decisions are those of `sully.domain.drain`, as in `cli/change/drain/runner.py`. A pod counts as
Ready from the time it is bound; whether it becomes ready is not known.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec
from msgspec.structs import replace

from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.taints import Origin, SourcedTaint
from sully.domain.drain.core import Drain
from sully.domain.drain.messages import (
    DrainEvictionRefused,
    DrainPod,
    DrainPodNotFound,
    DrainSettings,
    DrainState,
    Effect,
    EvictDrainPod,
    PodEvicted,
    PodsChanged,
    Stop,
    UseNoExecute,
    WaitUntil,
)
from sully.domain.eviction.judge import EvictingTaint
from sully.domain.scheduling.objects import Pod
from sully.planning.simulation.cluster_copy import ClusterCopy
from sully.planning.simulation.evictor import PlannedEvictor
from sully.views.devices.drained import DrainedDevices

_SILENCE = timedelta(minutes=10)
"""After this time without an eviction, budgets will not allow any."""


class DrainRequest(msgspec.Struct, frozen=True):
    """The devices to drain, and how."""

    drained: DrainedDevices
    settings: DrainSettings
    state: DrainState
    """What an earlier run of the same drain left."""


class PlannedDrain:
    """Runs the drain core on a copy of the cluster."""

    def __init__(
        self, cluster: ClusterCopy, evictor: PlannedEvictor, request: DrainRequest
    ) -> None:
        self._cluster = cluster
        self._evictor = evictor
        self._drained = request.drained
        self._evicts = request.settings.evicts
        self._active = cluster.clock.now()
        self.core = Drain(request.settings, cluster.clock.now(), request.state)
        self.stop: Stop | None = None
        """Why it ended; None: it did not."""

    def settle(self) -> bool:
        """Evict the pods that are due now; report whether there were any."""
        if self.stop is not None:
            return False
        now = self._cluster.clock.now()
        self.core.handle(PodsChanged(self._observe()), now)
        evicted = False
        for effect in self.core.decide(now):
            evicted = self._execute(effect) or evicted
        return evicted

    def _observe(self) -> tuple[DrainPod, ...]:
        pods = list(self._cluster.pods.values())
        observed = self._drained.observe(self._cluster.usage, pods, self.core.workloads())
        bound = {pod.metadata.uid for pod in pods if pod.spec.node_name}
        return tuple(
            pod
            if pod.on_devices
            else replace(pod, ready=pod.uid in bound, unschedulable=pod.uid not in bound)
            for pod in observed
        )

    def _execute(self, effect: Effect) -> bool:
        now = self._cluster.clock.now()
        match effect:
            case Stop():
                self.stop = effect
            case EvictDrainPod(pod):
                self._evict(pod)
                return True
            case WaitUntil(time) if time is not None and now - self._active < _SILENCE:
                self._cluster.clock.call_at(time, lambda: None)
            case UseNoExecute():
                for pod in list(self.core.remaining()):
                    self._delete(pod)
                return True
            case WaitUntil():
                # Budgets will not allow more.
                pass
        return False

    def _delete(self, drained: DrainPod) -> None:
        """Evict a pod as the eviction controller does, whatever budgets allow."""
        pod = self._pod(drained)
        if pod is not None:
            self._evictor.evict(pod, self._reasons(pod), honor_budgets=False)

    def _pod(self, drained: DrainPod) -> Pod | None:
        pod = self._cluster.pods.get(Key(drained.namespace, drained.name))
        return pod if pod is not None and pod.metadata.uid == drained.uid else None

    def _evict(self, drained: DrainPod) -> None:
        now = self._cluster.clock.now()
        pod = self._pod(drained)
        if pod is None:
            self.core.handle(DrainPodNotFound(drained.uid), now)
            return
        refusal = self._evictor.evict(pod, self._reasons(pod))
        if refusal:
            self.core.handle(DrainEvictionRefused(drained.uid, refusal), now)
            return
        self._active = now
        self.core.handle(PodEvicted(drained.uid), now)

    def _reasons(self, pod: Pod) -> tuple[EvictingTaint, ...]:
        origin = Origin("DeviceTaintRule", "drain")
        taint = SourcedTaint(self._drained.taint, origin)
        devices = self._drained.devices_of(self._cluster.usage, pod)
        return tuple(EvictingTaint(device, taint) for device in devices)

    def blocked(self) -> list[tuple[Pod, str]]:
        """Return the pods that are not evicted, and why."""
        if not self._evicts:
            return []
        remaining = {pod.uid: pod for pod in self.core.remaining()}
        refused = self.core.progress().refused
        return [
            (pod, refused.get(pod.metadata.uid, "the drain stops before"))
            for pod in sorted(self._cluster.pods.values(), key=key_of)
            if pod.metadata.uid in remaining
        ]
