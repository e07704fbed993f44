"""Fields of pods that Kubernetes has behind gates that are off: it drops them silently.

A pod that was stored with such a field keeps it.
"""

from collections.abc import Iterator
from typing import Any

from sully.api.core.pods.creation.repeated import without_token_name
from sully.machinery.memo import ValidValues

Obj = dict[str, Any]

_OF_SPEC = ("evictionResponders",)
"""Not `schedulingGroup`: claims can be reserved for groups, and our scheduler refuses others."""
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HOOKS = ("postStart", "preStop")
_WITH_FILES = ("secret", "configMap", "downwardAPI", "projected")
_TOKENS = ("serviceAccountToken", "clusterTrustBundle", "podCertificate")
_WITHOUT_THEM = ValidValues(256)
"""Specs without such fields: nearly all."""


def drop_disabled(spec: Obj, old: Obj | None = None) -> None:
    """Remove the fields from the spec of a pod, unless the stored one has them."""
    if not [*_WITHOUT_THEM.check(without_token_name(spec), _disabled(spec))]:
        return
    in_use = {(path, name) for path, _, name in _disabled(old or {})}
    if ("lifecycle", "stopSignal") not in in_use:
        _drop_signals(spec)
    for path, holder, name in [*_disabled(spec)]:
        if (path, name) not in in_use:
            del holder[name]


def _drop_signals(spec: Obj) -> None:
    for part in _CONTAINERS:
        for container in spec.get(part) or ():
            # Hooks for the signal alone are none.
            if (container.get("lifecycle") or {}).keys() == {"stopSignal"}:
                del container["lifecycle"]


def _disabled(spec: Obj) -> Iterator[tuple[str, Obj, str]]:
    """Yield the kind of place, the object and the name of each such field."""
    yield from _set_fields("spec", spec, *_OF_SPEC)
    for part in _CONTAINERS:
        for container in spec.get(part) or ():
            yield from _of_container(container)
    for volume in spec.get("volumes") or ():
        yield from _set_fields("emptyDir", volume.get("emptyDir"), "mode")
        for name in _WITH_FILES:
            yield from _users(volume.get(name))


def _of_container(container: Obj) -> Iterator[tuple[str, Obj, str]]:
    for mount in container.get("volumeMounts") or ():
        yield from _set_fields("mount", mount, "bindMountOptions")
    lifecycle = container.get("lifecycle") or {}
    yield from _set_fields("lifecycle", lifecycle, "stopSignal")
    actions = [container.get(name) or {} for name in _PROBES]
    actions += [lifecycle.get(name) or {} for name in _HOOKS]
    for action in actions:
        yield from _set_fields("httpGet", action.get("httpGet"), "protocol")
        yield from _set_fields("grpc", action.get("grpc"), "mode")


def _users(source: Obj | None) -> Iterator[tuple[str, Obj, str]]:
    if source is None:
        return
    yield from _set_fields("source", source, "defaultUser")
    for item in source.get("items") or ():
        yield from _set_fields("item", item, "user")
    for one in source.get("sources") or ():
        for name in _TOKENS:
            yield from _set_fields("item", one.get(name), "user")
        for name in _WITH_FILES:
            yield from _users(one.get(name))


def _set_fields(path: str, holder: Obj | None, *names: str) -> Iterator[tuple[str, Obj, str]]:
    for name in names:
        if holder and name in holder:
            yield path, holder, name
