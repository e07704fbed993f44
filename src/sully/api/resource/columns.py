"""The printed columns of the kinds, as `kubectl get` shows them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sully.machinery.formats.timestamps import age, parse_time
from sully.machinery.strategy import Column

Obj = dict[str, Any]


def _text(*names: str) -> Callable[[Obj, datetime], str]:
    """Show a field, or nothing where it is absent."""

    def cell(obj: Obj, _now: datetime) -> str:
        value: Any = obj
        for name in names:
            value = (value or {}).get(name)
        return "" if value is None else str(value)

    return cell


def _age(missing: str, *names: str) -> Callable[[Obj, datetime], str]:
    """Show how long ago a time was."""
    text_of = _text(*names)

    def cell(obj: Obj, now: datetime) -> str:
        text = text_of(obj, now)
        return age(parse_time(text), now) if text else missing

    return cell


def claim_state(obj: Obj, _now: datetime) -> str:
    """Return the state of a claim: pending, allocated, reserved or deleted."""
    status = obj.get("status") or {}
    allocated = status.get("allocation") is not None
    states = []
    if obj["metadata"].get("deletionTimestamp"):
        states.append("deleted")
    if allocated:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not states:
        states.append("pending")
    return ",".join(states)


def _priority(obj: Obj, _now: datetime) -> int:
    return int(obj["spec"]["devices"].get("priority", 0))


NAME = Column(
    "Name",
    _text("metadata", "name"),
    format="name",
    description="Name of the object, unique among its kind in its namespace or cluster.",
)
AGE = Column(
    "Age",
    _age("<unknown>", "metadata", "creationTimestamp"),
    description="How long ago the server stored the object.",
)

SLICE = (
    NAME,
    Column("Node", _text("spec", "nodeName"), description="Node the devices belong to."),
    Column("Driver", _text("spec", "driver"), description="Driver that publishes the devices."),
    Column("Pool", _text("spec", "pool", "name"), description="Pool the slice is a part of."),
    AGE,
)
CLASS = (NAME, AGE)
CLAIM = (
    NAME,
    Column(
        "State",
        claim_state,
        description="pending, or what has happened: deleted, allocated, reserved.",
    ),
    AGE,
)
TEMPLATE = (NAME, AGE)
RULE = (
    NAME,
    Column("Key", _text("spec", "taint", "key"), description="Key of the taint."),
    Column("Value", _text("spec", "taint", "value"), description="Value of the taint."),
    Column("Effect", _text("spec", "taint", "effect"), description="What the taint does."),
    Column(
        "TimeAdded",
        _age("", "spec", "taint", "timeAdded"),
        description="Since when the taint counts.",
    ),
    AGE,
)
PATCH = (
    NAME,
    Column("Priority", _priority, type="integer", description="The higher wins."),
    Column("Driver", _text("spec", "devices", "filter", "driver"), description="Driver selected."),
    Column("Pool", _text("spec", "devices", "filter", "pool"), description="Pool selected."),
    Column("Device", _text("spec", "devices", "filter", "device"), description="Device selected."),
    AGE,
)


def _sum(name: str) -> Callable[[Obj, datetime], str]:
    """Show a count of all reported pools together; a dash where there is no answer."""

    def cell(obj: Obj, _now: datetime) -> str:
        if _outcome(obj) == "Failed" or obj.get("status") is None:
            return "-"
        return str(sum(pool.get(name) or 0 for pool in obj["status"].get("pools", ())))

    return cell


def _outcome(obj: Obj) -> str:
    for condition in (obj.get("status") or {}).get("conditions", ()):
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return str(condition["type"])
    return "Pending"


def _pool_errors(obj: Obj, _now: datetime) -> str:
    if _outcome(obj) == "Failed" or obj.get("status") is None:
        return "-"
    pools = obj["status"].get("pools", ())
    return str(sum(pool.get("validationError") is not None for pool in pools))


def _pool_count(obj: Obj, _now: datetime) -> int:
    return int((obj.get("status") or {}).get("poolCount") or 0)


def _request_state(obj: Obj, now: datetime) -> str:
    """Show the outcome, and how many pools the limit left out."""
    outcome, count = _outcome(obj), _pool_count(obj, now)
    shown = len((obj.get("status") or {}).get("pools", ()))
    if outcome == "Complete" and count > shown:
        return f"Complete ({shown}/{count} pools)"
    return outcome


def _completed(obj: Obj, now: datetime) -> str:
    if _outcome(obj) != "Complete":
        return "<none>"
    since = next(c for c in obj["status"]["conditions"] if c["type"] == "Complete")
    return age(parse_time(since["lastTransitionTime"]), now)


POOL_STATUS_REQUEST = (
    NAME,
    Column("Driver", _text("spec", "driver"), description="Driver of the pools."),
    Column("Total", _sum("totalDevices"), description="Devices of all reported pools."),
    Column("Available", _sum("availableDevices"), description="Devices that can be allocated."),
    Column("Allocated", _sum("allocatedDevices"), description="Devices allocated to claims."),
    Column("Unavailable", _sum("unavailableDevices"), description="Tainted devices."),
    Column("Errors", _pool_errors, description="Pools with a validation error."),
    Column("Pools", _pool_count, type="integer", description="Pools that match the request."),
    Column("Status", _request_state, description="Pending, Complete or Failed."),
    Column("Completed", _completed, description="How long ago the pools were counted."),
)
