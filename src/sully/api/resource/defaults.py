"""What the server fills in on every decoded body, new or changed.

Defaults work on the dict, before it becomes a value: a PUT without timeAdded gets a new one, a
patch keeps the stored one because it starts from the stored object.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sully.machinery.formats.timestamps import format_time

Obj = dict[str, Any]


def default_taints(taints: Iterator[Obj], now: datetime) -> None:
    """Set `timeAdded` of taints that have none, whatever their effect."""
    for taint in taints:
        if not taint.get("timeAdded"):
            taint["timeAdded"] = format_time(now)


def default_claim_spec(spec: Obj, version: str = "") -> None:
    """Set the defaults of requests: count, mode and toleration operators.

    In v1beta1 a request without a class is taken for one with alternatives, which has no count.
    """
    for request in requests_of(spec):
        alternative = "name" in request
        default_tolerations(request)
        if version == "v1beta1" and not alternative and not request.get("deviceClassName"):
            continue
        mode = request.get("allocationMode") or "ExactCount"
        request["allocationMode"] = mode
        if mode == "ExactCount" and not request.get("count"):
            request["count"] = 1


def settle_claim_spec(spec: Obj) -> None:
    """Write an empty list of requests as null, as Kubernetes does."""
    if not spec["devices"].get("requests"):
        spec["devices"]["requests"] = None


def default_tolerations(holder: Obj) -> None:
    """Set the default operator `Equal`."""
    for toleration in holder.get("tolerations", ()):
        toleration["operator"] = toleration.get("operator") or "Equal"


def default_claim_status(status: Obj) -> None:
    """Fill in the tolerations of allocation results."""
    for result in results_of(status):
        default_tolerations(result)


def requests_of(spec: Obj) -> Iterator[Obj]:
    """Yield the exact requests and subrequests of a claim spec."""
    for request in spec["devices"].get("requests") or ():
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable", ())


def results_of(status: Obj) -> Iterator[Obj]:
    """Yield the allocation results of a claim status."""
    allocation = status.get("allocation") or {}
    yield from allocation.get("devices", {}).get("results", ())


def slice_taints(spec: Obj) -> Iterator[Obj]:
    """Yield all taints of a slice, those of devices first."""
    for device in spec.get("devices", ()):
        yield from device.get("taints", ())
    for entry in spec.get("taints", ()):
        yield entry["taint"]
