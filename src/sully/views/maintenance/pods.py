"""The pods on the devices of a unit, and those of their workloads, found by indexes."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sully.client.informers.cache import Cache
from sully.client.objects import key_of
from sully.domain.devices.pools import device_id
from sully.domain.drain.messages import DrainPod
from sully.domain.maintenance.rules import TAINT
from sully.domain.maintenance.settings import MaintenanceSettings
from sully.domain.scheduling.objects import Pod
from sully.views.devices.drained import DrainedDevices, is_of_daemon_set, workload_of
from sully.views.devices.usage import Usage

BY_WORKLOAD = "workload"
_MOST = 3
"""How many pods a message names."""


class UnitPods:
    """Finds the pods that a drain is about."""

    def __init__(self, pods: Cache[Pod], usage: Usage) -> None:
        self._pods = pods
        self._usage = usage
        pods.add_index(BY_WORKLOAD, lambda pod: (workload_of(pod),))

    def users(self, devices: Iterable[str], settings: MaintenanceSettings) -> list[Pod]:
        """Return the pods that use devices and would have to be evicted."""
        drained = _drained(devices, settings)
        return list(drained.users(self._usage, self._on(drained)))

    def _on(self, drained: DrainedDevices) -> list[Pod]:
        keys = sorted(
            {
                key
                for device in drained.devices
                for key in self._usage.pods_on(device.pool_id, (device.device,))
            }
        )
        return [pod for key in keys if (pod := self._pods.get(key)) is not None]

    def observe(
        self, devices: Iterable[str], settings: MaintenanceSettings, workloads: Collection[str]
    ) -> tuple[DrainPod, ...]:
        """Return the pods on devices, and all pods of their workloads and of these."""
        drained = _drained(devices, settings)
        pods = {key_of(pod): pod for pod in self._on(drained)}
        names = {workload_of(pod) for pod in pods.values()}.union(workloads)
        for name in sorted(names - {""}):
            pods |= {key_of(pod): pod for pod in self._pods.by_index(BY_WORKLOAD, name)}
        ordered = [pods[key] for key in sorted(pods)]
        return drained.observe(self._usage, ordered, workloads)


def obstacle(users: Iterable[Pod], settings: MaintenanceSettings) -> str:
    """Return which pods would not run elsewhere, so that they are not evicted."""
    if settings.force or not settings.drain.evicts:
        return ""
    running = [pod for pod in users if not pod.is_terminating]
    unmanaged = [pod for pod in running if pod.owner is None]
    if unmanaged:
        text = "pods without a controller are not evicted"
        return f"{text}: {_names(unmanaged)}; delete them, or set drain.force"
    daemons = [pod for pod in running if is_of_daemon_set(pod)]
    if daemons:
        text = "pods of DaemonSets are not evicted"
        return f"{text}: {_names(daemons)}; set drain.ignoreDaemonSets or drain.force"
    return ""


def _drained(devices: Iterable[str], settings: MaintenanceSettings) -> DrainedDevices:
    ids = frozenset(map(device_id, devices))
    return DrainedDevices(ids, TAINT, ignore_daemon_sets=settings.ignore_daemon_sets)


def _names(pods: Collection[Pod]) -> str:
    names = [pod.label for pod in pods]
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f" and {more} more" if more > 0 else "")
