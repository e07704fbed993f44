"""A pod as a user of devices: what all that deal with claims read of it.

What else controllers, plans and explanations read is in `scheduling/objects.py`, which builds on
these.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

from sully.api.core.pods.phases import TERMINAL_PHASES
from sully.machinery.meta import HasController, ObjectIdentity, OwnerReference, Wire
from sully.machinery.serialization.wire import share


class PodMetadata(ObjectIdentity, HasController, frozen=True, kw_only=True):
    """The metadata of a pod."""

    deletion_timestamp: datetime | None = None
    owner_references: tuple[OwnerReference, ...] = ()

    def __post_init__(self) -> None:
        """Share what pods of one workload have in common."""
        share(self, "namespace", "owner_references")


class PodClaim(Wire, frozen=True, kw_only=True):
    """A claim that a pod refers to, or the template of one."""

    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was created from a template; without a name, none is needed."""

    name: str
    resource_claim_name: str | None = None


class ExtendedClaimStatus(Wire, frozen=True, kw_only=True):
    """The claim that was created for extended resources."""

    resource_claim_name: str = ""


class SchedulingGroup(Wire, frozen=True, kw_only=True):
    """The group of pods that a pod belongs to."""

    pod_group_name: str | None = None


class PodSpec(Wire, frozen=True, kw_only=True):
    """Where a pod runs, and with which claims."""

    node_name: str = ""
    resource_claims: tuple[PodClaim, ...] = ()
    scheduling_group: SchedulingGroup | None = None

    def __post_init__(self) -> None:
        """Share what pods of one workload or node have in common."""
        share(self, "node_name", "resource_claims")


class PodStatus(Wire, frozen=True, kw_only=True):
    """The state of a pod."""

    phase: str = ""
    resource_claim_statuses: tuple[PodClaimStatus, ...] = ()
    extended_resource_claim_status: ExtendedClaimStatus | None = None


class Pod(Wire, frozen=True, kw_only=True):
    """A pod as a user of devices."""

    metadata: PodMetadata = field(default_factory=PodMetadata)
    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def is_terminating(self) -> bool:
        """Report whether it has a deletion timestamp."""
        return self.metadata.deletion_timestamp is not None

    @property
    def is_terminal(self) -> bool:
        """Report whether it succeeded or failed."""
        return self.status.phase in TERMINAL_PHASES

    @property
    def is_active(self) -> bool:
        """Report whether it runs or may still run: it counts as a replica of its owner."""
        return self.metadata.deletion_timestamp is None and self.status.phase not in TERMINAL_PHASES

    @property
    def group(self) -> str:
        """Return the name of its group of pods, if it has one."""
        group = self.spec.scheduling_group
        return (group.pod_group_name or "") if group is not None else ""


def still_runs(pod: Pod | None, uid: str) -> bool:
    """Report whether a pod is still there, is the one with this uid, and is not terminating."""
    return pod is not None and pod.metadata.uid == uid and not pod.is_terminating


class ClaimReference(Struct, frozen=True, gc=False):
    """A claim that a pod refers to."""

    entry: str
    """Its name in the pod; empty for the claim of its extended resources."""
    name: str
    """Its own name; empty if it has not been created, or none is needed."""
    generated: bool = False
    """It is created for the pod: another claim of this name is not used."""
    missing: bool = False
    """It has not been created yet."""
    template: str = ""
    """The ResourceClaimTemplate that it is created from, if the pod names one."""


def claim_references(pod: Pod, *, extended: bool = True) -> list[ClaimReference]:
    """Return the claims that a pod refers to, in its order; last that of extended resources."""
    references: list[ClaimReference] = []
    created: dict[str, str | None] | None = None
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name is not None:
            references.append(ClaimReference(claim.name, claim.resource_claim_name))
            continue
        if created is None:
            statuses = pod.status.resource_claim_statuses
            created = {status.name: status.resource_claim_name for status in statuses}
        # An entry without a name means that no claim is needed.
        name, missing = created.get(claim.name) or "", claim.name not in created
        template = claim.resource_claim_template_name or ""
        references.append(ClaimReference(claim.name, name, True, missing, template))
    status = pod.status.extended_resource_claim_status if extended else None
    if status is not None and status.resource_claim_name:
        references.append(ClaimReference("", status.resource_claim_name, True))
    return references


def has_same_claims(pod: Pod, other: Pod) -> bool:
    """Report whether a pod refers to the same claims as another state of it."""
    status, before = pod.status, other.status
    return (
        pod.spec.resource_claims == other.spec.resource_claims
        and status.resource_claim_statuses == before.resource_claim_statuses
        and status.extended_resource_claim_status == before.extended_resource_claim_status
    )
