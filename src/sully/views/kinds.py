"""The kinds that views read, and the part of a pod that matters to devices."""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.api.resource.claim_types import ResourceClaim
from sully.api.resource.types import (
    GROUP,
    DeviceClass,
    DeviceTaintRule,
    ResourceSlice,
    ResourceSlicePatch,
)
from sully.client.transport import Kind
from sully.machinery.meta import OwnerReference, Wire

FINISHED = frozenset(("Succeeded", "Failed"))


class PodMetadata(Wire, frozen=True, kw_only=True):
    """Which pod it is, and whether it stays."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    def controller(self) -> OwnerReference | None:
        """Return who manages it, if someone does."""
        return next((each for each in self.owner_references if each.controller), None)


class PodResourceClaim(Wire, frozen=True, kw_only=True):
    """A claim that a pod refers to, or the template of one."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Wire, frozen=True, kw_only=True):
    """The group of pods that a pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(Wire, frozen=True, kw_only=True):
    """Where a pod runs, and with which claims."""

    node_name: str = ""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None


class PodResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was made from a template; no name means that none is needed."""

    name: str
    resource_claim_name: str | None = None


class PodExtendedResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was made because a container asked for an extended resource."""

    resource_claim_name: str = ""


class PodStatus(Wire, frozen=True, kw_only=True):
    """What became of a pod."""

    phase: str = ""
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class Pod(Wire, frozen=True, kw_only=True):
    """A pod as a user of devices."""

    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def leaving(self) -> bool:
        """Say whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Say whether it ran to its end."""
        return self.status.phase in FINISHED

    @property
    def group(self) -> str:
        """Return the name of its group of pods, if it has one."""
        group = self.spec.scheduling_group
        return (group.pod_group_name or "") if group is not None else ""


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
