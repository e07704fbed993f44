"""Events after which another attempt to schedule a pod may succeed, like queueing hints."""

from __future__ import annotations

from enum import Flag, auto
from typing import Final


class ClusterEvent(Flag):
    """Events that may make an unschedulable pod schedulable."""

    NONE = 0
    NODE_UPDATE = auto()
    """A node was added, or changed what it takes."""
    NODE_DELETE = auto()
    ASSIGNED_POD_ADD = auto()
    """A pod was bound, or the labels of a bound pod changed."""
    ASSIGNED_POD_DELETE = auto()
    NAMESPACE_UPDATE = auto()
    VOLUME_UPDATE = auto()
    """A volume, a claim for one or a storage class was added or changed."""
    DEVICE_RELEASE = auto()
    """Devices were published or released."""
    DEVICE_CLASS_UPDATE = auto()
    DEVICE_TAINT_UPDATE = auto()
    """Of devices that a claim of the pod holds; devices released by others do not help it."""


ANY_EVENT: Final = ~ClusterEvent.NONE
