"""The core group: pods, nodes, namespaces, quotas, events, and what pods are configured with.

Owns: the kinds of `v1` (tables, defaults, validation, rules on write, columns).
Never: decides about scheduling or eviction; kinds of other groups.
Start at: pods/strategy.py; nodes.py and namespaces.py are the short ones.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sully.machinery.schema import Tables
    from sully.machinery.strategy import ResourceType

CORE = "io.k8s.api.core.v1"
_TABLES = (
    "objects",
    "nodes",
    "pods",
    "quotas",
    "containers",
    "volumes",
    "selectors",
    "services",
    "storage",
    "endpoints",
)


def load_tables(tables: "Tables") -> None:
    """Load the types of the core package."""
    from sully.api.tables import load

    load(tables, __name__, CORE, *(f"{name}.fields" for name in _TABLES))


def resources() -> Iterable["ResourceType"]:
    """Return the resources of the group."""
    # Late imports: importing a type of the group need not load all the rules about its kinds.
    from sully.api.core.events import EVENTS
    from sully.api.core.namespaces import NAMESPACES
    from sully.api.core.nodes import NODES
    from sully.api.core.objects import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS
    from sully.api.core.pods.strategy import PODS
    from sully.api.core.pods.updates.binding import BINDINGS
    from sully.api.core.quotas.limitranges import LIMIT_RANGES
    from sully.api.core.quotas.quotas import RESOURCE_QUOTAS
    from sully.api.core.services.endpoints import ENDPOINTS
    from sully.api.core.services.services import SERVICES
    from sully.api.core.volumes.persistentvolumeclaims import PERSISTENT_VOLUME_CLAIMS
    from sully.api.core.volumes.persistentvolumes import PERSISTENT_VOLUMES
    from sully.api.core.workloads.podtemplates import POD_TEMPLATES
    from sully.api.core.workloads.replicationcontrollers import REPLICATION_CONTROLLERS

    return (
        BINDINGS,
        CONFIG_MAPS,
        ENDPOINTS,
        EVENTS,
        LIMIT_RANGES,
        NAMESPACES,
        NODES,
        PERSISTENT_VOLUMES,
        PERSISTENT_VOLUME_CLAIMS,
        PODS,
        POD_TEMPLATES,
        REPLICATION_CONTROLLERS,
        RESOURCE_QUOTAS,
        SECRETS,
        SERVICES,
        SERVICE_ACCOUNTS,
    )
