"""The state of all devices: counts by class and node, Pending pods, and what needs attention."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from manifests import claim_template
from sully.api.resource.types import ResourceClaimTemplate
from sully.client.transport import Key, Kind
from sully.domain.capabilities.control_plane import (
    PATCHES_GATE,
    RULES_GATE,
    TAINTS_GATE,
    ControlPlane,
)
from sully.domain.scheduling.objects import Pod
from sully.testing.builders import (
    GPU,
    claim,
    class_,
    device,
    node,
    pod,
    pod_as,
    request,
    rule,
    select,
    slice_,
    taint,
)
from sully.testing.clock import NOON
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, RULES, SLICES
from sully.views.snapshot.kinds import NODES, PODS, TEMPLATES
from sully.views.snapshot.snapshot import Objects, Snapshot
from sully.views.status import (
    NO_CLASS,
    DeviceTally,
    Status,
    disabled_gates,
    pending_pods,
    status_of,
)

KINDS: dict[str, Kind[Any]] = {
    "slices": SLICES,
    "classes": CLASSES,
    "rules": RULES,
    "claims": CLAIMS,
    "templates": TEMPLATES,
    "nodes": NODES,
    "pods": CONSUMER_PODS,
    "waiting": PODS,
}
ZERO = 'device.driver == "gpu.example.com"'
NEVER = 'device.driver == "other.example.com"'
POOLS = [
    slice_("a", device("gpu-0"), device("gpu-1"), device("gpu-2", taint("NoSchedule"))),
    slice_("b", device("gpu-0"), pool="pool-2", node="node-2"),
    slice_("c", device("nic-0"), pool="pool-3", driver="nic.example.com", node=None),
]


def snapshot(**objects: list[Any]) -> Snapshot:
    held = [Objects(KINDS[name], objects[name]) for name in objects]
    return Snapshot(held, taken=NOON)


def status(**objects: list[Any]) -> Status:
    return status_of(snapshot(**objects))


def numbers(tally: DeviceTally) -> tuple[int, int, int, dict[str, int], int]:
    return tally.devices, tally.in_use, tally.free, dict(tally.tainted), tally.pending_pods


def test_classes_and_nodes() -> None:
    result = status(
        slices=POOLS,
        classes=[class_("gpu", ZERO), class_("none", NEVER)],
        claims=[claim("c", GPU), claim("w", requests=(request(),))],
        pods=[pod("pod", "c"), pod("waits", "w", node="")],
        rules=[rule("r", select(device="gpu-2"))],
        nodes=[node("node-1"), node("node-2", spec={"unschedulable": True})],
    )

    assert {name: numbers(tally) for name, tally in result.classes.items()} == {
        "gpu": (4, 1, 1, {"NoExecute": 1}, 1),
        "none": (0, 0, 0, {}, 0),
        NO_CLASS: (1, 0, 1, {}, 0),
    }
    assert numbers(result.total) == (5, 1, 2, {"NoExecute": 1}, 1)
    assert [(x.node, numbers(x.tally), x.obstacle) for x in result.nodes] == [
        ("*", (1, 0, 1, {}, 0), ""),
        ("node-1", (3, 1, 1, {"NoExecute": 1}, 0), ""),
        ("node-2", (1, 0, 0, {}, 0), "node cordoned"),
    ]


def test_what_needs_attention() -> None:
    result = status(
        slices=[slice_("s", device("gpu-1"))],
        claims=[claim("a", GPU, pods=("p",)), claim("b", GPU, pods=("q",))],
        pods=[pod("p", "a"), pod("q", "b")],
        rules=[rule("r", select(device="gpu-0")), rule("idle", select(device="gpu-1"))],
    )

    assert [str(view.id) for view in result.conflicts] == [str(GPU)]
    assert result.unpublished == 1
    assert [(x.rule.metadata.name, len(x.pending)) for x in result.evictions] == [("r", 2)]
    assert [source.name for source in result.sources] == ["idle", "r"]


EITHER = {"name": "r", "firstAvailable": [{"name": x, "deviceClassName": x} for x in ("a", "b")]}
TEMPLATE = claim_template("t", {"devices": {"requests": [EITHER]}}, namespace="default")
PENDING = {
    "a claim": (pod_as(Pod, "p", "c", node=""), {"gpu"}),
    "a template with alternatives, no claim yet": (
        pod_as(
            Pod,
            "p",
            node="",
            spec={"resourceClaims": [{"name": "x", "resourceClaimTemplateName": "t"}]},
        ),
        {"a", "b"},
    ),
    "an extended resource": (pod_as(Pod, "p", node="", requests={"example.com/gpu": "1"}), {"gpu"}),
    "no device": (pod_as(Pod, "p", node="", requests={"cpu": "1"}), None),
    "a node": (pod_as(Pod, "p", "c"), None),
    "finished": (pod_as(Pod, "p", "c", node="", status={"phase": "Failed"}), None),
}


@pytest.mark.parametrize(("waiting", "classes"), PENDING.values(), ids=PENDING)
def test_pending_pods(waiting: Pod, classes: set[str] | None) -> None:
    result = pending_pods(
        snapshot(
            waiting=[waiting],
            claims=[claim("c", requests=(request(),))],
            classes=[class_("gpu", extended_resource_name="example.com/gpu")],
            templates=[msgspec.convert(TEMPLATE, ResourceClaimTemplate)],
        )
    )

    assert result.get(Key("default", "p")) == classes


def test_only_the_pending_pods_of_a_namespace_are_counted() -> None:
    waiting = [pod_as(Pod, name, "c", node="", namespace=name) for name in ("a", "b")]
    claims = [claim("c", requests=(request(),), namespace=name) for name in ("a", "b")]
    objects = snapshot(waiting=waiting, claims=claims, classes=[class_("gpu")])

    assert status_of(objects).total.pending_pods == 2
    shown = status_of(objects, namespace="a")
    assert list(shown.pending) == [Key("a", "a")]
    assert shown.classes["gpu"].pending_pods == 1


GATES = {
    "all on": (ControlPlane(), []),
    "rules off": (ControlPlane(gates={RULES_GATE: False, TAINTS_GATE: True}), [RULES_GATE]),
    "patches off": (ControlPlane(gates={PATCHES_GATE: False}), [PATCHES_GATE]),
    "patches off where nobody reads them": (
        ControlPlane(scheduler="Kubernetes", gates={PATCHES_GATE: False}),
        [],
    ),
}


@pytest.mark.parametrize(("plane", "gates"), GATES.values(), ids=GATES)
def test_disabled_gates(plane: ControlPlane, gates: list[str]) -> None:
    assert disabled_gates(plane) == gates
