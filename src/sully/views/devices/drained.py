"""The pods that a drain is about: those on the drained devices, and those of their workloads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TypeVar

import msgspec

from sully.api.core.pods.conditions import POD_SCHEDULED
from sully.api.resource.types import DeviceTaint
from sully.client.objects import key_of
from sully.client.transport import Key
from sully.domain.devices.pools import DeviceId, PoolId
from sully.domain.drain.messages import DrainPod
from sully.domain.scheduling.objects import Pod
from sully.domain.tolerations import tolerates
from sully.views.devices.usage import AllocatedDevice, Usage

P = TypeVar("P", bound=Pod)
DAEMON_SET = "DaemonSet"
_MIRROR = "kubernetes.io/config.mirror"
"""The annotation of pods that the kubelet runs by itself: deleting them has no effect."""


class DrainedDevices(msgspec.Struct, frozen=True):
    """Devices that are drained, and which pods on them are left alone."""

    devices: frozenset[DeviceId]
    taint: DeviceTaint
    ignore_daemon_sets: bool = False

    def users(self, usage: Usage, pods: Iterable[P]) -> Iterator[P]:
        """Yield the pods that use the devices, are not finished, and can be evicted."""
        on_devices = frozenset(self._keys(usage))
        for pod in pods:
            if key_of(pod) not in on_devices or pod.is_terminal or self._is_left_alone(pod):
                continue
            if any(self._allocated(usage, pod)):
                yield pod

    def _is_left_alone(self, pod: Pod) -> bool:
        return _MIRROR in pod.metadata.annotations or (
            self.ignore_daemon_sets and is_of_daemon_set(pod)
        )

    def _keys(self, usage: Usage) -> Iterator[Key]:
        by_pool: dict[PoolId, list[str]] = {}
        for device in self.devices:
            by_pool.setdefault(device.pool_id, []).append(device.device)
        for pool, names in by_pool.items():
            yield from usage.pods_on(pool, names)

    def _allocated(self, usage: Usage, pod: Pod) -> Iterator[AllocatedDevice]:
        """Yield the drained devices of a pod; admin access does not keep a device in use."""
        for claim in usage.claims_of(pod):
            allocation = claim.status.allocation
            for result in allocation.devices.results if allocation is not None else ():
                allocated = AllocatedDevice(claim, result)
                if allocated.device in self.devices and not allocated.admin:
                    yield allocated

    def devices_of(self, usage: Usage, pod: Pod) -> tuple[DeviceId, ...]:
        """Return the drained devices that a pod uses."""
        return tuple(dict.fromkeys(allocated.device for allocated in self._allocated(usage, pod)))

    def tolerated_by(self, usage: Usage, pod: Pod) -> bool:
        """Report whether a pod may be scheduled to the devices in spite of the taint."""
        return any(
            tolerates(toleration, self.taint)
            for allocated in self._allocated(usage, pod)
            for toleration in allocated.result.tolerations
        )

    def observe(
        self, usage: Usage, pods: Collection[Pod], others: Collection[str] = ()
    ) -> tuple[DrainPod, ...]:
        """Return the pods on the devices, and all pods of their workloads and of `others`."""
        users = {pod.metadata.uid for pod in self.users(usage, pods)}
        workloads = {workload_of(pod) for pod in pods if pod.metadata.uid in users}
        workloads.update(others)
        workloads.discard("")
        return tuple(
            drain_pod(
                pod,
                on_devices=pod.metadata.uid in users,
                tolerates=pod.metadata.uid in users and self.tolerated_by(usage, pod),
            )
            for pod in pods
            if pod.metadata.uid in users or workload_of(pod) in workloads
        )


def drain_pod(pod: Pod, *, on_devices: bool, tolerates: bool = False) -> DrainPod:
    """Return a pod as a drain sees it."""
    scheduled = pod.condition(POD_SCHEDULED)
    return DrainPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        workload=workload_of(pod),
        # The pod of a DaemonSet is bound to its node.
        awaited=pod.owner is not None and not is_of_daemon_set(pod),
        on_devices=on_devices,
        ready=pod.ready or pod.status.phase == "Succeeded",
        terminating=pod.is_terminating,
        unschedulable=scheduled is not None and scheduled.reason == "Unschedulable",
        tolerates=tolerates,
    )


def workload_of(pod: Pod) -> str:
    """Return namespace, kind and name of what recreates a pod; empty if nothing does."""
    return f"{pod.metadata.namespace}/{pod.workload_text}" if pod.owner is not None else ""


def is_of_daemon_set(pod: Pod) -> bool:
    """Report whether a DaemonSet owns a pod."""
    return pod.owner is not None and pod.owner.kind == DAEMON_SET
