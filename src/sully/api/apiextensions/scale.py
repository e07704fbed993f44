"""A custom resource as a Scale and back, by the paths of its definition."""

from typing import Any

from sully.api.apps.scale import build_scale
from sully.machinery.errors import BadRequest, InternalError
from sully.machinery.fields import value_at
from sully.machinery.strategy import ScalePaths

Obj = dict[str, Any]
_UNSET = -(2**31)
"""The count of a Scale, for whoever changes it, of an object that has none."""


def custom_scale_of(obj: Obj, paths: ScalePaths) -> Obj:
    """Return a custom resource as a Scale, without kind and apiVersion."""
    if value_at(obj, paths.replicas) is None:
        problem = f"{_count_field(paths)} does not exist"
        details = {"causes": [{"message": problem}]}
        raise InternalError(f"Internal error occurred: {problem}", details=details)
    return custom_scale_to_change(obj, paths)


def custom_scale_to_change(obj: Obj, paths: ScalePaths) -> Obj:
    """Return a custom resource as the Scale that a patch changes; it need not have a count."""
    replicas = value_at(obj, paths.replicas)
    if replicas is None:
        replicas = _UNSET
    current = value_at(obj, paths.status_replicas) or 0
    selector = value_at(obj, paths.selector) if paths.selector else ""
    return build_scale(obj, replicas, current, selector)


def apply_custom_scale(obj: Obj, scale: Obj, paths: ScalePaths) -> Obj:
    """Return the object with the count of a Scale; it is validated as any other update.

    The Scale's resourceVersion and uid go over to the object: the write compares them.
    """
    replicas = scale["spec"].get("replicas", 0)
    if replicas == _UNSET:
        raise BadRequest(f"{_count_field(paths)} cannot be empty")
    metadata = dict(obj["metadata"])
    for name in ("resourceVersion", "uid"):
        if scale["metadata"].get(name):
            metadata[name] = scale["metadata"][name]
    changed = {**obj, "metadata": metadata}
    inner = changed
    for name in paths.replicas[:-1]:
        inner[name] = dict(inner.get(name) or {})
        inner = inner[name]
    inner[paths.replicas[-1]] = replicas
    return changed


def _count_field(paths: ScalePaths) -> str:
    return f'the spec replicas field ".{".".join(paths.replicas)}"'
