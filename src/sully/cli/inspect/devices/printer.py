"""The output of `sully devices`: rows of a table, and documents for programs."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sully.api.resource.types import DeviceAttribute, DeviceToleration
from sully.cli.output.formatting import (
    EFFECT_STYLES,
    age,
    eviction_text,
    expiry_text,
    origin_text,
    toleration_text,
)
from sully.cli.output.printers import time_text, without_empty
from sully.cli.output.tables import Cell, Column
from sully.domain.allocation.usage.conflicts import DeviceConflict
from sully.domain.devices.device import EffectiveDevice
from sully.domain.devices.selectors import Content
from sully.domain.devices.suppression import suppression_text
from sully.domain.devices.taints import Origin, Suppression, strongest_effect
from sully.domain.tolerations import taint_text
from sully.machinery.memo import Memo
from sully.views.devices.device_views import ClaimView, DeviceView, TaintView

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
_NO_TAINTS = Cell(_NONE)
_UNKNOWN = "?"


def columns(*, wide: bool) -> Sequence[Column]:
    return (*_COLUMNS, *_WIDE_COLUMNS) if wide else _COLUMNS


def row(view: DeviceView, now: datetime, *, wide: bool) -> Sequence[Cell | str]:
    users = ", ".join(_users(view, now)) or _NONE
    cells: list[Cell | str] = [
        str(view.id),
        view.node if view.device is not None else "(gone)",
        _taints(view, now, wide=wide) if view.taints or view.ignored_patches else _NO_TAINTS,
        Cell(users, "red" if view.conflict is not None else ""),
    ]
    if wide:
        tolerations = {toleration_text(x) for claim in view.claims for x in claim.tolerations}
        cells += [
            _joined(dict.fromkeys(str(claim.claim) for claim in view.claims)),
            _joined(sorted(tolerations)),
            _joined(_attributes(view.device, view)) if view.device is not None else _NONE,
        ]
    return cells


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(texts) or _NONE


def _taints(view: DeviceView, now: datetime, *, wide: bool) -> Cell:
    texts = [_taint(taint_view, now, wide=wide) for taint_view in view.taints]
    texts += [f"(patch/{name}: no effect)" for name in view.ignored_patches]
    strongest = strongest_effect({view.sourced.taint.effect for view in view.taints})
    return Cell(", ".join(texts), EFFECT_STYLES.get(strongest, ""))


def _taint(taint_view: TaintView, now: datetime, *, wide: bool) -> str:
    taint = taint_view.sourced.taint
    facts = [origin_text(taint_view.sourced.origin, wide=wide)]
    if taint.time_added is not None:
        facts.append(age(taint.time_added, now))
    if taint_view.expiry is not None:
        facts.append(expiry_text(taint_view.expiry, now))
    if taint_view.paused is not None:
        facts.append("paused")
    if taint_view.sourced.suppression is not None:
        facts.append(suppression_text(taint_view.sourced.suppression))
    return f"{taint_text(taint)} ({', '.join(facts)})"


def _users(view: DeviceView, now: datetime) -> list[str]:
    if not view.claims_visible:
        return [_UNKNOWN]
    users = [_user(claim, now) for claim in view.claims]
    if view.obstacle is not None and not view.in_use:
        # It is unused and cannot be allocated either.
        users.append(f"({view.obstacle.text})")
    if view.conflict is not None:
        users[-1] += f" ({conflict_text(view.conflict)})"
    return users


def conflict_text(conflict: DeviceConflict) -> str:
    """Return in short what is wrong with the allocations of a device."""
    if conflict.cause == "AllocatedTwice":
        return f"conflict: allocated to {len(conflict.claims)} claims"
    return f"conflict: more {' and '.join(conflict.exceeded)} allocated than it has"


def _user(claim: ClaimView, now: datetime) -> str:
    facts = ["admin"] if claim.admin else []
    if claim.consumed:
        facts += [f"{amount} {name}" for name, amount in sorted(claim.consumed.items())]
    if claim.eviction_time is not None:
        facts.append(eviction_text(claim.eviction_time, now))
    pods = " ".join(map(str, claim.pods)) or f"claim {claim.claim}"
    return f"{pods} ({', '.join(facts)})" if facts else pods


def _attributes(device: EffectiveDevice, view: DeviceView) -> list[str]:
    texts = []
    for name in sorted({*device.attributes, *device.attribute_origins}):
        value = device.attributes.get(name)
        text = f"{name}={_value_text(value)}" if value is not None else f"{name} removed"
        texts.append(text + _by(device.attribute_origins.get(name)))
    for name, amount in sorted(device.capacity.items()):
        left = f" ({view.left[name]} left)" if name in view.left else ""
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


def document(view: DeviceView, *, shared: bool = False) -> dict[str, Any]:
    """Return a device as a plain value; the fields are promised to scripts.

    With `shared`, devices that are alike have the same values in it. YAML would have anchors there.
    """
    availability = {"free": view.free, **_obstacle(view)} if view.claims_visible else {}
    fields = {
        "driver": view.id.driver,
        "pool": view.id.pool,
        "device": view.id.device,
        "node": view.node,
        "published": view.device is not None,
        **availability,
        "taints": [_taint_document(taint_view) for taint_view in view.taints],
        "users": [_claim_document(claim) for claim in view.claims],
        **conflict_document(view.conflict),
        **without_empty(ignoredPatches=list(view.ignored_patches)),
    }
    if view.device is not None:
        fields |= without_empty(allowMultipleAllocations=view.shareable or None)
        content = _shared_content_document if shared else _content_document
        fields |= content(view.device, view)
    return fields


def _obstacle(view: DeviceView) -> dict[str, Any]:
    obstacle = view.obstacle
    if obstacle is None:
        return {}
    return {"obstacle": {"reason": obstacle.cause, "message": obstacle.text}}


def conflict_document(conflict: DeviceConflict | None) -> dict[str, Any]:
    if conflict is None:
        return {}
    keys = (claim.partition("/") for claim in conflict.claims)
    fields = without_empty(
        reason=conflict.cause,
        claims=[{"namespace": namespace, "name": name} for namespace, _, name in keys],
        exceededCapacity=list(conflict.exceeded),
    )
    return {"conflict": fields}


_documents: Memo[Content, dict[str, Any]] = Memo(8192)
"""Attributes and capacity of devices as their drivers published them: most devices are alike."""


def _shared_content_document(device: EffectiveDevice, view: DeviceView) -> dict[str, Any]:
    if device.patched is not None or view.left:
        return _content_document(device, view)
    content = device.published.content
    return _documents.get(content) or _documents.keep(content, _content_document(device, view))


def _content_document(device: EffectiveDevice, view: DeviceView) -> dict[str, Any]:
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
            left=str(view.left[name]) if name in view.left else None,
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


def _taint_document(taint_view: TaintView) -> dict[str, Any]:
    taint = taint_view.sourced.taint
    return without_empty(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        timeAdded=time_text(taint.time_added),
        description=taint.description,
        data=taint.data,
        origin=_origin_document(taint_view.sourced.origin),
        endTime=time_text(taint_view.expiry),
        paused=taint_view.paused,
        suppressed=_suppression(taint_view.sourced.suppression),
    )


def _suppression(suppression: Suppression | None) -> dict[str, Any] | None:
    if suppression is None:
        return None
    return without_empty(
        effect=suppression.effect,
        by=suppression.by,
        rule=suppression.rule,
        endTime=time_text(suppression.until),
    )


def _claim_document(claim: ClaimView) -> dict[str, Any]:
    return without_empty(
        claim={"namespace": claim.claim.namespace, "name": claim.claim.name},
        pods=[{"namespace": pod.namespace, "name": pod.name} for pod in claim.pods],
        request=claim.request,
        adminAccess=claim.admin or None,
        shareID=claim.share,
        consumedCapacity=claim.consumed,
        tolerations=[_toleration_document(x) for x in claim.tolerations],
        evictionTime=time_text(claim.eviction_time),
    )


def _toleration_document(toleration: DeviceToleration) -> dict[str, Any]:
    return without_empty(
        key=toleration.key,
        operator=toleration.operator,
        value=toleration.value,
        effect=toleration.effect,
        tolerationSeconds=toleration.toleration_seconds,
    )
