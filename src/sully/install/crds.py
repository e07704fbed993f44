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
from sully.install.schemas import schema_of
from sully.machinery.gates import Gates
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
    for kind in OWN_KINDS.values():
        yield _definition(scheme, resources[kind], gates or Gates())


def _definition(scheme: Scheme, resource: ResourceType, gates: Gates) -> Obj:
    names: Obj = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.singular,
    }
    if resource.short_names:
        names["shortNames"] = list(resource.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{OURS}"},
        "spec": {
            "group": OURS,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(scheme, resource, gates)],
        },
    }


def _version(scheme: Scheme, resource: ResourceType, gates: Gates) -> Obj:
    kind = scheme.tables.get(resource.hub.package, resource.kind)
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
