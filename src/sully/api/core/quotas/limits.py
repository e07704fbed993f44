"""What LimitRanges do to new pods and volume claims: defaults for containers, least and most.

In the API server this is the admission plugin LimitRanger; its texts are those of clients. The kind
itself is in limitranges.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sully.api.core.pods.aggregate import container_amounts, pod_totals
from sully.machinery.errors import forbidden, joined
from sully.machinery.formats.quantity import NANO, Quantity, parse_quantity

Obj = dict[str, Any]
Amounts = Mapping[str, Quantity]

ANNOTATION = "kubernetes.io/limit-ranger"
_CONTAINERS = (("containers", "container"), ("initContainers", "init container"))


def set_container_defaults(pod: Obj, ranges: Iterable[Obj]) -> None:
    """Set requests and limits that containers do not have, and record it in an annotation."""
    for range_ in ranges:
        items = [item for item in _limits(range_) if item["type"] == "Container"]
        requests, limits = (_merged(items, part) for part in ("defaultRequest", "default"))
        changes = [
            text
            for field, noun in _CONTAINERS
            for container in pod["spec"].get(field) or ()
            for text in _set_defaults(container, requests, limits, noun)
        ]
        if changes:
            text = f"LimitRanger plugin set: {'; '.join(changes)}"
            pod["metadata"].setdefault("annotations", {})[ANNOTATION] = text


def review_pod(pod: Obj, ranges: Iterable[Obj]) -> None:
    """Refuse a pod that exceeds a limit; raise Forbidden."""
    _refuse("pods", pod, ranges, _pod_problems)


def review_volume_claim(claim: Obj, ranges: Iterable[Obj]) -> None:
    """Refuse a volume claim that requests too little or too much storage; raise Forbidden."""
    _refuse("persistentvolumeclaims", claim, ranges, _claim_problems)


def _refuse(
    resource: str,
    obj: Obj,
    ranges: Iterable[Obj],
    problems_of: Callable[[Obj, Obj], Iterator[str]],
) -> None:
    for range_ in ranges:
        text = joined(p for item in _limits(range_) for p in problems_of(obj, item))
        if text:
            raise forbidden(resource, "", obj["metadata"].get("name", ""), text)


def _limits(range_: Obj) -> Sequence[Obj]:
    return range_["spec"].get("limits") or ()


def _merged(items: Iterable[Obj], part: str) -> dict[str, str]:
    return {name: value for item in items for name, value in (item.get(part) or {}).items()}


def _set_defaults(
    container: Obj, requests: Mapping[str, str], limits: Mapping[str, str], noun: str
) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for field, defaults in (("requests", requests), ("limits", limits)):
        own = resources.get(field) or {}
        missing = {name: value for name, value in defaults.items() if name not in own}
        if missing:
            resources[field] = own | missing
            yield f"{', '.join(sorted(missing))} {field[:-1]} for {noun} {container['name']}"


def _pod_problems(pod: Obj, item: Obj) -> Iterator[str]:
    spec = pod["spec"]
    if item["type"] == "Container":
        for field, _ in _CONTAINERS:
            for container in spec.get(field) or ():
                requests, limits = (container_amounts(container, f) for f in _FIELDS)
                yield from _problems(item, requests, limits)
    elif item["type"] == "Pod":
        yield from _problems(item, *(pod_totals(spec, field) for field in _FIELDS))


_FIELDS = ("requests", "limits")


def _claim_problems(claim: Obj, item: Obj) -> Iterator[str]:
    if item["type"] != "PersistentVolumeClaim":
        return
    requests = container_amounts(claim["spec"], "requests")
    for name, least in _enforced(item, "min"):
        yield from _too_little(item["type"], name, least, requests)
    for name, most in _enforced(item, "max"):
        yield from _too_much(item["type"], name, most, requests, "request")


def _problems(item: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, least in _enforced(item, "min"):
        yield from _too_little(item["type"], name, least, requests)
    for name, most in _enforced(item, "max"):
        yield from _too_much(item["type"], name, most, limits, "limit")
    for name, ratio in _enforced(item, "maxLimitRequestRatio"):
        yield from _ratio(item["type"], name, ratio, requests.get(name), limits.get(name))


def _enforced(item: Obj, part: str) -> Iterator[tuple[str, Quantity]]:
    for name, text in sorted((item.get(part) or {}).items()):
        yield name, parse_quantity(text)


# A valid object requests no more than its limits, so that one of them is compared.
def _too_little(type_: str, name: str, least: Quantity, requests: Amounts) -> Iterator[str]:
    text = f"minimum {name} usage per {type_} is {least}"
    if name not in requests:
        yield f"{text}.  No request is specified"
    elif requests[name] < least:
        yield f"{text}, but request is {requests[name]}"


def _too_much(type_: str, name: str, most: Quantity, amounts: Amounts, noun: str) -> Iterator[str]:
    text = f"maximum {name} usage per {type_} is {most}"
    if name not in amounts:
        yield f"{text}.  No {noun} is specified"
    elif amounts[name] > most:
        yield f"{text}, but {noun} is {amounts[name]}"


def _ratio(
    type_: str, name: str, most: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    text = f"{name} max limit to request ratio per {type_} is {most}"
    if not request:
        yield f"{text}, but no request is specified or request is 0"
    elif not limit:
        yield f"{text}, but no limit is specified or limit is 0"
    elif limit.nanos * NANO > most.nanos * request.nanos:
        yield f"{text}, but provided ratio is {limit.nanos / request.nanos:f}"
