"""Plans of DeviceTaintPolicies, for devices whose faults the policy has seen already."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

import manifests
from manifests import DRIVER, gpus
from planning.building import meta
from sully.client.objects import from_body
from sully.machinery.formats.timestamps import format_micro_time
from sully.planning.device_policies import forecast
from sully.testing.clock import NOON
from sully.views.kinds import DEVICE_POLICIES, SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot

Obj = dict[str, Any]
NAME = f"{DRIVER}/n1/gpu-0"
FAULT = {"key": "example.com/ecc", "effect": "None"}
SPEC: Obj = {
    "mode": "Enforce",
    "selector": {"driver": DRIVER},
    "sources": [{"name": "ecc", "driverTaint": {"key": FAULT["key"]}}],
    "taint": {"key": "example.com/faulty"},
    "steps": [{"effect": "NoSchedule"}, {"after": "30m", "effect": "NoExecute"}],
    "storm": {"devices": 1, "within": "1m"},
}


def seen(minutes: int, **fields: Any) -> Obj:
    since = format_micro_time(NOON - timedelta(minutes=minutes))
    return {"device": NAME, "since": since, "majorSince": since, "sources": ["ecc"], **fields}


@dataclass(frozen=True)
class Case:
    want: tuple[tuple[str, int], ...]
    """Effects, and after how many minutes."""
    status: Obj = field(default_factory=dict)
    annotations: Obj = field(default_factory=dict)


CASES = {
    "never seen, and so a storm": Case(()),
    "waits for a step": Case(
        (("NoSchedule", 0), ("NoExecute", 20)), {"devices": [seen(10, phase="Pending")]}
    ),
    "reported by a dry run": Case(
        (("NoExecute", 0),), {"devices": [seen(40, phase="Tainted", step=1, effect="NoExecute")]}
    ),
    "a storm": Case((), {"devices": [seen(10)], "stormSince": format_micro_time(NOON)}),
    "a storm that was resumed": Case(
        (("NoSchedule", 0), ("NoExecute", 30)),
        {"devices": [seen(0)]},
        {"sully.dev/resumed-at": format_micro_time(NOON)},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_steps(case: Case) -> None:
    stored = {
        "metadata": meta("faulty", annotations=case.annotations),
        "spec": SPEC | {"mode": "DryRun"},
        "status": case.status,
    }
    proposed = {"metadata": {"name": "faulty"}, "spec": SPEC}
    slice_ = manifests.slice_("s", "n1", gpus(1)[0] | {"taints": [FAULT]})
    slices = Objects(SLICES, [from_body(SLICES, slice_)])
    policies = Objects(DEVICE_POLICIES, [from_body(DEVICE_POLICIES, stored)])
    snapshot = Snapshot([slices, policies], taken=NOON)

    planned = forecast(from_body(DEVICE_POLICIES, proposed), snapshot)

    steps = planned.steps.get(NAME, ())
    assert tuple((step.effect, int((step.at - NOON).seconds / 60)) for step in steps) == case.want
