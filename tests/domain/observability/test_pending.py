"""Which sources of taints block pending pods."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

import manifests
from sully.api.resource.types import ResourceClaimSpec
from sully.domain.observability.pending import (
    BLOCKERS_MAX,
    OTHERS,
    blockers_of,
    count_blocked,
    demand_of,
)
from sully.domain.observability.pool_counts import Blocker, BlockingTaint
from sully.testing.builders import KEY, taint

RULE, POLICY = Blocker("DeviceTaintRule", "r"), Blocker("DeviceTaintPolicy", "p")
BLOCKED = {
    "gpu": {
        BlockingTaint(RULE, taint("NoSchedule", time=None)),
        BlockingTaint(POLICY, taint("NoExecute", key="other", time=None)),
    }
}


def spec(*requests: dict[str, object]) -> ResourceClaimSpec:
    named = [{"name": f"r{at}", **request} for at, request in enumerate(requests)]
    return msgspec.convert({"devices": {"requests": named}}, ResourceClaimSpec)


def exactly(name: str = "gpu", **more: Any) -> dict[str, object]:
    return manifests.request(name, **more)


def test_what_is_not_tolerated_blocks() -> None:
    tolerating = demand_of([spec(exactly(tolerations=[{"key": KEY, "operator": "Exists"}]))])

    assert blockers_of(demand_of([spec(exactly())]), BLOCKED) == {RULE, POLICY}
    assert blockers_of(tolerating, BLOCKED) == {POLICY}
    assert blockers_of(demand_of([spec(exactly("nic"))]), BLOCKED) == set()
    assert blockers_of(demand_of([]), BLOCKED) == set()


def test_every_alternative_counts() -> None:
    choices = [
        {"name": "a", "deviceClassName": "nic"},
        {"name": "b", "deviceClassName": "gpu"},
    ]

    assert blockers_of(demand_of([spec({"firstAvailable": choices})]), BLOCKED) == {RULE, POLICY}


def test_pods_are_counted_for_each_source() -> None:
    demands = Counter({demand_of([spec(exactly())]): 3, demand_of([spec(exactly("nic"))]): 2})

    assert count_blocked(demands, BLOCKED) == {RULE: 3, POLICY: 3}


def test_the_number_of_sources_is_bounded() -> None:
    blocked = {
        "gpu": {
            BlockingTaint(Blocker("DeviceTaintRule", f"r{n:04}"), taint(time=None))
            for n in range(BLOCKERS_MAX + 5)
        }
    }
    counts = count_blocked({demand_of([spec(exactly())]): 4}, blocked)

    assert len(counts) == BLOCKERS_MAX + 1
    assert counts[OTHERS] == 4
    assert Blocker("DeviceTaintRule", "r0000") in counts
