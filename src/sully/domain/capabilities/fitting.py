"""Fields that a server would drop from an object, or that have no effect there.

An API server drops fields that it does not know. A taint rule whose only criterion was dropped
would select every device, so such a field is never sent. A description can travel as an annotation
instead, as expiry always does: that is for the creator of the rule (`planning.rulemaking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from sully.api.resource.annotations import DESCRIPTION, PAUSED, pause_reason
from sully.domain.capabilities.offers import PATCHES, Offer
from sully.domain.devices.taints import EVICTING_EFFECTS, KUBERNETES_EFFECTS

Obj = Mapping[str, Any]
_KNOWN_EFFECTS = KUBERNETES_EFFECTS | {""}


class Refusal(msgspec.Struct, frozen=True):
    """A field that must not be sent to a server, and why."""

    field: str
    why: str

    def __str__(self) -> str:
        """Return it as validation errors are shown."""
        return f"{self.field}: {self.why}"


def refused_fields(server: Offer, body: Obj, *, sully_evicts: bool) -> tuple[Refusal, ...]:
    """Return everything in an object that would be lost or without effect on this server."""
    if server.own:
        return ()
    match body.get("kind"):
        case "DeviceTaintRule":
            return tuple(_rule(server, body, sully_evicts=sully_evicts))
        case "ResourceSlicePatch":
            return tuple(_patch(server, body, sully_evicts=sully_evicts))
        case "ResourceSlice":
            return tuple(_slice(server, body))
        case _:
            return ()


def _rule(server: Offer, body: Obj, *, sully_evicts: bool) -> Iterator[Refusal]:
    if not server.rules:
        yield Refusal("kind", "the server has no taint rules")
        return
    spec = body.get("spec") or {}
    instead = "; use a ResourceSlicePatch" if sully_evicts and PATCHES in server.own_kinds else ""
    for name in ("deviceClassName", "selectors"):
        if (spec.get("deviceSelector") or {}).get(name) and name not in server.selector_fields:
            why = "the server would drop it, and the rule would select far too much"
            yield Refusal(f"spec.deviceSelector.{name}", why + instead)
    taint = spec.get("taint") or {}
    for name in ("evictionsPerSecond", "data", "description"):
        if name in taint and name not in server.taint_fields:
            other = f"; write the annotation {DESCRIPTION}" if name == "description" else instead
            yield Refusal(f"spec.taint.{name}", "the server would drop it" + other)
    if taint.get("effect", "") not in _KNOWN_EFFECTS:
        yield Refusal("spec.taint.effect", f"Kubernetes does not know {taint['effect']}")
    if not sully_evicts and pause_reason(_annotations(body)) is not None:
        yield Refusal(
            f"metadata.annotations[{PAUSED}]", "the server's own evictor would not honor it"
        )


def _patch(server: Offer, body: Obj, *, sully_evicts: bool) -> Iterator[Refusal]:
    if PATCHES not in server.own_kinds:
        yield Refusal("kind", "the server has no ResourceSlicePatch; sully install brings it")
    if sully_evicts:
        return
    devices = (body.get("spec") or {}).get("devices") or {}
    for index, taint in enumerate(devices.get("taints") or ()):
        at, why = f"spec.devices.taints[{index}]", "Sully does not evict on this server"
        if taint.get("effect", "") in EVICTING_EFFECTS:
            yield Refusal(f"{at}.effect", why)
        if "evictionsPerSecond" in taint:
            yield Refusal(f"{at}.evictionsPerSecond", why)


def _slice(server: Offer, body: Obj) -> Iterator[Refusal]:
    if (body.get("spec") or {}).get("taints") and "taints" not in server.slice_fields:
        yield Refusal("spec.taints", "the server would drop it")


def _annotations(body: Obj) -> Mapping[str, str]:
    annotations = (body.get("metadata") or {}).get("annotations") or {}
    # In a merge patch a null removes an annotation.
    return {name: value for name, value in annotations.items() if value is not None}
