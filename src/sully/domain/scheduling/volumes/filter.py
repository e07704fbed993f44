"""The filter for the volumes of a pod, in the order of Kubernetes: in use, usable, in the zone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sully.domain.scheduling.cluster_events import ClusterEvent
from sully.domain.scheduling.filters import NodeFilter, NodeInfo, NodeReason, Rejection
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.volumes.topology import (
    PodVolumes,
    VolumeLookup,
    can_bind,
    disks_conflict,
    is_in_zone,
    is_usable,
)

_DISK_IN_USE: Final = Rejection((NodeReason.DISK_IN_USE,), preemptible=True)
_ONE_POD_IN_USE: Final = Rejection((NodeReason.ONE_POD_IN_USE,), preemptible=True)
_OTHER_ZONE: Final = Rejection((NodeReason.VOLUME_ZONE,), retry_on=ClusterEvent.VOLUME_UPDATE)


def volumes_filter(
    volumes: PodVolumes,
    lookup: VolumeLookup,
    pods_on: Callable[[str], Iterable[Pod]],
    *,
    in_use: bool,
) -> NodeFilter:
    """Return the filter; `in_use`: a pod uses a claim that is for one pod only."""

    def evaluate(node: NodeInfo) -> Rejection | None:
        if volumes.disks and any(
            disks_conflict(disk, other)
            for pod in pods_on(node.name)
            for other in pod.spec.volumes
            for disk in volumes.disks
        ):
            return _DISK_IN_USE
        if in_use:
            return _ONE_POD_IN_USE
        reasons = []
        if not all(is_usable(volume, node.target) for volume in volumes.bound):
            reasons.append(NodeReason.VOLUME_NOT_USABLE)
        if volumes.unbound and not can_bind(volumes.unbound, lookup, node.target):
            reasons.append(NodeReason.NO_VOLUME_TO_BIND)
        if reasons:
            return Rejection(tuple(reasons), retry_on=ClusterEvent.VOLUME_UPDATE)
        labels = node.target.labels
        if not all(is_in_zone(volume, labels) for volume in volumes.bound):
            return _OTHER_ZONE
        return None

    return evaluate
