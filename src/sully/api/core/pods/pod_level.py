"""Resources of a pod as a whole: what it does not set is derived from its containers.

They are filled in when a pod is prepared, not when it is decoded, so these fields have no manager.
"""

from typing import Any

from sully.api.core.amounts import HUGE_PAGES
from sully.api.core.pods.aggregate import POD_LEVEL, container_totals
from sully.machinery.formats.quantity import parse_quantity

Obj = dict[str, Any]


def is_pod_level(name: str) -> bool:
    """Report whether a resource can be requested by a pod instead of by its containers."""
    return name in POD_LEVEL or name.startswith(HUGE_PAGES)


def default_pod_level(spec: Obj) -> None:
    """Complete the resources of a pod that has some."""
    resources = spec.get("resources") or {}
    requests = dict(resources.get("requests") or {})
    limits = dict(resources.get("limits") or {})
    if not requests and not limits:
        return
    containers = container_totals(spec, "limits")
    for name, amount in containers.items():
        if name.startswith(HUGE_PAGES) and name not in requests:
            limits.setdefault(name, str(amount))
    for name, amount in container_totals(spec, "requests").items():
        if name in POD_LEVEL:
            requests.setdefault(name, str(amount))
    for name, text in limits.items():
        if is_pod_level(name):
            requests.setdefault(name, text)
    for name, text in requests.items():
        if name in limits or name not in containers or not is_pod_level(name):
            continue
        if _limited_everywhere(spec, name):
            # A limit below the request would not be valid.
            limits[name] = max(str(containers[name]), text, key=parse_quantity)
    spec["resources"] = resources | _non_empty(requests=requests, limits=limits)


def _limited_everywhere(spec: Obj, name: str) -> bool:
    parts = ("containers", "initContainers", "ephemeralContainers")
    containers = [container for part in parts for container in spec.get(part) or ()]
    return all(
        name in ((container.get("resources") or {}).get("limits") or {}) for container in containers
    )


def _non_empty(**amounts: dict[str, str]) -> Obj:
    return {field: values for field, values in amounts.items() if values}
