"""Which type of the field tables an object in protobuf has."""

from sully.api.tables import META
from sully.machinery.schema import ObjectType
from sully.machinery.scheme import Scheme

_META_KINDS = frozenset(
    ("DeleteOptions", "ListMeta", "PartialObjectMetadata", "PartialObjectMetadataList", "Status")
)
"""Every group has these under its own name."""


def type_of(scheme: Scheme, api_version: str, kind: str) -> ObjectType:
    """Return the type of a kind; raises TableError if there is none."""
    group, _, version = api_version.rpartition("/")
    return scheme.tables.get(_package(scheme, group, version, kind), kind)


def _package(scheme: Scheme, group: str, version: str, kind: str) -> str:
    if kind in _META_KINDS:
        return META
    resource = scheme.by_kind(group, version, kind)
    served = resource.version(version) if resource is not None else None
    if served is not None:
        return served.package
    # Kinds that are only sent, like Binding and Eviction, belong to no resource.
    return f"io.k8s.api.{group.partition('.')[0] or 'core'}.{version}"
