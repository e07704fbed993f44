"""What the endpoints `ephemeralcontainers` and `resize` change in a pod that runs.

Each takes its part of the spec that a client sends and leaves the rest as it is stored.
"""

from typing import Any

from sully.api.core.checks import Errors, same
from sully.api.core.gotypes import core_type
from sully.api.core.pods.aggregate import quality_of_service
from sully.api.core.pods.mirrors import is_mirror
from sully.api.core.pods.pod_level import default_pod_level
from sully.api.core.pods.spec.validation import SPEC, validate_pod
from sully.machinery.fields import Path
from sully.machinery.formats.quantity import parse_quantity
from sully.machinery.serialization.gostructs import diff
from sully.machinery.serialization.gotext import quote

Obj = dict[str, Any]

_EPHEMERAL = "ephemeralContainers"
_SORTS = ("containers", "initContainers")
_RESIZABLE = ("cpu", "memory")
_ONLY_AMOUNTS = "only cpu and memory resources are mutable"
_ONLY_AMOUNTS_FIRST = "only cpu and memory resources for init or sidecar containers are mutable"
_NO_RESTART = (
    "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
)
_QUALITY = "Pod QOS Class may not change as a result of resizing"
_METADATA = (
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
)


def keep_metadata(metadata: Obj, old: Obj) -> None:
    """Keep what an endpoint for a part does not change."""
    for name in _METADATA:
        metadata.pop(name, None)
        if name in old:
            metadata[name] = old[name]


# -- ephemeral containers ---------------------------------------------------------------------


def with_ephemeral_containers(spec: Obj, old: Obj) -> Obj:
    """Return the stored spec with the ephemeral containers of another."""
    rest = {name: value for name, value in old.items() if name != _EPHEMERAL}
    return {**rest, _EPHEMERAL: spec[_EPHEMERAL]} if spec.get(_EPHEMERAL) else rest


def validate_ephemeral_containers(pod: Obj, old: Obj) -> Errors:
    """Yield everything wrong with a change of the ephemeral containers."""
    if is_mirror(old):
        yield Path().forbidden("static pods do not support ephemeral containers")
        return
    yield from validate_pod(pod)
    at = SPEC.child(_EPHEMERAL)
    now = {container.get("name", ""): container for container in pod["spec"].get(_EPHEMERAL) or ()}
    for container in old["spec"].get(_EPHEMERAL) or ():
        name = container["name"]
        known = f"existing ephemeral containers {quote(name)} may not be"
        if name not in now:
            yield at.forbidden(f"{known} removed\n")
        elif not same(now[name], container):
            shown = diff(container, now[name], core_type("EphemeralContainer"))
            yield at.forbidden(f"{known} changed\n{shown}")


# -- resize -----------------------------------------------------------------------------------


def with_resources(spec: Obj, old: Obj) -> Obj:
    """Return the stored spec with the resources of another.

    Containers that do not match are taken as they are, so that validation finds them.
    """
    if any(len(spec.get(sort) or ()) != len(old.get(sort) or ()) for sort in _SORTS):
        return spec
    result = dict(old)
    for sort in _SORTS:
        if spec.get(sort):
            result[sort] = _resized(spec[sort], old[sort])
    if "resources" in spec:
        result["resources"] = spec["resources"]
    default_pod_level(result)
    return result


def _resized(containers: list[Obj], old: list[Obj]) -> list[Obj]:
    pairs = list(zip(containers, old, strict=True))
    if any(new.get("name") != before["name"] for new, before in pairs):
        return containers
    result = []
    for new, before in pairs:
        rest = {name: value for name, value in before.items() if name != "resizePolicy"}
        policies = {"resizePolicy": new["resizePolicy"]} if new.get("resizePolicy") else {}
        result.append({**rest, "resources": new["resources"], **policies})
    return result


def validate_resize(pod: Obj, old: Obj) -> Errors:
    """Yield everything wrong with a change of resources."""
    if is_mirror(old):
        yield Path().forbidden("static pods cannot be resized")
        return
    spec, before = pod["spec"], old["spec"]
    if (before.get("os") or {}).get("name") == "windows":
        yield Path().forbidden("windows pods cannot be resized")
        return
    yield from validate_pod(pod)
    quality = old["status"].get("qosClass") or quality_of_service(before)
    if quality != quality_of_service(spec):
        yield SPEC.invalid(old["status"].get("qosClass", ""), _QUALITY)
    if not _node_resizes(old["status"]):
        yield SPEC.forbidden("Pod running on node without support for resize")
    moved = list(_moved(spec, before))
    yield from moved
    if not moved:
        yield from _removed(spec, before)
        yield from _others(spec, before)


def _node_resizes(status: Obj) -> bool:
    for container in status.get("containerStatuses") or ():
        if "running" in (container.get("state") or {}):
            return "resources" in container
    return True


def _moved(spec: Obj, before: Obj) -> Errors:
    for sort in _SORTS:
        new, old = spec.get(sort) or (), before.get(sort) or ()
        at = SPEC.child(sort)
        if len(new) != len(old):
            yield at.forbidden(f"{sort} may not be added or removed on resize")
            continue
        for position, (container, known) in enumerate(zip(new, old, strict=True)):
            if container.get("name") != known["name"]:
                text = f"{sort} may not be renamed or reordered on resize"
                yield at.index(position).child("name").forbidden(text)


def _removed(spec: Obj, before: Obj) -> Errors:
    for sort in reversed(_SORTS):
        pairs = zip(spec.get(sort) or (), before.get(sort) or (), strict=True)
        for position, (container, known) in enumerate(pairs):
            at = SPEC.child(sort).index(position).child("resources")
            for field in ("requests", "limits"):
                left = container["resources"].get(field) or {}
                if any(name not in left for name in known["resources"].get(field) or ()):
                    yield at.child(field).forbidden(f"resource {field} cannot be removed")


def _others(spec: Obj, before: Obj) -> Errors:
    """Nothing but CPU and memory may differ."""
    for container, known in _pairs(spec, before, "containers"):
        if not same(_without_amounts(container, known), known):
            yield SPEC.forbidden(_ONLY_AMOUNTS)
    for position, (container, known) in enumerate(_pairs(spec, before, "initContainers")):
        at = SPEC.child("initContainers").index(position)
        if not same(_without_amounts(container, known), known):
            yield at.forbidden(_ONLY_AMOUNTS_FIRST)
        if container.get("restartPolicy") != "Always" and not same(container, known):
            for policy in container.get("resizePolicy") or ():
                if policy.get("restartPolicy") == "RestartContainer":
                    yield at.forbidden(_NO_RESTART)


def _pairs(spec: Obj, before: Obj, sort: str) -> list[tuple[Obj, Obj]]:
    return list(zip(spec.get(sort) or (), before.get(sort) or (), strict=True))


def _without_amounts(container: Obj, known: Obj) -> Obj:
    """Return a container with the CPU and memory of another."""
    resources = dict(container["resources"])
    for field in ("limits", "requests"):
        new, old = resources.pop(field, None) or {}, known["resources"].get(field) or {}
        values = {name: value for name, value in new.items() if name not in _RESIZABLE}
        values |= {name: value for name, value in old.items() if name in _RESIZABLE}
        values |= {name: old[name] for name in values if name in old and _equal(values, old, name)}
        if values:
            resources[field] = values
    return {**container, "resources": resources}


def _equal(values: Obj, old: Obj, name: str) -> bool:
    return parse_quantity(values[name]) == parse_quantity(old[name])
