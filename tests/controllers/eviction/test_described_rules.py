"""The warning about a rule that is about to be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

import manifests
from controllers.eviction.evicting import Evicting, for_seconds, holder, prepare, publish
from controllers.world import World
from sully.api.resource.types import DeviceTaintRule


@dataclass(frozen=True)
class Case:
    want: str
    effect: str = "NoExecute"
    selector: dict[str, Any] | None = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


PAUSED = {"annotations": {"sully.dev/paused": "later"}}
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
LONG = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, a + b + c + d < 100))))"
CASES = {
    "everything": Case("selects 4 devices; 2 pods in 2 namespaces will be evicted"),
    "one device": Case(
        "selects 1 device; 1 pod in 1 namespace will be evicted", selector={"device": "gpu-0"}
    ),
    "a device with a pod that tolerates it": Case(
        "selects 1 device; no pod will be evicted", selector={"device": "gpu-2"}
    ),
    "no device": Case("selects no device; no pod will be evicted", selector={"pool": "elsewhere"}),
    "no selector": Case("selects no device; no pod will be evicted", selector=None),
    "an effect that evicts nothing": Case("selects 4 devices", effect="NoSchedule"),
    "a pause": Case(
        "selects 4 devices; 2 pods in 2 namespaces would be evicted if the rule were not paused",
        metadata=PAUSED,
    ),
    "a class that does not exist": Case(
        "selects no device; no pod will be evicted", selector={"deviceClassName": "none"}
    ),
    "an expression": Case(
        "selects 4 devices; 2 pods in 2 namespaces will be evicted",
        selector={"selectors": [{"cel": {"expression": 'device.driver != ""'}}]},
    ),
    "an expression for one device by name": Case(
        "selects 1 device; 1 pod in 1 namespace will be evicted",
        selector={"device": "gpu-1", "selectors": [{"cel": {"expression": "true"}}]},
    ),
    "an expression that evicts nothing": Case(
        "selects 4 devices",
        effect="NoSchedule",
        selector={"selectors": [{"cel": {"expression": "true"}}]},
    ),
    "an expression that takes long": Case(
        "selects devices by class or expression: its status shows which, and their pods",
        selector={"selectors": [{"cel": {"expression": LONG}}]},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_description(world: World, case: Case) -> None:
    evicting = Evicting()
    await prepare(world, "a", "b")
    await publish(world, devices=4)
    await holder(world, "p", "gpu-0")
    await holder(world, "q", "gpu-1", namespace="b")
    await holder(world, "r", "gpu-2", tolerations=(for_seconds(),))
    async with world.controlled(evicting.make()):
        await world.settle()
        body = manifests.rule(
            "r", case.effect, key="example.com/broken", selector=case.selector, **case.metadata
        )
        if case.selector is None:
            body["spec"].pop("deviceSelector", None)
        assert evicting.describe is not None
        assert evicting.describe(msgspec.convert(body, DeviceTaintRule)) == case.want
