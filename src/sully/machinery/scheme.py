"""Which kinds exist: the registry that the groups under api/ fill.

`sully.api.build_scheme()` imports every group folder and lets it register; nothing else lists them.
"""

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
            group: sorted(names, key=version_priority, reverse=True)
            for group, names in self._versions.items()
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
        return self.tables.get(served.package, resource.kind)


def version_priority(name: str) -> tuple[int, int, int]:
    """Order versions as Kubernetes does: v2 > v1 > v1beta2 > v1beta1 > v1alpha3."""
    major, _, stage = name.removeprefix("v").partition("beta")
    if stage:
        return (1, int(major), int(stage))
    major, _, stage = name.removeprefix("v").partition("alpha")
    return (0, int(major), int(stage)) if stage else (2, int(major), 0)
