"""DeviceTaintRules from the arguments of a command.

One selector is one rule. Several, such as the devices that a glob expands to, are a rule each with
a shared label, so that they can be listed and deleted together. Names are generated from the
arguments, so the same command has the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from sully.api.resource.annotations import DESCRIPTION, EXPIRES_AT
from sully.api.resource.eviction_rate import (
    BURST,
    BURST_ANNOTATION,
    RATE_ANNOTATION,
    EvictionRate,
    rate_of,
)
from sully.domain.devices.rules import TOGETHER
from sully.domain.devices.taints import EVICTING_EFFECTS
from sully.domain.planning.rules.selectors import RuleSelector, digest, name_suffixes
from sully.domain.planning.rules.taint_grammar import TaintToAdd
from sully.machinery.formats.timestamps import format_time

_MAX_SLUG_LENGTH: Final = 40
_RATE_ANNOTATIONS: Final = (RATE_ANNOTATION, BURST_ANNOTATION)

Obj = dict[str, Any]


class TaintRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A taint to set, and the other fields of its rules."""

    taint: TaintToAdd
    reason: str = ""
    expires: datetime | None = None
    rate: EvictionRate | None = None
    """None: no limit."""
    name: str = ""
    """The name of the rule; empty: it is generated."""


def build_rules(selectors: Sequence[RuleSelector], request: TaintRequest) -> list[Obj]:
    """Return the rules that set a taint, one for each selector."""
    base = request.name or _generate_name(selectors, request)
    if len(selectors) == 1:
        return [_rule(base, selectors[0], request)]
    suffixes = name_suffixes(selectors)
    return [
        _rule(f"{base}-{suffix}", selector, request, base)
        for suffix, selector in zip(suffixes, selectors, strict=True)
    ]


def shared_label(rules: Sequence[Obj]) -> str:
    """Return the value of the label that all these rules share; empty if they do not."""
    values = {rule["metadata"].get("labels", {}).get(TOGETHER, "") for rule in rules}
    return str(values.pop()) if len(values) == 1 else ""


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


def _rate_annotations(rate: EvictionRate | None) -> dict[str, str]:
    """Return what `evictionsPerSecond` cannot express."""
    if rate is None:
        return {}
    annotations = {} if rate.burst == BURST else {BURST_ANNOTATION: str(rate.burst)}
    whole = rate.per_second == int(rate.per_second)
    return annotations if whole else {RATE_ANNOTATION: str(rate), **annotations}


def body_rate(body: Obj) -> EvictionRate | None:
    """Return how fast a rule evicts pods; None: no limit."""
    annotations = body["metadata"].get("annotations") or {}
    present = {name: text for name, text in annotations.items() if text is not None}
    return rate_of(body["spec"]["taint"].get("evictionsPerSecond"), present)


def with_rate_annotation(body: Obj) -> Obj:
    """Return a rule with its rate in annotations only, for servers that drop the field."""
    rate = body_rate(body)
    if rate is None:
        return without_rate(body)
    metadata = dict(body["metadata"])
    added = {RATE_ANNOTATION: str(rate), BURST_ANNOTATION: str(rate.burst)}
    metadata["annotations"] = {**metadata.get("annotations", {}), **added}
    return without_rate({**body, "metadata": metadata})


def without_rate(body: Obj) -> Obj:
    """Return a rule without `evictionsPerSecond`."""
    taint = {k: v for k, v in body["spec"]["taint"].items() if k != "evictionsPerSecond"}
    return {**body, "spec": {**body["spec"], "taint": taint}}


def overwrite_patch(body: Obj, existing: Obj, *, rate_set: bool = True) -> Obj:
    """Return a patch that gives an existing rule another taint or selector.

    What the new rule does not set is kept: description, expiry, the rate unless it is set, and
    labels and annotations of others. The server sets `timeAdded`.
    """
    new, old = body["spec"], existing["spec"]
    annotations = dict(body["metadata"].get("annotations", {}))
    keep, set_ = ["timeAdded", "description"], dict(new["taint"])
    if not rate_set and old["taint"]["effect"] in EVICTING_EFFECTS:
        # A rule that evicted pods without a limit had none on purpose.
        keep.append("evictionsPerSecond")
        set_.pop("evictionsPerSecond", None)
        annotations = {k: v for k, v in annotations.items() if k not in _RATE_ANNOTATIONS}
    replaced = [DESCRIPTION] if "description" in new["taint"] else []
    replaced += _RATE_ANNOTATIONS if rate_set else []
    old_annotations = existing["metadata"].get("annotations", {})
    nulls = {name: None for name in replaced if name in old_annotations}
    metadata = {**body["metadata"]}
    metadata.pop("annotations", None)
    if nulls or annotations:
        metadata["annotations"] = nulls | annotations
    selector = _nulls(old.get("deviceSelector") or {}, new["deviceSelector"])
    spec = {
        "deviceSelector": selector | new["deviceSelector"],
        "taint": _nulls(old["taint"], set_, keep=keep) | set_,
    }
    return {**body, "metadata": metadata, "spec": spec}


def _nulls(old: Obj, new: Obj, keep: Sequence[str] = ()) -> Obj:
    return {name: None for name in old if name not in new and name not in keep}


def _rule(name: str, selector: RuleSelector, request: TaintRequest, group: str = "") -> Obj:
    metadata: Obj = {"name": name}
    if group:
        metadata["labels"] = {TOGETHER: group}
    annotations = _rate_annotations(request.rate)
    if request.expires is not None:
        annotations[EXPIRES_AT] = format_time(request.expires)
    if annotations:
        metadata["annotations"] = annotations
    taint: Obj = {"key": request.taint.key, "effect": request.taint.effect}
    if request.taint.value:
        taint["value"] = request.taint.value
    if request.reason:
        taint["description"] = request.reason
    if request.rate is not None:
        # The field only has whole numbers: where the annotation is not read, it is the limit.
        taint["evictionsPerSecond"] = max(1, int(request.rate.per_second))
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": metadata,
        "spec": {"deviceSelector": selector.fields(), "taint": taint},
    }


def rule_name(base: str, taint: TaintToAdd) -> str:
    """Return the name of the rule for one of several taints that share a name."""
    return f"{base}-{_slug(taint.key)}-{taint.effect.lower()}"


def _slug(key: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", key.rpartition("/")[2].lower()).strip("-")
    return slug[:_MAX_SLUG_LENGTH].strip("-") or "taint"


def _generate_name(selectors: Sequence[RuleSelector], request: TaintRequest) -> str:
    taint = request.taint
    content = [taint.key, taint.effect, [selector.fields() for selector in selectors]]
    return f"{_slug(taint.key)}-{digest(content)}"
