"""DeviceTaintRules from what people write on a command line.

One selection is one rule. Several, such as the devices that a glob stood for, are a rule each under
a shared label, so that they can be found and lifted together. Names are made from what is asked, so
asking twice finds the same rule.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sully.api.resource.annotations import DESCRIPTION, EXPIRES_AT
from sully.domain.devices.rules import TOGETHER
from sully.domain.planning.taintgrammar import Wanted
from sully.machinery.timestamps import format_time

_LONGEST: Final = 40

Obj = dict[str, Any]
Names = Mapping[str, str]
"""The criteria `driver`, `pool` and `device` of a rule; what is left out is any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marking:
    """A taint that is to be set, and all that goes with it."""

    taint: Wanted
    device_class: str = ""
    expressions: tuple[str, ...] = ()
    reason: str = ""
    expires: datetime | None = None
    rate: int | None = None
    name: str = ""
    """What the rule is to be called; empty: made from what is asked."""


def rules(selections: Sequence[Names], marking: Marking) -> list[Obj]:
    """Return the rules that mark these selections."""
    base = marking.name or _made_name(selections, marking)
    if len(selections) == 1:
        return [_rule(base, selections[0], marking)]
    return [_rule(f"{base}-{_digest(each)}", each, marking, base) for each in selections]


def made_together(bodies: Sequence[Obj]) -> str:
    """Return the label that all these rules share; empty if they were not made together."""
    groups = {each["metadata"].get("labels", {}).get(TOGETHER, "") for each in bodies}
    return str(groups.pop()) if len(groups) == 1 else ""


def selector(names: Names, marking: Marking) -> Obj:
    """Return the selector of a rule."""
    found: Obj = dict(names)
    if marking.device_class:
        found["deviceClassName"] = marking.device_class
    if marking.expressions:
        found["selectors"] = [{"cel": {"expression": each}} for each in marking.expressions]
    return found


def lost(sent: Any, kept: Any, at: str = "") -> Iterator[str]:
    """Yield the fields that were sent and are not there any more: a server did not know them."""
    if isinstance(sent, Mapping):
        known = kept if isinstance(kept, Mapping) else {}
        for name, value in sent.items():
            place = f"{at}.{name}" if at else name
            if value is None:
                continue  # it was to go
            if name not in known:
                yield place
            else:
                yield from lost(value, known[name], place)


def with_description_aside(body: Obj) -> Obj:
    """Return a rule whose reason stands in an annotation, for servers that drop the field."""
    taint = dict(body["spec"]["taint"])
    text = taint.pop("description", "")
    metadata = dict(body["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), DESCRIPTION: text}
    return {**body, "metadata": metadata, "spec": {**body["spec"], "taint": taint}}


def expiring(body: Obj, at: datetime) -> Obj:
    """Return a rule that ends at a time."""
    metadata = dict(body["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), EXPIRES_AT: format_time(at)}
    return {**body, "metadata": metadata}


def without_rate(body: Obj) -> Obj:
    """Return a rule that does not say how fast pods leave."""
    taint = {k: v for k, v in body["spec"]["taint"].items() if k != "evictionsPerSecond"}
    return {**body, "spec": {**body["spec"], "taint": taint}}


def overwriting(body: Obj, known: Obj) -> Obj:
    """Return a rule as a patch of the one there is, which takes away what is not asked for again.

    When the taint was added is the server's to say; labels and foreign annotations stay.
    """
    asked, there = body["spec"], known["spec"]
    taint = _gone(there["taint"], asked["taint"], but=("timeAdded",)) | asked["taint"]
    criteria = asked["deviceSelector"]
    selector = _gone(there.get("deviceSelector") or {}, criteria) | criteria
    annotations = body["metadata"].get("annotations", {})
    ours = {
        name: None
        for name in known["metadata"].get("annotations", {})
        if name in (EXPIRES_AT, DESCRIPTION)
    }
    metadata = {**body["metadata"], "annotations": ours | annotations}
    return {**body, "metadata": metadata, "spec": {"deviceSelector": selector, "taint": taint}}


def _gone(there: Obj, asked: Obj, but: Sequence[str] = ()) -> Obj:
    return {name: None for name in there if name not in asked and name not in but}


def _rule(name: str, names: Names, marking: Marking, group: str = "") -> Obj:
    metadata: Obj = {"name": name}
    if group:
        metadata["labels"] = {TOGETHER: group}
    if marking.expires is not None:
        metadata["annotations"] = {EXPIRES_AT: format_time(marking.expires)}
    taint: Obj = {"key": marking.taint.key, "effect": marking.taint.effect}
    if marking.taint.value:
        taint["value"] = marking.taint.value
    if marking.reason:
        taint["description"] = marking.reason
    if marking.rate:
        taint["evictionsPerSecond"] = marking.rate
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": metadata,
        "spec": {"deviceSelector": selector(names, marking), "taint": taint},
    }


def name_for(base: str, taint: Wanted) -> str:
    """Return what the rule for one of several taints is called that share a name."""
    return f"{base}-{_slug(taint.key)}-{taint.effect.lower()}"


def _slug(key: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", key.rpartition("/")[2].lower()).strip("-")
    return slug[:_LONGEST].strip("-") or "taint"


def _made_name(selections: Sequence[Names], marking: Marking) -> str:
    taint = marking.taint
    asked = [taint.key, taint.effect, [selector(each, marking) for each in selections]]
    return f"{_slug(taint.key)}-{_digest(asked)}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
