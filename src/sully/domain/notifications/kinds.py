"""What notifications are about."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

TAINT_SET: Final = "TaintSet"
EVICTION_BEGUN: Final = "EvictionBegun"
BLOCKED_BY_BUDGET: Final = "BlockedByBudget"
REPLACEMENT_UNSCHEDULABLE: Final = "ReplacementUnschedulable"
POLICY_STORM: Final = "PolicyStorm"
MAINTENANCE_BEGUN: Final = "MaintenanceBegun"
MAINTENANCE_ENDED: Final = "MaintenanceEnded"

SUMMARIES: Final = {
    TAINT_SET: "devices are tainted",
    EVICTION_BEGUN: "pods are evicted",
    BLOCKED_BY_BUDGET: "evictions wait for a disruption budget",
    REPLACEMENT_UNSCHEDULABLE: "replacements of evicted pods are unschedulable",
    POLICY_STORM: "storms of faults stopped policies",
    MAINTENANCE_BEGUN: "maintenances began",
    MAINTENANCE_ENDED: "maintenances ended",
}
"""What happened, by the kind of notification."""


class Notification(msgspec.Struct, frozen=True):
    """Something that people should know."""

    kind: str
    about: str
    """The object: `DeviceTaintRule/bad`, `Pod/ns/name`."""
    message: str
    time: datetime
