"""The kinds that more than one controller reads, as projections: only the fields they need.

Controllers that read the same kind as the same type share a cache.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.api.cluster.types import CLUSTER_NAME_LABEL
from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Kind
from sully.machinery.meta import ObjectIdentity, Wire


class Metadata(ObjectIdentity, frozen=True, kw_only=True):
    """The metadata that identifies an object, and whether it is terminating."""

    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()


class PartialObjectMetadata(Wire, frozen=True, kw_only=True):
    """An object of any kind, by its metadata."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)

    @property
    def is_terminating(self) -> bool:
        """Report whether it has a deletion timestamp."""
        return self.metadata.deletion_timestamp is not None


class Namespace(PartialObjectMetadata, frozen=True, kw_only=True):
    """A namespace, by its metadata."""


NAMESPACES: Kind[Namespace] = Kind("", "v1", "namespaces", "Namespace", Namespace, namespaced=False)
SERVICE_ACCOUNTS: Kind[PartialObjectMetadata] = Kind(
    "", "v1", "serviceaccounts", "ServiceAccount", PartialObjectMetadata
)


class _LeaseSpec(Wire, frozen=True, kw_only=True):
    renew_time: datetime | None = None


class ClusterLease(PartialObjectMetadata, frozen=True, kw_only=True):
    """The lease that the agent of a managed cluster renews, in the namespace of its cluster."""

    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


CLUSTER_LEASE = "managed-cluster-lease"
"""Its name, in the namespace of each cluster."""
CLUSTER_LEASES: Kind[ClusterLease] = Kind(
    "coordination.k8s.io", "v1", "leases", "Lease", ClusterLease
)
LEASES_OF_CLUSTERS = ObjectSelector(
    label_selector=CLUSTER_NAME_LABEL, field_selector=f"metadata.name={CLUSTER_LEASE}"
)
