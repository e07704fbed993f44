"""The kinds that more than one controller reads, as projections: only the fields they need.

They stand here because a cache is shared by those who read the same kind as the same type.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from sully.api.cluster.types import CLUSTER_NAME_LABEL
from sully.client.informers.reflector import ObjectSelector
from sully.client.transport import Kind
from sully.machinery.meta import Wire


class Metadata(Wire, frozen=True, kw_only=True):
    """The part of an object's metadata that says which it is and whether it stays."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: datetime | None = None
    finalizers: tuple[str, ...] = ()


class Item(Wire, frozen=True, kw_only=True):
    """Any object, of which only the existence matters."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)

    @property
    def is_terminating(self) -> bool:
        """Report whether its deletion was asked for."""
        return self.metadata.deletion_timestamp is not None


class Namespace(Item, frozen=True, kw_only=True):
    """A namespace, of which only matters whether it stays."""


NAMESPACES: Kind[Namespace] = Kind("", "v1", "namespaces", "Namespace", Namespace, namespaced=False)
SERVICE_ACCOUNTS: Kind[Item] = Kind("", "v1", "serviceaccounts", "ServiceAccount", Item)


class _LeaseSpec(Wire, frozen=True, kw_only=True):
    renew_time: datetime | None = None


class ClusterLease(Item, frozen=True, kw_only=True):
    """The lease that the agent of a managed cluster renews, in the namespace of its cluster."""

    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


CLUSTER_LEASE = "managed-cluster-lease"
"""What it is called in each of the namespaces."""
CLUSTER_LEASES: Kind[ClusterLease] = Kind(
    "coordination.k8s.io", "v1", "leases", "Lease", ClusterLease
)
LEASES_OF_CLUSTERS = ObjectSelector(
    label_selector=CLUSTER_NAME_LABEL, field_selector=f"metadata.name={CLUSTER_LEASE}"
)
