"""The CustomResourceDefinitions of the group: what OCM installs on a Kubernetes server.

Our server has the kinds without them. They are stored at start, so that clients find them.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from sully.api.cluster.columns import AGE, JSON_PATH
from sully.api.cluster.types import GROUP
from sully.machinery.customresources.documents import SchemaWriter, definition
from sully.machinery.schema import Tables
from sully.machinery.strategy import Column, ResourceType, Version

Obj = dict[str, Any]


def definitions(resources: Iterable[ResourceType], tables: Tables) -> Iterator[Obj]:
    """Yield the definitions of the resources of the group among these."""
    for resource in resources:
        if resource.group == GROUP:
            versions = [_version(resource, version, tables) for version in resource.versions]
            yield definition(resource, GROUP, versions)


def _version(resource: ResourceType, version: Version, tables: Tables) -> Obj:
    kind = tables.get(version.package, resource.kind)
    document: Obj = {
        "name": version.name,
        "served": version.enabled,
        "storage": version is resource.storage_version,
        "schema": {"openAPIV3Schema": SchemaWriter().schema_of(kind)},
    }
    # The first column is the name; one with the age only is the default.
    if resource.columns[1:] != (AGE,):
        document["additionalPrinterColumns"] = [*map(_column, resource.columns[1:])]
    if resource.status is not None:
        document["subresources"] = {"status": {}}
    return document


def _column(column: Column) -> Obj:
    is_age = column is AGE
    path = ".metadata.creationTimestamp" if is_age else column.description.removeprefix(JSON_PATH)
    return {"name": column.name, "type": column.type, "jsonPath": path}
