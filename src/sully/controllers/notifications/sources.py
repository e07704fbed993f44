"""Turns changes of objects into notifications.

What exists when the controllers start is not reported. Other controllers publish by calling
`Notifier.publish` themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sully.api.resource.types import DeviceTaintRule, ResourceSlice
from sully.api.sully.types import DeviceMaintenance, DeviceTaintPolicy
from sully.client.informers.informer import Informer
from sully.controllers.notifications.sender import Notifier
from sully.domain.devicepolicies.rules import policy_name
from sully.domain.devices.taints import NONE
from sully.domain.maintenance.decisions import FINAL, RUNNING, SCHEDULED
from sully.domain.notifications.kinds import (
    EVICTION_BEGUN,
    MAINTENANCE_BEGUN,
    MAINTENANCE_ENDED,
    POLICY_STORM,
    REPLACEMENT_UNSCHEDULABLE,
    TAINT_SET,
)
from sully.domain.observability.evictions import Begun, EvictionTracker, ReplacementUnschedulable
from sully.domain.scheduling.objects import Pod
from sully.domain.tolerations import taint_text
from sully.runtime.clock import Clock


class NotificationSources:
    """Publishes what the caches of a process show."""

    def __init__(self, notifier: Notifier, clock: Clock) -> None:
        self._notifier = notifier
        self._clock = clock
        self._tracker = EvictionTracker()

    def follow_rules(self, rules: Informer[DeviceTaintRule]) -> None:
        """Publish rules that are new or have another taint."""

        def changed(old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
            if new is None or not rules.synced or new.spec.taint.effect == NONE:
                return
            text = taint_text(new.spec.taint)
            if old is None or taint_text(old.spec.taint) != text:
                policy = policy_name(new)
                by = f" by DeviceTaintPolicy {policy}" if policy else ""
                about = f"DeviceTaintRule/{new.metadata.name}"
                self._notifier.publish(TAINT_SET, about, f"{_devices(new)} tainted {text}{by}")

        rules.on_change(changed)

    def follow_slices(self, slices: Informer[ResourceSlice]) -> None:
        """Publish taints that drivers set."""

        def changed(old: ResourceSlice | None, new: ResourceSlice | None) -> None:
            if new is None or not slices.synced:
                return
            before = set(_taints(old)) if old is not None else set()
            for device, text in sorted(set(_taints(new)) - before):
                about = f"Device/{new.spec.driver}/{new.spec.pool.name}/{device}"
                self._notifier.publish(TAINT_SET, about, f"tainted {text} by its driver")

        slices.on_change(changed)

    def follow_policies(self, policies: Informer[DeviceTaintPolicy]) -> None:
        """Publish storms."""

        def changed(old: DeviceTaintPolicy | None, new: DeviceTaintPolicy | None) -> None:
            if new is None or new.status.storm_since is None or not policies.synced:
                return
            if old is None or old.status.storm_since is None:
                text = "many devices have new faults: no further step begins until it is resumed"
                self._notifier.publish(POLICY_STORM, f"DeviceTaintPolicy/{_name(new)}", text)

        policies.on_change(changed)

    def follow_maintenances(self, maintenances: Informer[DeviceMaintenance]) -> None:
        """Publish maintenances that begin and end."""

        def changed(old: DeviceMaintenance | None, new: DeviceMaintenance | None) -> None:
            if new is None or not maintenances.synced:
                return
            phase, status = new.status.phase, new.status
            if old is None or old.status.phase == phase:
                return
            about = f"DeviceMaintenance/{_name(new)}"
            if phase == RUNNING and old.status.phase in ("", SCHEDULED):
                self._notifier.publish(MAINTENANCE_BEGUN, about, f"{status.selected} devices")
            elif phase in FINAL:
                text = f"{phase}: {status.done} of {status.total} done"
                self._notifier.publish(MAINTENANCE_ENDED, about, text)

        maintenances.on_change(changed)

    def follow_pods(self, pods: Informer[Pod]) -> None:
        """Publish evictions, and replacements that are unschedulable."""

        def changed(old: Pod | None, new: Pod | None) -> None:
            for event in self._tracker.change(old, new, self._clock.now()):
                if not pods.synced:
                    continue
                one = event.eviction
                if isinstance(event, Begun):
                    about = f"Pod/{one.namespace}/{one.name}"
                    text = f"evicted from node {one.node} ({one.reason})"
                    self._notifier.publish(EVICTION_BEGUN, about, text)
                elif isinstance(event, ReplacementUnschedulable):
                    about = f"Pod/{event.replacement.label}"
                    text = f"replaces {one.name} and is unschedulable: {event.message}"
                    self._notifier.publish(REPLACEMENT_UNSCHEDULABLE, about, text)

        pods.on_change(changed)


def _name(obj: Any) -> str:
    return str(obj.metadata.name)


def _taints(slice_: ResourceSlice) -> Iterator[tuple[str, str]]:
    for device in slice_.spec.devices:
        for taint in device.taints:
            if taint.effect != NONE:
                yield device.name, taint_text(taint)


def _devices(rule: DeviceTaintRule) -> str:
    """Name what a rule selects, as far as its names go."""
    selector = rule.spec.device_selector
    if selector is None:
        return "no device"
    names = (selector.driver, selector.pool, selector.device)
    return "/".join(name or "*" for name in names)
