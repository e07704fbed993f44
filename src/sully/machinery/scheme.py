"""Which kinds exist: the registry that the groups under api/ fill.

`sully.api.build_scheme()` imports every group folder and lets it register; nothing else lists them.
"""

import re
from collections.abc import Iterator

from sully.machinery.schema import ObjectType, Tables
from sully.machinery.strategy import ResourceType


class Scheme:
    """All resources by group, version and plural, with the tables of their types."""

    def __init__(self) -> None:
        self.tables = Tables()
        self._resources: list[ResourceType] = []
        self._by_path: dict[tuple[str, str, str], ResourceType] = {}
        self._by_storage: dict[str, ResourceType] = {}
        self._versions: dict[str, list[str]] = {}
        self.generation = 0
        """Increases when resources are added or removed: documents about them are outdated."""

    def copy(self) -> "Scheme":
        """Return a scheme with the same resources, to which others can be added."""
        copied = Scheme()
        copied.tables = self.tables
        copied._resources = [*self._resources]
        copied._by_path = {**self._by_path}
        copied._by_storage = {**self._by_storage}
        copied._versions = {group: [*names] for group, names in self._versions.items()}
        return copied

    def add(self, resource: ResourceType) -> None:
        """Serve a resource in all its enabled versions."""
        self._resources.append(resource)
        # A second view of stored objects does not change whose they are.
        self._by_storage.setdefault(resource.storage_key, resource)
        for version in resource.versions:
            if version.enabled:
                self._by_path[resource.group, version.name, resource.plural] = resource
                known = self._versions.setdefault(resource.group, [])
                if version.name not in known:
                    known.append(version.name)
        self.generation += 1

    def remove(self, resource: ResourceType) -> None:
        """Stop serving a resource."""
        self._resources = [known for known in self._resources if known is not resource]
        del self._by_storage[resource.storage_key]
        self._by_path = {path: r for path, r in self._by_path.items() if r is not resource}
        served = {(group, version): None for group, version, _ in self._by_path}
        self._versions = {}
        for group, version in served:
            self._versions.setdefault(group, []).append(version)
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """Return the resource behind a path, or None."""
        return self._by_path.get((group, version, plural))

    def stored(self, storage_key: str) -> ResourceType | None:
        """Return the resource that the store keeps under this name."""
        return self._by_storage.get(storage_key)

    def by_kind(self, group: str, version: str, kind: str) -> ResourceType | None:
        """Return the resource of a kind in a version."""
        for resource in self._resources:
            served = resource.group == group and resource.kind == kind
            if served and resource.version(version) is not None:
                return resource
        return None

    def resources(self) -> Iterator[ResourceType]:
        """Go through all resources in order of registration."""
        return iter(self._resources)

    def groups(self) -> dict[str, list[str]]:
        """Return the served versions of each group, preferred first."""
        return {
            group: sorted(names, key=version_priority) for group, names in self._versions.items()
        }

    def has_group(self, group: str) -> bool:
        """Report whether anything of a group is served."""
        return group in self._versions

    def serves(self, group: str, version: str) -> bool:
        """Report whether a group is served in a version."""
        return version in self._versions.get(group, ())

    def schema(self, resource: ResourceType, version: str) -> ObjectType:
        """Return the table of a resource's kind in a version."""
        served = resource.version(version)
        if served is None:
            raise KeyError(f"{resource.plural} is not served in {version}")
        if served.custom is not None:
            return served.custom.table
        return self.tables.get(served.package, resource.kind)


_VERSION = re.compile(r"v([1-9]\d*)(?:(alpha|beta)([1-9]\d*))?", re.ASCII)


def version_priority(name: str) -> tuple[int, int, int, str]:
    """Order versions as Kubernetes does: v2, v1, v1beta2, v1beta1, v1alpha3, then other names."""
    match = _VERSION.fullmatch(name)
    if match is None:
        return (3, 0, 0, name)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), "")
