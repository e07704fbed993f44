"""What is refused because a server would lose it, and what travels as an annotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

import manifests
from sully.domain.capabilities.fitting import refused_fields
from sully.domain.capabilities.offers import Offer

KUBERNETES = Offer(
    version="v1.37.0",
    minor=37,
    own=False,
    devices="v1",
    rules="v1",
    rule_status=True,
    selector_fields=frozenset(("driver", "pool", "device")),
    taint_fields=frozenset(("key", "value", "effect", "timeAdded")),
)
PATCHED = replace(KUBERNETES, own_kinds=frozenset(("resourceslicepatches",)))


def rule(selector: dict[str, Any] | None = None, **taint: Any) -> dict[str, Any]:
    taint = {"key": "k", "effect": "NoExecute", **taint}
    made = manifests.rule("r", taint=taint)
    made["spec"]["deviceSelector"] = selector
    return made


def patch(**taint: Any) -> dict[str, Any]:
    return manifests.patch("p", {"taints": [{"key": "k", **taint}]})


@dataclass(frozen=True)
class Case:
    body: dict[str, Any]
    want: tuple[str, ...] = ()
    offer: Offer = KUBERNETES
    sully_evicts: bool = False


DROPPED = "the server would drop it, and the rule would select far too much"
CASES = {
    "a plain rule": Case(rule({"driver": "d"})),
    "a class": Case(
        rule({"deviceClassName": "c"}), (f"spec.deviceSelector.deviceClassName: {DROPPED}",)
    ),
    "a class, though Sully evicts": Case(
        rule({"deviceClassName": "c"}),
        (f"spec.deviceSelector.deviceClassName: {DROPPED}; use a ResourceSlicePatch",),
        PATCHED,
        sully_evicts=True,
    ),
    "a class where rules know it": Case(
        rule({"deviceClassName": "c"}),
        offer=replace(KUBERNETES, selector_fields=frozenset(("deviceClassName",))),
    ),
    "a rate and data": Case(
        rule({}, evictionsPerSecond=1, data={}),
        (
            "spec.taint.evictionsPerSecond: the server would drop it",
            "spec.taint.data: the server would drop it",
        ),
    ),
    "a description": Case(
        rule({}, description="smoke"),
        (
            "spec.taint.description: the server would drop it;"
            " write the annotation sully.dev/description",
        ),
    ),
    "an effect of ours": Case(
        rule({}, effect="PreferNoSchedule"),
        ("spec.taint.effect: Kubernetes does not know PreferNoSchedule",),
    ),
    "a rule where there are none": Case(
        rule({}), ("kind: the server has no taint rules",), replace(KUBERNETES, rules="")
    ),
    "anything, on our own server": Case(
        rule({"deviceClassName": "c"}, data={}), offer=replace(KUBERNETES, own=True)
    ),
    "a pause without effect": Case(
        {**rule({}), "metadata": {"annotations": {"sully.dev/paused": "true"}}},
        ("metadata.annotations[sully.dev/paused]: the server's own evictor would not honor it",),
    ),
    "a pause that a merge patch removes": Case(
        {"kind": "DeviceTaintRule", "metadata": {"annotations": {"sully.dev/paused": None}}}
    ),
    "a pause that is over": Case(
        {**rule({}), "metadata": {"annotations": {"sully.dev/paused": "false"}}}
    ),
    "a pause that Sully honors": Case(
        {**rule({}), "metadata": {"annotations": {"sully.dev/paused": "true"}}}, sully_evicts=True
    ),
    "a patch that prevents scheduling": Case(patch(effect="NoSchedule"), offer=PATCHED),
    "a patch that would evict": Case(
        patch(effect="NoExecute", evictionsPerSecond=1),
        (
            "spec.devices.taints[0].effect: Sully does not evict on this server",
            "spec.devices.taints[0].evictionsPerSecond: Sully does not evict on this server",
        ),
        PATCHED,
    ),
    "a patch that evicts": Case(patch(effect="NoExecute"), (), PATCHED, sully_evicts=True),
    "a patch where there are none": Case(
        patch(effect="NoSchedule"),
        ("kind: the server has no ResourceSlicePatch; sully install brings it",),
    ),
    "a slice of taints": Case(
        {"kind": "ResourceSlice", "spec": {"taints": [{"device": "d"}]}},
        ("spec.taints: the server would drop it",),
    ),
    "another kind": Case({"kind": "Pod"}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_refused_fields(case: Case) -> None:
    result = refused_fields(case.offer, case.body, sully_evicts=case.sully_evicts)

    assert tuple(str(item) for item in result) == case.want
