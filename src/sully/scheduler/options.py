"""Which features of scheduling are on; each follows a feature gate or a flag."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sully.domain.allocation.requests import HonoredTaints
from sully.domain.capabilities.control_plane import TAINTS_GATE, ControlPlane
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import BLOCKING_EFFECTS, EVICTING_EFFECTS
from sully.domain.eviction.judge import DEFAULT_POLICY, EvictionPolicy
from sully.domain.scheduling.objects import SCHEDULERS
from sully.machinery.cel import COST_BUDGET
from sully.machinery.compat import Compat

ExcludeDevice = Callable[[EffectiveDevice], bool]
"""Reports whether a device must not be allocated."""


class SchedulerOptions(msgspec.Struct, frozen=True):
    """What is switched on."""

    compat: Compat = Compat.SULLY
    taints: bool = True
    honors_preference: bool = False
    binding_conditions: bool = True
    partitionable_devices: bool = True
    consumable_capacity: bool = True
    eviction_policy: EvictionPolicy = DEFAULT_POLICY
    """How to decide whether a pod would be evicted immediately."""
    ignored_origins: frozenset[str] = frozenset()
    """The kinds of objects whose taints this scheduler does not read."""
    schedulers: frozenset[str] = SCHEDULERS
    """The values of `schedulerName` whose pods to schedule; fewer beside another scheduler."""
    simulates_kube_scheduler: bool = False
    """kube-scheduler schedules, and its decisions are only predicted: nothing is refused."""
    cost_units: int = COST_BUDGET
    """What evaluating selectors may cost in one attempt of a pod."""

    @property
    def tolerations_expire(self) -> bool:
        """Report whether tolerationSeconds that have passed also end for new pods."""
        return self.taints and self.compat.honors_toleration_seconds

    @property
    def diagnoses(self) -> bool:
        """Report whether to find out why no node has devices for a pod.

        kube-scheduler does not, but predictions of it need it.
        """
        return self.compat.explains_pending_pods or self.simulates_kube_scheduler

    @property
    def honored_taints(self) -> HonoredTaints:
        """Return which taints the selection of devices honors."""
        # What evicts no pod, because its gate is off, does not prevent scheduling either.
        disabled = EVICTING_EFFECTS - self.eviction_policy.effects
        blocking = BLOCKING_EFFECTS - disabled if self.taints else frozenset[str]()
        return HonoredTaints(
            blocking, preference=self.honors_preference, ignored_origins=self.ignored_origins
        )

    @property
    def exclude_device(self) -> ExcludeDevice | None:
        """Return which devices use a feature that is off; None if all features are on."""
        if self.binding_conditions and self.partitionable_devices and self.consumable_capacity:
            return None
        return self._uses_disabled_feature

    def _uses_disabled_feature(self, device: EffectiveDevice) -> bool:
        published, spec = device.published.device, device.published.slice.spec
        if not self.binding_conditions and published.binding_conditions:
            return True
        partition = published.consumes_counters or spec.per_device_node_selection
        if not self.partitionable_devices and partition:
            return True
        return not self.consumable_capacity and bool(published.allow_multiple_allocations)


def options_for(control_plane: ControlPlane) -> SchedulerOptions:
    """Return the options of the scheduler that acts on a cluster."""
    return SchedulerOptions(
        compat=control_plane.scheduling,
        taints=control_plane.is_enabled(TAINTS_GATE),
        eviction_policy=control_plane.eviction,
        simulates_kube_scheduler=control_plane.scheduler == "Kubernetes",
        ignored_origins=control_plane.unscheduled_origins,
    )
