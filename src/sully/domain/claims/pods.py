"""A pod as a user of devices: what everyone reads of it who deals with claims.

The scheduler (`scheduling/objects.py`), plans (`planning/objects.py`) and hollow nodes
(`hollow/pods.py`) each read more, and build on these.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import field

from sully.machinery.meta import HasController, OwnerReference, Wire

FINISHED: Final = frozenset(("Succeeded", "Failed"))


class PodMetadata(HasController, frozen=True, kw_only=True):
    """Which pod it is, and whether it stays."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()


class PodClaim(Wire, frozen=True, kw_only=True):
    """A claim that a pod refers to, or the template of one."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was made from a template; no name means that none is needed."""

    name: str
    resource_claim_name: str | None = None


class ExtendedClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was made because a container asked for an extended resource."""

    resource_claim_name: str = ""


class SchedulingGroup(Wire, frozen=True, kw_only=True):
    """The group of pods that a pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(Wire, frozen=True, kw_only=True):
    """Where a pod runs, and with which claims."""

    node_name: str = ""
    resource_claims: tuple[PodClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None


class PodStatus(Wire, frozen=True, kw_only=True):
    """What became of a pod."""

    phase: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(Wire, frozen=True, kw_only=True):
    """A pod as a user of devices."""

    metadata: PodMetadata = field(default_factory=PodMetadata)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

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
