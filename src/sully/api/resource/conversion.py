"""Between v1 and v1beta1, which has another shape; all other versions have that of v1.

In v1beta1 the content of a device lies under `basic`, and what v1 calls `exactly` lies flat in the
request. Nothing is lost either way: fields that only Sully has exist in both shapes.
"""

from collections.abc import Callable
from typing import Any

Obj = dict[str, Any]

_EXACT = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)


def slice_to_v1(obj: Obj) -> Obj:
    """Move the content of every device out of `basic`."""
    return _with_devices(obj, lambda device: {"name": device["name"], **device.get("basic", {})})


def slice_from_v1(obj: Obj) -> Obj:
    """Move the content of every device to `basic`."""
    return _with_devices(obj, _nested)


def _nested(device: Obj) -> Obj:
    basic = {name: value for name, value in device.items() if name != "name"}
    return {"name": device["name"], "basic": basic}


def _with_devices(obj: Obj, convert: Callable[[Obj], Obj]) -> Obj:
    devices = obj["spec"].get("devices")
    if devices is None:
        return obj
    spec = obj["spec"] | {"devices": [convert(device) for device in devices]}
    return obj | {"spec": spec}


def claim_to_v1(obj: Obj) -> Obj:
    """Move the flat fields of every request under `exactly`."""
    return obj | {"spec": _spec(obj["spec"], _gathered)}


def claim_from_v1(obj: Obj) -> Obj:
    """Move `exactly` of every request to the request."""
    return obj | {"spec": _spec(obj["spec"], _spread)}


def template_to_v1(obj: Obj) -> Obj:
    """Convert the claim spec of a template."""
    inner = obj["spec"] | {"spec": _spec(obj["spec"]["spec"], _gathered)}
    return obj | {"spec": inner}


def template_from_v1(obj: Obj) -> Obj:
    """Convert the claim spec of a template."""
    inner = obj["spec"] | {"spec": _spec(obj["spec"]["spec"], _spread)}
    return obj | {"spec": inner}


def _spec(spec: Obj, convert: Callable[[Obj], Obj]) -> Obj:
    devices = spec["devices"]
    requests = devices.get("requests")
    if not requests:
        return spec
    return spec | {"devices": devices | {"requests": [convert(request) for request in requests]}}


def _gathered(request: Obj) -> Obj:
    exactly = {name: request[name] for name in _EXACT if name in request}
    if exactly.get("tolerations") == []:
        # Kubernetes copies these one by one, into a list that is nil before the first.
        del exactly["tolerations"]
    rest = {name: value for name, value in request.items() if name not in _EXACT}
    # Only a request with flat fields has an `exactly`; an empty class name does not count,
    # because it is always written.
    if exactly.get("deviceClassName") or len(exactly) > 1:
        rest["exactly"] = exactly
    return rest


def _spread(request: Obj) -> Obj:
    flat: Obj = {name: value for name, value in request.items() if name != "exactly"}
    exactly: Obj = request.get("exactly", {})
    # v1beta1 always writes the class name.
    return flat | {"deviceClassName": ""} | exactly
