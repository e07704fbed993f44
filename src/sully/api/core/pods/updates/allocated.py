"""What a node reports about the health of the resources that containers have been given."""

from collections.abc import Iterator
from typing import Any

from sully.api.core.checks import Errors
from sully.machinery.fields import Path
from sully.machinery.formats.quantity import parse_quantity

Obj = dict[str, Any]

_CLAIM = "claim:"
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MESSAGE_MAX = 1024
_NOT_A_REQUEST = "must match one of the container's resource requests"
_NOT_A_CLAIM = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when"
    " container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)


def validate_allocated(pod: Obj) -> Errors:
    """Check that containers have what is reported, and each report."""
    for part in ("containers", "initContainers"):
        known = {one["name"]: one for one in reversed(pod["spec"].get(part) or ())}
        for at, status in _statuses(pod, part):
            # A status may be about a container that there is not.
            container = known.get(status.get("name", ""))
            for position, allocated in enumerate(status.get(_FIELD) or ()):
                here = at.child(_FIELD).index(position)
                if container is not None:
                    yield from _has(container, allocated.get("name", ""), pod, here.child("name"))
                yield from _resources(allocated.get("resources") or [], here.child("resources"))
    for at, status in _statuses(pod, "ephemeralContainers"):
        if status.get(_FIELD):
            yield at.child(_FIELD).forbidden("must not be specified in container status")


_FIELD = "allocatedResourcesStatus"


def _statuses(pod: Obj, part: str) -> Iterator[tuple[Path, Obj]]:
    name = f"{part.removesuffix('s')}Statuses"
    for position, status in enumerate(pod["status"].get(name) or ()):
        yield Path("status").child(name).index(position), status


def _has(container: Obj, name: str, pod: Obj, at: Path) -> Errors:
    if name.startswith(_CLAIM):
        if name not in {*_claims(container), *_extended(container, pod)}:
            yield at.invalid(name, _NOT_A_CLAIM)
    elif name not in (container["resources"].get("requests") or {}):
        yield at.invalid(name, _NOT_A_REQUEST)


def _claims(container: Obj) -> Iterator[str]:
    for claim in container["resources"].get("claims") or ():
        request = claim.get("request")
        yield f"{_CLAIM}{claim.get('name', '')}" + (f"/{request}" if request else "")


def _extended(container: Obj, pod: Obj) -> Iterator[str]:
    """Yield the requests of the claim for extended resources that are this container's."""
    claim = pod["status"].get("extendedResourceClaimStatus") or {}
    requests = container["resources"].get("requests") or {}
    for mapping in claim.get("requestMappings") or ():
        amount = requests.get(mapping.get("resourceName", ""), "0")
        is_own = mapping.get("containerName") == container["name"]
        if is_own and mapping.get("requestName") and parse_quantity(amount).sign() != 0:
            yield f"{_CLAIM}{claim.get('resourceClaimName', '')}/{mapping['requestName']}"


def _resources(resources: list[Obj], at: Path) -> Errors:
    seen: set[str] = set()
    for position, resource in enumerate(resources):
        here, message = at.index(position), resource.get("message")
        if resource.get("health", "") not in _HEALTH:
            yield here.child("health").not_supported(resource.get("health", ""), _HEALTH)
        if message == "":
            yield here.child("message").required("must be non-empty if specified")
        elif message is not None and len(message.encode()) > _MESSAGE_MAX:
            yield here.child("message").too_long(_MESSAGE_MAX)
        identity = resource.get("resourceID", "")
        if identity in seen:
            yield here.child("resourceID").duplicate(identity)
        seen.add(identity)
