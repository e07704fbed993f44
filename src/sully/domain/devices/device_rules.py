"""DeviceTaintRules for one device each, as policies and maintenances create them.

A label of such a rule has the name of its creator, or a digest if that is too long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Final

import msgspec

from sully.api.resource.annotations import DESCRIPTION_MAX
from sully.api.resource.types import DeviceTaintRule
from sully.api.sully.types import GROUP, VERSION
from sully.domain.devices.pools import device_id
from sully.machinery.formats.texts import truncated
from sully.machinery.meta import ObjectMeta

Obj = dict[str, Any]

_LABEL_MAX: Final = 63
_NAME_MAX: Final = 200


def label_value(name: str) -> str:
    """Return the value of a label with a name that may be too long for it."""
    return name if len(name) <= _LABEL_MAX else f"{name[:46]}.{_digest(name)}"


def rule_name(creator: str, device: str) -> str:
    """Return the name of the rule of a device."""
    return f"{creator[:_NAME_MAX].rstrip('.-')}-{_digest(device)}"


def device_of(rule: DeviceTaintRule) -> str:
    """Return the device that a rule is for, written `driver/pool/device`."""
    selector = rule.spec.device_selector
    names = (selector.driver, selector.pool, selector.device) if selector is not None else ()
    return "/".join(name or "" for name in names)


def build_device_rule(
    device: str,
    taint: Mapping[str, str],
    *,
    name: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owners: Sequence[Obj],
) -> Obj:
    """Return a rule for one device."""
    return {
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "annotations": dict(annotations),
            "ownerReferences": list(owners),
        },
        "spec": {"deviceSelector": device_id(device)._asdict(), "taint": dict(taint)},
    }


def owner_reference(kind: str, metadata: ObjectMeta) -> Obj:
    """Return an object of our own group as the owner of rules, which are deleted with it."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "controller": True,
    }


def shortened_description(text: str) -> str:
    """Return as much of a text as the description of a rule may have."""
    return truncated(text, DESCRIPTION_MAX)


def as_stored(body: Obj, now: datetime) -> DeviceTaintRule:
    """Return a rule as a server stores it: its taint has the time of the write."""
    rule = msgspec.convert(body, DeviceTaintRule)
    taint = msgspec.structs.replace(rule.spec.taint, time_added=now.replace(microsecond=0))
    return msgspec.structs.replace(rule, spec=msgspec.structs.replace(rule.spec, taint=taint))


def is_current(rule: DeviceTaintRule, desired: Obj) -> bool:
    """Report whether a rule is as it should be."""
    taint, desired_taint = rule.spec.taint, desired["spec"]["taint"]
    values = desired_taint["key"], desired_taint.get("value", ""), desired_taint["effect"]
    metadata = desired["metadata"]
    return (
        (taint.key, taint.value, taint.effect) == values
        and {owner.uid for owner in rule.metadata.owner_references}
        == {owner["uid"] for owner in metadata["ownerReferences"]}
        and all(
            rule.metadata.annotations.get(name) == text
            for name, text in metadata["annotations"].items()
        )
    )


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
