"""Probes and lifecycle hooks: what is done to a running container from outside."""

import re
from collections.abc import Callable
from typing import Any

from sully.api.core.checks import Errors, not_negative, one_of
from sully.api.core.pods.spec.ports import port_reference
from sully.machinery.fields import Path

Obj = dict[str, Any]

_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HEADER = re.compile("[-A-Za-z0-9]+")
_NO_HEADER = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name',"
    " regex used for validation is '[-A-Za-z0-9]+')"
)


def _exec(action: Obj, at: Path) -> Errors:
    if not action.get("command"):
        yield at.child("command").required()


def _http(action: Obj, at: Path) -> Errors:
    if not action.get("path"):
        yield at.child("path").required()
    yield from port_reference(action.get("port", 0), at.child("port"))
    yield from one_of(action.get("scheme", ""), ("HTTP", "HTTPS"), at.child("scheme"))
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        if not _HEADER.fullmatch(name):
            yield at.child("httpHeaders").invalid(name, _NO_HEADER)


def _port(action: Obj, at: Path) -> Errors:
    yield from port_reference(action.get("port", 0), at.child("port"))


def _sleep(action: Obj, grace: int | None, at: Path) -> Errors:
    seconds = action.get("seconds", 0)
    if grace is not None and not 0 <= seconds <= grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield at.invalid(seconds, text)


_HANDLERS: dict[str, Callable[[Obj, Path], Errors]] = {
    "exec": _exec,
    "httpGet": _http,
    "tcpSocket": _port,
    "grpc": _port,
}


def handler(value: Obj, at: Path, grace: int | None = None) -> Errors:
    """Check that there is one action, and that it is complete.

    `grace` is how many seconds the pod has to end; None: that is not known.
    """
    handlers = _HANDLERS | {"sleep": lambda action, at: _sleep(action, grace, at)}
    present = [name for name in handlers if name in value]
    if not present:
        yield at.required("must specify a handler type")
        return
    yield from handlers[present[0]](value[present[0]], at.child(present[0]))
    for name in present[1:]:
        yield at.child(name).forbidden("may not specify more than 1 handler type")


def lifecycle(value: Obj, at: Path, grace: int | None) -> Errors:
    """Check both hooks; `grace` as for `handler`."""
    for name in ("postStart", "preStop"):
        if name in value:
            yield from handler(value[name], at.child(name), grace)


def probe(value: Obj, name: str, at: Path) -> Errors:
    """Check one probe; `name` is its field."""
    yield from handler(value, at)
    for field in _COUNTS:
        yield from not_negative(value.get(field, 0), at.child(field))
    grace = value.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield at.child("terminationGracePeriodSeconds").invalid(grace, "must be greater than 0")
    if name == "readinessProbe":
        if grace is not None:
            text = "must not be set for readinessProbes"
            yield at.child("terminationGracePeriodSeconds").invalid(grace, text)
    elif value.get("successThreshold", 0) != 1:
        yield at.child("successThreshold").invalid(value.get("successThreshold", 0), "must be 1")
