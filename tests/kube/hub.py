"""The kinds of Open Cluster Management as a server has them that has only their definitions.

No webhook of OCM runs there: what is written is checked by the schema, and nothing else is added.
"""

from __future__ import annotations

from typing import Any

from sully.api import build_scheme
from sully.api.apiextensions.custom import head_table, resource_of
from sully.domain.capabilities.offers import HUB
from sully.install.crds import schema_of
from sully.machinery.gates import Gates
from sully.machinery.scheme import Scheme
from sully.machinery.strategy import ResourceType

Obj = dict[str, Any]


def definition(scheme: Scheme, resource: ResourceType) -> Obj:
    """Return the definition of a kind, in its storage version."""
    kind = scheme.tables.get(resource.storage_version.package, resource.kind)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.singular,
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                {
                    "name": resource.storage_version.name,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _without_rules(schema_of(kind, Gates()))},
                    "subresources": {"status": {}} if resource.status is not None else {},
                }
            ],
        },
    }


def _without_rules(schema: Any) -> Any:
    """Return a schema without CEL: types of our kinds, which have rules, have the same names."""
    if isinstance(schema, dict):
        rules = "x-kubernetes-validations"
        return {name: _without_rules(inner) for name, inner in schema.items() if name != rules}
    return [_without_rules(inner) for inner in schema] if isinstance(schema, list) else schema


def plain_hub() -> Scheme:
    """Return our kinds, with the ManagedCluster of a server that only has its definition."""
    scheme = build_scheme()
    clusters = next(
        resource
        for resource in scheme.resources()
        if (resource.group, resource.kind) == (HUB, "ManagedCluster")
    )
    defined = definition(scheme, clusters)
    accepted = {**defined, "status": {"acceptedNames": defined["spec"]["names"]}}
    scheme.add(resource_of(accepted, head_table(scheme.tables)))
    return scheme
