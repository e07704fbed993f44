"""DeviceTaintRules from the arguments of a command.

One selector is one rule. Several, such as the devices that a glob expands to, are a rule each with
a shared label, so that they can be listed and deleted together. Names are generated from the
arguments, so the same command has the same names.
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
from sully.domain.planning.taintgrammar import TaintToAdd
from sully.machinery.timestamps import format_time

_MAX_SLUG_LENGTH: Final = 40

Obj = dict[str, Any]
Names = Mapping[str, str]
"""The fields `driver`, `pool` and `device` of a selector; one that is omitted matches any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintRequest:
    """A taint to set, and the other fields of its rules."""

    taint: TaintToAdd
    device_class: str = ""
    expressions: tuple[str, ...] = ()
    reason: str = ""
    expires: datetime | None = None
    rate: int | None = None
    name: str = ""
    """The name of the rule; empty: it is generated."""


def build_rules(selectors: Sequence[Names], request: TaintRequest) -> list[Obj]:
    """Return the rules that set a taint, one for each selector."""
    base = request.name or _generate_name(selectors, request)
    if len(selectors) == 1:
        return [_rule(base, selectors[0], request)]
    return [_rule(f"{base}-{_digest(names)}", names, request, base) for names in selectors]


def shared_label(rules: Sequence[Obj]) -> str:
    """Return the value of the label that all these rules share; empty if they do not."""
    values = {rule["metadata"].get("labels", {}).get(TOGETHER, "") for rule in rules}
    return str(values.pop()) if len(values) == 1 else ""


def _selector(names: Names, request: TaintRequest) -> Obj:
    selector: Obj = dict(names)
    if request.device_class:
        selector["deviceClassName"] = request.device_class
    if request.expressions:
        selector["selectors"] = [{"cel": {"expression": text}} for text in request.expressions]
    return selector


def dropped_fields(sent: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Yield the fields that were sent and not stored: the server does not know them."""
    if isinstance(sent, Mapping):
        fields = stored if isinstance(stored, Mapping) else {}
        for name, value in sent.items():
            child = f"{path}.{name}" if path else name
            if value is None:
                continue  # It was removed.
            if name not in fields:
                yield child
            else:
                yield from dropped_fields(value, fields[name], child)


def with_description_annotation(body: Obj) -> Obj:
    """Return a rule with its description in an annotation, for servers that drop the field."""
    taint = dict(body["spec"]["taint"])
    text = taint.pop("description", "")
    metadata = dict(body["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), DESCRIPTION: text}
    return {**body, "metadata": metadata, "spec": {**body["spec"], "taint": taint}}


def with_expiry(body: Obj, time: datetime) -> Obj:
    """Return a rule that expires at a time."""
    metadata = dict(body["metadata"])
    metadata["annotations"] = {**metadata.get("annotations", {}), EXPIRES_AT: format_time(time)}
    return {**body, "metadata": metadata}


def without_rate(body: Obj) -> Obj:
    """Return a rule without an eviction rate."""
    taint = {k: v for k, v in body["spec"]["taint"].items() if k != "evictionsPerSecond"}
    return {**body, "spec": {**body["spec"], "taint": taint}}


def overwrite_patch(body: Obj, existing: Obj) -> Obj:
    """Return a patch that replaces an existing rule, with null for fields that the new one omits.

    The server sets `timeAdded`; labels and annotations of others stay.
    """
    new, old = body["spec"], existing["spec"]
    taint = _nulls(old["taint"], new["taint"], keep=("timeAdded",)) | new["taint"]
    criteria = new["deviceSelector"]
    selector = _nulls(old.get("deviceSelector") or {}, criteria) | criteria
    annotations = body["metadata"].get("annotations", {})
    removed = {
        name: None
        for name in existing["metadata"].get("annotations", {})
        if name in (EXPIRES_AT, DESCRIPTION)
    }
    metadata = {**body["metadata"], "annotations": removed | annotations}
    return {**body, "metadata": metadata, "spec": {"deviceSelector": selector, "taint": taint}}


def _nulls(old: Obj, new: Obj, keep: Sequence[str] = ()) -> Obj:
    return {name: None for name in old if name not in new and name not in keep}


def _rule(name: str, names: Names, request: TaintRequest, group: str = "") -> Obj:
    metadata: Obj = {"name": name}
    if group:
        metadata["labels"] = {TOGETHER: group}
    if request.expires is not None:
        metadata["annotations"] = {EXPIRES_AT: format_time(request.expires)}
    taint: Obj = {"key": request.taint.key, "effect": request.taint.effect}
    if request.taint.value:
        taint["value"] = request.taint.value
    if request.reason:
        taint["description"] = request.reason
    if request.rate:
        taint["evictionsPerSecond"] = request.rate
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": metadata,
        "spec": {"deviceSelector": _selector(names, request), "taint": taint},
    }


def rule_name(base: str, taint: TaintToAdd) -> str:
    """Return the name of the rule for one of several taints that share a name."""
    return f"{base}-{_slug(taint.key)}-{taint.effect.lower()}"


def _slug(key: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", key.rpartition("/")[2].lower()).strip("-")
    return slug[:_MAX_SLUG_LENGTH].strip("-") or "taint"


def _generate_name(selectors: Sequence[Names], request: TaintRequest) -> str:
    taint = request.taint
    content = [taint.key, taint.effect, [_selector(names, request) for names in selectors]]
    return f"{_slug(taint.key)}-{_digest(content)}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
