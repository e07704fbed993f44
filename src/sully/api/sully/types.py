"""Records, policies and reports as frozen values.

They are generated from the tables (`*.fields`), which describe every field. How a record is made
from a decision is `domain/eviction/records.py`.
"""

from sully.api.sully._generated.types import *  # noqa: F403 -- this module exports what is generated
from sully.api.sully._generated.types import EvictionRecord

GROUP = "sully.dev"
VERSION = "v1alpha1"
RULE_LABEL = "sully.dev/rule"
"""Name of the rule that a record is about, where it can be the value of a label."""
NODE_LABEL = "sully.dev/node"
POLICY_KIND = "ClusterTaintPolicy"
DEVICE_POLICY_KIND = "DeviceTaintPolicy"
MAINTENANCE_KIND = "DeviceMaintenance"
HEALTH_KIND = "DeviceHealth"
HEALTHY, DEGRADED, UNHEALTHY, UNKNOWN = STATUSES = ("Healthy", "Degraded", "Unhealthy", "Unknown")
"""The health of a device."""
INFO, WARNING, CRITICAL = SEVERITIES = ("Info", "Warning", "Critical")
"""Of a reason, the mildest first."""
CAUSE_KINDS = ("DeviceTaintRule", "ResourceSlice", "ResourceSlicePatch")


def rules_of(record: EvictionRecord) -> frozenset[str]:
    """Return the uids of the rules that evicted the pod."""
    return frozenset(cause.uid for cause in record.spec.causes if cause.kind == CAUSE_KINDS[0])
