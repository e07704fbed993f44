"""Our kinds as custom resource definitions, for servers that are not ours.

They are the same kinds with the same fields, all in the group `sully.dev`: only Kubernetes may
add to `resource.k8s.io`, where our own server has ResourceSlicePatch. What a strategy does on a
write, such as setting `timeAdded`, does not happen there; readers must do without.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sully.api import build_scheme
from sully.domain.capabilities.duties import OWN_VERSION
from sully.domain.capabilities.offers import OURS, OWN_KINDS
from sully.install.schemas import schema_of
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType

Obj = dict[str, Any]

_AGE = ("Age", "date", ".metadata.creationTimestamp")
COLUMNS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "ResourceSlicePatch": (
        ("Priority", "integer", ".spec.devices.priority"),
        ("Driver", "string", ".spec.devices.filter.driver"),
        ("Pool", "string", ".spec.devices.filter.pool"),
        ("Device", "string", ".spec.devices.filter.device"),
        _AGE,
    ),
    "EvictionRecord": (
        ("Pod", "string", ".spec.pod.name"),
        ("Node", "string", ".spec.pod.node"),
        ("Taint", "string", ".spec.causes[0].key"),
        ("Cause", "string", ".spec.causes[0].name"),
        ("Evicted", "date", ".spec.evictedTime"),
        _AGE,
    ),
    "TaintRecord": (
        ("Rule", "string", ".spec.rule.name"),
        ("Taint", "string", ".spec.taint.key"),
        ("By", "string", ".spec.createdBy"),
        ("Evicted", "integer", ".status.evicted"),
        ("Deleted", "date", ".status.deletedTime"),
        _AGE,
    ),
    "ClusterTaintPolicy": (_AGE,),
}
"""What `kubectl get` prints: name, type, and where it is in an object."""


def definitions() -> Iterator[Obj]:
    """Yield the definition of each of our kinds."""
    scheme = build_scheme()
    resources = {resource.kind: resource for resource in scheme.resources()}
    for kind in OWN_KINDS.values():
        yield _definition(scheme, resources[kind])


def _definition(scheme: Scheme, resource: ResourceType) -> Obj:
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
            "versions": [_version(scheme, resource)],
        },
    }


def _version(scheme: Scheme, resource: ResourceType) -> Obj:
    kind = scheme.tables.get(resource.hub.package, resource.kind)
    version: Obj = {
        "name": OWN_VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of(kind)},
        "additionalPrinterColumns": [
            {"name": name, "type": type_, "jsonPath": path}
            for name, type_, path in COLUMNS[resource.kind]
        ],
    }
    if resource.status is not None:
        version["subresources"] = {"status": {}}
    return version
