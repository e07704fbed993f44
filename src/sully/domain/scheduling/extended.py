"""Extended resources that devices provide: `example.com/gpu: 2` in a container, and no claim.

A device class may provide a resource, by `spec.extendedResourceName` and always by its own name
(`deviceclass.resource.kubernetes.io/CLASS`). On a node without the resource, the pod gets a claim
for devices of that class; the scheduler creates it, and writes into the pod's status which of its
requests provides which resource of which container.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from sully.api.resource.types import (
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from sully.domain.allocation.requests import EXACT_COUNT
from sully.domain.claims.lifecycle import EXTENDED
from sully.domain.scheduling.objects import Pod
from sully.domain.scheduling.resources import IMPLICIT, Amounts, may_be_backed, whole
from sully.machinery.meta import ObjectMeta, OwnerReference

NAMELESS: Final = "<extended-resources>"
"""The name of the claim in errors before it is created; no claim can have this name."""
_SUFFIX: Final = "-extended-resources-"
_LONGEST_BASE: Final = 58
"""Of a generated name, so that five letters and digits still fit into a DNS label."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Backings:
    """Which device class stands for which resource."""

    def __init__(self) -> None:
        self.version = 0
        """Increases with every change of a class."""
        self._classes: dict[str, DeviceClass] = {}
        self._by_resource: dict[str, dict[str, DeviceClass]] = {}

    def change(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Handle a change of a class."""
        self.version += 1
        if old is not None:
            name, resource = old.metadata.name, old.spec.extended_resource_name
            self._classes.pop(name, None)
            if resource:
                self._by_resource.get(resource, {}).pop(name, None)
        if new is not None:
            name, resource = new.metadata.name, new.spec.extended_resource_name
            self._classes[name] = new
            if resource:
                self._by_resource.setdefault(resource, {})[name] = new

    def find(self, resource: str) -> DeviceClass | None:
        """Return the class that stands for a resource: of several the newest, then by name."""
        claiming = self._by_resource.get(resource)
        if claiming:
            newest = max(map(_created, claiming.values()))
            return min(
                (class_ for class_ in claiming.values() if _created(class_) == newest),
                key=lambda class_: class_.metadata.name,
            )
        if resource.startswith(IMPLICIT):
            return self._classes.get(resource.removeprefix(IMPLICIT))
        return None

    def backed(self, requests: Amounts) -> dict[str, DeviceClass]:
        """Return the resources among these that devices may provide, in order of their names."""
        backed = {}
        for resource in sorted(requests):
            if may_be_backed(resource) and (class_ := self.find(resource)) is not None:
                backed[resource] = class_
        return backed


def _created(device_class: DeviceClass) -> datetime:
    return device_class.metadata.creation_timestamp or _EPOCH


class Mapped(msgspec.Struct, frozen=True):
    """A resource of a container, and the request of the claim that stands for it."""

    container: str
    resource: str
    request: str


class Extension(msgspec.Struct, frozen=True):
    """The claim that a pod gets for its extended resources, not yet written."""

    claim: ResourceClaim
    mappings: tuple[Mapped, ...]


def extend(pod: Pod, classes: Mapping[str, DeviceClass]) -> Extension:
    """Return the claim for resources that devices provide, one class for each."""
    requests: list[DeviceRequest] = []
    mappings: list[Mapped] = []
    containers = _containers(pod)
    for resource in sorted(classes):
        added, mapped = _requests(containers, resource, classes[resource].metadata.name)
        requests += added
        mappings += mapped
    requests.sort(key=lambda request: request.name)
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return Extension(ResourceClaim(metadata=_metadata(pod), spec=spec), tuple(mappings))


def _metadata(pod: Pod) -> ObjectMeta:
    owner = OwnerReference(
        api_version="v1",
        kind="Pod",
        name=pod.metadata.name,
        uid=pod.metadata.uid,
        controller=True,
    )
    return ObjectMeta(
        name=NAMELESS,
        generate_name=f"{pod.metadata.name}{_SUFFIX}",
        namespace=pod.metadata.namespace,
        uid=f"{NAMELESS} of {pod.metadata.uid}",
        annotations={EXTENDED: "true"},
        owner_references=(owner,),
    )


def generated_name(claim: ResourceClaim, suffix: str) -> str:
    """Return the name that a claim gets, as the server would generate it."""
    return f"{claim.metadata.generate_name[:_LONGEST_BASE]}{suffix}"


class _Container(msgspec.Struct, frozen=True):
    index: int
    name: str
    requests: Mapping[str, str]
    is_brief: bool
    """It ends before later containers start, which can then have its devices."""


def _containers(pod: Pod) -> list[_Container]:
    """Return init containers, then containers, as the numbers in names of requests count them."""
    init = [(container, not container.is_sidecar) for container in pod.spec.init_containers]
    both = [*init, *((container, False) for container in pod.spec.containers)]
    return [
        _Container(index, container.name, container.resources.requests, brief)
        for index, (container, brief) in enumerate(both)
    ]


def _requests(
    containers: Iterable[_Container], resource: str, class_name: str
) -> tuple[list[DeviceRequest], list[Mapped]]:
    """Return the requests for one resource, and which container may use which of them.

    An init container first uses the devices of those that start after it; what they need beyond
    that is requested once, as much as the largest of them needs.
    """
    using = [user for user in containers if whole(user.requests.get(resource, "0"))]
    lasting = {
        user.index: _request(user, resource, class_name, _count(user, resource))
        for user in using
        if not user.is_brief
    }
    extra: list[DeviceRequest] = []
    brief: list[tuple[_Container, str]] = []
    for user in using:
        if user.is_brief:
            shared, left = _share(user, resource, lasting)
            brief += [(user, name) for name in shared]
            if left:
                own = _request(user, resource, class_name, left)
                extra.append(own)
                brief.append((user, own.name))
    most = max(extra, key=_size, default=None)
    replaced = {own.name: most.name for own in extra if most is not None}
    mapped = [
        Mapped(user.name, resource, lasting[user.index].name) for user in using if not user.is_brief
    ]
    mapped += [Mapped(user.name, resource, replaced.get(name, name)) for user, name in brief]
    return [*([most] if most is not None else []), *lasting.values()], mapped


def _share(
    container: _Container, resource: str, lasting: Mapping[int, DeviceRequest]
) -> tuple[list[str], int]:
    """Return the requests of later containers that one can use, and how much it still lacks."""
    left, names = _count(container, resource), []
    for index, request in lasting.items():
        if index >= container.index and left > 0:
            names.append(request.name)
            left -= _size(request)
    return names, max(left, 0)


def _request(container: _Container, resource: str, class_name: str, count: int) -> DeviceRequest:
    place = sorted(container.requests).index(resource)
    return DeviceRequest(
        name=f"container-{container.index}-request-{place}",
        exactly=ExactDeviceRequest(
            device_class_name=class_name, allocation_mode=EXACT_COUNT, count=count
        ),
    )


def _count(container: _Container, resource: str) -> int:
    return whole(container.requests[resource])


def _size(request: DeviceRequest) -> int:
    return request.exactly.count if request.exactly is not None else 0


def mapping_status(mappings: Iterable[Mapped], claim: str) -> dict[str, Any]:
    """Return `extendedResourceClaimStatus` of a pod."""
    return {
        "requestMappings": [
            {
                "containerName": mapping.container,
                "resourceName": mapping.resource,
                "requestName": mapping.request,
            }
            for mapping in mappings
        ],
        "resourceClaimName": claim,
    }
