"""Splits a DeviceTaintRule: the rules that taint the other devices when some lose their taint."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sully.api.resource.annotations import CREATED_BY
from sully.domain.devices.rules import TOGETHER
from sully.domain.planning.rules.selectors import RuleSelector, name_suffixes
from sully.domain.workloads.revisions import LAST_APPLIED

Obj = dict[str, Any]
_NOT_COPIED = frozenset((CREATED_BY, LAST_APPLIED))
"""Annotations about how the rule itself was created."""


def split_rule(body: Obj, selectors: Sequence[RuleSelector], names: Collection[str]) -> list[Obj]:
    """Return one rule for each selector, with the taint of a rule and its other fields.

    The taint keeps its `timeAdded`, so tolerations do not start again. `names` are those of
    existing rules.
    """
    metadata = body["metadata"]
    labels = metadata.get("labels") or {}
    group = labels.get(TOGETHER) or metadata["name"]
    annotations = {
        name: value
        for name, value in (metadata.get("annotations") or {}).items()
        if name not in _NOT_COPIED
    }
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {
                "name": _free_name(f"{metadata['name']}-{suffix}", names),
                "labels": {**labels, TOGETHER: group},
                **({"annotations": annotations} if annotations else {}),
            },
            "spec": {"deviceSelector": selector.fields(), "taint": body["spec"]["taint"]},
        }
        for suffix, selector in zip(name_suffixes(selectors), selectors, strict=True)
    ]


def _free_name(name: str, names: Collection[str]) -> str:
    return name if name not in names else f"{name}-split"
