"""Whether a namespace is that of a managed cluster, in which its agent gets permissions.

A cluster may have any name, also that of a namespace that is used for something else. The label
that the hub sets on the namespaces of clusters distinguishes them.
"""

from typing import Any

from sully.api.cluster.types import CLUSTER_NAME_LABEL
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]


def is_namespace_of(cluster: str, namespace: Obj) -> bool:
    """Report whether a namespace belongs to a cluster."""
    labels = namespace["metadata"].get("labels") or {}
    return labels.get(CLUSTER_NAME_LABEL) == cluster


def foreign_namespace(cluster: str) -> str:
    """Return why a cluster cannot be accepted, and what to do."""
    name = quote(cluster)
    return (
        f"namespace {name} exists and is not the namespace of cluster {name}; rename the cluster,"
        f" or give the namespace to its agent with the label {CLUSTER_NAME_LABEL}={cluster}"
    )
