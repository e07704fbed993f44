"""What taints devices: one row for each source, with its devices and its effect on pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from sully.client.transport import Kind
from sully.domain.capabilities.control_plane import RULES_GATE, TAINTS_GATE, ControlPlane
from sully.testing.builders import (
    GPU,
    claim,
    device,
    exists,
    patch,
    pod,
    rule,
    select,
    slice_,
    taint,
)
from sully.testing.clock import NOON
from sully.views.kinds import CLAIMS, CONSUMER_PODS, PATCHES, RULES, SLICES
from sully.views.snapshot.snapshot import Objects, Snapshot
from sully.views.taint_sources import TaintSource, taint_sources

KINDS: dict[str, Kind[Any]] = {
    "slices": SLICES,
    "rules": RULES,
    "patches": PATCHES,
    "claims": CLAIMS,
    "pods": CONSUMER_PODS,
}
TWO = [slice_("s", device("gpu-0"), device("gpu-1"))]
HELD: dict[str, Any] = {"claims": [claim("c", GPU)], "pods": [pod("pod", "c")]}
PAUSED: dict[str, Any] = {"annotations": {"sully.dev/paused": "wait"}}
ABOUT: dict[str, Any] = {
    "annotations": {
        "sully.dev/created-by": "alice",
        "sully.dev/description": "fan",
        "sully.dev/expires-at": "2030-01-01T13:00:00Z",
    }
}
TOGETHER: dict[str, Any] = {"labels": {"sully.dev/taint": "fw"}}


def sources(plane: ControlPlane | None = None, **objects: list[Any]) -> list[TaintSource]:
    held = [Objects(KINDS[name], objects[name]) for name in objects]
    return taint_sources(Snapshot(held, taken=NOON, control_plane=plane))


def row(source: TaintSource) -> str:
    """Return the source, its objects if they are others, its devices, state and pods."""
    several = f"[{' '.join(source.objects)}]" if source.objects != (source.name,) else ""
    pods = f"{len(source.pending)}/{len(source.would_evict)}"
    return f"{source.kind} {source.name}{several} {len(source.devices)} {source.state} {pods}"


@dataclass(frozen=True)
class Case:
    objects: dict[str, list[Any]]
    rows: tuple[str, ...] = ()
    plane: ControlPlane = field(default_factory=lambda: ControlPlane.SULLY)


OFF = ControlPlane(gates={RULES_GATE: False})
ALL_OFF = ControlPlane(gates={TAINTS_GATE: False})
CASES = {
    "nothing": Case({"slices": TWO}),
    "a rule that evicts": Case({**HELD, "rules": [rule("r", select())]}, ("rule r 2 active 1/0",)),
    "a rule that only prevents scheduling": Case(
        {**HELD, "rules": [rule("r", select(), taint("NoSchedule"))]}, ("rule r 2 active 0/1",)
    ),
    "a paused rule": Case(
        {**HELD, "rules": [rule("r", select(), **PAUSED)]}, ("rule r 2 paused 0/1",)
    ),
    "a rule that is tolerated": Case(
        {
            "claims": [claim("c", (GPU, (exists(),)))],
            "pods": [pod("pod", "c")],
            "rules": [rule("r", select())],
        },
        ("rule r 2 active 0/0",),
    ),
    "a rule that matches nothing": Case(
        {"rules": [rule("r", select(device="gpu-9"))]}, ("rule r 0 no device 0/0",)
    ),
    "a rule without a selector": Case({"rules": [rule("r")]}, ("rule r 0 no device 0/0",)),
    "a rule for a device that is gone and in use": Case(
        {
            **HELD,
            "slices": [slice_("s", device("gpu-1"))],
            "rules": [rule("r", select(device="gpu-0"))],
        },
        ("rule r 0 active 1/0",),
    ),
    "rules that were created together": Case(
        {
            **HELD,
            "rules": [
                rule("fw-a", select(device="gpu-0"), **TOGETHER),
                rule("fw-b", select(device="gpu-1"), **TOGETHER),
                rule("other", select(device="gpu-9")),
            ],
        },
        ("rule fw[fw-a fw-b] 2 active 1/0", "rule other 0 no device 0/0"),
    ),
    "one label, two taints": Case(
        {
            "rules": [
                rule("a", select(device="gpu-0"), **TOGETHER),
                rule("b", select(device="gpu-1"), taint(key="else"), **TOGETHER),
            ]
        },
        ("rule a 1 active 0/0", "rule b 1 active 0/0"),
    ),
    "a driver": Case(
        {**HELD, "slices": [slice_("s", device("gpu-0", taint()), device("gpu-1", taint()))]},
        ("driver gpu.example.com[s] 2 active 1/0",),
    ),
    "a taint slice, also for a device that does not exist": Case(
        {
            "slices": [
                slice_("s", device("gpu-0"), count=2),
                slice_(
                    "t",
                    device_taints=(("gpu-0", taint()), ("gpu-7", taint("NoSchedule"))),
                    count=2,
                ),
            ]
        },
        (
            "taint slice gpu.example.com[t] 1 active 0/0",
            "taint slice gpu.example.com[t] 0 no device 0/0",
        ),
    ),
    "a patch": Case(
        {**HELD, "patches": [patch("p", taints=(taint(),))]}, ("patch p 2 active 1/0",)
    ),
    "a patch without taints": Case({"patches": [patch("p", capacity={"memory": "1"})]}),
    "a patch that nobody reads": Case(
        {"patches": [patch("p", taints=(taint(),))]},
        ("patch p 0 no effect 0/0",),
        ControlPlane.KUBERNETES,
    ),
    "rules are off": Case(
        {**HELD, "rules": [rule("r", select())]}, ("rule r 2 no effect 0/0",), OFF
    ),
    "taints are off": Case(
        {"slices": [slice_("s", device("gpu-0", taint()))]},
        ("driver gpu.example.com[s] 0 no effect 0/0",),
        ALL_OFF,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_sources(case: Case) -> None:
    result = sources(case.plane, **({"slices": TWO} | case.objects))

    assert tuple(map(row, result)) == case.rows


def test_who_and_why_and_until_when() -> None:
    (result,) = sources(slices=TWO, rules=[rule("r", select(), **ABOUT)])

    assert (result.created_by, result.reason) == ("alice", "fan")
    assert result.expires == NOON + timedelta(hours=1)
