"""The kinds that views read."""

from __future__ import annotations

from sully.api.resource.types import (
    GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourcePoolStatusRequest,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.api.sully.types import (
    DEVICE_POLICY_KIND,
    MAINTENANCE_KIND,
    VERSION,
    DeviceHealth,
    DeviceMaintenance,
    DeviceTaintPolicy,
    EvictionRecord,
    TaintRecord,
)
from sully.api.sully.types import GROUP as SULLY
from sully.client.transport import Kind
from sully.domain.claims.pods import Pod
from sully.domain.devicepolicies.sources.nodes import PolicyNode
from sully.domain.eviction.partial_records import PartialEvictionRecord

CONSUMER_PODS: Kind[Pod] = Kind("", "v1", "pods", "Pod", Pod)
"""Pods as consumers of claims; for commands that read no more of them."""
CLAIMS: Kind[ResourceClaim] = Kind(GROUP, "v1", "resourceclaims", "ResourceClaim", ResourceClaim)
SLICES: Kind[ResourceSlice] = Kind(
    GROUP, "v1", "resourceslices", "ResourceSlice", ResourceSlice, namespaced=False
)
CLASSES: Kind[DeviceClass] = Kind(
    GROUP, "v1", "deviceclasses", "DeviceClass", DeviceClass, namespaced=False
)
RULES: Kind[DeviceTaintRule] = Kind(
    GROUP, "v1", "devicetaintrules", "DeviceTaintRule", DeviceTaintRule, namespaced=False
)
PATCHES: Kind[ResourceSlicePatch] = Kind(
    GROUP,
    "v1alpha3",
    "resourceslicepatches",
    "ResourceSlicePatch",
    ResourceSlicePatch,
    namespaced=False,
)
POOL_STATUS_REQUESTS: Kind[ResourcePoolStatusRequest] = Kind(
    GROUP,
    "v1alpha3",
    "resourcepoolstatusrequests",
    "ResourcePoolStatusRequest",
    ResourcePoolStatusRequest,
    namespaced=False,
)
EVICTION_RECORDS: Kind[EvictionRecord] = Kind(
    SULLY, VERSION, "evictionrecords", "EvictionRecord", EvictionRecord
)
"""With all fields; a cache should have `PARTIAL_EVICTION_RECORDS`."""
PARTIAL_EVICTION_RECORDS: Kind[PartialEvictionRecord] = EVICTION_RECORDS.read_as(
    PartialEvictionRecord
)
TAINT_RECORDS: Kind[TaintRecord] = Kind(
    SULLY, VERSION, "taintrecords", "TaintRecord", TaintRecord, namespaced=False
)
POLICY_NODES: Kind[PolicyNode] = Kind("", "v1", "nodes", "Node", PolicyNode, namespaced=False)
DEVICE_POLICIES: Kind[DeviceTaintPolicy] = Kind(
    SULLY,
    VERSION,
    "devicetaintpolicies",
    DEVICE_POLICY_KIND,
    DeviceTaintPolicy,
    namespaced=False,
)
MAINTENANCES: Kind[DeviceMaintenance] = Kind(
    SULLY,
    VERSION,
    "devicemaintenances",
    MAINTENANCE_KIND,
    DeviceMaintenance,
    namespaced=False,
)
DEVICE_HEALTH: Kind[DeviceHealth] = Kind(
    SULLY, VERSION, "devicehealths", "DeviceHealth", DeviceHealth, namespaced=False
)
