"""Pods and the taints on their devices, and what rules count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sully.api.resource.annotations import ALLOCATED_ATTRIBUTES
from sully.api.resource.types import DeviceTaintRule
from sully.client.transport import Key
from sully.domain.devices.rules import record
from sully.domain.devices.selectors import Content
from sully.domain.eviction.judge import Evict, Hold
from sully.domain.eviction.preview import PreviewedPod
from sully.domain.eviction.status import Counts
from sully.testing.builders import (
    DRIVER,
    GPU,
    cel,
    claim,
    device,
    exists,
    patch,
    pod,
    rule,
    select,
    slice_,
    taint,
    text,
)
from sully.views.devices.changes import InventoryChange, RuleChange
from views.feeds import Scene

GPU1, GPU2 = GPU._replace(device="gpu-1"), GPU._replace(device="gpu-2")
PUBLISHED = slice_("one", device("gpu-0"), device("gpu-1"), device("gpu-2"))


def seen(scene: Scene, of: Any) -> list[tuple[str, list[str]]]:
    return [
        (item.device.device, [str(mark.origin) for mark in item.taints])
        for item in scene.exposures.of(of)
    ]


def test_a_pod_sees_the_taints_of_its_own_devices_from_all_origins() -> None:
    scene = Scene()
    scene.slices.put(
        slice_("one", device("gpu-0", taint()), device("gpu-1", taint()), count=2),
        slice_("marks", device_taints=(("gpu-0", taint(key="m")),), count=2),
    )
    scene.patches.put(patch("p", taints=(taint(key="p"),)))
    scene.rules.put(rule("r", select(device="gpu-0")))
    scene.claims.put(claim("claim", GPU))
    mine = pod("pod", "claim")
    scene.pods.put(mine)

    assert seen(scene, mine) == [
        (
            "gpu-0",
            [
                "ResourceSlice/one",
                "ResourceSlice/marks",
                "ResourceSlicePatch/p",
                "DeviceTaintRule/r",
            ],
        )
    ]


def test_a_rule_hits_a_device_whose_slice_is_gone() -> None:
    scene = Scene()
    scene.rules.put(rule("r", select(driver=DRIVER)), rule("x", select(driver="x")))
    scene.claims.put(claim("claim", GPU))

    assert seen(scene, pod("pod", "claim")) == [("gpu-0", ["DeviceTaintRule/r"])]


A100 = Content(DRIVER, {"model": text("A100")}, {})
MODEL = select(selectors=cel(f'device.attributes["{DRIVER}"].model == "A100"'))


@pytest.mark.parametrize("known", [True, False], ids=["recorded", "not recorded"])
def test_an_expression_needs_what_was_recorded_when_the_slice_is_gone(known: bool) -> None:
    scene = Scene()
    chosen = rule("r", MODEL)
    scene.rules.put(chosen)
    notes = {ALLOCATED_ATTRIBUTES: record([(GPU, A100)])} if known else {}
    scene.claims.put(claim("claim", GPU, annotations=notes))
    scene.pods.put(pod("pod", "claim"))

    assert seen(scene, pod("pod", "claim")) == [("gpu-0", ["DeviceTaintRule/r"] if known else [])]
    assert scene.exposures.counts(chosen, evicted=0).pods == int(known)
    problems = [problem.choice.problem for problem in scene.exposures.problems(chosen)]
    assert problems == ([] if known else ["its attributes were not recorded at allocation"])


NOT_RUNNING: dict[str, tuple[dict[str, Any], bool]] = {
    "not scheduled": ({"node": ""}, False),
    "succeeded": ({"status": {"phase": "Succeeded"}}, True),
    "failed": ({"status": {"phase": "Failed"}}, True),
}


@pytest.mark.parametrize(("how", "strict"), NOT_RUNNING.values(), ids=NOT_RUNNING.keys())
def test_pods_that_do_not_run_are_not_exposed(how: dict[str, Any], strict: bool) -> None:
    for compat, want in ((False, False), (True, strict)):
        scene = Scene(strict=compat)
        scene.slices.put(slice_("one", device("gpu-0", taint())))
        scene.claims.put(claim("claim", GPU))
        result = pod("pod", "claim", **how)
        scene.pods.put(result)

        assert bool(scene.exposures.of(result)) is want
        assert scene.exposures.counts(rule("r", select()), evicted=0).pods == int(want)


@dataclass(frozen=True)
class Case:
    rule: DeviceTaintRule
    want: Counts


EVERYTHING = rule("r", select())
COUNTS = {
    "everything": Case(
        EVERYTHING, Counts(published=3, allocated=4, pods=3, namespaces=2, evicted=7)
    ),
    "no selector": Case(rule("r"), Counts(evicted=7)),
    "one device": Case(
        rule("r", select(device="gpu-2")),
        Counts(published=1, allocated=1, pods=1, namespaces=1, evicted=7),
    ),
    "a preview, as if the effect was NoExecute": Case(
        rule("r", select(device="gpu-2"), taint("None")),
        Counts(published=1, allocated=1, pods=1, namespaces=1, evicted=7),
    ),
    "a device that nobody publishes": Case(
        rule("r", select(device="gpu-9")),
        Counts(allocated=1, pods=1, namespaces=1, evicted=7),
    ),
    "an expression": Case(
        rule("r", select(selectors=cel(f'device.driver == "{DRIVER}"'))),
        Counts(published=3, allocated=3, pods=3, namespaces=2, evicted=7),
    ),
}


@pytest.mark.parametrize("case", COUNTS.values(), ids=COUNTS.keys())
def test_counts(case: Case) -> None:
    scene = Scene()
    scene.slices.put(PUBLISHED)
    # Old slices are not published any more.
    scene.slices.put(slice_("two", device("gpu-0"), pool="pool-2", generation=2, driver="nic"))
    scene.slices.remove(slice_("two", pool="pool-2", generation=2, driver="nic"))
    scene.claims.put(
        # One pod, two devices and two claims: it counts once.
        claim("a", GPU, pods=("a",)),
        claim("a2", GPU._replace(device="gpu-9"), pods=("a",)),
        # A claim that two pods share, of which one is terminating.
        claim("b", GPU1, pods=("b", "b-terminating")),
        claim("c", (GPU2, (exists(seconds=5),)), namespace="other", pods=("c",)),
    )
    scene.pods.put(
        pod("a", "a", "a2"),
        pod("b", "b"),
        pod("b-terminating", "b", metadata={"deletionTimestamp": "2030-01-01T12:00:00Z"}),
        pod("c", "c", namespace="other"),
    )

    assert scene.exposures.counts(case.rule, evicted=7) == case.want


def test_a_pod_that_tolerates_indefinitely_is_not_counted() -> None:
    scene = Scene()
    scene.claims.put(claim("a", (GPU, (exists(),))))
    scene.pods.put(pod("pod", "a"))

    got = scene.exposures.counts(EVERYTHING, evicted=0)

    assert (got.allocated, got.pods) == (1, 0)


def test_which_pods_a_change_may_matter_to() -> None:
    scene = Scene()
    scene.claims.put(claim("a", GPU, pods=("a",)), claim("b", GPU1, pods=("b",)))
    scene.pods.put(pod("a", "a"), pod("b", "b"))
    a, b = Key("default", "a"), Key("default", "b")
    named, quiet = rule("r", select(device="gpu-0")), rule("r", select(), taint("NoSchedule"))

    def touched(change: InventoryChange) -> set[Key]:
        return set(scene.exposures.affected_pods(change))

    assert touched(InventoryChange({GPU.pool_id: frozenset({"gpu-1"})})) == {b}
    assert touched(InventoryChange({GPU.pool_id: None})) == {a, b}
    assert touched(InventoryChange({}, (RuleChange(None, named),))) == {a}
    assert touched(InventoryChange({}, (RuleChange(named, quiet),))) == {a, b}
    # A rule that evicts nobody, and did not before, wakes nobody.
    assert touched(InventoryChange({GPU.pool_id: None}, (RuleChange(quiet, quiet),))) == set()


def owned(name: str, *claims: str, **more: Any) -> Any:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
    return pod(name, *claims, metadata={"ownerReferences": [owner | {"controller": True}]}, **more)


def test_a_preview_names_owners_and_times() -> None:
    scene = Scene()
    scene.slices.put(PUBLISHED)
    scene.claims.put(
        claim("a", (GPU, (exists(seconds=60),)), pods=("a",)),
        # A second device without a toleration: the pod is evicted immediately.
        claim("a2", GPU._replace(device="gpu-9"), pods=("a",)),
        claim("b", (GPU1, (exists(seconds=30),)), pods=("b",)),
        claim("c", (GPU2, (exists(),)), pods=("c",)),
    )
    scene.pods.put(owned("a", "a", "a2"), pod("b", "b"), pod("c", "c"))

    got = scene.exposures.preview(rule("r", select(), taint("None", after=-3600)))

    assert (got.published, got.allocated) == (3, 4)
    assert sorted(got.evictions) == [
        PreviewedPod("default", "a", "ReplicaSet/web", 0),
        PreviewedPod("default", "b", "Pod/b", 30),
    ]


PAUSES = {
    "not paused": ({}, Evict),
    "paused": ({"sully.dev/paused": "true"}, Hold),
    "paused with a reason": ({"sully.dev/paused": "not yet"}, Hold),
    "not paused, in words": ({"sully.dev/paused": "false"}, Evict),
}


@pytest.mark.parametrize(("annotations", "want"), PAUSES.values(), ids=PAUSES.keys())
def test_a_paused_rule_holds(annotations: dict[str, str], want: type) -> None:
    scene = Scene()
    scene.claims.put(claim("claim", GPU))
    mine = pod("pod", "claim")
    scene.pods.put(mine)
    scene.rules.put(rule("r", select(), annotations=annotations))

    assert isinstance(scene.exposures.judge(mine, scene.clock.now()), want)


def test_a_change_of_the_pause_is_reported_and_other_annotations_are_not() -> None:
    scene = Scene()
    scene.claims.put(claim("claim", GPU))
    scene.pods.put(pod("pod", "claim"))
    scene.rules.put(rule("r", select()))
    heard = scene.changes()

    scene.rules.put(rule("r", select(), annotations={"example.com/note": "x"}))
    assert heard == []
    scene.rules.put(rule("r", select(), annotations={"sully.dev/paused": "true"}))

    (change,) = heard
    assert set(scene.exposures.affected_pods(change)) == {Key("default", "pod")}
