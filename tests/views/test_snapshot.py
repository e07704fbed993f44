"""A snapshot: kinds as any type, views over them, and trials that leave it alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import manifests
from sully.client.transport import Key, Kind, UnreadableError
from sully.domain.claims.pods import Pod
from sully.domain.scheduling.objects import Pod as SchedulablePod
from sully.testing.builders import GPU, claim, class_, device, pod, rule, select, slice_
from sully.testing.clock import NOON
from sully.views.kinds import CLAIMS, CLASSES, CONSUMER_PODS, RULES, SLICES
from sully.views.snapshot.kinds import PODS
from sully.views.snapshot.snapshot import Gap, Objects, Snapshot, StoppedClock

WHOLE = rule("all", select())


def snapshot(*more: Objects) -> Snapshot:
    return Snapshot(
        [
            Objects(SLICES, [slice_("s", device("gpu-0"), device("gpu-1"))]),
            Objects(CLASSES, [class_("c", "true")]),
            Objects(RULES, [WHOLE]),
            Objects(CLAIMS, [claim("claim", GPU)]),
            Objects(CONSUMER_PODS, [pod("pod", "claim")]),
            *more,
        ],
        taken=NOON,
    )


def test_views_are_those_of_controllers() -> None:
    result = snapshot()

    on_gpu = result.inventory.device(GPU)
    assert on_gpu is not None
    assert [str(taint.origin) for taint in on_gpu.taints] == ["DeviceTaintRule/all"]
    assert [consumer.metadata.name for consumer in result.usage.consumers(claim("claim", GPU))] == [
        "pod"
    ]
    assert result.exposures.due(WHOLE) == {Key("default", "pod"): NOON}


def test_a_kind_that_is_not_there_is_empty() -> None:
    snapshot = Snapshot([], taken=NOON, gaps=[Gap(RULES, "not served", "no such thing")])

    assert not list(snapshot.of(RULES).values())
    assert snapshot.gap(RULES) == Gap(RULES, "not served", "no such thing")
    assert snapshot.gap(CONSUMER_PODS) is None
    assert list(snapshot.inventory.pools()) == []


POD = manifests.pod(
    "p",
    {"nodeName": "node-1", "resourceClaims": [{"name": "c", "resourceClaimName": "d"}]},
    {"phase": "Running"},
    namespace="n",
    uid="u",
    ownerReferences=[],
)
UNTYPED: Kind[dict[str, Any]] = CONSUMER_PODS.read_as(dict[str, Any])
LOADED = {
    "as it is asked for": Objects(CONSUMER_PODS, [msgspec.convert(POD, Pod)]),
    "as dicts": Objects(UNTYPED, [POD]),
    "as a type that knows more": Objects(PODS, [msgspec.convert(POD, SchedulablePod)]),
}


@pytest.mark.parametrize("loaded", LOADED.values(), ids=LOADED)
def test_a_kind_can_be_read_as_another_type(loaded: Objects) -> None:
    pod = Snapshot([loaded], taken=NOON).get(CONSUMER_PODS, Key("n", "p"))

    assert pod == msgspec.convert(POD, Pod)


def test_what_does_not_fit_its_type_is_named() -> None:
    snapshot = Snapshot([Objects(UNTYPED, [POD | {"spec": {"nodeName": 7}}])], taken=NOON)

    with pytest.raises(UnreadableError, match=r"pods n/p .*spec\.nodeName"):
        snapshot.of(CONSUMER_PODS)


def test_a_trial_leaves_the_snapshot_alone() -> None:
    before = snapshot()
    other = rule("only", select(device="gpu-1"))

    after = before.with_objects(RULES, other).without(RULES, Key("", "all"))

    assert [rule.metadata.name for rule in before.of(RULES).values()] == ["all"]
    assert [rule.metadata.name for rule in after.of(RULES).values()] == ["only"]
    on_gpu = after.inventory.device(GPU)
    assert on_gpu is not None
    assert on_gpu.taints == ()
    assert after.usage.pod(Key("default", "pod")) is not None


def test_an_object_takes_the_place_of_that_of_its_name() -> None:
    changed = rule("all", select(device="gpu-1"))

    after = snapshot().with_objects(RULES, changed)

    assert list(after.of(RULES).values()) == [changed]


def test_a_gap_that_a_trial_fills_is_none() -> None:
    empty = Snapshot([], taken=NOON, gaps=[Gap(RULES, "not served")])

    assert empty.with_objects(RULES, WHOLE).gap(RULES) is None


async def test_nobody_can_wait_for_a_stopped_clock() -> None:
    clock = StoppedClock(NOON)

    assert clock.now() == NOON
    with pytest.raises(RuntimeError, match="cannot sleep"):
        await clock.sleep(1)
