"""What a pod asks for as a whole, and the quality of service that follows from it."""

from typing import Any

from sully.machinery.quantity import Quantity, parse_quantity

Obj = dict[str, Any]

# Resources that can be asked for by the pod instead of by its containers.
POD_LEVEL = ("cpu", "memory")


def container_requests(spec: Obj) -> dict[str, str]:
    """Return what the containers request together.

    Containers run side by side with the sidecars among the init containers; other init containers
    run one after the other, each beside the sidecars that were started before it.
    """
    running: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        requests = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(running, requests)
            _raise(peak, running)
        else:
            start = dict(running)
            _add(start, requests)
            _raise(peak, start)
    for container in spec.get("containers") or ():
        _add(running, _requests(container))
    _raise(running, peak)
    return {name: str(amount) for name, amount in running.items()}


def _requests(container: Obj) -> dict[str, Quantity]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: parse_quantity(text) for name, text in requests.items()}


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
    found = {name: parse_quantity((amounts or {}).get(name, "0")) for name in POD_LEVEL}
    return {name: amount for name, amount in found.items() if amount.sign() > 0}


def _total(parts: list[dict[str, Quantity]]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        _add(total, part)
    return total
