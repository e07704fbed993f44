"""Why pods are evicted again and again, how fast, and which taint would prevent it."""

from __future__ import annotations

from typing import Any

import pytest

from sully.api.resource.types import (
    CELDeviceSelector,
    DeviceSelector,
    DeviceTaint,
    DeviceTaintSelector,
    DeviceToleration,
)
from sully.domain.eviction.loop_advice import remedies, why
from sully.domain.eviction.loops import (
    EvictedAgain,
    LoopCause,
    blocking_key,
    evictions_per_minute,
    loop_cause,
    selector_pattern,
)

KEY = "example.com/fault"
TAINT = DeviceTaint(key=KEY, value="broken", effect="NoExecute")
FOR_A_WHILE = DeviceToleration(key=KEY, operator="Exists", effect="NoExecute", toleration_seconds=3)
NO_SCHEDULE = DeviceToleration(key=KEY, operator="Exists", effect="NoSchedule")
ANY_EFFECT = DeviceToleration(key=KEY, operator="Exists")
EVERYTHING = DeviceToleration(operator="Exists")
OTHER = DeviceToleration(key="example.com/other", operator="Exists")
CAUSES = {
    "for some seconds": ((FOR_A_WHILE,), LoopCause.TOLERATION_EXPIRES, KEY),
    "and NoSchedule": (
        (FOR_A_WHILE, NO_SCHEDULE),
        LoopCause.TOLERATES_NO_SCHEDULE,
        f"{KEY}-no-schedule",
    ),
    "any effect": ((ANY_EFFECT,), LoopCause.TOLERATION_WITHOUT_EFFECT, f"{KEY}-no-schedule"),
    "everything": ((EVERYTHING,), LoopCause.TOLERATION_WITHOUT_EFFECT, ""),
    "something else": ((OTHER,), LoopCause.UNKNOWN, KEY),
    "nothing": ((), LoopCause.UNKNOWN, KEY),
}


@pytest.mark.parametrize(("tolerations", "cause", "key"), CAUSES.values(), ids=CAUSES)
def test_causes(tolerations: tuple[DeviceToleration, ...], cause: LoopCause, key: str) -> None:
    assert loop_cause(TAINT, tolerations, named_claim=False) is cause
    assert loop_cause(TAINT, tolerations, named_claim=True) is LoopCause.NAMED_CLAIM
    assert blocking_key(TAINT, tolerations) == key


def test_a_key_stays_as_short_as_keys_must_be() -> None:
    long = DeviceTaint(key=f"example.com/{'x' * 63}", effect="NoExecute")
    toleration = DeviceToleration(key=long.key, operator="Exists")

    _, _, name = blocking_key(long, (toleration,)).partition("/")
    assert (len(name), name[-12:]) == (63, "-no-schedule")


RATES = {
    "Kubernetes": ({"by_kubernetes": True}, 400),
    "Kubernetes knows no rates": ({"by_kubernetes": True, "rates": [1]}, 400),
    "nothing limits it": ({"by_kubernetes": False}, None),
    "a rate": ({"by_kubernetes": False, "rates": [2]}, 120),
    "the highest rate": ({"by_kubernetes": False, "rates": [2, 3]}, 180),
    "one rule has none": ({"by_kubernetes": False, "rates": [2, None]}, None),
    "a budget": ({"by_kubernetes": False, "rates": [2], "max_per_minute": 30}, 30),
    "pods terminate first": ({"by_kubernetes": True, "replaced_after": 30.0}, 8),
    "at least one": ({"by_kubernetes": True, "replaced_after": 3600.0}, 1),
}


@pytest.mark.parametrize(("limits", "want"), RATES.values(), ids=RATES)
def test_evictions_of_four_pods_per_minute(limits: dict[str, Any], want: int | None) -> None:
    assert evictions_per_minute(4, **limits) == want


CEL = DeviceSelector(cel=CELDeviceSelector(expression="true"))
PATTERNS = {
    "none": (None, ""),
    "all": (DeviceTaintSelector(), "'*/*/*'"),
    "a driver": (DeviceTaintSelector(driver="d"), "'d/*/*'"),
    "a device": (DeviceTaintSelector(driver="d", pool="p", device="g"), "d/p/g"),
    "a class": (DeviceTaintSelector(device_class_name="c"), "--class c"),
    "a class and a driver": (DeviceTaintSelector(device_class_name="c", driver="d"), ""),
    "an expression": (DeviceTaintSelector(selectors=(CEL,)), ""),
}


@pytest.mark.parametrize(("selector", "want"), PATTERNS.values(), ids=PATTERNS)
def test_devices_of_a_rule_as_arguments(selector: DeviceTaintSelector | None, want: str) -> None:
    assert selector_pattern(selector) == want


@pytest.mark.parametrize("cause", LoopCause)
def test_every_cause_has_a_text_and_remedies(cause: LoopCause) -> None:
    claim = "ResourceClaimTemplate/t" if cause is not LoopCause.NAMED_CLAIM else "ResourceClaim/c"
    again = EvictedAgain(cause=cause, taint=f"{KEY}:NoExecute", claim=claim, blocking_key=KEY)
    texts = remedies(again, namespace="a", owner="Deployment/web", devices="d/p/g", rule="fw")

    assert "{" not in why(again)
    assert len(texts) == 3
    assert texts[-1] == "Or delete the rule: kubectl delete devicetaintrule fw"


CREATORS = {
    "a user": ("alice", "Or delete the rule: kubectl delete devicetaintrule fw"),
    "a policy": (
        "policy faulty",
        "Or set policy faulty to DryRun (kubectl patch devicetaintpolicy faulty --type=merge -p"
        """ '{"spec":{"mode":"DryRun"}}'), and then delete the rule, which the policy would"""
        " create again: kubectl delete devicetaintrule fw",
    ),
    "a maintenance": (
        "maintenance firmware",
        "Or cancel the maintenance: sully maintenance cancel firmware",
    ),
    "a user with such a name": ("policy", "Or delete the rule: kubectl delete devicetaintrule fw"),
}


@pytest.mark.parametrize(("creator", "want"), CREATORS.values(), ids=CREATORS)
def test_what_removes_the_taint(creator: str, want: str) -> None:
    again = EvictedAgain(cause=LoopCause.UNKNOWN, taint=f"{KEY}:NoExecute")
    workload = {"namespace": "a", "owner": "Deployment/web", "devices": "d/p/g"}

    assert remedies(again, **workload, rule="fw", creator=creator)[-1] == want
    assert want not in remedies(again, **workload, creator=creator)


def test_owners_that_cannot_be_scaled_are_stopped_otherwise() -> None:
    again = EvictedAgain(cause=LoopCause.NAMED_CLAIM, claim="ResourceClaim/c")
    first, _ = remedies(again, namespace="a", owner="DaemonSet/agent", devices="d/p/g")

    assert first == (
        "Stop DaemonSet agent until no pod uses ResourceClaim c, so that it is deallocated."
    )
