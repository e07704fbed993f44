"""The kinds that views read."""

from __future__ import annotations

from sully.api.resource.claim_types import ResourceClaim
from sully.api.resource.types import (
    GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.client.transport import Kind
from sully.domain.claims.pods import Pod

PODS: Kind[Pod] = Kind("", "v1", "pods", "Pod", Pod)
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
