"""Our kinds as custom resource definitions, for servers that are not ours.

They are the same kinds with the same fields, all in the group `sully.dev`: only Kubernetes may
add to `resource.k8s.io`, where our own server has ResourceSlicePatch. What a strategy does on a
write, such as setting `timeAdded`, does not happen there; readers must do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sully.api import build_scheme
from sully.api.sully.columns import COLUMNS as OWN_COLUMNS
from sully.api.sully.columns import PathColumn
from sully.domain.capabilities.duties import OWN_VERSION
from sully.domain.capabilities.offers import OURS, OWN_KINDS
from sully.install.limits import GATED, LIMITS
from sully.machinery.customresources.documents import SchemaWriter, definition
from sully.machinery.gates import Gates
from sully.machinery.schema import ObjectType
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType

Obj = dict[str, Any]

_AGE = PathColumn("Age", "date", ".metadata.creationTimestamp")
COLUMNS: Mapping[str, tuple[PathColumn, ...]] = {
    # As Kubernetes has it, in another group.
    "ResourceSlicePatch": (
        PathColumn("Priority", "integer", ".spec.devices.priority"),
        PathColumn("Driver", "string", ".spec.devices.filter.driver"),
        PathColumn("Pool", "string", ".spec.devices.filter.pool"),
        PathColumn("Device", "string", ".spec.devices.filter.device"),
    ),
    **OWN_COLUMNS,
}
"""What `kubectl get` prints: name, type, and where it is in an object."""


def definitions(gates: Gates | None = None) -> Iterator[Obj]:
    """Yield the definition of each of our kinds, for controllers with these feature gates."""
    scheme = build_scheme()
    resources = {resource.kind: resource for resource in scheme.resources()}
    for resource in (resources[kind] for kind in OWN_KINDS.values()):
        yield definition(resource, OURS, [_version(scheme, resource, gates or Gates())])


def _version(scheme: Scheme, resource: ResourceType, gates: Gates) -> Obj:
    kind = scheme.tables.get(resource.storage_version.package, resource.kind)
    version: Obj = {
        "name": OWN_VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of(kind, gates)},
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            for column in (*COLUMNS[resource.kind], _AGE)
        ],
    }
    if resource.status is not None:
        version["subresources"] = {"status": {}}
    return version


def schema_of(kind: ObjectType, gates: Gates) -> Obj:
    """Return the schema of a whole kind, for controllers with these feature gates.

    What our own server checks when it validates is in limits.py, as far as a schema can express it.
    """
    writer = SchemaWriter(LIMITS, lambda name: name not in GATED or gates[GATED[name]])
    return writer.schema_of(kind)
