"""Counts devices under policies and maintenances, and rules: when they change, not when scraped."""

from __future__ import annotations

from collections import Counter

from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import DeviceMaintenance, DeviceTaintPolicy
from sully.client.informers.informer import Informer
from sully.controllers.devicemetrics.metrics import (
    MAINTENANCES,
    POLICIES,
    RULES,
    STORMS,
    DeviceMetrics,
)
from sully.domain.devicepolicies.rules import policy_name
from sully.domain.devicepolicies.suppression import suppressing_policy
from sully.runtime.metrics import Values


class PolicyCounts:
    """The counts of policies, from their status."""

    def __init__(self, policies: Informer[DeviceTaintPolicy], metrics: DeviceMetrics) -> None:
        self._policies = policies
        metrics.follow(POLICIES, self._phases)
        metrics.follow(STORMS, self._storms)

    def _phases(self) -> Values:
        return {
            (policy.metadata.name, phase): count
            for policy in self._policies.values()
            for phase, count in policy.status.phases.items()
        }

    def _storms(self) -> Values:
        return {
            (policy.metadata.name,): float(policy.status.storm_since is not None)
            for policy in self._policies.values()
        }


class MaintenanceCounts:
    """The counts of maintenances, from their status."""

    def __init__(self, maintenances: Informer[DeviceMaintenance], metrics: DeviceMetrics) -> None:
        self._maintenances = maintenances
        metrics.follow(MAINTENANCES, self._phases)

    def _phases(self) -> Values:
        return {
            (maintenance.metadata.name, phase): count
            for maintenance in self._maintenances.values()
            for phase, count in maintenance.status.phases.items()
        }


class RuleCounts:
    """The counts of rules."""

    def __init__(self, rules: Informer[DeviceTaintRule], metrics: DeviceMetrics) -> None:
        self._counts: Counter[tuple[str, ...]] = Counter()
        rules.on_change(self._changed)
        metrics.follow(RULES, lambda: self._counts)

    def _changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        for rule, change in ((old, -1), (new, 1)):
            if rule is not None:
                policy = policy_name(rule) or suppressing_policy(rule)
                labels = policy, rule.spec.taint.effect
                self._counts[labels] += change
                if not self._counts[labels]:
                    del self._counts[labels]
