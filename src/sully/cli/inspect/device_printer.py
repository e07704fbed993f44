"""The output of `sully devices`: rows of a table, and documents for programs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sully.api.resource.types import DeviceAttribute, DeviceToleration
from sully.cli.client.formatting import (
    EFFECT_STYLES,
    age,
    eviction_text,
    expiry_text,
    origin_text,
    taint_text,
    toleration_text,
)
from sully.cli.client.printers import time_text, without_empty
from sully.cli.client.tables import Cell, Column
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.taints import Origin
from sully.views.devices.details import Holder, Mark, Sight

_COLUMNS = (
    Column("DEVICE", shrinks=2, least=24),
    Column("NODE", shrinks=2, least=8),
    Column("TAINTS", shrinks=1, least=20),
    Column("USED BY", shrinks=1, least=20),
)
_WIDE_COLUMNS = (
    Column("CLAIMS", shrinks=1),
    Column("TOLERATIONS", shrinks=1),
    Column("ATTRIBUTES", shrinks=1),
)
_NONE = "-"
_UNKNOWN = "?"
_ORDER = ("NoExecute", "NoExecuteWithPodDisruptionBudget", "NoSchedule")


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def row(sight: Sight, now: datetime, *, wide: bool) -> Sequence[Cell | str]:
    effects = {mark.sourced.taint.effect for mark in sight.marks}
    worst = next((effect for effect in _ORDER if effect in effects), "")
    cells: list[Cell | str] = [
        str(sight.id),
        sight.node if sight.device is not None else "(gone)",
        Cell(
            _joined(_mark(mark, now, wide=wide) for mark in sight.marks),
            EFFECT_STYLES.get(worst, ""),
        ),
        _joined(_users(sight, now)),
    ]
    if wide:
        tolerations = {toleration_text(x) for holder in sight.holders for x in holder.tolerations}
        cells += [
            _joined(dict.fromkeys(str(holder.claim) for holder in sight.holders)),
            _joined(sorted(tolerations)),
            _joined(_attributes(sight.device, sight)) if sight.device is not None else _NONE,
        ]
    return cells


def _joined(texts: Any) -> str:
    return ", ".join(texts) or _NONE


def _mark(mark: Mark, now: datetime, *, wide: bool) -> str:
    taint = mark.sourced.taint
    facts = [origin_text(mark.sourced.origin, wide=wide)]
    if taint.time_added is not None:
        facts.append(age(taint.time_added, now))
    if mark.ends is not None:
        facts.append(expiry_text(mark.ends, now))
    if mark.paused is not None:
        facts.append("paused")
    return f"{taint_text(taint)} ({', '.join(facts)})"


def _users(sight: Sight, now: datetime) -> list[str]:
    if not sight.users_known:
        return [_UNKNOWN]
    users = [_user(holder, now) for holder in sight.holders]
    in_use = any(not holder.admin for holder in sight.holders)
    if sight.obstacle is not None and not in_use:
        # It is unused and cannot be allocated either.
        users.append(f"({sight.obstacle.text})")
    return users


def _user(holder: Holder, now: datetime) -> str:
    facts = ["admin"] if holder.admin else []
    facts += [f"{amount} {name}" for name, amount in sorted(holder.consumed.items())]
    if holder.leaves is not None:
        facts.append(eviction_text(holder.leaves, now))
    pods = " ".join(map(str, holder.pods)) or f"claim {holder.claim}"
    return f"{pods} ({', '.join(facts)})" if facts else pods


def _attributes(device: EffectiveDevice, sight: Sight) -> list[str]:
    texts = []
    for name in sorted({*device.attributes, *device.attribute_origins}):
        value = device.attributes.get(name)
        text = f"{name}={_value_text(value)}" if value is not None else f"{name} removed"
        texts.append(text + _by(device.attribute_origins.get(name)))
    for name, amount in sorted(device.capacity.items()):
        left = f" ({sight.left[name]} left)" if name in sight.left else ""
        texts.append(f"{name}={amount.value}{left}" + _by(device.capacity_origins.get(name)))
    return texts


def _by(origin: Origin | None) -> str:
    return f" ({origin_text(origin)})" if origin is not None else ""


def value_of(attribute: DeviceAttribute) -> Any:
    """Return the one value that an attribute has."""
    for name in attribute.__struct_fields__:
        value = getattr(attribute, name)
        if value is not None:
            return list(value) if isinstance(value, tuple) else value
    return None


def _value_text(attribute: DeviceAttribute) -> str:
    value = value_of(attribute)
    if isinstance(value, list):
        return "[" + " ".join(map(str, value)) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


# -- for programs ----------------------------------------------------------------------------------


def document(sight: Sight) -> dict[str, Any]:
    """Return a device as a plain value; the fields are promised to scripts."""
    availability = {"free": sight.free, **_obstacle(sight)} if sight.users_known else {}
    fields = {
        "driver": sight.id.driver,
        "pool": sight.id.pool,
        "device": sight.id.device,
        "node": sight.node,
        "published": sight.device is not None,
        **availability,
        "taints": [_mark_document(mark) for mark in sight.marks],
        "users": [_holder_document(holder) for holder in sight.holders],
    }
    if sight.device is not None:
        fields |= without_empty(allowMultipleAllocations=sight.shareable or None)
        fields |= _content_document(sight.device, sight)
    return fields


def _obstacle(sight: Sight) -> dict[str, Any]:
    obstacle = sight.obstacle
    if obstacle is None:
        return {}
    return {"obstacle": {"reason": obstacle.cause, "message": obstacle.text}}


def _content_document(device: EffectiveDevice, sight: Sight) -> dict[str, Any]:
    attributes = {
        name: without_empty(value=value_of(value), **_origin(device.attribute_origins, name))
        for name, value in sorted(device.attributes.items())
    }
    removed = {
        name: {"removed": True, **_origin(device.attribute_origins, name)}
        for name in sorted(device.attribute_origins)
        if name not in device.attributes
    }
    capacity = {
        name: without_empty(
            value=amount.value,
            left=str(sight.left[name]) if name in sight.left else None,
            **_origin(device.capacity_origins, name),
        )
        for name, amount in sorted(device.capacity.items())
    }
    return {"attributes": attributes | removed, "capacity": capacity}


def _origin(origins: Mapping[str, Origin], name: str) -> dict[str, Any]:
    origin = origins.get(name)
    return {"origin": _origin_document(origin)} if origin is not None else {}


def _origin_document(origin: Origin) -> dict[str, str]:
    return {"kind": origin.kind, "name": origin.name}


def _mark_document(mark: Mark) -> dict[str, Any]:
    taint = mark.sourced.taint
    return without_empty(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        timeAdded=time_text(taint.time_added),
        description=taint.description,
        data=taint.data,
        origin=_origin_document(mark.sourced.origin),
        endTime=time_text(mark.ends),
        paused=mark.paused,
    )


def _holder_document(holder: Holder) -> dict[str, Any]:
    return without_empty(
        claim={"namespace": holder.claim.namespace, "name": holder.claim.name},
        pods=[{"namespace": pod.namespace, "name": pod.name} for pod in holder.pods],
        request=holder.request,
        adminAccess=holder.admin or None,
        shareID=holder.share,
        consumedCapacity=holder.consumed,
        tolerations=[_toleration_document(x) for x in holder.tolerations],
        evictionTime=time_text(holder.leaves),
    )


def _toleration_document(toleration: DeviceToleration) -> dict[str, Any]:
    return without_empty(
        key=toleration.key,
        operator=toleration.operator,
        value=toleration.value,
        effect=toleration.effect,
        tolerationSeconds=toleration.toleration_seconds,
    )
