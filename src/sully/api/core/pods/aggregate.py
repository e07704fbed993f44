"""The requests and limits of a whole pod, and its quality of service class."""

from collections.abc import Mapping
from typing import Any

from sully.api.core.amounts import HUGE_PAGES
from sully.machinery.formats.quantity import Quantity, parse_quantity

Obj = dict[str, Any]

# Resources that can be requested by the pod instead of by its containers.
POD_LEVEL = ("cpu", "memory")


def container_requests(spec: Obj) -> dict[str, str]:
    """Return what the containers request together."""
    return {name: str(amount) for name, amount in container_totals(spec, "requests").items()}


def container_totals(spec: Obj, field: str) -> dict[str, Quantity]:
    """Return the `requests`, or `limits`, of the containers together.

    Containers run side by side with the sidecars among the init containers; other init containers
    run one after the other, each beside the sidecars that were started before it.
    """
    running: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        amounts = container_amounts(container, field)
        if container.get("restartPolicy") == "Always":
            _add(running, amounts)
            _raise(peak, running)
        else:
            start = dict(running)
            _add(start, amounts)
            _raise(peak, start)
    for container in spec.get("containers") or ():
        _add(running, container_amounts(container, field))
    _raise(running, peak)
    return running


def pod_totals(spec: Obj, field: str) -> dict[str, Quantity]:
    """Return the `requests`, or `limits`, by the containers and by the pod itself."""
    return container_totals(spec, field) | _pod_level(spec, field)


def pod_requests(spec: Obj) -> dict[str, Quantity]:
    """Return what a pod requests: by its containers, by itself, and its overhead."""
    total = pod_totals(spec, "requests")
    _add(total, _parsed(spec.get("overhead")))
    return total


def pod_limits(spec: Obj) -> dict[str, Quantity]:
    """Return the limits of a pod; the overhead adds to those that are not zero."""
    total = pod_totals(spec, "limits")
    overhead = _parsed(spec.get("overhead"))
    _add(total, {name: more for name, more in overhead.items() if total.get(name)})
    return total


def has_pod_level(spec: Obj) -> bool:
    """Report whether a pod has requests or limits for all of its containers together."""
    return any(_pod_level(spec, field) for field in ("requests", "limits"))


def _pod_level(spec: Obj, field: str) -> dict[str, Quantity]:
    own = _parsed((spec.get("resources") or {}).get(field))
    return {
        name: amount
        for name, amount in own.items()
        if name in POD_LEVEL or name.startswith(HUGE_PAGES)
    }


def container_amounts(container: Obj, field: str) -> dict[str, Quantity]:
    """Return the `requests`, or `limits`, of one container."""
    return _parsed((container.get("resources") or {}).get(field))


def _parsed(amounts: Mapping[str, str] | None) -> dict[str, Quantity]:
    return {name: parse_quantity(text) for name, text in (amounts or {}).items()}


def _add(total: dict[str, Quantity], more: dict[str, Quantity]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise(total: dict[str, Quantity], least: dict[str, Quantity]) -> None:
    for name, amount in least.items():
        if name not in total or total[name] < amount:
            total[name] = amount


def quality_of_service(spec: Obj) -> str:
    """Return Guaranteed, Burstable or BestEffort, from the requests for CPU and memory."""
    own = spec.get("resources")
    if own and (own.get("requests") or own.get("limits")):
        parts = [own]
    else:
        names = ("containers", "initContainers")
        parts = [c["resources"] for name in names for c in spec.get(name) or ()]
    requests = [_known(part.get("requests")) for part in parts]
    limits = [_known(part.get("limits")) for part in parts]
    if not any(requests) and not any(limits):
        return "BestEffort"
    complete = all(set(limit) == set(POD_LEVEL) for limit in limits)
    return "Guaranteed" if complete and _total(requests) == _total(limits) else "Burstable"


def _known(amounts: dict[str, str] | None) -> dict[str, Quantity]:
    parsed = {name: parse_quantity((amounts or {}).get(name, "0")) for name in POD_LEVEL}
    return {name: amount for name, amount in parsed.items() if amount.sign() > 0}


def _total(parts: list[dict[str, Quantity]]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        _add(total, part)
    return total
