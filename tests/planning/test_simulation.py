"""What a simulation predicts, case by case."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

import manifests
from manifests import stored
from planning.building import (
    CLASS,
    DRIVER,
    KEY,
    Obj,
    machines,
    meta,
    node,
    planned,
    put,
    rule,
    running,
    slice_,
    snapshot,
    toleration,
    waiting,
)
from sully.client.transport import Key
from sully.domain.planning.report import Plan
from sully.machinery.formats.timestamps import format_time
from sully.planning.dryrun.changes import Remove
from sully.planning.plan_builder import build_plan
from sully.planning.simulation.cluster_copy import SimulationOptions
from sully.planning.simulation.simulator import Simulation
from sully.testing.clock import NOON
from sully.views.kinds import PATCHES, RULES, SLICES, TAINT_RECORDS
from sully.views.snapshot.snapshot import Gap

WEB = "ReplicaSet/web"
REFUSED = "0/2 nodes are available: 2 cannot allocate all claims."


def patch(name: str = "patch", *, effect: str = "NoExecute", **annotations: str) -> Obj:
    taint = {"key": KEY, "effect": effect, "timeAdded": format_time(NOON)}
    devices = {"filter": {"driver": DRIVER, "pool": "n1"}, "taints": [taint]}
    return stored(manifests.patch(name, devices, annotations=annotations))


def ending(seconds: int) -> dict[str, str]:
    return {"sully.dev/expires-at": format_time(NOON + timedelta(seconds=seconds))}


def driver_tainted() -> Obj:
    taint = {"key": KEY, "effect": "NoExecute", "timeAdded": format_time(NOON)}
    return slice_("n1", first={"taints": [taint]})


def without_template(objects: list[Obj]) -> list[Obj]:
    return [obj for obj in objects if obj["kind"] != "ResourceClaimTemplate"]


ONE = running("p1", "n1", "gpu-0", owned_by=WEB)
BARE = running("p1", "n1", "gpu-0")
TWO_NODES = machines("n1", "n2")


@dataclass(frozen=True)
class Case:
    objects: list[Obj]
    changes: tuple[Any, ...] = (put(rule(pool="n1")),)
    want: tuple[str, ...] = ()
    """Each departure: name, seconds, fate, node or why."""
    blocked: tuple[str, ...] = ()
    scheduled: tuple[str, ...] = ()
    not_rescheduled: int = 0
    options: SimulationOptions = field(default_factory=lambda: SimulationOptions(stop_seconds=1))


CASES = {
    "lands elsewhere": Case([*TWO_NODES, *ONE], want=("p1 0 Rescheduled n2",)),
    "is rescheduled to the other device of its node": Case(
        [*machines("n1", devices=2), *ONE],
        (put(rule(pool="n1", device="gpu-0")),),
        want=("p1 0 Rescheduled n1",),
    ),
    "no device is left": Case(
        [*TWO_NODES, *ONE, *running("p2", "n2", "gpu-0", owned_by=WEB)],
        want=(f"p1 0 Pending {REFUSED}",),
        not_rescheduled=1,
    ),
    "the node that has a device is full": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, cpu="9")],
        want=("p1 0 Pending 0/2 nodes are available: 2 Insufficient cpu.",),
        not_rescheduled=1,
    ),
    "nobody manages it": Case(
        [*TWO_NODES, *BARE],
        want=("p1 0 NotReplaced no controller manages it, so it is not recreated",),
        not_rescheduled=1,
    ),
    "a pod of a node's own is not made by anyone else": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by="Node/n1")],
        want=("p1 0 NotReplaced no controller manages it, so it is not recreated",),
        not_rescheduled=1,
    ),
    "only what is selected is hit": Case(
        [*TWO_NODES, *ONE, *running("p2", "n2", "gpu-0", owned_by=WEB)],
        (put(rule(pool="n3")),),
    ),
    "NoSchedule evicts no pod": Case(
        [*TWO_NODES, *ONE], (put(rule(effect="NoSchedule", pool="n1")),)
    ),
    "tolerated for a while": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration(300)])],
        want=("p1 300 Rescheduled n2",),
    ),
    "tolerated indefinitely": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration()])]
    ),
    "tolerated for a while, and nowhere else to go": Case(
        [*machines("n1"), *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration(9)])],
        want=("p1 9 Pending 0/1 nodes are available: 1 cannot allocate all claims.",),
        not_rescheduled=1,
    ),
    "tolerated for a while yet, on a device that evicts too": Case(
        [
            *machines("n1", devices=2),
            *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration(9)]),
        ],
        (put(rule(pool="n1")), put(rule("worse", key="example.com/worse", device="gpu-0"))),
        want=(
            "p1 0 EvictedAgain it tolerates the taints there only for some time,"
            " and would be evicted again after 9s",
        ),
        not_rescheduled=1,
    ),
    "the rule ends before the time is over": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration(300)])],
        (put(rule(pool="n1", annotations=ending(200))),),
    ),
    "the patch ends before the time is over": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration(300)])],
        (put(patch(**ending(200)), PATCHES),),
    ),
    "a patch that was there ends, and a pod that waits gets its device": Case(
        [*machines("n1"), *waiting("p1"), patch(effect="NoSchedule", **ending(60))],
        (put(rule(pool="elsewhere")),),
        scheduled=("p1 n1",),
    ),
    "the rule is paused": Case(
        [*TWO_NODES, *ONE],
        (put(rule(pool="n1", annotations={"sully.dev/paused": "lunch"})),),
        blocked=("p1 paused: DeviceTaintRule/rule",),
    ),
    "it is evicted without the change as well": Case(
        [*TWO_NODES, *ONE, rule("old", pool="n1")],
        (put(rule("new", pool="n2")),),
        want=(f"p1 0 Pending {REFUSED} anyway",),
    ),
    "the change evicts it sooner": Case(
        [
            *TWO_NODES,
            *running("p1", "n1", "gpu-0", owned_by=WEB, tolerations=[toleration(60, "old")]),
            {
                **rule("old", pool="n1"),
                "spec": {
                    **rule(pool="n1")["spec"],
                    "taint": {"key": "old", "effect": "NoExecute", "timeAdded": format_time(NOON)},
                },
            },
        ],
        (put(rule("new", pool="n1")),),
        want=("p1 0 Rescheduled n2",),
    ),
    "its template is gone": Case(
        [*TWO_NODES, *without_template(ONE)],
        want=("p1 0 Pending ResourceClaimTemplate a/p1-template does not exist",),
        not_rescheduled=1,
    ),
    "a stateful set waits until the old pod is gone": Case(
        [*TWO_NODES, *running("db-0", "n1", "gpu-0", owned_by="StatefulSet/db")],
        want=("db-0 0 Rescheduled n2 after 1",),
    ),
    "it needs two devices and only one is well": Case(
        [*machines("n1", devices=2), *running("p1", "n1", "gpu-0", "gpu-1", owned_by=WEB)],
        (put(rule(pool="n1", device="gpu-0")),),
        want=("p1 0 Pending 0/1 nodes are available: 1 cannot allocate all claims.",),
        not_rescheduled=1,
    ),
    "another scheduler's pod": Case(
        [*TWO_NODES, *running("p1", "n1", "gpu-0", owned_by=WEB, schedulerName="theirs")],
        want=(
            "p1 0 Unknown scheduler theirs decides about it; nodes and devices: it would fit on n2",
        ),
    ),
    "a patch": Case([*TWO_NODES, *ONE], (put(patch(), PATCHES),), want=("p1 0 Rescheduled n2",)),
    "a slice": Case(
        [*TWO_NODES, *ONE], (put(driver_tainted(), SLICES),), want=("p1 0 Rescheduled n2",)
    ),
    "a rule goes, and a pod that waited gets its device": Case(
        [*machines("n1"), *waiting("p1"), rule(effect="NoSchedule", pool="n1")],
        (Remove(RULES, Key("", "rule")),),
        scheduled=("p1 n1",),
    ),
    "a pod without a grace period is gone before the next one comes": Case(
        [
            *machines("n1", "n2", devices=2),
            *running("p1", "n1", "gpu-0", owned_by=WEB, terminationGracePeriodSeconds=0),
        ],
        (put(rule(pool="n1", device="gpu-0")),),
        want=("p1 0 Rescheduled n1",),
    ),
}


def replacements(plan: Plan) -> tuple[str, ...]:
    return tuple(
        " ".join(
            [
                f"{eviction.name} {eviction.after_seconds:g} {eviction.replacement.outcome.value}",
                (eviction.replacement.message or eviction.replacement.node),
                *(["anyway"] if eviction.without_change else []),
                *(_late(eviction)),
            ]
        )
        for eviction in plan.evictions
    )


def _late(entry: Any) -> list[str]:
    late = (
        (entry.replacement.scheduled_time - entry.eviction_time).total_seconds()
        if entry.replacement.scheduled_time is not None
        else 0
    )
    return [f"after {late:g}"] if late and entry.replacement.outcome.value == "Rescheduled" else []


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_rehearsal(case: Case) -> None:
    check(case)


def check(case: Case) -> None:
    plan = planned(case.objects, *case.changes, options=case.options)

    assert replacements(plan) == case.want
    assert (
        tuple(f"{eviction.name} {eviction.message}" for eviction in plan.blocked_evictions)
        == case.blocked
    )
    assert tuple(f"{pod.name} {pod.node}" for pod in plan.scheduled_pods) == case.scheduled
    assert len(plan.not_rescheduled) == case.not_rescheduled


def crowd(
    number: int, *, rate: int | None = None, options: SimulationOptions | None = None
) -> list[float]:
    objects = machines("n1", devices=number)
    for index in range(number):
        objects += running(f"p{index:02}", "n1", f"gpu-{index}")
    limits: Obj = {"rate": rate} if rate else {}
    plan = planned(objects, put(rule(pool="n1", **limits)), options=options or SimulationOptions())
    return [eviction.after_seconds for eviction in plan.evictions]


def test_without_a_rate_all_are_evicted_immediately() -> None:
    assert crowd(15) == [0.0] * 15


def test_a_rate_lets_ten_go_and_then_one_by_one() -> None:
    assert crowd(14, rate=2) == [0.0] * 10 + [0.5, 1.0, 1.5, 2.0]


def test_the_rate_for_taints_that_name_none() -> None:
    options = SimulationOptions(default_per_second=1)

    assert crowd(12, options=options) == [0.0] * 10 + [1.0, 2.0]


def test_the_cap_over_all() -> None:
    options = SimulationOptions(max_per_minute=5)

    assert crowd(12, options=options) == [0.0] * 5 + [60.0] * 5 + [120.0] * 2


def test_devices_claims_and_classes_are_reported() -> None:
    plan = planned([*TWO_NODES, *ONE], put(rule(pool="n1")))

    (device,) = plan.devices
    assert device.device == f"{DRIVER}/n1/gpu-0"
    assert [taint.text for taint in device.added_taints] == [
        f"{KEY}:NoExecute (DeviceTaintRule/rule)"
    ]
    assert device.claims == plan.claims == ("a/p1-claim",)
    (result,) = plan.classes
    assert (result.name, result.devices_after) == (CLASS, 2)
    assert (result.free_before, result.free_after) == (1, 0)
    assert (result.tainted_before, result.tainted_after) == (0, 1)
    assert [change.text for change in plan.changes] == ["DeviceTaintRule/rule created"]


def test_what_is_left_of_a_class_does_not_count_on_the_end_of_other_rules() -> None:
    there = rule("there", pool="n2", effect="NoSchedule", annotations=ending(7200))
    plan = planned([*machines("n1", "n2", "n3"), there], put(rule(pool="n1")))

    (result,) = plan.classes
    assert (result.tainted_before, result.tainted_after) == (1, 2)
    assert (result.free_before, result.free_after) == (2, 1)


def test_what_is_left_of_a_class_does_not_count_what_happens_anyway() -> None:
    # Another rule evicts a pod that nobody recreates; the change only taints a free device.
    objects = [*machines("n1", "n2", "n3"), *BARE, rule("there", pool="n1")]
    plan = planned(objects, put(rule(pool="n2")))

    (result,) = plan.classes
    assert (result.used_before, result.used_after) == (0, 0)
    assert (result.free_before, result.free_after) == (2, 1)


def device_count(objects: list[Obj]) -> int:
    return sum(len(obj["spec"].get("devices", ())) for obj in objects if "spec" in obj)


def test_a_device_whose_slice_is_gone_is_reported_too() -> None:
    objects = [node for node in TWO_NODES if node["metadata"]["name"] != "s-n1"]
    plan = planned([*objects, *ONE], put(rule(pool="n1")))

    assert [device.device for device in plan.devices] == [f"{DRIVER}/n1/gpu-0"]
    assert plan.devices[0].claims == ("a/p1-claim",)
    assert plan.total_devices == 1 + device_count(objects)
    assert replacements(plan) == ("p1 0 Rescheduled n2",)


def test_a_pod_takes_its_whole_grace_unless_it_is_known_to_be_quicker() -> None:
    grace: Obj = {"terminationGracePeriodSeconds": 60}
    pod = running("db-0", "n1", "gpu-0", owned_by="StatefulSet/db", **grace)
    plan = planned([*TWO_NODES, *pod], put(rule(pool="n1")), options=SimulationOptions())

    assert replacements(plan) == ("db-0 0 Rescheduled n2 after 60",)


@pytest.mark.parametrize(("quick", "want"), [(None, 20.0), (12.0, 2.0), (5.0, 0.0), (90.0, 20.0)])
def test_a_terminating_pod_stops_as_quickly(quick: float | None, want: float) -> None:
    terminating = running("p1", "n1", "gpu-0")
    terminating[0]["metadata"]["deletionTimestamp"] = format_time(NOON + timedelta(seconds=20))
    plan = planned(
        [*machines("n1"), *terminating, *waiting("p2")],
        put(rule(pool="elsewhere")),
        options=SimulationOptions(stop_seconds=quick),
    )

    # It was deleted ten seconds ago, and had thirty.
    assert [(pod.scheduled_time - NOON).total_seconds() for pod in plan.scheduled_pods] == [want]


def test_the_refusal_comes_with_an_account() -> None:
    plan = planned([*machines("n1"), *ONE], put(rule(pool="n1")))

    diagnosis = plan.evictions[0].replacement.diagnosis
    assert diagnosis is not None
    assert diagnosis.requests[0].taints[0].origin == "DeviceTaintRule/rule"


def test_pods_that_share_a_claim_come_together_again() -> None:
    first = running("p1", "n1", "gpu-0", owned_by=WEB)
    shared = next(item for item in first if item["kind"] == "ResourceClaim")
    shared["metadata"].pop("ownerReferences")
    shared["status"]["reservedFor"].append({"resource": "pods", "name": "p2", "uid": "uid-p2"})
    pods = [next(item for item in first if item["kind"] == "Pod")]
    pods += [item for item in running("p2", "n1", owned_by=WEB) if item["kind"] == "Pod"]
    for pod in pods:
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "p1-claim"}]
        pod["status"].pop("resourceClaimStatuses")
    plan = planned([*TWO_NODES, shared, *pods], put(rule(pool="n1")))

    # The claim gets another device only when neither uses the first.
    assert replacements(plan) == ("p1 0 Rescheduled n2 after 1", "p2 0 Rescheduled n2 after 1")


def test_a_pod_that_was_just_scheduled_is_evicted_as_others_are() -> None:
    objects = [*machines("n1"), *waiting("p1")]
    plan = planned(objects, put(rule(pool="n1")))

    assert [eviction.name for eviction in plan.evictions] == ["p1"]
    assert not plan.scheduled_pods


def test_equal_pods_wait_behind_one_another_and_step_forward_in_order() -> None:
    objects = machines("n1", "n2", devices=3)
    for index in range(3):
        objects += running(f"p{index}", "n1", f"gpu-{index}", owned_by=WEB)
        objects += running(f"q{index}", "n2", f"gpu-{index}", owned_by="ReplicaSet/other")
    for obj in objects:
        if obj["kind"] == "Pod" and obj["metadata"]["name"].startswith("p"):
            obj["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = "p0-template"
    first = put(rule("first", pool="n1", rate=1))
    short = put(rule("short", pool="n1", annotations=ending(60)))
    plan = planned(objects, short)

    # Nobody has a place until the rule ends, and then all have one.
    assert [eviction.replacement.outcome.value for eviction in plan.evictions] == [
        "Rescheduled"
    ] * 3
    assert {eviction.replacement.node for eviction in plan.evictions} == {"n1"}
    assert {
        (eviction.replacement.scheduled_time - NOON).total_seconds() for eviction in plan.evictions
    } == {60.0}
    assert len(planned(objects, first).not_rescheduled) == 3


def test_what_a_tainted_part_drew_from_is_free_for_the_whole() -> None:
    plain = slice_("n1", 2)
    for device, amount in zip(plain["spec"]["devices"], ("4", "8"), strict=True):
        counters = {"memory": {"value": amount}}
        device["consumesCounters"] = [{"counterSet": "card", "counters": counters}]
    card = {"name": "card", "counters": {"memory": {"value": "8"}}}
    plain["spec"]["pool"]["resourceSliceCount"] = 2
    common = {name: plain["spec"][name] for name in ("driver", "pool", "nodeName")}
    counted = {"metadata": meta("counters"), "spec": common | {"sharedCounters": [card]}}
    slices = [plain, {"kind": "ResourceSlice", **counted}]
    lasting = running("p2", "n2", "gpu-0", tolerations=[toleration(1000)])
    objects = [*machines("n2"), node("n1"), *slices, *ONE, *lasting, *waiting("p3")]

    plan = planned(objects, put(rule(device="gpu-0")))

    # Not only when everything has come to rest.
    assert [
        (pod.name, (pod.scheduled_time - NOON).total_seconds()) for pod in plan.scheduled_pods
    ] == [("p3", 1)]


@pytest.mark.parametrize("ours", [True, False])
def test_kubernetes_itself_evicts_who_names_no_effect(ours: bool) -> None:
    anything = {"operator": "Exists"}
    objects = [*TWO_NODES, *running("p1", "n1", "gpu-0", tolerations=[anything])]
    gaps = [] if ours else [Gap(TAINT_RECORDS, "not served")]
    simulation = Simulation(snapshot(*objects, gaps=gaps))

    simulation.run([put(rule(pool="n1"))])

    assert [eviction.name for eviction in build_plan(simulation).evictions] == (
        [] if ours else ["p1"]
    )


def test_an_account_names_some_who_hold_devices_and_counts_the_others() -> None:
    objects = [*machines("n1"), *machines("n2", devices=20)]
    for index in range(20):
        objects += running(f"q{index:02}", "n2", f"gpu-{index}")
    plan = planned([*objects, *ONE], put(rule(pool="n1")))

    (asked,) = plan.evictions[0].replacement.diagnosis.requests
    assert asked.refused["inUse"] == 20
    assert (len(asked.holders), asked.more_holders) == (8, 12)
